/* SPDX-License-Identifier: MIT */
/* The limiter: never more than so many inside, in the order of arrival, and it may change meanwhile. */
#include "crew.h"

static struct hive_limiter limiter;
static ATOMIC(uint32_t) inside, most, ended, order;

static void begin(uint32_t limit)
{
	hive_limiter_init(&limiter, limit);
	store_relaxed(&inside, 0);
	store_relaxed(&most, 0);
	store_relaxed(&ended, 0);
	store_relaxed(&order, 0);
}

static void check_counts(uint32_t limit, uint32_t in, uint32_t waiting_now)
{
	struct hive_limiter_counts counts;

	CHECK_OK(hive_limiter_read(&limiter, &counts));
	CHECK_EQ(counts.limit, limit);
	CHECK_EQ(counts.inside, in);
	CHECK_EQ(counts.waiting, waiting_now);
}

TEST(so_many_and_no_more)
{
	begin(2);
	CHECK_OK(hive_limiter_enter(&limiter, HIVE_NOWAIT));
	CHECK_OK(hive_limiter_enter(&limiter, HIVE_FOREVER));
	CHECK_ERR(hive_limiter_enter(&limiter, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(hive_limiter_enter(&limiter, hive_deadline(NULL, HIVE_US(100))), -ETIMEDOUT);
	check_counts(2, 2, 0);
	CHECK_OK(hive_limiter_leave(&limiter));
	CHECK_OK(hive_limiter_enter(&limiter, HIVE_NOWAIT));
	CHECK_OK(hive_limiter_leave(&limiter));
	CHECK_OK(hive_limiter_leave(&limiter));
	CHECK_ERR(hive_limiter_leave(&limiter), -EPERM);
	check_counts(2, 0, 0);
}

TEST(mistakes_are_told)
{
	struct hive_limiter never = { .limit = 1 };
	struct hive_limiter_counts counts;

	hive_limiter_init(NULL, 1);
	CHECK_ERR(hive_limiter_enter(NULL, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_limiter_enter(&never, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_limiter_leave(&never), -EINVAL);
	CHECK_ERR(hive_limiter_resize(&never, 1), -EINVAL);
	CHECK_ERR(hive_limiter_read(&never, &counts), -EINVAL);
	begin(1);
	CHECK_ERR(hive_limiter_read(&limiter, NULL), -EINVAL);
}

static void enter_in_turn(void *arg)
{
	CHECK_OK(hive_limiter_enter(&limiter, HIVE_FOREVER));
	CHECK_EQ(add_seq(&order, 1u), (uint32_t)(uintptr_t)arg);
	CHECK_OK(hive_limiter_leave(&limiter));
}

static void enter_too_late(void *arg)
{
	(void)arg;
	CHECK_ERR(hive_limiter_enter(&limiter, hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT);
	store_release(&ended, 1u);
}

/* Who gives up is not waited for. */
CREW_TEST(in_the_order_of_arrival)
{
	struct crew crew;

	begin(1);
	CHECK_OK(hive_limiter_enter(&limiter, HIVE_NOWAIT));
	crew_begin(&crew, crew_kind);
	for (uintptr_t i = 0; i < 4; i++) {
		crew_add(&crew, enter_in_turn, (void *)i);
		UNTIL_WAITING(&limiter, i + 1);
	}
	crew_add(&crew, enter_too_late, NULL);
	until(&ended, 1);
	check_counts(1, 1, 4);
	CHECK_OK(hive_limiter_leave(&limiter));
	crew_end(&crew);
	CHECK_EQ(load_relaxed(&order), 4);
	check_counts(1, 0, 0);
}

CREW_TEST(a_larger_limit_lets_in_who_waits)
{
	struct crew crew;

	begin(0);
	CHECK_ERR(hive_limiter_enter(&limiter, HIVE_NOWAIT), -ETIMEDOUT);
	crew_begin(&crew, crew_kind);
	for (uintptr_t i = 0; i < 2; i++) {
		crew_add(&crew, enter_in_turn, (void *)i);
		UNTIL_WAITING(&limiter, i + 1);
	}
	check_counts(0, 0, 2);
	CHECK_OK(hive_limiter_resize(&limiter, 1));
	crew_end(&crew);
	check_counts(1, 0, 0);
	/* smaller than there are inside: they stay, and nobody new comes */
	CHECK_OK(hive_limiter_enter(&limiter, HIVE_NOWAIT));
	CHECK_OK(hive_limiter_resize(&limiter, 0));
	check_counts(0, 1, 0);
	CHECK_OK(hive_limiter_leave(&limiter));
	CHECK_ERR(hive_limiter_enter(&limiter, HIVE_NOWAIT), -ETIMEDOUT);
}

static void work(void *arg)
{
	(void)arg;
	for (int n = 1000 / test_slowness() + 10; n > 0; n--) {
		uint32_t now, seen;

		if (hive_limiter_enter(&limiter, n % 4 ? HIVE_FOREVER : hive_deadline(NULL, HIVE_US(5))) < 0)
			continue;
		now = add_seq(&inside, 1u) + 1;
		seen = load_relaxed(&most);
		while (now > seen && !cas_relaxed(&most, &seen, now))
			;
		hive_yield();
		sub_seq(&inside, 1u);
		CHECK_OK(hive_limiter_leave(&limiter));
	}
	add_seq(&ended, 1u);
}

/* Deadlines pass and limits change all the time: never more inside than the largest limit, and nobody is forgotten. */
CREW_TEST(limits_change_under_load)
{
	struct crew crew;

	begin(3);
	crew_begin(&crew, crew_kind);
	for (int i = 0; i < 6; i++)
		crew_add(&crew, work, NULL);
	for (uint32_t n = 0; load_acquire(&ended) < 6; n++) {
		CHECK_OK(hive_limiter_resize(&limiter, 1 + n % 3));
		hive_yield();
	}
	crew_end(&crew);
	CHECK(load_relaxed(&most) >= 1 && load_relaxed(&most) <= 3);
	CHECK_EQ(limiter.inside, 0);
	CHECK_EQ(limiter.waiting, 0);
	CHECK(!limiter.waiters[0]);
}
