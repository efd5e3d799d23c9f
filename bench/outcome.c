/* SPDX-License-Identifier: MIT */
#include "bench.h"
#include "machine.h"
#include <inttypes.h>

/* What every scenario does with its result, good or bad. */
int bench_failed(const char *what, int error)
{
	fprintf(stderr, "hive bench: %s: %s (%s)\n", what, hive_error_text(error), hive_error_name(error));
	return BENCH_FAILED;
}

int bench_timeout(const char *what, uint64_t expected, uint64_t seen)
{
	fprintf(stderr, "hive bench: waited too long for %s: %" PRIu64 " of %" PRIu64 "\n", what, seen, expected);
	return BENCH_TIMEOUT;
}

int bench_wrong(const char *what, uint64_t expected, uint64_t seen)
{
	fprintf(stderr, "hive bench: wrong count of %s: %" PRIu64 " instead of %" PRIu64 "\n", what, seen, expected);
	return BENCH_WRONG;
}

void bench_put_rate(struct record *result, double operations, int64_t elapsed_ns)
{
	record_metric(result, "ops_per_s", operations * 1e9 / (double)(elapsed_ns > 0 ? elapsed_ns : 1));
}

void bench_put_percentiles(struct record *result, const struct stats *stats)
{
	record_metric(result, "p50_ns", (double)stats_quantile(stats, 0.50));
	record_metric(result, "p95_ns", (double)stats_quantile(stats, 0.95));
	record_metric(result, "p99_ns", (double)stats_quantile(stats, 0.99));
	record_metric(result, "p999_ns", (double)stats_quantile(stats, 0.999));
}

void bench_put_memory(struct record *result)
{
	record_metric(result, "rss_kb", (double)machine_peak_memory_kb());
}
