/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <time.h>

int64_t hive__clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * HIVE_S(1) + ts.tv_nsec;
}
