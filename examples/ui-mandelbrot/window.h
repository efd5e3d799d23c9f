/* SPDX-License-Identifier: MIT */
#pragma once
/* The window, and the frame clock that keeps an eye on it. */
#include <gtk/gtk.h>
#include <rophive/glib.h>

#include "mandelbrot.h"

struct window {
	struct hive *hive;
	struct picture picture;
	struct view view, drag_from;
	double pointer_x, pointer_y;
	GtkWidget *window, *area, *status;
	struct hive_frames frames;
	struct hive_frame_stats stats; /* at the end */
	uint64_t paints;
	/* Without a user: so many frames, with somebody who drags and zooms. */
	uint64_t frames_wanted;
	const char *screenshot;
	bool moved, finished, blank;
};

/* On the UI worker. 0 or -errno. */
int window_open(struct window *w);
void window_close(struct window *w);
/* What is to be seen in it: whether it is more than a few colours, and to a file if there is a name. */
bool window_is_blank(struct window *w, const char *file);
