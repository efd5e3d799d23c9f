/* SPDX-License-Identifier: MIT */
/* The deque: one owner against thieves. Thread 0 is the owner. */
#include "queue/deque.h"

#include "model.h"

template <typename T, int THREADS, int TASKS, int CAPACITY> struct deque_suite : rl::test_suite<T, THREADS> {
	struct deque deque;
	struct slot slots[CAPACITY];
	model_tasks<TASKS> tasks;
	int refused;

	void before()
	{
		refused = 0;
		deque_init(&deque, slots, CAPACITY, NEAR_WRAP);
	}

	void push(int i)
	{
		if (!deque_push(&deque, tasks.make(i)))
			refused++;
	}

	int pop()
	{
		hive_task task;

		return deque_pop(&deque, &task) ? tasks.run(task) : -1;
	}

	int steal()
	{
		hive_task task;

		return deque_steal(&deque, &task) ? tasks.run(task) : -1;
	}

	/* Whatever the threads left is still there, once. */
	void after()
	{
		RL_ASSERT(deque_size(&deque) == (uint64_t)(TASKS - refused - tasks.count));
		while (pop() >= 0) {}
		RL_ASSERT(tasks.count + refused == TASKS);
		RL_ASSERT(deque_size(&deque) == 0 && deque_room(&deque) == CAPACITY);
	}
};

struct deque_last_task_goes_to_owner_or_thief : deque_suite<deque_last_task_goes_to_owner_or_thief, 2, 1, 2> {
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
SCENARIO(deque_last_task_goes_to_owner_or_thief, 50000, 6);

struct deque_two_thieves_and_the_owner_share_two_tasks
    : deque_suite<deque_two_thieves_and_the_owner_share_two_tasks, 3, 2, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			push(0);
			push(1);
			pop();
			pop();
		} else {
			steal();
		}
	}
};
SCENARIO(deque_two_thieves_and_the_owner_share_two_tasks, 50000, 3);

/* The indices pass the wrap while both work. */
struct deque_wraps_under_pop_and_steal : deque_suite<deque_wraps_under_pop_and_steal, 2, 4, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			push(0);
			push(1);
			pop();
			push(2);
			push(3);
			pop();
		} else {
			steal();
			steal();
		}
	}
};
SCENARIO(deque_wraps_under_pop_and_steal, 50000, 4);

/* With one slot each push overwrites what a slow thief may be reading. */
struct deque_slot_is_reused_under_a_slow_thief : deque_suite<deque_slot_is_reused_under_a_slow_thief, 3, 3, 1> {
	void thread(unsigned i)
	{
		if (i == 0) {
			push(0);
			push(1);
			push(2);
			pop();
		} else {
			steal();
		}
	}
};
SCENARIO(deque_slot_is_reused_under_a_slow_thief, 50000, 3);

struct deque_thief_takes_the_oldest_first : deque_suite<deque_thief_takes_the_oldest_first, 2, 4, 4> {
	void thread(unsigned i)
	{
		if (i == 0) {
			hive_task two[] = { tasks.make(0), tasks.make(1) };

			deque_push_many(&deque, two, 2, false);
			push(2);
			push(3);
		} else {
			int first = steal(), second = steal();

			RL_ASSERT(second < 0 || second > first);
		}
	}
};
SCENARIO(deque_thief_takes_the_oldest_first, 50000, 4);

/* The owner empties the old end by one claim while a thief is at it; what it leaves it pops. */
struct deque_owner_takes_the_oldest_against_a_thief
    : deque_suite<deque_owner_takes_the_oldest_against_a_thief, 3, 3, 4> {
	void thread(unsigned i)
	{
		hive_task oldest[2];

		if (i > 0) {
			steal();
			return;
		}
		push(0);
		push(1);
		push(2);
		int last = -1;

		for (uint64_t n = deque_take_oldest(&deque, oldest, 2), k = 0; k < n; k++) {
			int number = tasks.run(oldest[k]);

			RL_ASSERT(number > last);
			last = number;
		}
		pop();
	}
};
SCENARIO(deque_owner_takes_the_oldest_against_a_thief, 50000, 3);
