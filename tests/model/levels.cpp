/* SPDX-License-Identifier: MIT */
/* The levels of the compute pool, with rounds of three turns. What becomes of a task within a level is the business of pool.cpp. */
#define LANE_CAPACITY 2
#define CHUNK_TASKS 2
#define POOL_LANES 2
#define TUNE_LEVEL_TURNS "HNL"
#include "sched/levels.c"

#include "model.h"

template <typename T, int THREADS, int TASKS> struct levels_suite : rl::test_suite<T, THREADS> {
	struct levels levels;
	model_memory memory;
	struct slot rings[LEVELS][LANE_CAPACITY];
	model_tasks<TASKS> tasks;

	void before()
	{
		for (int i = 0; i < LEVELS; i++)
			memory.offer(rings[i], sizeof rings[i]);
		levels_init(&levels, &memory.memory, 1);
	}

	void give(enum hive_priority level, int task)
	{
		hive_task made = tasks.make(task);

		RL_ASSERT(levels_give_many(&levels, level, 1, &made, 1, true) == 0);
	}

	bool take()
	{
		hive_task task;
		enum hive_priority level;
		bool taken = levels_take(&levels, 0, &task, &level);

		if (taken)
			tasks.run(task);
		return taken;
	}

	/* Everything is quiet: is_empty tells exactly, taking finds all of it. */
	void after()
	{
		int inside = TASKS - tasks.count;

		RL_ASSERT(levels_length(&levels) == (uint64_t)inside);
		while (inside-- > 0) {
			RL_ASSERT(!levels_are_empty(&levels));
			RL_ASSERT(take());
		}
		RL_ASSERT(levels_are_empty(&levels) && !take());
		RL_ASSERT(levels_accepted(&levels) == TASKS);
		levels_destroy(&levels);
	}
};

struct levels_lose_nothing_between_two_takers : levels_suite<levels_lose_nothing_between_two_takers, 3, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			give(HIVE_PRIORITY_HIGH, 0);
			give(HIVE_PRIORITY_LOW, 1);
		} else {
			take();
		}
	}
};
SCENARIO(levels_lose_nothing_between_two_takers, 10000, 1);

/* Turns belong to all takers together: of the next two tasks one is low, though there are enough of the high ones. */
struct levels_share_their_turns : levels_suite<levels_share_their_turns, 2, 3> {
	void before()
	{
		levels_suite::before();
		give(HIVE_PRIORITY_HIGH, 0);
		give(HIVE_PRIORITY_HIGH, 1);
		give(HIVE_PRIORITY_LOW, 2);
	}

	void thread(unsigned)
	{
		RL_ASSERT(take());
	}

	void after()
	{
		RL_ASSERT(tasks.ran[2] && tasks.ran[0] && !tasks.ran[1]);
		levels_suite::after();
	}
};
SCENARIO(levels_share_their_turns, 10000, 2);

/* A turn that finds nothing is not the end of the search: another taker was faster, or the hint is an old one. */
struct levels_go_on_when_one_is_empty : levels_suite<levels_go_on_when_one_is_empty, 2, 3> {
	void before()
	{
		levels_suite::before();
		give(HIVE_PRIORITY_HIGH, 0);
		RL_ASSERT(take()); /* leaves the hint behind */
		give(HIVE_PRIORITY_LOW, 1);
		give(HIVE_PRIORITY_LOW, 2);
	}

	void thread(unsigned)
	{
		RL_ASSERT(take());
	}
};
SCENARIO(levels_go_on_when_one_is_empty, 10000, 2);
