/* SPDX-License-Identifier: MIT */
/* Sleeping and waking: idle.h together with the queues that it guards and the parkers on which workers sleep. A lost
 * wake-up shows as a deadlock, or as a task that lies in the pool while a worker sleeps that nobody will wake.      */
#define LANE_CAPACITY 2
#define LANE_START UINT64_MAX /* cut to 63 bits */
#define CHUNK_TASKS 2
#define POOL_LANES 2
#define IDLE_WORKERS 3
#include "queue/deque.h"
#include "queue/idle.h"
#include "queue/inbox.h"
#include "queue/pool.h"
#include "sched/parking.h"

#include "model.h"

template <typename T, int THREADS, int TASKS> struct idle_suite : rl::test_suite<T, THREADS> {
	struct idle idle;
	struct pool pool;
	struct parker parkers[IDLE_WORKERS];
	ATOMIC(uint32_t) parkings[IDLE_WORKERS];
	model_memory memory;
	struct slot rings[POOL_LANES][LANE_CAPACITY];
	model_tasks<TASKS> tasks;
	rl::var<int> cores[IDLE_WORKERS]; /* what a worker opens before it sleeps, and a claimer uses to wake it */
	int claims[IDLE_WORKERS];         /* by somebody else */
	bool opened[IDLE_WORKERS];
	int believed[IDLE_WORKERS]; /* how often the worker was told that it had been claimed */

	void before()
	{
		for (struct slot *ring : { rings[0], rings[1] })
			memory.offer(ring, sizeof rings[0]);
		pool_init(&pool, &memory.memory, 1);
		idle_init(&idle);
		for (int i = 0; i < IDLE_WORKERS; i++) {
			parker_init(&parkers[i]);
			parking_end(&parkings[i]);
			cores[i]($) = 0;
			opened[i] = false;
			claims[i] = believed[i] = 0;
		}
	}

	/* Not by a verb: what the scenario itself looks at is no site for mutants. */
	uint64_t count_now()
	{
		return idle.count.load(rl::mo_seq_cst, $);
	}

	void wake(uint32_t worker)
	{
		claims[worker]++;
		RL_ASSERT(cores[worker]($) >= 0);
		if (parking_notify(&parkings[worker]))
			parker_unpark(&parkers[worker]);
	}

	void wake_one()
	{
		uint32_t worker = idle_claim_one(&idle, IDLE_WORKERS, 0);

		if (worker != IDLE_NOBODY)
			wake(worker);
	}

	void post(int i)
	{
		pool_give(&pool, 1 + rl::thread_index(), tasks.make(i), true);
		if (idle_needs_wake(&idle))
			wake_one();
	}

	bool retract(uint32_t worker)
	{
		bool claimed;

		parking_end(&parkings[worker]);
		claimed = idle_retract(&idle, worker);
		believed[worker] += claimed;
		return claimed;
	}

	bool take(hive_task *ret_task)
	{
		return pool_take_many(&pool, 0, ret_task, 1) == 1;
	}

	void stop_searching()
	{
		if (idle_search_end(&idle) && !pool_is_empty(&pool))
			wake_one();
	}

	uint32_t announce(uint32_t worker, bool searching, uint32_t cpu)
	{
		parking_begin(&parkings[worker]);
		return idle_announce(&idle, worker, searching, cpu);
	}

	/* After its last look. */
	void block(uint32_t worker)
	{
		if (parking_commit(&parkings[worker]))
			parker_park(&parkers[worker], HIVE_FOREVER);
	}

	/* Once, before it sleeps for the first time. */
	void open(uint32_t worker)
	{
		if (!opened[worker])
			cores[worker]($) = 1;
		opened[worker] = true;
	}

	/* A worker's life until it has run `quota` tasks. The task that it then runs may take for ever. */
	void work(uint32_t worker, int quota, bool searches = true)
	{
		bool searching = false, found = false;
		hive_task task;

		open(worker);
		while (quota > 0) {
			if (take(&task)) {
				if (searching)
					stop_searching();
				else if (found && !pool_is_empty(&pool) && idle_needs_wake(&idle))
					wake_one(); /* what its last look found may be more than it takes */
				searching = found = false;
				tasks.run(task);
				quota--;
			} else if (searches && !searching && idle_search_begin(&idle, IDLE_WORKERS)) {
				searching = true;
			} else {
				found = announce(worker, searching, 0) == 0 && !pool_is_empty(&pool);
				if (!found)
					block(worker);
				searching = retract(worker);
			}
		}
		if (searching)
			stop_searching();
	}

	void after()
	{
		uint64_t count = count_now();

		RL_ASSERT(idle_searchers(count) == 0);
		for (int i = 0; i < IDLE_WORKERS; i++)
			RL_ASSERT(claims[i] >= believed[i]);
		RL_ASSERT(tasks.count == TASKS);
		pool_destroy(&pool);
	}
};

/* The race for which it all exists: the last look against the put. */
struct idle_sleeper_against_one_post : idle_suite<idle_sleeper_against_one_post, 2, 1> {
	void thread(unsigned i)
	{
		if (i == 0)
			work(0, 1, false);
		else
			post(0);
	}

	void after()
	{
		RL_ASSERT(claims[0] == believed[0] && idle_sleepers(count_now()) == 0);
		/* it may have ended without knowing that its search had been counted */
		if (idle_searchers(count_now()) > 0)
			idle_search_end(&idle);
		idle_suite::after();
	}
};
SCENARIO(idle_sleeper_against_one_post, 50000, 4);

struct idle_sleeper_searches_before_it_sleeps : idle_suite<idle_sleeper_searches_before_it_sleeps, 2, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			work(0, 2);
		} else {
			post(0);
			post(1);
		}
	}
};
SCENARIO(idle_sleeper_searches_before_it_sleeps, 50000, 3);

struct idle_two_posters_and_one_sleeper : idle_suite<idle_two_posters_and_one_sleeper, 3, 2> {
	void thread(unsigned i)
	{
		if (i == 0)
			work(0, 2);
		else
			post((int)i - 1);
	}
};
SCENARIO(idle_two_posters_and_one_sleeper, 50000, 1);

/* Each worker gets one task and is busy for ever: both must have been awake. */
struct idle_two_sleepers_and_two_posts : idle_suite<idle_two_sleepers_and_two_posts, 3, 2> {
	void thread(unsigned i)
	{
		if (i < 2) {
			work(i, 1);
		} else {
			post(0);
			post(1);
		}
	}
};
SCENARIO(idle_two_sleepers_and_two_posts, 50000, 1);

/* The poster saw somebody search and woke nobody: the searcher, busy for ever with another task, must have seen to
 * it.                                                                                                            */
struct idle_last_searcher_looks_again : idle_suite<idle_last_searcher_looks_again, 3, 2> {
	void before()
	{
		idle_suite::before();
		RL_ASSERT(idle_search_begin(&idle, IDLE_WORKERS));
		pool_give(&pool, 1, tasks.make(0), true);
	}

	void thread(unsigned i)
	{
		hive_task task;

		if (i == 0) {
			work(0, 1, false);
		} else if (i == 1) {
			post(1);
		} else if (take(&task)) {
			stop_searching();
			tasks.run(task);
		} else {
			stop_searching();
		}
	}

	void after()
	{
		hive_task task;

		while (take(&task)) { /* one too many for the workers, if both were taken by nobody: not allowed */
			RL_ASSERT(tasks.count >= 1);
			tasks.run(task);
		}
		idle_suite::after();
	}
};
SCENARIO(idle_last_searcher_looks_again, 50000, 2);

/* A worker that is awake, and counted nowhere, finds the lane empty and clears its bit while two tasks come in; it takes
 * one and is busy for ever. The sleeper that looked in that moment must not have been told that the pool is empty.   */
struct idle_last_look_while_a_bit_is_cleared : idle_suite<idle_last_look_while_a_bit_is_cleared, 3, 3> {
	bool took;

	void before()
	{
		hive_task task;

		idle_suite::before();
		pool_give(&pool, 1, tasks.make(0), true);
		took = take(&task); /* leaves the bit behind */
		tasks.run(task);
		took = false;
	}

	void thread(unsigned i)
	{
		hive_task two[2];

		if (i == 0) {
			open(0);
			announce(0, false, 0); /* it has just looked */
			if (pool_is_empty(&pool))
				block(0);
			if (retract(0))
				idle_search_end(&idle);
			work(0, 1, false);
		} else if (i == 1) {
			two[0] = tasks.make(1);
			two[1] = tasks.make(2);
			pool_give_many(&pool, 1, two, 2, true);
			if (idle_needs_wake(&idle))
				wake_one();
		} else if (take(&two[0])) {
			tasks.run(two[0]);
			took = true;
		}
	}

	void after()
	{
		hive_task task;

		RL_ASSERT(tasks.count == (took ? 3 : 2));
		if (take(&task))
			tasks.run(task);
		idle_suite::after();
	}
};
SCENARIO(idle_last_look_while_a_bit_is_cleared, 50000, 2);

/* Ring and list hold something; a task goes behind the list without much ado while a worker, counted nowhere, takes all
 * that was there before and is busy for ever. The sleeper must get the one that is left.                            */
struct idle_last_look_at_a_list_that_had_something : idle_suite<idle_last_look_at_a_list_that_had_something, 3, 4> {
	void before()
	{
		idle_suite::before();
		for (int i = 0; i < 3; i++)
			pool_give(&pool, 3, tasks.make(i), true);
	}

	void thread(unsigned i)
	{
		hive_task list[2];

		if (i == 0) {
			work(0, 1, false);
		} else if (i == 1) {
			pool_give(&pool, 3, tasks.make(3), true);
			if (idle_needs_wake(&idle))
				wake_one();
		} else {
			for (size_t max = 2; max > 0; max--)
				for (size_t n = pool_take_many(&pool, 0, list, max), k = 0; k < n; k++)
					tasks.run(list[k]);
		}
	}

	void after()
	{
		hive_task task;

		while (take(&task))
			tasks.run(task);
		idle_suite::after();
	}
};
SCENARIO(idle_last_look_at_a_list_that_had_something, 50000, 2);

/* Worker 0 sleeps and is woken by a timer of its own while it is being claimed; worker 1 sleeps on. When everybody is
 * done, worker 0 is busy for ever with the first task; the second must have been taken or worker 1 woken.           */
struct idle_wakes_by_itself_while_claimed : idle_suite<idle_wakes_by_itself_while_claimed, 3, 2> {
	void before()
	{
		idle_suite::before();
		announce(0, false, 0);
		announce(1, false, 1);
	}

	void thread(unsigned i)
	{
		hive_task task;

		if (i > 0) {
			post((int)i - 1);
			return;
		}
		bool searching = retract(0);

		if (take(&task)) {
			if (searching)
				stop_searching();
			tasks.run(task);
		} else { /* nothing for a timer's callback to find: it sleeps again and is no part of the story */
			announce(0, searching, 0);
			claims[2] = 1;
		}
	}

	void after()
	{
		hive_task task;

		if (claims[2] == 0)
			RL_ASSERT(pool_is_empty(&pool) || claims[1] > 0);
		while (take(&task))
			tasks.run(task);
		RL_ASSERT(tasks.count == 2);
		pool_destroy(&pool);
	}
};
SCENARIO(idle_wakes_by_itself_while_claimed, 50000, 1);

/* A claim of one worker by name against a claim of anybody, against the worker itself: one of them wins. */
struct idle_one_claim_wins : idle_suite<idle_one_claim_wins, 3, 1> {
	void before()
	{
		idle_suite::before();
		announce(0, false, 0);
	}

	void thread(unsigned i)
	{
		if (i == 0)
			retract(0);
		else if (i == 1 && idle_claim(&idle, 0))
			claims[0]++;
		else if (i == 2 && idle_claim_one(&idle, IDLE_WORKERS, 0) == 0)
			claims[0]++;
	}

	void after()
	{
		uint64_t count = count_now();

		RL_ASSERT(claims[0] == believed[0] && claims[0] <= 1);
		RL_ASSERT(idle_sleepers(count) == 0 && idle_searchers(count) == (uint32_t)claims[0]);
		RL_ASSERT(idle.asleep[0].load(rl::mo_seq_cst, $) == 0);
		pool_destroy(&pool);
	}
};
SCENARIO(idle_one_claim_wins, 50000, 5);

/* Three workers: at most two may search (half, rounded up). */
struct idle_search_is_bounded : idle_suite<idle_search_is_bounded, 3, 1> {
	int searching;

	void before()
	{
		idle_suite::before();
		searching = 0;
	}

	void thread(unsigned)
	{
		for (int round = 0; round < 2; round++)
			if (idle_search_begin(&idle, 3)) {
				RL_ASSERT(++searching <= 2);
				count_now(); /* others come in here */
				searching--;
				idle_search_end(&idle);
			}
	}

	void after()
	{
		RL_ASSERT(count_now() == 0);
		pool_destroy(&pool);
	}
};
SCENARIO(idle_search_is_bounded, 50000, 3);

/* A letter to a worker: put it into the inbox, then wake this very worker. */
struct idle_sleeper_against_a_letter : idle_suite<idle_sleeper_against_a_letter, 2, 1> {
	struct inbox inbox;
	struct letter letter;

	void before()
	{
		idle_suite::before();
		inbox_init(&inbox);
	}

	void thread(unsigned i)
	{
		if (i == 1) {
			RL_ASSERT(inbox_push(&inbox, &letter));
			if (idle_claim(&idle, 0))
				wake(0);
			return;
		}
		while (inbox_take(&inbox) == NULL) {
			announce(0, false, 0);
			if (inbox_is_empty(&inbox))
				block(0);
			if (retract(0))
				idle_search_end(&idle);
		}
	}

	void after()
	{
		RL_ASSERT(claims[0] == believed[0]);
		pool_destroy(&pool);
	}
};
SCENARIO(idle_sleeper_against_a_letter, 50000, 6);

/* A worker pushes more than it can run: a sleeping thief must come and steal. */
struct idle_thief_against_a_push : idle_suite<idle_thief_against_a_push, 2, 1> {
	struct deque deque;
	struct slot slots[2];

	void before()
	{
		idle_suite::before();
		deque_init(&deque, slots, 2, NEAR_WRAP);
	}

	void thread(unsigned i)
	{
		hive_task task;

		if (i == 1) {
			RL_ASSERT(deque_push(&deque, tasks.make(0)));
			if (idle_needs_wake(&idle))
				wake_one();
			return;
		}
		while (!deque_steal(&deque, &task)) {
			announce(0, false, 0);
			if (deque_size(&deque) == 0)
				block(0);
			if (retract(0))
				idle_search_end(&idle);
		}
		tasks.run(task);
	}
};
SCENARIO(idle_thief_against_a_push, 50000, 5);

/* A worker opens its core, sleeps, and closes it when every claimer has delivered the wake, and not before; twice. A claimer that
 * saw the first sleep may have claimed the second: it must see the core of that one.                                           */
struct idle_core_is_closed_after_the_last_wake : idle_suite<idle_core_is_closed_after_the_last_wake, 3, 1> {
	rl::atomic<uint32_t> woken;

	void before()
	{
		idle_suite::before();
		woken.store(0, rl::mo_relaxed, $);
	}

	void thread(unsigned i)
	{
		uint32_t claimed = 0;

		for (int round = 0; i == 0 && round < 2; round++) {
			rl::linear_backoff backoff;

			cores[0]($) = round;
			announce(0, false, 0);
			claimed += retract(0);
			while (!idle_wakes_delivered(&woken, claimed))
				backoff.yield($);
			cores[0]($) = -1;
		}
		if (i > 0 && idle_claim(&idle, 0)) {
			wake(0);
			idle_wake_delivered(&woken);
		}
	}

	void after()
	{
		RL_ASSERT(claims[0] == believed[0] && idle_sleepers(count_now()) == 0);
		pool_destroy(&pool);
	}
};
SCENARIO(idle_core_is_closed_after_the_last_wake, 50000, 3);
