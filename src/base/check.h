/* SPDX-License-Identifier: MIT */
#pragma once
/* Two kinds of assertion.
 *   CHECK(x)         an invariant of ours. Debug builds only; false means a bug in the library.
 *   MISUSE(x, text)  true when the caller broke a rule of the API. Debug builds stop here and say which; release
 *                    builds answer true, and the caller returns its documented error code.                     */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(HIVE_DEBUG)
#define CHECK(x)                                                                                 \
	do {                                                                                     \
		if (!(x)) {                                                                      \
			fprintf(stderr, "rophive: %s:%d: broken: %s\n", __FILE__, __LINE__, #x); \
			abort();                                                                 \
		}                                                                                \
	} while (0)
static inline bool misuse(bool wrong, const char *function, const char *text)
{
	if (wrong) {
		fprintf(stderr, "rophive: %s: %s\n", function, text);
		abort();
	}
	return false;
}
#else
#define CHECK(x) ((void)sizeof(!(x)))
static inline bool misuse(bool wrong, const char *function, const char *text)
{
	(void)function, (void)text;
	return wrong;
}
#endif
#define MISUSE(wrong, text) misuse((wrong), __func__, (text))
