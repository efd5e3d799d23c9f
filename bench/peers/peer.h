/* SPDX-License-Identifier: MIT */
#pragma once
#include "bench.h"
#include "ping.h"
#include "sync.h"
#include "tally.h"

/* What the peers in C share. They are linked with the measuring side of `hive bench` itself (stats.c, sync.c, tally.c, ping.c,
 * record.c), so that clock, habits of the poster and percentiles are the same by construction; nothing of the library is. Here are
 * the rest: command line, outcome, and what the scenarios of hive have in rig.c, hogs.c and scenario_timer.c, without a hive. */
struct peer_scenario {
	const char *name;
	int32_t threads; /* defaults; threads 0: as many as there are CPUs */
	int32_t producers;
	int64_t n;
	double seconds;
	bench_run_fn *run;
};

/* The whole of main(): flags, the scenario, one JSON line. The exit code. */
int peer_main(const char *peer, const struct peer_scenario *scenarios, size_t count, int argc, char **argv);

/* Ends the process: a library that says no has no sample to give. `bad` is any condition that must not hold. */
void peer_must_not(bool bad, const char *what);

/* Names are PREFIXp50_ns and so on; prefix "" or "e2e_". */
void peer_put_percentiles(struct record *result, const char *prefix, const struct stats *stats);

/* Of all threads, user and system. */
double peer_cpu_seconds(void);

/* Delays of timers: the same in every run and in every peer, 1 to 1000 ms. */
int64_t peer_next_delay(uint64_t *seed);

/* Spins until this thread has used so much CPU time. */
void peer_burn(int64_t cpu_ns);
