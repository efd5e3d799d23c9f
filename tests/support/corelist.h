/* SPDX-License-Identifier: MIT */
#pragma once
/* The cores of this build that this kernel lets us have. */
#include <rophive/core.h>

static const char *const core_names[] = { "epoll", "poll", "uring" };
enum { CORES = sizeof core_names / sizeof *core_names };

/* The first so many. */
static inline int core_count(void)
{
	const struct hive_core_ops *core;
	int n = 0;

	while (n < CORES && hive_core_find(core_names[n], &core) == 0)
		n++;
	return n;
}
