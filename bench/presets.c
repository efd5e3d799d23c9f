/* SPDX-License-Identifier: MIT */
#include "presets.h"
#include "sample.h"
#include <stdlib.h>
#include <string.h>

/* Every preset on a scenario, in turns, so that what else the machine does befalls all alike: one row of a Markdown table. */
const char *const presets_names[PRESETS] = { "default", "rophive", "faio", "veloq" };

void presets_head(int32_t repeats)
{
	printf("| scenario | figure | default |");
	for (int i = 1; i < PRESETS; i++)
		printf(" %s |", presets_names[i]);
	printf("\n|---|---|--:|");
	for (int i = 1; i < PRESETS; i++)
		printf("--:|");
	printf("\n");
	fprintf(stderr,
	        "medians of %d; behind the first: how many times as good as the default, and the spread of its samples\n",
	        (int)repeats);
}

static void put_value(double value)
{
	if (value >= 1e6)
		printf(" %.2f M |", value / 1e6);
	else if (value >= 1e4)
		printf(" %.1f k |", value / 1e3);
	else
		printf(" %.4g |", value);
}

static void put_row(const struct bench_scenario *scenario, double *values[PRESETS], const size_t *counts)
{
	double base = counts[0] ? stats_median(values[0], counts[0]) : 0;
	bool more = bench_more_is_better(scenario);
	printf("| `%s` | `%s`, %s |", scenario->name, scenario->headline, more ? "more" : "less");
	if (counts[0])
		put_value(base);
	else
		printf(" – |");
	for (int i = 1; i < PRESETS; i++) {
		double median = counts[i] ? stats_median(values[i], counts[i]) : 0;
		if (!counts[0] || !counts[i] || median <= 0 || base <= 0) {
			printf(" – |");
			continue;
		}
		printf(" %.2f (±%.0f %%) |", more ? median / base : base / median,
		       stats_stdev_of(values[i], counts[i]) * 100 / median);
	}
	printf("\n");
	fflush(stdout);
}

/* Without a hive, or with hives of the scenario's own choice. */
static bool has_no_preset(const struct bench_scenario *scenario)
{
	return scenario->run == bench_floor || scenario->run == bench_switch || scenario->run == bench_numa_sim ||
	       scenario->run == bench_skew_sim;
}

int presets_compare(const struct bench_scenario *scenario, const struct bench_params *params, bool in_process)
{
	double *values[PRESETS] = { NULL };
	size_t counts[PRESETS] = { 0 }, repeats = (size_t)params->repeat;
	int first_code = BENCH_OK;
	if (has_no_preset(scenario))
		return BENCH_OK;
	for (int i = 0; i < PRESETS; i++)
		if (!(values[i] = calloc(repeats, sizeof **values)))
			first_code = bench_failed("memory for the samples", -ENOMEM);
	for (size_t turn = 0; turn < repeats * PRESETS && !first_code; turn++) {
		size_t round = turn / PRESETS, preset = (turn + round) % PRESETS; /* each is first, second, … in turn */
		struct bench_params its = *params;
		struct record sample;
		its.preset = (enum hive_preset)preset;
		int code = sample_take(scenario, &its, (int32_t)round + 1, in_process, &sample);
		const struct record_field *figure = code ? NULL : record_find(&sample, scenario->headline);
		if (figure)
			values[preset][counts[preset]++] = figure->real;
		if (code && !first_code)
			first_code = code;
	}
	if (values[PRESETS - 1])
		put_row(scenario, values, counts);
	for (int i = 0; i < PRESETS; i++)
		free(values[i]);
	return first_code;
}
