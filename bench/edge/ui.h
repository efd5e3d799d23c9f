/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rophive/hive.h>

/* Frames on time, on ours (ui_hive.c) and on plain GLib (ui_glib.c), with a picture that is only moved in memory (ui_memory.c, hive-bench-ui) or
 * one in a window of GTK (ui_window.c, hive-bench-gtk). ui.c has what is the same for all, and says what the loads are.       */
enum { WIDTH = 960, HEIGHT = 640, TIMERS = 1000, POSTS_EACH_MS = 100, FRAMES_MOST = 60 * 600 };
#define PERIOD (HIVE_S(1) / 60)

/* ---- ui.c ---- */

struct ui_counts {
	_Atomic(uint64_t) worked, fired, posted, handled, blocked;
};
extern struct ui_counts counts;
extern atomic_bool ended;

/* One of these letters is among the loads of this turn. */
bool has(const char *letters);
/* A frame was due, and begins now. True: that was the last, and the posters have ended. */
bool frame(int64_t due_ns, int64_t now_ns, uint64_t left_out);
int compute_threads(void);
/* Compute tasks that are under way or wait; each makes the next. */
int compute_tasks(void);
void compute(void);
void block(void);
void start_posters(void (*post)(void));
void count_fired(void);
void count_handled(void);
void check(int r, const char *what);
/* Sorts them. At 0.5: the median; at 1: the greatest. None: 0. */
void sort_times(int64_t *times, int count);
double time_at_us(const int64_t *times, int count, double part);

/* ---- ui_hive.c, ui_glib.c: until the last frame ---- */

void run_hive(void);
void run_glib(void);

/* ---- ui_memory.c or ui_window.c ---- */

extern const char picture_program[], picture_bench[], picture_loads[]; /* the loads unless others are asked for */
/* On the thread that will have the frames, before somebody runs its loop. False: there is no display. */
bool picture_open(void);
/* On the same thread, right before its grid of frames begins. Waits for less than a frame. */
void picture_align(void);
/* On the same thread: frame `number`, from 0. */
void picture_frame(int number, int64_t due_ns);
/* On a compute thread: a task of some milliseconds, which ends early when all has ended. */
void picture_compute(void);
/* On the same thread: some frame was to be seen. */
bool picture_seen(void);
/* In the middle of a line of JSON. */
void picture_report(void);
