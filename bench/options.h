/* SPDX-License-Identifier: MIT */
#pragma once
#include "bench.h"

/* The command line of `hive bench`. */
struct options {
	struct bench_params params; /* 0: the scenario's default */
	const char *scenario;
	bool csv, list, all, env, in_process, help, each_preset;
};

/* The bench's exit code; what is wrong has been said on stderr. */
int options_parse(struct options *options, int argc, char **argv);
void options_help(void);
