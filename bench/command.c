/* SPDX-License-Identifier: MIT */
#include "bench.h"
#include "machine.h"
#include "options.h"
#include "presets.h"
#include "sample.h"
#include <stdlib.h>
#include <string.h>

/* The order in which samples are taken and printed. */
struct command {
	struct options options;
	struct record *rows; /* CSV: kept until the columns are known */
	size_t row_count;
};

static void emit(struct command *command, const struct record *record)
{
	if (!command->options.csv) {
		record_write_json(stdout, record);
		putchar('\n');
		fflush(stdout);
		return;
	}
	struct record *grown = realloc(command->rows, (command->row_count + 1) * sizeof *grown);
	if (!grown) {
		bench_failed("a row of the table", -ENOMEM);
		return;
	}
	command->rows = grown;
	command->rows[command->row_count++] = *record;
}

static void emit_environment(struct command *command)
{
	struct record record = { 0 };
	record_flag(&record, "env", true);
	machine_describe(&record);
	if (!command->options.csv) {
		emit(command, &record);
		return;
	}
	fputs("# ", stdout); /* a comment, because it has no column in common with the table */
	record_write_json(stdout, &record);
	putchar('\n');
}

/* Medians of everything that was measured; spread of the headline. */
static void emit_summary(struct command *command, const struct bench_scenario *scenario, const struct record *samples,
                         size_t count)
{
	struct record summary = { 0 };
	double *values = calloc(count, sizeof *values);
	if (!values)
		return;
	record_flag(&summary, "summary", true);
	for (size_t i = 0; i < samples[0].count; i++) {
		const struct record_field *field = &samples[0].fields[i];
		char name[sizeof field->name + 8];
		if (!field->metric) {
			if (strcmp(field->name, "repeat") != 0)
				summary.fields[summary.count++] = *field;
			continue;
		}
		for (size_t sample = 0; sample < count; sample++)
			values[sample] = samples[sample].fields[i].real;
		double stdev = stats_stdev_of(values, count), median = stats_median(values, count);
		snprintf(name, sizeof name, "median_%s", field->name);
		record_metric(&summary, name, median);
		if (strcmp(field->name, scenario->headline) != 0)
			continue;
		record_metric(&summary, "min", values[0]);
		record_metric(&summary, "max", values[count - 1]);
		record_metric(&summary, "stdev_pct", median != 0 ? stdev * 100 / median : 0);
	}
	record_count(&summary, "repeats", (int64_t)count);
	emit(command, &summary);
	free(values);
}

static struct bench_params with_defaults(const struct command *command, const struct bench_scenario *scenario)
{
	struct bench_params params = command->options.params;
	if (!params.threads)
		params.threads = scenario->threads ? scenario->threads : hive_cpus();
	if (!params.producers)
		params.producers = scenario->producers;
	if (!params.consumers && scenario->run == bench_chan) /* the only one where somebody receives */
		params.consumers = params.producers;
	if (!params.n)
		params.n = scenario->n;
	if (params.seconds <= 0)
		params.seconds = scenario->seconds;
	return params;
}

static int measure(struct command *command, const struct bench_scenario *scenario)
{
	const struct bench_params params = with_defaults(command, scenario);
	if (command->options.each_preset)
		return presets_compare(scenario, &params, command->options.in_process);
	struct record *samples = calloc((size_t)params.repeat, sizeof *samples);
	if (!samples)
		return bench_failed("memory for the samples", -ENOMEM);
	int code = BENCH_OK;
	for (int32_t i = 0; i < params.repeat && code == BENCH_OK; i++) {
		code = sample_take(scenario, &params, i + 1, command->options.in_process, &samples[i]);
		if (code == BENCH_OK)
			emit(command, &samples[i]);
		else
			fprintf(stderr, "hive bench: scenario %s, repeat %d: no result\n", scenario->name, i + 1);
	}
	if (code == BENCH_OK && params.repeat > 1)
		emit_summary(command, scenario, samples, (size_t)params.repeat);
	free(samples);
	return code;
}

static int measure_all(struct command *command)
{
	int first_code = BENCH_OK;
	for (size_t i = 0; i < bench_scenario_count; i++) {
		int code = measure(command, &bench_scenarios[i]);
		if (first_code == BENCH_OK)
			first_code = code; /* the others are worth having all the same */
	}
	return first_code;
}

static int list(void)
{
	for (size_t i = 0; i < bench_scenario_count; i++)
		printf("%-14s %s\n", bench_scenarios[i].name, bench_scenarios[i].description);
	return BENCH_OK;
}

static int measure_named(struct command *command)
{
	const struct bench_scenario *scenario = bench_find(command->options.scenario);
	if (scenario)
		return measure(command, scenario);
	fprintf(stderr, "hive bench: no scenario '%s'; see hive bench --list\n", command->options.scenario);
	return BENCH_UNKNOWN;
}

int bench_main(int argc, char **argv)
{
	struct command command = { 0 };
	const struct options *options = &command.options;
	int code = options_parse(&command.options, argc, argv);
	if (code != BENCH_OK)
		return code;
	if (options->help)
		return options_help(), BENCH_OK;
	if (options->list)
		return list();
	if (options->all || options->env)
		emit_environment(&command);
	if (options->each_preset)
		presets_head(options->params.repeat);
	if (options->all)
		code = measure_all(&command);
	else if (options->scenario)
		code = measure_named(&command);
	if (options->csv && command.row_count)
		record_write_csv(stdout, command.rows, command.row_count);
	free(command.rows);
	return code;
}
