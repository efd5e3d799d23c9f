/* SPDX-License-Identifier: MIT */
/* A window in which nothing happens, as users have it: nobody has put a poll function of his own into the context, so the core waits by itself, and for
 * longer than fits into the milliseconds of poll(). It sleeps, costs nothing, and is woken all the same.                       */
#include <limits.h>
#include <sys/resource.h>
#include <time.h>

#include <rophive/glib.h>

#include "gtk/toolkit.h"
#include "support/real.h"
#include "test.h"

enum { LOOK_MS = 500, QUIET = 2, LOOKS = 30 };
#define MOST_CPU_NS (HIVE_MS(LOOK_MS) / 200) /* 0.5 % */

static struct hive *hive;
static uint32_t other;
static GtkWidget *window;
static struct hive_timer far_off;
static int looks, quiet, far_off_fired;
static long switches_before, switches;
static uint64_t beats_before, beats;
static int64_t cpu_before_ns, cpu_ns;

/* Since the last call. */
static void measure(void)
{
	struct hive_worker_stats stats;
	struct rusage usage;
	struct timespec cpu;
	int64_t now_ns;

	CHECK_OK(hive_worker_stats_read(hive, hive_worker_current(), &stats));
	CHECK_OK(getrusage(RUSAGE_THREAD, &usage));
	CHECK_OK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu)); /* all threads */
	now_ns = HIVE_S(cpu.tv_sec) + cpu.tv_nsec;
	beats = stats.beats - beats_before;
	switches = usage.ru_nvcsw - switches_before;
	cpu_ns = now_ns - cpu_before_ns;
	beats_before = stats.beats;
	switches_before = usage.ru_nvcsw;
	cpu_before_ns = now_ns;
}

static void look(void *arg);

/* The time to look comes from somebody else: this worker has nothing to wait for but what is far off. */
static void call_for_a_look(void *arg)
{
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, look, arg));
}

static void wait_elsewhere(void *arg)
{
	CHECK_OK(hive_post_self_after(HIVE_MS(LOOK_MS), call_for_a_look, arg, NULL));
}

/* A window that was just made has something to do; one that is idle has a single long sleep, and whoever spins never has. */
static void look(void *arg)
{
	bool first = looks == 0;

	measure();
	quiet = !first && switches <= 5 && beats <= 10 && cpu_ns < MOST_CPU_NS ? quiet + 1 : 0;
	if (quiet == QUIET || ++looks == LOOKS)
		CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
	else
		CHECK_OK(hive_post_to(hive, other, wait_elsewhere, arg));
}

static void fire(struct hive_timer *timer)
{
	(void)timer;
	far_off_fired++;
}

static void start_timer(void *arg)
{
	int64_t *after_ns = arg;

	hive_timer_init(&far_off, fire, NULL);
	if (*after_ns != HIVE_FOREVER)
		CHECK_OK(hive_timer_start(&far_off, *after_ns, 0));
}

static gboolean never(gpointer data)
{
	(void)data;
	far_off_fired++;
	return G_SOURCE_REMOVE;
}

static void sleep_in_a_window(int64_t after_ns, guint glib_seconds)
{
	struct hive_worker_options ui = { .name = "ui", .core = hive_core_glib(), .ui = true };
	guint source = glib_seconds ? g_timeout_add_seconds(glib_seconds, never, NULL) : 0;

	CHECK(g_main_context_get_poll_func(NULL) == g_poll); /* GTK has not put one there either */
	hive = real_create((struct hive_options){ .io_workers = 1, .io = &ui });
	CHECK_OK(hive_attach(hive, &(struct hive_worker_options){ .name = "other" }, &other));
	looks = quiet = far_off_fired = 0;
	beats_before = 0;
	window = gtk_window_new();
	gtk_window_set_child(GTK_WINDOW(window), gtk_label_new("nothing happens"));
	gtk_window_present(GTK_WINDOW(window));
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, start_timer, &after_ns));
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, look, NULL));
	CHECK_OK(hive_run(hive));
	real_join(hive);
	if (source)
		g_source_remove(source);
	close_window(window);
	if (quiet < QUIET)
		test_fail(__FILE__, __LINE__, "never quiet: in the last half second %ld switches, %d beats, %d us",
		          switches, (int)beats, (int)(cpu_ns / 1000));
	CHECK_EQ(far_off_fired, 0);
}

TEST(an_idle_window_sleeps_and_costs_nothing)
{
	sleep_in_a_window(HIVE_FOREVER, 0);
}

TEST(a_window_sleeps_for_longer_than_poll_could)
{
	sleep_in_a_window(HIVE_MS((int64_t)INT_MAX) + HIVE_S(1000), 0);
	sleep_in_a_window(HIVE_S(4000000000), 0);
}

TEST(a_window_sleeps_while_a_time_out_of_glib_is_further_off_than_poll_could_wait)
{
	sleep_in_a_window(HIVE_S(40000000), 4000000);
}
