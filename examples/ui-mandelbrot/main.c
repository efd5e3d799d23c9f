/* SPDX-License-Identifier: MIT */
/* usage: ui-mandelbrot [--headless [--frames N]] [--screenshot FILE] [--load LETTERS] [--ordinary]
 *
 * --headless: plays N frames (300) of dragging and zooming, says how late they were, and ends: 0; 1 if the picture is blank, or a load did not
 * come. It needs a display all the same, Xvfb will do. --screenshot: what is to be seen at the end of that, as PNG. --load: trouble on
 * purpose (load.h). --ordinary: the window's thread does not ask to be let in before all others.                             */
#include <stdlib.h>
#include <string.h>

#include "load.h"
#include "window.h"

static const char *letters;

static void open_window(void *arg)
{
	struct window *w = arg;

	if (window_open(w) < 0 || load_start(w->hive, letters) < 0)
		hive_stop(w->hive, HIVE_NOW, HIVE_FOREVER);
}

static void close_window(void *arg)
{
	load_stop();
	window_close(arg);
}

static void dropped(void *arg, const struct hive_task *task)
{
	(void)arg;
	picture_dropped(task);
}

static void report(const struct window *w)
{
	struct hive_frame_stats s = w->stats;
	struct load_figures load = load_read();

	printf("{\"frames\": %llu, \"missed\": %llu, \"on_time\": %.5f, \"late_p50_ms\": %.3f, \"late_p99_ms\": %.3f, "
	       "\"late_max_ms\": %.3f, \"paints\": %llu, \"tiles\": %llu, \"tiles_cancelled\": %llu, \"load_timers\": %llu, "
	       "\"load_posts\": %llu, \"load_blocked\": %llu, \"blank\": %s}\n",
	       (unsigned long long)s.frames, (unsigned long long)s.missed,
	       s.frames ? (double)s.on_time / (double)(s.frames + s.missed) : 0.0, (double)s.late_p50_ns / 1e6,
	       (double)s.late_p99_ns / 1e6, (double)s.late_max_ns / 1e6, (unsigned long long)w->paints,
	       (unsigned long long)w->picture.painted, (unsigned long long)w->picture.cancelled,
	       (unsigned long long)load.timers, (unsigned long long)load.posts, (unsigned long long)load.blocked,
	       w->blank ? "true" : "false");
}

static bool read_options(int argc, char **argv, struct window *w, struct hive_worker_options *ui)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--headless") == 0)
			w->frames_wanted = w->frames_wanted ? w->frames_wanted : 300;
		else if (strcmp(argv[i], "--frames") == 0 && i + 1 < argc)
			w->frames_wanted = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--screenshot") == 0 && i + 1 < argc)
			w->screenshot = argv[++i];
		else if (strcmp(argv[i], "--load") == 0 && i + 1 < argc)
			letters = argv[++i];
		else if (strcmp(argv[i], "--ordinary") == 0)
			ui->realtime = HIVE_OFF;
		else
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	static struct window w;
	struct hive_worker_options ui = { .name = "ui",
		                          .core = hive_core_glib(),
		                          .ui = true,
		                          .on_start = open_window,
		                          .on_stop = close_window,
		                          .hook_arg = &w };
	struct hive_options options = { .on_drop = dropped };
	int r;

	if (!read_options(argc, argv, &w, &ui)) {
		fputs("usage: ui-mandelbrot [--headless [--frames N]] [--screenshot FILE] [--load abcd] [--ordinary]\n",
		      stderr);
		return 2;
	}
	if (!gtk_init_check()) {
		fputs("ui-mandelbrot: there is no display\n", stderr);
		return 77;
	}
	options.compute_workers = load_compute_workers(letters);
	r = hive_create(&options, &w.hive);
	if (r == 0)
		r = hive_attach(w.hive, &ui, NULL);
	if (r == 0)
		r = hive_attach(w.hive, NULL, NULL); /* company, for all that is not the window's */
	if (r == 0)
		r = hive_run(w.hive);
	if (r < 0)
		fprintf(stderr, "ui-mandelbrot: %s\n", hive_error_text(r));
	if (w.frames_wanted)
		report(&w);
	hive_destroy(w.hive);
	picture_free(&w.picture);
	return r < 0 || (w.frames_wanted && (w.blank || !w.finished));
}
