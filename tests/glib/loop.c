/* SPDX-License-Identifier: MIT */
/* A GMainContext as a core, turn by turn: whose time-out counts, whose poll is called, what may change while it dispatches. What it owes its
 * worker as every core does: glib.contract and glib.wait, which are tests/core/contract.c and wait.c.                      */
#include <glib-unix.h>
#include <limits.h>

#include <rophive/glib.h>

#include "support/cores.h"

static struct rig rig;
static GMainContext *context;

static void open_rig(void)
{
	context = g_main_context_new();
	rig_open_with(&rig, core_names[0], (struct hive_worker_options){ .core_arg = context });
}

static void close_rig(void)
{
	rig_close(&rig);
	g_main_context_unref(context);
}

static GSource *attach(GSource *source, GSourceFunc callback, void *data)
{
	g_source_set_callback(source, callback, data, NULL);
	g_source_attach(source, context);
	return source;
}

static gboolean count_once(gpointer count)
{
	++*(int *)count;
	return G_SOURCE_REMOVE;
}

static gboolean count_always(gpointer count)
{
	++*(int *)count;
	return G_SOURCE_CONTINUE;
}

/* ---- how long ---- */

static int64_t turn_for(int64_t timeout_ns)
{
	int64_t began = hive__clock_now();

	rig_turn(&rig, timeout_ns);
	return hive__clock_now() - began;
}

TEST(the_time_out_of_glib_ends_a_turn_that_would_last_longer)
{
	int fired = 0;
	GSource *timeout;

	open_rig();
	timeout = attach(g_timeout_source_new(3), count_once, &fired);
	while (fired == 0)
		rig_turn(&rig, HIVE_FOREVER); /* else we stay here */
	g_source_unref(timeout);
	close_rig();
}

TEST(our_time_out_ends_a_turn_in_which_glib_would_wait_longer)
{
	int fired = 0;
	GSource *timeout;

	open_rig();
	timeout = attach(g_timeout_source_new_seconds(36000), count_once, &fired);
	rig_turn(&rig, 0); /* GLib wakes its context for a new source */
	CHECK(turn_for(HIVE_US(700)) >= HIVE_US(700));
	CHECK(turn_for(HIVE_MS(2)) >= HIVE_MS(2));
	CHECK_EQ(fired, 0);
	g_source_destroy(timeout);
	g_source_unref(timeout);
	close_rig();
}

/* ---- whose poll ---- */

static int polls, poll_answer, poll_error, last_timeout;
static guint last_count;

static gint own_poll(GPollFD *fds, guint count, gint timeout_ms)
{
	polls++;
	last_count = count;
	last_timeout = timeout_ms;
	for (guint i = 0; i < count; i++)
		fds[i].revents = poll_answer < 0 ? 0x7fff : 0; /* of a poll that failed nobody may believe anything */
	errno = poll_error;
	return poll_answer;
}

TEST(the_poll_function_of_the_context_is_called_with_milliseconds_rounded_up)
{
	static const struct {
		int64_t timeout_ns;
		int timeout_ms;
	} rows[] = { { 0, 0 },
		     { 1, 1 },
		     { HIVE_MS(1), 1 },
		     { HIVE_MS(1) + 1, 2 },
		     { HIVE_MS((int64_t)INT_MAX), INT_MAX },
		     { HIVE_MS((int64_t)INT_MAX) + 1, INT_MAX },
		     { HIVE_S(4000000000), INT_MAX },
		     { HIVE_FOREVER - 1, INT_MAX },
		     { HIVE_FOREVER, -1 } };

	open_rig();
	poll_answer = 0;
	g_main_context_set_poll_func(context, own_poll);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		polls = 0;
		rig_turn(&rig, rows[i].timeout_ns);
		CHECK_EQ(polls, 1);
		CHECK_EQ(last_timeout, rows[i].timeout_ms);
	}
	close_rig();
}

static gboolean count_ready(gint fd, GIOCondition events, gpointer count)
{
	(void)fd, (void)events;
	return count_always(count);
}

TEST(a_poll_that_fails_is_told_and_believed_nothing_but_a_signal_is_no_error)
{
	struct ear ear;
	int fds[2], fired = 0;
	GSource *watch;

	open_rig();
	make_pipe(fds);
	ear_start(&ear, fds[0], HIVE_EVENT_IN);
	watch = attach(g_unix_fd_source_new(fds[0], G_IO_IN), G_SOURCE_FUNC(count_ready), &fired);
	g_main_context_set_poll_func(context, own_poll);
	poll_answer = -1;
	poll_error = EBADF;
	CHECK_ERR(rig.ops->turn(rig.core, 0), -EBADF);
	poll_error = EINTR;
	CHECK_OK(rig.ops->turn(rig.core, 0));
	CHECK_EQ(ear.heard + fired, 0);
	g_main_context_set_poll_func(context, NULL);
	put_byte(fds[1]);
	rig_turn(&rig, HIVE_FOREVER);
	CHECK_EQ(ear.heard, 1);
	g_source_destroy(watch);
	g_source_unref(watch);
	ear_stop(&ear);
	close_both(fds);
	close_rig();
}

/* ---- its sources and ours ---- */

enum { MANY = 100 };

static gboolean take_and_count(gint fd, GIOCondition events, gpointer count)
{
	CHECK_EQ(events, G_IO_IN);
	take_byte(fd);
	++*(int *)count;
	return G_SOURCE_REMOVE;
}

TEST(the_array_of_descriptors_grows_with_those_of_glib)
{
	int fds[MANY][2], counts[MANY] = { 0 }, heard = 0;
	struct ear ear;
	GSource *watches[MANY];

	open_rig();
	for (int i = 0; i < MANY; i++) {
		make_pipe(fds[i]);
		watches[i] = g_unix_fd_source_new(fds[i][0], G_IO_IN);
		g_source_set_callback(watches[i], G_SOURCE_FUNC(take_and_count), &counts[i], NULL);
		g_source_attach(watches[i], context);
		put_byte(fds[i][1]);
	}
	for (int round = 0; round < 3; round++)
		rig_turn(&rig, 0);
	for (int i = 0; i < MANY; i++) {
		heard += counts[i];
		g_source_unref(watches[i]);
	}
	CHECK_EQ(heard, MANY);
	ear_start(&ear, fds[0][0], HIVE_EVENT_IN);
	put_byte(fds[0][1]);
	rig_turn(&rig, HIVE_FOREVER);
	CHECK_EQ(ear.heard, 1);
	ear_stop(&ear);
	for (int i = 0; i < MANY; i++)
		close_both(fds[i]);
	close_rig();
}

struct doomed {
	GSource *self, *other;
	int calls;
};

static gboolean destroy_both(gpointer data)
{
	struct doomed *d = data;

	d->calls++;
	g_source_destroy(d->self);
	g_source_destroy(d->other);
	return G_SOURCE_CONTINUE; /* too late to say so */
}

TEST(sources_of_glib_may_destroy_themselves_and_each_other_in_their_dispatch)
{
	struct doomed a = { 0 }, b = { 0 };

	open_rig();
	a.self = b.other = attach(g_idle_source_new(), destroy_both, &a);
	b.self = a.other = attach(g_idle_source_new(), destroy_both, &b);
	for (int i = 0; i < 3; i++)
		rig_turn(&rig, 0);
	CHECK_EQ(a.calls + b.calls, 1);
	g_source_unref(a.self);
	g_source_unref(b.self);
	close_rig();
}

static void stop_it(struct ear *ear)
{
	ear_stop(ear);
}

static gboolean stop_source_of_ours(gpointer ear)
{
	ear_stop(ear);
	return G_SOURCE_REMOVE;
}

/* Both are ready in one turn: what is stopped by a callback of GLib's is not told afterwards. */
TEST(a_callback_of_glib_may_stop_a_source_that_is_ready_in_the_same_turn)
{
	struct ear first, second;
	int fds[2][2];
	GSource *idle;

	open_rig();
	for (int i = 0; i < 2; i++) {
		make_pipe(fds[i]);
		put_byte(fds[i][1]);
	}
	ear_start(&first, fds[0][0], HIVE_EVENT_IN);
	ear_start(&second, fds[1][0], HIVE_EVENT_IN);
	second.then = stop_it;
	idle = attach(g_idle_source_new(), stop_source_of_ours, &first);
	rig_turn(&rig, HIVE_FOREVER);
	CHECK_EQ(first.heard, 0);
	CHECK_EQ(second.heard, 1);
	g_source_unref(idle);
	for (int i = 0; i < 2; i++)
		close_both(fds[i]);
	close_rig();
}

/* neither side waits for the other, although an idle source of GLib's is always ready and a descriptor of ours too. */
TEST(sources_of_both_sides_are_served_in_every_turn)
{
	struct ear ear;
	int fds[2], idles = 0, lows = 0;
	GSource *idle, *low;

	open_rig();
	make_pipe(fds);
	put_byte(fds[1]);
	ear_start(&ear, fds[0], HIVE_EVENT_IN);
	idle = attach(g_idle_source_new(), count_always, &idles);
	for (int i = 1; i <= 10; i++) {
		rig_turn(&rig, HIVE_FOREVER);
		CHECK_EQ(ear.heard, i);
		CHECK_EQ(idles, i);
	}
	g_source_destroy(idle);
	g_source_unref(idle);
	low = attach(g_idle_source_new(), count_once, &lows); /* ours is ready all the time, and is not in its way */
	g_source_set_priority(low, G_PRIORITY_LOW * 10);
	rig_turn(&rig, HIVE_FOREVER);
	CHECK_EQ(lows, 1);
	g_source_unref(low);
	ear_stop(&ear);
	close_both(fds);
	close_rig();
}

/* ---- whose context ---- */

struct thief {
	GMainContext *context;
	struct hive *hive;
	int answer;
};

static void *start_there(void *arg)
{
	struct thief *thief = arg;
	struct hive_worker_options io = { .core = hive_core_glib(), .core_arg = thief->context };
	struct hive_options options = { .io_workers = 1, .io = &io };
	struct hive *hive;

	CHECK_OK(hive_create(&options, &hive));
	thief->answer = hive_start(hive);
	CHECK_OK(hive_destroy(hive));
	return NULL;
}

TEST(a_context_that_another_thread_owns_is_refused)
{
	struct thief thief = { 0 };
	pthread_t thread;

	open_rig();
	thief.context = context;
	CHECK_EQ(pthread_create(&thread, NULL, start_there, &thief), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_ERR(thief.answer, -EBUSY);
	CHECK(g_main_context_is_owner(context));
	CHECK_EQ(g_main_context_get_thread_default(), context);
	close_rig();
	CHECK_EQ(g_main_context_get_thread_default(), NULL);
}

static pthread_t ran_on;

static gboolean note_thread(gpointer data)
{
	ran_on = pthread_self();
	return count_once(data);
}

static void *invoke_there(void *count)
{
	g_main_context_invoke(context, note_thread, count);
	return NULL;
}

/* Between two turns the context is the worker's too: else it would run on the thread that asks for it. */
TEST(what_another_thread_invokes_runs_in_a_turn)
{
	pthread_t thread;
	int count = 0;

	open_rig();
	CHECK_EQ(pthread_create(&thread, NULL, invoke_there, &count), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(count, 0);
	while (count == 0)
		rig_turn(&rig, HIVE_FOREVER);
	CHECK(pthread_equal(ran_on, pthread_self()));
	close_rig();
}
