/* SPDX-License-Identifier: MIT */
#pragma once
#include "bench.h"

/* `hive bench --preset each`. */
enum { PRESETS = 4 };
extern const char *const presets_names[PRESETS]; /* by enum hive_preset */

void presets_head(int32_t repeats);
/* A row; nothing for a scenario that has no hive of the user's choice. The bench's exit code. */
int presets_compare(const struct bench_scenario *scenario, const struct bench_params *params, bool in_process);
