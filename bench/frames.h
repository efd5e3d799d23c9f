/* SPDX-License-Identifier: MIT */
#pragma once
#include "halts.h"
#include "stats.h"
#include <stdbool.h>

/* A grid of frames and how well somebody keeps to it. A frame is on time when it begins less than 2 ms after its
 * point of the grid; one that never came, because the one before it took its place, counts as late too.          */
#define FRAMES_PERIOD_NS 16666667 /* 60 Hz */
#define FRAMES_LATE_NS 2000000

enum { FRAMES_LATES = 4096 };

struct frames {
	int64_t base_ns; /* frame 0 is due then */
	int64_t next;    /* first frame that has not been accounted for */
	int64_t drawn, on_time, last_late_ns;
	struct stats lateness;
	struct {
		int64_t due_ns, came_ns, count; /* it and those whose places it took */
	} lates[FRAMES_LATES];                  /* the first ones */
	int late_count;
};

void frames_begin(struct frames *frames, int64_t base_ns);
/* When the next frame is due. */
int64_t frames_due(const struct frames *frames);
/* A frame begins now. */
void frames_tick(struct frames *frames, int64_t now_ns);
/* How many were due until now, drawn or not. */
int64_t frames_expected(const struct frames *frames, int64_t now_ns);
/* Share on time of those expected, 0 … 1. */
double frames_share(const struct frames *frames, int64_t now_ns);
/* Those that were late, or never came, while the machine stood still; and the share on time of the others. */
int64_t frames_halted(const struct frames *frames, const struct halts *halts, int64_t now_ns);
double frames_share_running(const struct frames *frames, const struct halts *halts, int64_t now_ns);
