/* SPDX-License-Identifier: MIT */
/* The command line. */
#include "httpd.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { TEXT, COUNT, SECONDS, FLAG, ADDRESS };

struct option_line {
	const char *name, *value, *meaning;
	enum kind kind;
	size_t at; /* in struct settings */
	size_t bytes;
	double least, most;
};

#define PLACE(field) offsetof(struct settings, field), sizeof((struct settings *)0)->field

static const struct option_line lines[] = {
	{ "port", "N", "0: the system chooses (8080)", COUNT, PLACE(port), 0, 65535 },
	{ "listen", "ADDRESS", "numeric, up to four of them; \"::\" is both IPv6 and IPv4 (127.0.0.1)", ADDRESS, 0, 0,
	  0, 0 },
	{ "root", "FOLDER", "what is served (.)", TEXT, PLACE(root), 0, 0 },
	{ "upload", "FOLDER", "where PUT /upload/NAME goes (nowhere)", TEXT, PLACE(upload), 0, 0 },
	{ "access-log", "FILE", "a line for each request (none)", TEXT, PLACE(access_log), 0, 0 },
	{ "core", "NAME", "epoll, poll or uring (the best)", TEXT, PLACE(core), 0, 0 },
	{ "workers", "N", "threads that serve (as many as there are CPUs)", COUNT, PLACE(workers), 1, WORKERS_MAX },
	{ "shared-listener", NULL, "one listener for all workers; else one each, SO_REUSEPORT", FLAG,
	  PLACE(shared_listener), 0, 0 },
	{ "quiet", NULL, "no figures at the end", FLAG, PLACE(quiet), 0, 0 },
	{ "request-line", "BYTES", "longest request line (8192)", COUNT, PLACE(head.line_bytes), 16, 1 << 20 },
	{ "header-bytes", "BYTES", "longest head of a request (16384)", COUNT, PLACE(head.head_bytes), 64, 1 << 20 },
	{ "header-count", "N", "most fields of a head (100)", COUNT, PLACE(head.field_count), 1, HTTP_FIELDS_MAX },
	{ "body-bytes", "BYTES", "longest body of a request (1 GiB)", COUNT, PLACE(body_bytes), 0, 1e15 },
	{ "connections", "N", "at a time, of all workers (10000)", COUNT, PLACE(connections), 1, 1e6 },
	{ "requests", "N", "of one connection (1000000)", COUNT, PLACE(requests), 1, 4e9 },
	{ "cache-files", "N", "kept open or in memory by each worker (512)", COUNT, PLACE(cache_files), 1, 1e6 },
	{ "header-timeout", "S", "for a head, once begun (10)", SECONDS, PLACE(header_ns), 0.001, 1e6 },
	{ "idle-timeout", "S", "between requests (60)", SECONDS, PLACE(idle_ns), 0.001, 1e6 },
	{ "grace", "S", "a body or an answer may be slow for so long (10)", SECONDS, PLACE(grace_ns), 0.001, 1e6 },
	{ "rate", "BYTES", "and goes so fast in a second after that, or ends (1000)", COUNT, PLACE(rate), 1, 1e12 },
	{ "stop-timeout", "S", "for what is under way at SIGTERM (30)", SECONDS, PLACE(stop_ns), 0, 1e6 },
};

enum { LINES = sizeof lines / sizeof *lines };

static void help(void)
{
	printf("usage: httpd [OPTION]...\nAn HTTP/1.1 server on rophive: files of a folder, POST /echo, PUT /upload/NAME.\n\n");
	for (int i = 0; i < LINES; i++) {
		char both[64];

		snprintf(both, sizeof both, "--%s%s%s", lines[i].name, lines[i].value ? " " : "",
		         lines[i].value ? lines[i].value : "");
		printf("  %-22s %s\n", both, lines[i].meaning);
	}
	printf("\nSIGTERM and SIGINT: no new connections, what is under way is completed. A second one: at once.\n");
}

static void store(struct settings *settings, const struct option_line *line, double value)
{
	char *at = (char *)settings + line->at;
	int64_t number = line->kind == SECONDS ? (int64_t)(value * 1e9) : (int64_t)value;

	if (line->bytes == 2)
		*(uint16_t *)(void *)at = (uint16_t)number;
	else if (line->bytes == 4)
		*(uint32_t *)(void *)at = (uint32_t)number;
	else
		*(int64_t *)(void *)at = number;
}

static int take(struct settings *settings, const struct option_line *line, const char *text)
{
	char *end;
	double value;

	switch (line->kind) {
	case FLAG:
		*(bool *)((char *)settings + line->at) = true;
		return 0;
	case TEXT:
		*(const char **)(void *)((char *)settings + line->at) = text;
		return 0;
	case ADDRESS:
		if (settings->listen_count < LISTEN_MAX)
			settings->listen[settings->listen_count++] = text;
		return 0;
	default:
		break;
	}
	value = strtod(text, &end);
	if (end == text || *end || !(value >= line->least && value <= line->most)) {
		fprintf(stderr, "httpd: --%s %s: a number from %g to %g\n", line->name, text, line->least, line->most);
		return -1;
	}
	store(settings, line, value);
	return 0;
}

static struct settings defaults(void)
{
	int32_t cpus = hive_cpus();

	return (struct settings){
		.port = 8080,
		.root = ".",
		.workers = cpus < WORKERS_MAX ? cpus : WORKERS_MAX,
		.head = { .line_bytes = 8192, .head_bytes = 16384, .field_count = 100 },
		.body_bytes = 1 << 30,
		.connections = 10000,
		.requests = 1000000,
		.cache_files = 512,
		.header_ns = HIVE_S(10),
		.idle_ns = HIVE_S(60),
		.grace_ns = HIVE_S(10),
		.rate = 1000,
		.stop_ns = HIVE_S(30),
	};
}

int settings_read(struct settings *settings, int argc, char **argv)
{
	struct option longs[LINES + 2] = { { "help", no_argument, NULL, LINES } };
	int which;

	*settings = defaults();
	for (int i = 0; i < LINES; i++)
		longs[i + 1] = (struct option){ lines[i].name, lines[i].value ? required_argument : no_argument, NULL,
			                        i };
	while ((which = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (which == LINES) {
			help();
			return 1;
		}
		if (which == '?' || take(settings, &lines[which], optarg) < 0)
			return -1;
	}
	if (optind < argc) {
		fprintf(stderr, "httpd: what is %s? See --help\n", argv[optind]);
		return -1;
	}
	if (settings->listen_count == 0)
		settings->listen[settings->listen_count++] = "127.0.0.1";
	return 0;
}
