/* SPDX-License-Identifier: MIT */
#include "bench.h"

/* The table of everything that can be measured. Defaults are modest: each takes at most a few seconds. */
const struct bench_scenario bench_scenarios[] = {
	{ "post", "P outside threads submit n one-increment tasks to T workers", "ops_per_s", 2, 1, 2000000, 0,
	  bench_post },
	{ "post_to", "one outside thread posts to one named worker: throughput, then latency one at a time",
	  "ops_per_s", 1, 1, 2000000, 0, bench_post_to },
	{ "spawn_local", "one task posts n tasks from inside with hive_post_local", "ops_per_s", 2, 0, 2000000, 0,
	  bench_spawn_local },
	{ "steal", "half of the workers overloaded with local tasks of about 1 us, half idle", "ops_per_s", 2, 0,
	  400000, 0, bench_steal },
	{ "ping", "submit to start of run, one at a time, 100 us idle between; beside the raw eventfd wake", "p50_ns",
	  1, 1, 5000, 0, bench_ping },
	{ "ping_hot", "submit to start of run, one at a time, no idle between", "p50_ns", 1, 1, 200000, 0,
	  bench_ping_hot },
	{ "eventfd_floor", "the wake alone: a thread blocked in epoll_wait, an eventfd written every 100 us", "p50_ns",
	  1, 1, 5000, 0, bench_floor },
	{ "timer", "n timers over 1 to 1000 ms, all outstanding: insert rate, lateness, CPU seconds", "ops_per_s", 1, 0,
	  100000, 0, bench_timer },
	{ "timer_cancel", "10,000 armed far timers; cancel the oldest, arm a new one", "ops_per_s", 1, 0, 5000000, 0,
	  bench_timer_cancel },
	{ "delay", "delayed posts of 1, 5 and 16 ms, n of each: how late they run", "p50_ns", 1, 1, 100, 0,
	  bench_delay },
	{ "mixed", "2 ms hogs on T compute workers, 1,000 tiny tasks a second from outside", "p99_ns", 0, 1, 0, 3,
	  bench_mixed },
	{ "mixed_ui", "as mixed, with a 60 Hz frame timer on the main worker", "late_p99_ns", 0, 1, 0, 3,
	  bench_mixed_ui },
	{ "idle", "T IO and T compute workers with nothing to do: CPU time and context switches", "cpu_percent", 2, 0,
	  0, 5, bench_idle },
	{ "yield", "two fibers for each of T workers, yielding to each other through the scheduler", "ops_per_s", 1, 0,
	  10000000, 0, bench_yield },
	{ "chan", "P fibers send n 8-byte values through a channel of 1024 to C fibers on T workers", "ops_per_s", 1, 1,
	  10000000, 0, bench_chan },
	{ "skynet_fiber", "tree of fibers, ten children each, n leaves (a power of ten), sums returned", "ops_per_s", 1,
	  0, 1000000, 0, bench_skynet_fiber },
	{ "spawn_join", "a fiber spawns an empty one and joins it, n times", "ns_each", 1, 0, 2000000, 0,
	  bench_spawn_join },
	{ "fibers_asleep", "n fibers asleep at once: time to create, resident bytes each, time to wake all",
	  "wake_all_s", 1, 0, 1000000, 0, bench_fibers_asleep },
};

const size_t bench_scenario_count = sizeof bench_scenarios / sizeof *bench_scenarios;
