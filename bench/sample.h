/* SPDX-License-Identifier: MIT */
#pragma once
#include "bench.h"

/* One run of one scenario in a process of its own: memory, threads and caches are fresh, and a crash or a hang costs
 * that sample only. in_process: right here, for debuggers and profilers.                                            */
int sample_take(const struct bench_scenario *scenario, const struct bench_params *params, int32_t repeat,
                bool in_process, struct record *ret_result);
