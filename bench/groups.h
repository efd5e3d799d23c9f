/* SPDX-License-Identifier: MIT */
#pragma once
#include "rig.h"
#include "sync.h"

/* What the scenarios with groups share: T compute workers, and one task that is everything. */
#define GROUPS_TURNS 5

/* One IO worker, which has nothing to do, and params->threads compute workers. */
int groups_open(struct rig *rig, const struct bench_params *params);
/* Runs fn(arg) on a compute worker and waits for it. Returns how long that took, in ns. */
int64_t groups_time(const struct rig *rig, hive_fn *fn, void *arg);
/* The middle one of so many times. Sorts them. */
int64_t groups_median(int64_t *times_ns, size_t count);
