/* SPDX-License-Identifier: MIT */
/* The state of a hive against the pool that it closes and the answers that it waits for. */
#define LANE_CAPACITY 2
#define LANE_START UINT64_MAX
#define CHUNK_TASKS 2
#define POOL_LANES 2
#include "queue/pool.h"
#include "fiber/cell.h"
#include "sched/state.h"

#include "model.h"

template <typename T, int THREADS, int TASKS> struct drain_suite : rl::test_suite<T, THREADS> {
	ATOMIC(uint32_t) state;
	ATOMIC(uint32_t) replies;
	struct pool pool;
	model_memory memory;
	struct slot rings[POOL_LANES][LANE_CAPACITY];
	struct parker parker; /* of the worker that drains */
	model_tasks<TASKS> tasks;

	void before()
	{
		state.store(HIVE_RUNNING, rl::mo_relaxed, $);
		replies.store(0, rl::mo_relaxed, $);
		for (struct slot *ring : { rings[0], rings[1] })
			memory.offer(ring, sizeof rings[0]);
		pool_init(&pool, &memory.memory, 1);
		parker_init(&parker);
	}

	/* As stop_locked() does it. */
	void stop()
	{
		pool_close(&pool);
		state_write(&state, HIVE_DRAINING);
		parker_unpark(&parker);
	}

	void run_one()
	{
		hive_task task;

		if (pool_take_many(&pool, 0, &task, 1) > 0)
			tasks.run(task);
	}

	void after()
	{
		pool_destroy(&pool);
	}
};

/* Accepted or refused: who sees the hive drain and the pool empty may leave. */
struct drain_leaves_nothing_behind : drain_suite<drain_leaves_nothing_behind, 3, 2> {
	int accepted;

	void before()
	{
		drain_suite::before();
		accepted = 0;
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			for (int k = 0; k < 2; k++)
				accepted += pool_give(&pool, 1, tasks.make(k), true) == 0;
		} else if (i == 1) {
			stop();
		} else if (state_read(&state) >= HIVE_DRAINING) {
			while (!pool_is_empty(&pool))
				run_one();
			tasks.count += 100; /* it has left */
		}
	}

	void after()
	{
		RL_ASSERT(tasks.count < 100 || tasks.count == 100 + accepted);
		drain_suite::after();
	}
};
SCENARIO(drain_leaves_nothing_behind, 50000, 3);

/* The same for a batch that does not fit the ring and goes to the list. */
struct drain_closes_the_list_too : drain_suite<drain_closes_the_list_too, 3, 3> {
	bool accepted, left;

	void before()
	{
		drain_suite::before();
		accepted = left = false;
	}

	void thread(unsigned i)
	{
		hive_task batch[3];

		if (i == 0) {
			for (int k = 0; k < 3; k++)
				batch[k] = tasks.make(k);
			accepted = pool_give_many(&pool, 1, batch, 3, true) == 0;
		} else if (i == 1) {
			stop();
		} else if (state_read(&state) >= HIVE_DRAINING) {
			while (!pool_is_empty(&pool))
				run_one();
			left = true;
		}
	}

	void after()
	{
		RL_ASSERT(!left || tasks.count == (accepted ? 3 : 0));
		drain_suite::after();
	}
};
SCENARIO(drain_closes_the_list_too, 50000, 2);

/* The answer to a compute task is counted before the task: who sees no answer under way finds no such task any more. */
struct drain_counts_answers_before_their_tasks : drain_suite<drain_counts_answers_before_their_tasks, 3, 1> {
	bool accepted, left_early;

	void before()
	{
		drain_suite::before();
		accepted = left_early = false;
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			holds_begin(&replies, 1u);
			accepted = pool_give(&pool, 1, tasks.make(0), true) == 0;
		} else if (i == 1) {
			stop();
		} else if (state_read(&state) >= HIVE_DRAINING) {
			left_early = holds_left(&replies) == 0;
		}
	}

	void after()
	{
		RL_ASSERT(!(accepted && left_early));
		drain_suite::after();
	}
};
SCENARIO(drain_counts_answers_before_their_tasks, 50000, 3);

/* Who begins something elsewhere than in a pool is refused, or holds up the end. */
struct drain_lets_nobody_begin_unseen : drain_suite<drain_lets_nobody_begin_unseen, 3, 1> {
	bool began, left;

	void before()
	{
		drain_suite::before();
		began = left = false;
	}

	void thread(unsigned i)
	{
		if (i == 0)
			began = holds_begin_open(&replies, &state, 1u);
		else if (i == 1)
			stop();
		else if (state_read(&state) >= HIVE_DRAINING)
			left = holds_left(&replies) == 0;
	}

	void after()
	{
		RL_ASSERT(!(began && left));
		drain_suite::after();
	}
};
SCENARIO(drain_lets_nobody_begin_unseen, 50000, 4);

/* A drain turns into an end at once while a fiber parks: it sees that itself, or is found by the worker that ends all waits. */
struct drain_that_hurries_finds_who_parks : drain_suite<drain_that_hurries_finds_who_parks, 3, 1> {
	struct cell cell;
	bool ended;

	void before()
	{
		drain_suite::before();
		state.store(HIVE_DRAINING, rl::mo_relaxed, $);
		cell.word.store(0, rl::mo_relaxed, $);
		ended = false;
	}

	void thread(unsigned i)
	{
		uint32_t draining = HIVE_DRAINING;

		if (i == 0) {
			cell_begin(&cell, false);
			if (!cell_park(&cell) ||
			    (state_ends_waits(&state) && cell_claim(&cell, 1, CELL_CANCELLED) == CELL_OURS_PARKED))
				ended = true;
		} else if (i == 1) {
			state_move(&state, &draining, HIVE_LEAVING);
		} else {
			while (state_read(&state) < HIVE_LEAVING)
				rl::yield(1, $);
			if (cell_cancel(&cell) == CELL_OURS_PARKED)
				ended = true;
		}
	}

	void after()
	{
		RL_ASSERT(ended);
		drain_suite::after();
	}
};
SCENARIO(drain_that_hurries_finds_who_parks, 50000, 4);

/* A worker sleeps until no answer is under way. The last answer comes to another worker while the hive is being stopped. */
struct drain_last_answer_wakes_who_waits : drain_suite<drain_last_answer_wakes_who_waits, 3, 1> {
	void before()
	{
		drain_suite::before();
		holds_begin(&replies, 1u);
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			stop();
		} else if (i == 1) {
			if (holds_end(&replies, &state, 1u))
				parker_unpark(&parker);
		} else {
			while (state_read(&state) < HIVE_DRAINING || holds_left(&replies) > 0)
				parker_park(&parker, HIVE_FOREVER); /* nobody wakes it: a deadlock */
		}
	}
};
SCENARIO(drain_last_answer_wakes_who_waits, 50000, 5);

/* Who sees the start sees what was counted for it. */
struct drain_start_shows_what_came_before : drain_suite<drain_start_shows_what_came_before, 2, 1> {
	rl::var<int> alive;

	void before()
	{
		drain_suite::before();
		state.store(HIVE_STARTING, rl::mo_relaxed, $);
		alive($) = 0;
	}

	void thread(unsigned i)
	{
		uint32_t starting = HIVE_STARTING;

		if (i == 0) {
			alive($) = 1;
			RL_ASSERT(state_move(&state, &starting, HIVE_RUNNING));
			RL_ASSERT(!state_move(&state, &starting, HIVE_RUNNING) && starting == HIVE_RUNNING);
		} else if (state_read(&state) != HIVE_STARTING) {
			RL_ASSERT(alive($) == 1);
		}
	}
};
SCENARIO(drain_start_shows_what_came_before, 50000, 6);
