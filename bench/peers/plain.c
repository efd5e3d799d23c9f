/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "plain.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static void usage(const char *why, const char *what)
{
	fprintf(stderr,
	        "%s %s\nusage: --scenario NAME [--threads T] [--producers P] [--consumers C] [--n N] [--seconds S]\n",
	        why, what);
	exit(PLAIN_USAGE);
}

static double number(const char *flag, const char *text, double least, double most)
{
	char *end;
	double value = strtod(text, &end);
	if (end == text || *end || !(value >= least && value <= most))
		usage("bad value of", flag);
	return value;
}

struct plain_options plain_parse(int argc, char **argv)
{
	struct plain_options options = { .scenario = "", .threads = 1, .producers = 1, .consumers = 1 };
	for (int i = 1; i < argc; i += 2) {
		const char *flag = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
		if (!value)
			usage("no value of", flag);
		else if (strcmp(flag, "--scenario") == 0)
			options.scenario = value;
		else if (strcmp(flag, "--threads") == 0)
			options.threads = (int)number(flag, value, 1, 256);
		else if (strcmp(flag, "--producers") == 0)
			options.producers = (int)number(flag, value, 0, 256);
		else if (strcmp(flag, "--consumers") == 0)
			options.consumers = (int)number(flag, value, 0, 256);
		else if (strcmp(flag, "--n") == 0)
			options.n = (int64_t)number(flag, value, 0, 1e12);
		else if (strcmp(flag, "--seconds") == 0)
			options.seconds = number(flag, value, 0, 3600);
		else
			usage("no flag", flag);
	}
	return options;
}

int64_t plain_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

double plain_cpu_seconds(void)
{
	struct rusage used;
	getrusage(RUSAGE_SELF, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

void plain_sleep_until(int64_t moment_ns)
{
	struct timespec until = { .tv_sec = moment_ns / 1000000000, .tv_nsec = moment_ns % 1000000000 };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
		;
}

void plain_sleep_exactly(void)
{
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

/* _exit: other threads may be at work still. */
void plain_check(const char *what, uint64_t expected, uint64_t seen)
{
	if (expected == seen)
		return;
	fprintf(stderr, "wrong count of %s: %llu instead of %llu\n", what, (unsigned long long)seen,
	        (unsigned long long)expected);
	_exit(PLAIN_WRONG);
}

void plain_lost(const char *what)
{
	fprintf(stderr, "waited too long for %s\n", what);
	_exit(PLAIN_TIMEOUT);
}

void plain_failed(const char *what)
{
	fprintf(stderr, "no %s\n", what);
	_exit(PLAIN_FAILED);
}

void plain_begin(const char *peer, const struct plain_options *o, double operations, int64_t elapsed_ns)
{
	printf("{\"peer\":\"%s\",\"scenario\":\"%s\",\"threads\":%d,\"producers\":%d,\"consumers\":%d,\"n\":%lld,"
	       "\"ops_per_s\":%.0f",
	       peer, o->scenario, o->threads, o->producers, o->consumers, (long long)o->n,
	       operations * 1e9 / (double)(elapsed_ns > 0 ? elapsed_ns : 1));
}

void plain_field(const char *name, double value)
{
	printf(",\"%s\":%.10g", name, value);
}

static int by_size(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
	return (a > b) - (a < b);
}

void plain_percentiles(const char *prefix, int64_t *times, size_t count)
{
	static const struct {
		const char *name;
		double share;
	} all[] = { { "p10_ns", .10 }, { "p25_ns", .25 }, { "p50_ns", .50 },   { "p75_ns", .75 }, { "p90_ns", .90 },
		    { "p95_ns", .95 }, { "p99_ns", .99 }, { "p999_ns", .999 }, { "max_ns", 1 } };
	qsort(times, count, sizeof *times, by_size);
	for (size_t i = 0; i < sizeof all / sizeof *all && count > 0; i++) {
		size_t rank = (size_t)ceil(all[i].share * (double)count);
		int64_t value = times[rank > 0 ? rank - 1 : 0];
		printf(",\"%s%s\":%lld", prefix, all[i].name, value > 0 ? (long long)value : 0LL); /* as in stats.c */
	}
}

static long peak_memory_kb(void)
{
	char line[256];
	long value = 0;
	FILE *file = fopen("/proc/self/status", "r");
	while (file && fgets(line, sizeof line, file))
		if (strncmp(line, "VmHWM:", 6) == 0)
			value = atol(line + 6);
	if (file)
		fclose(file);
	return value;
}

void plain_end(void)
{
	printf(",\"rss_kb\":%ld}\n", peak_memory_kb());
	fflush(stdout);
}
