/* SPDX-License-Identifier: MIT */
#pragma once
/* The hive command as a program of its own. HIVE_TOOL names it; else it is looked for beside this test, where the build puts it. */
#include <stdio.h>
#include <sys/wait.h>

#include "support/json.h"
#include "test.h"

static char tool[2048], output[1 << 20];

static inline bool find_tool(void)
{
	const char *given = getenv("HIVE_TOOL");
	ssize_t n = readlink("/proc/self/exe", tool, sizeof tool - 32);

	CHECK(n > 0);
	tool[n] = '\0';
	for (int i = 0; i < 2; i++) /* from build/tests/tool.hive to build */
		*strrchr(tool, '/') = '\0';
	strcat(tool, "/bin/hive");
	if (given)
		snprintf(tool, sizeof tool, "%s", given);
	if (access(tool, X_OK) == 0)
		return true;
	printf("skipped: there is no %s\n", tool);
	return false;
}

/* Its exit code; what it wrote to stdout is in `output`, what it wrote to stderr as well if `both`. */
static inline int run_tool(const char *arguments, bool both)
{
	char command[4096];
	size_t n = 0, got;
	FILE *pipe;
	int status;

	snprintf(command, sizeof command, "'%s' %s %s", tool, arguments, both ? "2>&1" : "2>/dev/null");
	fflush(NULL);
	pipe = popen(command, "r");
	CHECK(pipe);
	while ((got = fread(output + n, 1, sizeof output - 1 - n, pipe)) > 0)
		n += got;
	output[n] = '\0';
	status = pclose(pipe);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The lines of `output`, each cut off at its end. How many. */
static inline int split(char **lines, int most)
{
	int count = 0;

	for (char *at = strtok(output, "\n"); at; at = strtok(NULL, "\n")) {
		CHECK(count < most);
		lines[count++] = at;
	}
	return count;
}

/* One sample of a scenario: its only line. stderr is empty, too: nothing is logged on the way. */
static inline const char *sample(const char *scenario, const char *arguments)
{
	char text[512], *lines[2];
	int code;

	snprintf(text, sizeof text, "bench --scenario %s %s", scenario, arguments);
	code = run_tool(text, true);
	if (code != 0)
		test_fail(__FILE__, __LINE__, "%s: exit %d: %s", text, code, output);
	CHECK_EQ(split(lines, 2), 1);
	CHECK(json_is_valid(lines[0]));
	CHECK(json_says(lines[0], "peer", "rophive"));
	CHECK(json_says(lines[0], "scenario", scenario));
	CHECK(json_number(lines[0], "threads", -1) >= 1);
	CHECK(json_number(lines[0], "producers", -1) >= 0);
	CHECK(json_number(lines[0], "consumers", -1) >= 0);
	CHECK(json_number(lines[0], "n", -1) >= 0);
	CHECK(json_number(lines[0], "rss_kb", -1) > 0);
	return lines[0];
}
