/* SPDX-License-Identifier: MIT */
/* The semaphore, and the wait group made of it. */
#include "crew.h"

static struct hive_semaphore semaphore;

static uint64_t count(void)
{
	return semaphore_count(load_relaxed(&semaphore.state));
}

TEST(counts_without_waiting)
{
	hive_semaphore_init(&semaphore, 3);
	CHECK_OK(hive_semaphore_acquire(&semaphore, 2, HIVE_NOWAIT));
	CHECK_ERR(hive_semaphore_acquire(&semaphore, 2, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_EQ(count(), 1);
	CHECK_OK(hive_semaphore_acquire(&semaphore, 1, HIVE_NOWAIT));
	CHECK_OK(hive_semaphore_acquire(&semaphore, 0, HIVE_NOWAIT));
	CHECK_OK(hive_semaphore_release(&semaphore, 0));
	CHECK_OK(hive_semaphore_release(&semaphore, 5));
	CHECK_EQ(count(), 5);
}

TEST(overflow_is_told_and_nothing_was_done)
{
	hive_semaphore_init(&semaphore, UINT32_MAX - 1);
	CHECK_ERR(hive_semaphore_release(&semaphore, 2), -EOVERFLOW);
	CHECK_OK(hive_semaphore_release(&semaphore, 1));
	CHECK_ERR(hive_semaphore_release(&semaphore, 1), -EOVERFLOW);
	CHECK_ERR(hive_semaphore_release(&semaphore, UINT32_MAX), -EOVERFLOW);
	CHECK_EQ(count(), UINT32_MAX);
	CHECK_OK(hive_semaphore_acquire(&semaphore, UINT32_MAX, HIVE_NOWAIT));
}

static ATOMIC(uint32_t) servings;

static void acquire(void *arg)
{
	CHECK_OK(hive_semaphore_acquire(&semaphore, *(uint32_t *)arg, HIVE_FOREVER));
	add_seq(&servings, 1u);
}

CREW_TEST(a_large_request_is_not_overtaken)
{
	uint32_t big = 3, small = 1;
	struct crew crew;

	hive_semaphore_init(&semaphore, 0);
	store_relaxed(&servings, 0);
	crew_begin(&crew, crew_kind);
	crew_add(&crew, acquire, &big);
	UNTIL_WAITING(&semaphore, 1);
	crew_add(&crew, acquire, &small);
	UNTIL_WAITING(&semaphore, 2);
	CHECK_OK(hive_semaphore_release(&semaphore, 2));
	CHECK_ERR(hive_semaphore_acquire(&semaphore, 1, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_EQ(waiting(&semaphore.state, semaphore.waiters), 2);
	CHECK_EQ(count(), 2);
	CHECK_OK(hive_semaphore_release(&semaphore, 1));
	while (waiting(&semaphore.state, semaphore.waiters) != 1 || count() != 0)
		hive_yield();
	CHECK_OK(hive_semaphore_release(&semaphore, 1));
	crew_end(&crew);
	CHECK_EQ(load_relaxed(&servings), 2);
	CHECK_EQ(count(), 0);
}

static ATOMIC(uint32_t) got, gone;

static void late(void *arg)
{
	CHECK_ERR(hive_semaphore_acquire(&semaphore, *(uint32_t *)arg, hive_deadline(NULL, HIVE_MS(20))), -ETIMEDOUT);
	store_release(&gone, 1);
}

static void take_one(void *arg)
{
	(void)arg;
	CHECK_OK(hive_semaphore_acquire(&semaphore, 1, HIVE_FOREVER));
	add_seq(&got, 1u);
}

/* The one in front gives up: those behind it had waited for nothing but its turn. */
CREW_TEST(who_gives_up_lets_the_others_through)
{
	uint32_t many = 10;
	struct crew crew;

	hive_semaphore_init(&semaphore, 2);
	store_relaxed(&got, 0);
	store_relaxed(&gone, 0);
	crew_begin(&crew, crew_kind);
	crew_add(&crew, late, &many);
	UNTIL_WAITING_OR(&semaphore, 1, &gone);
	crew_add(&crew, take_one, NULL);
	crew_add(&crew, take_one, NULL);
	crew_end(&crew);
	CHECK_EQ(load_relaxed(&got), 2);
	CHECK_EQ(load_relaxed(&semaphore.state), 0);
}

TEST(overflow_while_somebody_waits)
{
	uint32_t n = UINT32_MAX;
	struct crew crew;

	hive_semaphore_init(&semaphore, UINT32_MAX - 1);
	crew_begin(&crew, CREW_THREADS);
	store_relaxed(&gone, 0);
	crew_add(&crew, late, &n);
	UNTIL_WAITING_OR(&semaphore, 1, &gone);
	CHECK_ERR(hive_semaphore_release(&semaphore, 2), -EOVERFLOW);
	crew_end(&crew);
	CHECK_EQ(count(), UINT32_MAX - 1);
}

CREW_TEST(one_release_serves_many)
{
	struct crew crew;

	hive_semaphore_init(&semaphore, 0);
	store_relaxed(&got, 0);
	crew_begin(&crew, crew_kind);
	for (size_t i = 0; i < 10; i++) {
		crew_add(&crew, take_one, NULL);
		UNTIL_WAITING(&semaphore, i + 1);
	}
	CHECK_OK(hive_semaphore_release(&semaphore, 9));
	until(&got, 9);
	UNTIL_WAITING(&semaphore, 1);
	CHECK_OK(hive_semaphore_release(&semaphore, 3));
	crew_end(&crew);
	CHECK_EQ(count(), 2);
}

/* The wait group: a semaphore of 0 on the stack of who waits. Its memory goes when the acquire has returned. */
struct group {
	struct hive_semaphore done;
	int results[8];
	ATOMIC(uint32_t) next;
};

static void member(void *arg)
{
	struct group *group = arg;
	uint32_t i = add_seq(&group->next, 1u);

	group->results[i] = (int)i + 1;
	CHECK_OK(hive_semaphore_release(&group->done, 1));
}

CREW_TEST(wait_group_sees_everything_and_may_go)
{
	for (int round = 0; round < 100 / test_slowness() + 1; round++) {
		struct group *group = calloc(1, sizeof *group);
		struct crew crew;

		CHECK(group);
		hive_semaphore_init(&group->done, 0);
		crew_begin(&crew, crew_kind);
		for (int i = 0; i < 8; i++)
			crew_add(&crew, member, group);
		CHECK_OK(hive_semaphore_acquire(&group->done, 8, HIVE_FOREVER));
		for (int i = 0; i < 8; i++)
			CHECK_EQ(group->results[i], i + 1);
		memset(group, 0xa5, sizeof *group);
		free(group);
		crew_end(&crew);
	}
}

/* Deadlines against releases: what was given out came in. */
static ATOMIC(uint32_t) taken, refused;

static void impatient(void *arg)
{
	int rounds = *(int *)arg;

	for (int i = 0; i < rounds; i++) {
		uint32_t n = 1 + (uint32_t)i % 3;
		int r = hive_semaphore_acquire(&semaphore, n, hive_deadline(NULL, HIVE_US(i % 40)));

		CHECK(r == 0 || r == -ETIMEDOUT);
		if (r == 0)
			add_seq(&taken, n);
		else
			add_seq(&refused, 1u);
	}
}

static void generous(void *arg)
{
	int rounds = *(int *)arg;

	for (int i = 0; i < rounds; i++) {
		CHECK_OK(hive_semaphore_release(&semaphore, 1 + (uint32_t)i % 2));
		if (i % 8 == 0)
			hive_yield();
	}
}

CREW_TEST(deadlines_against_releases)
{
	int rounds = 3000 / test_slowness() / 2 * 2;
	struct crew crew;

	hive_semaphore_init(&semaphore, 0);
	store_relaxed(&taken, 0);
	crew_begin(&crew, crew_kind);
	for (int i = 0; i < 3; i++)
		crew_add(&crew, impatient, &rounds);
	crew_add(&crew, generous, &rounds);
	crew_end(&crew);
	CHECK_EQ(count() + load_relaxed(&taken), rounds / 2 * 3);
	CHECK_EQ(load_relaxed(&semaphore.state) & SEMAPHORE_BITS, 0);
}

TEST(wrong_use_is_told)
{
	struct hive_semaphore never = { 0 };

	CHECK_ERR(hive_semaphore_acquire(NULL, 1, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_semaphore_release(NULL, 1), -EINVAL);
	CHECK_ERR(hive_semaphore_acquire(&never, 1, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_semaphore_release(&never, 1), -EINVAL);
	hive_semaphore_init(NULL, 1);
}
