/* SPDX-License-Identifier: MIT */
#pragma once
/* Something to wait for. Who changes what others wait for does so by a seq_cst write, and then asks whom to tell:
 *
 *     if (event_tells(e)) wake all who wait at e->sequence
 *
 * and who waits:
 *
 *     event_enter(e);
 *     do seen = event_look(e), and look; while (there is nothing) wait until e->sequence is not `seen` any more;
 *     event_leave(e);
 *
 *   E1  Who waits says so before he looks; who changes looks for waiters afterwards. One of them sees the other.
 *   E2  `told` keeps those who change from calling the system again before somebody has looked: each look takes it back first, so what it
 *       did not see is told anew.                                                                                             */
#include "base/atomic.h"

struct event {
	ATOMIC(uint32_t) sequence; /* A  a futex */
	ATOMIC(uint32_t) waiters;  /* A */
	ATOMIC(uint32_t) told;     /* A */
};

static inline void event_init(struct event *e)
{
	store_relaxed(&e->sequence, 0u);
	store_relaxed(&e->waiters, 0u);
	store_relaxed(&e->told, 0u);
}

static inline void event_enter(struct event *e)
{
	(void)add_seq(&e->waiters, 1u); /* EVENT-1 (pairs with EVENT-2) */
}

static inline uint32_t event_look(struct event *e)
{
	uint32_t seen = load_seq(&e->sequence); /* EVENT-5 (pairs with EVENT-6) */

	(void)exchange_seq(&e->told, 0u); /* EVENT-3 (pairs with EVENT-4) */
	return seen;
}

static inline void event_leave(struct event *e)
{
	(void)sub_relaxed(&e->waiters, 1u);
}

/* Somebody waits whom nobody has told since he looked. A look without a write: who tells often seldom finds one. */
static inline bool event_is_awaited(struct event *e)
{
	return (load_seq(&e->waiters) != 0u) &&
	       (load_seq(&e->told) == 0u); /* EVENT-2 (pairs with EVENT-1), EVENT-4 (pairs with EVENT-3) */
}

/* True: the caller wakes them. Of several who tell one does: the exchange needs no order, since a look that takes back what it wrote comes
 * after EVENT-4 in the one order of all.                                                                                   */
static inline bool event_tells(struct event *e)
{
	bool tells = event_is_awaited(e) && (exchange_relaxed(&e->told, 1u) == 0u);

	if (tells) {
		(void)add_seq(&e->sequence, 1u); /* EVENT-6 (pairs with EVENT-5) */
	}
	return tells;
}
