/* SPDX-License-Identifier: MIT */
#pragma once
#include "rig.h"
#include "sync.h"
#include <rophive/sync.h>

/* What the scenarios with fibers share. */

/* Runs fn(arg) as a fiber of the hive and waits for it, not for ever. Its result below 0 is an error. The bench's exit code. */
int fibers_run(struct rig *rig, hive_fiber_fn *fn, void *arg);
/* In a fiber. Spawns count of them, fn with arg, arg + step, …, and joins them all; 0 or the first error. handles has room for
 * count.                                                                                                                 */
int fibers_spawn_and_join(hive_fiber_fn *fn, void *arg, size_t step, int32_t count, struct hive_fiber **handles);
