/* SPDX-License-Identifier: MIT */
/* Who ends with a group left open is told so in debug builds; elsewhere its tasks run all the same. */
#include <rophive/hive.h>

#include "base/atomic.h"
#include "support/real.h"
#include "test.h"

static ATOMIC(uint32_t) ran;
static struct hive_group group, closed;
static bool waits, shared;

static void count(void *arg)
{
	(void)arg;
	add_relaxed(&ran, 1u);
}

static void open_group(void *arg)
{
	struct hive_group_options options = { .flags = shared ? HIVE_GROUP_SHARED : 0 };

	CHECK_OK(hive_group_init_with(&group, arg, HIVE_COMPUTE, &options));
	hive_group_init(&closed, arg, HIVE_COMPUTE);
	hive_group_run(&closed, count, NULL);
	hive_group_run(&group, count, NULL);
	CHECK_OK(hive_group_wait(&closed, HIVE_FOREVER));
	if (waits)
		CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
}

static void open_inside(void *arg)
{
	struct hive_group outer;

	hive_group_init(&outer, arg, HIVE_COMPUTE);
	hive_group_run(&outer, open_group, arg);
	CHECK_OK(hive_group_wait(&outer, HIVE_FOREVER));
}

static int open_in_fiber(void *arg)
{
	open_group(arg);
	return 0;
}

static void give_away(void *arg)
{
	hive_group_init(&group, arg, HIVE_COMPUTE);
	hive_group_run(&group, count, NULL);
	CHECK_OK(hive_group_then(&group, count, NULL));
}

/* 0, when all has ended in peace. */
static int do_as(hive_fn *task, hive_fiber_fn *fiber)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 2 });

	store_relaxed(&ran, 0);
	if (task)
		CHECK_OK(hive_post_compute(hive, task, hive));
	else
		CHECK_OK(hive_spawn(hive, fiber, hive, NULL, NULL));
	WAIT_UNTIL(load_relaxed(&ran) == 2);
	real_end(hive, HIVE_DRAIN);
	return 0;
}

TEST(a_task_may_not_end_before_its_group)
{
	waits = shared = false;
	CHECK_MISUSE(do_as(open_group, NULL), 0);
}

TEST(nor_may_a_fork)
{
	waits = shared = false;
	CHECK_MISUSE(do_as(open_inside, NULL), 0);
}

TEST(nor_may_a_fiber)
{
	waits = shared = false;
	CHECK_MISUSE(do_as(NULL, open_in_fiber), 0);
}

TEST(who_waits_may)
{
	waits = true;
	shared = false;
	CHECK_OK(do_as(open_group, NULL));
	CHECK_OK(do_as(open_inside, NULL));
	CHECK_OK(do_as(NULL, open_in_fiber));
}

TEST(who_gives_it_away_may)
{
	CHECK_OK(do_as(give_away, NULL));
}

TEST(what_is_shared_is_anybodys)
{
	waits = false;
	shared = true;
	CHECK_OK(do_as(open_group, NULL));
}
