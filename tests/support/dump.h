/* SPDX-License-Identifier: MIT */
/* hive_dump() as a string. */
#pragma once

#include <rophive/hive.h>

#include "test.h"

/* Good until the next call. */
static inline const char *dump_text(struct hive *hive)
{
	static char text[1 << 16];
	FILE *file = tmpfile();
	size_t n;

	CHECK(file);
	CHECK_OK(hive_dump(hive, fileno(file)));
	rewind(file);
	n = fread(text, 1, sizeof text - 1, file);
	text[n] = 0;
	fclose(file);
	return text;
}
