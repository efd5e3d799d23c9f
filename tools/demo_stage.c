/* SPDX-License-Identifier: MIT */
#include "demo_stage.h"
#include <stdio.h>

#define RATES_EVERY_NS HIVE_MS(500)

void stage_begin(struct stage *stage, int64_t span_ns)
{
	int64_t now = sync_now();
	stage->begin_ns = now;
	stage->end_ns = now + span_ns;
	stage->next_line_ns = now + HIVE_S(1);
	stage->rates = (struct stage_rates){ .time_ns = now };
	frames_begin(&stage->frames, now + FRAMES_PERIOD_NS);
}

static void update_rates(struct stage *stage, int64_t now_ns)
{
	struct stage_rates *rates = &stage->rates;
	if (now_ns - rates->time_ns < RATES_EVERY_NS)
		return;
	double seconds = (double)(now_ns - rates->time_ns) / 1e9;
	int64_t answers = atomic_load_explicit(&stage->traffic.answers, memory_order_relaxed);
	int64_t tiles = stage->picture.done;
	*rates = (struct stage_rates){
		.time_ns = now_ns,
		.answers = answers,
		.tiles = tiles,
		.answers_per_s = (double)(answers - rates->answers) / seconds,
		.tiles_per_s = (double)(tiles - rates->tiles) / seconds,
	};
}

static void write_line(struct stage *stage, int64_t now_ns)
{
	if (now_ns < stage->next_line_ns)
		return;
	stage->next_line_ns += HIVE_S(1);
	printf("%-14s %2.0f s   %5.1f %% of frames on time   %7.0f requests/s   %6.1f tiles/s\n", stage->title,
	       (double)(now_ns - stage->begin_ns) / 1e9, 100 * frames_share(&stage->frames, now_ns),
	       stage->rates.answers_per_s, stage->rates.tiles_per_s);
	fflush(stdout);
}

static void draw(struct stage *stage, int64_t now_ns)
{
	int error = terminal_clear(stage->terminal);
	if (!error) {
		view_draw(stage, now_ns);
		error = terminal_flush(stage->terminal);
	}
	if (error)
		stage_fail(stage, error);
}

/* Frames that never came are as late as the one that came in their place. */
static void remember_lateness(struct stage *stage, int64_t first)
{
	for (int64_t i = first; i < stage->frames.next; i++)
		stage->history_ns[i % STAGE_HISTORY] = stage->frames.last_late_ns;
}

void stage_frame(struct stage *stage)
{
	int64_t now = sync_now(), first = stage->frames.next;
	frames_tick(&stage->frames, now);
	if (stage->frames.next - first > STAGE_HISTORY)
		first = stage->frames.next - STAGE_HISTORY;
	remember_lateness(stage, first);
	update_rates(stage, now);
	if (stage->output == STAGE_SCREEN)
		draw(stage, now);
	else if (stage->output == STAGE_LINES)
		write_line(stage, now);
	int failure = atomic_load_explicit(&stage->traffic.failure, memory_order_relaxed);
	if (failure)
		stage_fail(stage, failure);
}

bool stage_over(const struct stage *stage)
{
	return stage->failure || terminal_interrupted() || sync_now() >= stage->end_ns;
}

void stage_fail(struct stage *stage, int error)
{
	if (!stage->failure)
		stage->failure = error;
}

struct figures stage_figures(const struct stage *stage)
{
	int64_t now = sync_now(), answers = atomic_load(&stage->traffic.answers);
	double seconds = (double)(now - stage->begin_ns) / 1e9;
	const struct frames *frames = &stage->frames;
	return (struct figures){
		.seconds = seconds,
		.frames = frames_expected(frames, now),
		.frames_on_time = frames->on_time,
		.frames_drawn = frames->drawn,
		.frames_share = frames_share(frames, now),
		.late_p50_ns = stats_quantile(&frames->lateness, 0.50),
		.late_p99_ns = stats_quantile(&frames->lateness, 0.99),
		.late_max_ns = frames->lateness.max,
		.answers = answers,
		.tiles = stage->picture.done,
		.answers_per_s = (double)answers / seconds,
		.tiles_per_s = (double)stage->picture.done / seconds,
		.stats = stage->stats,
	};
}
