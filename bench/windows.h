/* SPDX-License-Identifier: MIT */
#pragma once
#include "stats.h"

/* The p99 of each 50 ms. What the machine does meanwhile is in a few of them, and in the p99 of a whole run: their median is what a program
 * has when it is left alone. One thread at a time.                                                                           */
enum { WINDOWS_MOST = 4096 };

struct windows {
	struct stats now, all;
	int64_t end_ns;
	double p99s[WINDOWS_MOST];
	size_t count;
};

void windows_reset(struct windows *windows);
void windows_add(struct windows *windows, int64_t now_ns, int64_t value);
/* 0: there was none. Sorts them. */
double windows_median(struct windows *windows);
/* Of all, the machine's pauses among them. */
double windows_whole(const struct windows *windows);
