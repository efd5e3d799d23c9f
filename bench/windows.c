/* SPDX-License-Identifier: MIT */
#include "windows.h"

#define WINDOW_NS 50000000

void windows_reset(struct windows *windows)
{
	stats_reset(&windows->now);
	stats_reset(&windows->all);
	windows->end_ns = 0;
	windows->count = 0;
}

void windows_add(struct windows *windows, int64_t now_ns, int64_t value)
{
	if (now_ns >= windows->end_ns) {
		if (windows->now.count > 0 && windows->count < WINDOWS_MOST)
			windows->p99s[windows->count++] = (double)stats_quantile(&windows->now, 0.99);
		stats_reset(&windows->now);
		windows->end_ns = now_ns + WINDOW_NS;
	}
	stats_add(&windows->now, value);
	stats_add(&windows->all, value);
}

double windows_median(struct windows *windows)
{
	return windows->count ? stats_median(windows->p99s, windows->count) : 0;
}

double windows_whole(const struct windows *windows)
{
	return (double)stats_quantile(&windows->all, 0.99);
}
