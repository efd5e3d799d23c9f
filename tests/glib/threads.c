/* SPDX-License-Identifier: MIT */
/* Sources of GLib's from several threads, and posts between them. A program of its own: GLib locks by futexes that ThreadSanitizer does not see, so it
 * takes what one thread attaches and another frees for a race. It is not built with that.                                */
#include <glib.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <rophive/glib.h>

#include "support/cores.h"
#include "support/real.h"

static GMainContext *context;
static struct hive *hive;
static uint32_t ui;
static _Atomic(int) polls, ran, idles;

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
	atomic_store(&idles, 0);
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

static gboolean count_idle(gpointer data)
{
	(void)data;
	CHECK_EQ(hive_worker_current(), ui); /* whatever touches a widget is on this thread, and may use its doors */
	CHECK_OK(hive_post_self(count, &ran));
	atomic_fetch_add(&idles, 1);
	return G_SOURCE_REMOVE;
}

enum { THREADS = 3, EACH = 5000 };

static void *post_and_add(void *arg)
{
	(void)arg;
	for (int i = 0; i < EACH; i++) {
		CHECK_OK(i % 2 ? hive_post_to(hive, ui, count, &ran) : hive_post(hive, count, NULL));
		if (i % 4 == 0) {
			GSource *idle = g_idle_source_new();

			g_source_set_callback(idle, count_idle, NULL, NULL);
			g_source_attach(idle, context);
			g_source_unref(idle);
		}
	}
	return NULL;
}

/* posts to the worker, to the pool, and idle sources of GLib's, from several threads at once: all of them run. */
TEST(posts_and_sources_of_glib_from_many_threads_all_run)
{
	pthread_t threads[THREADS];

	start_world(1, 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, post_and_add, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	WAIT_UNTIL(atomic_load(&idles) == THREADS * EACH / 4);
	WAIT_UNTIL(atomic_load(&ran) == THREADS * EACH + THREADS * EACH / 4);
	end_world();
}

/* ---- threads of GLib's own ---- */

struct policies {
	_Atomic(int) ui, pool;
};

static int own_policy(void)
{
	return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

static void note_policy(gpointer data, gpointer user_data)
{
	(void)user_data;
	atomic_store(&((struct policies *)data)->pool, own_policy());
}

/* As GTask does it, when it is used for the first time. */
static void use_the_shared_threads(void *arg)
{
	struct policies *p = arg;
	GThreadPool *pool = g_thread_pool_new(note_policy, NULL, 1, FALSE, NULL);

	CHECK(pool);
	CHECK(g_thread_pool_push(pool, p, NULL));
	g_thread_pool_free(pool, FALSE, TRUE);
	atomic_store(&p->ui, own_policy());
}

/* They ask by themselves to be scheduled as whoever made the first pool of them; in 2.74 at least. */
TEST(the_shared_threads_of_glib_do_not_get_the_priority_of_a_ui_worker)
{
	struct hive_worker_options io = { .core = hive_core_glib(), .ui = true };
	struct policies p = { -1, -1 };

	context = g_main_context_new();
	io.core_arg = context;
	hive = real_create((struct hive_options){ 0 });
	CHECK_OK(hive_attach(hive, NULL, NULL));
	CHECK_OK(hive_attach(hive, &io, &ui));
	CHECK_OK(hive_start(hive));
	CHECK_OK(hive_post_to(hive, ui, use_the_shared_threads, &p));
	WAIT_UNTIL(atomic_load(&p.ui) >= 0);
	CHECK_EQ(atomic_load(&p.pool), SCHED_OTHER);
	end_world();
	if (atomic_load(&p.ui) != SCHED_FIFO)
		test_skip("no right to real-time priority");
}
