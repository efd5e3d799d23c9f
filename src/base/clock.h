/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdint.h>

#include <rophive/time.h>

/* Any thread. CLOCK_MONOTONIC in nanoseconds. */
int64_t hive__clock_now(void);

/* a + b for b >= 0, stopping at HIVE_FOREVER. */
static inline int64_t time_add(int64_t a, int64_t b)
{
	return a > HIVE_FOREVER - b ? HIVE_FOREVER : a + b;
}
