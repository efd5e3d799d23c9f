/* SPDX-License-Identifier: MIT */
/* hive_runtime_start() and hive_runtime_stop(): a hive and its threads in one call. */
#include "support/real.h"
#include "test.h"

static int yield_some(void *arg)
{
	for (int i = 0; i < 10; i++)
		CHECK_OK(hive_yield());
	++*(_Atomic int *)arg;
	return 0;
}

/* F-1, F-3: all workers are there on return, as many as were asked for. */
TEST(all_workers_are_registered_when_start_returns)
{
	for (int32_t io = 1; io < 4; io++) {
		struct hive_options o = { .io_workers = io, .compute_workers = 2 };
		struct hive_stats stats;
		struct hive *hive;
		uint32_t ids[16];

		CHECK_OK(hive_runtime_start(&o, &hive));
		CHECK_EQ(hive_workers(hive, ids, 16), io + 2);
		CHECK_OK(hive_stats_read(hive, &stats));
		CHECK_ERR(hive_start(hive), -EALREADY);
		CHECK_OK(hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	}
}

TEST(zero_and_no_options_mean_as_many_as_fit_the_machine)
{
	for (int how = 0; how < 3; how++) {
		struct hive_options o = { .io_workers = how == 1 ? HIVE_AUTO : 0 };
		struct hive *hive;

		CHECK_OK(hive_runtime_start(how == 2 ? NULL : &o, &hive));
		CHECK_EQ(hive_workers(hive, NULL, 0), 2 * (size_t)hive_cpus());
		CHECK_OK(hive_runtime_stop(hive, HIVE_NOW, HIVE_FOREVER));
	}
}

TEST(no_compute_workers_can_be_asked_for)
{
	struct hive_options o = { .io_workers = 2, .compute_workers = HIVE_NONE };
	struct hive_stats stats;
	struct hive *hive;

	CHECK_OK(hive_runtime_start(&o, &hive));
	CHECK_OK(hive_stats_read(hive, &stats));
	CHECK_EQ(stats.io_workers, 2);
	CHECK_EQ(stats.compute_workers, 0);
	CHECK_OK(hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
}

TEST(bad_options_start_nothing)
{
	struct hive *hive = NULL;
	struct hive_options o = { .io_workers = 1 };

	CHECK_ERR(hive_runtime_start(&o, NULL), -EINVAL);
	o.reserved[3] = 1;
	CHECK_ERR(hive_runtime_start(&o, &hive), -EINVAL);
	CHECK_ERR(hive_runtime_start(&(struct hive_options){ .io_workers = -77 }, &hive), -EINVAL);
	CHECK_ERR(hive_runtime_start(&(struct hive_options){ .io_workers = HIVE_NONE }, &hive), -EINVAL);
	CHECK_ERR(hive_runtime_start(&(struct hive_options){ .compute_workers = -3 }, &hive), -EINVAL);
	CHECK(!hive);
	CHECK_ERR(hive_runtime_stop(NULL, HIVE_DRAIN, HIVE_FOREVER), -EINVAL);
}

static int refuse_open(void *arg, struct hive_core **ret_core)
{
	(void)arg, (void)ret_core;
	return -EMFILE;
}

/* A core that cannot be had: the code, and nothing is left. */
TEST(a_start_that_fails_leaves_nothing)
{
	const struct hive_core_ops *best;
	struct hive_core_ops ops;
	struct hive_worker_options io = { .core = &ops };
	struct hive_options o = { .io_workers = 2, .compute_workers = 1, .io = &io };
	struct hive *hive = NULL;

	CHECK_OK(hive_core_find("best", &best));
	ops = *best;
	ops.open = refuse_open;
	CHECK_ERR(hive_runtime_start(&o, &hive), -EMFILE);
	CHECK(!hive);
}

static int stop_here(void *arg)
{
	CHECK_ERR(hive_runtime_stop(arg, HIVE_NOW, HIVE_FOREVER), -EDEADLK);
	CHECK_OK(hive_yield()); /* and it was not stopped */
	return 4;
}

static void stop_in_task(void *arg)
{
	CHECK_ERR(hive_runtime_stop(arg, HIVE_NOW, HIVE_FOREVER), -EDEADLK);
}

TEST(a_worker_cannot_stop_its_runtime)
{
	struct hive *hive, *other;
	int result;

	CHECK_OK(hive_runtime_start(NULL, &hive));
	CHECK_OK(hive_runtime_start(NULL, &other));
	CHECK_OK(hive_block_on(hive, stop_here, hive, HIVE_FOREVER, &result));
	CHECK_EQ(result, 4);
	CHECK_OK(hive_block_on(hive, stop_here, other, HIVE_FOREVER, &result));
	CHECK_OK(hive_post_compute(hive, stop_in_task, other));
	CHECK_OK(hive_post(hive, stop_in_task, hive));
	CHECK_OK(hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_runtime_stop(other, HIVE_DRAIN, HIVE_FOREVER));
}

TEST(a_drain_waits_for_all_fibers)
{
	_Atomic int done = 0;
	struct hive *hive;

	CHECK_OK(hive_runtime_start(NULL, &hive));
	for (int i = 0; i < 200; i++)
		CHECK_OK(hive_spawn(hive, yield_some, &done, NULL, NULL));
	CHECK_OK(hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_EQ(done, 200);
}

static int sleep_for_ever(void *arg)
{
	int r;

	*(_Atomic int *)arg = 1;
	r = hive_sleep(HIVE_FOREVER);
	*(_Atomic int *)arg = r;
	return r;
}

/* -ETIMEDOUT: gone all the same. A mode that does not exist: nothing happened. */
TEST(a_deadline_that_was_missed_is_told)
{
	_Atomic int result = 0;
	struct hive *hive;

	CHECK_OK(hive_runtime_start(NULL, &hive));
	CHECK_OK(hive_spawn(hive, sleep_for_ever, &result, NULL, NULL));
	CHECK_ERR(hive_runtime_stop(hive, (enum hive_stop_mode)0, HIVE_FOREVER), -EINVAL);
	WAIT_UNTIL(result == 1);
	CHECK_ERR(hive_runtime_stop(hive, HIVE_DRAIN, hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT);
	CHECK_EQ(result, -ECANCELED);
	result = 0;
	CHECK_OK(hive_runtime_start(NULL, &hive));
	CHECK_OK(hive_spawn(hive, sleep_for_ever, &result, NULL, NULL));
	WAIT_UNTIL(result == 1);
	CHECK_OK(hive_runtime_stop(hive, HIVE_NOW, HIVE_NOWAIT));
	CHECK_EQ(result, -ECANCELED);
}

/* Somebody has asked it to stop already: then it is only waited for. */
TEST(a_runtime_that_stops_already_is_waited_for)
{
	_Atomic int done = 0;
	struct hive *hive;

	CHECK_OK(hive_runtime_start(NULL, &hive));
	CHECK_OK(hive_spawn(hive, yield_some, &done, NULL, NULL));
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_EQ(done, 1);
}

/* Program 12 of the tour, as far as it goes: a budget for a whole subtree. */
static int crawl(void *arg)
{
	int r;

	while ((r = hive_sleep(HIVE_MS(1))) == 0)
		++*(_Atomic int *)arg;
	return r;
}

static int crawl_root(void *arg)
{
	struct hive_fiber *fibers[3];
	int result, bad = 0, r;

	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_spawn(hive_current(), crawl, arg, &(struct hive_fiber_options){ .name = "crawler" },
		                    &fibers[i]));
	r = hive_wait_all(fibers, 3, HIVE_FOREVER);
	CHECK(r == -ECANCELED || r == 0); /* its own wait is cancelled, or all of them have ended before that */
	for (int i = 0; i < 3; i++) {
		if (hive_fiber_join(fibers[i], HIVE_FOREVER, &result) < 0)
			CHECK_OK(hive_fiber_detach(fibers[i]));
		bad++;
	}
	return bad;
}

TEST(one_deadline_limits_a_whole_subtree)
{
	_Atomic int pages = 0;
	struct hive *hive;
	int bad = 0;

	CHECK_OK(hive_runtime_start(NULL, &hive));
	CHECK_ERR(hive_block_on(hive, crawl_root, &pages, hive_deadline(NULL, HIVE_MS(20)), &bad), -ETIMEDOUT);
	CHECK_EQ(bad, 3);
	CHECK_OK(hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
}
