/* SPDX-License-Identifier: MIT */
#pragma once
/* Who finds a latch taken lets others run. */
static inline void hive__latch_stay_away(uint32_t tries)
{
	(void)tries;
	rl::yield(1, $);
}
