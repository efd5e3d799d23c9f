/* SPDX-License-Identifier: MIT */
/* The scenarios post, ping, ping_hot, post_to, mixed, timer and timer_cancel of `hive bench` for GLib: same flags, same output, same checks.
 *
 * Comparable: what is done, and on how many threads: an exclusive GThreadPool of T threads; in post_to and for the tiny tasks of mixed a
 * thread that runs a GMainContext, to which g_main_context_invoke_full() hands a function. A task without an argument is handed over as its
 * function alone, so that nothing but GLib allocates. Not comparable: timers are g_timeout sources, in milliseconds, rounded up, and a context
 * looks at all of its sources before and after each wait: with 100,000 of them that takes longer than the milliseconds between two timers.   */
#include "peer_pool.h"
#include "peer_timers.h"
#include <glib.h>

struct task {
	task_fn *fn;
	void *arg;
};

static void run_bare(gpointer task, gpointer unused)
{
	(void)unused;
	((task_fn *)(uintptr_t)task)(NULL);
}

static void push(void *pool, task_fn *fn, void *arg)
{
	(void)arg; /* none of the tasks that come here has one */
	peer_must_not(!g_thread_pool_push(pool, (gpointer)(uintptr_t)fn, NULL), "g_thread_pool_push");
}

static GThreadPool *pool_open(int threads)
{
	GThreadPool *pool = g_thread_pool_new(run_bare, NULL, threads, TRUE, NULL);
	peer_must_not(!pool, "g_thread_pool_new");
	return pool;
}

/* A thread that runs a context of its own. */
struct corner {
	GMainContext *context;
	GMainLoop *loop;
	GThread *thread;
};

static gboolean call_bare(gpointer fn)
{
	((task_fn *)(uintptr_t)fn)(NULL);
	return G_SOURCE_REMOVE;
}

static gboolean call_task(gpointer data)
{
	const struct task *task = data;
	task->fn(task->arg);
	return G_SOURCE_REMOVE;
}

static void invoke(void *context, task_fn *fn, void *arg)
{
	if (!arg) {
		g_main_context_invoke_full(context, G_PRIORITY_DEFAULT, call_bare, (gpointer)(uintptr_t)fn, NULL);
		return;
	}
	struct task *task = g_new(struct task, 1);
	*task = (struct task){ fn, arg };
	g_main_context_invoke_full(context, G_PRIORITY_DEFAULT, call_task, task, g_free);
}

static gpointer run_corner(gpointer arg)
{
	struct corner *corner = arg;
	g_main_context_push_thread_default(corner->context);
	g_main_loop_run(corner->loop);
	g_main_context_pop_thread_default(corner->context);
	return NULL;
}

static void count_one(void *unused)
{
	(void)unused;
	tally_add();
}

/* Until its thread has the context: before that, invoke() would run the function here. */
static void corner_open(struct corner *corner)
{
	GSource *first = g_idle_source_new();
	uint64_t target = tally_total() + 1;
	corner->context = g_main_context_new();
	corner->loop = g_main_loop_new(corner->context, FALSE);
	g_source_set_callback(first, call_bare, (gpointer)(uintptr_t)count_one, NULL);
	g_source_attach(first, corner->context);
	g_source_unref(first);
	corner->thread = g_thread_new("corner", run_corner, corner);
	peer_must_not(tally_wait(target, BENCH_PATIENCE_NS, HIVE_US(100)) != BENCH_OK, "the start of a loop");
}

static void corner_close(struct corner *corner)
{
	g_main_loop_quit(corner->loop);
	g_thread_join(corner->thread);
	g_main_loop_unref(corner->loop);
	g_main_context_unref(corner->context);
}

static int glib_post_to(const struct bench_params *params, struct record *result)
{
	struct corner corner;
	corner_open(&corner);
	int code = pool_post_to(params, result, (struct task_target){ invoke, corner.context });
	if (!code)
		corner_close(&corner);
	return code;
}

static int with_pool(const struct bench_params *params, struct record *result,
                     int (*scenario)(const struct bench_params *, struct record *, struct task_target))
{
	GThreadPool *pool = pool_open(params->threads);
	int code = scenario(params, result, (struct task_target){ push, pool });
	if (!code)
		g_thread_pool_free(pool, FALSE, TRUE);
	return code;
}

static int glib_post(const struct bench_params *params, struct record *result)
{
	return with_pool(params, result, pool_post);
}

static int glib_ping(const struct bench_params *params, struct record *result)
{
	return with_pool(params, result, pool_ping);
}

static int glib_ping_hot(const struct bench_params *params, struct record *result)
{
	return with_pool(params, result, pool_ping_hot);
}

static int glib_mixed(const struct bench_params *params, struct record *result)
{
	struct corner corner;
	corner_open(&corner);
	GThreadPool *pool = pool_open(params->threads);
	int code = pool_mixed(params, result, (struct task_target){ invoke, corner.context },
	                      (struct task_target){ push, pool });
	if (code)
		return code;
	g_thread_pool_free(pool, FALSE, TRUE);
	corner_close(&corner);
	return BENCH_OK;
}

/* Timers: the loop is a context of the thread that asks, and counts what fired in it. */
static _Thread_local int64_t fired;

static void *clockwork_open(int64_t most)
{
	(void)most;
	fired = 0;
	return g_main_context_new();
}

static void clockwork_close(void *loop)
{
	g_main_context_unref(loop);
}

static gboolean on_time(gpointer data)
{
	struct timed *timed = data;
	timers_fired(timed);
	fired++;
	g_source_unref(timed->handle);
	timed->handle = NULL;
	return G_SOURCE_REMOVE;
}

static void clockwork_arm(void *loop, struct timed *timed, int64_t delay_ns)
{
	GSource *source = g_timeout_source_new(delay_ns > 0 ? (guint)((delay_ns + 999999) / 1000000) : 0);
	timed->handle = source;
	g_source_set_callback(source, on_time, timed, NULL);
	g_source_attach(source, loop);
}

static int clockwork_cancel(void *loop, struct timed *timed)
{
	(void)loop;
	if (!timed->handle)
		return 0;
	g_source_destroy(timed->handle);
	g_source_unref(timed->handle);
	timed->handle = NULL;
	return 1;
}

/* A wait ends by itself while a timer is missing: it is armed. */
static int clockwork_run(void *loop, int64_t count, int64_t limit_ns)
{
	int64_t limit = sync_now() + limit_ns;
	while (fired < count && sync_now() < limit)
		g_main_context_iteration(loop, TRUE);
	return fired == count;
}

static const struct timers_kind kind = { clockwork_open, clockwork_arm, clockwork_cancel, clockwork_run,
	                                 clockwork_close };

static int glib_timer(const struct bench_params *params, struct record *result)
{
	return timers_timer(params, result, &kind);
}

static int glib_timer_cancel(const struct bench_params *params, struct record *result)
{
	return timers_cancel(params, result, &kind);
}

int main(int argc, char **argv)
{
	static const struct peer_scenario scenarios[] = {
		{ "post", 1, 1, 2000000, 0, glib_post },
		{ "post_to", 1, 1, 2000000, 0, glib_post_to },
		{ "ping", 1, 1, 5000, 0, glib_ping },
		{ "ping_hot", 1, 1, 200000, 0, glib_ping_hot },
		{ "mixed", 1, 1, 0, 3, glib_mixed },
		{ "timer", 1, 1, 100000, 0, glib_timer },
		{ "timer_cancel", 1, 1, 5000000, 0, glib_timer_cancel },
	};
	return peer_main("glib", scenarios, sizeof scenarios / sizeof *scenarios, argc, argv);
}
