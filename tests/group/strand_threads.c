/* SPDX-License-Identifier: MIT */
/* Strands under load: many post, each in order; fibers join; stops and resizes come in between. Real threads. */
#include <pthread.h>

#include "base/atomic.h"
#include "support/real.h"
#include "test.h"

enum { POSTERS = 4, STRANDS = 3 };

struct account { /* of one strand; plain memory, which the strand alone protects */
	struct hive_strand *strand;
	uint64_t last[POSTERS];
	uint64_t total;
};

struct letter {
	struct account *account;
	uint32_t poster;
	uint64_t number;
};

static void receive(void *arg)
{
	struct letter *letter = arg;

	CHECK_EQ(letter->account->last[letter->poster] + 1, letter->number);
	letter->account->last[letter->poster] = letter->number;
	letter->account->total++;
	free(letter);
}

static uint64_t letters;
static struct account accounts[STRANDS];

static void post_letters(void *poster)
{
	uint64_t sent[STRANDS] = { 0 };

	for (uint64_t i = 0; i < letters; i++) {
		struct account *to = &accounts[(i * 7 + (uintptr_t)poster) % STRANDS];
		struct letter *letter = malloc(sizeof *letter);

		CHECK(letter);
		*letter = (struct letter){ to, (uint32_t)(uintptr_t)poster, ++sent[to - accounts] };
		CHECK_OK(hive_strand_post(to->strand, receive, letter));
	}
}

static int post_as_fiber(void *poster)
{
	post_letters(poster);
	for (int i = 0; i < STRANDS; i++)
		CHECK_OK(hive_strand_join(accounts[i].strand, HIVE_FOREVER));
	return 0;
}

static void *post_as_thread(void *poster)
{
	post_letters(poster);
	return NULL;
}

/* Two threads and two fibers; each one's letters arrive in its order, and nobody but the strand guards the accounts. */
static void pass_letters(enum hive_kind kind)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 3, .compute_workers = 2 });
	struct hive_strand_options options = { .kind = kind };
	pthread_t threads[2];
	struct hive_fiber *fibers[2];
	uint64_t total = 0;

	letters = 20000 / (uint64_t)test_slowness() + 100;
	memset(accounts, 0, sizeof accounts);
	for (int i = 0; i < STRANDS; i++)
		CHECK_OK(hive_strand_create(hive, &options, &accounts[i].strand));
	for (uintptr_t i = 0; i < 2; i++) {
		CHECK_OK(pthread_create(&threads[i], NULL, post_as_thread, (void *)i));
		CHECK_OK(hive_spawn(hive, post_as_fiber, (void *)(i + 2), NULL, &fibers[i]));
	}
	for (int i = 0; i < 2; i++) {
		CHECK_OK(pthread_join(threads[i], NULL));
		CHECK_OK(hive_fiber_join(fibers[i], real_patience(), NULL));
	}
	for (int i = 0; i < STRANDS; i++) {
		CHECK_OK(hive_strand_join(accounts[i].strand, real_patience()));
		CHECK_OK(hive_strand_destroy(accounts[i].strand));
		total += accounts[i].total;
	}
	CHECK_EQ(total, letters * POSTERS);
	real_end(hive, HIVE_DRAIN);
}

TEST(letters_arrive_in_order_one_at_a_time)
{
	pass_letters(HIVE_MICRO);
	pass_letters(HIVE_COMPUTE);
}

static ATOMIC(uint64_t) ran, dropped;

static void count_run(void *arg)
{
	(void)arg;
	add_relaxed(&ran, 1u);
}

static void count_drop(void *hook_arg, const struct hive_task *task)
{
	(void)hook_arg;
	if (task->fn == count_run)
		add_relaxed(&dropped, 1u);
}

struct flood {
	struct hive_strand *strand;
	uint64_t accepted;
	int r;
};

static void *post_until_refused(void *arg)
{
	struct flood *flood = arg;

	while ((flood->r = hive_strand_post(flood->strand, count_run, NULL)) == 0)
		flood->accepted++;
	return NULL;
}

/* Posts go on until the hive refuses them: what was accepted has run or was dropped, and the books say so. */
TEST(a_stop_races_with_posts)
{
	for (int round = 0; round < 40 / test_slowness() + 4; round++) {
		struct hive_options how = { .io_workers = 2, .compute_workers = 1, .on_drop = count_drop };
		struct hive *hive = real_start(how);
		enum hive_stop_mode mode = round % 2 ? HIVE_NOW : HIVE_DRAIN;
		struct hive_strand_options options = { .kind = round / 2 % 2 ? HIVE_COMPUTE : HIVE_MICRO,
			                               .width = round / 4 % 2 ? 4 : 1 };
		struct flood floods[2] = { { 0 } };
		struct hive_strand *strand;
		pthread_t threads[2];

		store_relaxed(&ran, (uint64_t)0);
		store_relaxed(&dropped, (uint64_t)0);
		CHECK_OK(hive_strand_create(hive, &options, &strand));
		for (int i = 0; i < 2; i++) {
			floods[i].strand = strand;
			CHECK_OK(pthread_create(&threads[i], NULL, post_until_refused, &floods[i]));
		}
		WAIT_UNTIL(load_relaxed(&ran) > 100);
		CHECK_OK(hive_stop(hive, mode, HIVE_FOREVER));
		for (int i = 0; i < 2; i++) {
			CHECK_OK(pthread_join(threads[i], NULL));
			CHECK_ERR(floods[i].r, -ESHUTDOWN);
		}
		real_join(hive);
		CHECK_EQ(load_relaxed(&ran) + load_relaxed(&dropped), floods[0].accepted + floods[1].accepted);
		if (mode == HIVE_DRAIN)
			CHECK_EQ(load_relaxed(&dropped), 0);
		CHECK_OK(hive_strand_destroy(strand));
	}
}

static void spend(void *deadline)
{
	gate_pass(deadline);
}

/* A fiber that is cancelled, or late, stops waiting; the strand does not care. */
static int join_strand(void *strand)
{
	return hive_strand_join(strand, HIVE_FOREVER);
}

TEST(a_join_can_be_cancelled)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	struct hive_strand_options options = { .kind = HIVE_COMPUTE };
	struct hive_strand *strand;
	struct hive_fiber *fiber;
	struct gate gate;
	int result = 0;

	gate_init(&gate);
	CHECK_OK(hive_strand_create(hive, &options, &strand));
	CHECK_OK(hive_strand_post(strand, spend, &gate));
	CHECK_OK(hive_spawn(hive, join_strand, strand, NULL, &fiber));
	real_wait_asleep(hive, 2);
	CHECK_OK(hive_fiber_cancel(fiber));
	CHECK_OK(hive_fiber_join(fiber, real_patience(), &result));
	CHECK_ERR(result, -ECANCELED);
	gate_open(&gate);
	CHECK_OK(hive_strand_join(strand, real_patience()));
	CHECK_OK(hive_strand_destroy(strand));
	gate_destroy(&gate);
	real_end(hive, HIVE_DRAIN);
}

/* It is gone as soon as a join says so, again and again. */
TEST(a_strand_goes_when_it_is_joined)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 2, .compute_workers = 1 });

	store_relaxed(&ran, (uint64_t)0);
	for (int i = 0; i < 3000 / test_slowness() + 50; i++) {
		struct hive_strand_options options = { .kind = i % 3 ? HIVE_MICRO : HIVE_COMPUTE,
			                               .width = i % 2 ? 1 : 2 };
		struct hive_strand *strand;

		CHECK_OK(hive_strand_create(hive, &options, &strand));
		for (int k = 0; k <= i % 4; k++)
			CHECK_OK(hive_strand_post(strand, count_run, NULL));
		CHECK_OK(hive_strand_join(strand, real_patience()));
		CHECK_OK(hive_strand_destroy(strand));
	}
	real_end(hive, HIVE_DRAIN);
}

/* Workers come and go, of both kinds; compute workers to the last one. */
TEST(workers_come_and_go)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 2, .compute_workers = 2 });
	struct hive_strand_options options[2] = { { .kind = HIVE_MICRO }, { .kind = HIVE_COMPUTE, .width = 2 } };
	struct hive_strand *strands[2];
	uint64_t posted = 0;

	store_relaxed(&ran, (uint64_t)0);
	for (int i = 0; i < 2; i++)
		CHECK_OK(hive_strand_create(hive, &options[i], &strands[i]));
	for (int round = 0; round < 20; round++) {
		int r;

		for (int i = 0; i < 200; i++, posted++)
			CHECK_OK(hive_strand_post(strands[i % 2], count_run, NULL));
		r = hive_resize(hive, 1 + round % 3, round % 4, real_patience());
		CHECK(r == 0 || r == -EBUSY);
	}
	for (int i = 0; i < 2; i++) {
		CHECK_OK(hive_strand_join(strands[i], real_patience()));
		CHECK_OK(hive_strand_destroy(strands[i]));
	}
	CHECK_EQ(load_relaxed(&ran), posted);
	real_end(hive, HIVE_DRAIN);
}
