/* SPDX-License-Identifier: MIT */
#pragma once
/* What has become of a fiber, in one word that its end, its joiner and others who wait for it share; and the count by which a tree
 * of fibers knows when all of it has ended.
 *
 *   ENDED     its result is there
 *   JOINING   somebody waits who will take the handle
 *   DONE      its end does nothing to the object any more
 *   RELEASED  nobody has the handle any more
 *
 * The word is a latch (base/latch.h), and so is the lock of the list of those who wait: who waits enters the list and looks for ENDED
 * under it, the end sets ENDED and empties the list under it. Giving the latch back is a store, the last that one does with the
 * object; so whoever sets the second of DONE and RELEASED gives the stack back.                                              */
#include "base/latch.h"

#define FATE_ENDED UINT64_C(2)
#define FATE_DONE UINT64_C(4)
#define FATE_RELEASED UINT64_C(8)
#define FATE_JOINING UINT64_C(16)

static inline bool fate_has_ended(const ATOMIC(uint64_t) *fate)
{
	return load_acquire(fate) & FATE_ENDED; /* FATE-1 (pairs with LATCH-2) */
}

/* Sets bits; what it was before. */
static inline uint64_t fate_set(ATOMIC(uint64_t) *fate, uint64_t bits)
{
	uint64_t was = latch_take(fate);

	latch_give(fate, was | bits);
	return was;
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
