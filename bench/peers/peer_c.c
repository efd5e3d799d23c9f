/* SPDX-License-Identifier: MIT */
#include "peer.h"
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SIDE_MAX 256 /* threads, producers, consumers */
#define SHORTEST_NS HIVE_MS(1)
#define SPREAD_NS HIVE_MS(999)

static const char *program = "peer";

/* The same words as bench/outcome.c, which asks the library for the text of an error. */
int bench_failed(const char *what, int error)
{
	fprintf(stderr, "%s: %s: %s\n", program, what, strerror(-error));
	return BENCH_FAILED;
}

int bench_timeout(const char *what, uint64_t expected, uint64_t seen)
{
	fprintf(stderr, "%s: waited too long for %s: %" PRIu64 " of %" PRIu64 "\n", program, what, seen, expected);
	return BENCH_TIMEOUT;
}

int bench_wrong(const char *what, uint64_t expected, uint64_t seen)
{
	fprintf(stderr, "%s: wrong count of %s: %" PRIu64 " instead of %" PRIu64 "\n", program, what, seen, expected);
	return BENCH_WRONG;
}

void bench_put_rate(struct record *result, double operations, int64_t elapsed_ns)
{
	record_metric(result, "ops_per_s", operations * 1e9 / (double)(elapsed_ns > 0 ? elapsed_ns : 1));
}

void peer_must_not(bool bad, const char *what)
{
	if (!bad)
		return;
	fprintf(stderr, "%s: %s failed\n", program, what);
	_Exit(BENCH_FAILED);
}

void peer_put_percentiles(struct record *result, const char *prefix, const struct stats *stats)
{
	static const struct {
		const char *name;
		double share;
	} wanted[] = { { "p10", 0.1 }, { "p25", 0.25 }, { "p50", 0.5 },  { "p75", 0.75 },
		       { "p90", 0.9 }, { "p95", 0.95 }, { "p99", 0.99 }, { "p999", 0.999 } };
	char name[32];
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		snprintf(name, sizeof name, "%s%s_ns", prefix, wanted[i].name);
		record_metric(result, name, (double)stats_quantile(stats, wanted[i].share));
	}
	snprintf(name, sizeof name, "%smax_ns", prefix);
	record_metric(result, name, (double)stats->max);
}

double peer_cpu_seconds(void)
{
	struct rusage used;
	getrusage(RUSAGE_SELF, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

int64_t peer_next_delay(uint64_t *seed)
{
	*seed += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t mixed = (*seed ^ (*seed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
	return SHORTEST_NS + (int64_t)((mixed ^ (mixed >> 31)) % (uint64_t)SPREAD_NS);
}

static int64_t thread_cpu_ns(void)
{
	struct timespec used;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

void peer_burn(int64_t cpu_ns)
{
	int64_t until = thread_cpu_ns() + cpu_ns;
	while (thread_cpu_ns() < until)
		for (volatile unsigned i = 0; i < 5000; i++)
			; /* some 10 us between two looks at the clock, which is a system call */
}

static int64_t peak_memory_kb(void)
{
	char line[256];
	int64_t value = 0;
	FILE *file = fopen("/proc/self/status", "re");
	while (file && fgets(line, sizeof line, file))
		if (strncmp(line, "VmHWM:", 6) == 0)
			value = atoll(line + 6);
	if (file)
		fclose(file);
	return value;
}

static int usage(const char *why)
{
	fprintf(stderr,
	        "%s: %s\nusage: --scenario NAME [--threads T] [--producers P] [--consumers C] [--n COUNT] [--seconds S]\n",
	        program, why);
	return BENCH_USAGE;
}

static bool read_number(const char *text, double least, double most, double *ret)
{
	char *end;
	*ret = strtod(text, &end);
	return end != text && !*end && *ret >= least && *ret <= most;
}

/* A null scenario is left to the caller. Returns 0 or the exit code. */
static int read_flags(int argc, char **argv, const char **ret_scenario, struct bench_params *params)
{
	static const struct option flags[] = { { "scenario", 1, NULL, 's' },  { "threads", 1, NULL, 't' },
		                               { "producers", 1, NULL, 'p' }, { "consumers", 1, NULL, 'c' },
		                               { "n", 1, NULL, 'n' },         { "seconds", 1, NULL, 'S' },
		                               { NULL, 0, NULL, 0 } };
	int flag;
	while ((flag = getopt_long(argc, argv, "", flags, NULL)) != -1) {
		double value = 0;
		if (flag == '?')
			return usage("bad flag");
		if (flag == 's')
			*ret_scenario = optarg;
		else if (!read_number(optarg, flag == 'S' ? 0.01 : 1, flag == 'n' ? 1e10 : SIDE_MAX, &value))
			return usage("bad value of a flag");
		params->threads = flag == 't' ? (int32_t)value : params->threads;
		params->producers = flag == 'p' ? (int32_t)value : params->producers;
		params->consumers = flag == 'c' ? (int32_t)value : params->consumers;
		params->n = flag == 'n' ? (int64_t)value : params->n;
		params->seconds = flag == 'S' ? value : params->seconds;
	}
	return optind < argc ? usage("flags only") : *ret_scenario ? 0 : usage("which scenario?");
}

static void take_defaults(struct bench_params *params, const struct peer_scenario *scenario)
{
	int32_t threads = scenario->threads ? scenario->threads : (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
	params->threads = params->threads ? params->threads : threads;
	params->producers = params->producers ? params->producers : scenario->producers;
	params->n = params->n ? params->n : scenario->n;
	params->seconds = params->seconds > 0 ? params->seconds : scenario->seconds;
}

static void put_question(struct record *result, const char *scenario, const struct bench_params *params)
{
	record_text(result, "peer", program);
	record_text(result, "scenario", scenario);
	record_count(result, "threads", params->threads);
	record_count(result, "producers", params->producers);
	record_count(result, "consumers", params->consumers);
	record_count(result, "n", params->n);
}

int peer_main(const char *peer, const struct peer_scenario *scenarios, size_t count, int argc, char **argv)
{
	static struct record result;
	struct bench_params params = { 0 };
	const char *name = NULL;
	program = peer;
	int code = read_flags(argc, argv, &name, &params);
	if (code)
		return code;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(scenarios[i].name, name) != 0)
			continue;
		take_defaults(&params, &scenarios[i]);
		put_question(&result, name, &params);
		code = scenarios[i].run(&params, &result);
		if (code)
			_Exit(code); /* threads may still be at work on what would be freed */
		record_metric(&result, "rss_kb", (double)peak_memory_kb());
		record_write_json(stdout, &result);
		putchar('\n');
		return fflush(stdout) == 0 ? 0 : BENCH_FAILED;
	}
	fprintf(stderr, "%s: no scenario '%s'\n", peer, name);
	return BENCH_UNKNOWN;
}
