/* SPDX-License-Identifier: MIT */
#pragma once
/* The words of mutex, semaphore and once: what is done without a list of waiters, and what a latch holder may make of the word.
 *
 * Mutex    holder | WAKING | WAITERS | latch        holder 0: free
 *   WAITERS  the list is not empty
 *   WAKING   somebody was taken out of the list to try again, and has not yet: no need to wake another one
 *   Invariant: free and WAITERS, then WAKING. So a free mutex is never forgotten.
 * Semaphore    count << 2 | WAITERS | latch
 *   With WAITERS set all changes are made under the latch: so nobody overtakes.
 * Once    done, or not                                                                                                     */
#include "base/latch.h"

#define WORD_WAITERS UINT64_C(2)
#define MUTEX_WAKING UINT64_C(4)
#define MUTEX_BITS (LATCH_TAKEN | WORD_WAITERS | MUTEX_WAKING)

static inline uint64_t mutex_holder(uint64_t word)
{
	return word & ~MUTEX_BITS;
}

/* False: held, or latched. */
static inline bool mutex_take(ATOMIC(uint64_t) *word, uint64_t self)
{
	uint64_t seen = 0;

	if (cas_acquire(word, &seen, self)) /* MUTEX-1 (pairs with MUTEX-2 and LATCH-2) */
		return true;
	while (!mutex_holder(seen) && !(seen & LATCH_TAKEN))
		if (cas_acquire(word, &seen, seen | self)) /* MUTEX-1 (pairs with MUTEX-2 and LATCH-2) */
			return true;
	return false;
}

enum mutex_leave { MUTEX_LEFT, MUTEX_NOT_HELD, MUTEX_MUST_WAKE };

static inline enum mutex_leave mutex_leave(ATOMIC(uint64_t) *word, uint64_t self)
{
	uint64_t seen = self;

	if (cas_release(word, &seen, 0)) /* MUTEX-2 (pairs with MUTEX-1 and LATCH-1) */
		return MUTEX_LEFT;
	if (mutex_holder(seen) != self)
		return MUTEX_NOT_HELD;
	while (seen & MUTEX_WAKING && !(seen & LATCH_TAKEN))
		if (cas_release(word, &seen, seen & MUTEX_BITS)) /* MUTEX-2 (pairs with MUTEX-1 and LATCH-1) */
			return MUTEX_LEFT;
	return MUTEX_MUST_WAKE;
}

/* Under the latch, by one who will wait if it does not get it; woken: it was taken out of the list to try. True: it has it.
 * ret_word: what to give the latch back with. */
static inline bool mutex_take_latched(uint64_t seen, uint64_t self, bool woken, uint64_t *ret_word)
{
	uint64_t next = woken ? seen & ~MUTEX_WAKING : seen;

	*ret_word = mutex_holder(seen) ? next : next | self;
	return !mutex_holder(seen);
}

#define SEMAPHORE_SHIFT 2
#define SEMAPHORE_BITS UINT64_C(3)

static inline uint64_t semaphore_count(uint64_t word)
{
	return word >> SEMAPHORE_SHIFT;
}

/* False: not as many, or somebody waits, or it is latched. */
static inline bool semaphore_take(ATOMIC(uint64_t) *word, uint32_t n)
{
	uint64_t seen = load_relaxed(word);

	while (!(seen & SEMAPHORE_BITS) && semaphore_count(seen) >= n)
		if (cas_acquire(word, &seen,
		                seen - ((uint64_t)n << SEMAPHORE_SHIFT))) /* SEM-1 (pairs with SEM-2 and LATCH-2) */
			return true;
	return false;
}

enum semaphore_give { SEMAPHORE_GIVEN, SEMAPHORE_FULL, SEMAPHORE_MUST_WAKE };

static inline enum semaphore_give semaphore_give(ATOMIC(uint64_t) *word, uint32_t n)
{
	uint64_t seen = load_relaxed(word);

	for (;;) {
		if (semaphore_count(seen) + n > UINT32_MAX)
			return SEMAPHORE_FULL;
		if (seen & SEMAPHORE_BITS)
			return SEMAPHORE_MUST_WAKE;
		if (cas_release(word, &seen,
		                seen + ((uint64_t)n << SEMAPHORE_SHIFT))) /* SEM-2 (pairs with SEM-1 and LATCH-1) */
			return SEMAPHORE_GIVEN;
	}
}

/* What was done before done_now() is seen. */
static inline bool done_is(ATOMIC(uint32_t) *done)
{
	return load_acquire(done) != 0; /* DONE-1 (pairs with DONE-2) */
}

static inline void done_now(ATOMIC(uint32_t) *done)
{
	store_release(done, 1u); /* DONE-2 (pairs with DONE-1) */
}
