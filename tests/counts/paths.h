/* SPDX-License-Identifier: MIT */
#pragma once
#include "world.h"

/* One hot path. before() and after() are not counted; run() is: about n operations, and it says how many. All three are called twice, in one
 * world.                                                                                                                      */
struct path {
	const char *name;
	int32_t io_workers, compute_workers; /* 0 IO workers: 1 */
	enum hive_timers timers;
	int32_t local_capacity, local_budget;
	void (*open)(struct world *w); /* once, before all; but for run() each may be NULL */
	void (*before)(struct world *w, uint64_t n);
	uint64_t (*run)(struct world *w, uint64_t n);
	void (*after)(struct world *w, uint64_t n);
	void (*close)(struct world *w);
};

extern const struct path task_paths[], fiber_paths[]; /* up to one without a name */
