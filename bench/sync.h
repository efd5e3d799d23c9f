/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

/* Clock, atomics and waiting of the measuring side. It has its own clock on purpose: a bench that asks the hive for
 * the time could not see the hive's clock being wrong.                                                            */
#define SYNC_LINE 64 /* bytes that two threads should not share */

static inline int64_t sync_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* One hint to the CPU that this is a spin. */
static inline void sync_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void sync_sleep_until(int64_t deadline_ns);
void sync_sleep(int64_t delay_ns);
/* Kernel timer slack of this thread to its least, so that a poster wakes when it meant to. After the hive's threads
 * were started: a new thread inherits the slack of its creator, and theirs is the library's business.              */
void sync_sleep_exactly(void);
/* The habit of the poster: about 3 µs of spinning, then sched_yield, until *word is not 0 or limit_ns have passed.
 * Returns the word, 0 when the time ran out.                                                                      */
int64_t sync_await(const _Atomic int64_t *word, int64_t limit_ns);
