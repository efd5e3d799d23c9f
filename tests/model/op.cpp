/* SPDX-License-Identifier: MIT */
/* An operation between its desk, those who ask for its end, and the letter that carries the wish (src/io/state.h). The protocol is
 * that of src/io/op.c: what a desk's thread does to an op is a plain access here, so that two who do it are a race.          */
#include "io/state.h"

#include "model.h"

enum { RESULT = 7, CANCELLED = -125 };

template <typename T, int THREADS> struct op_suite : rl::test_suite<T, THREADS> {
	ATOMIC(uint32_t) state;
	ATOMIC(void *) owner;
	ATOMIC(uint32_t) rung; /* the alarm has touched it for the last time */
	rl::var<int> result;   /* its desk, then who tells */
	rl::var<int> way;      /* the op's own memory: whoever sends it */
	rl::var<int> object;   /* of the memory itself: freed when it is told */
	struct parker mail;    /* the letter lies in the inbox of its desk */
	int told, asked_by_mail;
	int desks[2];

	void before()
	{
		state.store(0, rl::mo_relaxed, $);
		owner.store(NULL, rl::mo_relaxed, $);
		parker_init(&mail);
		object($) = 1;
		way($) = 0;
		result($) = 0;
		told = asked_by_mail = 0;
		RL_ASSERT(op_state_begin(&state));
		land(0);
	}

	void after()
	{
		RL_ASSERT(told == 1);
		RL_ASSERT(state.load(rl::mo_relaxed, $) == 0);
	}

	void land(int desk)
	{
		owner.store(&desks[desk], rl::mo_relaxed, $);
		way($) = 0; /* it has arrived: that memory is free */
		op_state_land(&state);
	}

	/* deliver(): the user may free it from here on. */
	void tell()
	{
		RL_ASSERT(object($) == 1);
		int seen = result($); /* after whoever wrote it */

		(void)seen;
		told++;
		op_state_done(&state);
	}

	void free_it()
	{
		object($) = 2;
		way($) = 99;
		result($) = 99;
	}

	/* hive__op_finish(): true if it was told. */
	bool finish(int value)
	{
		uint32_t seen;

		result($) = value;
		if (!op_state_end(&state, &seen))
			return false;
		tell();
		return true;
	}

	/* ask(), of somebody at no desk, or at `desk`. */
	enum op_asked ask(int desk)
	{
		enum op_asked r = op_state_ask(&state, &owner, desk < 0 ? NULL : &desks[desk], 0);

		if (r == OP_ASKED_BY_MAIL) {
			RL_ASSERT(asked_by_mail++ == 0);
			way($) = 1;
			parker_unpark(&mail);
		}
		return r;
	}

	/* arrive_wish(), at that desk. True: it was told, or its desk ends it now and tells it. */
	bool arrive(int desk)
	{
		bool here = owner.load(rl::mo_relaxed, $) == &desks[desk];
		uint32_t seen;

		RL_ASSERT(way($) == 1);
		seen = op_state_arrive(&state);
		if (seen & OP_OVER) {
			tell();
			return true;
		}
		return here && finish(CANCELLED);
	}

	bool has_mail()
	{
		return parker_park(&mail, 0);
	}
};

/* Its desk completes it and then, or before, finds the letter. */
struct op_cancel_against_completion : op_suite<op_cancel_against_completion, 2> {
	void thread(unsigned i)
	{
		if (i == 1) {
			ask(-1);
			return;
		}
		if (has_mail()) {
			RL_ASSERT(arrive(0));
			return;
		}
		if (finish(RESULT)) {
			free_it();
			return;
		}
		while (!parker_park(&mail, HIVE_FOREVER))
			;
		RL_ASSERT(arrive(0));
		free_it();
	}
};
SCENARIO(op_cancel_against_completion, 50000, 5);

/* Two ask: one letter at most. */
struct op_two_cancel_and_it_is_told_once : op_suite<op_two_cancel_and_it_is_told_once, 3> {
	void thread(unsigned i)
	{
		if (i > 0) {
			ask(-1);
			return;
		}
		if (finish(RESULT))
			return;
		while (!parker_park(&mail, HIVE_FOREVER))
			;
		RL_ASSERT(arrive(0));
	}
};
SCENARIO(op_two_cancel_and_it_is_told_once, 50000, 3);

/* Its worker leaves: it goes to another desk, unless its end was asked for; and the letter, whose addressee has left, goes to that other
 * desk, whatever has become of the op.                                                                                   */
struct op_cancel_against_a_move : op_suite<op_cancel_against_a_move, 3> {
	struct parker moved;

	void before()
	{
		op_suite::before();
		parker_init(&moved);
	}

	/* The leaving worker: move_on(). */
	void leave()
	{
		if (op_state_leave(&state)) {
			way($) = 2;
			parker_unpark(&moved);
			return;
		}
		if (op_state_pass(&state)) { /* to its own private queue */
			way($) = 3;
			tell();
		} else {
			finish(CANCELLED);
		}
	}

	/* The other worker: all that comes there. */
	void receive()
	{
		for (int looks = 0; looks < 3 && told == 0; looks++) {
			if (parker_park(&moved, 0)) {
				RL_ASSERT(way($) == 2);
				land(1);
				if (has_mail())
					arrive(1);
				else
					finish(RESULT);
			} else if (has_mail()) {
				arrive(1);
			}
		}
	}

	void thread(unsigned i)
	{
		if (i == 0)
			leave();
		else if (i == 1)
			receive();
		else
			ask(-1);
	}

	/* What is still on its way arrives. */
	void after()
	{
		if (parker_park(&moved, 0)) {
			land(1);
			finish(RESULT);
		}
		if (has_mail())
			arrive(1);
		op_suite::after();
	}
};
SCENARIO(op_cancel_against_a_move, 50000, 4);

/* The letter comes to another desk while its own ends the op, as both happen when a hive stops. */
struct op_letter_at_another_desk : op_suite<op_letter_at_another_desk, 2> {
	void before()
	{
		op_suite::before();
		RL_ASSERT(ask(-1) == OP_ASKED_BY_MAIL);
	}

	void thread(unsigned i)
	{
		if (i == 1) {
			while (!parker_park(&mail, HIVE_FOREVER))
				;
			if (arrive(1))
				free_it();
		} else if (finish(CANCELLED)) {
			free_it();
		}
	}
};
SCENARIO(op_letter_at_another_desk, 50000, 6);

/* Told later, from the private queue, while somebody asks. */
struct op_cancel_against_soon : op_suite<op_cancel_against_soon, 2> {
	void thread(unsigned i)
	{
		if (i == 1) {
			ask(-1);
			return;
		}
		if (op_state_pass(&state)) {
			way($) = 3;
			result($) = RESULT;
			RL_ASSERT(way($) == 3);
			tell();
			return;
		}
		RL_ASSERT(!finish(RESULT));
		while (!parker_park(&mail, HIVE_FOREVER))
			;
		RL_ASSERT(arrive(0));
	}
};
SCENARIO(op_cancel_against_soon, 50000, 6);

/* The same while the letter goes to another desk, because the worker leaves: whoever finds it gone tells later all the same, by the way
 * that the letter has left.                                                                                              */
struct op_letter_elsewhere_against_soon : op_suite<op_letter_elsewhere_against_soon, 2> {
	void before()
	{
		op_suite::before();
		RL_ASSERT(ask(-1) == OP_ASKED_BY_MAIL);
	}

	void thread(unsigned i)
	{
		uint32_t seen;

		if (i == 1) {
			while (!parker_park(&mail, HIVE_FOREVER))
				;
			arrive(1);
			return;
		}
		if (!op_state_pass(&state)) {
			result($) = RESULT;
			if (!op_state_end(&state, &seen))
				return;
		}
		way($) = 3;
		result($) = RESULT;
		RL_ASSERT(way($) == 3);
		tell();
	}
};
SCENARIO(op_letter_elsewhere_against_soon, 50000, 6);

/* The worker whose op it was asks for the end of it when it is another's by now: it must not take it for its own. */
struct op_old_owner_asks : op_suite<op_old_owner_asks, 2> {
	ATOMIC(uint32_t) sent;

	void before()
	{
		op_suite::before();
		sent.store(0, rl::mo_relaxed, $);
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			RL_ASSERT(op_state_leave(&state));
			way($) = 2;
			sent.store(1, rl::mo_release, $);
			RL_ASSERT(ask(0) != OP_ASKED_HERE);
			return;
		}
		while (sent.load(rl::mo_acquire, $) == 0)
			rl::yield(1, $);
		RL_ASSERT(way($) == 2);
		owner.store(&desks[1], rl::mo_relaxed, $);
		way($) = 0;
		if (op_state_land(&state) & OP_ASKED) {
			RL_ASSERT(finish(CANCELLED));
			return;
		}
		if (has_mail()) {
			RL_ASSERT(arrive(1));
			return;
		}
		if (finish(RESULT))
			return;
		while (!parker_park(&mail, HIVE_FOREVER))
			;
		RL_ASSERT(arrive(1));
	}
};
SCENARIO(op_old_owner_asks, 50000, 5);

/* A compute worker has it: the wish is only noted, and the memory is the way's. */
struct op_cancel_against_a_compute_worker : op_suite<op_cancel_against_a_compute_worker, 3> {
	struct parker there, back;

	void before()
	{
		op_suite::before();
		parker_init(&there);
		parker_init(&back);
		RL_ASSERT(op_state_leave(&state));
		way($) = 2;
		parker_unpark(&there);
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			while (!parker_park(&there, HIVE_FOREVER))
				;
			result($) = op_state_of_moving(&state) & OP_ASKED ? CANCELLED : RESULT;
			way($) = 3;
			parker_unpark(&back);
		} else if (i == 1) {
			while (!parker_park(&back, HIVE_FOREVER))
				;
			RL_ASSERT(way($) == 3);
			tell();
		} else {
			RL_ASSERT(ask(-1) != OP_ASKED_BY_MAIL);
		}
	}
};
SCENARIO(op_cancel_against_a_compute_worker, 50000, 3);

/* Started again by another thread as soon as it is told, from the private queue. */
struct op_begins_again : op_suite<op_begins_again, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			RL_ASSERT(op_state_pass(&state));
			result($) = RESULT;
			tell();
			return;
		}
		if (!op_state_begin(&state))
			return;
		result($) = 1; /* after all that its last life did */
		op_state_done(&state);
	}
};
SCENARIO(op_begins_again, 50000, 6);
