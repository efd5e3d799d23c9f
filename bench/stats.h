/* SPDX-License-Identifier: MIT */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Distribution of times: a log-linear histogram of constant size, better than 1 % everywhere and exact below 256 ns.
 * Minimum, maximum and mean are exact; what is negative counts as 0 in the percentiles and shows in the minimum.    */
#define STATS_STEPS_LOG2 7 /* 128 steps for each power of two */
#define STATS_BUCKETS ((64 - STATS_STEPS_LOG2) << STATS_STEPS_LOG2)

struct stats {
	uint64_t count;
	int64_t min, max;
	double mean, squares; /* Welford: sum of squared distances from the mean */
	uint64_t buckets[STATS_BUCKETS];
};

void stats_reset(struct stats *stats);
void stats_add(struct stats *stats, int64_t value);
/* Value that the share (0 … 1) of the samples does not exceed; 0 without samples. */
int64_t stats_quantile(const struct stats *stats, double share);
double stats_stdev(const struct stats *stats);

/* Of a handful of repeats. median() sorts its argument. */
double stats_median(double *values, size_t count);
double stats_stdev_of(const double *values, size_t count);
