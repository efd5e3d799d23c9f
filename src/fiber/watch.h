/* SPDX-License-Identifier: MIT */
#pragma once
/* The word of a watch (<rophive/cancel.h>), which who fires the token and who stops the watch share.
 *
 *   IDLE --start--> STARTED --who fires--> CALLING --fn has returned, or stops it itself--> IDLE
 *                      |
 *                      +--stop--> STOPPING --it is out of the token's list--> IDLE
 *
 * As long as it is STARTED or STOPPING it counts under its token, which therefore stays. Who fires takes it out of the list, under the token's
 * latch, and then moves the word; if stop was faster he leaves it alone, and who stops needs that latch before he goes on. From
 * CALLING on the word alone is asked: the token may be gone by the time somebody stops the watch, and the last that who calls does
 * with a watch is to write IDLE, unless fn did so itself.                                                               */
#include "base/atomic.h"
#include "base/latch.h"

/* Magic words: memory that was never initialised is none of them. */
enum { WATCH_IDLE = 0x77617430, WATCH_STARTED = 0x77617431, WATCH_CALLING = 0x77617432, WATCH_STOPPING = 0x77617433 };

enum watch_stopped {
	WATCH_IS_IDLE,  /* or was called, and fn has returned: what it did is seen */
	WATCH_IS_OURS,  /* STOPPING: the caller takes it out of the list, and says watch_idle() */
	WATCH_IS_INSIDE /* the caller is in fn: who calls shall be told, then watch_idle() */
};

static inline bool watch_is_valid(const ATOMIC(uint32_t) *state)
{
	return load_relaxed(state) - WATCH_IDLE <= WATCH_STOPPING - WATCH_IDLE;
}

/* Its owner. */
static inline bool watch_is_idle(const ATOMIC(uint32_t) *state)
{
	return load_relaxed(state) == WATCH_IDLE;
}

/* Who starts it, before he takes the token's latch, which has the order. */
static inline void watch_begin(ATOMIC(uint32_t) *state)
{
	store_relaxed(state, (uint32_t)WATCH_STARTED);
}

/* Who fires, under the token's latch, with his own name in the watch. False: it is being stopped. */
static inline bool watch_claim(ATOMIC(uint32_t) *state)
{
	uint32_t started = WATCH_STARTED;

	return cas_release(state, &started, (uint32_t)WATCH_CALLING); /* WATCH-1 (pairs with WATCH-3) */
}

/* Who has called fn, or has taken the watch out of the list, or is inside fn: the last that is done with it. */
static inline void watch_idle(ATOMIC(uint32_t) *state)
{
	store_release(state, (uint32_t)WATCH_IDLE); /* WATCH-2 (pairs with WATCH-3) */
}

/* Who stops it; `self` and what who calls wrote tell whether that is the same one. */
static inline enum watch_stopped watch_stop(ATOMIC(uint32_t) *state, const ATOMIC(void *) *caller, const void *self)
{
	for (uint32_t tries = 0;; tries++) {
		uint32_t seen = load_acquire(state); /* WATCH-3 (pairs with WATCH-1 and WATCH-2) */

		if (seen == WATCH_IDLE)
			return WATCH_IS_IDLE;
		if (seen == WATCH_CALLING && load_relaxed(caller) == self)
			return WATCH_IS_INSIDE;
		if (seen != WATCH_STARTED)
			hive__latch_stay_away(tries);
		else if (cas_relaxed(state, &seen, (uint32_t)WATCH_STOPPING))
			return WATCH_IS_OURS;
	}
}
