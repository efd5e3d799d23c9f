/* SPDX-License-Identifier: MIT */
#include "demo_tiles.h"
#include <math.h>

#define CENTRE_X (-0.743643887037151) /* a spiral that stays interesting for a long way down */
#define CENTRE_Y 0.131825904205330
#define WIDTH_WHOLE 3.2 /* the first picture: all of the set */
#define WIDTH_FIRST 0.03
#define ZOOM 0.75   /* each further picture shows that much of the one before */
#define PICTURES 31 /* then from the start again */
#define SHADES_PER_OCTAVE 90.0

struct window {
	double left, top, step; /* of one pixel */
	int limit;              /* iterations after which a point counts as inside */
};

static struct window window_of(int64_t number)
{
	int64_t picture = number / PICTURE_TILES % PICTURES, place = number % PICTURE_TILES;
	int64_t across = PICTURE_COLUMNS / TILE_COLUMNS;
	double step = (picture ? WIDTH_FIRST * pow(ZOOM, (double)(picture - 1)) : WIDTH_WHOLE) / PICTURE_COLUMNS;
	return (struct window){
		.left = CENTRE_X + step * (double)(place % across * TILE_COLUMNS - PICTURE_COLUMNS / 2),
		.top = CENTRE_Y + step * (double)(place / across * TILE_ROWS - PICTURE_ROWS / 2),
		.step = step,
		.limit = 300 + 40 * (int)picture,
	};
}

/* Iterations until the point escapes; the limit: it does not. */
static int escape(double cx, double cy, int limit, double *ret_size)
{
	double x = 0, y = 0, xx = 0, yy = 0;
	int i = 0;
	for (; i < limit && xx + yy < 64; i++) {
		y = 2 * x * y + cy;
		x = xx - yy + cx;
		xx = x * x;
		yy = y * y;
	}
	*ret_size = xx + yy;
	return i;
}

/* 1 … 255, the same step for each doubling of the iterations, going round: deep pictures have no end of colours. */
static double shade_of(int iterations, double size)
{
	double smooth = iterations + 1 - log2(log2(size) / 2);
	return SHADES_PER_OCTAVE * log2(smooth > 1 ? smooth : 1);
}

struct pixel {
	double shade;
	int outside, samples;
};

static void settle(struct tile *tile, struct pixel pixels[TILE_ROWS][TILE_COLUMNS])
{
	for (int row = 0; row < TILE_ROWS; row++)
		for (int column = 0; column < TILE_COLUMNS; column++) {
			const struct pixel *pixel = &pixels[row][column];
			int inside = 2 * pixel->outside <= pixel->samples;
			tile->shades[row][column] = inside ? 0
			                                   : (uint8_t)(1 + (int)(pixel->shade / pixel->outside) % 255);
		}
}

void tile_compute(struct tile *tile)
{
	static const double spread_x = 0.7548776662466927, spread_y = 0.5698402909980532; /* fills a square evenly */
	struct pixel pixels[TILE_ROWS][TILE_COLUMNS] = { 0 };
	const struct window window = window_of(tile->number);
	int64_t spent = 0;
	for (int pass = 0; spent < TILE_ITERATIONS; pass++) {
		double dx = fmod(0.5 + pass * spread_x, 1), dy = fmod(0.5 + pass * spread_y, 1);
		for (int i = 0; i < TILE_ROWS * TILE_COLUMNS && (pass == 0 || spent < TILE_ITERATIONS); i++) {
			int row = i / TILE_COLUMNS, column = i % TILE_COLUMNS;
			double size;
			int iterations = escape(window.left + window.step * (column + dx),
			                        window.top + window.step * (row + dy), window.limit, &size);
			struct pixel *pixel = &pixels[row][column];
			spent += iterations;
			pixel->samples++;
			if (iterations == window.limit)
				continue;
			pixel->outside++;
			pixel->shade += shade_of(iterations, size);
		}
	}
	settle(tile, pixels);
}

void picture_hand_out(struct picture *picture, struct tile *tile)
{
	tile->number = picture->next++;
}

void picture_take_in(struct picture *picture, const struct tile *tile)
{
	int place = (int)(tile->number % PICTURE_TILES), across = PICTURE_COLUMNS / TILE_COLUMNS;
	int left = place % across * TILE_COLUMNS, top = place / across * TILE_ROWS;
	for (int row = 0; row < TILE_ROWS; row++)
		for (int column = 0; column < TILE_COLUMNS; column++)
			picture->shades[top + row][left + column] = tile->shades[row][column];
	picture->done++;
}
