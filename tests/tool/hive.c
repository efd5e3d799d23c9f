/* SPDX-License-Identifier: MIT */
/* The hive command from outside: what it prints. The figures themselves are nobody's business here; that they are there is. */
#include <dirent.h>
#include <stdio.h>

#include "support/tool.h"

/* A list of keys, with spaces between, that must be there as numbers. */
static void check_numbers(const char *line, const char *keys)
{
	char copy[512], *rest = NULL;

	snprintf(copy, sizeof copy, "%s", keys);
	for (char *key = strtok_r(copy, " ", &rest); key; key = strtok_r(NULL, " ", &rest)) {
		const char *value = json_find(line, key);

		if (!value || (*value != '-' && (*value < '0' || *value > '9')))
			test_fail(__FILE__, __LINE__, "no number \"%s\" in %s", key, line);
	}
}

/* producers post increments: operations per second. */
TEST(bench_post_reports_throughput)
{
	const char *line;

	if (!find_tool())
		return;
	line = sample("post", "--n 2000 --threads 2 --producers 3 --batch 5");
	check_numbers(line, "ops_per_s");
	CHECK(json_number(line, "ops_per_s", 0) > 0);
	CHECK_EQ(json_number(line, "threads", 0), 2);
	CHECK_EQ(json_number(line, "producers", 0), 3);
	CHECK_EQ(json_number(line, "n", 0), 2000);
	CHECK_EQ(json_number(line, "batch", 0), 5);
}

/* directed posts: throughput, and latency as p50, p95 and p99. */
TEST(bench_post_to_reports_latency)
{
	const char *line;

	if (!find_tool())
		return;
	line = sample("post_to", "--n 500");
	check_numbers(line, "ops_per_s p10_ns p25_ns p50_ns p75_ns p90_ns p95_ns p99_ns p999_ns max_ns");
	CHECK(json_number(line, "p50_ns", -1) <= json_number(line, "p95_ns", -1));
	CHECK(json_number(line, "p95_ns", -1) <= json_number(line, "p99_ns", -1));
	CHECK(json_number(line, "p10_ns", -1) <= json_number(line, "p25_ns", -1));
	CHECK(json_number(line, "p75_ns", -1) <= json_number(line, "p90_ns", -1));
	CHECK(json_number(line, "p999_ns", -1) <= json_number(line, "max_ns", -1));
	CHECK(json_number(line, "p50_ns", -1) > 0);
}

/* delays of 1, 5 and 16 ms: how late, with its spread, and never early. */
TEST(bench_delay_reports_lateness_and_jitter)
{
	const char *line;

	if (!find_tool())
		return;
	line = sample("delay", "--n 3");
	check_numbers(line,
	              "p50_1ms_ns p95_1ms_ns p99_1ms_ns stdev_1ms_ns p50_5ms_ns p95_5ms_ns p99_5ms_ns stdev_5ms_ns "
	              "p50_16ms_ns p95_16ms_ns p99_16ms_ns stdev_16ms_ns");
	CHECK(json_number(line, "min_1ms_ns", -1) >= 0);
	CHECK(json_number(line, "min_5ms_ns", -1) >= 0);
	CHECK(json_number(line, "min_16ms_ns", -1) >= 0);
}

/* some overloaded, others idle: throughput, and the share that was stolen. */
TEST(bench_steal_reports_the_share_of_stolen_tasks)
{
	const char *line;

	if (!find_tool())
		return;
	/* A fifth of a second at least, so that the idle one is there even on a single CPU. */
	line = sample("steal", "--n 200000 --threads 2");
	check_numbers(line, "ops_per_s stolen_share steals spills");
	CHECK(json_number(line, "steals", 0) > 0);
	CHECK(json_number(line, "stolen_share", 0) > 0 && json_number(line, "stolen_share", 2) < 1);
}

/* micro and compute load together: the latency of tiny tasks, and of the frames of the main worker. */
TEST(bench_mixed_reports_the_latency_under_full_load)
{
	const char *line;

	if (!find_tool())
		return;
	line = sample("mixed", "--seconds 0.1 --threads 1");
	check_numbers(line, "p50_ns p99_ns p999_ns e2e_p50_ns e2e_p90_ns e2e_p99_ns e2e_p999_ns hogs_per_s");
	/* A tenth of a second may be too short for one on a full machine. */
	CHECK(json_number(line, "hogs_per_s", -1) >= 0);
	line = sample("mixed_ui", "--seconds 0.1 --threads 1");
	check_numbers(line, "frames frames_on_time late_p50_ns late_p99_ns hogs_per_s p99_ns");
	CHECK(json_number(line, "frames", 0) > 0);
	check_numbers(line, "compute_frames_on_time timers_frames_on_time posts_frames_on_time block_frames_on_time");
	check_numbers(line, "updates_frames_on_time updates_late_p99_ns updates_missed updates_per_run");
	line = sample("mixed_ui", "--seconds 0.1 --load updates");
	CHECK(json_number(line, "updates_per_run", 0) >= 1);
	CHECK(strstr(line, "compute_frames") == NULL);
}

/* the other scenarios keep the contract as well. */
TEST(bench_runs_each_scenario_that_it_lists)
{
	static const struct {
		const char *name, *keys;
	} more[] = {
		{ "spawn_local", "ops_per_s" },
		{ "ping", "p25_ns p50_ns p95_ns p99_ns p999_ns floor_p25_ns floor_p50_ns floor_p99_ns ratio" },
		{ "ping_hot", "p50_ns p95_ns p99_ns" },
		{ "eventfd_floor", "p50_ns p99_ns" },
		{ "timer", "ops_per_s p50_ns p99_ns max_ns min_ns cpu_s" },
		{ "timer_cancel", "ops_per_s armed" },
		{ "switch", "ops_per_s switch_ns enter_switch_ns stack_get_put_ns" },
		{ "idle", "cpu_s cpu_percent context_switches" },
		{ "halts", "halts per_s real_time max_ns" },
		{ "numa_sim", "random_16_far busiest_16_far near_16_far random_64_steals near_64_steals near_64_far" },
		{ "yield", "ops_per_s" },
		{ "chan", "ops_per_s" },
		{ "skynet_fiber", "ops_per_s seconds" },
		{ "spawn_join", "ops_per_s ns_each" },
		{ "fib", "ops_per_s ns_each" },
		{ "skynet", "ops_per_s seconds" },
		{ "leaves", "ops_per_s seconds ideal_ratio ideal_ratio_best ideal_ratio_worst" },
		{ "loop", "ops_per_s hand_ops_per_s hand_ratio thread_hand_ratio" },
		{ "sort", "ops_per_s generic_ops_per_s" },
		{ "fibers_asleep", "ops_per_s create_s bytes_each wake_all_s" },
		{ "echo_server",
		  "ops_per_s cpu_ns_each bytes_each p99_ns raw_ops_per_s raw_p90_ns raw_cpu_ns_each raw_ratio raw_cpu_ratio" },
		{ "file_read", "ops_per_s cpu_ns_each threads_ops_per_s threads_ratio" },
		{ "file_write", "ops_per_s cpu_ns_each threads_ops_per_s threads_ratio" },
		{ "file_stall",
		  "late_p50_ns late_p99_ns late_max_ns stall_max_ns stall_over_1ms pread_stall_max_ns alone_stall_max_ns" }
	};
	char *lines[64], names[64][32];
	int count;

	if (!find_tool())
		return;
	CHECK_EQ(run_tool("bench --list", false), 0);
	count = split(lines, 64);
	CHECK(count >= 19);
	for (int i = 0; i < count; i++)
		CHECK_EQ(sscanf(lines[i], "%31s", names[i]), 1);
	for (int i = 0; i < count; i++) {
		const char *line;

		if (strcmp(names[i], "delay") == 0 || strcmp(names[i], "mixed") == 0 ||
		    strcmp(names[i], "mixed_ui") == 0)
			continue; /* have their own test, and take long */
		line = sample(names[i],
		              "--n 30 --seconds 0.05 --bytes 16384"); /* files of gigabytes are for measuring */
		for (size_t j = 0; j < sizeof more / sizeof *more; j++)
			if (strcmp(names[i], more[j].name) == 0)
				check_numbers(line, more[j].keys);
	}
}

/* Fibers on two workers; several who send and receive. */
TEST(bench_stalls_by_splicing_files_too)
{
	const char *line;

	if (!find_tool())
		return;
	line = sample("file_stall", "--n 65536 --seconds 0.05 --bytes 131072 --depth 3 --files --splice --cold");
	CHECK_EQ((int64_t)json_number(line, "files", -1), 3);
	check_numbers(line, "late_mb_per_s stall_max_ns stall_over_1ms pread_mb_per_s pread_stall_over_1ms");
}

TEST(bench_of_fibers_keeps_its_books_on_two_workers)
{
	const char *line;

	if (!find_tool())
		return;
	line = sample("chan", "--n 5000 --threads 2 --producers 3 --consumers 2");
	CHECK_EQ(json_number(line, "consumers", 0), 2);
	CHECK(json_number(line, "ops_per_s", 0) > 0);
	line = sample("chan", "--n 100 --producers 3");
	CHECK_EQ(json_number(line, "consumers", 0), 3); /* as many as send */
	CHECK(json_number(sample("yield", "--n 5000 --threads 2"), "ops_per_s", 0) > 0);
	CHECK(json_number(sample("spawn_join", "--n 500 --threads 2"), "ns_each", 0) > 0);
	CHECK(json_number(sample("skynet_fiber", "--n 1000 --threads 2"), "seconds", 0) > 0);
	line = sample("fibers_asleep", "--n 500 --threads 2");
	CHECK(json_number(line, "create_s", 0) > 0 && json_number(line, "wake_all_s", -1) >= 0);
	CHECK(json_number(line, "bytes_each", 0) > 0);
}

/* Groups on two compute workers; what is too long is refused, not begun. */
TEST(bench_of_groups_checks_its_results_on_two_workers)
{
	const char *line;

	if (!find_tool())
		return;
	CHECK(json_number(sample("fib", "--n 20 --threads 2"), "ns_each", 0) > 0);
	CHECK(json_number(sample("skynet", "--n 1000 --threads 2"), "seconds", 0) > 0);
	line = sample("leaves", "--n 3 --threads 2"); /* 10, 3 and 10 ms: one worker has two of them, at best */
	CHECK(json_number(line, "seconds", 0) >= 0.0129);
	CHECK(json_number(line, "ideal_ratio_best", 0) <= json_number(line, "ideal_ratio_worst", 0));
	CHECK(json_number(sample("loop", "--n 10001 --threads 2"), "hand_ratio", 0) > 0);
	CHECK(json_number(sample("sort", "--n 20001 --threads 2"), "generic_ops_per_s", 0) > 0);
	CHECK_EQ(run_tool("bench --scenario fib --n 51", false), 1);
	CHECK_EQ(run_tool("bench --scenario loop --n 100 --threads 65", false), 1);
}

/* the bench's own clock too sees no timer early. */
TEST(bench_timer_is_never_early)
{
	if (find_tool())
		CHECK(json_number(sample("timer", "--n 300"), "min_ns", -1) >= 0);
}

/* several samples, each a line of its own and nothing else; then one with the spread. */
TEST(bench_repeats_and_reports_the_spread)
{
	char *lines[5];

	if (!find_tool())
		return;
	CHECK_EQ(run_tool("bench --scenario post --n 500 --repeat 3", true), 0);
	CHECK_EQ(split(lines, 5), 4);
	for (int i = 0; i < 3; i++) {
		CHECK(json_is_valid(lines[i]));
		CHECK_EQ(json_number(lines[i], "repeat", 0), i + 1);
		CHECK(!json_find(lines[i], "summary"));
	}
	CHECK(json_is_valid(lines[3]));
	check_numbers(lines[3], "repeats median_ops_per_s min max stdev_pct");
	CHECK_EQ(json_number(lines[3], "repeats", 0), 3);
	CHECK(json_number(lines[3], "min", -1) <= json_number(lines[3], "median_ops_per_s", -1));
	CHECK(json_number(lines[3], "median_ops_per_s", -1) <= json_number(lines[3], "max", -1));
}

static int commas(const char *line)
{
	int n = 0;

	for (; *line; line++)
		n += *line == ',';
	return n;
}

/* options for threads, duration, batch and mode; JSON or CSV. */
TEST(bench_prints_csv_and_takes_core_and_preset)
{
	char *lines[8];

	if (!find_tool())
		return;
	CHECK_EQ(run_tool("bench --scenario post --n 500 --repeat 2 --csv --core poll --preset rophive", true), 0);
	CHECK_EQ(split(lines, 8), 4); /* head, two samples, summary */
	CHECK(strncmp(lines[0], "peer,scenario,threads", 21) == 0);
	for (int i = 1; i < 4; i++)
		CHECK_EQ(commas(lines[i]), commas(lines[0]));
	CHECK_EQ(run_tool("bench --scenario post --n 500 --core kqueue", false), 2);
	CHECK_EQ(run_tool("bench --scenario post --n 500 --preset other", false), 2);
	CHECK_EQ(run_tool("bench --scenario timer --n 50 --timers wheel", true), 0);
	CHECK_EQ(run_tool("bench --scenario timer --n 50 --timers list", false), 2);
	CHECK_EQ(run_tool("bench --scenario spawn_local --n 500 --order oldest", true), 0);
	CHECK_EQ(run_tool("bench --scenario steal --n 500 --order newest --preset faio", true), 0);
	CHECK_EQ(run_tool("bench --scenario post --n 500 --order middle", false), 2);
}

/* The doctor's findings as one object. */
TEST(doctor_prints_json)
{
	char *lines[2];

	if (!find_tool())
		return;
	CHECK_EQ(run_tool("doctor --json", false), 0);
	CHECK_EQ(split(lines, 2), 1);
	CHECK(json_is_valid(lines[0]));
	CHECK(json_find(lines[0], "system") && json_find(lines[0], "cpus") && json_find(lines[0], "cores"));
	CHECK(json_says(json_find(lines[0], "cores"), "poll", "yes"));
	CHECK(json_find(json_find(lines[0], "cores"), "uring") &&
	      json_find(json_find(lines[0], "limits"), "somaxconn"));
	CHECK(json_find(lines[0], "usable"));
}

/* The folder of the sources, from the record of the build; NULL: not built here. */
static const char *source_folder(void)
{
	static char folder[2048];
	char line[4096];
	FILE *cache;

	snprintf(folder, sizeof folder, "%s", tool);
	for (int i = 0; i < 2; i++)
		*strrchr(folder, '/') = '\0';
	strcat(folder, "/CMakeCache.txt");
	cache = fopen(folder, "r");
	folder[0] = '\0';
	while (cache && fgets(line, sizeof line, cache))
		sscanf(line, "CMAKE_HOME_DIRECTORY:INTERNAL=%2047[^\n]", folder);
	if (cache)
		fclose(cache);
	return folder[0] ? folder : NULL;
}

static bool mentions(const char *path, const char *word)
{
	static char text[1 << 17];
	FILE *file = fopen(path, "r");
	size_t n;

	CHECK(file);
	n = fread(text, 1, sizeof text - 1, file);
	text[n] = '\0';
	fclose(file);
	return strstr(text, word) != NULL;
}

/* in the sources: each scenario has a warm-up, and none prints. */
TEST(each_scenario_warms_up_and_none_prints)
{
	static const char *const printing[] = { "\tprintf(", " printf(", "fprintf(", "puts(", "putchar(", "fwrite(" };
	char path[4096];
	struct dirent *entry;
	DIR *bench;
	int scenarios = 0;

	if (!find_tool() || !source_folder()) {
		printf("skipped: no record of the build\n");
		return;
	}
	snprintf(path, sizeof path, "%s/bench", source_folder());
	bench = opendir(path);
	CHECK(bench);
	while ((entry = readdir(bench)) != NULL) {
		if (strncmp(entry->d_name, "scenario_", 9) != 0)
			continue;
		snprintf(path, sizeof path, "%s/bench/%s", source_folder(), entry->d_name);
		scenarios++;
		/* It is named so, or is a tenth of the run, made and thrown away before it. */
		if (!mentions(path, "warm") && !mentions(path, "WARM") && !mentions(path, "->n / 10 + 1"))
			test_fail(__FILE__, __LINE__, "%s has no warm-up", entry->d_name);
		for (size_t i = 0; i < sizeof printing / sizeof *printing; i++)
			CHECK(!mentions(path, printing[i]));
	}
	closedir(bench);
	CHECK(scenarios >= 10);
}

/* nothing is needed but the C library, and liburing if the build has found it: no other shared object is in this very
 * process, nor asked for by the tool.                                                                                       */
TEST(tests_and_tool_need_no_third_party_library)
{
	static const char *const known[] = { "/ld-linux", "/libc.",      "/libc-",     "/libm.",
		                             "/libm-",    "/libpthread", "/libgcc_s",  "/libasan",
		                             "/libtsan",  "/libubsan",   "/libstdc++", "/libdl",
		                             "/librt",    "/ld-",        "/libresolv", "/liburing" };
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];

	CHECK(maps);
	while (fgets(line, sizeof line, maps)) {
		bool fine = !strstr(line, ".so");

		for (size_t i = 0; i < sizeof known / sizeof *known; i++)
			fine |= strstr(line, known[i]) != NULL;
		if (!fine)
			test_fail(__FILE__, __LINE__, "what is this? %s", line);
	}
	fclose(maps);
}
