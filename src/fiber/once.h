/* SPDX-License-Identifier: MIT */
#pragma once
/* Something that is done once, and one who waits for it.
 *
 *   NEW --wait--> WAITED (with the turn of the wait) --finish--> DONE: he is being woken --> GONE
 *    |  <--gives up--                                                                         ^
 *    +------------------------------------ finish --------------------------------------------+
 *
 * GONE is the last that once_finish() writes, and nobody goes on before he has seen it: then he may free the memory.       */
#include "base/atomic.h"
#include "base/thread.h"
#include "fiber/wait.h"

enum { ONCE_NEW, ONCE_GONE, ONCE_DONE, ONCE_WAITED, ONCE_MASK = 3, ONCE_SHIFT = 2 };

struct once {
	ATOMIC(uint64_t) word;
	struct waiter *who; /* of the wait under way: who waits writes it before he says so */
};

static inline void once_init(struct once *o)
{
	store_relaxed(&o->word, (uint64_t)ONCE_NEW);
	o->who = NULL;
}

/* Any thread. What was written before is seen by who waited. */
static inline void once_finish(struct once *o)
{
	uint64_t word = load_relaxed(&o->word);
	struct wait wait;

	while (!cas_acq_rel(&o->word, &word, /* ONCE-1 (pairs with ONCE-2 and ONCE-3) */
	                    (uint64_t)((word & ONCE_MASK) == ONCE_WAITED ? ONCE_DONE : ONCE_GONE)))
		;
	if ((word & ONCE_MASK) != ONCE_WAITED)
		return;
	wait.who = o->who;
	wait.turn = word >> ONCE_SHIFT;
	hive__wait_wake(wait);
	store_release(&o->word, (uint64_t)ONCE_GONE); /* ONCE-1 */
}

/* Whoever finishes it is about to be through. */
static inline int once_see_end(const struct once *o)
{
	for (uint32_t tries = 0; load_acquire(&o->word) != ONCE_GONE; tries++) /* ONCE-3 (pairs with ONCE-1) */
		hive__thread_give_way(tries);
	return 0;
}

/* 0: done. Else as hive__wait_begin() and hive__wait_end() say, and it is not. */
static inline int once_wait_for(struct once *o, bool shielded, const char *why, int32_t number, int64_t deadline_ns)
{
	uint64_t word = ONCE_NEW, waited;
	struct wait wait;
	int r = shielded ? hive__wait_begin_shielded(&wait, why) : hive__wait_begin(&wait, why);

	if (r < 0)
		return r;
	if (number >= 0)
		hive__wait_number(wait, number);
	o->who = wait.who;
	waited = wait.turn << ONCE_SHIFT | ONCE_WAITED;
	if (!cas_release(&o->word, &word, waited)) { /* ONCE-2 (pairs with ONCE-1) */
		hive__wait_give_up(wait);
		return once_see_end(o);
	}
	r = hive__wait_end(wait, deadline_ns);
	if (r < 0 && cas_relaxed(&o->word, &waited, (uint64_t)ONCE_NEW))
		return r;
	return once_see_end(o);
}

static inline int once_wait(struct once *o, bool shielded, const char *why, int64_t deadline_ns)
{
	return once_wait_for(o, shielded, why, -1, deadline_ns);
}
