/* SPDX-License-Identifier: MIT */
#pragma once
/* The pair of barriers for the model checker: two full ones, which is what they are together. */
static inline bool hive__barrier_open(void)
{
	return true;
}

#define light_barrier() rl::atomic_thread_fence(rl::mo_seq_cst, $)
#define heavy_barrier() rl::atomic_thread_fence(rl::mo_seq_cst, $)
