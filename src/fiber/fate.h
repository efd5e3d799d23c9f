/* SPDX-License-Identifier: MIT */
#pragma once
/* What has become of a fiber, in one word that its end, its joiner and others who wait for it share; and the count by which a tree
 * of fibers knows when all of it has ended.
 *
 *   ENDED     its result is there
 *   JOINING   somebody waits who will take the handle
 *   DONE      its end does nothing to the object any more
 *   RELEASED  nobody has the handle any more
 *   life      the upper half: which of the fibers that had this memory one after the other; a handle names it
 *
 * The word is a latch (base/latch.h), and so is the lock of the list of those who wait: who waits enters the list and looks for ENDED
 * under it, the end sets ENDED and empties the list under it. Giving the latch back is a store, the last that one does with the
 * object; so whoever sets the second of DONE and RELEASED gives the stack back.
 *
 * Who comes with a handle takes the latch of that life alone, and only while it is held: one that is gone, and its memory another
 * fiber's by now, is left alone. So nobody is inside when both bits are set, and the next life may begin with a plain store.  */
#include "base/latch.h"

#define FATE_ENDED UINT64_C(2)
#define FATE_DONE UINT64_C(4)
#define FATE_RELEASED UINT64_C(8)
#define FATE_JOINING UINT64_C(16)
#define FATE_LIFE (UINT64_MAX << 32)

/* Who spawns, with memory that is nobody's. */
static inline void fate_begin(ATOMIC(uint64_t) *fate, uint64_t bits)
{
	uint64_t life = (load_relaxed(fate) & FATE_LIFE) + (UINT64_C(1) << 32);

	store_relaxed(fate, (life ? life : UINT64_C(1) << 32) | bits);
}

/* For who has a handle. False: it names nobody any more. */
static inline bool fate_enter(ATOMIC(uint64_t) *fate, uint64_t life, uint64_t *ret_fate)
{
	return latch_take_while(fate, FATE_LIFE | FATE_RELEASED, life, ret_fate);
}

/* This life of it. *ret_fate: what it says; 0: there is another one by now. */
static inline bool fate_has_ended(const ATOMIC(uint64_t) *fate, uint64_t life, uint64_t *ret_fate)
{
	uint64_t seen = load_acquire(fate); /* FATE-1 (pairs with LATCH-2) */

	*ret_fate = (seen & FATE_LIFE) == life ? seen : 0;
	return (seen & FATE_ENDED) || (seen & FATE_LIFE) != life;
}

/* For who is in the list and wants to leave it; the handle may be gone meanwhile. False: it has ended, and the list was emptied. */
static inline bool fate_enter_to_leave(ATOMIC(uint64_t) *fate, uint64_t life, uint64_t *ret_fate)
{
	bool enters = latch_take_while(fate, FATE_LIFE | FATE_ENDED, life, ret_fate);

	if (!enters)
		(void)load_acquire(fate); /* FATE-1 (pairs with LATCH-2): its result is seen */
	return enters;
}

/* The handle goes, unless `bits` are set. False: they are, or it had gone; *ret_fate: what it was before, 0 then. */
static inline bool fate_release(ATOMIC(uint64_t) *fate, uint64_t life, uint64_t bits, uint64_t *ret_fate)
{
	uint64_t was = 0;
	bool releases = fate_enter(fate, life, &was);

	*ret_fate = was;
	if (!releases)
		return false;
	releases = !(was & bits);
	latch_give(fate, releases ? was | FATE_RELEASED : was);
	return releases;
}

/* Only a fiber itself makes children: one that has ended and finds no other has none, and gets none. */
static inline bool tree_is_leaf(const ATOMIC(uint32_t) *pending)
{
	return load_acquire(pending) == 1; /* TREE-2 (pairs with TREE-1) */
}

/* A member has ended with all beneath it. True: it was the last of those that `pending` counts. */
static inline bool tree_is_last(ATOMIC(uint32_t) *pending)
{
	return sub_acq_rel(pending, 1u) == 1; /* TREE-1 (pairs with TREE-1 and TREE-2) */
}
