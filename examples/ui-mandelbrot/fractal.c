/* SPDX-License-Identifier: MIT */
/* The Mandelbrot set, with colours that have no steps. Nothing here knows of workers or windows. */
#include <math.h>

#include "mandelbrot.h"

/* Dark blue, white, amber, black, and round again. */
static double channel(double at, double a, double b, double c, double d)
{
	const double stops[] = { a, b, c, d, a };
	double place = (at - floor(at)) * 4, part = place - floor(place);
	int i = (int)place;

	part = part * part * (3 - 2 * part);
	return stops[i] + (stops[i + 1] - stops[i]) * part;
}

static uint32_t colour(double steps)
{
	double at = 0.14 * sqrt(steps) + 0.02;
	uint32_t red = (uint32_t)(255 * channel(at, 0.02, 0.95, 0.98, 0.12));
	uint32_t green = (uint32_t)(255 * channel(at, 0.07, 0.97, 0.62, 0.03));
	uint32_t blue = (uint32_t)(255 * channel(at, 0.36, 0.99, 0.10, 0.10));

	return 0xff000000u | red << 16 | green << 8 | blue;
}

static uint32_t point(double cx, double cy)
{
	double x = 0, y = 0, xx = 0, yy = 0;
	int i = 0;

	while (xx + yy < 256 && i < ITERATIONS) {
		y = 2 * x * y + cy;
		x = xx - yy + cx;
		xx = x * x;
		yy = y * y;
		i++;
	}
	return i == ITERATIONS ? 0xff000000u : colour(fmax(0, i + 1 - log2(log2(xx + yy) / 2)));
}

void fractal_row(double x, double y, double step, int count, uint32_t *ret_pixels)
{
	for (int i = 0; i < count; i++)
		ret_pixels[i] = point(x + i * step, y);
}
