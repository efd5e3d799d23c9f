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
SCENARIO(lane_two_takers_share_what_is_given, 50000, 2);

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
SCENARIO(lane_overflow_keeps_the_order, 50000, 1);

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
SCENARIO(pool_two_posters_on_two_lanes, 50000, 1);

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

/* All lanes but the common one belong to a thread that ends; the next one frees its lane and goes on where it stopped. That
 * there is a ring already it must learn from the lane: the system's word that the thread has ended orders nothing.       */
struct lane_of_a_thread_that_ended : pool_suite<lane_of_a_thread_that_ended, 2, 3> {
	rl::atomic<uint64_t> ended;
	struct slot one_too_many[LANE_CAPACITY];

	void before()
	{
		ended.store(0, rl::mo_relaxed, $);
		model_ended = &ended;
		pool_suite::before();
		memory.offer(one_too_many, sizeof one_too_many);
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			give(1, 0);
			ended.store(1, rl::mo_relaxed, $);
		} else if (ended.load(rl::mo_relaxed, $) == 1) {
			give(2, 1);                 /* into the common lane, and frees the other */
			RL_ASSERT(take(0, 1) == 1); /* the common one is empty again */
			give(2, 2);                 /* into the lane of the dead */
		} else {
			refused += 2;
		}
	}

	/* What the dead thread counted may not have been seen: the rest must be right. */
	void after()
	{
		int inside = TASKS - refused - tasks.count;

		model_ended = NULL;
		RL_ASSERT(pool_length(&pool) == (uint64_t)inside);
		while (take(0, 1) >= 0)
			inside--;
		RL_ASSERT(inside == 0);
		pool_destroy(&pool);
	}
	enum { TASKS = 3 };
};
SCENARIO(lane_of_a_thread_that_ended, 50000, 4);

/* A thread whose first task lies in the common lane stays there until that is empty, though its own lane is free by now. */
struct pool_poster_keeps_its_order_between_lanes : pool_suite<pool_poster_keeps_its_order_between_lanes, 2, 3> {
	rl::atomic<uint64_t> ended;

	void before()
	{
		ended.store(1, rl::mo_relaxed, $);
		model_ended = &ended;
		pool_suite::before();
		give(1, 0);
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			give(2, 1); /* finds lane 1 taken by a thread that has ended, and frees it */
			give(2, 2);
		} else {
			int first = take(1, 1), second = take(1, 1), third = take(1, 1);

			RL_ASSERT(first != 2 && (second != 2 || first == 1 || third != 1));
		}
	}

	void after()
	{
		model_ended = NULL;
		pool_suite::after();
	}
};
SCENARIO(pool_poster_keeps_its_order_between_lanes, 50000, 2);

/* A thread that finds no lane may ask whether the owners of others live; they do. */
struct pool_lane_of_a_living_thread_is_its_own : pool_suite<pool_lane_of_a_living_thread_is_its_own, 2, 4> {
	void thread(unsigned i)
	{
		if (i == 0) {
			give(1, 0);
			give(1, 1);
		} else {
			give(2, 2);
			take(0, 1);
			give(2, 3);
		}
	}
};
SCENARIO(pool_lane_of_a_living_thread_is_its_own, 50000, 2);

/* Who only looks may count what was just taken, but never more than was given. */
struct lane_length_is_never_absurd : pool_suite<lane_length_is_never_absurd, 3, 3> {
	void thread(unsigned i)
	{
		if (i == 0) {
			give(1, 0);
			give(1, 1, 2);
		} else if (i == 1) {
			take(0, 1);
			take(0, 1);
		} else {
			RL_ASSERT(pool_length(&pool) <= 3);
		}
	}
};
SCENARIO(lane_length_is_never_absurd, 50000, 1);
