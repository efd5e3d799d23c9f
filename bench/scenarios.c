/* SPDX-License-Identifier: MIT */
#include "bench.h"
#include <string.h>

/* The table of everything that can be measured. Defaults are modest: each takes at most a few seconds. */
const struct bench_scenario bench_scenarios[] = {
	{ "post", "P outside threads submit n one-increment tasks to T workers", "ops_per_s", 2, 1, 2000000, 0,
	  bench_post },
	{ "post_to", "one outside thread posts to one named worker: throughput, then latency one at a time",
	  "ops_per_s", 1, 1, 2000000, 0, bench_post_to },
	{ "mesh", "16 letters for each of T workers go from worker to worker, n hops in all; then a single one",
	  "ops_per_s", 4, 0, 2000000, 0, bench_mesh },
	{ "spawn_local", "one task posts n tasks from inside with hive_post_local", "ops_per_s", 2, 0, 2000000, 0,
	  bench_spawn_local },
	{ "steal", "half of the workers overloaded with local tasks of about 1 us, half idle", "ops_per_s", 2, 0,
	  400000, 0, bench_steal },
	{ "numa_sim",
	  "four simulated sockets, 16 and 64 workers, skewed: tasks stolen, and from another socket, by policy",
	  "near_64_far", 1, 0, 40000, 0, bench_numa_sim },
	{ "skew",
	  "one worker posts n tasks in bursts, a tenth 100 times longer: two choices and stealing, either alone, the pool",
	  "worst_ratio", 8, 0, 10000, 0, bench_skew },
	{ "skew_sim", "the same on 4, 16 and 64 simulated workers, n tasks for each: when the last one ends",
	  "worst_ratio", 1, 0, 288, 0, bench_skew_sim },
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
	{ "mixed_ui", "frames of 60 Hz on the main worker: as mixed, and beside five loads", "late_p99_ns", 0, 1, 0, 3,
	  bench_mixed_ui },
	{ "idle", "T IO and T compute workers with nothing to do: CPU time and context switches", "cpu_percent", 2, 0,
	  0, 5, bench_idle },
	{ "halts", "nothing runs: how often the machine itself stands still for a millisecond or more", "halts", 0, 0,
	  0, 3, bench_halts },
	{ "switch", "from one stack to another and back, alone; a stack from the cache and back", "switch_ns", 1, 0,
	  10000000, 0, bench_switch },
	{ "yield", "two fibers for each of T workers, yielding to each other through the scheduler", "ops_per_s", 1, 0,
	  10000000, 0, bench_yield },
	{ "flood",
	  "local tasks without end on each worker; a letter each millisecond through a pipe to the first: seen how late",
	  "p99_ns", 1, 0, 1000, 0, bench_flood },
	{ "ask", "a fiber asks n times in an inner loop whether its slice is over, and yields when it is", "ns_each", 1,
	  0, 100000000, 0, bench_ask },
	{ "chan", "P fibers send n 8-byte values through a channel of 1024 to C fibers on T workers", "ops_per_s", 1, 1,
	  10000000, 0, bench_chan },
	{ "bus", "P threads submit n messages of 64 bytes to a bus of 1024 with T workers, and wait for room",
	  "ops_per_s", 1, 1, 5000000, 0, bench_bus },
	{ "bus_load", "handlers of 5 us on T workers, submitted at half of what they can do: waits by priority",
	  "high_p99_ns", 1, 1, 0, 2, bench_bus_load },
	{ "bus_overload", "the same at twice what they can do: who is refused, and how long each priority waits",
	  "high_p99_ns", 1, 1, 0, 2, bench_bus_overload },
	{ "skynet_fiber", "tree of fibers, ten children each, n leaves (a power of ten), sums returned", "ops_per_s", 1,
	  0, 1000000, 0, bench_skynet_fiber },
	{ "spawn_join", "a fiber spawns an empty one and joins it, n times", "ns_each", 1, 0, 2000000, 0,
	  bench_spawn_join },
	{ "fibers_asleep", "n fibers asleep at once: time to create, resident bytes each, time to wake all",
	  "wake_all_s", 1, 0, 1000000, 0, bench_fibers_asleep },
	{ "fib", "naive Fibonacci of n on T compute workers, one half forked, the other called: calls of the recursion",
	  "ops_per_s", 1, 0, 32, 0, bench_fib },
	{ "skynet", "tree of tasks on T compute workers, ten children each in a group, n leaves (a power of ten)",
	  "ops_per_s", 1, 0, 1000000, 0, bench_skynet },
	{ "leaves", "a task forks n leaves of 10 and 3 ms; time by the ideal on T compute workers", "ideal_ratio", 2, 0,
	  16, 0, bench_leaves },
	{ "loop",
	  "hive_parallel_for over n numbers on T compute workers; in turns with T threads with a share each, by hand",
	  "hand_ratio", 2, 0, 100000000, 0, bench_loop },
	{ "sort", "hive_parallel_sort of n random 32-bit integers on T compute workers, comparison known and own",
	  "ops_per_s", 2, 0, 10000000, 0, bench_sort },
	{ "echo_server", "TCP echo on the loopback, closed loop from another process; in turns with a raw epoll loop",
	  "raw_ratio", 1, 0, 0, 4, bench_echo_server },
	{ "file_read", "4 KiB at random places of a file, D at a time; in turns with D threads that call pread",
	  "threads_ratio", 0, 0, 0, 3, bench_file_read },
	{ "file_write", "as file_read, with pwrite", "threads_ratio", 0, 0, 0, 3, bench_file_write },
	{ "file_stall",
	  "D fibers read a large file, n bytes at a time: how late a sleep of 100 us on their IO worker ends",
	  "late_max_ns", 1, 0, 262144, 3, bench_file_stall },
};

const size_t bench_scenario_count = sizeof bench_scenarios / sizeof *bench_scenarios;

const struct bench_scenario *bench_find(const char *name)
{
	for (size_t i = 0; i < bench_scenario_count; i++)
		if (strcmp(bench_scenarios[i].name, name) == 0)
			return &bench_scenarios[i];
	return NULL;
}

/* Rates, and ratios of ours by theirs: more is better. Times, shares and counts: less is. */
bool bench_more_is_better(const struct bench_scenario *scenario)
{
	return strcmp(scenario->headline, "ops_per_s") == 0 || strcmp(scenario->headline, "raw_ratio") == 0 ||
	       strcmp(scenario->headline, "threads_ratio") == 0;
}

bool bench_has_parameters(const struct bench_scenario *scenario)
{
	bench_run_fn *const without[] = { bench_floor, bench_switch,   bench_numa_sim,    bench_skew_sim,
		                          bench_bus,   bench_bus_load, bench_bus_overload };
	for (size_t i = 0; i < sizeof without / sizeof *without; i++)
		if (scenario->run == without[i])
			return false;
	return true;
}
