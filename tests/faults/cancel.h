/* SPDX-License-Identifier: MIT */
#pragma once
/* The calls of the table in functions.c that are about cancel tokens. Each joins its token whatever has failed: nothing may be left under it. */
#include "fibers.h"

static void cancel_nothing(void *arg)
{
	(void)arg;
}

static void cancel_timer_fires(struct hive_timer *timer)
{
	(void)timer;
	CHECK(false);
}

static void cancel_note(struct hive_cancel_watch *watch, int reason)
{
	(void)reason;
	++*(int *)watch->arg;
}

static void cancel_open(struct world *w, struct hive_cancel *cancel, int64_t delay_ns)
{
	hive_cancel_init(cancel, NULL, delay_ns == HIVE_FOREVER ? HIVE_FOREVER : hive_deadline(w->extra, delay_ns));
}

/* Fires it, lets everything come to its end, and joins: `r`, unless that failed. */
static int cancel_close(struct world *w, struct hive_cancel *cancel, int r)
{
	int joined;

	hive_cancel_fire(cancel);
	hive_sim_advance(w->sim, 0);
	joined = hive_cancel_join(cancel, HIVE_FOREVER);
	return joined < 0 ? joined : r;
}

static int cancel_all(struct world *w)
{
	struct hive_cancel cancel, child;
	struct hive_cancel_watch watch;
	int calls = 0;

	(void)w;
	hive_cancel_init(&cancel, NULL, HIVE_FOREVER);
	hive_cancel_init(&child, &cancel, HIVE_FOREVER);
	hive_cancel_watch_init(&watch, cancel_note, &calls);
	CHECK_OK(hive_cancel_watch_start(&child, &watch));
	CHECK_EQ(hive_cancel_watch_stop(&watch), 1);
	CHECK_OK(hive_cancel_watch_start(&child, &watch));
	CHECK_OK(hive_cancel_fire_with(&cancel, -EIO));
	hive_cancel_fire(&child);
	CHECK_ERR(hive_cancel_check(&child), -EIO);
	CHECK_EQ(calls, 1);
	CHECK(!hive_cancelled());
	CHECK_OK(hive_cancel_join(&child, HIVE_FOREVER));
	return hive_cancel_join(&cancel, HIVE_FOREVER);
}

static int cancel_arm(struct world *w)
{
	struct hive_cancel cancel;

	cancel_open(w, &cancel, HIVE_S(1));
	return cancel_close(w, &cancel, hive_cancel_arm(&cancel, w->extra));
}

static int cancel_watch(struct world *w)
{
	struct hive_cancel cancel;
	struct hive_cancel_watch watch;
	int calls = 0, r;

	cancel_open(w, &cancel, HIVE_S(1));
	hive_cancel_watch_init(&watch, cancel_note, &calls);
	r = hive_cancel_watch_start(&cancel, &watch);
	r = cancel_close(w, &cancel, r);
	CHECK_EQ(calls, r == 0);
	return r;
}

static int cancel_spawn(struct world *w)
{
	struct hive_cancel cancel;
	struct hive_fiber_options options = { .cancel = &cancel };

	cancel_open(w, &cancel, HIVE_S(1));
	return cancel_close(w, &cancel, hive_spawn(w->extra, sleep_a_while, NULL, &options, NULL));
}

static int cancel_post(struct world *w)
{
	struct hive_cancel cancel;

	cancel_open(w, &cancel, HIVE_FOREVER);
	return cancel_close(w, &cancel, hive_post_under(w->extra, &cancel, HIVE_MICRO, cancel_nothing, NULL));
}

static int cancel_post_with_deadline(struct world *w)
{
	struct hive_cancel cancel;

	cancel_open(w, &cancel, HIVE_S(1));
	return cancel_close(w, &cancel, hive_post_under(w->extra, &cancel, HIVE_COMPUTE, cancel_nothing, NULL));
}

static int cancel_post_after(struct world *w)
{
	struct hive_cancel cancel;

	cancel_open(w, &cancel, HIVE_FOREVER);
	return cancel_close(w, &cancel, hive_post_after_under(w->extra, &cancel, HIVE_S(9), cancel_nothing, NULL));
}

static int cancel_timer_here(void *arg)
{
	struct world *w = (struct world *)arg;
	struct hive_cancel cancel;
	int r, joined;

	cancel_open(w, &cancel, HIVE_S(1));
	hive_timer_init(&w->timer, cancel_timer_fires, NULL);
	r = hive_timer_start_under(&w->timer, &cancel, HIVE_MS(1), 0);
	hive_cancel_fire(&cancel);
	joined = hive_cancel_join(&cancel, HIVE_FOREVER);
	return joined < 0 ? joined : r;
}

static int cancel_timer(struct world *w)
{
	return in_fiber(w, cancel_timer_here, w);
}

/* A starter that finds no memory for the deadline of the token has begun nothing. */
static int cancel_op(struct world *w)
{
	struct hive_cancel cancel;
	struct hive_op op;
	int fds[2], r;

	CHECK_OK(hive_socket_pair(false, fds));
	cancel_open(w, &cancel, HIVE_S(1));
	hive_op_init(&op, w->extra, NULL, NULL);
	CHECK_OK(hive_op_under(&op, &cancel));
	r = hive_op_poll(&op, fds[0], HIVE_EVENT_IN, 0, HIVE_FOREVER);
	hive_sim_advance(w->sim, 0);
	hive_cancel_fire(&cancel);
	if (r == 0 && hive_op_wait(&op) == -ENOMEM)
		r = -ENOMEM;
	CHECK_OK(close(fds[0]));
	CHECK_OK(close(fds[1]));
	return cancel_close(w, &cancel, r);
}
