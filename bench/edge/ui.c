/* SPDX-License-Identifier: MIT */
/* Frames on time, here and on plain GLib: the same program twice, 60 frames a second with a picture to be moved in each, under the same loads.
 * Ours is a worker whose core is the GMainContext, with frames of hive_frames; GLib's is a GMainLoop with a source that says when it is ready, as
 * exact as GLib can, a GThreadPool, and g_idle_add() for what other threads have for it. A fresh process for each turn. Prints a line
 * of JSON each. hive-bench-ui moves memory about, and has no window; hive-bench-gtk has one of GTK 4, and its compute tasks are the tiles that are
 * to be seen there (`shown`: how long after the time of a frame GTK had painted it):
 *
 *     hive-bench-ui [SECONDS a turn, 5] [ROUNDS, 1] [LOADS, "-pabcsdu"]
 *     tests/gtk/display hive-bench-gtk [SECONDS] [ROUNDS] [LOADS, "-,p,a,pb,pc,pd"]
 *
 *     -  none         p  compute tasks of some 5 ms, as many threads as processors, four times as many tasks
 *     a  the same with four threads for each processor       b  1,000 timers of 100 ms each
 *     c  100,000 posts a second, from two threads, to the thread with the frames       u  the same, but all of them say "update this once"
 *     s  the same to the shared pool, which is GLib's thread pool there
 *     d  another worker is blocked for five seconds
 * and with them
 *     r  GLib's thread with the frames has real-time priority by hand, as ours has by itself; both must be allowed to
 *     o  ours does not ask for it, as if it were not allowed
 *     n  the threads of GLib's pool are made as nice by hand as compute workers beside a window are by themselves
 * Each letter is a turn; with a comma among them each word is one, with all its letters together ("p,pb,ar,ao"). Who goes first changes with each
 * round. A load that does not come is an error, as are fewer posts than nine tenths in a turn of two seconds or more.            */
#include <errno.h>
#include <glib.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "halts.h"
#include "ui.h"

enum { POSTERS = 2, NO_DISPLAY = 77 };
#define TOLERANCE HIVE_MS(2)
#define LONG_TURN_S 2.0
#define WARM_UP_S 0.5 /* until all threads and timers are there */
#define LETTERS "-parnobcsdu"

struct ui_counts counts;
atomic_bool ended;

static double seconds = 5;
static char load[sizeof LETTERS];

bool has(const char *letters)
{
	return strpbrk(load, letters) != NULL;
}

void check(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s: %s\n", picture_program, what, hive_error_text(r));
	exit(1);
}

/* ---- frames ---- */

static int64_t lates[FRAMES_MOST];
static bool realtime; /* so the thread with the frames was scheduled */
static struct {
	int64_t due_ns, came_ns;
	uint64_t count;
} too_late[FRAMES_MOST]; /* each with those whose places it took */
static int frames, too_late_count;
static uint64_t missed;
static struct halts halts;
static bool sees_halts;

static void end_posters(void);

static double past_s(void)
{
	return ((double)frames + (double)missed) / 60;
}

/* Nine tenths of the posts that there should be; in a turn too short to say so, any at all. */
static bool posts_came(void)
{
	double due = seconds < LONG_TURN_S ? 1 : 0.9 * POSTS_EACH_MS * 1000 * (past_s() - WARM_UP_S);

	return (double)counts.posted >= due && counts.handled > 0;
}

/* A figure of a load that was not there would be worth nothing. How much of it was served is the side's own figure. Compute threads are so nice that
 * on a full machine a short turn may end before they are let in.                                                            */
static bool load_came(void)
{
	return (counts.fired > 0 || !has("b")) && (posts_came() || !has("csu")) && (counts.blocked > 0 || !has("d")) &&
	       (counts.worked > 0 || seconds < LONG_TURN_S || !has("pa"));
}

/* A short turn on a full machine goes on until something was to be seen and the load has come, within reason. */
static bool is_over(void)
{
	return frames == FRAMES_MOST ||
	       (past_s() >= seconds && ((picture_seen() && load_came()) || past_s() >= seconds + 10));
}

bool frame(int64_t due_ns, int64_t now_ns, uint64_t left_out)
{
	int64_t late_ns = now_ns - due_ns;

	if (late_ns > TOLERANCE || left_out > 0) {
		too_late[too_late_count].came_ns = now_ns;
		too_late[too_late_count].due_ns = due_ns - (int64_t)left_out * PERIOD;
		too_late[too_late_count++].count = left_out + (late_ns > TOLERANCE);
	}
	missed += left_out;
	if (frames == 0)
		realtime = (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_FIFO;
	lates[frames] = late_ns;
	picture_frame(frames++, due_ns);
	if (!is_over())
		return false;
	end_posters();
	return true;
}

/* ---- loads ---- */

int compute_threads(void)
{
	return (has("a") ? 4 : 1) * (int)hive_cpus();
}

int compute_tasks(void)
{
	return (has("a") ? 8 : has("p") ? 4 : 0) * (int)hive_cpus();
}

void compute(void)
{
	picture_compute();
	atomic_fetch_add(&counts.worked, 1);
}

void block(void)
{
	atomic_fetch_add(&counts.blocked, 1);
	for (int i = 0; i < 5000 && !atomic_load(&ended); i++)
		g_usleep(1000);
}

void count_fired(void)
{
	atomic_fetch_add(&counts.fired, 1);
}

void count_handled(void)
{
	atomic_fetch_add(&counts.handled, 1);
}

/* Posters keep to a grid of milliseconds: 50 posts each in every one. */
static void (*post_one)(void);

static gpointer post_often(gpointer data)
{
	int64_t next_ns = hive_now(NULL);

	(void)data;
	while (!atomic_load(&ended)) {
		int64_t left_ns;

		for (int i = 0; i < POSTS_EACH_MS / POSTERS; i++)
			post_one();
		atomic_fetch_add(&counts.posted, POSTS_EACH_MS / POSTERS);
		next_ns += HIVE_MS(1);
		left_ns = next_ns - hive_now(NULL);
		if (left_ns > 0)
			g_usleep((gulong)(left_ns / 1000));
	}
	return NULL;
}

static GThread *posters[POSTERS];

void start_posters(void (*post)(void))
{
	post_one = post;
	for (int i = 0; i < POSTERS; i++)
		posters[i] = g_thread_new("poster", post_often, NULL);
}

static void end_posters(void)
{
	atomic_store(&ended, true);
	for (int i = 0; i < POSTERS; i++)
		if (posters[i])
			g_thread_join(posters[i]);
}

/* ---- figures ---- */

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

void sort_times(int64_t *times, int count)
{
	qsort(times, (size_t)count, sizeof *times, by_value);
}

double time_at_us(const int64_t *times, int count, double part)
{
	int at = (int)(count * part);

	return count == 0 ? 0 : (double)times[at < count ? at : count - 1] / 1e3;
}

/* Those that were late while the machine stood still: halts.h. */
static double halted_frames(void)
{
	double count = 0;

	for (int i = 0; sees_halts && i < too_late_count; i++)
		if (halts_between(&halts, too_late[i].due_ns, too_late[i].came_ns))
			count += (double)too_late[i].count;
	return count;
}

static void report(const char *side)
{
	double all = (double)frames + (double)missed, halted = halted_frames();
	struct rusage used;
	int on_time = 0;

	sort_times(lates, frames);
	while (on_time < frames && lates[on_time] <= TOLERANCE)
		on_time++;
	getrusage(RUSAGE_SELF, &used);
	printf("{\"bench\": \"%s\", \"side\": \"%s\", \"load\": \"%s\", \"realtime\": %d, \"frames\": %d, \"missed\": %llu, \"on_time\": %.5f, "
	       "\"halted\": %.0f, \"on_time_running\": %.5f, \"late_p50_us\": %.0f, \"late_p99_us\": %.0f, \"late_max_us\": %.0f, \"computed\": %llu, \"fired\": %llu, "
	       "\"posted\": %llu, \"handled\": %llu, \"cpu_s\": %.2f",
	       picture_bench, side, load, realtime, frames, (unsigned long long)missed, (double)on_time / all, halted,
	       (double)on_time / (all - halted), time_at_us(lates, frames, 0.5), time_at_us(lates, frames, 0.99),
	       time_at_us(lates, frames, 1), (unsigned long long)counts.worked, (unsigned long long)counts.fired,
	       (unsigned long long)counts.posted, (unsigned long long)counts.handled,
	       (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	               (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
	picture_report();
	puts("}");
}

/* ---- turns ---- */

static int be_the_program(bool ours)
{
	bool seen;

	if (!picture_open()) {
		fprintf(stderr, "%s: there is no display\n", picture_program);
		return NO_DISPLAY;
	}
	sees_halts = halts_begin(&halts, false) == 0;
	if (ours)
		run_hive();
	else
		run_glib();
	if (sees_halts)
		halts_end(&halts);
	report(ours ? "hive" : "glib");
	fflush(NULL);
	seen = frames > 0 && picture_seen();
	if (!seen)
		fprintf(stderr, "%s: there was nothing to be seen\n", picture_program);
	if (!load_came())
		fprintf(stderr, "%s: load %s has not come\n", picture_program, load);
	return !seen || !load_came();
}

/* Exits if there is no display, which is no fault. */
static int take_turn(bool ours)
{
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child < 0)
		return 1;
	if (child == 0)
		_exit(be_the_program(ours));
	if (waitpid(child, &status, 0) < 0)
		return 1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_DISPLAY)
		exit(NO_DISPLAY);
	return status != 0;
}

/* One of each side. */
static int take_turns(const char *word, size_t length, bool ours_first)
{
	int bad;

	memcpy(load, word, length);
	load[length] = '\0';
	bad = take_turn(ours_first);
	return take_turn(!ours_first) | bad;
}

static int take_round(const char *loads, bool ours_first)
{
	bool words = strchr(loads, ',') != NULL;
	int bad = 0;

	while (*loads) {
		size_t length = words ? strcspn(loads, ",") : 1;

		bad |= length > 0 && take_turns(loads, length, ours_first);
		loads += length;
		loads += *loads == ',';
	}
	return bad;
}

/* There is one; and words are no longer than there are letters, and have one kind of posts. */
static bool are_loads(const char *loads)
{
	bool words = strchr(loads, ',') != NULL;
	size_t length = 0, posts = 0;

	if (!strpbrk(loads, LETTERS))
		return false;
	for (; *loads; loads++) {
		if (!strchr(LETTERS ",", *loads))
			return false;
		length = *loads == ',' ? 0 : length + 1;
		posts = *loads == ',' ? 0 : posts + (strchr("csu", *loads) != NULL);
		if (words && (length >= sizeof load || posts > 1))
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 1, bad = 0;
	const char *loads = argc > 3 ? argv[3] : picture_loads;

	seconds = argc > 1 ? atof(argv[1]) : seconds;
	if (seconds < 0.1 || rounds < 1 || !are_loads(loads)) {
		fprintf(stderr, "usage: %s [SECONDS a turn, 5] [ROUNDS, 1] [LOADS, \"%s\"; or also r, n, o]\n",
		        picture_program, picture_loads);
		return 2;
	}
	for (int round = 0; round < rounds; round++)
		bad |= take_round(loads, round % 2 == 0);
	return bad;
}
