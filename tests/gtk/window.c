/* SPDX-License-Identifier: MIT */
/* A real window whose loop is the core of a worker: dialogs, drawing, posts, all on one thread. */
#include <pthread.h>
#include <stdatomic.h>

#include <rophive/glib.h>

#include "gtk/toolkit.h"
#include "support/real.h"
#include "test.h"

static struct hive *hive;
static GtkWidget *window, *label;
static _Atomic(int) polls;

static gint counted_poll(GPollFD *fds, guint count, gint timeout_ms)
{
	atomic_fetch_add(&polls, 1);
	return g_poll(fds, count, timeout_ms);
}

__attribute__((constructor)) static void count_polls(void)
{
	g_main_context_set_poll_func(NULL, counted_poll);
}

static void make_world(int compute_workers)
{
	struct hive_worker_options ui = { .name = "ui", .core = hive_core_glib() };

	hive = real_create((struct hive_options){ .io_workers = 1, .compute_workers = compute_workers, .io = &ui });
	window = gtk_window_new();
	label = gtk_label_new("nothing yet");
	gtk_window_set_default_size(GTK_WINDOW(window), 400, 200);
	gtk_window_set_child(GTK_WINDOW(window), label);
	gtk_window_present(GTK_WINDOW(window));
}

static void run_world(void)
{
	CHECK_OK(hive_run(hive));
	real_join(hive);
	close_window(window);
}

static void stop_world(void *arg)
{
	(void)arg;
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
}

/* ---- what is to be seen ---- */

static int count_colours(GtkWidget *widget)
{
	GdkPaintable *paintable = gtk_widget_paintable_new(widget);
	GtkSnapshot *snapshot = gtk_snapshot_new();
	int width = gtk_widget_get_width(widget), height = gtk_widget_get_height(widget), count = 0;
	uint32_t *pixels, seen[8] = { 0 };
	GskRenderNode *node;
	GdkTexture *texture;

	gdk_paintable_snapshot(paintable, GDK_SNAPSHOT(snapshot), width, height);
	node = gtk_snapshot_free_to_node(snapshot);
	CHECK(node);
	texture = gsk_renderer_render_texture(gtk_native_get_renderer(GTK_NATIVE(widget)), node, NULL);
	width = gdk_texture_get_width(texture);
	height = gdk_texture_get_height(texture);
	pixels = g_new(uint32_t, (gsize)width * (gsize)height);
	gdk_texture_download(texture, (guchar *)pixels, (gsize)width * 4);
	for (int i = 0; i < width * height && count < 8; i++) {
		bool known = false;

		for (int j = 0; j < count; j++)
			known = known || seen[j] == pixels[i];
		if (!known)
			seen[count++] = pixels[i];
	}
	g_free(pixels);
	g_object_unref(texture);
	gsk_render_node_unref(node);
	g_object_unref(paintable);
	return count;
}

static int ticks, colours;

static gboolean on_tick(GtkWidget *widget, GdkFrameClock *clock, gpointer data)
{
	(void)clock, (void)data;
	if (++ticks < 5)
		return G_SOURCE_CONTINUE;
	colours = count_colours(gtk_widget_get_ancestor(widget, GTK_TYPE_WINDOW));
	stop_world(NULL);
	return G_SOURCE_REMOVE; /* in its own call */
}

TEST(a_window_is_drawn_and_is_not_blank)
{
	make_world(0);
	ticks = colours = 0;
	gtk_widget_add_tick_callback(label, on_tick, NULL, NULL);
	run_world();
	CHECK_EQ(ticks, 5);
	CHECK(colours >= 4); /* background, letters, what lies between them */
}

/* ---- a modal dialog ---- */

enum { POSTS = 500 };
static int shown, shown_in_dialog;
static GMainLoop *dialog;

static void show_number(void *number)
{
	char text[32];

	g_snprintf(text, sizeof text, "%d of %d", (int)(intptr_t)number, POSTS);
	gtk_label_set_text(GTK_LABEL(label), text);
	shown++;
	shown_in_dialog += g_main_loop_is_running(dialog);
	if (shown == POSTS)
		g_main_loop_quit(dialog);
}

static void *post_numbers(void *arg)
{
	(void)arg;
	for (intptr_t i = 1; i <= POSTS; i++)
		CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, show_number, (void *)i));
	return NULL;
}

static void on_clicked(GtkButton *button, gpointer data)
{
	GtkWidget *asks = gtk_window_new();
	pthread_t thread;

	(void)button, (void)data;
	gtk_window_set_modal(GTK_WINDOW(asks), TRUE);
	gtk_window_set_transient_for(GTK_WINDOW(asks), GTK_WINDOW(window));
	gtk_window_set_child(GTK_WINDOW(asks), gtk_label_new("really?"));
	gtk_window_present(GTK_WINDOW(asks));
	CHECK_EQ(pthread_create(&thread, NULL, post_numbers, NULL), 0);
	g_main_loop_run(dialog);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	gtk_window_destroy(GTK_WINDOW(asks));
	stop_world(NULL);
}

static gboolean click(gpointer button)
{
	g_signal_emit_by_name(button, "clicked");
	return G_SOURCE_REMOVE;
}

TEST(posts_change_the_window_while_a_modal_dialog_is_open)
{
	GtkWidget *button = gtk_button_new_with_label("ask");

	make_world(0);
	dialog = g_main_loop_new(NULL, FALSE);
	shown = shown_in_dialog = 0;
	g_signal_connect(button, "clicked", G_CALLBACK(on_clicked), NULL);
	g_object_ref_sink(button);
	g_idle_add(click, button);
	run_world();
	g_object_unref(button);
	g_main_loop_unref(dialog);
	CHECK_EQ(shown, POSTS);
	CHECK_EQ(shown_in_dialog, POSTS);
}

/* ---- drawing while there is much to do ---- */

static _Atomic(bool) flooding;

static void again(void *arg)
{
	int r;

	(void)arg;
	if (!atomic_load(&flooding))
		return;
	r = hive_post_self(again, NULL);
	CHECK(r == 0 || r == -ESHUTDOWN);
}

static gboolean on_busy_tick(GtkWidget *widget, GdkFrameClock *clock, gpointer data)
{
	(void)clock, (void)data;
	gtk_widget_queue_draw(widget);
	if (++ticks < 10)
		return G_SOURCE_CONTINUE;
	atomic_store(&flooding, false);
	stop_world(NULL);
	return G_SOURCE_REMOVE;
}

/* The clock of GTK's frames is the least urgent of its sources. */
TEST(frames_of_gtk_come_while_the_worker_never_has_nothing_to_do)
{
	make_world(0);
	ticks = 0;
	atomic_store(&flooding, true);
	gtk_widget_add_tick_callback(label, on_busy_tick, NULL, NULL);
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, again, NULL));
	run_world();
	CHECK_EQ(ticks, 10);
}

/* ---- nothing to do ---- */

static int polls_before, quiet_rounds;

static void look_again(void *arg)
{
	int now = atomic_load(&polls);

	(void)arg;
	/* This look itself costs two; more means that the window was still being made, or that somebody spins. */
	quiet_rounds = now - polls_before <= 3 ? quiet_rounds + 1 : 0;
	polls_before = now;
	if (quiet_rounds == 3)
		stop_world(NULL);
	else
		CHECK_OK(hive_post_self_after(HIVE_MS(100), look_again, NULL, NULL));
}

TEST(a_window_in_which_nothing_happens_costs_nothing)
{
	make_world(1);
	polls_before = quiet_rounds = 0;
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, look_again, NULL));
	run_world(); /* a loop that spins never comes here */
	CHECK_EQ(quiet_rounds, 3);
}
