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

void bench_put_percentiles_of(struct record *result, const char *whose, const struct stats *stats)
{
	static const struct {
		const char *name;
		double share;
	} marks[] = { { "p10", 0.10 }, { "p25", 0.25 }, { "p50", 0.50 }, { "p75", 0.75 },
		      { "p90", 0.90 }, { "p95", 0.95 }, { "p99", 0.99 }, { "p999", 0.999 } };
	char name[sizeof result->fields->name];
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		snprintf(name, sizeof name, "%s%s_ns", whose, marks[i].name);
		record_metric(result, name, (double)stats_quantile(stats, marks[i].share));
	}
	snprintf(name, sizeof name, "%smax_ns", whose);
	record_metric(result, name, (double)stats->max);
}

void bench_put_percentiles(struct record *result, const struct stats *stats)
{
	bench_put_percentiles_of(result, "", stats);
}

void bench_put_memory(struct record *result)
{
	record_metric(result, "rss_kb", (double)machine_peak_memory_kb());
}
