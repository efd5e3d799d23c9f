/* SPDX-License-Identifier: MIT */
#pragma once
/* A picture that compute workers paint tile by tile while the UI worker shows it, moves it and throws away what it no longer needs. */
#include <cairo.h>
#include <rophive/hive.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TILE = 64, ITERATIONS = 1500 };

/* Which part of the plane: its point in the middle of the window, and how far it is from one pixel to the next. */
struct view {
	double x, y, scale;
};

struct picture;

/* All tiles of one scale: a token for what is computed, fired when nobody will look at it any more. */
struct scene {
	struct hive_cancel token;
	double scale;
	struct scene *next; /* of those that are fired and not yet left by everybody */
};

/* Belongs to the picture; while `busy`, to the compute worker or the queue that has it. */
struct tile {
	struct picture *picture;
	struct scene *scene;
	int64_t x, y;       /* in tiles, from the origin of the plane */
	atomic_bool wanted; /* false: it has left the window */
	bool complete;
	struct tile *next; /* of those that came back */
	uint32_t pixels[TILE * TILE];
};

struct cell {
	struct tile *pending;
	bool done;
};

struct picture {
	struct hive *hive;
	struct view view;
	int width, height; /* of the window, in pixels */
	int64_t left, top; /* its first pixel, from the origin of the plane */
	/* What has been painted: whole tiles, a few more than are to be seen. */
	cairo_surface_t *canvas;
	int64_t tile_x, tile_y; /* its first tile */
	int columns, rows;
	struct cell *cells;
	struct scene *scene, *fired;
	/* Tiles that came back, from all workers; each frame collects them. */
	_Atomic(struct tile *) back;
	void (*on_change)(void *arg);
	void *arg;
	int pending;
	uint64_t painted, cancelled;
};

/* fractal.c: one row of a tile, as colours. */
void fractal_row(double x, double y, double step, int count, uint32_t *ret_pixels);

/* picture.c, all on the UI worker. */
void picture_init(struct picture *picture, struct hive *hive, void (*on_change)(void *arg), void *arg);
void picture_look(struct picture *picture, struct view view, int width, int height);
void picture_draw(const struct picture *picture, cairo_t *cairo);
/* Now and then: scenes that everybody has left go. */
void picture_sweep(struct picture *picture);
/* Also the drop hook of the hive: tiles that will not be computed. */
void picture_dropped(const struct hive_task *task);
/* After the hive has ended. */
void picture_free(struct picture *picture);
