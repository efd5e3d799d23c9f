/* SPDX-License-Identifier: MIT */
/* The cell in which one waits: many may end a wait, one does, and the owner goes on once. */
#include "fiber/cell.h"

#include "model.h"

template <typename T, int THREADS> struct cell_suite : rl::test_suite<T, THREADS> {
	struct cell cell;
	rl::atomic<int> runs;  /* who has to make the owner run has done so: the worker's queue, or the token */
	rl::atomic<int> asked; /* what a canceller writes down */
	rl::var<int> context;  /* the owner's, saved before it parks */
	rl::var<int> gift;     /* written before a wake */
	uint64_t turn;
	int claims;

	void before()
	{
		cell.word.store(0, rl::mo_relaxed, $);
		runs.store(0, rl::mo_relaxed, $);
		asked.store(0, rl::mo_relaxed, $);
		context($) = 0;
		gift($) = 0;
		turn = cell_begin(&cell, false);
		claims = 0;
	}

	/* Whoever claimed a parked one makes it run: it finds the context saved, by the order of the cell. */
	bool settle(enum cell_claim claim)
	{
		claims += claim != CELL_NOT_OURS;
		if (claim == CELL_OURS_PARKED) {
			RL_ASSERT(context($) == 1);
			context($) = 2;
			runs.store(1, rl::mo_release, $);
		}
		return claim != CELL_NOT_OURS;
	}

	/* The owner. False: claimed before it parked. */
	bool park()
	{
		context($) = 1;
		if (!cell_park(&cell))
			return false;
		while (runs.load(rl::mo_acquire, $) == 0)
			rl::yield(1, $);
		return true;
	}
};

struct cell_two_wakers_one_wakes : cell_suite<cell_two_wakers_one_wakes, 3> {
	void thread(unsigned i)
	{
		if (i == 0) {
			park();
			RL_ASSERT(cell_end(&cell) == CELL_WOKEN);
		} else {
			settle(cell_claim(&cell, turn, CELL_WOKEN));
		}
	}

	void after()
	{
		RL_ASSERT(claims == 1);
	}
};
SCENARIO(cell_two_wakers_one_wakes, 20000, 4);

struct cell_wake_shows_what_came_before : cell_suite<cell_wake_shows_what_came_before, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			park();
			RL_ASSERT(cell_end(&cell) == CELL_WOKEN && gift($) == 7);
		} else {
			gift($) = 7;
			settle(cell_claim(&cell, turn, CELL_WOKEN));
		}
	}
};
SCENARIO(cell_wake_shows_what_came_before, 20000, 6);

/* The timer's worker says LATE, a waker WOKEN: the end says who was first, and a waker that lost has given nothing. */
struct cell_time_out_against_wake : cell_suite<cell_time_out_against_wake, 3> {
	bool late, woken;

	void thread(unsigned i)
	{
		if (i == 1) {
			late = settle(cell_claim(&cell, turn, CELL_LATE));
		} else if (i == 2) {
			woken = settle(cell_claim(&cell, turn, CELL_WOKEN));
		} else {
			park();
			RL_ASSERT(cell_phase_of(cell.word.load(rl::mo_relaxed, $)) >= CELL_WOKEN);
			enum cell_phase end = cell_end(&cell);
			RL_ASSERT(end == CELL_LATE || end == CELL_WOKEN);
			cell_begin(&cell, false); /* and waits again: the other one must not end that */
			RL_ASSERT(end == CELL_LATE || end == CELL_WOKEN);
		}
	}

	void after()
	{
		RL_ASSERT(claims == 1 && late != woken);
		RL_ASSERT(cell_phase_of(cell.word.load(rl::mo_relaxed, $)) == CELL_WAITING);
	}
};
SCENARIO(cell_time_out_against_wake, 20000, 4);

/* Somebody who was told of the first wait comes during the second. */
struct cell_old_turn_ends_nothing : cell_suite<cell_old_turn_ends_nothing, 2> {
	void thread(unsigned i)
	{
		if (i == 1) {
			settle(cell_claim(&cell, turn, CELL_WOKEN));
			return;
		}
		settle(cell_claim(&cell, turn, CELL_LATE)); /* its own deadline had passed */
		cell_end(&cell);
		uint64_t second = cell_begin(&cell, false);
		RL_ASSERT(second == turn + 1);
		RL_ASSERT(cell_park(&cell));
		RL_ASSERT(cell_claim(&cell, second, CELL_LATE) == CELL_OURS_PARKED);
		RL_ASSERT(cell_end(&cell) == CELL_LATE);
	}

	void after()
	{
		RL_ASSERT(claims == 1);
	}
};
SCENARIO(cell_old_turn_ends_nothing, 20000, 6);

/* The canceller writes, then looks at the cell; who has parked looks for what was written. One that begins to wait may have looked
 * too early, and the canceller as well: so both look after they have written. */
struct cell_cancel_against_park : cell_suite<cell_cancel_against_park, 2> {
	void before()
	{
		cell_suite::before();
		cell_claim(&cell, turn, CELL_WOKEN);
		cell_end(&cell);
	}

	void thread(unsigned i)
	{
		if (i == 1) {
			asked.store(1, rl::mo_seq_cst, $);
			settle(cell_cancel(&cell));
			return;
		}
		if (asked.load(rl::mo_relaxed, $)) /* as hive__wait_begin() does */
			return;
		turn = cell_begin(&cell, false);
		context($) = 1;
		if (cell_park(&cell)) {
			if (asked.load(rl::mo_seq_cst, $))
				settle(cell_claim(&cell, turn, CELL_CANCELLED));
			while (runs.load(rl::mo_acquire, $) == 0) /* a lost cancel is a livelock */
				rl::yield(1, $);
		}
		RL_ASSERT(cell_end(&cell) == CELL_CANCELLED && claims == 1);
	}
};
SCENARIO(cell_cancel_against_park, 20000, 6);

/* A canceller that comes before the wait, between two waits or during one cancels none that had ended. */
struct cell_cancel_between_waits : cell_suite<cell_cancel_between_waits, 2> {
	void thread(unsigned i)
	{
		if (i == 1) {
			asked.store(1, rl::mo_seq_cst, $);
			settle(cell_cancel(&cell));
			return;
		}
		for (int round = 0; round < 2; round++) {
			if (round > 0)
				turn = cell_begin(&cell, false);
			claims = 0;
			settle(cell_claim(&cell, turn, CELL_WOKEN));
			RL_ASSERT(cell_end(&cell) == (claims ? CELL_WOKEN : CELL_CANCELLED));
		}
	}

	void settle(enum cell_claim claim)
	{
		claims += rl::ctx().current_thread() == 0 && claim != CELL_NOT_OURS;
	}
};
SCENARIO(cell_cancel_between_waits, 20000, 6);

struct cell_shield_keeps_cancels_out : cell_suite<cell_shield_keeps_cancels_out, 3> {
	void before()
	{
		cell_suite::before();
		turn = cell_begin(&cell, true);
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			park();
			RL_ASSERT(cell_end(&cell) == CELL_WOKEN);
		} else if (i == 1) {
			RL_ASSERT(cell_cancel(&cell) == CELL_NOT_OURS);
		} else {
			settle(cell_claim(&cell, turn, CELL_WOKEN));
		}
	}

	void after()
	{
		RL_ASSERT(claims == 1);
		RL_ASSERT(!(cell.word.load(rl::mo_relaxed, $) & CELL_SHIELD));
	}
};
SCENARIO(cell_shield_keeps_cancels_out, 20000, 4);
