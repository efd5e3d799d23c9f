/* SPDX-License-Identifier: MIT */
/* A UI worker whose loop is a GMainContext: what GLib has to call waits for a frame and a task at most, whatever is posted, also in a loop inside the
 * loop. The context is a real one, the clock the test's: each task says how long it took, and nothing here depends on the machine.     */
#include <glib-unix.h>

#include <rophive/glib.h>

#include "support/cores.h"

static struct rig rig;
static GMainContext *context;
static GMainLoop *inner;
static int64_t task_ns, last_call_ns, longest_ns;
static int done[4]; /* private, delayed, local, pool */
static int calls;   /* of GLib's callback */

static int all_done(void)
{
	return done[0] + done[1] + done[2] + done[3];
}

static void open_world(struct hive_worker_options options)
{
	context = g_main_context_new();
	options.core_arg = context;
	rig_open_with(&rig, core_names[0], options);
	rig.l.f.now_ns = HIVE_S(1);
	memset(done, 0, sizeof done);
	last_call_ns = longest_ns = 0;
	calls = 0;
}

static void close_world(void)
{
	rig_close(&rig);
	g_main_context_unref(context);
}

static void beat(void)
{
	CHECK(lone_beat(&rig.l, 0));
}

static uint64_t frames_cut(void)
{
	struct hive_worker_stats stats;

	CHECK_OK(hive_worker_stats_read(rig.l.f.hive, rig.l.ids[0], &stats));
	return stats.frames_cut;
}

static GSource *attach(GSource *source, GSourceFunc callback, int priority)
{
	g_source_set_callback(source, callback, NULL, NULL);
	g_source_set_priority(source, priority);
	g_source_attach(source, context);
	return source;
}

static void detach(GSource *source)
{
	g_source_destroy(source);
	g_source_unref(source);
}

/* ---- a flood without end ---- */

static void work(void *arg)
{
	done[(intptr_t)arg]++;
	rig.l.f.now_ns += task_ns;
}

static void again_privately(void *arg)
{
	work(arg);
	CHECK_OK(hive_post_self(again_privately, arg));
}

static void again_later(void *arg)
{
	work(arg);
	CHECK_OK(hive_post_self_after(0, again_later, arg, NULL));
}

static void again_locally(void *arg)
{
	work(arg);
	CHECK_OK(hive_post_local(again_locally, arg));
}

static void again_by_the_pool(void *arg)
{
	work(arg);
	CHECK_OK(hive_post(rig.l.f.hive, again_by_the_pool, arg));
}

static void flood(void)
{
	for (int i = 0; i < 100; i++) {
		CHECK_OK(hive_post_self(again_privately, number(0)));
		CHECK_OK(hive_post_self_after(0, again_later, number(1), NULL));
		CHECK_OK(hive_post_local(again_locally, number(2)));
		CHECK_OK(hive_post(rig.l.f.hive, again_by_the_pool, number(3)));
	}
}

/* The least urgent thing in GTK is drawing. It is due all the time here. */
static gboolean draw(gpointer data)
{
	(void)data;
	if (calls++ > 0 && rig.l.f.now_ns - last_call_ns > longest_ns)
		longest_ns = rig.l.f.now_ns - last_call_ns;
	last_call_ns = rig.l.f.now_ns;
	return G_SOURCE_CONTINUE;
}

static const int64_t each_ns[] = { HIVE_US(10), HIVE_US(700), HIVE_US(1700), HIVE_MS(5) };
enum { EACH = sizeof each_ns / sizeof *each_ns, BEATS = 600 };

static void check_frames(void)
{
	CHECK(calls >= BEATS - 1); /* in each beat, or in every other iteration of the dialog */
	CHECK(longest_ns > 0);
	CHECK(longest_ns <= HIVE_MS(4) + task_ns);
	for (int i = 0; i < 4; i++)
		CHECK(done[i] > 0);
	CHECK_EQ(frames_cut() > 0, task_ns > HIVE_MS(1)); /* shorter ones end with their budgets */
}

TEST(under_any_flood_glib_waits_for_a_frame_and_a_task_at_most)
{
	for (int i = 0; i < EACH; i++) {
		GSource *idle;

		open_world((struct hive_worker_options){ .ui = true });
		idle = attach(g_idle_source_new(), draw, G_PRIORITY_LOW);
		task_ns = each_ns[i];
		flood();
		for (int n = 0; n < BEATS; n++)
			beat();
		check_frames();
		detach(idle);
		close_world();
	}
}

/* The frame is what does it: the same flood without one. */
TEST(without_a_frame_the_same_flood_keeps_glib_waiting_for_longer)
{
	GSource *idle;

	open_world((struct hive_worker_options){ .frame_ns = HIVE_OFF });
	idle = attach(g_idle_source_new(), draw, G_PRIORITY_LOW);
	task_ns = HIVE_MS(5);
	flood();
	for (int n = 0; n < BEATS; n++)
		beat();
	CHECK(longest_ns > HIVE_MS(4) + task_ns);
	CHECK_EQ(frames_cut(), 0);
	detach(idle);
	close_world();
}

/* ---- in a loop inside the loop ---- */

static gboolean flood_in_a_dialog(gpointer data)
{
	GSource *idle = attach(g_idle_source_new(), draw, G_PRIORITY_LOW);

	(void)data;
	flood();
	for (int n = 0; n < 2 * BEATS; n++)
		g_main_context_iteration(context, FALSE);
	detach(idle);
	return G_SOURCE_REMOVE;
}

TEST(in_a_dialog_under_a_flood_glib_waits_for_a_frame_and_a_task_at_most)
{
	for (int i = 0; i < EACH; i++) {
		GSource *dialog;

		open_world((struct hive_worker_options){ .ui = true });
		dialog = attach(g_idle_source_new(), flood_in_a_dialog, G_PRIORITY_DEFAULT);
		task_ns = each_ns[i];
		beat();
		check_frames();
		g_source_unref(dialog);
		close_world();
	}
}

/* ---- input first ---- */

enum { TASKS = 400 };
static int fds[2], typed_at, inputs, waited_most;

/* There is input all the time; each task takes longer than a frame. */
static void work_and_type(void *arg)
{
	if (typed_at < 0) {
		typed_at = all_done();
		put_byte(fds[1]);
	}
	work(arg);
}

static gboolean take_input(gint fd, GIOCondition events, gpointer data)
{
	int waited = all_done() - typed_at;

	(void)events, (void)data;
	take_byte(fd);
	typed_at = -1;
	inputs++;
	if (waited > waited_most)
		waited_most = waited;
	return G_SOURCE_CONTINUE;
}

static void post_tasks(void)
{
	for (int i = 0; i < TASKS; i += 4) {
		CHECK_OK(hive_post_self(work_and_type, number(0)));
		CHECK_OK(hive_post_self_after(0, work_and_type, number(1), NULL));
		CHECK_OK(hive_post_local(work_and_type, number(2)));
		CHECK_OK(hive_post(rig.l.f.hive, work_and_type, number(3)));
	}
}

/* As urgent to GLib as drawing, and less so than what GTK reads from the display. */
static GSource *listen_to_input(void)
{
	make_pipe(fds);
	typed_at = -1;
	inputs = waited_most = 0;
	task_ns = HIVE_MS(5);
	return attach(g_unix_fd_source_new(fds[0], G_IO_IN), G_SOURCE_FUNC(take_input), G_PRIORITY_LOW);
}

static void check_input(GSource *watch)
{
	CHECK(inputs >= TASKS - 1); /* the last may still be there */
	CHECK_EQ(waited_most, 1);   /* for the end of the task in which it came, and for no other */
	detach(watch);
	close_both(fds);
}

TEST(input_that_comes_in_a_flood_has_its_turn_before_the_rest_of_it)
{
	GSource *watch;

	open_world((struct hive_worker_options){ .ui = true });
	watch = listen_to_input();
	post_tasks();
	while (all_done() < TASKS)
		beat();
	check_input(watch);
	CHECK(frames_cut() > 0);
	close_world();
}

static gboolean close_dialog_when_done(gpointer data)
{
	(void)data;
	if (all_done() < TASKS)
		return G_SOURCE_CONTINUE;
	g_main_loop_quit(inner);
	return G_SOURCE_REMOVE;
}

static gboolean dialog_with_input(gpointer data)
{
	GSource *watch = listen_to_input(), *idle = attach(g_idle_source_new(), close_dialog_when_done, G_PRIORITY_LOW);

	(void)data;
	post_tasks();
	inner = g_main_loop_new(context, FALSE);
	g_main_loop_run(inner);
	g_main_loop_unref(inner);
	check_input(watch);
	detach(idle);
	return G_SOURCE_REMOVE;
}

TEST(input_that_comes_in_a_flood_while_a_dialog_is_open_has_its_turn_before_the_rest_of_it)
{
	GSource *dialog;

	open_world((struct hive_worker_options){ .ui = true });
	dialog = attach(g_idle_source_new(), dialog_with_input, G_PRIORITY_DEFAULT);
	beat();
	CHECK_EQ(all_done(), TASKS);
	g_source_unref(dialog);
	close_world();
}

/* ---- who ends a loop inside the loop ---- */

static struct hive_source ender;

static void end_dialog(void *arg)
{
	(void)arg;
	g_main_loop_quit(inner);
}

static void end_dialog_by_source(struct hive_source *source, uint32_t events)
{
	(void)events;
	take_byte(fds[0]);
	CHECK(hive_source_stop(source) >= 0);
	end_dialog(NULL);
}

static gboolean end_dialog_by_glib(gpointer data)
{
	end_dialog(data);
	return G_SOURCE_REMOVE;
}

static void prepare_end(int how)
{
	if (how == 0) {
		make_pipe(fds);
		hive_source_init(&ender, HIVE_SOURCE_FD, fds[0], HIVE_EVENT_IN, end_dialog_by_source, NULL);
		CHECK_OK(hive_source_start(&ender));
		put_byte(fds[1]);
	} else if (how == 1) {
		CHECK_OK(hive_post_self(end_dialog, NULL));
	} else if (how == 2) {
		CHECK_OK(hive_post_self_after(0, end_dialog, NULL, NULL));
	} else {
		g_source_unref(attach(g_idle_source_new(), end_dialog_by_glib, G_PRIORITY_LOW));
	}
}

static gboolean dialogs_that_end(gpointer data)
{
	(void)data;
	for (int how = 0; how < 4; how++) {
		inner = g_main_loop_new(context, FALSE);
		prepare_end(how);
		g_main_loop_run(inner);
		CHECK(!rig.l.w[0]->announced); /* what follows is user code: nobody may count on its sleep */
		g_main_loop_unref(inner);
		if (how == 0)
			close_both(fds);
		calls++;
	}
	return G_SOURCE_REMOVE;
}

TEST(the_worker_is_awake_behind_a_dialog_whoever_ended_it)
{
	GSource *dialog;

	open_world((struct hive_worker_options){ .ui = true });
	dialog = attach(g_idle_source_new(), dialogs_that_end, G_PRIORITY_DEFAULT);
	beat();
	CHECK_EQ(calls, 4);
	g_source_unref(dialog);
	close_world();
}

/* ---- the pool ---- */

static int most_at_once, done_at_draw;

static gboolean look_at_share(gpointer data)
{
	int now = all_done();

	if (now - done_at_draw > most_at_once)
		most_at_once = now - done_at_draw;
	done_at_draw = now;
	return draw(data);
}

static GSource *fill_pool(int tasks)
{
	task_ns = 0;
	most_at_once = done_at_draw = 0;
	for (int i = 0; i < tasks; i++)
		CHECK_OK(hive_post(rig.l.f.hive, work, number(3)));
	hive__flush_outbox(rig.l.w[0]);
	return attach(g_idle_source_new(), look_at_share, G_PRIORITY_LOW);
}

static gboolean pool_in_a_dialog(gpointer data)
{
	GSource *idle = fill_pool(256);

	(void)data;
	for (int n = 0; all_done() < 256 && n < 10000; n++)
		g_main_context_iteration(context, FALSE);
	g_main_context_iteration(context, FALSE);
	g_main_context_iteration(context, FALSE);
	detach(idle);
	return G_SOURCE_REMOVE;
}

/* Between two calls of GLib's there is one beat, and in that no more of the pool than this. With .ui alone it is one task. */
TEST(between_two_calls_of_glib_a_ui_worker_takes_its_share_of_the_pool_and_no_more)
{
	static const int32_t shares[] = { 0, 1, 3, 7 };

	for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
		for (int in_dialog = 0; in_dialog < 2; in_dialog++) {
			GSource *source;

			open_world((struct hive_worker_options){ .ui = true, .pool_share = shares[i] });
			if (in_dialog)
				source = attach(g_idle_source_new(), pool_in_a_dialog, G_PRIORITY_DEFAULT);
			else
				source = fill_pool(256);
			for (int n = 0; all_done() < 256 && n < 10000; n++)
				beat();
			CHECK_EQ(done[3], 256);
			CHECK_EQ(most_at_once, shares[i] ? shares[i] : TUNE_UI_POOL_SHARE);
			detach(source);
			close_world();
		}
}
