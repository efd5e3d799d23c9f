/* SPDX-License-Identifier: MIT */
#pragma once
#include "bench.h"

/* The hive under test, built from the command line, and its end: stopped, joined, its books checked. */
#define RIG_IO_MAX 256

struct rig {
	struct hive *hive;
	uint32_t io[RIG_IO_MAX]; /* ids of the IO workers, the main one first */
	int32_t io_count;
};

/* All workers run on return, each on its own thread. The bench's exit code. */
int rig_open(struct rig *rig, const struct bench_params *params, int32_t io_workers, int32_t compute_workers);
/* Drains, joins, destroys. `code` is what the scenario came to so far; an error of the end never hides it. */
int rig_close(struct rig *rig, int code);
