/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdint.h>

struct program {
	const char *name; /* a sentence, as with tests */
	void (*run)(void *arg);
};

extern const struct program programs[]; /* ends with a name of NULL */
