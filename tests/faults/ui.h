/* SPDX-License-Identifier: MIT */
#pragma once
/* Guests of a loop, coalescing posts, frame clocks. */
#include "calls.h"

static struct hive *guest;
static struct hive_frames frame_clock;
static struct hive_update updates[256], idle_update;
static unsigned update_next;

/* ---- a guest has threads, or would have: it is no part of the simulated world ---- */

static void make_guest(struct world *w)
{
	struct hive_worker_options io = { 0 };

	(void)w;
	CHECK_OK(hive_core_find("epoll", &io.core));
	CHECK_OK(hive_create(&(struct hive_options){ .io_workers = 1, .io = &io }, &guest));
}

static int end_guest(void)
{
	int64_t wait_ns;
	int r;

	CHECK_OK(hive_stop(guest, HIVE_NOW, HIVE_NOWAIT));
	do
		r = hive_guest_step(guest, &wait_ns);
	while (r == 0);
	CHECK_ERR(r, -ESHUTDOWN);
	return hive_destroy(guest);
}

static int guest_start(struct world *w)
{
	int fd, r = hive_guest_start(guest, &fd);

	(void)w;
	return r < 0 ? r : end_guest();
}

static void start_guest(struct world *w)
{
	int fd;

	make_guest(w);
	CHECK_OK(hive_guest_start(guest, &fd));
}

static int guest_step(struct world *w)
{
	int64_t wait_ns;
	int r = hive_guest_step(guest, &wait_ns);

	(void)w;
	return r < 0 ? r : end_guest();
}

/* ---- updates ---- */

static int post_update(struct world *w, struct entry *e)
{
	struct hive_update *update = &updates[update_next++ % 256];

	hive_update_init(update, w->hive, w->main, ledger_run, e);
	return hive_update_post(update);
}
DOOR(update_post, post_update(w, e))

static int update_init(struct world *w)
{
	return hive_update_init(&idle_update, w->hive, w->main, ledger_run, NULL), 0;
}
static void make_update(struct world *w)
{
	update_init(w);
}
static int update_stop(struct world *w)
{
	(void)w;
	return hive_update_stop(&idle_update);
}

/* ---- frames ---- */

static void on_no_frame(struct hive_frames *frames, const struct hive_frame *frame)
{
	(void)frames, (void)frame;
}

static int frames_init(struct world *w)
{
	(void)w;
	return hive_frames_init(&frame_clock, on_no_frame, NULL), 0;
}
static void make_frames(struct world *w)
{
	frames_init(w);
}
static int frames_start(struct world *w)
{
	(void)w;
	return hive_frames_start(&frame_clock, HIVE_S(1));
}
static void start_frames(struct world *w)
{
	make_frames(w);
	make_timer(w);
	CHECK_OK(frames_start(w));
}
static int frames_stop(struct world *w)
{
	(void)w;
	return hive_frames_stop(&frame_clock) == 1 ? 0 : -EINVAL;
}
static int frames_align(struct world *w)
{
	return hive_frames_align(&frame_clock, &w->timer, HIVE_S(1), HIVE_S(1));
}
static int frames_read(struct world *w)
{
	struct hive_frame_stats stats;

	(void)w;
	return hive_frames_read(&frame_clock, &stats), 0;
}
