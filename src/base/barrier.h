/* SPDX-License-Identifier: MIT */
#pragma once
/* A pair of barriers of which one side pays for both. Who does the same thing millions of times has the light one, which only binds the compiler; who
 * does the other thing now and then has the heavy one, which makes each processor that runs a thread of this process pass a full barrier. For
 * any two of them it is as if both were full ones: what stands before one of them is seen after the other, or the other way round.  */
#include "base/atomic.h"

#if defined(HIVE_MODEL)
#include "model_barrier.h"
#else

/* Once, before the first heavy one. False: the system has none. */
bool hive__barrier_open(void);
void hive__barrier_all(void);

#define light_barrier() atomic_signal_fence(memory_order_seq_cst)
#define heavy_barrier() hive__barrier_all()
#endif
