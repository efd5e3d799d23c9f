/* SPDX-License-Identifier: MIT */
#pragma once
/* What is true of a hive at every moment, whoever is in the middle of whatever, and what must be true when nobody is. For
 * worlds on one thread: the explorer, the simulator, the fake world.                                                     */
#include "sched/internal.h"

#include <rophive/sync.h>

/* NULL, or what is wrong. At any step. */
const char *invariants_always(struct hive *hive);
/* NULL, or what is wrong. When every worker sleeps and nobody is inside a call. */
const char *invariants_quiet(struct hive *hive);
/* The same for what fibers and threads share. At any step. */
const char *invariants_mutex(struct hive_mutex *mutex);
const char *invariants_cond(struct hive_cond *cond);
const char *invariants_semaphore(struct hive_semaphore *semaphore);
const char *invariants_channel(struct hive_channel *channel);
