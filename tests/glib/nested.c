/* SPDX-License-Identifier: MIT */
/* Loops inside the loop: what a modal dialog does. Begun by a callback of GLib's, the beats go on in it; begun by a task or a source of the
 * worker, they wait. Never does it spin, which is counted in calls of poll, and never is anything lost.                     */
#include <glib-unix.h>
#include <pthread.h>
#include <stdatomic.h>

#include <rophive/glib.h>

#include "support/cores.h"
#include "support/real.h"

static struct hive *hive;
static GMainContext *context;
static GMainLoop *dialog;
static _Atomic(int) polls, ran, answered;
static int depth, ran_inside; /* depth: loops inside */

static gint counted_poll(GPollFD *fds, guint count, gint timeout_ms)
{
	atomic_fetch_add(&polls, 1);
	return g_poll(fds, count, timeout_ms);
}

/* A hive whose main worker, on this thread, waits in a context of its own. */
static void make_world(int compute_workers)
{
	struct hive_worker_options io = { .core = hive_core_glib() };

	context = g_main_context_new();
	g_main_context_set_poll_func(context, counted_poll);
	dialog = g_main_loop_new(context, FALSE);
	io.core_arg = context;
	hive = real_create((struct hive_options){ .io_workers = 1, .compute_workers = compute_workers, .io = &io });
	atomic_store(&polls, 0);
	atomic_store(&ran, 0);
	atomic_store(&answered, 0);
	depth = ran_inside = 0;
}

static void run_world(void)
{
	CHECK_OK(hive_run(hive));
	real_join(hive);
	g_main_loop_unref(dialog);
	g_main_context_unref(context);
}

static void stop_world(void *arg)
{
	(void)arg;
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
}

static void in_glib(GSourceFunc callback, void *data)
{
	GSource *idle = g_idle_source_new();

	g_source_set_callback(idle, callback, data, NULL);
	g_source_attach(idle, context);
	g_source_unref(idle);
}

static void in_glib_after(guint delay_ms, GSourceFunc callback, void *data)
{
	GSource *timeout = g_timeout_source_new(delay_ms);

	g_source_set_callback(timeout, callback, data, NULL);
	g_source_attach(timeout, context);
	g_source_unref(timeout);
}

static void show_dialog(void)
{
	depth++;
	g_main_loop_run(dialog);
	depth--;
}

static void close_dialog(void *arg)
{
	(void)arg;
	g_main_loop_quit(dialog);
}

static gboolean close_from_glib(gpointer data)
{
	close_dialog(data);
	return G_SOURCE_REMOVE;
}

static void count(void *arg)
{
	(void)arg;
	ran_inside += depth > 0;
	atomic_fetch_add(&ran, 1);
}

/* ---- begun by a callback of GLib's ---- */

enum { POSTS = 2000 };
static int last_number, out_of_order;

static void in_order(void *number)
{
	out_of_order += (int)(intptr_t)number != last_number + 1;
	last_number = (int)(intptr_t)number;
	count(NULL);
}

static void *post_many(void *arg)
{
	(void)arg;
	for (intptr_t i = 1; i <= POSTS; i++)
		CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, in_order, (void *)i));
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, close_dialog, NULL));
	return NULL;
}

static gboolean dialog_with_posts(gpointer data)
{
	pthread_t thread;

	(void)data;
	CHECK_EQ(pthread_create(&thread, NULL, post_many, NULL), 0);
	show_dialog();
	CHECK_EQ(pthread_join(thread, NULL), 0);
	stop_world(NULL);
	return G_SOURCE_REMOVE;
}

TEST(posts_run_in_order_while_a_dialog_is_open)
{
	make_world(0);
	last_number = out_of_order = 0;
	in_glib(dialog_with_posts, NULL);
	run_world();
	CHECK_EQ(ran_inside, POSTS);
	CHECK_EQ(out_of_order, 0);
}

struct parts {
	struct hive_timer timer;
	struct ear ear;
	int fds[2], timer_fired;
	bool computed;
};
static struct parts parts;

static void maybe_close(void)
{
	if (parts.timer_fired && parts.ear.heard && parts.computed)
		close_dialog(NULL);
}

static void on_timer(struct hive_timer *timer)
{
	(void)timer;
	parts.timer_fired += depth;
	maybe_close();
}

static void on_byte(struct ear *ear)
{
	take_byte((int)ear->source.handle);
	ear->heard = depth;
	maybe_close();
}

static void compute(void *arg)
{
	(void)arg;
}

static void computed(void *arg)
{
	(void)arg;
	parts.computed = depth == 1;
	maybe_close();
}

static gboolean dialog_with_all_kinds(gpointer data)
{
	(void)data;
	hive_timer_init(&parts.timer, on_timer, NULL);
	CHECK_OK(hive_timer_start(&parts.timer, HIVE_MS(2), 0));
	make_pipe(parts.fds);
	ear_start(&parts.ear, parts.fds[0], HIVE_EVENT_IN);
	parts.ear.then = on_byte;
	put_byte(parts.fds[1]);
	CHECK_OK(hive_post_compute_then(hive, compute, HIVE_WORKER_MAIN, computed, NULL));
	show_dialog();
	ear_stop(&parts.ear);
	close_both(parts.fds);
	stop_world(NULL);
	return G_SOURCE_REMOVE;
}

/* the worker is an ordinary one in there too. */
TEST(timers_sources_and_answers_of_compute_workers_come_while_a_dialog_is_open)
{
	make_world(1);
	memset(&parts, 0, sizeof parts);
	in_glib(dialog_with_all_kinds, NULL);
	run_world();
	CHECK_EQ(parts.timer_fired, 1);
	CHECK_EQ(parts.ear.heard, 1);
	CHECK(parts.computed);
}

static void again(void *arg)
{
	int r;

	(void)arg;
	count(NULL);
	r = hive_post_self(again, NULL);
	CHECK(r == 0 || r == -ESHUTDOWN);
}

static int low_calls;

static gboolean low_callback(gpointer data)
{
	(void)data;
	if (++low_calls < 20)
		return G_SOURCE_CONTINUE;
	close_dialog(NULL);
	return G_SOURCE_REMOVE;
}

static gboolean dialog_of_a_busy_worker(gpointer data)
{
	GSource *idle = g_idle_source_new();

	(void)data;
	g_source_set_callback(idle, low_callback, NULL, NULL);
	g_source_set_priority(idle, G_PRIORITY_LOW);
	g_source_attach(idle, context);
	g_source_unref(idle);
	CHECK_OK(hive_post_self(again, NULL));
	show_dialog();
	stop_world(NULL);
	return G_SOURCE_REMOVE;
}

/* Drawing is less urgent to GLib than our source, which always has something to do here. */
TEST(a_busy_worker_lets_what_is_less_urgent_to_glib_have_its_turns)
{
	make_world(0);
	low_calls = 0;
	in_glib(dialog_of_a_busy_worker, NULL);
	run_world();
	CHECK_EQ(low_calls, 20);
	CHECK(ran_inside >= 19);
}

static gboolean post_to_yourself(gpointer data)
{
	(void)data;
	CHECK_OK(hive_post_self(close_dialog, NULL)); /* from a button in the dialog: nobody wakes the worker for it */
	return G_SOURCE_REMOVE;
}

static gboolean dialog_with_button(gpointer data)
{
	(void)data;
	in_glib_after(1, post_to_yourself, NULL);
	show_dialog();
	stop_world(NULL);
	return G_SOURCE_REMOVE;
}

TEST(what_a_callback_in_the_dialog_posts_to_its_own_worker_runs_in_the_dialog)
{
	make_world(0);
	in_glib(dialog_with_button, NULL);
	run_world();
}

static int pending_rounds;

static gboolean handle_what_is_pending(gpointer data)
{
	(void)data;
	for (int i = 0; i < 10; i++)
		CHECK_OK(hive_post_self(count, NULL));
	while (g_main_context_pending(context)) {
		g_main_context_iteration(context, FALSE);
		CHECK(++pending_rounds < 100);
	}
	stop_world(NULL);
	return G_SOURCE_REMOVE;
}

/* As programs do that compute in a callback and want to look alive. */
TEST(a_loop_over_what_is_pending_ends)
{
	make_world(0);
	pending_rounds = 0;
	in_glib(handle_what_is_pending, NULL);
	run_world();
	CHECK_EQ(atomic_load(&ran), 10);
	CHECK(pending_rounds > 0);
}

static gboolean dialog_that_idles(gpointer data)
{
	int before;

	(void)data;
	in_glib_after(100, close_from_glib, NULL);
	before = atomic_load(&polls);
	show_dialog();
	before = atomic_load(&polls) - before;
	CHECK(before <= 10);
	stop_world(NULL);
	return G_SOURCE_REMOVE;
}

TEST(an_idle_dialog_does_not_spin)
{
	make_world(0);
	in_glib(dialog_that_idles, NULL);
	run_world();
}

static gboolean dialog_that_outlives_the_hive(gpointer data)
{
	(void)data;
	CHECK_OK(hive_post_self(stop_world, NULL));
	in_glib_after(20, close_from_glib, NULL);
	show_dialog();
	CHECK(atomic_load(&polls) < 30); /* it has to leave, and cannot: no reason to spin */
	return G_SOURCE_REMOVE;
}

TEST(a_hive_that_is_stopped_while_a_dialog_is_open_ends_with_the_dialog)
{
	make_world(0);
	in_glib(dialog_that_outlives_the_hive, NULL);
	run_world();
}

/* ---- begun by a task ---- */

static void answer(void *arg)
{
	(void)arg;
	atomic_fetch_add(&answered, 1);
	g_main_context_wakeup(context);
}

static gboolean close_when_answered(gpointer data)
{
	(void)data;
	if (atomic_load(&answered) == 0)
		return G_SOURCE_CONTINUE;
	close_dialog(NULL);
	return G_SOURCE_REMOVE;
}

static void dialog_in_task(void *arg)
{
	struct ear ear;
	int fds[2];

	(void)arg;
	make_pipe(fds);
	ear_start(&ear, fds[0], HIVE_EVENT_IN);
	ear.then = on_byte;
	put_byte(fds[1]);
	CHECK_OK(hive_post_self(count, NULL));                       /* waits */
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, count, NULL)); /* waits */
	CHECK_OK(hive_post(hive, answer, NULL));                     /* to the pool: goes out, and others take it */
	in_glib_after(1, close_when_answered, NULL);
	show_dialog();
	CHECK_EQ(atomic_load(&ran), 0);
	CHECK_EQ(ear.heard, 1);
	ear_stop(&ear);
	close_both(fds);
	CHECK_OK(hive_post_self(stop_world, NULL));
}

/* What is documented: GLib goes on, sources are delivered, posts to others go out; the worker's own tasks come afterwards. */
TEST(in_a_dialog_of_a_task_the_other_tasks_wait_and_nothing_is_lost)
{
	make_world(0);
	memset(&parts, 0, sizeof parts);
	CHECK_OK(hive_attach(hive, &(struct hive_worker_options){ .name = "other" }, NULL));
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, dialog_in_task, NULL));
	run_world();
	CHECK_EQ(atomic_load(&ran), 2);
	CHECK_EQ(ran_inside, 0);
}

static void idle_dialog_in_task(void *arg)
{
	int before;

	(void)arg;
	for (int i = 0; i < 100; i++)
		CHECK_OK(hive_post_self(count, NULL));
	in_glib_after(100, close_from_glib, NULL);
	before = atomic_load(&polls);
	show_dialog();
	before = atomic_load(&polls) - before;
	CHECK(before <= 10);
	stop_world(NULL);
}

TEST(a_dialog_of_a_task_does_not_spin_over_tasks_that_wait)
{
	make_world(0);
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, idle_dialog_in_task, NULL));
	run_world();
	CHECK_EQ(atomic_load(&ran), 100);
}

static void dialog_in_dialog(void *arg)
{
	GMainLoop *second = g_main_loop_new(context, FALSE), *first = dialog;

	(void)arg;
	CHECK_OK(hive_post_self(count, NULL));
	dialog = second;
	in_glib_after(2, close_from_glib, NULL);
	show_dialog();
	dialog = first;
	g_main_loop_unref(second);
	CHECK_EQ(atomic_load(&ran), 0);
	CHECK_OK(hive_post_self(close_dialog, NULL));
}

static gboolean dialog_whose_task_opens_another(gpointer data)
{
	(void)data;
	CHECK_OK(hive_post_self(dialog_in_dialog, NULL));
	show_dialog();
	CHECK_EQ(ran_inside, 1);
	stop_world(NULL);
	return G_SOURCE_REMOVE;
}

TEST(a_task_in_a_dialog_may_open_a_dialog)
{
	make_world(0);
	in_glib(dialog_whose_task_opens_another, NULL);
	run_world();
	CHECK_EQ(atomic_load(&ran), 1);
}

/* ---- begun by a source ---- */

static void dialog_in_source(struct ear *ear)
{
	int before;

	CHECK_OK(hive_post_self(count, NULL));
	in_glib_after(100, close_from_glib, NULL);
	before = atomic_load(&polls);
	show_dialog(); /* the byte is still there */
	before = atomic_load(&polls) - before;
	CHECK(before <= 10);
	CHECK_EQ(ear->heard, 1);
	CHECK_EQ(atomic_load(&ran), 0);
	ear_stop(ear);
	close_both(parts.fds);
	CHECK_OK(hive_post_self(stop_world, NULL));
}

static void listen_with_dialog(void *arg)
{
	(void)arg;
	make_pipe(parts.fds);
	put_byte(parts.fds[1]);
	ear_start(&parts.ear, parts.fds[0], HIVE_EVENT_IN);
	parts.ear.then = dialog_in_source;
}

TEST(a_dialog_of_a_source_that_is_ready_does_not_spin_and_is_not_told_again)
{
	make_world(0);
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, listen_with_dialog, NULL));
	run_world();
	CHECK_EQ(atomic_load(&ran), 1);
}
