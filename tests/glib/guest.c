/* SPDX-License-Identifier: MIT */
/* A hive as the guest of a GMainContext that somebody else runs: all that is the main worker's comes in its iterations, in turns with GLib's. */
#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>

#include <rophive/glib.h>

#include "support/cores.h"
#include "support/real.h"

static GMainContext *context;
static GMainLoop *loop;
static GSource *guest;
static struct hive *hive;
static _Atomic(int) polls;
static int ran, idles;

static gint counted_poll(GPollFD *fds, guint count, gint timeout_ms)
{
	atomic_fetch_add(&polls, 1);
	return g_poll(fds, count, timeout_ms);
}

static void make_world(int compute_workers)
{
	context = g_main_context_new();
	g_main_context_set_poll_func(context, counted_poll);
	loop = g_main_loop_new(context, FALSE);
	hive = real_create((struct hive_options){ .io_workers = 1, .compute_workers = compute_workers });
	CHECK_OK(hive_glib_guest(hive, &guest));
	g_source_attach(guest, context);
	atomic_store(&polls, 0);
	ran = idles = 0;
}

static void end_world(void)
{
	int r = hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER);

	CHECK(r == 0 || r == -EALREADY || r == -ESHUTDOWN);
	STEP_UNTIL(g_source_is_destroyed(guest), g_main_context_iteration(context, TRUE));
	g_source_unref(guest);
	real_join(hive);
	g_main_loop_unref(loop);
	g_main_context_unref(context);
}

static void add_idle(GSourceFunc callback, int priority)
{
	GSource *idle = g_idle_source_new();

	g_source_set_callback(idle, callback, NULL, NULL);
	g_source_set_priority(idle, priority);
	g_source_attach(idle, context);
	g_source_unref(idle);
}

static void add_timeout(guint delay_ms, GSourceFunc callback)
{
	GSource *timeout = g_timeout_source_new(delay_ms);

	g_source_set_callback(timeout, callback, NULL, NULL);
	g_source_attach(timeout, context);
	g_source_unref(timeout);
}

static void quit(void *arg)
{
	(void)arg;
	g_main_loop_quit(loop);
}

static gboolean quit_from_glib(gpointer data)
{
	quit(data);
	return G_SOURCE_REMOVE;
}

enum { POSTS = 3000 };

static void count(void *arg)
{
	(void)arg;
	if (++ran == POSTS)
		quit(NULL);
}

static void *post_many(void *arg)
{
	(void)arg;
	for (int i = 0; i < POSTS; i++)
		CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, count, NULL));
	return NULL;
}

TEST(posts_from_other_threads_run_in_the_iterations_of_the_host)
{
	pthread_t thread;

	make_world(0);
	CHECK_EQ(pthread_create(&thread, NULL, post_many, NULL), 0);
	g_main_loop_run(loop);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(ran, POSTS);
	end_world();
}

static struct hive_timer timer;
static struct ear ear;
static int fds[2];

static void on_timer(struct hive_timer *fired)
{
	(void)fired;
	put_byte(fds[1]);
}

static void on_byte(struct ear *heard)
{
	take_byte((int)heard->source.handle);
	ear_stop(heard);
	quit(NULL);
}

static void begin(void *arg)
{
	(void)arg;
	make_pipe(fds);
	ear_start(&ear, fds[0], HIVE_EVENT_IN);
	ear.then = on_byte;
	hive_timer_init(&timer, on_timer, NULL);
	CHECK_OK(hive_timer_start(&timer, HIVE_MS(3), 0));
}

TEST(timers_and_sources_of_the_guest_wake_the_host)
{
	make_world(0);
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, begin, NULL));
	g_main_loop_run(loop);
	CHECK_EQ(ear.heard, 1);
	close_both(fds);
	end_world();
}

static void again(void *arg)
{
	int r;

	(void)arg;
	ran++;
	r = hive_post_self(again, NULL);
	CHECK(r == 0 || r == -ESHUTDOWN);
}

static gboolean low(gpointer data)
{
	(void)data;
	if (++idles < 20)
		return G_SOURCE_CONTINUE;
	quit(NULL);
	return G_SOURCE_REMOVE;
}

TEST(a_busy_guest_lets_less_urgent_sources_have_their_turns)
{
	make_world(0);
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, again, NULL));
	add_idle(low, G_PRIORITY_LOW);
	g_main_loop_run(loop);
	CHECK_EQ(idles, 20);
	CHECK(ran > 0);
	end_world();
}

/* How often it polls while nothing happens does not depend on how long that is. */
TEST(an_idle_guest_lets_the_host_sleep)
{
	make_world(1);
	add_timeout(50, quit_from_glib);
	g_main_loop_run(loop);
	atomic_store(&polls, 0);
	add_timeout(300, quit_from_glib);
	g_main_loop_run(loop);
	CHECK(atomic_load(&polls) <= 5);
	end_world();
}

static void dialog_in_task(void *arg)
{
	GMainLoop *inner = g_main_loop_new(context, FALSE), *outer = loop;
	int before = atomic_load(&polls);

	(void)arg;
	for (int i = 0; i < 10; i++)
		CHECK_OK(hive_post_self(count, NULL));
	loop = inner;
	add_timeout(100, quit_from_glib);
	g_main_loop_run(inner);
	CHECK(atomic_load(&polls) - before <= 10); /* its source is out of the poll while it is in its own call */
	CHECK_EQ(ran, 0);
	loop = outer;
	g_main_loop_unref(inner);
	ran = POSTS - 10;
}

TEST(in_a_dialog_of_a_task_the_guest_waits_and_does_not_spin)
{
	make_world(0);
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, dialog_in_task, NULL));
	g_main_loop_run(loop);
	CHECK_EQ(ran, POSTS);
	end_world();
}

static gboolean dialog_in_glib(gpointer data)
{
	GMainLoop *inner = g_main_loop_new(context, FALSE), *outer = loop;
	pthread_t thread;

	(void)data;
	loop = inner;
	CHECK_EQ(pthread_create(&thread, NULL, post_many, NULL), 0);
	g_main_loop_run(inner);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(ran, POSTS);
	loop = outer;
	g_main_loop_unref(inner);
	quit(NULL);
	return G_SOURCE_REMOVE;
}

TEST(in_a_dialog_of_a_callback_of_glib_the_guest_goes_on)
{
	make_world(0);
	add_idle(dialog_in_glib, G_PRIORITY_DEFAULT);
	g_main_loop_run(loop);
	end_world();
}

static void stop_from_inside(void *arg)
{
	(void)arg;
	CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
}

TEST(the_source_removes_itself_when_the_hive_has_stopped)
{
	make_world(1);
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, stop_from_inside, NULL));
	end_world();
}

TEST(what_cannot_be_a_guest_is_refused)
{
	struct hive_worker_options ui = { .core = hive_core_glib() };
	GSource *none = NULL;

	hive = real_create((struct hive_options){ .io_workers = 1, .io = &ui });
	CHECK_ERR(hive_glib_guest(hive, &none), -ENOTSUP);
	CHECK_ERR(hive_glib_guest(NULL, &none), -EINVAL);
	CHECK_ERR(hive_glib_guest(hive, NULL), -EINVAL);
	CHECK_EQ(none, NULL);
	CHECK_OK(hive_destroy(hive));
	CHECK_OK(hive_create(&(struct hive_options){ 0 }, &hive));
	CHECK_ERR(hive_glib_guest(hive, &none), -EINVAL);
	CHECK_OK(hive_destroy(hive));
}
