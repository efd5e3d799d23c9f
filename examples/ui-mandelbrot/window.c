/* SPDX-License-Identifier: MIT */
/* GTK: all of this is on the UI worker, whose core is GTK's main loop. */
#include <math.h>

#include "window.h"

static const struct view whole = { -0.65, 0, 1.0 / 270 };

static void redraw(void *arg)
{
	gtk_widget_queue_draw(((struct window *)arg)->area);
}

static void draw(GtkDrawingArea *area, cairo_t *cairo, int width, int height, gpointer data)
{
	struct window *w = data;

	(void)area;
	if (width != w->picture.width || height != w->picture.height)
		picture_look(&w->picture, w->view, width, height);
	picture_draw(&w->picture, cairo);
	w->paints++;
}

static void move_to(struct window *w, struct view view)
{
	if (view.scale > 1e-15 && view.scale < 0.05) {
		w->view = view;
		w->moved = true;
	}
}

/* The point below the pointer stays where it is. */
static void zoom(struct window *w, double factor, double x, double y)
{
	double dx = x - w->picture.width / 2.0, dy = y - w->picture.height / 2.0;
	struct view view = w->view;

	view.x += dx * view.scale * (1 - factor);
	view.y += dy * view.scale * (1 - factor);
	view.scale *= factor;
	move_to(w, view);
}

/* ---- input: it only notes what is wished; the next frame shows it ---- */

static void on_drag_begin(GtkGestureDrag *drag, double x, double y, gpointer data)
{
	struct window *w = data;

	(void)drag, (void)x, (void)y;
	w->drag_from = w->view;
}

static void on_drag(GtkGestureDrag *drag, double dx, double dy, gpointer data)
{
	struct window *w = data;
	struct view view = w->view;

	(void)drag;
	view.x = w->drag_from.x - dx * view.scale;
	view.y = w->drag_from.y - dy * view.scale;
	move_to(w, view);
}

static void on_motion(GtkEventControllerMotion *motion, double x, double y, gpointer data)
{
	struct window *w = data;

	(void)motion;
	w->pointer_x = x;
	w->pointer_y = y;
}

static gboolean on_scroll(GtkEventControllerScroll *scroll, double dx, double dy, gpointer data)
{
	struct window *w = data;

	(void)scroll, (void)dx;
	zoom(w, pow(1.25, dy), w->pointer_x, w->pointer_y);
	return TRUE;
}

static gboolean on_key(GtkEventControllerKey *key, guint symbol, guint code, GdkModifierType state, gpointer data)
{
	struct window *w = data;
	struct view view = w->view;

	(void)key, (void)code, (void)state;
	switch (symbol) {
	case GDK_KEY_plus:
		zoom(w, 0.8, w->picture.width / 2.0, w->picture.height / 2.0);
		return TRUE;
	case GDK_KEY_minus:
		zoom(w, 1.25, w->picture.width / 2.0, w->picture.height / 2.0);
		return TRUE;
	case GDK_KEY_Left:
		view.x -= 32 * view.scale;
		break;
	case GDK_KEY_Right:
		view.x += 32 * view.scale;
		break;
	case GDK_KEY_Up:
		view.y -= 32 * view.scale;
		break;
	case GDK_KEY_Down:
		view.y += 32 * view.scale;
		break;
	case GDK_KEY_Home:
		view = whole;
		break;
	case GDK_KEY_q:
		hive_stop(w->hive, HIVE_NOW, HIVE_FOREVER);
		return TRUE;
	default:
		return FALSE;
	}
	move_to(w, view);
	return TRUE;
}

static gboolean on_close(GtkWindow *window, gpointer data)
{
	(void)window;
	hive_stop(((struct window *)data)->hive, HIVE_NOW, HIVE_FOREVER);
	return TRUE; /* window_close() does it */
}

/* ---- frames ---- */

static void tell(struct window *w)
{
	struct hive_frame_stats s;
	char text[200];

	hive_frames_read(&w->frames, &s);
	g_snprintf(text, sizeof text,
	           "magnified %.3g times   ·   %d tiles to come, %llu painted, %llu given up   ·   "
	           "frames on time %.2f %%, 99 of 100 within %.2f ms, worst %.2f ms",
	           whole.scale / w->view.scale, w->picture.pending, (unsigned long long)w->picture.painted,
	           (unsigned long long)w->picture.cancelled,
	           s.frames ? 100.0 * (double)s.on_time / (double)(s.frames + s.missed) : 100.0,
	           (double)s.late_p99_ns / 1e6, (double)s.late_max_ns / 1e6);
	gtk_label_set_text(GTK_LABEL(w->status), text);
}

/* Somebody who drags in circles, and turns the wheel now and then. */
static void play(struct window *w, uint64_t number)
{
	double angle = (double)number * 0.05;
	struct view view = w->view;

	view.x += 6 * cos(angle) * view.scale;
	view.y += 6 * sin(angle) * view.scale;
	move_to(w, view);
	if (number % 40 == 0)
		zoom(w, 0.8, w->picture.width * 0.45, w->picture.height * 0.45);
}

/* After the paint: before it, GTK has nothing to show of a widget that is to be drawn again. */
static void on_painted(GdkFrameClock *clock, gpointer data)
{
	struct window *w = data;

	(void)clock;
	if (w->finished)
		return;
	w->blank = window_is_blank(w, w->screenshot);
	w->finished = true;
	hive_stop(w->hive, HIVE_NOW, HIVE_FOREVER);
}

static void finish(struct window *w)
{
	if (w->picture.pending > 0)
		return;
	hive_frames_stop(&w->frames);
	tell(w);
	g_signal_connect(gtk_widget_get_frame_clock(w->area), "after-paint", G_CALLBACK(on_painted), w);
	redraw(w);
}

static void on_frame(struct hive_frames *frames, const struct hive_frame *frame)
{
	struct window *w = frames->arg;

	if (w->frames_wanted && frame->number < w->frames_wanted)
		play(w, frame->number);
	if (frame->number % 30 == 0)
		tell(w);
	picture_sweep(&w->picture);
	if (w->moved && w->picture.width > 0) {
		picture_look(&w->picture, w->view, w->picture.width, w->picture.height);
		w->moved = false;
		redraw(w);
	}
	if (w->frames_wanted && frame->number >= w->frames_wanted)
		finish(w);
}

/* ---- the window ---- */

static void listen(struct window *w, GtkEventController *controller, const char *signal, GCallback callback)
{
	g_signal_connect(controller, signal, callback, w);
}

static void add_input(struct window *w)
{
	GtkGesture *drag = gtk_gesture_drag_new();
	GtkEventController *motion = gtk_event_controller_motion_new();
	GtkEventController *scroll = gtk_event_controller_scroll_new(GTK_EVENT_CONTROLLER_SCROLL_VERTICAL);
	GtkEventController *key = gtk_event_controller_key_new();

	listen(w, GTK_EVENT_CONTROLLER(drag), "drag-begin", G_CALLBACK(on_drag_begin));
	listen(w, GTK_EVENT_CONTROLLER(drag), "drag-update", G_CALLBACK(on_drag));
	listen(w, motion, "motion", G_CALLBACK(on_motion));
	listen(w, scroll, "scroll", G_CALLBACK(on_scroll));
	listen(w, key, "key-pressed", G_CALLBACK(on_key));
	gtk_widget_add_controller(w->area, GTK_EVENT_CONTROLLER(drag));
	gtk_widget_add_controller(w->area, motion);
	gtk_widget_add_controller(w->area, scroll);
	gtk_widget_add_controller(w->window, key);
}

static void add_style(void)
{
	GtkCssProvider *css = gtk_css_provider_new();

	gtk_css_provider_load_from_data(
		css, "label.status { background: #14161f; color: #d8dce6; padding: 6px 12px; font-size: 10pt; }", -1);
	gtk_style_context_add_provider_for_display(gdk_display_get_default(), GTK_STYLE_PROVIDER(css),
	                                           GTK_STYLE_PROVIDER_PRIORITY_APPLICATION);
	g_object_unref(css);
}

int window_open(struct window *w)
{
	GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0);

	w->view = whole;
	picture_init(&w->picture, w->hive, redraw, w);
	add_style();
	w->window = gtk_window_new();
	w->area = gtk_drawing_area_new();
	w->status = gtk_label_new("drag: move   ·   wheel, + -: zoom   ·   Home: all of it   ·   q: quit");
	gtk_widget_add_css_class(w->status, "status");
	gtk_label_set_xalign(GTK_LABEL(w->status), 0);
	gtk_label_set_ellipsize(GTK_LABEL(w->status), PANGO_ELLIPSIZE_END);
	gtk_widget_set_vexpand(w->area, TRUE);
	gtk_drawing_area_set_draw_func(GTK_DRAWING_AREA(w->area), draw, w, NULL);
	gtk_box_append(GTK_BOX(box), w->area);
	gtk_box_append(GTK_BOX(box), w->status);
	gtk_window_set_title(GTK_WINDOW(w->window), "rophive: all workers on one picture");
	gtk_window_set_default_size(GTK_WINDOW(w->window), 960, 640);
	gtk_window_set_child(GTK_WINDOW(w->window), box);
	g_signal_connect(w->window, "close-request", G_CALLBACK(on_close), w);
	add_input(w);
	gtk_window_present(GTK_WINDOW(w->window));
	hive_frames_init(&w->frames, on_frame, w);
	return hive_frames_start(&w->frames, HIVE_S(1) / 60);
}

void window_close(struct window *w)
{
	hive_frames_stop(&w->frames);
	hive_frames_read(&w->frames, &w->stats);
	gtk_window_destroy(GTK_WINDOW(w->window));
}
