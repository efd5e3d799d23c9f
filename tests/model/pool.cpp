/* SPDX-License-Identifier: MIT */
/* Lane and pool, so small that two tasks fill a ring and two more a chunk. */
#define LANE_CAPACITY 2
#define LANE_START UINT64_MAX /* cut to 63 bits */
#define CHUNK_TASKS 2
#define POOL_LANES 2
#include "queue/pool.h"

#include "model.h"

template <typename T, int THREADS, int TASKS> struct pool_suite : rl::test_suite<T, THREADS> {
	struct pool pool;
	model_memory memory;
	struct slot rings[POOL_LANES][LANE_CAPACITY];
	model_tasks<TASKS> tasks;
	int refused;

	void before()
	{
		refused = 0;
		for (struct slot *ring : { rings[0], rings[1] })
			memory.offer(ring, sizeof rings[0]);
		pool_init(&pool, &memory.memory, 1);
	}

	/* One poster owns lane 1; another writes the common one. */
	void give(uint32_t poster, int first, int n = 1)
	{
		hive_task list[TASKS];

		for (int i = 0; i < n; i++)
			list[i] = tasks.make(first + i);
		if (pool_give_many(&pool, poster, list, (size_t)n, true) != 0)
			refused += n;
	}

	/* Tasks of one poster come in rising order. The last number, -1: none. */
	int take(uint32_t start, size_t max, int last = -1)
	{
		hive_task list[TASKS];
		size_t n = pool_take_many(&pool, start, list, max);

		for (size_t i = 0; i < n; i++) {
			int number = tasks.run(list[i]);

			RL_ASSERT(i == 0 || number > last);
			last = number;
		}
		return n > 0 ? last : -1;
	}

	/* Everything is quiet: takers are shown the way to what is inside, is_empty tells exactly, taking finds all of it. */
	void after()
	{
		int inside = TASKS - refused - tasks.count;

		RL_ASSERT(inside == 0 || !pool_looks_empty(&pool));
		RL_ASSERT(pool_length(&pool) == (uint64_t)inside);
		RL_ASSERT(pool_is_empty(&pool) == (inside == 0));
		while (take(0, 1) >= 0)
			RL_ASSERT(pool_is_empty(&pool) == (--inside == 0));
		RL_ASSERT(inside == 0 && tasks.count + refused == TASKS);
		RL_ASSERT(pool_accepted(&pool) == (uint64_t)(TASKS - refused));
		pool_destroy(&pool);
	}
};

struct lane_two_takers_share_what_is_given : pool_suite<lane_two_takers_share_what_is_given, 3, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			give(1, 0);
			give(1, 1);
		} else {
			take(0, 2);
		}
	}
};
SCENARIO(lane_two_takers_share_what_is_given, 50000, 3);

/* Three of four do not fit the ring: takers find the list, in order, and the ring is used again when that is empty. */
struct lane_overflow_keeps_the_order : pool_suite<lane_overflow_keeps_the_order, 3, 4> {
	void thread(unsigned i)
	{
		if (i == 0) {
			give(1, 0);
			give(1, 1, 2);
			give(1, 3);
		} else {
			int first = take(0, 1), second = take(0, 2, first);

			RL_ASSERT(first < 0 || second < 0 || second > first);
		}
	}
};
SCENARIO(lane_overflow_keeps_the_order, 50000, 2);

/* The poster goes round the ring under a taker that copied and has not claimed yet. */
struct lane_slot_is_reused_under_a_slow_taker : pool_suite<lane_slot_is_reused_under_a_slow_taker, 3, 4> {
	void before()
	{
		pool_suite::before();
		give(1, 0, 2);
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			take(0, 2);
			give(1, 2, 2);
		} else {
			take(0, 1);
		}
	}
};
SCENARIO(lane_slot_is_reused_under_a_slow_taker, 50000, 2);

/* The ring runs empty under a taker while the next task goes into the list behind it. */
struct lane_list_is_seen_when_the_ring_runs_empty : pool_suite<lane_list_is_seen_when_the_ring_runs_empty, 2, 3> {
	void before()
	{
		pool_suite::before();
		give(1, 0, 2);
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			give(1, 2);
		} else {
			take(0, 2);
			take(0, 1);
		}
	}
};
SCENARIO(lane_list_is_seen_when_the_ring_runs_empty, 50000, 4);

/* Ring and list are both full; each taker gets its share of both, in order. */
struct lane_two_takers_share_ring_and_list : pool_suite<lane_two_takers_share_ring_and_list, 2, 5> {
	void before()
	{
		pool_suite::before();
		give(1, 0, 2);
		give(1, 2, 3);
	}

	void thread(unsigned)
	{
		take(0, 2);
		take(0, 1);
	}
};
SCENARIO(lane_two_takers_share_ring_and_list, 50000, 3);

struct lane_close_refuses_or_keeps : pool_suite<lane_close_refuses_or_keeps, 3, 3> {
	void thread(unsigned i)
	{
		if (i == 0) {
			give(1, 0);
			give(1, 1, 2);
		} else if (i == 1) {
			pool_close(&pool);
		} else {
			take(0, 1);
		}
	}
};
SCENARIO(lane_close_refuses_or_keeps, 50000, 2);

/* A taker that found nothing clears the bit of the lane while the poster believes it set. */
struct pool_bit_is_cleared_while_a_task_comes : pool_suite<pool_bit_is_cleared_while_a_task_comes, 2, 2> {
	void before()
	{
		pool_suite::before();
		give(1, 0);
		take(0, 1); /* leaves the bit behind */
	}

	void thread(unsigned i)
	{
		if (i == 0)
			give(1, 1);
		else
			take(0, 1);
	}
};
SCENARIO(pool_bit_is_cleared_while_a_task_comes, 50000, 5);

struct pool_two_takers_clear_the_same_bit : pool_suite<pool_two_takers_clear_the_same_bit, 3, 2> {
	void before()
	{
		pool_suite::before();
		give(1, 0);
		take(0, 1);
	}

	void thread(unsigned i)
	{
		if (i == 0)
			give(1, 1);
		else
			take(0, 1);
	}
};
SCENARIO(pool_two_takers_clear_the_same_bit, 50000, 3);

/* Who looks after the poster is done must see the task, whoever clears bits meanwhile, unless somebody took it. */
struct pool_two_posters_on_two_lanes : pool_suite<pool_two_posters_on_two_lanes, 3, 3> {
	void thread(unsigned i)
	{
		if (i == 0) {
			give(1, 0);
			give(1, 1);
		} else if (i == 1) {
			give(2, 2);
		} else {
			take(0, 1);
			take(1, 2);
		}
	}
};
SCENARIO(pool_two_posters_on_two_lanes, 50000, 2);

/* More posting threads than lanes: two of them share the common one. */
struct pool_two_posters_share_a_lane : pool_suite<pool_two_posters_share_a_lane, 3, 4> {
	void before()
	{
		pool_suite::before();
		give(1, 0); /* lane 1 has its owner */
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			give(2, 1);
		} else if (i == 1) {
			give(3, 2, 2);
		} else {
			take(0, 1);
			take(0, 1);
		}
	}
};
SCENARIO(pool_two_posters_share_a_lane, 50000, 2);
