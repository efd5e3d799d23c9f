/* SPDX-License-Identifier: MIT */
#pragma once
/* Is each public function in a sweep? Its header is read, and somebody says of each name whether it is. */
#include <dirent.h>

#include "test.h"

typedef bool swept_fn(const char *name, size_t length);

/* A declaration stands at the beginning of its line, and is the first thing with a parenthesis in it. */
static inline int swept_line(const char *line, swept_fn *is_swept)
{
	const char *end = strchr(line, '('), *begin = end;

	if (!end || strchr("#/ \t\n}", line[0]) || strncmp(line, "typedef", 7) == 0)
		return 0;
	while (begin > line && (begin[-1] == '_' || (begin[-1] >= 'a' && begin[-1] <= 'z')))
		begin--;
	if (strncmp(begin, "hive_", 5) != 0)
		return 0;
	if (!is_swept(begin, (size_t)(end - begin)))
		test_fail(__FILE__, __LINE__, "%.*s is in no sweep", (int)(end - begin), begin);
	return 1;
}

/* Where the public headers are. ROPHIVE_SOURCE is the root of the tree; ctest sets it. By hand: in the root of the tree. */
static inline const char *swept_folder(void)
{
	static char folder[4000];
	const char *root = getenv("ROPHIVE_SOURCE");

	snprintf(folder, sizeof folder, "%s/include/rophive", root ? root : ".");
	return folder;
}

/* How many functions there are. */
static inline int swept_header(const char *name, swept_fn *is_swept)
{
	char path[4096], line[512];
	int found = 0;
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", swept_folder(), name);
	file = fopen(path, "r");
	if (!file)
		test_fail(__FILE__, __LINE__, "no %s: set ROPHIVE_SOURCE to the root of the tree", path);
	while (fgets(line, sizeof line, file))
		found += swept_line(line, is_swept);
	fclose(file);
	return found;
}

/* ---- for sweeps without a table: each call says its name ---- */

enum { SWEPT_MOST = 64 };
static const char *swept_names[SWEPT_MOST];

static inline bool swept_is_noted(const char *name, size_t length)
{
	for (int i = 0; i < SWEPT_MOST && swept_names[i]; i++)
		if (strlen(swept_names[i]) == length && strncmp(swept_names[i], name, length) == 0)
			return true;
	return false;
}

static inline void swept_note(const char *name)
{
	int i = 0;

	if (swept_is_noted(name, strlen(name)))
		return;
	while (swept_names[i])
		i++;
	CHECK(i < SWEPT_MOST - 1);
	swept_names[i] = name;
}

/* SWEPT(hive_tls_read)(tls, …): one thread at a time. */
#define SWEPT(function) (swept_note(#function), function)
