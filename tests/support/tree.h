/* SPDX-License-Identifier: MIT */
#pragma once
/* A made-up tree of files, in place of what the system shows below /proc and /sys. */
#include <ftw.h>
#include <sys/stat.h>

#include "test.h"

static char tree_root[64];

static inline void tree_begin(void)
{
	strcpy(tree_root, "/tmp/rophive-tree-XXXXXX");
	CHECK(mkdtemp(tree_root));
}

static inline int tree_remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	(void)status, (void)kind, (void)where;
	return remove(path);
}

static inline void tree_end(void)
{
	CHECK_EQ(nftw(tree_root, tree_remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* A file below the root, with all directories on the way. */
static inline void tree_put(const char *path, const char *text)
{
	char full[512];
	FILE *file;

	snprintf(full, sizeof full, "%s/%s", tree_root, path);
	for (char *at = full + strlen(tree_root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		CHECK(mkdir(full, 0700) == 0 || errno == EEXIST);
		*at = '/';
	}
	file = fopen(full, "w");
	CHECK(file);
	fputs(text, file);
	fclose(file);
}
