/* SPDX-License-Identifier: MIT */
/* Ten thousand updates from other threads repaint a window once; and while it repaints, as often as it has frames. Counted in calls of the function that
 * draws.                                                                                                                  */
#include <pthread.h>
#include <stdatomic.h>

#include <rophive/glib.h>

#include "gtk/toolkit.h"
#include "support/real.h"
#include "test.h"

enum { THREADS = 4, EACH = 2500, UPDATES = THREADS * EACH, ROUND = 500 };

static struct hive *hive;
static GtkWidget *window, *area;
static struct hive_update update;
static _Atomic(int) written, draws; /* written: by all threads together, each before its post */
static int runs, drawn, draws_before;
static void (*on_draw)(void);
static pthread_t posters[THREADS];

static void draw(GtkDrawingArea *self, cairo_t *cairo, int width, int height, gpointer data)
{
	(void)self, (void)width, (void)height, (void)data;
	atomic_fetch_add(&draws, 1);
	drawn = atomic_load(&written);
	cairo_set_source_rgb(cairo, drawn % 2, 0.5, 0.5);
	cairo_paint(cairo);
	if (on_draw)
		on_draw();
}

static void show(void *arg)
{
	(void)arg;
	runs++;
	gtk_widget_queue_draw(area);
}

/* Waits for the window now and then, if it shall paint meanwhile. */
static void *write_and_post(void *in_rounds)
{
	for (int i = 1; i <= EACH; i++) {
		int before = atomic_load(&draws);

		atomic_fetch_add(&written, 1);
		CHECK(hive_update_post(&update) >= 0);
		if (in_rounds && i % ROUND == 0 && i < EACH)
			WAIT_UNTIL(atomic_load(&draws) > before);
	}
	return NULL;
}

static void start_threads(void *in_rounds)
{
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&posters[i], NULL, write_and_post, in_rounds), 0);
}

static void join_threads(void)
{
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(posters[i], NULL), 0);
}

static void stop_world(void *arg)
{
	(void)arg;
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
}

/* Until the first picture is there: what follows was asked for by nobody but us. */
static void run_world(void (*after_first_draw)(void))
{
	struct hive_worker_options ui = { .name = "ui", .core = hive_core_glib(), .ui = true };

	hive = real_create((struct hive_options){ .io_workers = 1, .io = &ui });
	hive_update_init(&update, hive, HIVE_WORKER_MAIN, show, NULL);
	runs = drawn = draws_before = 0;
	atomic_store(&written, 0);
	atomic_store(&draws, 0);
	on_draw = after_first_draw;
	window = gtk_window_new();
	area = gtk_drawing_area_new();
	gtk_drawing_area_set_draw_func(GTK_DRAWING_AREA(area), draw, NULL, NULL);
	gtk_window_set_default_size(GTK_WINDOW(window), 300, 200);
	gtk_window_set_child(GTK_WINDOW(window), area);
	gtk_window_present(GTK_WINDOW(window));
	CHECK_OK(hive_run(hive));
	real_join(hive);
	close_window(window);
}

/* ---- while the window is busy ---- */

static void stop_when_all_is_drawn(void)
{
	if (drawn < UPDATES)
		return;
	on_draw = NULL;
	CHECK_OK(hive_post_self_after(HIVE_MS(50), stop_world, NULL, NULL)); /* should another draw be to come */
}

static void let_others_post(void *arg)
{
	(void)arg;
	start_threads(NULL);
	join_threads();
	CHECK_EQ(runs, 0);
	draws_before = atomic_load(&draws);
	on_draw = stop_when_all_is_drawn;
}

static void begin_busily(void)
{
	on_draw = NULL;
	CHECK_OK(hive_post_self(let_others_post, NULL)); /* not in the middle of a draw */
}

TEST(ten_thousand_updates_while_the_window_is_busy_repaint_once)
{
	run_world(begin_busily);
	CHECK_EQ(runs, 1);
	CHECK_EQ(drawn, UPDATES);
	CHECK(atomic_load(&draws) - draws_before >= 1);
	CHECK(atomic_load(&draws) - draws_before <= 3); /* GTK's own, if the window was still being shown */
}

/* ---- while it paints ---- */

static void join_when_all_is_drawn(void)
{
	if (drawn < UPDATES)
		return;
	on_draw = NULL;
	join_threads(); /* the last may be about to post what was seen already */
	stop_world(NULL);
}

static void begin_to_paint(void)
{
	on_draw = join_when_all_is_drawn;
	start_threads(&update);
}

/* The last of them is drawn, or this never ends. */
TEST(ten_thousand_updates_while_the_window_paints_repaint_far_less_often_and_the_last_is_seen)
{
	run_world(begin_to_paint);
	CHECK_EQ(drawn, UPDATES);
	CHECK(atomic_load(&draws) > EACH / ROUND - 1);
	CHECK(atomic_load(&draws) <= runs + 3); /* what GTK draws by itself at the beginning */
	CHECK(atomic_load(&draws) * 10 <= UPDATES);
}
