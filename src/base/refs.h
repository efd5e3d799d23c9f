/* SPDX-License-Identifier: MIT */
#pragma once
/* Counted references: who gives the last one back sees all that the others did before they gave back theirs. */
#include "base/atomic.h"

/* Who has one, or is kept from losing the last one. */
static inline void refs_add(ATOMIC(uint32_t) *refs)
{
	add_relaxed(refs, 1u);
}

/* True: it was the last one. */
static inline bool refs_drop(ATOMIC(uint32_t) *refs)
{
	return sub_acq_rel(refs, 1u) == 1; /* REFS-1 (pairs with REFS-1 and REFS-2) */
}

/* There are no others than those that the caller knows of, and what others did is seen. */
static inline bool refs_are(const ATOMIC(uint32_t) *refs, uint32_t known)
{
	return load_acquire(refs) == known; /* REFS-2 (pairs with REFS-1) */
}
