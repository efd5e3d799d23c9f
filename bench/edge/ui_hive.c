/* SPDX-License-Identifier: MIT */
/* Ours: a worker whose core is the GMainContext, frames of hive_frames, compute workers, posts. */
#include <rophive/glib.h>
#include <rophive/hive.h>

#include "ui.h"

static struct hive *hive;
static struct hive_frames clock_of_frames;
static struct hive_timer timers[TIMERS];
static struct hive_update update;

static void on_frame(struct hive_frames *clock, const struct hive_frame *now)
{
	if (!frame(now->due_ns, now->now_ns, now->missed))
		return;
	hive_frames_stop(clock);
	hive_stop(hive, HIVE_NOW, HIVE_FOREVER);
}

static void on_timer(struct hive_timer *timer)
{
	(void)timer;
	count_fired();
}

static void handle(void *arg)
{
	(void)arg;
	count_handled();
}

static void compute_and_again(void *arg)
{
	int r;

	compute();
	if (atomic_load(&ended))
		return;
	r = hive_post_compute(hive, compute_and_again, arg);
	if (!atomic_load(&ended))
		check(r, "hive_post_compute");
}

static void block_task(void *arg)
{
	(void)arg;
	block();
}

static void post_to_ui(void)
{
	check(hive_post_to(hive, HIVE_WORKER_MAIN, handle, NULL), "hive_post_to");
}

static void post_to_pool(void)
{
	check(hive_post(hive, handle, NULL), "hive_post");
}

static void post_update(void)
{
	hive_update_post(&update);
}

static void begin_hive(void *arg)
{
	uint32_t ids[2];

	(void)arg;
	hive_frames_init(&clock_of_frames, on_frame, NULL);
	picture_align();
	check(hive_frames_start(&clock_of_frames, PERIOD), "hive_frames_start");
	for (int i = 0; i < compute_tasks(); i++)
		check(hive_post_compute(hive, compute_and_again, NULL), "hive_post_compute");
	for (int i = 0; i < TIMERS && has("b"); i++) {
		hive_timer_init(&timers[i], on_timer, NULL);
		check(hive_timer_start(&timers[i], HIVE_US(100) * (i + 1), HIVE_MS(100)), "hive_timer_start");
	}
	if (has("c"))
		start_posters(post_to_ui);
	if (has("s"))
		start_posters(post_to_pool);
	hive_update_init(&update, hive, HIVE_WORKER_MAIN, handle, NULL);
	if (has("u"))
		start_posters(post_update);
	if (has("d") && hive_workers(hive, ids, 2) >= 2)
		check(hive_post_to(hive, ids[1], block_task, NULL), "hive_post_to");
}

void run_hive(void)
{
	struct hive_worker_options ui = { .name = "ui",
		                          .core = hive_core_glib(),
		                          .ui = true,
		                          .realtime = has("r")   ? 1
		                                      : has("o") ? HIVE_OFF
		                                                 : 0,
		                          .on_start = begin_hive };
	struct hive_options options = { .compute_workers = compute_threads() };

	check(hive_create(&options, &hive), "hive_create");
	check(hive_attach(hive, &ui, NULL), "hive_attach");
	check(hive_attach(hive, NULL, NULL), "hive_attach");
	check(hive_run(hive), "hive_run");
	hive_destroy(hive);
}
