/* SPDX-License-Identifier: MIT */
#include "bench.h"
#include "demo.h"
#include "doctor.h"
#include "tune.h"
#include <stdio.h>
#include <string.h>

/* The `hive` command: finds the subcommand, nothing more. */
struct subcommand {
	const char *name;
	char *full_name; /* becomes argv[0]: getopt begins its messages with it */
	const char *summary;
	int (*run)(int argc, char **argv);
};

static char demo_name[] = "hive demo", bench_name[] = "hive bench", doctor_name[] = "hive doctor",
	    tune_name[] = "hive tune";

static const struct subcommand subcommands[] = {
	{ "demo", demo_name, "screen, sockets and computation at once, beside the same on one plain loop", demo_main },
	{ "bench", bench_name, "measure; hive bench --list names what", bench_main },
	{ "doctor", doctor_name, "what this machine gives to a hive, and what stands in its way", doctor_main },
	{ "tune", tune_name, "search the parameters with which scenarios, or a program of yours, do best", tune_main },
};
#define SUBCOMMANDS (sizeof subcommands / sizeof *subcommands)

static void write_usage(FILE *out)
{
	fputs("usage: hive COMMAND [options]\n\n", out);
	for (size_t i = 0; i < SUBCOMMANDS; i++)
		fprintf(out, "  %-9s %s\n", subcommands[i].name, subcommands[i].summary);
	fputs("  help      this text\n\nhive COMMAND --help tells more; hive --version the version.\n", out);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	for (size_t i = 0; i < SUBCOMMANDS; i++)
		if (strcmp(name, subcommands[i].name) == 0) {
			argv[1] = subcommands[i].full_name;
			return subcommands[i].run(argc - 1, argv + 1);
		}
	if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return write_usage(stdout), 0;
	if (strcmp(name, "--version") == 0)
		return printf("hive %s\n", hive_version()), 0;
	if (name[0])
		fprintf(stderr, "hive: no command '%s'\n\n", name);
	write_usage(stderr);
	return 2;
}
