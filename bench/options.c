/* SPDX-License-Identifier: MIT */
#include "options.h"
#include "presets.h"
#include "ui_loads.h"
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
	"usage: hive bench --scenario NAME [options]      one JSON line per repeat\n"
	"       hive bench --all [options]                every scenario, with its defaults\n"
	"       hive bench --list\n"
	"\n"
	"  --threads T        workers (IO workers; compute workers in mixed, fib, skynet, leaves, loop, sort; both in idle)\n"
	"  --producers P      outside threads that post; chan: fibers that send\n"
	"  --consumers C      chan: fibers that receive\n"
	"  --n COUNT          operations\n"
	"  --seconds S        length of mixed, mixed_ui, idle, echo_server and file_…\n"
	"  --repeat R         samples, each in a process of its own; more than one adds a summary line\n"
	"  --batch B          post: B tasks a call, by hive_post_many\n"
	"  --armed A          timer_cancel: timers that are armed meanwhile (10000)\n"
	"  --pin              worker i stays on the i-th CPU allowed\n"
	"  --core NAME        epoll, poll, uring or best\n"
	"  --preset NAME      default, rophive, faio or veloq; each: all of them in turns, one table of ratios\n"
	"  --placement NAME   of posts: pool, or choices (the lighter of two workers); default: the preset's\n"
	"  --mesh WAY         letters from worker to worker: on (lanes) or off (inbox); default: the preset's. post_to: then\n"
	"                     the one who posts is a worker\n"
	"  --no-stealing      no worker steals\n"
	"  --budget N         local tasks per beat, or adaptive; default: the preset's\n"
	"  --timers KIND      how the workers keep their timers: heap or wheel\n"
	"  --order NAME       of local tasks: newest or oldest first; default: the preset's\n"
	"  --load NAME        mixed_ui: only this load: compute, timers, posts, block, updates\n"
	"  --ordinary         mixed_ui: the main worker does not ask for real-time priority, as if it were not allowed\n"
	"  --style NAME       echo_server, file_…: fibers, ops (callbacks); for the server also raw (a plain epoll loop),\n"
	"                     lent (callbacks that repeat, with buffers that are lent) and sources (a source for each\n"
	"                     connection, and the program's own recv and send); bus…: dispatcher, key, hive;\n"
	"                     default: workers take by themselves\n"
	"  --connections C    echo_server: busy ones\n"
	"  --idle N           echo_server: further ones that only wait\n"
	"  --bytes B          echo_server: of a request; file_…: of the file\n"
	"  --deadline-ms D    echo_server: each receive has such a deadline\n"
	"  --server NAME=CMD  echo_server: another server to measure in turns; it prints PORT n, ends with its input\n"
	"  --alone            echo_server: without the raw loop beside ours\n"
	"  --port N           echo_server: only serve there, for --seconds; 0: anywhere\n"
	"  --depth D          file_…: operations under way; bus…: messages in the ring (1024; bus_overload: 4096)\n"
	"  --cold             file_…: drop the file from memory before each turn\n"
	"  --splice           file_stall: sent elsewhere by hive_splice, instead of read\n"
	"  --files            file_stall: a file of --bytes for each, of zeros that take no room on the disk\n"
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

static bool parse_preset(const char *text, struct options *options)
{
	for (int i = 0; i < PRESETS; i++)
		if (strcmp(text, presets_names[i]) == 0) {
			options->params.preset = (enum hive_preset)i;
			return true;
		}
	return options->each_preset = strcmp(text, "each") == 0;
}

static bool parse_placement(const char *text, enum hive_placement *ret_placement)
{
	*ret_placement = strcmp(text, "choices") == 0 ? HIVE_PLACE_TWO_CHOICES : HIVE_PLACE_POOL;
	return *ret_placement == HIVE_PLACE_TWO_CHOICES || strcmp(text, "pool") == 0;
}

static bool parse_mesh(const char *text, enum hive_mesh *ret_mesh)
{
	*ret_mesh = strcmp(text, "on") == 0 ? HIVE_MESH_ON : HIVE_MESH_OFF;
	return *ret_mesh == HIVE_MESH_ON || strcmp(text, "off") == 0;
}

static bool parse_budget(const char *text, int32_t *ret_budget)
{
	if (strcmp(text, "adaptive") != 0)
		return parse_small(text, 1, 65536, ret_budget);
	*ret_budget = HIVE_OFF;
	return true;
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

static bool parse_style(const char *text, enum bench_style *ret_style)
{
	static const char *const names[] = { "fibers", "ops",        "raw", "lent", "sources",
		                             "edges",  "dispatcher", "key", "hive" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(text, names[i]) == 0) {
			*ret_style = (enum bench_style)i;
			return true;
		}
	return false;
}

static bool parse_server(const char *text, struct bench_params *params)
{
	if (!strchr(text, '=') || params->server_count == BENCH_SERVERS)
		return false;
	params->servers[params->server_count++] = text;
	return true;
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
	OPTION_ARMED,
	OPTION_PIN,
	OPTION_CORE,
	OPTION_PRESET,
	OPTION_PLACEMENT,
	OPTION_MESH,
	OPTION_NO_STEALING,
	OPTION_BUDGET,
	OPTION_TIMERS,
	OPTION_ORDER,
	OPTION_LOAD,
	OPTION_ORDINARY,
	OPTION_STYLE,
	OPTION_CONNECTIONS,
	OPTION_IDLE,
	OPTION_BYTES,
	OPTION_DEADLINE,
	OPTION_SERVER,
	OPTION_ALONE,
	OPTION_PORT,
	OPTION_DEPTH,
	OPTION_COLD,
	OPTION_SPLICE,
	OPTION_FILES,
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
	{ "armed", required_argument, NULL, OPTION_ARMED },
	{ "pin", no_argument, NULL, OPTION_PIN },
	{ "core", required_argument, NULL, OPTION_CORE },
	{ "preset", required_argument, NULL, OPTION_PRESET },
	{ "placement", required_argument, NULL, OPTION_PLACEMENT },
	{ "mesh", required_argument, NULL, OPTION_MESH },
	{ "no-stealing", no_argument, NULL, OPTION_NO_STEALING },
	{ "budget", required_argument, NULL, OPTION_BUDGET },
	{ "timers", required_argument, NULL, OPTION_TIMERS },
	{ "order", required_argument, NULL, OPTION_ORDER },
	{ "load", required_argument, NULL, OPTION_LOAD },
	{ "ordinary", no_argument, NULL, OPTION_ORDINARY },
	{ "style", required_argument, NULL, OPTION_STYLE },
	{ "connections", required_argument, NULL, OPTION_CONNECTIONS },
	{ "idle", required_argument, NULL, OPTION_IDLE },
	{ "bytes", required_argument, NULL, OPTION_BYTES },
	{ "deadline-ms", required_argument, NULL, OPTION_DEADLINE },
	{ "server", required_argument, NULL, OPTION_SERVER },
	{ "alone", no_argument, NULL, OPTION_ALONE },
	{ "port", required_argument, NULL, OPTION_PORT },
	{ "depth", required_argument, NULL, OPTION_DEPTH },
	{ "cold", no_argument, NULL, OPTION_COLD },
	{ "splice", no_argument, NULL, OPTION_SPLICE },
	{ "files", no_argument, NULL, OPTION_FILES },
	{ "csv", no_argument, NULL, OPTION_CSV },
	{ "list", no_argument, NULL, OPTION_LIST },
	{ "all", no_argument, NULL, OPTION_ALL },
	{ "env", no_argument, NULL, OPTION_ENV },
	{ "in-process", no_argument, NULL, OPTION_IN_PROCESS },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ NULL, 0, NULL, 0 },
};

static bool apply_io_value(struct bench_params *params, int option, const char *value)
{
	switch (option) {
	case OPTION_STYLE:
		return parse_style(value, &params->style);
	case OPTION_CONNECTIONS:
		return parse_small(value, 1, 60000, &params->connections);
	case OPTION_IDLE:
		return parse_small(value, 0, 100000, &params->idle);
	case OPTION_BYTES:
		return parse_count(value, 1, INT64_C(1) << 40, &params->bytes);
	case OPTION_DEADLINE:
		return parse_small(value, 1, 3600000, &params->deadline_ms);
	case OPTION_SERVER:
		return parse_server(value, params);
	case OPTION_PORT:
		return params->serve = parse_small(value, 0, 65535, &params->port);
	case OPTION_DEPTH:
		return parse_small(value, 1, 4096, &params->depth);
	default:
		return false;
	}
}

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
	case OPTION_ARMED:
		return parse_count(value, 1, 10000000, &params->armed);
	case OPTION_CORE:
		return hive_core_find(value, &params->core) == 0;
	case OPTION_PRESET:
		return parse_preset(value, options);
	case OPTION_PLACEMENT:
		return parse_placement(value, &params->placement);
	case OPTION_MESH:
		return parse_mesh(value, &params->mesh);
	case OPTION_BUDGET:
		return parse_budget(value, &params->budget);
	case OPTION_TIMERS:
		return parse_timers(value, &params->timers);
	case OPTION_ORDER:
		return parse_order(value, &params->order);
	case OPTION_LOAD:
		params->load = value;
		return ui_loads_know(value);
	default:
		return apply_io_value(params, option, value);
	}
}

static bool apply_flag(struct options *options, int option)
{
	switch (option) {
	case OPTION_PIN:
		return options->params.pin = true;
	case OPTION_NO_STEALING:
		return options->params.no_stealing = true;
	case OPTION_ORDINARY:
		return options->params.ordinary = true;
	case OPTION_ALONE:
		return options->params.alone = true;
	case OPTION_COLD:
		return options->params.cold = true;
	case OPTION_SPLICE:
		return options->params.splice = true;
	case OPTION_FILES:
		return options->params.files = true;
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
