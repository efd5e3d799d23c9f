/* SPDX-License-Identifier: MIT */
#pragma once
#include "demo_tiles.h"
#include "demo_traffic.h"
#include "frames.h"
#include "terminal.h"
#include <rophive/hive.h>

/* What both runs have in common, the hive's and the plain loop's: the work, and the frame that shows it. */
#define STAGE_HISTORY 256 /* frames in the strip at the bottom */
#define STAGE_WORKERS 64  /* lines in the table of workers */

enum stage_output {
	STAGE_SCREEN, /* live, on a terminal */
	STAGE_LINES,  /* a line each second */
	STAGE_SILENT
};

struct figures { /* what a run came to */
	double seconds;
	int64_t frames, frames_on_time, frames_drawn;
	double frames_share; /* on time, 0 … 1 */
	int64_t late_p50_ns, late_p99_ns, late_max_ns;
	int64_t answers, tiles;
	double answers_per_s, tiles_per_s;
	int64_t answer_p50_ns, answer_p99_ns;
	struct hive_stats stats; /* zeros for the plain loop */
};

struct stage_rates { /* what the screen shows of the last half second */
	int64_t time_ns, answers, tiles;
	double answers_per_s, tiles_per_s;
};

struct stage {
	const char *title;
	enum stage_output output;
	struct terminal *terminal;
	int64_t begin_ns, end_ns;
	struct frames frames;
	struct picture picture;
	struct traffic traffic;
	int64_t history_ns[STAGE_HISTORY]; /* lateness of frame i at i % STAGE_HISTORY */
	struct stage_rates rates;
	int64_t next_line_ns;
	struct hive_stats stats; /* of the hive, when there is one */
	struct hive_worker_stats workers[STAGE_WORKERS];
	size_t worker_count;
	const struct figures *other; /* the run before, to compare with; or NULL */
	int failure;                 /* first -errno of anything */
};

void stage_begin(struct stage *stage, int64_t span_ns);
/* A frame begins: counts it and draws it. */
void stage_frame(struct stage *stage);
/* Time is up, or somebody wants to go home, or something broke. */
bool stage_over(const struct stage *stage);
void stage_fail(struct stage *stage, int error);
/* The figures of this moment; the percentiles of the answers only after traffic_stop(). */
struct figures stage_figures(const struct stage *stage);

/* demo_view.c */
void view_draw(struct stage *stage, int64_t now_ns);

/* demo_hive.c, demo_plain.c: run the whole thing for span_ns. 0 or -errno. */
int hive_stage_run(struct stage *stage, int64_t span_ns, struct figures *ret_figures, struct hive_report *ret_report);
int plain_stage_run(struct stage *stage, int64_t span_ns, struct figures *ret_figures);
