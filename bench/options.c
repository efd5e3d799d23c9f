/* SPDX-License-Identifier: MIT */
#include "options.h"
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
	"usage: hive bench --scenario NAME [options]      one JSON line per repeat\n"
	"       hive bench --all [options]                every scenario, with its defaults\n"
	"       hive bench --list\n"
	"\n"
	"  --threads T        workers (IO workers; compute workers in mixed, both in idle)\n"
	"  --producers P      outside threads that post; chan: fibers that send\n"
	"  --consumers C      chan: fibers that receive\n"
	"  --n COUNT          operations\n"
	"  --seconds S        length of mixed, mixed_ui and idle\n"
	"  --repeat R         samples, each in a process of its own; more than one adds a summary line\n"
	"  --batch B          post: B tasks a call, by hive_post_many\n"
	"  --pin              worker i stays on the i-th CPU allowed\n"
	"  --core NAME        epoll, poll or best\n"
	"  --preset NAME      default, rophive or faio\n"
	"  --timers KIND      how the workers keep their timers: heap or wheel\n"
	"  --order NAME       of local tasks: newest or oldest first; default: the preset's\n"
	"  --csv              one table instead of JSON lines\n"
	"  --env              begin with a line that describes the machine (--all does)\n"
	"  --in-process       no process per sample: for debuggers and profilers\n"
	"\n"
	"exit: 0 good, 1 failed, 2 usage, 3 a bounded wait ran out, 4 a count is wrong, 10 no such scenario\n";

static bool parse_count(const char *text, int64_t least, int64_t most, int64_t *ret_count)
{
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (errno || end == text || *end || value < least || value > most)
		return false;
	*ret_count = value;
	return true;
}

static bool parse_small(const char *text, int32_t least, int32_t most, int32_t *ret_count)
{
	int64_t value;
	if (!parse_count(text, least, most, &value))
		return false;
	*ret_count = (int32_t)value;
	return true;
}

static bool parse_seconds(const char *text, double *ret_seconds)
{
	char *end;
	double value = strtod(text, &end);
	if (end == text || *end || !(value > 0) || value > 86400)
		return false;
	*ret_seconds = value;
	return true;
}

static bool parse_preset(const char *text, enum hive_preset *ret_preset)
{
	static const char *const names[] = { "default", "rophive", "faio" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(text, names[i]) == 0) {
			*ret_preset = (enum hive_preset)i;
			return true;
		}
	return false;
}

static bool parse_order(const char *text, enum hive_order *ret_order)
{
	*ret_order = strcmp(text, "oldest") == 0 ? HIVE_ORDER_OLDEST : HIVE_ORDER_NEWEST;
	return *ret_order == HIVE_ORDER_OLDEST || strcmp(text, "newest") == 0;
}

static bool parse_timers(const char *text, enum hive_timers *ret_timers)
{
	*ret_timers = strcmp(text, "wheel") == 0 ? HIVE_TIMERS_WHEEL : HIVE_TIMERS_HEAP;
	return *ret_timers == HIVE_TIMERS_WHEEL || strcmp(text, "heap") == 0;
}

enum option_id {
	OPTION_SCENARIO = 1,
	OPTION_THREADS,
	OPTION_PRODUCERS,
	OPTION_CONSUMERS,
	OPTION_N,
	OPTION_SECONDS,
	OPTION_REPEAT,
	OPTION_BATCH,
	OPTION_PIN,
	OPTION_CORE,
	OPTION_PRESET,
	OPTION_TIMERS,
	OPTION_ORDER,
	OPTION_CSV,
	OPTION_LIST,
	OPTION_ALL,
	OPTION_ENV,
	OPTION_IN_PROCESS,
	OPTION_HELP
};

static const struct option known[] = {
	{ "scenario", required_argument, NULL, OPTION_SCENARIO },
	{ "threads", required_argument, NULL, OPTION_THREADS },
	{ "producers", required_argument, NULL, OPTION_PRODUCERS },
	{ "consumers", required_argument, NULL, OPTION_CONSUMERS },
	{ "n", required_argument, NULL, OPTION_N },
	{ "seconds", required_argument, NULL, OPTION_SECONDS },
	{ "repeat", required_argument, NULL, OPTION_REPEAT },
	{ "batch", required_argument, NULL, OPTION_BATCH },
	{ "pin", no_argument, NULL, OPTION_PIN },
	{ "core", required_argument, NULL, OPTION_CORE },
	{ "preset", required_argument, NULL, OPTION_PRESET },
	{ "timers", required_argument, NULL, OPTION_TIMERS },
	{ "order", required_argument, NULL, OPTION_ORDER },
	{ "csv", no_argument, NULL, OPTION_CSV },
	{ "list", no_argument, NULL, OPTION_LIST },
	{ "all", no_argument, NULL, OPTION_ALL },
	{ "env", no_argument, NULL, OPTION_ENV },
	{ "in-process", no_argument, NULL, OPTION_IN_PROCESS },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ NULL, 0, NULL, 0 },
};

static bool apply_value(struct options *options, int option, const char *value)
{
	struct bench_params *params = &options->params;
	switch (option) {
	case OPTION_SCENARIO:
		options->scenario = value;
		return true;
	case OPTION_THREADS:
		return parse_small(value, 1, 256, &params->threads);
	case OPTION_PRODUCERS:
		return parse_small(value, 1, 256, &params->producers);
	case OPTION_CONSUMERS:
		return parse_small(value, 0, 256, &params->consumers);
	case OPTION_N:
		return parse_count(value, 1, INT64_C(1000000000), &params->n);
	case OPTION_SECONDS:
		return parse_seconds(value, &params->seconds);
	case OPTION_REPEAT:
		return parse_small(value, 1, 1000, &params->repeat);
	case OPTION_BATCH:
		return parse_small(value, 1, 4096, &params->batch);
	case OPTION_CORE:
		return hive_core_find(value, &params->core) == 0;
	case OPTION_PRESET:
		return parse_preset(value, &params->preset);
	case OPTION_TIMERS:
		return parse_timers(value, &params->timers);
	case OPTION_ORDER:
		return parse_order(value, &params->order);
	default:
		return false;
	}
}

static bool apply_flag(struct options *options, int option)
{
	switch (option) {
	case OPTION_PIN:
		return options->params.pin = true;
	case OPTION_CSV:
		return options->csv = true;
	case OPTION_LIST:
		return options->list = true;
	case OPTION_ALL:
		return options->all = true;
	case OPTION_ENV:
		return options->env = true;
	case OPTION_IN_PROCESS:
		return options->in_process = true;
	default:
		return false;
	}
}

static int complain(const char *complaint, const char *what)
{
	fprintf(stderr, "hive bench: %s%s\n\n%s", complaint, what, usage_text);
	return BENCH_USAGE;
}

int options_parse(struct options *options, int argc, char **argv)
{
	int option;
	*options = (struct options){ .params = { .repeat = 1, .batch = 1 } };
	while ((option = getopt_long(argc, argv, "h", known, NULL)) != -1) {
		if (option == '?')
			return complain("see the options", "");
		if (option == 'h' || option == OPTION_HELP)
			options->help = true;
		else if (!apply_flag(options, option) && !apply_value(options, option, optarg))
			return complain("not a value for its option: ", optarg);
	}
	if (optind < argc)
		return complain("what is this? ", argv[optind]);
	if (!options->scenario && !options->all && !options->list && !options->env && !options->help)
		return complain("which scenario?", "");
	return BENCH_OK;
}

void options_help(void)
{
	fputs(usage_text, stdout);
}
