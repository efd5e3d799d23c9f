/* SPDX-License-Identifier: MIT */
#include "tune.h"
#include "sync.h"
#include "terminal.h"
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* `hive tune`: the command line, and the order of things. */
#define SEARCH_SHARE 0.6 /* of the time; the rest is for the judgement */
#define SECONDS_DEFAULT 600
#define LIMIT_DEFAULT 60
#define REPEAT_DEFAULT 9
#define CANDIDATES_DEFAULT 64
#define GENERATIONS_DEFAULT 4

static const char usage_text[] =
	"usage: hive tune --scenario NAME[,NAME …] [options] [-- options of hive bench]\n"
	"       hive tune [options] -- COMMAND [arguments]\n"
	"\n"
	"Searches the parameters of workers and hive for those with which the scenarios of hive bench, or a command, do best.\n"
	"The command applies HIVE_TUNE by hive_tune_options() and prints a line \"hive-tune: 123.4\".\n"
	"\n"
	"  --parameters LIST   which: name,name=value:value,…; default: all, with values around the defaults\n"
	"  --less              of the command's figure less is better\n"
	"  --seconds S         longest time of this run (600); 0: until nothing better is found\n"
	"  --limit S           longest time of one sample (60)\n"
	"  --repeat N          samples of each that decide (9)\n"
	"  --candidates N      in a set (64)\n"
	"  --generations N     sets, each around the best of the one before (4)\n"
	"  --seed N            of what is drawn (1)\n"
	"  --state FILE        each sample is appended; a run that was interrupted goes on from there\n"
	"  --write FILE        what was found, as a C header\n"
	"  --dry-run           only print the first set of candidates\n"
	"\n"
	"exit: 0 good, 1 failed, 2 usage, 3 a sample with the defaults took too long, 10 no such scenario,\n"
	"      128 + number of the signal that ended it\n";

struct settings {
	struct tune tune;
	char *scenarios, *parameters, *state, *write;
	double seconds;
	bool dry_run, help;
};

static int complain(const char *what, const char *which)
{
	fprintf(stderr, "hive tune: %s%s\n\n%s", what, which, usage_text);
	return 2;
}

static bool read_seconds(const char *text, double least, double *ret_seconds)
{
	char *end;
	double value = strtod(text, &end);
	if (end == text || *end || !(value >= least) || value > 1e6)
		return false;
	*ret_seconds = value;
	return true;
}

static bool read_count(const char *text, long long least, long long most, long long *ret_count)
{
	char *end;
	errno = 0;
	*ret_count = strtoll(text, &end, 10);
	return !errno && end != text && !*end && *ret_count >= least && *ret_count <= most;
}

enum {
	SCENARIO = 1,
	PARAMETERS,
	LESS,
	SECONDS,
	LIMIT,
	REPEAT,
	CANDIDATES,
	GENERATIONS,
	SEED,
	STATE,
	WRITE,
	DRY_RUN,
	HELP
};

static bool apply_number(struct settings *settings, int option, const char *value)
{
	struct tune *tune = &settings->tune;
	long long count = 0;
	bool good;
	switch (option) {
	case SECONDS:
		return read_seconds(value, 0, &settings->seconds);
	case LIMIT:
		return read_seconds(value, 0.001, &tune->job.limit_s);
	case REPEAT:
		good = read_count(value, 3, 1000, &count);
		tune->repeat = (int)count;
		return good;
	case CANDIDATES:
		good = read_count(value, 2, 1000, &count);
		tune->most = (size_t)count;
		return good;
	case GENERATIONS:
		good = read_count(value, 1, 100, &count);
		tune->generations = (int)count;
		return good;
	default:
		good = read_count(value, 0, INT64_MAX, &count);
		tune->seed = (uint64_t)count;
		return good;
	}
}

static bool apply(struct settings *settings, int option, char *value)
{
	switch (option) {
	case SCENARIO:
		settings->scenarios = value;
		return true;
	case PARAMETERS:
		settings->parameters = value;
		return true;
	case STATE:
		settings->state = value;
		return true;
	case WRITE:
		settings->write = value;
		return true;
	case LESS:
		return settings->tune.job.less = true;
	case DRY_RUN:
		return settings->dry_run = true;
	case HELP:
		return settings->help = true;
	default:
		return apply_number(settings, option, value);
	}
}

static int name_scenarios(struct tune_job *job, char *names)
{
	char *rest = NULL;
	for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
		const struct bench_scenario *scenario = bench_find(name);
		if (!scenario) {
			fprintf(stderr, "hive tune: no scenario '%s'; see hive bench --list\n", name);
			return 10;
		}
		if (!bench_has_parameters(scenario))
			return complain("nothing to tune in the scenario ", name);
		if (job->scenario_count == TUNE_SOURCES)
			return complain("too many scenarios", "");
		job->scenarios[job->scenario_count++] = scenario;
	}
	return job->scenario_count ? 0 : complain("which scenario?", "");
}

static int parse(struct settings *settings, int argc, char **argv)
{
	static const struct option known[] = {
		{ "scenario", required_argument, NULL, SCENARIO },
		{ "parameters", required_argument, NULL, PARAMETERS },
		{ "less", no_argument, NULL, LESS },
		{ "seconds", required_argument, NULL, SECONDS },
		{ "limit", required_argument, NULL, LIMIT },
		{ "repeat", required_argument, NULL, REPEAT },
		{ "candidates", required_argument, NULL, CANDIDATES },
		{ "generations", required_argument, NULL, GENERATIONS },
		{ "seed", required_argument, NULL, SEED },
		{ "state", required_argument, NULL, STATE },
		{ "write", required_argument, NULL, WRITE },
		{ "dry-run", no_argument, NULL, DRY_RUN },
		{ "help", no_argument, NULL, HELP },
		{ NULL, 0, NULL, 0 },
	};
	struct tune_job *job = &settings->tune.job;
	char why[512];
	for (int option; (option = getopt_long(argc, argv, "+h", known, NULL)) != -1;) {
		if (option == '?')
			return complain("see the options", "");
		if (!apply(settings, option == 'h' ? HELP : option, optarg))
			return complain("not a value for its option: ", optarg);
	}
	if (settings->help)
		return 0;
	bool divided = strcmp(argv[optind - 1], "--") == 0;
	if (optind < argc && !divided)
		return complain("what is this? A command comes after --: ", argv[optind]);
	if (settings->scenarios && job->less)
		return complain("--less is for the figure of a command; scenarios have their own", "");
	if (!settings->scenarios && optind == argc)
		return complain("which scenario, or which command?", "");
	if (settings->scenarios && argc - optind > 48)
		return complain("too many options for hive bench", "");
	job->command = settings->scenarios ? NULL : argv + optind;
	job->extra = argv + optind;
	if (!tune_space_read(&settings->tune.space, settings->parameters, why, sizeof why))
		return complain(why, "");
	return settings->scenarios ? name_scenarios(job, settings->scenarios) : 0;
}

static void append(char *text, size_t size, const char *more)
{
	size_t used = strlen(text);
	snprintf(text + used, size - used, " %s", more);
}

/* Whatever decides which samples are asked for, and what they mean. */
static void describe(const struct settings *settings, char *text, size_t size)
{
	const struct tune *tune = &settings->tune;
	snprintf(text, size, "hive-tune 1: seed %llu repeat %d candidates %zu generations %d%s parameters %s measures",
	         (unsigned long long)tune->seed, tune->repeat, tune->most, tune->generations,
	         tune->job.less ? " less" : "", settings->parameters ? settings->parameters : "all");
	for (int i = 0; i < tune->job.scenario_count; i++)
		append(text, size, tune->job.scenarios[i]->name);
	for (char **word = tune->job.extra; *word; word++)
		append(text, size, *word);
	for (char *at = text; *at; at++)
		if (*at == '\n' || *at == '\r')
			*at = ' ';
}

static int print_candidates(struct tune *tune)
{
	struct tune_candidate *set = calloc(tune->most + 1, sizeof *set), defaults = { { 0 } };
	char text[TUNE_TEXT];
	if (!set)
		return fputs("hive tune: out of memory\n", stderr), 1;
	size_t count = tune_search_first(tune, &defaults, 0, set);
	for (size_t i = 0; i < count; i++) {
		tune_candidate_text(&tune->space, &set[i], text, sizeof text);
		puts(text[0] ? text : TUNE_DEFAULTS);
	}
	free(set);
	return 0;
}

/* Progress goes to stderr, whatever becomes of stdout. */
static bool has_terminal(void)
{
	const char *kind = getenv("TERM");
	return isatty(STDERR_FILENO) && kind && kind[0] && strcmp(kind, "dumb") != 0;
}

static int search_and_tell(struct settings *settings)
{
	struct tune *tune = &settings->tune;
	struct tune_outcome outcome = { 0 };
	if (tune_search(tune, &outcome) && tune_judge(tune, &outcome)) {
		tune_report(tune, &outcome, stdout);
		if (settings->write && !tune_report_write(tune, &outcome, settings->write))
			tune->exit_code = 1;
	} else if (terminal_interrupted())
		fprintf(stderr, "hive tune: interrupted after %llu samples%s\n", (unsigned long long)tune->samples,
		        settings->state ? "; the same command goes on from here" : "");
	tune_stage_free(outcome.survey);
	tune_stage_free(outcome.effects);
	tune_stage_free(outcome.final);
	return tune->exit_code;
}

int tune_main(int argc, char **argv)
{
	static struct settings settings = { .seconds = SECONDS_DEFAULT };
	static char head[4096], why[1024];
	struct tune *tune = &settings.tune;
	*tune = (struct tune){ .seed = 1,
		               .most = CANDIDATES_DEFAULT,
		               .repeat = REPEAT_DEFAULT,
		               .generations = GENERATIONS_DEFAULT,
		               .job.limit_s = LIMIT_DEFAULT };
	int code = parse(&settings, argc, argv);
	if (code)
		return code;
	if (settings.help)
		return fputs(usage_text, stdout), 0;
	if (settings.dry_run)
		return print_candidates(tune);
	describe(&settings, head, sizeof head);
	if (!tune_state_open(&tune->state, settings.state, head, why, sizeof why))
		return fprintf(stderr, "hive tune: %s\n", why), 1;
	tune->began_ns = sync_now();
	tune->until_ns = tune->search_until_ns = INT64_MAX;
	if (settings.seconds > 0) {
		tune->until_ns = tune->began_ns + (int64_t)(settings.seconds * 1e9);
		tune->search_until_ns = tune->began_ns + (int64_t)(settings.seconds * SEARCH_SHARE * 1e9);
	}
	tune->terminal = has_terminal();
	terminal_catch_signals();
	code = search_and_tell(&settings);
	tune_state_close(&tune->state);
	return fflush(stdout) == 0 ? code : 1;
}
