/* SPDX-License-Identifier: MIT */
#pragma once
/* The word of a group: how many have been counted and have not ended; whether somebody waits; a latch (base/latch.h) under which one enters
 * the list of those who do.
 *
 *   G1  Everything that ends outside its own worker is counted down here, once. What a worker counts for itself (`local`) is not in it, so the
 *       count is too small by that, negative perhaps. The group is over when both add up to nothing; only the owner can tell, until
 *       he adds his part to the word.
 *   G2  Who ends touches the group for the last time with the step that counts him down: the group stands on the stack of somebody who sees
 *       that, and goes. Only the last one, if somebody waits in the list, takes the latch in the same step; then nobody goes before it is
 *       given back (latch_pass).                                                                                        */
#include "base/latch.h"

#define GROUP_WAITED UINT64_C(2)
#define GROUP_ONE UINT64_C(4)

static inline int64_t group_count(uint64_t word)
{
	return (int64_t)word >> 2;
}

/* So many more. */
static inline void group_add(ATOMIC(uint64_t) *word, uint64_t n)
{
	uint64_t seen = load_relaxed(word);

	for (uint32_t tries = 0;; tries++) {
		if (!(seen & LATCH_TAKEN) && cas_relaxed(word, &seen, seen + n * GROUP_ONE))
			return;
		if (!(seen & LATCH_TAKEN))
			continue;
		hive__latch_stay_away(tries);
		seen = load_relaxed(word);
	}
}

/* One has ended, and what it did is shown. True: it was the last one, and somebody waits: the caller has the latch, and tells them. */
static inline bool group_end_one(ATOMIC(uint64_t) *word, uint64_t *ret_word)
{
	uint64_t seen = load_relaxed(word), next;

	for (uint32_t tries = 0;; tries++) {
		if (seen & LATCH_TAKEN) {
			hive__latch_stay_away(tries);
			seen = load_relaxed(word);
			continue;
		}
		next = seen - GROUP_ONE;
		if ((next & GROUP_WAITED) && group_count(next) == 0) {
			/* GROUP-2 (pairs with GROUP-1): what all others did is shown by who gives the latch back */
			if (cas_acquire(word, &seen, next | LATCH_TAKEN)) {
				*ret_word = next;
				return true;
			}
		} else if (cas_release(word, &seen, next)) { /* GROUP-1 (pairs with GROUP-2, GROUP-3 and LATCH-1) */
			return false;
		}
	}
}

/* Nothing is left, and what it did is seen. `local`: of the owner, who asks; 0 when it belongs to nobody. */
static inline bool group_is_over(ATOMIC(uint64_t) *word, int64_t local)
{
	uint64_t seen = load_acquire(word); /* GROUP-3 (pairs with GROUP-1 and LATCH-2) */

	return !(seen & LATCH_TAKEN) && group_count(seen) + local == 0;
}
