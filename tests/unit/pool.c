/* SPDX-License-Identifier: MIT */
/* The shared pool in its normal size: R-61 … R-64. */
#include "queue/pool.h"

#include "unit.h"

static struct unit_memory memory;
static struct pool pool;

static void start(void)
{
	unit_memory_init(&memory);
	pool_init(&pool, &memory.memory, 4);
}

static void end(void)
{
	pool_destroy(&pool);
	CHECK_EQ(atomic_load(&memory.live), 0);
}

static int64_t taken(uint32_t from)
{
	struct hive_task task;

	return pool_take_many(&pool, from, &task, 1) ? (int64_t)number_of(task) : -1;
}

TEST(new_pool_is_empty)
{
	start();
	CHECK(pool_is_empty(&pool));
	CHECK(pool_looks_empty(&pool));
	CHECK_EQ(pool_length(&pool), 0);
	CHECK_EQ(pool_accepted(&pool), 0);
	CHECK_EQ(taken(0), -1);
	CHECK_EQ(atomic_load(&memory.made), 0);
	end();
}

TEST(give_one_take_one)
{
	start();
	CHECK_OK(pool_give(&pool, 1, task_of(5), true));
	CHECK(!pool_is_empty(&pool));
	CHECK(!pool_looks_empty(&pool));
	CHECK_EQ(pool_length(&pool), 1);
	CHECK_EQ(pool_accepted(&pool), 1);
	CHECK_EQ(taken(0), 5);
	CHECK(pool_is_empty(&pool));
	CHECK_EQ(pool_length(&pool), 0);
	CHECK_EQ(pool_accepted(&pool), 1);
	end();
}

TEST(a_taker_that_finds_nothing_clears_the_hint)
{
	start();
	CHECK_OK(pool_give(&pool, 1, task_of(5), true));
	CHECK_EQ(taken(0), 5);
	CHECK_EQ(taken(0), -1);
	CHECK(pool_looks_empty(&pool));
	CHECK_OK(pool_give(&pool, 1, task_of(6), true));
	CHECK_EQ(taken(0), 6);
	end();
}

TEST(take_many_takes_up_to_max_in_order)
{
	struct hive_task tasks[10], got[4];

	start();
	for (uint64_t i = 0; i < 10; i++)
		tasks[i] = task_of(i);
	CHECK_OK(pool_give_many(&pool, 7, tasks, 10, true));
	CHECK_EQ(pool_length(&pool), 10);
	for (uint64_t first = 0; first < 10; first += 4) {
		size_t n = pool_take_many(&pool, 0, got, 4);

		CHECK_EQ(n, first < 8 ? 4 : 2);
		for (size_t i = 0; i < n; i++)
			CHECK_EQ(number_of(got[i]), first + i);
	}
	CHECK_EQ(pool_take_many(&pool, 0, got, 4), 0);
	end();
}

TEST(every_start_finds_the_task)
{
	start();
	for (uint32_t from = 0; from < POOL_LANES * 2; from++) {
		CHECK_OK(pool_give(&pool, 3, task_of(from), true));
		CHECK_EQ(taken(from), from);
	}
	end();
}

/* A taker that begins at a lane of its own finds that one first, so that takers spread. */
TEST(start_says_which_lane_comes_first)
{
	start();
	for (uint32_t poster = 1; poster < POOL_LANES; poster++)
		CHECK_OK(pool_give(&pool, poster, task_of(poster), true));
	for (uint32_t poster = POOL_LANES - 1; poster >= 1; poster--)
		CHECK_EQ(taken(pool_place(poster, 0)), poster);
	CHECK(pool_is_empty(&pool));
	end();
}

TEST(order_is_kept_for_each_poster)
{
	uint64_t next[40] = { 0 };

	start();
	for (uint64_t i = 0; i < 50; i++)
		for (uint32_t poster = 1; poster < 40; poster++) /* more posters than lanes */
			CHECK_OK(pool_give(&pool, poster, task_of(poster * 1000 + i), true));
	CHECK_EQ(pool_length(&pool), 39 * 50);
	for (int64_t number = taken(0); number >= 0; number = taken((uint32_t)number)) {
		CHECK_EQ(number % 1000, next[number / 1000]);
		next[number / 1000]++;
	}
	for (int poster = 1; poster < 40; poster++)
		CHECK_EQ(next[poster], 50);
	end();
}

TEST(poster_keeps_its_lane)
{
	uint32_t lane;

	start();
	CHECK_OK(pool_give(&pool, 9, task_of(0), true));
	lane = pool_claim_lane(&pool, 9);
	CHECK(lane != POOL_COMMON);
	CHECK_EQ(load_relaxed(&pool.lanes[lane].owner), 9);
	CHECK_OK(pool_give(&pool, 9, task_of(1), true));
	CHECK_EQ(lane_length(&pool.lanes[lane]), 2);
	CHECK_EQ(taken(0), 0);
	CHECK_EQ(taken(0), 1);
	end();
}

TEST(poster_without_a_lane_uses_the_common_one)
{
	start();
	for (uint32_t i = 0; i < POOL_PROBES; i++) /* others live where it would look */
		store_relaxed(&pool.lanes[pool_place(5, i)].owner, hive__thread_number());
	CHECK_OK(pool_give(&pool, 5, task_of(1), true));
	CHECK_EQ(lane_length(&pool.lanes[POOL_COMMON]), 1);
	CHECK(!pool_is_empty(&pool));
	CHECK_EQ(taken(3), 1);
	end();
}

/* Its first tasks lie in the common lane: a lane that falls free must wait, or the order would break. */
TEST(poster_moves_to_a_lane_of_its_own_only_when_its_tasks_are_gone)
{
	start();
	for (uint32_t i = 0; i < POOL_PROBES; i++)
		store_relaxed(&pool.lanes[pool_place(5, i)].owner, hive__thread_number());
	CHECK_OK(pool_give(&pool, 5, task_of(0), true));
	store_relaxed(&pool.lanes[pool_place(5, 0)].owner, (uint64_t)0);
	CHECK_OK(pool_give(&pool, 5, task_of(1), true));
	CHECK_EQ(lane_length(&pool.lanes[POOL_COMMON]), 2);
	CHECK_EQ(taken(pool_place(5, 0)), 0);
	CHECK_EQ(taken(pool_place(5, 0)), 1);
	CHECK_OK(pool_give(&pool, 5, task_of(2), true));
	CHECK_EQ(lane_length(&pool.lanes[pool_place(5, 0)]), 1);
	CHECK_EQ(taken(0), 2);
	end();
}

static void *report_number(void *arg)
{
	*(uint64_t *)arg = hive__thread_number();
	return NULL;
}

/* A thread that has ended, for whose number nobody stands any more. */
static uint64_t dead_number(void)
{
	pthread_t thread;
	uint64_t number = 0;

	CHECK_EQ(pthread_create(&thread, NULL, report_number, &number), 0);
	pthread_join(thread, NULL);
	while (hive__thread_lives(number))
		sched_yield(); /* joined a little before the kernel is done with it */
	return number;
}

TEST(lane_of_a_dead_thread_is_inherited)
{
	uint64_t dead = dead_number();

	start();
	for (uint32_t i = 0; i < POOL_PROBES; i++)
		store_relaxed(&pool.lanes[pool_place(5, i)].owner, dead);
	CHECK_OK(pool_give(&pool, 5, task_of(0), true)); /* finds out on the way, goes through the common lane */
	CHECK_EQ(taken(0), 0);
	CHECK_OK(pool_give(&pool, 5, task_of(1), true));
	CHECK_EQ(load_relaxed(&pool.lanes[pool_place(5, 0)].owner), 5);
	CHECK_EQ(taken(0), 1);
	end();
}

/* A hint may be missing while the lane holds something: who asks is told, and takers find it afterwards. */
TEST(is_empty_mends_a_missing_hint)
{
	start();
	CHECK_OK(pool_give(&pool, 1, task_of(8), true));
	store_relaxed(&pool.ready, 0u);
	CHECK(!pool_is_empty(&pool));
	CHECK_EQ(taken(0), 8);
	end();
}

TEST(closed_pool_refuses_what_is_fresh)
{
	start();
	CHECK_OK(pool_give(&pool, 1, task_of(0), true));
	pool_close(&pool);
	for (uint32_t poster = 1; poster < 40; poster++)
		CHECK_ERR(pool_give(&pool, poster, task_of(1), true), -ESHUTDOWN);
	CHECK_EQ(pool_accepted(&pool), 1);
	CHECK_EQ(taken(0), 0);
	CHECK(pool_is_empty(&pool));
	CHECK_OK(pool_give(&pool, 1, task_of(2), false)); /* it was accepted elsewhere */
	CHECK_EQ(taken(0), 2);
	CHECK_EQ(pool_accepted(&pool), 1);
	end();
}

static int give_numbers(uint32_t poster, uint64_t first, uint64_t n)
{
	struct hive_task tasks[LANE_CAPACITY + 1000];

	CHECK(n <= LANE_CAPACITY + 1000);
	for (uint64_t i = 0; i < n; i++)
		tasks[i] = task_of(first + i);
	return pool_give_many(&pool, poster, tasks, (size_t)n, true);
}

TEST(more_than_a_ring_holds_waits_behind_it)
{
	start();
	CHECK_OK(give_numbers(1, 0, LANE_CAPACITY));
	CHECK_OK(give_numbers(1, LANE_CAPACITY, 900));
	CHECK_EQ(pool_length(&pool), LANE_CAPACITY + 900);
	for (int64_t i = 0; i < LANE_CAPACITY + 900; i++)
		CHECK_EQ(taken(0), i);
	CHECK(pool_is_empty(&pool));
	end();
}

TEST(what_is_left_at_the_end_is_freed)
{
	start();
	CHECK_OK(give_numbers(1, 0, LANE_CAPACITY));
	CHECK_OK(give_numbers(1, 0, 1000));
	CHECK_OK(give_numbers(2, 0, 10));
	end();
}

/* The n-th allocation fails: that batch is refused as a whole, and everything else is there. */
TEST(batch_is_all_or_none_when_memory_runs_out)
{
	for (long n = 1; n <= 5; n++) {
		start();
		memory.once = true;
		CHECK_OK(give_numbers(1, 0, 10));
		unit_memory_fail(&memory, n);
		if (give_numbers(1, 10, LANE_CAPACITY) != 0)
			CHECK_OK(give_numbers(1, 10, LANE_CAPACITY));
		CHECK_EQ(pool_length(&pool), LANE_CAPACITY + 10);
		CHECK_EQ(pool_accepted(&pool), LANE_CAPACITY + 10);
		for (int64_t i = 0; i < LANE_CAPACITY + 10; i++)
			CHECK_EQ(taken(0), i);
		end();
	}
}

TEST(reserved_pool_needs_no_memory_again_and_again)
{
	enum { TASKS = 5000 };

	start();
	CHECK_OK(pool_reserve(&pool, TASKS));
	unit_memory_fail(&memory, 1);
	for (int round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < TASKS; i++)
			CHECK_OK(pool_give(&pool, 1 + (uint32_t)(i % 3), task_of(i), true));
		for (uint64_t i = 0; i < TASKS; i++)
			CHECK(taken((uint32_t)i) >= 0);
		CHECK_OK(give_numbers(1, 0, TASKS));
		for (uint64_t i = 0; i < TASKS; i++)
			CHECK_EQ(taken(0), i);
	}
	CHECK_EQ(atomic_load(&memory.made), 0);
	end();
}

TEST(reserve_says_when_memory_is_wanting)
{
	for (long n = 1; n < 80; n += 13) {
		start();
		unit_memory_fail(&memory, n);
		if (pool_reserve(&pool, 1000) == 0)
			CHECK(n > 2 * POOL_LANES);
		memory.fails_from = 0;
		CHECK_OK(pool_give(&pool, 1, task_of(1), true));
		CHECK_EQ(taken(0), 1);
		end();
	}
}

TEST(rotation_puts_the_start_first)
{
	CHECK_EQ(pool_rotate(1u, 0), 1u);
	CHECK_EQ(pool_rotate(1u << 3, 3), 1u);
	CHECK_EQ(pool_rotate(1u, 1), 1u << (POOL_LANES - 1));
	CHECK_EQ(pool_rotate((1u << POOL_LANES) - 1, 5), (1u << POOL_LANES) - 1);
	CHECK_EQ(pool_rotate(0, 7), 0);
}
