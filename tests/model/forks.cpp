/* SPDX-License-Identifier: MIT */
/* The stack of forks: one owner against thieves, some of whom open what is private. Thread 0 is the owner. */
#include "queue/forks.h"

#include "model.h"

/* FILLED: how many are there when the threads begin. */
template <typename T, int THREADS, int TASKS, int FILLED = 0, bool ALL_PUBLIC = false, int CAPACITY = 4>
struct forks_suite : rl::test_suite<T, THREADS> {
	struct forks forks;
	struct fork_slot slots[CAPACITY];
	model_tasks<TASKS> tasks;
	int refused;

	void before()
	{
		refused = 0;
		forks_init(&forks, slots, CAPACITY, ALL_PUBLIC);
		for (int i = 0; i < FILLED; i++)
			push(i);
	}

	void push(int i)
	{
		struct fork fork = { tasks.make(i), &tasks };

		if (!forks_push(&forks, fork) && forks_push_slowly(&forks, fork) == FORKS_FULL)
			refused++;
	}

	int run(const struct fork &fork)
	{
		RL_ASSERT(fork.group == &tasks);
		return tasks.run(fork.task);
	}

	int pop()
	{
		struct fork fork;

		return forks_pop(&forks, &fork) ? run(fork) : -1;
	}

	int steal()
	{
		struct fork fork;

		return forks_steal(&forks, &fork) ? run(fork) : -1;
	}

	/* Whatever the threads left is still there, once, and the stack is as it was. */
	void after()
	{
		RL_ASSERT(forks_length(&forks) == TASKS - refused - tasks.count);
		while (pop() >= 0) {}
		RL_ASSERT(tasks.count + refused == TASKS);
		RL_ASSERT(forks_length(&forks) == 0 && forks_hidden(&forks) == 0);
		RL_ASSERT(pop() < 0 && steal() < 0);
	}
};

struct forks_last_one_goes_to_owner_or_thief : forks_suite<forks_last_one_goes_to_owner_or_thief, 2, 1> {
	void thread(unsigned i)
	{
		if (i == 0) {
			push(0);
			pop();
		} else {
			steal();
		}
	}
};
SCENARIO(forks_last_one_goes_to_owner_or_thief, 50000, 5);

/* The second is private until somebody is hungry. */
struct forks_thieves_and_the_owner_share : forks_suite<forks_thieves_and_the_owner_share, 3, 3, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			push(2);
			pop();
			pop();
		} else {
			steal();
			steal();
		}
	}
};
SCENARIO(forks_thieves_and_the_owner_share, 50000, 2);

/* Both are public: the owner must see what thieves have taken who saw an older split. */
struct forks_all_public : forks_suite<forks_all_public, 3, 2, 2, true> {
	void thread(unsigned i)
	{
		if (i == 0)
			pop();
		else
			steal();
	}
};
SCENARIO(forks_all_public, 100000, 3);

/* The owner comes down while somebody opens half of what it has. */
struct forks_rescue_against_a_pop : forks_suite<forks_rescue_against_a_pop, 2, 3> {
	void thread(unsigned i)
	{
		if (i == 0) {
			push(0);
			push(1);
			push(2);
			pop();
			pop();
			pop();
		} else {
			forks_rescue(&forks);
			steal();
			steal();
		}
	}
};
SCENARIO(forks_rescue_against_a_pop, 100000, 3);

/* What the owner is about to show is opened before it can: it shows no more than there is. */
struct forks_rescue_against_a_slow_push : forks_suite<forks_rescue_against_a_slow_push, 2, 2, 1> {
	void before()
	{
		forks_suite::before();
		forks_hunger(&forks);
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			push(1);
			pop();
		} else {
			forks_rescue(&forks);
			steal();
			steal();
			steal();
		}
	}
};
SCENARIO(forks_rescue_against_a_slow_push, 50000, 3);

/* What was opened is taken by others than who opened it, and the owner goes up again meanwhile. */
struct forks_two_rescuers : forks_suite<forks_two_rescuers, 3, 4, 3> {
	void thread(unsigned i)
	{
		if (i == 0) {
			pop();
			push(3);
			pop();
		} else {
			forks_rescue(&forks);
			steal();
		}
	}
};
SCENARIO(forks_two_rescuers, 100000, 2);

/* Somebody opens what the owner has just forked in the place of others, and another one takes it. */
struct forks_thief_behind_a_rescue : forks_suite<forks_thief_behind_a_rescue, 3, 5, 4> {
	void thread(unsigned i)
	{
		if (i == 0) {
			pop();
			pop();
			push(4);
		} else if (i == 1) {
			forks_rescue(&forks);
		} else {
			steal();
			steal();
			steal();
		}
	}
};
SCENARIO(forks_thief_behind_a_rescue, 400000, 2);

/* With two slots each push overwrites what a slow thief may be reading. */
struct forks_slot_is_reused_under_a_slow_thief
    : forks_suite<forks_slot_is_reused_under_a_slow_thief, 3, 4, 2, false, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			push(2);
			pop();
			push(3);
		} else {
			steal();
			steal();
		}
	}
};
SCENARIO(forks_slot_is_reused_under_a_slow_thief, 50000, 2);

/* A sleeper announces itself, calls, and looks; the owner forks and looks for sleepers if it was told to. One of them notices. */
struct forks_sleeper_calls_before_it_looks : forks_suite<forks_sleeper_calls_before_it_looks, 2, 2> {
	rl::atomic<int> asleep;
	bool sleeps, woken;

	void before()
	{
		forks_suite::before();
		asleep($) = 0;
		sleeps = woken = false;
	}

	void fork_and_look(int i)
	{
		struct fork fork = { tasks.make(i), &tasks };

		if (!forks_push(&forks, fork) && forks_push_slowly(&forks, fork) == FORKS_SHOWN &&
		    asleep.load(rl::mo_relaxed, $) == 1) /* seen by the lock of push and call */
			woken = true;
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			fork_and_look(0);
			fork_and_look(1);
		} else {
			asleep.exchange(1, rl::mo_relaxed, $);
			sleeps = forks_call(&forks) <= 0;
		}
	}

	void after()
	{
		RL_ASSERT(!sleeps || woken);
		forks_suite::after();
	}
};
SCENARIO(forks_sleeper_calls_before_it_looks, 50000, 5);

/* The stack itself is made with the first fork: who looks before it is there sleeps, and is seen. */
struct forks_sleeper_may_not_see_the_stack : forks_suite<forks_sleeper_may_not_see_the_stack, 2, 1> {
	ATOMIC(struct fork_stack *) place;
	rl::atomic<int> asleep;
	bool sleeps, woken;

	void before()
	{
		forks_suite::before();
		place($) = NULL;
		asleep($) = 0;
		sleeps = woken = false;
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			struct fork fork = { tasks.make(0), &tasks };

			forks_appear(&place, (struct fork_stack *)&forks);
			RL_ASSERT(forks_push_slowly(&forks, fork) == FORKS_SHOWN);
			woken = asleep.load(rl::mo_seq_cst, $) == 1;
		} else {
			asleep.exchange(1, rl::mo_seq_cst, $);
			sleeps = !forks_seen(&place) || forks_call(&forks) <= 0;
		}
	}

	void after()
	{
		RL_ASSERT(!sleeps || woken);
		forks_suite::after();
	}
};
SCENARIO(forks_sleeper_may_not_see_the_stack, 50000, 5);
