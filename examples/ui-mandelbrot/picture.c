/* SPDX-License-Identifier: MIT */
/* Tiles: which are missing, who computes them, what becomes of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mandelbrot.h"

/* ---- on compute workers ---- */

/* The next frame shows it. Nobody is woken for it before: on a full machine a thread that has just run is let in less soon. */
static void give_back(struct tile *tile)
{
	struct picture *p = tile->picture;

	tile->next = atomic_load(&p->back);
	while (!atomic_compare_exchange_weak(&p->back, &tile->next, tile))
		;
}

static void compute(void *arg)
{
	struct tile *t = arg;
	double scale = t->scene->scale;
	int row = 0;

	while (row < TILE && atomic_load(&t->wanted) && !hive_cancelled()) {
		fractal_row((double)(t->x * TILE) * scale, (double)(t->y * TILE + row) * scale, scale, TILE,
		            &t->pixels[row * TILE]);
		row++;
	}
	t->complete = row == TILE;
	give_back(t);
}

void picture_dropped(const struct hive_task *task)
{
	if (task->fn == compute)
		give_back(task->arg);
}

/* ---- on the UI worker ---- */

static struct cell *cell_at(const struct picture *p, int64_t x, int64_t y)
{
	int64_t column = x - p->tile_x, row = y - p->tile_y;

	if (column < 0 || row < 0 || column >= p->columns || row >= p->rows)
		return NULL;
	return &p->cells[row * p->columns + column];
}

static void paint(struct picture *p, const struct tile *t)
{
	int stride = cairo_image_surface_get_stride(p->canvas);
	unsigned char *at = cairo_image_surface_get_data(p->canvas) + (t->y - p->tile_y) * TILE * stride +
	                    (t->x - p->tile_x) * TILE * 4;

	cairo_surface_flush(p->canvas);
	for (int row = 0; row < TILE; row++)
		memcpy(at + row * stride, &t->pixels[row * TILE], TILE * 4);
	cairo_surface_mark_dirty(p->canvas);
}

static void take_back(struct picture *p, struct tile *t)
{
	struct cell *cell = cell_at(p, t->x, t->y);
	bool ours = cell && cell->pending == t;

	p->pending--;
	if (ours)
		cell->pending = NULL;
	if (ours && t->complete) {
		paint(p, t);
		cell->done = true;
		p->painted++;
	} else {
		p->cancelled++;
	}
	free(t);
}

static void collect(struct picture *p)
{
	struct tile *t = atomic_exchange(&p->back, NULL);
	uint64_t before = p->painted;

	while (t) {
		struct tile *next = t->next;

		take_back(p, t);
		t = next;
	}
	if (p->painted != before)
		p->on_change(p->arg);
}

static void start(struct picture *p, struct cell *cell, int64_t x, int64_t y)
{
	struct tile *t = malloc(sizeof *t);

	if (!t)
		return; /* it stays as it is, and the next look tries again */
	t->picture = p;
	t->scene = p->scene;
	t->x = x;
	t->y = y;
	atomic_init(&t->wanted, true);
	t->complete = false;
	if (hive_post_under(p->hive, &p->scene->token, HIVE_COMPUTE, compute, t) < 0) {
		free(t);
		return;
	}
	cell->pending = t;
	p->pending++;
}

static bool is_seen(const struct picture *p, int64_t x, int64_t y)
{
	return (x + 1) * TILE > p->left && x * TILE < p->left + p->width && (y + 1) * TILE > p->top &&
	       y * TILE < p->top + p->height;
}

/* From the middle outwards, ring by ring: that is where one looks. */
static void start_missing(struct picture *p)
{
	int64_t middle_x = (p->left + p->width / 2) / TILE, middle_y = (p->top + p->height / 2) / TILE;
	int rings = (p->columns > p->rows ? p->columns : p->rows);

	for (int ring = 0; ring <= rings; ring++)
		for (int64_t y = middle_y - ring; y <= middle_y + ring; y++)
			for (int64_t x = middle_x - ring; x <= middle_x + ring; x++) {
				bool edge = llabs(x - middle_x) == ring || llabs(y - middle_y) == ring;
				struct cell *cell = edge ? cell_at(p, x, y) : NULL;

				if (cell && !cell->done && !cell->pending && is_seen(p, x, y))
					start(p, cell, x, y);
			}
}

static void forget(struct cell *cell)
{
	if (cell->pending)
		atomic_store(&cell->pending->wanted, false);
	cell->pending = NULL;
	cell->done = false;
}

/* An empty canvas for the part of the plane that is to be seen, and around it what fills up whole tiles. */
static void fresh_canvas(struct picture *p)
{
	p->tile_x = (int64_t)floor((double)p->left / TILE);
	p->tile_y = (int64_t)floor((double)p->top / TILE);
	p->columns = p->width / TILE + 2;
	p->rows = p->height / TILE + 2;
	p->cells = calloc((size_t)(p->columns * p->rows), sizeof *p->cells);
	p->canvas = cairo_image_surface_create(CAIRO_FORMAT_RGB24, p->columns * TILE, p->rows * TILE);
	if (!p->cells || cairo_surface_status(p->canvas) != CAIRO_STATUS_SUCCESS)
		abort();
}

/* What was painted for another place or scale stands in until its tiles come. */
static void show_old(struct picture *p, cairo_surface_t *old, double old_x, double old_y, double factor)
{
	cairo_t *cairo = cairo_create(p->canvas);

	cairo_set_source_rgb(cairo, 0.02, 0.03, 0.10);
	cairo_paint(cairo);
	if (old) {
		cairo_scale(cairo, factor, factor);
		cairo_set_source_surface(cairo, old, old_x / factor, old_y / factor);
		cairo_pattern_set_filter(cairo_get_source(cairo),
		                         factor == 1 ? CAIRO_FILTER_NEAREST : CAIRO_FILTER_FAST);
		cairo_paint(cairo);
	}
	cairo_destroy(cairo);
}

/* Tiles that are in both places keep what they have. */
static void keep_cells(struct picture *p, struct cell *old, int columns, int rows, int64_t tile_x, int64_t tile_y)
{
	for (int i = 0; i < columns * rows; i++) {
		struct cell *cell = cell_at(p, tile_x + i % columns, tile_y + i / columns);

		if (cell)
			*cell = old[i];
		else
			forget(&old[i]);
	}
}

static void fire_scene(struct picture *p)
{
	if (!p->scene)
		return;
	hive_cancel_fire(&p->scene->token);
	p->scene->next = p->fired;
	p->fired = p->scene;
	p->scene = NULL;
}

static void new_scene(struct picture *p, double scale)
{
	fire_scene(p);
	p->scene = calloc(1, sizeof *p->scene);
	if (!p->scene)
		abort();
	p->scene->scale = scale;
	hive_cancel_init(&p->scene->token, NULL, HIVE_FOREVER);
}

void picture_look(struct picture *p, struct view view, int width, int height)
{
	cairo_surface_t *canvas = p->canvas;
	struct cell *cells = p->cells;
	int64_t tile_x = p->tile_x, tile_y = p->tile_y;
	int columns = p->columns, rows = p->rows;
	bool other_scale = !p->scene || p->scene->scale != view.scale;
	double factor = p->scene ? p->scene->scale / view.scale : 1;

	p->view = view;
	p->width = width;
	p->height = height;
	p->left = llrint(view.x / view.scale) - width / 2;
	p->top = llrint(view.y / view.scale) - height / 2;
	if (other_scale)
		new_scene(p, view.scale);
	if (other_scale || columns != width / TILE + 2 || rows != height / TILE + 2 ||
	    tile_x != (int64_t)floor((double)p->left / TILE) || tile_y != (int64_t)floor((double)p->top / TILE)) {
		fresh_canvas(p);
		show_old(p, canvas, (double)(tile_x * TILE) * factor - (double)(p->tile_x * TILE),
		         (double)(tile_y * TILE) * factor - (double)(p->tile_y * TILE), factor);
		if (other_scale)
			for (int i = 0; i < columns * rows; i++)
				forget(&cells[i]);
		else
			keep_cells(p, cells, columns, rows, tile_x, tile_y);
		free(cells);
		if (canvas)
			cairo_surface_destroy(canvas);
	}
	start_missing(p);
}

void picture_draw(const struct picture *p, cairo_t *cairo)
{
	if (!p->canvas)
		return;
	cairo_set_source_surface(cairo, p->canvas, (double)(p->tile_x * TILE - p->left),
	                         (double)(p->tile_y * TILE - p->top));
	cairo_pattern_set_filter(cairo_get_source(cairo), CAIRO_FILTER_NEAREST);
	cairo_paint(cairo);
}

void picture_sweep(struct picture *p)
{
	struct scene **at = &p->fired;

	if (atomic_load(&p->back))
		collect(p);
	while (*at) {
		struct scene *scene = *at;

		if (hive_cancel_join(&scene->token, HIVE_NOWAIT) == 0) {
			*at = scene->next;
			free(scene);
		} else {
			at = &scene->next;
		}
	}
}

void picture_init(struct picture *p, struct hive *hive, void (*on_change)(void *arg), void *arg)
{
	memset(p, 0, sizeof *p);
	p->hive = hive;
	p->on_change = on_change;
	p->arg = arg;
}

static void say_nothing(void *arg)
{
	(void)arg;
}

void picture_free(struct picture *p)
{
	p->on_change = say_nothing;
	fire_scene(p);
	picture_sweep(p);
	free(p->cells);
	if (p->canvas)
		cairo_surface_destroy(p->canvas);
}
