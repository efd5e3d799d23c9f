/* SPDX-License-Identifier: MIT */
#pragma once
/* A thief that saw something and came too late looks again at once, and so do all the others: each look takes cache lines away from
 * those that work. So it keeps off for a while that doubles with each such failure in a row, as far as a limit, and of which the
 * half is drawn, so that thieves who failed together do not come back together.                                             */
#include "base/rng.h"
#include "sched/tune.h"

/* Pauses of the CPU before the next round, after so many failures in a row (at least one). */
static inline uint32_t backoff_pauses(uint32_t failures, uint64_t random)
{
	uint32_t most = TUNE_BACKOFF_LEAST;

	while (--failures > 0 && most < TUNE_BACKOFF_MOST)
		most *= 2;
	return most / 2 + rng_below(random, most / 2 + 1);
}
