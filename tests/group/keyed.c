/* SPDX-License-Identifier: MIT */
/* Posts by key: where they go, what moves when workers come and go, and that nothing is lost. */
#include <pthread.h>

#include "base/atomic.h"
#include "support/fake.h"
#include "support/real.h"
#include "test.h"

enum { KEYS = 4000 };

static uint32_t homes[KEYS];

static int find_homes(struct hive *hive)
{
	int moved = 0;

	for (uint64_t key = 0; key < KEYS; key++) {
		uint32_t home = hive_keyed_worker(hive, key * 1000003);

		CHECK(home != HIVE_WORKER_NONE);
		moved += home != homes[key];
		homes[key] = home;
	}
	return moved;
}

static uint32_t ran_on;

static void note_worker(void *arg)
{
	(void)arg;
	ran_on = hive_worker_current();
}

TEST(a_key_has_a_worker_and_its_tasks_run_there)
{
	struct fake f = { 0 };
	int shares[4] = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 4, .compute_workers = 1 });
	fake_start(&f);
	fake_settle(&f);
	find_homes(f.hive);
	CHECK_EQ(find_homes(f.hive), 0);
	for (uint64_t key = 0; key < KEYS; key++)
		for (int i = 0; i < 4; i++)
			shares[i] += homes[key] == f.workers[i].id;
	for (int i = 0; i < 4; i++)
		CHECK(shares[i] > KEYS / 5 && shares[i] < KEYS * 3 / 10);
	for (uint64_t key = 0; key < 50; key++) {
		CHECK_OK(hive_post_keyed(f.hive, key * 1000003, note_worker, NULL));
		fake_settle(&f);
		CHECK_EQ(ran_on, homes[key]);
	}
	fake_destroy(&f);
}

/* Who comes takes a part of all keys, who leaves gives up its own; no others move, and with the old set the old places are back. */
TEST(few_keys_move)
{
	struct fake f = { 0 };
	uint32_t before[KEYS], comer;

	fake_create(&f, (struct hive_options){ .io_workers = 4 });
	fake_start(&f);
	fake_settle(&f);
	find_homes(f.hive);
	memcpy(before, homes, sizeof before);
	CHECK_OK(hive_attach(f.hive, &(struct hive_worker_options){ .core = &fake_core }, &comer));
	CHECK(find_homes(f.hive) < KEYS / 4);
	for (int key = 0; key < KEYS; key++)
		CHECK(homes[key] == before[key] || homes[key] == comer);
	CHECK_OK(hive_detach(f.hive, comer, HIVE_FOREVER));
	find_homes(f.hive);
	CHECK_EQ(memcmp(homes, before, sizeof before), 0);
	fake_destroy(&f);
}

TEST(mistakes_are_told)
{
	struct hive *empty;
	struct fake f = { 0 };

	CHECK_ERR(hive_post_keyed(NULL, 1, note_worker, NULL), -EINVAL);
	CHECK_EQ(hive_keyed_worker(NULL, 1), HIVE_WORKER_NONE);
	CHECK_OK(hive_create(&(struct hive_options){ 0 }, &empty));
	CHECK_ERR(hive_post_keyed(empty, 1, NULL, NULL), -EINVAL);
	CHECK_ERR(hive_post_keyed(empty, 1, note_worker, NULL), -ESRCH);
	CHECK_EQ(hive_keyed_worker(empty, 1), HIVE_WORKER_NONE);
	CHECK_OK(hive_destroy(empty));
	fake_create(&f, (struct hive_options){ .io_workers = 2 });
	fake_start(&f);
	f.fail_at = f.allocations + 1;
	f.sticky = true;
	CHECK_ERR(hive_post_keyed(f.hive, 1, note_worker, NULL), -ENOMEM);
	f.fail_at = 0;
	f.sticky = false;
	CHECK_OK(hive_stop(f.hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_ERR(hive_post_keyed(f.hive, 1, note_worker, NULL), -ESHUTDOWN);
	fake_destroy(&f);
}

enum { POSTERS = 2, THEIR_KEYS = 16 };

struct post {
	uint32_t poster, key;
	uint64_t number;
};

static struct hive *hive;
static uint64_t posts_each;
static uint64_t last[POSTERS][THEIR_KEYS]; /* plain memory: a key is one worker's */
static uint32_t seen_on[THEIR_KEYS];
static ATOMIC(uint64_t) ran;

static void receive_in_order(void *arg)
{
	struct post *post = arg;

	CHECK_EQ(last[post->poster][post->key] + 1, post->number);
	last[post->poster][post->key] = post->number;
	CHECK(seen_on[post->key] == 0 || seen_on[post->key] == hive_worker_current());
	seen_on[post->key] = hive_worker_current();
	add_relaxed(&ran, 1u);
	free(post);
}

static void receive(void *arg)
{
	free(arg);
	add_relaxed(&ran, 1u);
}

static void *post_all(void *poster)
{
	uint64_t sent[THEIR_KEYS] = { 0 };
	bool in_order = (uintptr_t)poster < POSTERS;

	for (uint64_t i = 0; i < posts_each; i++) {
		struct post *post = malloc(sizeof *post);
		uint32_t key = (uint32_t)(i * 5 % THEIR_KEYS);

		CHECK(post);
		*post = (struct post){ (uint32_t)(uintptr_t)poster, key, ++sent[key] };
		CHECK_OK(hive_post_keyed(hive, key, in_order ? receive_in_order : receive, post));
	}
	return NULL;
}

/* While the workers stay: one worker for a key, one at a time, each thread's posts in order. */
TEST(tasks_of_a_key_keep_their_order)
{
	pthread_t threads[POSTERS];

	hive = real_start((struct hive_options){ .io_workers = 3 });
	posts_each = 20000 / (uint64_t)test_slowness() + 100;
	memset(last, 0, sizeof last);
	memset(seen_on, 0, sizeof seen_on);
	store_relaxed(&ran, (uint64_t)0);
	for (uintptr_t i = 0; i < POSTERS; i++)
		CHECK_OK(pthread_create(&threads[i], NULL, post_all, (void *)i));
	for (int i = 0; i < POSTERS; i++)
		CHECK_OK(pthread_join(threads[i], NULL));
	real_end(hive, HIVE_DRAIN);
	CHECK_EQ(load_relaxed(&ran), posts_each * POSTERS);
}

/* While they come and go: nothing is lost, and nothing is refused. */
TEST(nothing_is_lost_while_workers_come_and_go)
{
	pthread_t threads[POSTERS];

	hive = real_start((struct hive_options){ .io_workers = 3 });
	posts_each = 20000 / (uint64_t)test_slowness() + 100;
	store_relaxed(&ran, (uint64_t)0);
	for (uintptr_t i = 0; i < POSTERS; i++)
		CHECK_OK(pthread_create(&threads[i], NULL, post_all, (void *)(i + POSTERS)));
	for (int i = 0; i < 30; i++)
		CHECK_OK(hive_resize(hive, 1 + i % 4, 0, real_patience()));
	for (int i = 0; i < POSTERS; i++)
		CHECK_OK(pthread_join(threads[i], NULL));
	real_end(hive, HIVE_DRAIN);
	CHECK_EQ(load_relaxed(&ran), posts_each * POSTERS);
}
