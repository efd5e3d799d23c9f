/* SPDX-License-Identifier: MIT */
/* The reverse: g_application_run() owns the thread, and a hive is its guest. */
#include <pthread.h>

#include <rophive/glib.h>

#include "gtk/toolkit.h"
#include "support/real.h"
#include "test.h"

enum { POSTS = 500 };

static struct hive *hive;
static GtkApplication *application;
static GtkWidget *window, *label;
static int shown, shown_in_dialog, ticks, answered;
static GMainLoop *dialog;

static void maybe_end(void)
{
	if (shown == POSTS && ticks >= 3 && answered) {
		gtk_window_destroy(GTK_WINDOW(window)); /* the last one: the application ends */
		window = NULL;
	}
}

static void show_number(void *number)
{
	char text[32];

	g_snprintf(text, sizeof text, "%d", (int)(intptr_t)number);
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

/* A dialog in a callback of GTK's: no step is under way, so all goes on. */
static gboolean ask(gpointer data)
{
	pthread_t thread;

	(void)data;
	CHECK_EQ(pthread_create(&thread, NULL, post_numbers, NULL), 0);
	g_main_loop_run(dialog);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	maybe_end();
	return G_SOURCE_REMOVE;
}

static void compute(void *arg)
{
	(void)arg;
}

static void answer(void *arg)
{
	(void)arg;
	answered++;
	if (window)
		maybe_end();
}

static gboolean on_tick(GtkWidget *widget, GdkFrameClock *clock, gpointer data)
{
	(void)clock, (void)data;
	ticks++;
	gtk_widget_queue_draw(widget);
	if (window)
		maybe_end();
	return G_SOURCE_CONTINUE;
}

static void activate(GtkApplication *app, gpointer data)
{
	(void)data;
	window = gtk_application_window_new(app);
	label = gtk_label_new("nothing yet");
	gtk_window_set_child(GTK_WINDOW(window), label);
	gtk_widget_add_tick_callback(label, on_tick, NULL, NULL);
	gtk_window_present(GTK_WINDOW(window));
	g_idle_add(ask, NULL);
	CHECK_OK(hive_post_compute_then(hive, compute, HIVE_WORKER_MAIN, answer, NULL));
}

TEST(an_application_of_gtk_has_a_hive_as_its_guest)
{
	GSource *guest;

	dialog = g_main_loop_new(NULL, FALSE);
	hive = real_create((struct hive_options){ .io_workers = 1, .compute_workers = 1 });
	CHECK_OK(hive_glib_guest(hive, &guest));
	g_source_attach(guest, NULL);
	application = gtk_application_new(NULL, G_APPLICATION_NON_UNIQUE);
	g_signal_connect(application, "activate", G_CALLBACK(activate), NULL);
	CHECK_EQ(g_application_run(G_APPLICATION(application), 0, NULL), 0);
	CHECK_EQ(shown, POSTS);
	CHECK_EQ(shown_in_dialog, POSTS);
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	STEP_UNTIL(g_source_is_destroyed(guest), g_main_context_iteration(NULL, TRUE));
	g_source_unref(guest);
	real_join(hive);
	g_object_unref(application);
	g_main_loop_unref(dialog);
}
