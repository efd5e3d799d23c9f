/* SPDX-License-Identifier: MIT */
/* The tray: many put, many take, two at most; and whoever sleeps on it. */
#define TRAY_START UINT64_MAX /* cut to 63 bits: the next index is 0 */
#define IDLE_WORKERS 2
#include "queue/idle.h"
#include "queue/tray.h"

#include "model.h"

template <typename T, int THREADS, int TASKS> struct tray_suite : rl::test_suite<T, THREADS> {
	struct tray tray;
	struct tray_cell cells[2];
	model_tasks<TASKS> tasks;
	int accepted;

	void before()
	{
		tray_init(&tray, cells, 2);
		accepted = 0;
	}

	int put(int i)
	{
		int r = tray_put(&tray, tasks.make(i));

		accepted += r == 0;
		return r;
	}

	/* The number of the task; -1: there was none. */
	int take()
	{
		hive_task task;

		return tray_take(&tray, &task) ? tasks.run(task) : -1;
	}

	/* Nobody is at it any more: what was accepted has run, or is there. */
	void after()
	{
		while (take() >= 0)
			;
		RL_ASSERT(tasks.count == accepted && tray_length(&tray) == 0);
	}
};

struct tray_two_put_and_two_take : tray_suite<tray_two_put_and_two_take, 4, 2> {
	void thread(unsigned i)
	{
		if (i < 2)
			RL_ASSERT(put((int)i) == 0);
		else
			take();
	}
};
SCENARIO(tray_two_put_and_two_take, 50000, 2);

/* A cell is used again while a slow one is at it. */
struct tray_cell_is_used_again : tray_suite<tray_cell_is_used_again, 3, 4> {
	void thread(unsigned i)
	{
		if (i == 0) {
			put(0);
			put(1);
			put(2);
			put(3);
		} else {
			take();
			take();
		}
	}
};
SCENARIO(tray_cell_is_used_again, 50000, 2);

/* One who puts and one who takes: in order. */
struct tray_keeps_the_order : tray_suite<tray_keeps_the_order, 2, 3> {
	void thread(unsigned i)
	{
		int last = -1;

		for (int n = 0; n < 3; n++) {
			int got = i == 0 ? (put(n), -1) : take();

			if (got < 0)
				continue;
			RL_ASSERT(got > last);
			last = got;
		}
	}
};
SCENARIO(tray_keeps_the_order, 50000, 4);

/* What was accepted before it was closed is there for who was told of the close; afterwards nothing is. */
struct tray_close_against_put : tray_suite<tray_close_against_put, 3, 3> {
	rl::atomic<int> closed;

	void before()
	{
		tray_suite::before();
		closed.store(0, rl::mo_relaxed, $);
	}

	void thread(unsigned i)
	{
		if (i < 1) {
			put(0);
			put(1);
		} else if (i == 1) {
			tray_close(&tray);
			closed.store(1, rl::mo_release, $);
		} else if (closed.load(rl::mo_acquire, $)) {
			uint64_t length = tray_length(&tray);

			RL_ASSERT(tray_put(&tray, tasks.make(2)) == -ESHUTDOWN);
			RL_ASSERT(tray_length(&tray) <= length);
		}
	}
};
SCENARIO(tray_close_against_put, 50000, 3);

/* The last look against the put. */
struct tray_sleeper_against_a_put : tray_suite<tray_sleeper_against_a_put, 2, 1> {
	struct idle idle;
	struct parker parker;

	void before()
	{
		tray_suite::before();
		idle_init(&idle);
		parker_init(&parker);
	}

	void thread(unsigned i)
	{
		if (i == 1) {
			put(0);
			if (idle_claim(&idle, 0))
				parker_unpark(&parker);
			return;
		}
		while (take() < 0) {
			idle_announce(&idle, 0, false, 0);
			if (tray_length(&tray) == 0)
				parker_park(&parker, HIVE_FOREVER);
			else
				rl::yield(1, $);
			idle_retract(&idle, 0);
		}
	}
};
SCENARIO(tray_sleeper_against_a_put, 50000, 5);

/* A length is never absurd: tail is not older than head. */
struct tray_length_is_never_absurd : tray_suite<tray_length_is_never_absurd, 3, 2> {
	void thread(unsigned i)
	{
		if (i == 0)
			put(0), put(1);
		else if (i == 1)
			take();
		else
			RL_ASSERT(tray_length(&tray) <= 2);
	}
};
SCENARIO(tray_length_is_never_absurd, 50000, 4);

