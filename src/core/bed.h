/* SPDX-License-Identifier: MIT */
#pragma once
/* Where the owner of a core sleeps before it has anything to hear: on a futex, which is left a quarter of a microsecond sooner than a
 * descriptor. With the first source it moves to the core's descriptors, for good.
 *
 *   BED  A wake that comes before the move, or during it, ends a sleep after it: the waker looks once more whether the bed is still in
 *       use when it has left its token, and who moves looks for a token when the bed is no longer in use.                       */
#include "base/parker.h"

struct bed {
	struct parker parker;
	ATOMIC(bool) used; /* S owner  it sleeps here; never again once it does not */
};

static inline void bed_init(struct bed *b)
{
	parker_init(&b->parker);
	store_relaxed(&b->used, true);
}

/* Owner thread. */
static inline bool bed_is_used(struct bed *b)
{
	return load_relaxed(&b->used);
}

/* Owner thread, where it is used. Returns when woken, after timeout_ns, or for no reason. */
static inline void bed_sleep(struct bed *b, int64_t timeout_ns)
{
	parker_park(&b->parker, timeout_ns);
}

/* Any thread. False: the owner sleeps elsewhere, or will: wake it there. */
static inline bool bed_wake(struct bed *b)
{
	if (!load_relaxed(&b->used))
		return false;
	if (exchange_seq(&b->parker.state, PARKER_TOKEN) == PARKER_WAITING) /* BED-1 (pairs with BED-2) */
		hive__futex_wake(&b->parker.state, 1);
	return load_seq(&b->used); /* BED-3 (pairs with BED-4) */
}

/* Owner thread. True: it was woken, and has not slept since. */
static inline bool bed_leave(struct bed *b)
{
	if (!load_relaxed(&b->used))
		return false;
	exchange_seq(&b->used, false);                     /* BED-4 (pairs with BED-3) */
	return load_seq(&b->parker.state) == PARKER_TOKEN; /* BED-2 (pairs with BED-1) */
}
