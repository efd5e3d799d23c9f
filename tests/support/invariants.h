/* SPDX-License-Identifier: MIT */
#pragma once
/* What is true of a hive at every moment, whoever is in the middle of whatever, and what must be true when nobody is. For
 * worlds on one thread: the explorer, the simulator, the fake world.                                                     */
#include "sched/internal.h"

/* NULL, or what is wrong. At any step. */
const char *invariants_always(struct hive *hive);
/* NULL, or what is wrong. When every worker sleeps and nobody is inside a call. */
const char *invariants_quiet(struct hive *hive);
