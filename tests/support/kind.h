/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/worker.h>

/* How workers of the fake and of the real world keep their timers if their options do not say. */
extern enum hive_timers test_timers;
