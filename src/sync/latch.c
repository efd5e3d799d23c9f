/* SPDX-License-Identifier: MIT */
#include "sync/latch.h"

#include "base/futex.h"

#include <rophive/time.h>

#if !defined(LATCH_SPINS)
#define LATCH_SPINS 64 /* the explorer spins once */
#endif

/* Longer each time: who holds it does a few things in a row then, and does not lose its cache line after each of them. */
void hive__latch_stay_away(uint32_t tries)
{
	static ATOMIC(uint32_t) nothing; /* nobody changes it, nobody wakes */

	if (tries >= LATCH_SPINS) {
		hive__futex_wait(&nothing, 0, HIVE_US(50));
		return;
	}
	for (uint32_t i = 0; i < (tries < 5 ? 1u << tries : 32u); i++)
		cpu_pause();
}
