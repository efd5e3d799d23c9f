/* SPDX-License-Identifier: MIT */
#pragma once
#include "bench.h"

/* The loads of mixed_ui beside which frames are kept: all, or the one that --load names. */
int ui_loads_run(const struct bench_params *params, struct record *result);
bool ui_loads_know(const char *name);
