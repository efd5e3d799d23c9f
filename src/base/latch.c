/* SPDX-License-Identifier: MIT */
#include "base/latch.h"

#include "base/futex.h"

#include <rophive/time.h>

#if !defined(LATCH_SPINS)
#define LATCH_SPINS 16 /* the explorer spins once */
#endif

/* Long, and longer each time (0.4 µs to 3 µs): meanwhile who holds it takes and gives it a hundred times, with its cache lines at
 * hand. Two that come back at once take the lines from each other for every step: a channel between two workers moves a third
 * then. */
void hive__latch_stay_away(uint32_t tries)
{
	static ATOMIC(uint32_t) nothing; /* nobody changes it, nobody wakes */

	if (tries >= LATCH_SPINS) {
		hive__futex_wait(&nothing, 0, HIVE_US(50));
		return;
	}
	for (uint32_t i = 0; i < 16u << (tries < 3 ? tries : 3); i++)
		cpu_pause();
}
