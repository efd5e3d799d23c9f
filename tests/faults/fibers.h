/* SPDX-License-Identifier: MIT */
#pragma once
/* The calls of the table in functions.c that are about fibers, on a hive of their own. Inside of a fiber: by hive_block_on(),
 * which needs no memory once there are stacks.                                                                             */
#include "calls.h"

enum { FIBERS = 20 };

static struct hive_fiber *fibers[FIBERS];
static char fiber_key;

static int fiber_nop(void *arg)
{
	return (void)arg, 0;
}

static int runtime_start(struct world *w)
{
	struct hive_options o = options_of(w);

	o.on_drop = NULL; /* not in the books of the world's own hive */
	return hive_runtime_start(&o, &w->extra);
}

static void make_runtime(struct world *w)
{
	CHECK_OK(runtime_start(w));
}

/* Some stacks, queues and timers have been used and are there again. */
static void warm_runtime(struct world *w)
{
	make_runtime(w);
	for (int i = 0; i < FIBERS; i++)
		CHECK_OK(hive_spawn(w->extra, fiber_nop, NULL, NULL, &fibers[i]));
	for (int i = 0; i < FIBERS; i++)
		CHECK_OK(hive_fiber_join(fibers[i], HIVE_FOREVER, NULL));
}

static int sleep_a_while(void *arg)
{
	return (void)arg, hive_sleep(HIVE_MS(1));
}

static void load_runtime(struct world *w)
{
	warm_runtime(w);
	for (int i = 0; i < FIBERS; i++)
		CHECK_OK(hive_spawn(w->extra, i % 2 ? sleep_a_while : fiber_nop, NULL, NULL, NULL));
	hive_sim_advance(w->sim, 0);
}

static int runtime_stop(struct world *w)
{
	int r = hive_runtime_stop(w->extra, HIVE_DRAIN, HIVE_FOREVER);

	if (r == 0)
		w->extra = NULL;
	return r;
}

static void make_fiber(struct world *w)
{
	warm_runtime(w);
	for (int i = 0; i < FIBERS; i++)
		CHECK_OK(hive_spawn(w->extra, sleep_a_while, NULL, NULL, &fibers[i]));
	hive_sim_advance(w->sim, 0);
}

/* What a row has left: a hive that runs or one that never did. Its books balance whatever happened. */
static void end_extra(struct world *w)
{
	struct hive_report books;

	if (!w->extra)
		return;
	CHECK_OK(hive_stop(w->extra, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(w->extra, HIVE_FOREVER));
	CHECK_OK(hive_report_read(w->extra, &books));
	CHECK_EQ(books.posted, books.ran + books.cancelled + books.dropped);
	CHECK_OK(hive_destroy(w->extra));
}

static int spawn(struct world *w)
{
	return hive_spawn(w->extra, fiber_nop, NULL, NULL, NULL);
}

/* A size for which there is no stack yet. */
static int spawn_big(struct world *w)
{
	return hive_spawn(w->extra, fiber_nop, NULL, &(struct hive_fiber_options){ .stack_bytes = 1 << 20 }, NULL);
}

/* The result of a fiber, or why there is none. */
static int in_fiber(struct world *w, hive_fiber_fn *fn, void *arg)
{
	int result = 0, r = hive_block_on(w->extra, fn, arg, HIVE_FOREVER, &result);

	return r < 0 ? r : result;
}

static int spawn_here(void *arg)
{
	return spawn_big(arg);
}

static int spawn_inside(struct world *w)
{
	return in_fiber(w, spawn_here, w);
}

static int join_fiber(struct world *w)
{
	int result = 77, r = hive_fiber_join(fibers[0], HIVE_FOREVER, &result);

	(void)w;
	return r < 0 ? r : result;
}

static int detach_fiber(struct world *w)
{
	return (void)w, hive_fiber_detach(fibers[0]);
}

static int cancel_fiber(struct world *w)
{
	char name[8];
	int r = hive_fiber_name(fibers[0], name, sizeof name);

	(void)w;
	return r < 0 ? r : hive_fiber_cancel(fibers[0]);
}

static int wait_all_fibers(struct world *w)
{
	return (void)w, hive_wait_all(fibers, FIBERS, HIVE_FOREVER);
}

static int wait_any_few(struct world *w)
{
	size_t index;

	return (void)w, hive_wait_any(fibers, 3, HIVE_FOREVER, &index);
}

static int wait_any_many(struct world *w)
{
	size_t index;

	return (void)w, hive_wait_any(fibers, FIBERS, HIVE_FOREVER, &index);
}

static int block_on(struct world *w)
{
	return in_fiber(w, fiber_nop, NULL);
}

static int offload_here(void *arg)
{
	int result = 77, r = hive_offload(fiber_nop, arg, HIVE_FOREVER, &result);

	return r < 0 ? r : result;
}

static int offload(struct world *w)
{
	return in_fiber(w, offload_here, NULL);
}

static int sleep_in_fiber(struct world *w)
{
	return in_fiber(w, sleep_a_while, NULL);
}

static int sleep_outside(struct world *w)
{
	return (void)w, hive_sleep(HIVE_MS(1));
}

static int yield_here(void *arg)
{
	(void)arg;
	if (!hive_fiber_current() || hive_fiber_get(&fiber_key))
		return -EINVAL;
	return hive_yield_if_due() == 0 ? hive_yield() : -EIO;
}

static int yield_in_fiber(struct world *w)
{
	return in_fiber(w, yield_here, NULL);
}

static int set_here(void *arg)
{
	return hive_fiber_set(&fiber_key, arg);
}

static int set_value(struct world *w)
{
	return in_fiber(w, set_here, w);
}
