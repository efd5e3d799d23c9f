/* SPDX-License-Identifier: MIT */
/* A window that never freezes: the UI thread is a worker whose core is GTK's main loop; nothing else in the hive changes. "--click" does what
 * a user would do, once.                                                                                                */
#include <gtk/gtk.h>
#include <rophive/glib.h>
#include <rophive/hive.h>
#include <string.h>

struct app {
	struct hive *hive;
	GtkWidget *window, *button;
	double result;
	bool click, done;
};

static void work(void *arg)
{
	struct app *app = arg;
	int count = app->click ? 4000000 : 400000000;

	app->result = 0;
	for (int i = 1; i < count; i++)
		app->result += 1.0 / i;
}

/* Back on the UI thread. */
static void done(void *arg)
{
	struct app *app = arg;
	char text[32];

	g_snprintf(text, sizeof text, "%.6f, again?", app->result);
	gtk_button_set_label(GTK_BUTTON(app->button), text);
	gtk_widget_set_sensitive(app->button, TRUE);
	app->done = true;
	if (app->click)
		gtk_window_close(GTK_WINDOW(app->window));
}

static void on_click(GtkButton *button, gpointer data)
{
	struct app *app = data;

	if (hive_post_compute_then(app->hive, work, HIVE_WORKER_MAIN, done, app) == 0)
		gtk_widget_set_sensitive(GTK_WIDGET(button), FALSE);
}

static gboolean on_close(GtkWindow *window, gpointer data)
{
	(void)window;
	return hive_stop(((struct app *)data)->hive, HIVE_NOW, HIVE_FOREVER) < 0;
}

int main(int argc, char **argv)
{
	struct hive_worker_options ui = { .name = "ui", .core = hive_core_glib(), .ui = true };
	struct hive_options options = { .io_workers = 1, .compute_workers = HIVE_AUTO, .io = &ui };
	struct app app = { .click = argc > 1 && strcmp(argv[1], "--click") == 0 };

	if (!gtk_init_check()) {
		fputs("there is no display\n", stderr);
		return 77;
	}
	if (hive_create(&options, &app.hive) < 0)
		return 1;
	app.window = gtk_window_new();
	app.button = gtk_button_new_with_label("compute");
	gtk_window_set_child(GTK_WINDOW(app.window), app.button);
	g_signal_connect(app.button, "clicked", G_CALLBACK(on_click), &app);
	g_signal_connect(app.window, "close-request", G_CALLBACK(on_close), &app);
	gtk_window_present(GTK_WINDOW(app.window));
	if (app.click)
		g_signal_emit_by_name(app.button, "clicked");
	if (hive_run(app.hive) < 0)
		return 1;
	return hive_destroy(app.hive) < 0 || (app.click && !app.done);
}
