/* SPDX-License-Identifier: MIT */
#pragma once
/* Where one thread sleeps until somebody hands it a token. The token is sticky: given before the wait, it makes
 * that wait return at once, so no order of the two loses it.
 *
 *   EMPTY --park--> WAITING --unpark--> TOKEN --park returns--> EMPTY
 *   EMPTY --unpark--> TOKEN                                                                                     */
#include "base/atomic.h"

#if defined(HIVE_MODEL)
#include "model_parker.h"
#else
#include "base/futex.h"
#endif

struct parker {
	ATOMIC(uint32_t) state;
};

enum { PARKER_EMPTY = 0, PARKER_WAITING = 1, PARKER_TOKEN = 2 };

static inline void parker_init(struct parker *p)
{
	store_relaxed(&p->state, PARKER_EMPTY);
}

/* Owner thread only. True: there was a token, and it was taken. False: timeout_ns have passed, or nothing has happened. */
static inline bool parker_park(struct parker *p, int64_t timeout_ns)
{
	uint32_t empty = PARKER_EMPTY;

	if (cas_relaxed(&p->state, &empty, PARKER_WAITING))
		hive__futex_wait(&p->state, PARKER_WAITING, timeout_ns);
	return exchange_acquire(&p->state, PARKER_EMPTY) == PARKER_TOKEN; /* PARK-1 (pairs with PARK-2) */
}

/* Any thread. Makes the present or the next park return. A system call only if somebody waits. */
static inline void parker_unpark(struct parker *p)
{
	if (exchange_release(&p->state, PARKER_TOKEN) == PARKER_WAITING) /* PARK-2 (pairs with PARK-1) */
		hive__futex_wake(&p->state, 1);
}
