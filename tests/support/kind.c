/* SPDX-License-Identifier: MIT */
#include "support/kind.h"

enum hive_timers test_timers = HIVE_TIMERS_DEFAULT;
