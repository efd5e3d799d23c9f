/* SPDX-License-Identifier: MIT */
#pragma once
#include "record.h"
#include "stats.h"
#include <rophive/hive.h>

/* `hive bench`: what a scenario is given, what it gives back, and the exit codes of the contract. */
enum bench_exit {
	BENCH_OK = 0,
	BENCH_FAILED = 1,  /* the hive or the system said no */
	BENCH_USAGE = 2,   /* bad command line */
	BENCH_TIMEOUT = 3, /* a bounded wait ran out */
	BENCH_WRONG = 4,   /* a count is wrong */
	BENCH_UNKNOWN = 10 /* no such scenario */
};

#define BENCH_PATIENCE_NS HIVE_S(60) /* how long anything may take before it counts as lost */

/* How the server of echo_server is written, and who works on the file of file_read and file_write; the form of a bus. */
enum bench_style {
	BENCH_FIBERS,
	BENCH_OPS,
	BENCH_RAW,
	BENCH_LENT,
	BENCH_SOURCES,
	BENCH_EDGES,
	BENCH_DISPATCHER,
	BENCH_KEY,
	BENCH_HIVE
};

#define BENCH_SERVERS 12 /* foreign ones beside ours */

struct bench_params {
	int32_t threads, producers, consumers, repeat, batch;
	int64_t n, armed;
	double seconds;
	bool pin, no_stealing;
	enum hive_preset preset;
	enum hive_placement placement;
	enum hive_mesh mesh;
	int32_t budget;
	enum hive_timers timers;
	enum hive_order order;
	const struct hive_core_ops *core; /* NULL: the library's choice */
	const char *load;                 /* mixed_ui: only this one; NULL: all */
	bool ui;                          /* the main worker has the manners of a UI */
	bool ordinary;                    /* mixed_ui: but does not ask for real-time priority */
	/* input and output */
	enum bench_style style;
	int32_t connections, idle, depth, deadline_ms;
	int64_t bytes;
	bool serve, alone, cold, splice, files; /* serve: on `port`, nothing is measured */
	int32_t port, server_count;
	const char *servers[BENCH_SERVERS]; /* NAME=COMMAND */
};

typedef int bench_run_fn(const struct bench_params *params, struct record *result);

struct bench_scenario {
	const char *name, *description;
	const char *headline; /* the figure by which repeats are judged */
	int32_t threads;      /* defaults; threads 0: as many as hive_cpus() */
	int32_t producers;
	int64_t n;
	double seconds;
	bench_run_fn *run;
};

extern const struct bench_scenario bench_scenarios[];
extern const size_t bench_scenario_count;
const struct bench_scenario *bench_find(const char *name); /* NULL: there is none */
bool bench_more_is_better(const struct bench_scenario *scenario);
/* False: no hive, or hives of the scenario's own choice; HIVE_TUNE has no effect. */
bool bench_has_parameters(const struct bench_scenario *scenario);

int bench_main(int argc, char **argv);

/* Say on stderr what went wrong; return the exit code for it. */
int bench_failed(const char *what, int error);
int bench_timeout(const char *what, uint64_t expected, uint64_t seen);
int bench_wrong(const char *what, uint64_t expected, uint64_t seen);

/* Fields that many scenarios share. */
void bench_put_rate(struct record *result, double operations, int64_t elapsed_ns);
/* p10_ns, p25_ns, p50_ns, p75_ns, p90_ns, p95_ns, p99_ns, p999_ns, max_ns; `whose` stands in front of each name. */
void bench_put_percentiles(struct record *result, const struct stats *stats);
void bench_put_percentiles_of(struct record *result, const char *whose, const struct stats *stats);
void bench_put_memory(struct record *result);

bench_run_fn bench_post, bench_post_to, bench_spawn_local, bench_steal, bench_ping, bench_ping_hot, bench_floor,
	bench_timer, bench_timer_cancel, bench_delay, bench_mixed, bench_mixed_ui, bench_idle, bench_halts, bench_yield,
	bench_chan, bench_skynet_fiber, bench_spawn_join, bench_fibers_asleep, bench_switch, bench_echo_server,
	bench_file_read, bench_file_write, bench_file_stall, bench_ask, bench_flood, bench_numa_sim, bench_mesh,
	bench_skew, bench_skew_sim, bench_bus, bench_bus_load, bench_bus_overload, bench_fib, bench_skynet,
	bench_leaves, bench_loop, bench_sort;
