/* SPDX-License-Identifier: MIT */
/* The promise, from end to end: keys and buttons, sent through the X server, are answered by a compute worker and the answers are painted, while the
 * worker of the window is flooded and never has nothing to do. What is counted are beats, tasks and frames; time is limited only where the X server and
 * the kernel have a say.                                                                                                     */
#include <pthread.h>
#include <stdatomic.h>

#include <rophive/glib.h>

#include "gtk/toolkit.h"
#include "gtk/x_user.h"
#include "support/real.h"
#include "test.h"

enum {
	ANSWERS = 20,
	FLOOD = 1000, /* posts of the other thread that wait at most */
	SELVES = 20,  /* tasks of each kind that post themselves again */
};

/* An answer waits for what was there before it, some 16 beats or 2000 tasks; a beat is shorter where the kernel takes the processor away in it. */
enum { BEATS_TO_HEAR = 200, BEATS_TO_ANSWER = 200, TASKS_TO_ANSWER = 10 * FLOOD, FRAMES_TO_PAINT = 2 };

/* Its way, in beats, tasks and frames of the window's worker. */
struct answer {
	uint32_t colour;
	uint64_t sent_beat;  /* the input was at the window's socket before the end of this one */
	uint64_t heard_beat; /* in which GTK called back */
	uint64_t given_beat; /* the answer was with the worker before the end of this one, and of so many tasks */
	uint64_t given_ran;
	uint64_t shown_beat, shown_ran;
	int64_t shown_frame, painted_frame;
};

static struct hive *hive;
static uint32_t ui_worker;
static GtkWidget *window, *area;
static struct answer answers[ANSWERS];
static _Atomic(int) painted; /* how many answers */
static int heard, shown;     /* the same on the way there, on the thread of the window */
static _Atomic(bool) flooding;
static _Atomic(uint64_t) flood_ran;
static uint64_t selves_ran[2];
static struct user user;
static const uint32_t keys[2] = { GDK_KEY_a, GDK_KEY_b };

/* ---- the flood ---- */

static void flood_task(void *arg)
{
	(void)arg;
	atomic_fetch_add(&flood_ran, 1);
}

/* As fast as it can, but not until there is no memory. */
static void *flood(void *arg)
{
	uint64_t posted = 0;

	(void)arg;
	while (atomic_load(&flooding))
		if (posted - atomic_load(&flood_ran) < FLOOD) {
			CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, flood_task, NULL));
			posted++;
		} else {
			sched_yield();
		}
	return NULL;
}

static void again_private(void *arg)
{
	selves_ran[0]++;
	if (atomic_load(&flooding))
		CHECK_OK(hive_post_self(again_private, arg));
}

static void again_local(void *arg)
{
	selves_ran[1]++;
	if (atomic_load(&flooding))
		CHECK_OK(hive_post_local(again_local, arg));
}

/* ---- the window ---- */

static struct hive_worker_stats ui_stats(void)
{
	struct hive_worker_stats stats;

	CHECK_OK(hive_worker_stats_read(hive, ui_worker, &stats));
	return stats;
}

static void show(void *arg)
{
	struct answer *a = arg;
	struct hive_worker_stats stats = ui_stats();

	CHECK_EQ(a - answers, shown);
	shown++;
	a->shown_beat = stats.beats;
	a->shown_ran = stats.ran;
	a->shown_frame = gdk_frame_clock_get_frame_counter(gtk_widget_get_frame_clock(area));
	gtk_widget_queue_draw(area);
}

static void compute(void *arg)
{
	struct answer *a = arg;

	a->colour = 0x345678; /* nothing that a window has by itself */
	for (int64_t i = 0; i <= a - answers; i++)
		a->colour = (a->colour * 0x5bd1e5 + 0x135791) & 0xffffff;
}

static void compute_and_post(void *arg)
{
	compute(arg);
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, show, arg));
}

/* The next task of the only compute worker: the answer is on its way by now, however long this one was kept waiting. */
static void note(void *arg)
{
	struct answer *a = arg;
	struct hive_worker_stats stats = ui_stats();

	a->given_beat = stats.beats;
	a->given_ran = stats.ran;
}

/* Both ways to have an answer. */
static void hear(void)
{
	struct answer *a = &answers[heard++];

	a->heard_beat = ui_stats().beats;
	if (heard % 3 == 0)
		CHECK_OK(hive_post_compute(hive, compute_and_post, a));
	else
		CHECK_OK(hive_post_compute_then(hive, compute, HIVE_WORKER_MAIN, show, a));
	CHECK_OK(hive_post_compute(hive, note, a));
}

static bool is_key(int number)
{
	return number % 4 < 2;
}

/* A key that the server repeats, because its user has no processor, is not the one that comes next. */
static gboolean on_key(GtkEventControllerKey *controller, guint value, guint code, GdkModifierType state, gpointer data)
{
	(void)controller, (void)code, (void)state, (void)data;
	if (heard < ANSWERS && is_key(heard) && value == keys[heard % 2])
		hear();
	return TRUE;
}

static void on_button(GtkGestureClick *gesture, int presses, double x, double y, gpointer data)
{
	(void)gesture, (void)presses, (void)x, (void)y, (void)data;
	CHECK(heard < ANSWERS && !is_key(heard));
	hear();
}

static void draw(GtkDrawingArea *self, cairo_t *cairo, int width, int height, gpointer data)
{
	uint32_t colour = shown > 0 ? answers[shown - 1].colour : 0;

	(void)width, (void)height, (void)data;
	cairo_set_source_rgb(cairo, (colour >> 16) / 255.0, (colour >> 8 & 0xff) / 255.0, (colour & 0xff) / 255.0);
	cairo_paint(cairo);
	if (shown > 0 && !answers[shown - 1].painted_frame)
		answers[shown - 1].painted_frame = gdk_frame_clock_get_frame_counter(
			gtk_widget_get_frame_clock(GTK_WIDGET(self)));
	atomic_store(&painted, shown);
}

static void open_window(void)
{
	GtkEventController *key = gtk_event_controller_key_new();
	GtkGesture *click = gtk_gesture_click_new();

	window = gtk_window_new();
	area = gtk_drawing_area_new();
	gtk_drawing_area_set_draw_func(GTK_DRAWING_AREA(area), draw, NULL, NULL);
	g_signal_connect(key, "key-pressed", G_CALLBACK(on_key), NULL);
	g_signal_connect(click, "pressed", G_CALLBACK(on_button), NULL);
	gtk_widget_add_controller(window, key);
	gtk_widget_add_controller(window,
	                          GTK_EVENT_CONTROLLER(click)); /* GTK may not know yet what is below the pointer */
	gtk_window_set_default_size(GTK_WINDOW(window), 300, 300);
	gtk_window_set_child(GTK_WINDOW(window), area);
	gtk_window_present(GTK_WINDOW(window));
}

/* ---- somebody who uses it ---- */

static void ask(int number)
{
	if (is_key(number))
		user_press(&user, keys[number % 2]);
	else
		user_click(&user, LEFT);
	user_sync(&user);
}

static pthread_t flooder, somebody;

static void stop(void *arg)
{
	(void)arg;
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
}

/* The flood has ended before the hive stops: nobody posts in vain. */
static void *use(void *arg)
{
	(void)arg;
	USER_WAITS_UNTIL(user_sees_window(&user));
	for (int i = 0; i < ANSWERS; i++) {
		ask(i);
		answers[i].sent_beat = ui_stats().beats;
		USER_WAITS_UNTIL(atomic_load(&painted) > i && user_sees(&user, 0, 0) == answers[i].colour);
	}
	atomic_store(&flooding, false);
	CHECK_EQ(pthread_join(flooder, NULL), 0);
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, stop, NULL));
	return NULL;
}

static void check_answer(const struct answer *a)
{
	CHECK(a->heard_beat <= a->sent_beat + BEATS_TO_HEAR);
	CHECK(a->shown_beat <= a->given_beat + BEATS_TO_ANSWER);
	CHECK(a->shown_ran <= a->given_ran + TASKS_TO_ANSWER);
	CHECK(a->painted_frame <= a->shown_frame + FRAMES_TO_PAINT);
}

static void begin(void *arg)
{
	ui_worker = hive_worker_current();
	for (int i = 0; i < SELVES; i++) {
		again_private(arg);
		again_local(arg);
	}
	CHECK_EQ(pthread_create(&flooder, NULL, flood, NULL), 0);
	CHECK_EQ(pthread_create(&somebody, NULL, use, NULL), 0);
}

TEST(input_is_answered_by_a_compute_worker_while_the_window_is_flooded)
{
	struct hive_worker_options ui = { .name = "ui", .core = hive_core_glib(), .ui = true };

	user_come(&user);
	hive = real_create((struct hive_options){ .io_workers = 1, .compute_workers = 1, .io = &ui });
	open_window();
	atomic_store(&flooding, true);
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, begin, NULL));
	CHECK_OK(hive_run(hive));
	CHECK_EQ(pthread_join(somebody, NULL), 0);
	real_join(hive);
	close_window(window);
	user_go(&user);
	CHECK_EQ(shown, ANSWERS);
	for (int i = 0; i < ANSWERS; i++)
		check_answer(&answers[i]);
	CHECK(atomic_load(&flood_ran) > FLOOD);
	CHECK(selves_ran[0] > FLOOD && selves_ran[1] > FLOOD);
}
