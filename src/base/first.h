/* SPDX-License-Identifier: MIT */
#pragma once
/* Something that whoever needs it first makes, and that stays for all. Two may make it; one of them is kept. */
#include "base/atomic.h"

/* NULL: there is none yet. */
static inline void *first_seen(const ATOMIC(void *) *at)
{
	return load_acquire(at); /* FIRST-1 (pairs with FIRST-2) */
}

/* The one that is kept. If that is not `made`, somebody was faster, and the caller gives his back. */
static inline void *first_kept(ATOMIC(void *) *at, void *made)
{
	void *kept = NULL;

	return cas_acq_rel(at, &kept, made) ? made : kept; /* FIRST-2 (pairs with FIRST-1 and FIRST-2) */
}
