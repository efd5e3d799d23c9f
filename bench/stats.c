/* SPDX-License-Identifier: MIT */
#include "stats.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The first two powers' worth of buckets hold one value each; above, each power of two is cut into equal steps. */
static size_t bucket_of(uint64_t value)
{
	if (value < (2u << STATS_STEPS_LOG2))
		return (size_t)value;
	unsigned shift = 63u - (unsigned)__builtin_clzll(value) - STATS_STEPS_LOG2;
	return ((size_t)shift << STATS_STEPS_LOG2) + (size_t)(value >> shift);
}

static int64_t bucket_middle(size_t bucket)
{
	if (bucket < (2u << STATS_STEPS_LOG2))
		return (int64_t)bucket;
	unsigned shift = (unsigned)(bucket >> STATS_STEPS_LOG2) - 1;
	uint64_t low = (uint64_t)(bucket - ((size_t)shift << STATS_STEPS_LOG2)) << shift;
	return (int64_t)(low + ((uint64_t)1 << shift) / 2);
}

void stats_reset(struct stats *stats)
{
	memset(stats, 0, sizeof *stats);
}

void stats_add(struct stats *stats, int64_t value)
{
	if (stats->count == 0 || value < stats->min)
		stats->min = value;
	if (stats->count == 0 || value > stats->max)
		stats->max = value;
	stats->count++;
	double distance = (double)value - stats->mean;
	stats->mean += distance / (double)stats->count;
	stats->squares += distance * ((double)value - stats->mean);
	stats->buckets[bucket_of(value < 0 ? 0 : (uint64_t)value)]++;
}

int64_t stats_quantile(const struct stats *stats, double share)
{
	uint64_t rank = (uint64_t)ceil(share * (double)stats->count), seen = 0;
	for (size_t bucket = 0; bucket < STATS_BUCKETS; bucket++) {
		seen += stats->buckets[bucket];
		if (seen >= rank && seen > 0) {
			int64_t middle = bucket_middle(bucket);
			return middle > stats->max ? stats->max : middle;
		}
	}
	return 0;
}

double stats_stdev(const struct stats *stats)
{
	return stats->count < 2 ? 0 : sqrt(stats->squares / (double)(stats->count - 1));
}

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

double stats_median(double *values, size_t count)
{
	if (count == 0)
		return 0;
	qsort(values, count, sizeof *values, compare_doubles);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double stats_stdev_of(const double *values, size_t count)
{
	double mean = 0, squares = 0;
	for (size_t i = 0; i < count; i++)
		mean += values[i] / (double)count;
	for (size_t i = 0; i < count; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	return count < 2 ? 0 : sqrt(squares / (double)(count - 1));
}
