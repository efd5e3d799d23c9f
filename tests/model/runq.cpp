/* SPDX-License-Identifier: MIT */
/* The ring that is robbed by halves, and the place for the newest task: one owner against thieves, each with a ring of its own.
 * Thread 0 is the owner. What the threads leave must still be there, once.                                                    */
#define IDLE_WORKERS 1
#include "queue/idle.h"
#include "queue/newest.h"
#include "queue/runq.h"

#include "model.h"

/* Indices begin here: two steps on they wrap. */
#define RUNQ_NEAR_WRAP (UINT32_MAX - 1)

template <typename T, int THREADS, int TASKS, int CAPACITY> struct runq_suite : rl::test_suite<T, THREADS> {
	struct runq rings[THREADS];
	struct slot slots[THREADS][CAPACITY];
	struct newest newest;
	model_tasks<TASKS> tasks;
	int refused;

	void before()
	{
		refused = 0;
		newest_init(&newest, NEAR_WRAP);
		newest.slot.fn.store(NULL, rl::mo_relaxed, $); /* the checker knows no memory that nobody has written */
		newest.slot.arg.store(NULL, rl::mo_relaxed, $);
		for (int i = 0; i < THREADS; i++)
			runq_init(&rings[i], slots[i], CAPACITY, RUNQ_NEAR_WRAP);
	}

	void push(int i)
	{
		if (!runq_push(&rings[0], tasks.make(i)))
			refused++;
	}

	int pop(int ring = 0)
	{
		hive_task task;

		return runq_pop(&rings[ring], &task) ? tasks.run(task) : -1;
	}

	/* The task that is to run now, or -1; the others are in the thief's ring. */
	int rob(int thief, int victim = 0)
	{
		hive_task task;

		return runq_steal(&rings[victim], &rings[thief], &task) > 0 ? tasks.run(task) : -1;
	}

	int take_newest()
	{
		hive_task task;

		return newest_take(&newest, &task) ? tasks.run(task) : -1;
	}

	void after()
	{
		take_newest();
		for (int i = 0; i < THREADS; i++) {
			while (pop(i) >= 0) {}
			RL_ASSERT(runq_size(&rings[i]) == 0 && runq_room(&rings[i]) == CAPACITY);
		}
		RL_ASSERT(tasks.count + refused == TASKS);
	}
};

struct runq_single_task_goes_to_owner_or_thief : runq_suite<runq_single_task_goes_to_owner_or_thief, 2, 1, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			push(0);
			pop();
		} else {
			rob(1);
		}
	}
};
SCENARIO(runq_single_task_goes_to_owner_or_thief, 20000, 6);

/* The owner pops on while a thief copies, and never what that has claimed; both sides see the oldest first. */
struct runq_owner_pops_during_a_theft : runq_suite<runq_owner_pops_during_a_theft, 2, 4, 4> {
	void thread(unsigned i)
	{
		if (i == 0) {
			int last = -1;

			for (int k = 0; k < 4; k++)
				push(k);
			for (int k = 0; k < 3; k++) {
				int number = pop();

				RL_ASSERT(number < 0 || number > last);
				last = number < 0 ? last : number;
			}
		} else {
			rob(1);
			pop(1);
		}
	}
};
SCENARIO(runq_owner_pops_during_a_theft, 20000, 3);

/* With two slots each push behind a pop overwrites one that a slow thief may be copying. */
struct runq_owner_pushes_while_a_thief_copies : runq_suite<runq_owner_pushes_while_a_thief_copies, 2, 5, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			push(0);
			push(1);
			push(2);
			pop();
			push(3);
			push(4);
			pop();
		} else {
			rob(1);
			rob(1);
		}
	}
};
SCENARIO(runq_owner_pushes_while_a_thief_copies, 100000, 3);

/* One thief at a time: the second finds the first one's mark, or the rest. */
struct runq_two_thieves_and_the_owner_share : runq_suite<runq_two_thieves_and_the_owner_share, 3, 3, 4> {
	void thread(unsigned i)
	{
		if (i == 0) {
			push(0);
			push(1);
			push(2);
			pop();
			pop();
		} else {
			rob((int)i);
		}
	}
};
SCENARIO(runq_two_thieves_and_the_owner_share, 20000, 2);

/* The second thief sees a head that the first one left, and must see the tail under which that claimed. */
struct runq_second_thief_comes_after_the_first : runq_suite<runq_second_thief_comes_after_the_first, 3, 4, 4> {
	void thread(unsigned i)
	{
		if (i == 0) {
			for (int k = 0; k < 4; k++)
				push(k);
		} else {
			rob((int)i);
			rob((int)i);
		}
	}
};
SCENARIO(runq_second_thief_comes_after_the_first, 100000, 2);

/* What a thief has brought home is robbed from it in turn: it became visible with its slots. */
struct runq_loot_is_stolen_from_the_thief : runq_suite<runq_loot_is_stolen_from_the_thief, 3, 4, 4> {
	void thread(unsigned i)
	{
		if (i == 0) {
			for (int k = 0; k < 4; k++)
				push(k);
		} else if (i == 1) {
			rob(1);
		} else {
			rob(2, 1);
		}
	}
};
SCENARIO(runq_loot_is_stolen_from_the_thief, 100000, 3);

/* A full ring: the owner takes the older half away by one claim, or none while a thief is at work; what it has taken fits
 * again, whatever thieves do meanwhile.                                                                                  */
struct runq_half_of_a_full_ring_goes_away : runq_suite<runq_half_of_a_full_ring_goes_away, 2, 5, 4> {
	void thread(unsigned i)
	{
		hive_task half[2];
		uint32_t n;

		if (i > 0) {
			rob(1);
			return;
		}
		for (int k = 0; k < 4; k++)
			push(k);
		n = runq_take_oldest(&rings[0], half, 2);
		RL_ASSERT(runq_room(&rings[0]) >= n);
		if (n == 2)
			runq_push_many(&rings[0], half, 2);
		push(4);
	}
};
SCENARIO(runq_half_of_a_full_ring_goes_away, 20000, 3);

/* The owner takes all there is: a thief that sees this head must see a tail that is not behind it. */
struct runq_all_of_the_ring_goes_away : runq_suite<runq_all_of_the_ring_goes_away, 2, 2, 2> {
	void thread(unsigned i)
	{
		hive_task all[2];

		if (i > 0) {
			rob(1);
			return;
		}
		push(0);
		push(1);
		for (uint32_t n = runq_take_oldest(&rings[0], all, 2), k = 0; k < n; k++)
			tasks.run(all[k]);
	}
};
SCENARIO(runq_all_of_the_ring_goes_away, 20000, 5);

/* The loot goes into an array: for a thief with another kind of queue. */
struct runq_loot_into_an_array : runq_suite<runq_loot_into_an_array, 2, 4, 2> {
	void thread(unsigned i)
	{
		hive_task loot[2];

		if (i == 0) {
			push(0);
			push(1);
			pop();
			push(2);
			push(3);
			return;
		}
		for (int round = 0; round < 2; round++)
			for (uint32_t n = runq_steal_some(&rings[0], loot, 2), k = 0; k < n; k++)
				tasks.run(loot[k]);
	}
};
SCENARIO(runq_loot_into_an_array, 20000, 4);

/* A thief that is slow between its look and its claim, while the indices go round: were they narrow, its head would fit
 * again, to another tail.                                                                                              */
struct runq_head_that_went_and_came_back : runq_suite<runq_head_that_went_and_came_back, 2, 5, 2> {
	void thread(unsigned i)
	{
		if (i > 0) {
			rob(1);
			return;
		}
		push(0);
		push(1);
		pop();
		pop();
		push(2);
		pop();
		push(3);
		pop();
		push(4);
		pop();
	}
};
SCENARIO(runq_head_that_went_and_came_back, 20000, 3);

/* ---- the newest task ---- */

struct newest_goes_to_owner_or_thief : runq_suite<newest_goes_to_owner_or_thief, 3, 1, 1> {
	void thread(unsigned i)
	{
		if (i == 0)
			newest_put(&newest, tasks.make(0));
		take_newest();
	}
};
SCENARIO(newest_goes_to_owner_or_thief, 20000, 4);

/* The owner takes and puts while a slow thief reads. */
struct newest_is_replaced_under_a_slow_thief : runq_suite<newest_is_replaced_under_a_slow_thief, 3, 3, 1> {
	void thread(unsigned i)
	{
		if (i > 0) {
			take_newest();
			return;
		}
		for (int k = 0; k < 3; k++) {
			take_newest();
			newest_put(&newest, tasks.make(k));
		}
	}
};
SCENARIO(newest_is_replaced_under_a_slow_thief, 20000, 3);

/* As the scheduler does it: the one before goes into the ring. A thief takes from the ring, and if that is empty this one. */
struct newest_moves_into_the_ring : runq_suite<newest_moves_into_the_ring, 2, 3, 2> {
	void thread(unsigned i)
	{
		if (i > 0) {
			for (int round = 0; round < 2; round++)
				if (rob(1) < 0 && runq_size(&rings[0]) == 0)
					take_newest();
			return;
		}
		for (int k = 0; k < 3; k++) {
			hive_task before;

			if (newest_take(&newest, &before))
				RL_ASSERT(runq_push(&rings[0], before));
			newest_put(&newest, tasks.make(k));
		}
		if (take_newest() < 0)
			pop();
	}
};
SCENARIO(newest_moves_into_the_ring, 20000, 3);

/* ---- a sleeping thief must come ---- */

template <typename T, int THREADS, int TASKS> struct runq_sleeper : runq_suite<T, THREADS, TASKS, 4> {
	struct idle idle;
	struct parker parker;

	void before()
	{
		runq_suite<T, THREADS, TASKS, 4>::before();
		idle_init(&idle);
		parker_init(&parker);
	}

	void look_for_a_sleeper()
	{
		if (idle_needs_wake(&idle) && idle_claim_one(&idle, IDLE_WORKERS, 0) != IDLE_NOBODY)
			parker_unpark(&parker);
	}

	/* Between two attempts to find something: announce, look again, block, retract. */
	void sleep_on(struct runq *ring)
	{
		idle_announce(&idle, 0, false, 0);
		if (runq_size(ring) + newest_size(&this->newest) == 0)
			parker_park(&parker, HIVE_FOREVER);
		if (idle_retract(&idle, 0))
			idle_search_end(&idle);
	}
};

struct runq_sleeper_against_a_push : runq_sleeper<runq_sleeper_against_a_push, 2, 1> {
	void thread(unsigned i)
	{
		if (i == 0) {
			push(0);
			look_for_a_sleeper();
			return;
		}
		while (rob(1) < 0)
			sleep_on(&rings[0]);
	}
};
SCENARIO(runq_sleeper_against_a_push, 20000, 5);

struct newest_sleeper_against_a_put : runq_sleeper<newest_sleeper_against_a_put, 2, 1> {
	void thread(unsigned i)
	{
		if (i == 0) {
			newest_put(&newest, tasks.make(0));
			look_for_a_sleeper();
			return;
		}
		while (take_newest() < 0)
			sleep_on(&rings[0]);
	}
};
SCENARIO(newest_sleeper_against_a_put, 20000, 5);

/* A thief brings home more than it can run at once. The victim's tasks are there from the beginning. */
struct runq_sleeper_against_a_thief : runq_sleeper<runq_sleeper_against_a_thief, 2, 3> {
	void before()
	{
		runq_sleeper::before();
		for (int k = 0; k < 3; k++)
			push(k);
	}

	void thread(unsigned i)
	{
		hive_task task;

		if (i == 0) { /* the thief: ring 1 is its own */
			RL_ASSERT(rob(1) == 1);
			look_for_a_sleeper();
			return;
		}
		while (runq_steal_some(&rings[1], &task, 1) == 0)
			sleep_on(&rings[1]);
		tasks.run(task);
	}
};
SCENARIO(runq_sleeper_against_a_thief, 20000, 5);
