/* SPDX-License-Identifier: MIT */
/* The scenarios post, ping, ping_hot, post_to, mixed, timer and timer_cancel of `hive bench` for GLib: same flags, same output, same checks.
 *
 * Comparable: what is done, and on how many threads: an exclusive GThreadPool of T threads; in post_to and for the tiny tasks of mixed a
 * thread that runs a GMainContext, to which g_main_context_invoke_full() hands a function. A task without an argument is handed over as its
 * function alone, so that nothing but GLib allocates. Not comparable: timers are g_timeout sources, in milliseconds, rounded up, and a context
 * looks at all of its sources before and after each wait: with 100,000 of them that takes longer than the milliseconds between two timers.   */
#include "plain_pool.h"
#include "plain_timers.h"
#include <glib.h>
#include <string.h>

static const char *const name = "glib";

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
	if (!g_thread_pool_push(pool, (gpointer)(uintptr_t)fn, NULL))
		plain_failed("thread for the pool");
}

static GThreadPool *pool_open(int threads)
{
	GThreadPool *pool = g_thread_pool_new(run_bare, NULL, threads, TRUE, NULL);
	if (!pool)
		plain_failed("pool");
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
	tally_wait(target, 100000);
}

static void corner_close(struct corner *corner)
{
	g_main_loop_quit(corner->loop);
	g_thread_join(corner->thread);
	g_main_loop_unref(corner->loop);
	g_main_context_unref(corner->context);
}

static void post_to(struct plain_options o)
{
	struct corner corner;
	corner_open(&corner);
	pool_post_to(name, o, (struct task_target){ invoke, corner.context });
	corner_close(&corner);
}

static void mixed(struct plain_options o)
{
	struct corner corner;
	corner_open(&corner);
	GThreadPool *pool = pool_open(o.threads);
	pool_mixed(name, o, (struct task_target){ invoke, corner.context }, (struct task_target){ push, pool });
	g_thread_pool_free(pool, FALSE, TRUE);
	corner_close(&corner);
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
	int64_t limit = plain_now() + limit_ns;
	while (fired < count && plain_now() < limit)
		g_main_context_iteration(loop, TRUE);
	return fired == count;
}

int main(int argc, char **argv)
{
	static const struct timers_kind kind = { clockwork_open, clockwork_arm, clockwork_cancel, clockwork_run,
		                                 clockwork_close };
	struct plain_options o = plain_parse(argc, argv);
	if (strcmp(o.scenario, "post_to") == 0)
		return post_to(o), 0;
	if (strcmp(o.scenario, "mixed") == 0)
		return mixed(o), 0;
	if (strcmp(o.scenario, "timer") == 0)
		return timers_timer(name, o, &kind), 0;
	if (strcmp(o.scenario, "timer_cancel") == 0)
		return timers_cancel(name, o, &kind), 0;
	GThreadPool *pool = pool_open(o.threads);
	struct task_target target = { push, pool };
	int code = 0;
	if (strcmp(o.scenario, "post") == 0)
		pool_post(name, o, target);
	else if (strcmp(o.scenario, "ping") == 0 || strcmp(o.scenario, "ping_hot") == 0)
		pool_ping(name, o, target);
	else
		code = PLAIN_UNKNOWN;
	g_thread_pool_free(pool, FALSE, TRUE);
	return code;
}
