/* SPDX-License-Identifier: MIT */
/* Cancel tokens as they are: src/fiber/cancel.c, on modelled atomics and waits. Cancel against completion, fire against start and stop of a watch, join
 * against everything: each ends once, and what may go is poisoned as soon as it may: the poison must stay.                  */
#include "base/atomic.h"
#define HIVE_ATOMIC(T) ATOMIC(T)
#define _Static_assert static_assert
#include "model_wait.h"

#include "model.h"

inline int hive__wait_reason(void)
{
	return 0;
}

#include "fiber/cancel.c"

#define SOON 2 /* a deadline that is not past, and may pass at any time */
#define POISON UINT64_C(0xdead0)

/* Of the whole only the tokens: no alarm, nothing runs under them here. */
void hive__cancel_disarm(struct hive_cancel *) {}

struct hive_cancel *hive__cancel_here(void)
{
	return NULL;
}

/* A fiber, as far as it is cancelled: fiber.c and under.c. Whether a cancel is seen by one who parks is not asked here, where it is woken in any
 * case, but in cell.cpp.                                                                                                  */
struct model_fiber {
	struct hive_cancel_link link;
	struct cell cell;
	struct parker parker;
	ATOMIC(int) cancelled;
};

static struct model_fiber *model_fiber;

bool hive__fiber_tell(struct hive_cancel_link *, int reason)
{
	int none = 0;

	model_fiber->cancelled.compare_exchange_strong(none, reason, rl::mo_seq_cst, $);
	return cell_cancel(&model_fiber->cell) == CELL_OURS_PARKED;
}

void hive__fiber_go_on(struct hive_cancel_link *)
{
	parker_unpark(&model_fiber->parker);
}

template <typename T, int THREADS> struct cancel_suite : rl::test_suite<T, THREADS> {
	struct waiter waiters[MODEL_WAITERS];
	struct hive_cancel token, child;
	struct hive_cancel_watch watch;
	struct model_fiber fiber;
	rl::var<int> news, object;
	int calls, stops, fires;

	void before()
	{
		model_waiters = waiters;
		model_fiber = &fiber;
		for (int i = 0; i < MODEL_WAITERS; i++) {
			waiters[i].cell.word.store(0, rl::mo_relaxed, $);
			parker_init(&waiters[i].parker);
			waiters[i].is_thread = i % 2 == 1;
		}
		fiber.cell.word.store(0, rl::mo_relaxed, $);
		fiber.cancelled.store(0, rl::mo_relaxed, $);
		parker_init(&fiber.parker);
		hive_cancel_init(&token, NULL, HIVE_FOREVER);
		hive_cancel_watch_init(&watch, on_fired, this);
		/* as if the thread that stops it had called it once: an old name must not be taken for a new one */
		watch.caller.store((void *)(uintptr_t)(2 * 8), rl::mo_relaxed, $);
		watch.left = NULL;
		news($) = 0;
		object($) = 1;
		calls = stops = fires = 0;
	}

	static void on_fired(struct hive_cancel_watch *w, int reason)
	{
		cancel_suite *s = (cancel_suite *)w->arg;

		RL_ASSERT(reason == -EIO);
		RL_ASSERT(s->object($) == 1);
		s->calls++;
		s->news($) = 1;
	}

	void start_watch()
	{
		RL_ASSERT(hive__cancel_watch(&token, &watch) == 0);
	}

	void fire()
	{
		fires += hive__cancel_fire(&token, -EIO) == 0;
	}

	/* It is called or not, and its memory is somebody else's then. */
	void stop_watch()
	{
		int r = hive_cancel_watch_stop(&watch);

		RL_ASSERT(r == 1 || news($) == 1);
		stops += r;
		object($) = 2;
		watch.state.store(7, rl::mo_relaxed, $);
	}

	void join()
	{
		RL_ASSERT(hive_cancel_join(&token, HIVE_FOREVER) == 0);
		token.state.store(POISON, rl::mo_relaxed, $);
	}

	bool is_poisoned()
	{
		return load_relaxed(&token.state) == POISON;
	}
};

/* Thread 1 stops the watch and joins the token: nobody comes to either of them any more. */
struct cancel_fire_against_stop : cancel_suite<cancel_fire_against_stop, 2> {
	void before()
	{
		cancel_suite::before();
		start_watch();
	}

	void thread(unsigned i)
	{
		if (i == 0)
			fire();
		else
			stop_watch();
	}

	void after()
	{
		RL_ASSERT(calls + stops == 1);
		RL_ASSERT(fires == 1);
		RL_ASSERT(load_relaxed(&watch.state) == 7);
		RL_ASSERT(load_relaxed(&token.state) == 0);
	}
};
SCENARIO(cancel_fire_against_stop, 20000, 3);

/* Refused, or called: who comes when the lists were gone through is not let in. */
struct cancel_fire_against_start : cancel_suite<cancel_fire_against_start, 2> {
	bool started;

	void thread(unsigned i)
	{
		if (i == 0)
			fire();
		else
			started = hive__cancel_watch(&token, &watch) == 0;
	}

	void after()
	{
		RL_ASSERT(calls == (started ? 1 : 0));
		RL_ASSERT(load_relaxed(&token.state) == 0);
	}
};
SCENARIO(cancel_fire_against_start, 20000, 3);

/* Two fire, one of them does. */
struct cancel_two_fire : cancel_suite<cancel_two_fire, 2> {
	void before()
	{
		cancel_suite::before();
		start_watch();
	}

	void thread(unsigned)
	{
		fire();
	}

	void after()
	{
		RL_ASSERT(fires == 1 && calls == 1);
		RL_ASSERT(load_relaxed(&token.state) == 0);
	}
};
SCENARIO(cancel_two_fire, 20000, 2);

struct cancel_shows_what_came_before : cancel_suite<cancel_shows_what_came_before, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			news($) = 2;
			fire();
		} else if (hive__cancel_reason(&token) != 0) {
			RL_ASSERT(news($) == 2);
		}
	}
};
SCENARIO(cancel_shows_what_came_before, 20000, 3);

/* A fiber that parks (thread 0), who completes its wait (1), who fires (2): one of the two ends the wait, and it goes on once. */
struct cancel_against_completion : cancel_suite<cancel_against_completion, 3> {
	ATOMIC(uint64_t) turn;
	int completed, ended;

	void before()
	{
		cancel_suite::before();
		completed = ended = 0;
		RL_ASSERT(hive__cancel_enter_fiber(&token, &fiber.link) == 0);
		turn.store(cell_begin(&fiber.cell, false), rl::mo_relaxed, $);
	}

	/* goes_on_instead_of_parking() of fiber.c */
	bool goes_on()
	{
		uint64_t mine = load_relaxed(&turn);

		if (!cell_park(&fiber.cell))
			return true;
		return fiber.cancelled.load(rl::mo_seq_cst, $) != 0 &&
		       cell_claim(&fiber.cell, mine, CELL_CANCELLED) == CELL_OURS_PARKED;
	}

	void thread(unsigned i)
	{
		if (i == 1) {
			enum cell_claim claim = cell_claim(&fiber.cell, load_relaxed(&turn), CELL_WOKEN);

			completed = claim != CELL_NOT_OURS;
			if (claim == CELL_OURS_PARKED)
				parker_unpark(&fiber.parker);
		} else if (i == 2) {
			fire();
		} else {
			if (!goes_on())
				while (!parker_park(&fiber.parker, HIVE_FOREVER))
					;
			ended = cell_end(&fiber.cell);
			if (ended == CELL_CANCELLED)
				RL_ASSERT(load_relaxed(&fiber.cancelled) == -EIO);
			hive__cancel_leave(&token, &fiber.link);
		}
	}

	void after()
	{
		RL_ASSERT(ended == (completed ? CELL_WOKEN : CELL_CANCELLED));
		RL_ASSERT(load_relaxed(&token.state) == 0 && !token.fibers);
	}
};
SCENARIO(cancel_against_completion, 20000, 2);

/* Who joins waits for a member that leaves (1) and for who fires (2), whatever the order; the token is his then. */
struct cancel_join_against_the_last : cancel_suite<cancel_join_against_the_last, 3> {
	void before()
	{
		cancel_suite::before();
		RL_ASSERT(hive__cancel_enter(&token) == 0);
		RL_ASSERT(hive__cancel_enter(&token) == 0); /* of who fires: he may do so as long as he keeps it from going */
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			join();
			return;
		}
		if (i == 2)
			fire();
		hive__cancel_leave(&token, NULL);
	}

	void after()
	{
		RL_ASSERT(is_poisoned());
	}
};
SCENARIO(cancel_join_against_the_last, 10000, 1);

/* The parent fires while its child is joined: who fires has the child, or never comes to it. */
struct cancel_parent_against_join_of_child : cancel_suite<cancel_parent_against_join_of_child, 2> {
	void before()
	{
		cancel_suite::before();
		hive_cancel_init(&child, &token, HIVE_FOREVER);
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			fire();
			return;
		}
		RL_ASSERT(hive_cancel_join(&child, HIVE_FOREVER) == 0);
		child.state.store(POISON, rl::mo_relaxed, $);
	}

	void after()
	{
		RL_ASSERT(load_relaxed(&child.state) == POISON);
		RL_ASSERT(load_relaxed(&token.state) == 0 && !token.children);
	}
};
SCENARIO(cancel_parent_against_join_of_child, 20000, 1);

/* A child that is made while its parent fires: it has fired too, whoever was first. */
struct cancel_parent_against_a_new_child : cancel_suite<cancel_parent_against_a_new_child, 2> {
	void thread(unsigned i)
	{
		if (i == 0)
			fire();
		else
			hive_cancel_init(&child, &token, HIVE_FOREVER);
	}

	void after()
	{
		RL_ASSERT(load_relaxed(&child.reason) != 0);
		RL_ASSERT(load_relaxed(&child.state) == 0 && !token.children);
	}
};
SCENARIO(cancel_parent_against_a_new_child, 20000, 2);

/* One who waits for the token among other things: woken by it, or late; the token stays until he has left its list. */
struct cancel_wakes_who_waits : cancel_suite<cancel_wakes_who_waits, 2> {
	void thread(unsigned i)
	{
		struct wait_node node;
		struct wait wait;

		if (i == 1) {
			news($) = 2;
			fire();
			return;
		}
		RL_ASSERT(hive__wait_begin(&wait, "") == 0);
		if (!hive__cancel_enlist(&token, &node, wait)) {
			hive__wait_give_up(wait);
			RL_ASSERT(news($) == 2);
			return;
		}
		if (hive__wait_end(wait, calls == 0 ? HIVE_FOREVER : SOON) == 0)
			RL_ASSERT(news($) == 2);
		hive__cancel_delist(&token, &node);
	}

	void after()
	{
		RL_ASSERT(load_relaxed(&token.state) == 0);
	}
};
SCENARIO(cancel_wakes_who_waits, 20000, 3);
