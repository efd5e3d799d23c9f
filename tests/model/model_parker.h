/* SPDX-License-Identifier: MIT */
#pragma once
/* The futex of the model. As in the kernel, comparing and falling asleep are one step, and the comparison sees the
 * word's newest value and orders nothing else. A wait with a time limit may end at any time; in random schedules (in
 * the search for all of them it would cost too much) every wait may end for no reason.                              */
#include <rophive/time.h>

static inline void hive__futex_wait(ATOMIC(uint32_t) *word, uint32_t expected, int64_t timeout_ns)
{
	rl::context &context = rl::ctx();

	context.sched();
	if (word->debug_value() == expected)
		word->wait(context, timeout_ns != HIVE_FOREVER, context.is_random_sched(), $);
}

static inline void hive__futex_wake(ATOMIC(uint32_t) *word, int count)
{
	rl::context &context = rl::ctx();

	context.sched();
	word->wake(context, count, $);
}
