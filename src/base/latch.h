/* SPDX-License-Identifier: MIT */
#pragma once
/* A lock that is one bit of an object's word, for a few instructions: as long as it is set, its holder alone changes the word. So
 * taking it is one compare-and-swap that brings the word along, and giving it back is a plain store that publishes the new word:
 * half of what a lock costs that may have sleepers. And the store is the last that its holder does with the object.
 *
 * Who finds it taken spins, then naps for a moment and looks again: nobody has to be woken. Naps are for holders that were
 * preempted; a real-time thread does not spin against the thread that it waits for.
 *
 * Who was woken out of an object passes through (latch_pass): then the one who woke it has done everything it does under the
 * latch, what it copies after its claim is seen, and the object may go.                                                       */
#include "base/atomic.h"

#if defined(HIVE_MODEL)
#include "model_latch.h"
#else
/* Any thread. tries: how often it was found taken. */
void hive__latch_stay_away(uint32_t tries);
#endif

#define LATCH_TAKEN UINT64_C(1)

/* The word as it was. */
static inline uint64_t latch_take(ATOMIC(uint64_t) *word)
{
	uint64_t seen = load_relaxed(word);

	for (uint32_t tries = 0;; tries++) {
		/* LATCH-1 (pairs with LATCH-2, MUTEX-2, SEM-2 and GROUP-1) */
		if (!(seen & LATCH_TAKEN) && cas_acquire(word, &seen, seen | LATCH_TAKEN))
			return seen;
		hive__latch_stay_away(tries);
		seen = load_relaxed(word);
	}
}

/* The same while those bits of the word are as expected. False: they are others. */
static inline bool latch_take_while(ATOMIC(uint64_t) *word, uint64_t mask, uint64_t bits, uint64_t *ret_word)
{
	uint64_t seen = load_relaxed(word);

	for (uint32_t tries = 0; (seen & mask) == bits; tries++) {
		/* LATCH-1 (pairs with LATCH-2, MUTEX-2, SEM-2 and GROUP-1) */
		if (!(seen & LATCH_TAKEN) && cas_acquire(word, &seen, seen | LATCH_TAKEN)) {
			*ret_word = seen;
			return true;
		}
		hive__latch_stay_away(tries);
		seen = load_relaxed(word);
	}
	return false;
}

/* The same where nobody is expected and nothing is set. False: somebody is inside, or the word is not 0. */
static inline bool latch_take_zero(ATOMIC(uint64_t) *word)
{
	uint64_t zero = 0;

	return cas_acquire(word, &zero, LATCH_TAKEN); /* LATCH-1 (pairs with LATCH-2, MUTEX-2, SEM-2 and GROUP-1) */
}

static inline void latch_give(ATOMIC(uint64_t) *word, uint64_t next)
{
	store_release(word, next); /* LATCH-2 (pairs with LATCH-1, LATCH-3, MUTEX-1, SEM-1, FATE-1 and GROUP-3) */
}

static inline void latch_pass(ATOMIC(uint64_t) *word)
{
	for (uint32_t tries = 0; load_acquire(word) & LATCH_TAKEN; tries++) /* LATCH-3 (pairs with LATCH-2) */
		hive__latch_stay_away(tries);
}
