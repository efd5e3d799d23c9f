/* SPDX-License-Identifier: MIT */
#include "sync.h"
#include <sched.h>
#include <sys/prctl.h>

#define AWAIT_SPIN_NS 3000 /* what a caller that expects an answer soon would do */

void sync_sleep_until(int64_t deadline_ns)
{
	struct timespec until = { .tv_sec = deadline_ns / 1000000000, .tv_nsec = deadline_ns % 1000000000 };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
		;
}

void sync_sleep(int64_t delay_ns)
{
	sync_sleep_until(sync_now() + delay_ns);
}

void sync_sleep_exactly(void)
{
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

int64_t sync_await(const _Atomic int64_t *word, int64_t limit_ns)
{
	int64_t begin = sync_now();
	for (;;) {
		int64_t value = atomic_load_explicit(word, memory_order_acquire);
		if (value)
			return value;
		int64_t waited = sync_now() - begin;
		if (waited > limit_ns)
			return 0;
		if (waited < AWAIT_SPIN_NS)
			sync_pause();
		else
			sched_yield();
	}
}
