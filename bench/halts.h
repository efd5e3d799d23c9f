/* SPDX-License-Identifier: MIT */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* When the machine itself stood still: a host that did not run a virtual processor, firmware that took it away. A thread of real-time
 * priority on each processor asks to be woken every few milliseconds, and notes when it was not: no thread of ours can keep it
 * from running, nor anybody's without such a priority. What is late then is late by nobody's scheduler. More often would be more
 * exact, but each look also lets the kernel choose anew who runs.                                                            */
#define HALTS_PERIOD_NS 4000000
#define HALTS_LATE_NS 1000000
enum { HALTS_CPUS = 64, HALTS_MOST = 1024 };
enum { HALTS_NOT_YET, HALTS_LOOKS, HALTS_REFUSED }; /* refused: no real-time priority */

struct halts {
	struct halts_of_cpu {
		pthread_t thread;
		struct halts *halts;
		int cpu, count;
		atomic_int look;                          /* HALTS_… */
		int64_t from[HALTS_MOST], to[HALTS_MOST]; /* the last ones, in a ring */
	} cpus[HALTS_CPUS];
	int cpu_count;
	bool anyhow;
	atomic_bool end;
};

/* 0; -EPERM, -ENOMEM: nobody looks, and there is nothing to end. `anyhow`: with ordinary priority if there is no other, so that what other
 * threads keep it from is counted, too; halts_are_certain() tells after the end.                                             */
int halts_begin(struct halts *halts, bool anyhow);
bool halts_are_certain(const struct halts *halts);
void halts_end(struct halts *halts);
/* After the end: how many there were, and the longest; whether there was one in this time. */
int halts_count(const struct halts *halts);
int64_t halts_longest(const struct halts *halts);
bool halts_between(const struct halts *halts, int64_t from_ns, int64_t to_ns);
