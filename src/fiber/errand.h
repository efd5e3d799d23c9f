/* SPDX-License-Identifier: MIT */
#pragma once
/* An errand: one wants it, another one runs it, and memory of its own keeps it, for who wants it may give up.
 *
 *   WANTED --take--> TAKEN, who wants it waits for it, and frees it
 *   WANTED --abandon--> ABANDONED, who runs it frees it
 *
 * What comes of one that was taken is handed over by who waits (once.h): this word carries no more than who frees it.       */
#include "base/atomic.h"

enum { ERRAND_WANTED, ERRAND_TAKEN, ERRAND_ABANDONED };

/* Who runs it. False: nobody wants it any more, and it is the caller's; or, where several may run it, another one does. */
static inline bool errand_take(ATOMIC(uint32_t) *errand)
{
	uint32_t wanted = ERRAND_WANTED;

	if (cas_relaxed(errand, &wanted, ERRAND_TAKEN))
		return true;
	(void)load_acquire(errand); /* ERRAND-1 (pairs with ERRAND-2): it is let go of */
	return false;
}

/* Who wants it, as the last that he does with it. False: it was taken, and he waits for it. */
static inline bool errand_abandon(ATOMIC(uint32_t) *errand)
{
	uint32_t wanted = ERRAND_WANTED;

	return cas_release(errand, &wanted, ERRAND_ABANDONED); /* ERRAND-2 (pairs with ERRAND-1) */
}

/* Who runs it, to spare himself the trouble; it may change meanwhile. */
static inline bool errand_is_wanted(const ATOMIC(uint32_t) *errand)
{
	return load_relaxed(errand) == ERRAND_WANTED;
}
