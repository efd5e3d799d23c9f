/* SPDX-License-Identifier: MIT */
#include "doctor.h"
#include <getopt.h>
#include <rophive/hive.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct record *checkup_section(struct checkup *checkup, const char *title)
{
	size_t index = checkup->section_count < CHECKUP_SECTIONS - 1 ? checkup->section_count++ : CHECKUP_SECTIONS - 1;
	checkup->titles[index] = title;
	return &checkup->sections[index];
}

void checkup_warn(struct checkup *checkup, const char *format, ...)
{
	va_list arguments;
	if (checkup->warning_count == CHECKUP_WARNINGS)
		return;
	va_start(arguments, format);
	vsnprintf(checkup->warnings[checkup->warning_count++], sizeof checkup->warnings[0], format, arguments);
	va_end(arguments);
}

static void write_fact(const struct record_field *field)
{
	char label[sizeof field->name], value[192];
	snprintf(label, sizeof label, "%s", field->name);
	for (char *c = label; *c; c++)
		*c = *c == '_' ? ' ' : *c;
	if (field->type == RECORD_FLAG)
		snprintf(value, sizeof value, "%s", field->count ? "yes" : "no");
	else
		record_value(field, value, sizeof value);
	printf("  %-22s %s\n", label, value);
}

static void write_text(const struct checkup *checkup)
{
	for (size_t i = 0; i < checkup->section_count; i++) {
		printf("%s\n", checkup->titles[i]);
		for (size_t f = 0; f < checkup->sections[i].count; f++)
			write_fact(&checkup->sections[i].fields[f]);
		putchar('\n');
	}
	for (size_t i = 0; i < checkup->warning_count; i++)
		printf("note: %s\n", checkup->warnings[i]);
	printf("%sverdict: %s\n", checkup->warning_count ? "\n" : "",
	       checkup->unusable        ? "a hive cannot run here"
	       : checkup->warning_count ? "a hive runs well here; mind the notes"
	                                : "a hive runs well here");
}

static void write_json(const struct checkup *checkup)
{
	putchar('{');
	for (size_t i = 0; i < checkup->section_count; i++) {
		record_write_string(stdout, checkup->titles[i]);
		putchar(':');
		record_write_json(stdout, &checkup->sections[i]);
		putchar(',');
	}
	printf("\"warnings\":[");
	for (size_t i = 0; i < checkup->warning_count; i++) {
		if (i)
			putchar(',');
		record_write_string(stdout, checkup->warnings[i]);
	}
	printf("],\"usable\":%s}\n", checkup->unusable ? "false" : "true");
}

static int write_usage(FILE *out, int code)
{
	fputs("usage: hive doctor [--json]\n\n"
	      "Looks at the machine with the eyes of a hive: CPUs, clocks, limits, priorities, cores.\n"
	      "exit: 0 a hive can run here, 1 it cannot, 2 usage\n",
	      out);
	return code;
}

int doctor_main(int argc, char **argv)
{
	static const struct option known[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	bool json = false;
	for (int option; (option = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
		if (option == 'h')
			return write_usage(stdout, 0);
		if (option != 'j')
			return write_usage(stderr, 2);
		json = true;
	}
	if (optind < argc)
		return write_usage(stderr, 2);
	struct checkup *checkup = calloc(1, sizeof *checkup);
	if (!checkup)
		return fputs("hive doctor: out of memory\n", stderr), 1;
	doctor_look_at_system(checkup);
	doctor_look_at_cpus(checkup);
	doctor_look_at_clock(checkup);
	doctor_look_at_limits(checkup);
	doctor_look_at_priorities(checkup);
	doctor_look_at_cores(checkup);
	doctor_try_a_hive(checkup);
	(json ? write_json : write_text)(checkup);
	int code = checkup->unusable;
	free(checkup);
	return code;
}
