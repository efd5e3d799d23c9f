/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdint.h>

/* The heavy work: a picture of the Mandelbrot set, zooming in, cut into tiles. Every tile costs the same number of
 * iterations: where the set is easy they go into smoother edges. So tiles a second can be compared between runs.   */
#define TILE_COLUMNS 24
#define TILE_ROWS 16
#define PICTURE_COLUMNS 192
#define PICTURE_ROWS 128
#define PICTURE_TILES ((PICTURE_COLUMNS / TILE_COLUMNS) * (PICTURE_ROWS / TILE_ROWS))
#define TILE_ITERATIONS 4000000 /* 10 to 15 ms of a CPU of today: too long for a loop that also draws and answers */

struct tile {
	int64_t number; /* picture and place within it */
	uint8_t shades[TILE_ROWS][TILE_COLUMNS];
};

struct picture {
	int64_t next, done;
	uint8_t shades[PICTURE_ROWS][PICTURE_COLUMNS]; /* 0: inside the set */
};

/* Says which part the tile is to be; any number may be under way at once. */
void picture_hand_out(struct picture *picture, struct tile *tile);
/* Needs nothing but the tile: any thread. */
void tile_compute(struct tile *tile);
void picture_take_in(struct picture *picture, const struct tile *tile);
