/* SPDX-License-Identifier: MIT */
/* Plain GLib, in the best form that it has: a GMainLoop with a source for frames that says when it is ready, a GThreadPool, g_idle_add() for what other
 * threads have for the thread with the frames.                                                                             */
#include <errno.h>
#include <glib.h>
#include <sched.h>
#include <sys/resource.h>

#include "ui.h"

static GMainLoop *loop;
static GThreadPool *pool;
static int64_t due_ns;

/* A source that is ready at a time: what GLib has that is more exact than a time-out in milliseconds. With a window there is a tick callback as well, but
 * the clock behind it counts milliseconds, too, and leaves its grid with each late frame.                                   */
static gboolean dispatch_frame(GSource *source, GSourceFunc callback, gpointer data)
{
	int64_t now_ns = hive_now(NULL), left_out = (now_ns - due_ns) / PERIOD;

	(void)callback, (void)data;
	due_ns += left_out * PERIOD;
	if (frame(due_ns, now_ns, (uint64_t)left_out)) {
		g_main_loop_quit(loop);
		return G_SOURCE_REMOVE;
	}
	due_ns += PERIOD;
	g_source_set_ready_time(source, (due_ns + 999) / 1000);
	return G_SOURCE_CONTINUE;
}

static GSourceFuncs frame_funcs = { .dispatch = dispatch_frame };

/* What the pool's threads are given. */
struct job {
	void (*run)(void);
};

static void compute_and_again(void);

static struct job small_job = { count_handled }, compute_job = { compute_and_again }, block_job = { block };

static void compute_and_again(void)
{
	compute();
	if (!atomic_load(&ended))
		g_thread_pool_push(pool, &compute_job, NULL);
}

static void pool_task(gpointer data, gpointer user_data)
{
	static _Thread_local bool is_nice;

	(void)user_data;
	if (has("n") && !is_nice)
		is_nice = setpriority(PRIO_PROCESS, 0, 19) == 0; /* of this thread: Linux */
	((const struct job *)data)->run();
}

static gboolean on_timeout(gpointer data)
{
	(void)data;
	count_fired();
	return G_SOURCE_CONTINUE;
}

static gboolean start_timeout(gpointer data)
{
	(void)data;
	g_timeout_add(100, on_timeout, NULL);
	return G_SOURCE_REMOVE;
}

static gboolean on_idle(gpointer data)
{
	(void)data;
	count_handled();
	return G_SOURCE_REMOVE;
}

static void add_idle(void)
{
	g_idle_add(on_idle, NULL);
}

static void push_small(void)
{
	g_thread_pool_push(pool, &small_job, NULL);
}

/* By hand, as programs do it: a flag, and one idle source for all who have set it. */
static atomic_bool flagged;

static gboolean on_flag(gpointer data)
{
	atomic_store(&flagged, false);
	return on_idle(data);
}

static void set_flag(void)
{
	if (!atomic_exchange(&flagged, true))
		g_idle_add(on_flag, NULL);
}

static void start_loads(void)
{
	struct sched_param param = { .sched_priority = 1 };

	/* The one that is blocked is one more, as it is with us. */
	pool = g_thread_pool_new(pool_task, NULL, compute_threads() + has("d"), TRUE, NULL);
	if (has("d"))
		g_thread_pool_push(pool, &block_job, NULL);
	for (int i = 0; i < compute_tasks(); i++)
		g_thread_pool_push(pool, &compute_job, NULL);
	for (guint i = 0; i < TIMERS && has("b"); i++)
		g_timeout_add(i / 10, start_timeout, NULL);
	if (has("c"))
		start_posters(add_idle);
	if (has("s"))
		start_posters(push_small);
	if (has("u"))
		start_posters(set_flag);
	if (has("r") && sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) < 0)
		check(-errno, "sched_setscheduler");
}

void run_glib(void)
{
	GSource *source = g_source_new(&frame_funcs, sizeof(GSource));

	loop = g_main_loop_new(NULL, FALSE);
	picture_align();
	due_ns = hive_now(NULL) + PERIOD;
	g_source_set_ready_time(source, due_ns / 1000);
	g_source_set_priority(source, G_PRIORITY_HIGH); /* before all else that is ready */
	g_source_attach(source, NULL);
	start_loads();
	g_main_loop_run(loop);
	g_thread_pool_free(pool, TRUE, TRUE);
	g_source_unref(source);
	g_main_loop_unref(loop);
}
