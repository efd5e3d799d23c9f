/* SPDX-License-Identifier: MIT */
#pragma once
/* Where an operation is, in one word that its desk and everybody else share.
 *
 *   UNDER_WAY  lent to us
 *   MOVING     between desks, with a compute worker, or on its way to on_done: whoever asks for its end only says so
 *   ASKED      somebody wants its end: it goes to no other desk from here on (LATE: because of its deadline)
 *   MAIL       that wish is a letter on its way to the desk, in the op's own memory: nobody else uses that, nor frees it
 *   OVER       its desk has ended it
 *
 * Whoever comes second, the end (OVER) or the letter (MAIL goes), tells the result. A letter that finds another desk than the op's just
 * goes: that desk's worker leaves, and ends what was asked to end.                                                            */
#include "base/atomic.h"

enum { OP_UNDER_WAY = 1, OP_MOVING = 2, OP_ASKED = 4, OP_LATE = 8, OP_MAIL = 16, OP_OVER = 32 };

enum op_asked {
	OP_ASKED_NOBODY, /* it is not under way */
	OP_ASKED_BEFORE, /* or it is MOVING: nothing is left to do */
	OP_ASKED_HERE,   /* the caller's desk has it, and ends it */
	OP_ASKED_BY_MAIL /* the caller sends the letter */
};

/* Who starts it. False: it is under way. */
static inline bool op_state_begin(ATOMIC(uint32_t) *state)
{
	uint32_t idle = 0;

	return cas_acquire(state, &idle, OP_UNDER_WAY | OP_MOVING); /* OP-2 (pairs with OP-1) */
}

/* Who has it: the last that is done to it before its user is told. */
static inline void op_state_done(ATOMIC(uint32_t) *state)
{
	store_release(state, 0u); /* OP-1 (pairs with OP-2) */
}

/* Who has it while it is MOVING: what was asked. */
static inline uint32_t op_state_of_moving(const ATOMIC(uint32_t) *state)
{
	return load_relaxed(state);
}

/* Its desk, which has written itself into it: it is here. What was asked meanwhile. */
static inline uint32_t op_state_land(ATOMIC(uint32_t) *state)
{
	return and_release(state, ~(uint32_t)OP_MOVING); /* OP-3 (pairs with OP-4 and OP-5) */
}

/* Its desk, to send it elsewhere. False: its end was asked for. */
static inline bool op_state_leave(ATOMIC(uint32_t) *state)
{
	uint32_t under_way = OP_UNDER_WAY;

	return cas_relaxed(state, &under_way, (uint32_t)(OP_UNDER_WAY | OP_MOVING));
}

/* Its desk, to tell the result later. False: a letter is on its way, and will do so. */
static inline bool op_state_pass(ATOMIC(uint32_t) *state)
{
	uint32_t seen = load_relaxed(state);

	do
		if (seen & OP_MAIL)
			return false;
	while (!cas_acquire(state, &seen,
	                    seen | OP_MOVING)); /* OP-10 (pairs with OP-7): a letter that came has been read */
	return true;
}

/* Its desk. True: the caller tells the result; what was asked. False: the letter does. */
static inline bool op_state_end(ATOMIC(uint32_t) *state, uint32_t *ret_seen)
{
	*ret_seen = or_acq_rel(state, (uint32_t)OP_OVER); /* OP-6 (pairs with OP-7) */
	return !(*ret_seen & OP_MAIL);
}

/* The letter has arrived. OVER: its bearer tells the result. Else its desk has the op, and only there it may be touched. */
static inline uint32_t op_state_arrive(ATOMIC(uint32_t) *state)
{
	return and_acq_rel(state, ~(uint32_t)OP_MAIL); /* OP-7 (pairs with OP-6 and OP-10) */
}

/* Any thread, while it is lent. `here`: the caller's desk, or NULL; only the caller's thread makes it the owner or ends that. */
static inline enum op_asked op_state_ask(ATOMIC(uint32_t) *state, const ATOMIC(void *) *owner, const void *here,
                                         uint32_t why)
{
	uint32_t seen, mail;

	do {
		seen = load_acquire(state); /* OP-4 (pairs with OP-3): an old owner is not taken for the one it has */
		if (!(seen & OP_UNDER_WAY) || (seen & OP_OVER))
			return OP_ASKED_NOBODY;
		if (seen & OP_ASKED)
			return OP_ASKED_BEFORE;
		mail = (seen & OP_MOVING) || (here && load_relaxed(owner) == here) ? 0 : OP_MAIL;
	} while (!cas_acquire(state, &seen, seen | OP_ASKED | why | mail)); /* OP-5 (pairs with OP-3) */
	return (seen & OP_MOVING) ? OP_ASKED_BEFORE : mail ? OP_ASKED_BY_MAIL : OP_ASKED_HERE;
}
