/* SPDX-License-Identifier: MIT */
#pragma once
/* What has become of a fiber, in one word that its end, its joiner and others who wait for it share; and the count by which a tree
 * of fibers knows when all of it has ended.
 *
 *   ENDED     its result is there
 *   WAITERS   somebody waits, or did: the end has to look into the list, under its lock
 *   JOINING   of these, somebody who will take the handle
 *   DONE      its end does nothing to the object any more
 *   RELEASED  nobody has the handle any more
 *
 * Whoever sets the second of DONE and RELEASED gives the stack back. Who waits sets WAITERS under the lock and looks for ENDED in
 * the same step; the end sets ENDED and looks for WAITERS in the same step: one of them sees the other.                  */
#include "base/atomic.h"

enum fiber_fate { FATE_ENDED = 1, FATE_DONE = 2, FATE_RELEASED = 4, FATE_JOINING = 8, FATE_WAITERS = 16 };

/* The end, when nobody needs to be told and nobody keeps track: one step for all. False: not so, and nothing was done. */
static inline bool fate_end_alone(ATOMIC(uint32_t) *fate, bool *ret_free)
{
	uint32_t was = load_relaxed(fate);

	while (!(was & FATE_WAITERS))
		if (cas_acq_rel(fate, &was, was | FATE_ENDED | FATE_DONE)) { /* FATE-1 (pairs with FATE-3 and FATE-4) */
			*ret_free = was & FATE_RELEASED;
			return true;
		}
	return false;
}

/* The end, under the lock of the list that is looked into next. */
static inline void fate_end(ATOMIC(uint32_t) *fate)
{
	or_release(fate, (uint32_t)FATE_ENDED); /* FATE-2 (pairs with FATE-3) */
}

/* The last that the end does to the object. True: the stack is to be given back. */
static inline bool fate_done(ATOMIC(uint32_t) *fate)
{
	return or_acq_rel(fate, (uint32_t)FATE_DONE) & FATE_RELEASED; /* FATE-5 (pairs with FATE-4) */
}

static inline bool fate_has_ended(const ATOMIC(uint32_t) *fate)
{
	return load_acquire(fate) & FATE_ENDED; /* FATE-3 (pairs with FATE-1 and FATE-2) */
}

/* Who is about to wait, under the lock. What it was before. */
static inline uint32_t fate_enlist(ATOMIC(uint32_t) *fate, uint32_t bits)
{
	return or_acquire(fate, bits | FATE_WAITERS); /* FATE-3 (pairs with FATE-1 and FATE-2) */
}

/* Who has the handle. What it was before: DONE means that the stack is to be given back; RELEASED, that it was not his. */
static inline uint32_t fate_release(ATOMIC(uint32_t) *fate)
{
	return or_acq_rel(fate, (uint32_t)FATE_RELEASED); /* FATE-4 (pairs with FATE-1 and FATE-5) */
}

/* A member has ended with all beneath it. True: it was the last of those that `pending` counts. Only a fiber itself makes children,
 * so one that has ended and finds no other has none and gets none.                                                          */
static inline bool tree_is_last(ATOMIC(uint32_t) *pending)
{
	return load_acquire(pending) == 1 ||  /* TREE-2 (pairs with TREE-1) */
	       sub_acq_rel(pending, 1u) == 1; /* TREE-1 (pairs with TREE-1 and TREE-2) */
}
