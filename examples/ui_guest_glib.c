/* SPDX-License-Identifier: MIT */
/* g_application_run() owns the thread, and the hive is its guest: a source of GLib makes the beats of the main worker. What compute workers
 * find comes as a task to this thread, between GLib's own callbacks.                                                  */
#include <gio/gio.h>
#include <rophive/glib.h>
#include <rophive/hive.h>
#include <stdio.h>

struct app {
	struct hive *hive;
	GApplication *application;
	int sums, ticks;
};

struct sum {
	struct app *app;
	int from;
	double result;
};

static void add_up(void *arg)
{
	struct sum *sum = arg;

	for (int i = sum->from; i < sum->from + 1000000; i++)
		sum->result += 1.0 / i;
}

/* On GLib's thread again. */
static void show(void *arg)
{
	struct sum *sum = arg;
	struct app *app = sum->app;

	printf("from %7d: %.6f\n", sum->from, sum->result);
	if (++app->sums == 4)
		hive_stop(app->hive, HIVE_DRAIN, HIVE_FOREVER);
}

static gboolean tick(gpointer data)
{
	struct app *app = data;

	app->ticks++;
	if (app->sums < 4)
		return G_SOURCE_CONTINUE;
	g_application_release(app->application); /* the last one: g_application_run() returns */
	return G_SOURCE_REMOVE;
}

static void activate(GApplication *application, gpointer data)
{
	static struct sum sums[4];
	struct app *app = data;

	g_application_hold(application);
	g_timeout_add(1, tick, app);
	for (int i = 0; i < 4; i++) {
		sums[i] = (struct sum){ app, 1 + i * 1000000, 0 };
		if (hive_post_compute_then(app->hive, add_up, HIVE_WORKER_MAIN, show, &sums[i]) < 0)
			puts("refused");
	}
}

int main(int argc, char **argv)
{
	struct hive_options options = { .io_workers = 1, .compute_workers = HIVE_AUTO };
	struct app app = { 0 };
	GSource *guest;
	int status;

	if (hive_create(&options, &app.hive) < 0 || hive_glib_guest(app.hive, &guest) < 0)
		return 1;
	g_source_attach(guest, NULL);
	app.application = g_application_new(NULL, G_APPLICATION_NON_UNIQUE);
	g_signal_connect(app.application, "activate", G_CALLBACK(activate), &app);
	status = g_application_run(app.application, argc, argv);
	while (!g_source_is_destroyed(guest)) /* until the hive has stopped */
		g_main_context_iteration(NULL, TRUE);
	g_source_unref(guest);
	g_object_unref(app.application);
	printf("%s\n", app.ticks > 0 ? "GLib ticked meanwhile" : "GLib had no turn");
	return hive_destroy(app.hive) < 0 || status || app.sums != 4;
}
