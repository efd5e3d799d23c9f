/* SPDX-License-Identifier: MIT */
#pragma once
/* The word of a coalescing post: nobody's, or one notice that is on its way.
 *
 *   NULL --post: hang--> notice --owner: run or stop: take--> NULL
 *                           \--poster: refused: withdraw----> NULL
 *
 * Who finds a notice need do nothing but write to the word as well (join), so that who takes it sees what he wrote before: all writers are in one chain of
 * read-modify-writes. The notice is in memory of its own, for it may arrive when its update is gone; then the owner has stopped it, and said so
 * in the notice.
 *
 * Race: the queue refuses the notice, and its poster withdraws it, while the owner stops it. One of the two takes it out of the word. If that is
 * the owner, both have a hand in it: each says so, and who is second frees it. One that was accepted is freed by who runs it.    */
#include "base/atomic.h"

enum { NOTICE_STOPPED = 1, NOTICE_REFUSED = 2 }; /* its fate */

/* Any thread. True: one is on its way, and who takes it sees what the caller wrote before. */
static inline bool notice_join(ATOMIC(void *) *word)
{
	void *notice = load_relaxed(word);

	while (notice)
		if (cas_release(word, &notice, notice)) /* NOTICE-1 (pairs with NOTICE-3) */
			return true;
	return false;
}

/* Any thread. False: somebody was faster, and this one is not needed. */
static inline bool notice_hang(ATOMIC(void *) *word, void *notice)
{
	void *none = NULL;

	return cas_release(word, &none, notice); /* NOTICE-2 (pairs with NOTICE-3) */
}

/* The owner. What is on its way; NULL: nothing. */
static inline void *notice_take(ATOMIC(void *) *word)
{
	return exchange_acquire(word, (void *)NULL); /* NOTICE-3 (pairs with NOTICE-1 and NOTICE-2) */
}

/* The poster of one that was refused. True: it is his alone. */
static inline bool notice_withdraw(ATOMIC(void *) *word, void *notice)
{
	return cas_relaxed(word, &notice, (void *)NULL);
}

/* The owner who has stopped one, the poster of one that was refused and that he could not withdraw. True: the other has been here, and the
 * caller frees it.                                                                                                       */
static inline bool notice_part(ATOMIC(uint32_t) *fate, uint32_t as)
{
	return or_acq_rel(fate, as) != 0; /* NOTICE-4 (pairs with NOTICE-4) */
}
