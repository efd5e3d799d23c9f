/* SPDX-License-Identifier: MIT */
#include "demo.h"
#include "demo_report.h"
#include "demo_stage.h"
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define SECONDS_DEFAULT 12.0
#define HIVE_SHARE (2.0 / 3) /* of the time; the rest is for the plain loop */

struct demo {
	double seconds;
	enum stage_output output;
	bool json;
	struct terminal terminal;
	struct figures hive, plain;
	struct hive_report report;
};

static const char usage_text[] =
	"usage: hive demo [--seconds N] [--plain | --json]\n"
	"\n"
	"A screen at 60 frames a second, echo traffic over TCP and heavy computation, all at once: first on a hive, then\n"
	"on one plain loop, and what came of it side by side.\n"
	"\n"
	"  --seconds N   how long, both together (default 12)\n"
	"  --plain       lines instead of the live screen (also when the output is no terminal)\n"
	"  --json        one JSON object at the end, nothing else\n"
	"\n"
	"exit: 0 good, 1 failed, 2 usage, 128 + number of the signal that ended it\n";

static int complain(const char *what, int error)
{
	fprintf(stderr, "hive demo: %s: %s (%s)\n", what, hive_error_text(error), hive_error_name(error));
	return 1;
}

static struct stage *make_stage(struct demo *demo, const char *title)
{
	struct stage *stage = calloc(1, sizeof *stage);
	if (!stage)
		return NULL;
	stage->title = title;
	stage->output = demo->output;
	stage->terminal = &demo->terminal;
	return stage;
}

static int run_on_hive(struct demo *demo)
{
	struct stage *stage = make_stage(demo, "on a hive");
	if (!stage)
		return -ENOMEM;
	int error = hive_stage_run(stage, (int64_t)(demo->seconds * HIVE_SHARE * 1e9), &demo->hive, &demo->report);
	free(stage);
	return error;
}

static int run_on_plain_loop(struct demo *demo)
{
	struct stage *stage = make_stage(demo, "on a plain loop");
	if (!stage)
		return -ENOMEM;
	stage->other = &demo->hive;
	int error = plain_stage_run(stage, (int64_t)(demo->seconds * (1 - HIVE_SHARE) * 1e9), &demo->plain);
	free(stage);
	return error;
}

static int run_both(struct demo *demo)
{
	if (demo->output == STAGE_SCREEN) {
		int error = terminal_open(&demo->terminal);
		if (error)
			return complain("the terminal", error);
	}
	const char *part = "the run on the hive";
	int error = run_on_hive(demo);
	if (!error && !terminal_interrupted()) {
		part = "the run on the plain loop";
		error = run_on_plain_loop(demo);
	}
	if (demo->output == STAGE_SCREEN)
		terminal_close(&demo->terminal); /* before anything is said */
	return error ? complain(part, error) : 0;
}

static int show_results(const struct demo *demo)
{
	(demo->json ? report_json : report_text)(&demo->hive, &demo->plain, &demo->report);
	if (fflush(stdout) != 0)
		return complain("writing the results", -errno);
	if (!report_balanced(&demo->report))
		return fputs("hive demo: the hive's books do not balance\n", stderr), 1;
	return terminal_exit_code();
}

static bool parse_seconds(const char *text, double *ret_seconds)
{
	char *end;
	double seconds = strtod(text, &end);
	if (end == text || *end || !(seconds >= 0.3) || seconds > 86400)
		return false;
	*ret_seconds = seconds;
	return true;
}

static int misuse(void)
{
	fputs(usage_text, stderr);
	return 2;
}

int demo_main(int argc, char **argv)
{
	static const struct option known[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ "plain", no_argument, NULL, 'p' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	static struct demo demo = { .seconds = SECONDS_DEFAULT };
	demo.output = terminal_present() ? STAGE_SCREEN : STAGE_LINES;
	for (int option; (option = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
		if (option == 'h')
			return fputs(usage_text, stdout), 0;
		if (option == '?' || (option == 's' && !parse_seconds(optarg, &demo.seconds)))
			return misuse();
		if (option == 'p' && !demo.json)
			demo.output = STAGE_LINES;
		if (option == 'j')
			demo.json = true, demo.output = STAGE_SILENT;
	}
	if (optind < argc)
		return misuse();
	terminal_catch_signals();
	int code = run_both(&demo);
	return code ? code : show_results(&demo);
}
