/* SPDX-License-Identifier: MIT */
#pragma once
/* Is this thread one that nobody has told how to be scheduled? Only such a one is given real-time priority unasked. */
#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "test.h"

static inline bool is_plain(void)
{
	struct rlimit limit;

	CHECK_EQ(getrlimit(RLIMIT_RTTIME, &limit), 0);
	return sched_getscheduler(0) == SCHED_OTHER && getpriority(PRIO_PROCESS, 0) <= 0 &&
	       limit.rlim_cur == RLIM_INFINITY;
}

/* From here on real-time threads may be killed for what they use; not soon. */
static inline void limit_real_time(void)
{
	struct rlimit limit;

	CHECK_EQ(getrlimit(RLIMIT_RTTIME, &limit), 0);
	limit.rlim_cur = limit.rlim_max < 60000000 ? limit.rlim_max : 60000000; /* a minute */
	CHECK_EQ(setrlimit(RLIMIT_RTTIME, &limit), 0);
}
