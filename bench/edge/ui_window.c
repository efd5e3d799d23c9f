/* SPDX-License-Identifier: MIT */
/* hive-bench-gtk: a window of GTK 4 with the Mandelbrot picture, for both sides by the same calls. Each frame puts in the tiles that compute threads
 * have brought, drags the picture by some pixels and asks for it to be drawn; GTK's own clock draws it. Nobody wakes the thread for
 * a tile: a frame finds out by a flag.                                                                                      */
#include <gtk/gtk.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "examples/ui-mandelbrot/mandelbrot.h"
#include "ui.h"

/* A tile more than is to be seen, on each side: room for the drag. */
enum { COLUMNS = WIDTH / TILE + 2, ROWS = HEIGHT / TILE + 2, PLACES = COLUMNS * ROWS, ZOOMS = 60, FIRST_PAINTS = 5 };
enum { EMPTY, FILLING, FULL };

const char picture_program[] = "hive-bench-gtk", picture_bench[] = "gtk", picture_loads[] = "-,p,a,pb,pc,pd";

/* FILLING: it belongs to a compute thread. FULL: to the thread with the frames. */
static struct place {
	atomic_int state;
	uint32_t pixels[TILE * TILE];
} places[PLACES];

static GtkWidget *area;
static cairo_surface_t *canvas;
static int left = TILE, top = TILE;
static uint64_t tiles, paints;
/* When what a frame wanted was painted, after the time of that frame. */
static int64_t wanted_ns, drawn_ns, shown[FRAMES_MOST];
static int shown_count;

/* ---- on compute threads ---- */

/* A tile takes some milliseconds: this is at the edge of the set, where one looks. A tile that no frame has taken yet stays. */
void picture_compute(void)
{
	static atomic_uint next;
	unsigned number = atomic_fetch_add(&next, 1), at = number % PLACES;
	double scale = pow(0.85, number / PLACES % ZOOMS) / 270;
	double x = -0.743643887 + ((double)(at % COLUMNS) - COLUMNS / 2.0) * TILE * scale;
	double y = 0.131825904 + ((double)(at / COLUMNS) - ROWS / 2.0) * TILE * scale;
	uint32_t pixels[TILE * TILE];
	int state = EMPTY;

	for (int row = 0; row < TILE; row++) {
		if (atomic_load(&ended))
			return;
		fractal_row(x, y + row * scale, scale, TILE, &pixels[row * TILE]);
	}
	if (!atomic_compare_exchange_strong(&places[at].state, &state, FILLING))
		return;
	memcpy(places[at].pixels, pixels, sizeof pixels);
	atomic_store(&places[at].state, FULL);
}

/* ---- on the thread with the frames ---- */

static void put_in(const struct place *place, int at)
{
	int stride = cairo_image_surface_get_stride(canvas);
	unsigned char *to = cairo_image_surface_get_data(canvas) + at / COLUMNS * TILE * stride +
	                    at % COLUMNS * TILE * 4;

	for (int row = 0; row < TILE; row++)
		memcpy(to + row * stride, &place->pixels[row * TILE], TILE * 4);
	tiles++;
}

static void collect(void)
{
	uint64_t before = tiles;

	for (int i = 0; i < PLACES; i++)
		if (atomic_load(&places[i].state) == FULL) {
			if (tiles == before)
				cairo_surface_flush(canvas);
			put_in(&places[i], i);
			atomic_store(&places[i].state, EMPTY);
		}
	if (tiles > before)
		cairo_surface_mark_dirty(canvas);
}

void picture_frame(int number, int64_t due_ns)
{
	collect();
	left = TILE / 2 + (int)lrint(TILE / 2 * cos(number * 0.1));
	top = TILE / 2 + (int)lrint(TILE / 2 * sin(number * 0.1));
	if (!wanted_ns) /* else that one was not painted yet, and is late by so much */
		wanted_ns = due_ns;
	gtk_widget_queue_draw(area);
}

static void draw(GtkDrawingArea *self, cairo_t *cairo, int width, int height, gpointer data)
{
	(void)self, (void)width, (void)height, (void)data;
	cairo_set_source_surface(cairo, canvas, -left, -top);
	cairo_pattern_set_filter(cairo_get_source(cairo), CAIRO_FILTER_NEAREST);
	cairo_paint(cairo);
	drawn_ns = wanted_ns;
	wanted_ns = 0;
	paints++;
}

/* GTK paints on a grid of its own. Where that lay beside ours would be left to chance: in one turn each frame would be painted at once, in the next one
 * half a frame later, so that the painting is in the way of the next frame.                                                */
void picture_align(void)
{
	int64_t at_us = gdk_frame_clock_get_frame_time(gtk_widget_get_frame_clock(area)),
		now_us = g_get_monotonic_time();

	while (at_us < now_us)
		at_us += PERIOD / 1000;
	g_usleep((gulong)(at_us - now_us));
}

/* What draw() does is only noted down by GTK, and painted after it. */
static void on_painted(GdkFrameClock *clock, gpointer data)
{
	(void)clock, (void)data;
	if (drawn_ns && shown_count < FRAMES_MOST)
		shown[shown_count++] = hive_now(NULL) - drawn_ns;
	drawn_ns = 0;
}

/* What GTK loads for the first paint it shall load before the frames that count. */
static bool paint_first(void)
{
	int64_t end_ns = hive_now(NULL) + HIVE_S(10);

	while (paints < FIRST_PAINTS && hive_now(NULL) < end_ns) {
		uint64_t before = paints;

		gtk_widget_queue_draw(area);
		while (paints == before && hive_now(NULL) < end_ns)
			if (!g_main_context_iteration(NULL, FALSE))
				g_usleep(1000);
	}
	return paints >= FIRST_PAINTS;
}

bool picture_open(void)
{
	GtkWidget *window;

	if (!gtk_init_check())
		return false;
	canvas = cairo_image_surface_create(CAIRO_FORMAT_RGB24, COLUMNS * TILE, ROWS * TILE);
	window = gtk_window_new();
	area = gtk_drawing_area_new();
	gtk_drawing_area_set_draw_func(GTK_DRAWING_AREA(area), draw, NULL, NULL);
	gtk_window_set_title(GTK_WINDOW(window), "frames on time");
	gtk_window_set_decorated(GTK_WINDOW(window), FALSE);
	gtk_window_set_default_size(GTK_WINDOW(window), WIDTH, HEIGHT);
	gtk_window_set_child(GTK_WINDOW(window), area);
	gtk_window_present(GTK_WINDOW(window));
	if (!paint_first())
		check(-ETIMEDOUT, "the first paints");
	g_signal_connect(gtk_widget_get_frame_clock(area), "after-paint", G_CALLBACK(on_painted), NULL);
	return true;
}

bool picture_seen(void)
{
	return shown_count > 0;
}

void picture_report(void)
{
	sort_times(shown, shown_count);
	printf(", \"tiles\": %llu, \"shown\": %d, \"shown_p50_us\": %.0f, \"shown_p99_us\": %.0f, \"shown_max_us\": %.0f",
	       (unsigned long long)tiles, shown_count, time_at_us(shown, shown_count, 0.5),
	       time_at_us(shown, shown_count, 0.99), time_at_us(shown, shown_count, 1));
}
