/* SPDX-License-Identifier: MIT */
/* Whole hives with a worker that waits in a GMainContext: posts, answers of compute workers, and no work when there is none. */
#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>

#include <rophive/glib.h>

#include "support/cores.h"
#include "support/real.h"

static GMainContext *context;
static struct hive *hive;
static uint32_t ui;
static _Atomic(int) polls, ran;

static gint counted_poll(GPollFD *fds, guint count, gint timeout_ms)
{
	atomic_fetch_add(&polls, 1);
	return g_poll(fds, count, timeout_ms);
}

/* A worker in a context beside `others` on the usual core. */
static void start_world(int others, int compute_workers)
{
	struct hive_worker_options io = { .core = hive_core_glib() };

	context = g_main_context_new();
	g_main_context_set_poll_func(context, counted_poll);
	io.core_arg = context;
	hive = real_create((struct hive_options){ .compute_workers = compute_workers });
	CHECK_OK(hive_attach(hive, &io, &ui));
	for (int i = 0; i < others; i++)
		CHECK_OK(hive_attach(hive, NULL, NULL));
	atomic_store(&polls, 0);
	atomic_store(&ran, 0);
	CHECK_OK(hive_start(hive));
}

static void end_world(void)
{
	real_end(hive, HIVE_DRAIN);
	g_main_context_unref(context);
}

static void count(void *arg)
{
	CHECK_EQ(arg != NULL && hive_worker_current() != ui, 0); /* those with an argument are the worker's own */
	atomic_fetch_add(&ran, 1);
}

enum { EACH = 5000 };

static _Atomic(int) computed_elsewhere;

static void compute(void *arg)
{
	(void)arg;
	atomic_fetch_add(&computed_elsewhere, hive_worker_current() != ui);
}

/* what is for compute workers does not come to this worker, and what they answer does. */
TEST(computation_stays_with_compute_workers_and_the_answer_comes_here)
{
	start_world(0, 2);
	atomic_store(&computed_elsewhere, 0);
	for (int i = 0; i < 1000; i++)
		CHECK_OK(hive_post_compute_then(hive, compute, ui, count, &ran));
	WAIT_UNTIL(atomic_load(&ran) == 1000);
	CHECK_EQ(atomic_load(&computed_elsewhere), 1000);
	end_world();
}

/* The longer it takes, the more it shows; a poll that returns for nothing would be counted. */
TEST(a_worker_with_nothing_to_do_stays_in_one_poll)
{
	int before;

	start_world(1, 1);
	real_wait_asleep(hive, 3);
	CHECK_OK(hive_post_to(hive, ui, count, &ran));
	WAIT_UNTIL(atomic_load(&ran) == 1);
	real_wait_asleep(hive, 3);
	before = atomic_load(&polls);
	g_usleep(300000);
	CHECK(atomic_load(&polls) - before <= 1); /* it was about to enter it */
	end_world();
}

enum { WAKES = 200 };

static void *wake_context(void *arg)
{
	(void)arg;
	for (int i = 0; i < WAKES; i++)
		g_main_context_wakeup(context);
	return NULL;
}

/* Wakes that are not ours end the wait, and nothing else. */
TEST(a_context_that_others_wake_goes_back_to_sleep)
{
	pthread_t thread;

	start_world(0, 0);
	CHECK_EQ(pthread_create(&thread, NULL, wake_context, NULL), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	real_wait_asleep(hive, 1);
	CHECK_OK(hive_post_to(hive, ui, count, &ran));
	WAIT_UNTIL(atomic_load(&ran) == 1);
	real_wait_asleep(hive, 1);
	CHECK(atomic_load(&polls) < 2 * WAKES + 20);
	end_world();
}

static void *post_later(void *arg)
{
	(void)arg;
	real_wait_asleep(hive, 1);
	for (int i = 0; i < EACH; i++) {
		CHECK_OK(hive_post_to(hive, ui, count, &ran));
		WAIT_UNTIL(atomic_load(&ran) > i); /* so that it falls asleep each time, or nearly */
	}
	return NULL;
}

TEST(a_worker_about_to_sleep_is_woken_by_every_post)
{
	pthread_t thread;

	start_world(0, 0);
	CHECK_EQ(pthread_create(&thread, NULL, post_later, NULL), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	end_world();
}

/* a task of the pool runs here when the others are busy. */
TEST(tasks_of_the_pool_run_on_this_worker_too)
{
	struct block block;

	start_world(1, 0);
	block_init(&block);
	CHECK_OK(hive_post(hive, block_task, &block)); /* whoever takes it */
	gate_pass(&block.entered);
	CHECK_OK(hive_post(hive, count, NULL));
	WAIT_UNTIL(atomic_load(&ran) == 1);
	gate_open(&block.leave);
	end_world();
	block_destroy(&block);
}
