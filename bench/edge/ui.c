/* SPDX-License-Identifier: MIT */
/* Frames on time, here and on plain GLib: the same program twice, 60 frames a second with a picture to be moved in each, under the same loads.
 * Ours is a worker whose core is the GMainContext, with frames of hive_frames; GLib's is a GMainLoop with a source that says when it is ready, as
 * exact as GLib can, a GThreadPool, and g_idle_add() for what other threads have for it. A fresh process for each turn. Prints a line
 * of JSON each:
 *
 *     hive-bench-ui [SECONDS a turn, 5] [ROUNDS, 1] [LOADS, "-pabcsdu"]
 *
 *     -  none         p  compute tasks of 5 ms, as many threads as processors, four times as many tasks
 *     a  the same with four threads for each processor       b  1,000 timers of 100 ms each
 *     c  100,000 posts a second, from two threads, to the thread with the frames       u  the same, but all of them say "update this once"
 *     s  the same to the shared pool, which is GLib's thread pool there
 *     d  another worker is blocked for five seconds      r  as a, and the thread with the frames has real-time priority, for which one needs a
 *                                                            privilege                                                     */
#include <glib.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rophive/glib.h>
#include <rophive/hive.h>

#include "halts.h"

enum { WIDTH = 960, HEIGHT = 640, TIMERS = 1000, POSTERS = 2, FRAMES_MOST = 60 * 600 };
#define PERIOD (HIVE_S(1) / 60)
#define TOLERANCE HIVE_MS(2)
#define COMPUTE_NS HIVE_MS(5)

static double seconds = 5;
static char load;
static atomic_bool ended;
static _Atomic(uint64_t) worked, fired, posted, handled, blocked;

/* ---- the same for both ---- */

static int64_t lates[FRAMES_MOST];
static struct {
	int64_t due_ns, came_ns;
	uint64_t count;
} too_late[FRAMES_MOST]; /* each with those whose places it took */
static int frames, too_late_count;
static uint64_t missed;
static struct halts halts;
static bool sees_halts;

/* What a frame does: moves a picture by some pixels, as a drag does. */
static void paint(void)
{
	static uint32_t picture[HEIGHT][WIDTH];

	memmove(&picture[0][0], &picture[1][3], sizeof picture - sizeof picture[0] - 3 * sizeof picture[0][0]);
	picture[HEIGHT - 1][frames % WIDTH] = (uint32_t)frames;
}

/* True: that was the last. */
static bool frame(int64_t late_ns, uint64_t left_out)
{
	if (late_ns > TOLERANCE || left_out > 0) {
		too_late[too_late_count].came_ns = hive_now(NULL);
		too_late[too_late_count].due_ns = hive_now(NULL) - late_ns - (int64_t)left_out * PERIOD;
		too_late[too_late_count++].count = left_out + (late_ns > TOLERANCE);
	}
	missed += left_out;
	lates[frames++] = late_ns;
	paint();
	return (double)frames + (double)missed >= seconds * 60 || frames == FRAMES_MOST;
}

static void compute(void)
{
	static _Atomic(uint64_t) sink;
	int64_t end_ns = hive_now(NULL) + COMPUTE_NS;
	uint64_t x = 1;

	do
		for (int i = 0; i < 10000; i++)
			x = x * 6364136223846793005u + 1442695040888963407u;
	while (hive_now(NULL) < end_ns && !atomic_load(&ended));
	atomic_fetch_add(&sink, x);
	atomic_fetch_add(&worked, 1);
}

static void block(void)
{
	atomic_fetch_add(&blocked, 1);
	for (int i = 0; i < 5000 && !atomic_load(&ended); i++)
		g_usleep(1000);
}

static int processors(void)
{
	return (int)hive_cpus();
}

static int compute_threads(void)
{
	return load == 'a' || load == 'r' ? 4 * processors() : processors();
}

/* Compute tasks that are under way or wait. */
static int tasks(void)
{
	return load == 'p' ? 4 * processors() : load == 'a' || load == 'r' ? 8 * processors() : 0;
}

/* Posters keep to a grid of milliseconds: 50 posts each in every one. */
static void (*post_one)(void);

static gpointer post_often(gpointer data)
{
	int64_t next_ns = hive_now(NULL);

	(void)data;
	while (!atomic_load(&ended)) {
		int64_t left_ns;

		for (int i = 0; i < 100 / POSTERS; i++)
			post_one();
		atomic_fetch_add(&posted, 100 / POSTERS);
		next_ns += HIVE_MS(1);
		left_ns = next_ns - hive_now(NULL);
		if (left_ns > 0)
			g_usleep((gulong)(left_ns / 1000));
	}
	return NULL;
}

static GThread *posters[POSTERS];

static void start_posters(void (*post)(void))
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

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
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

/* A figure of a load that was not there would be worth nothing. Of compute tasks the figure itself tells: their threads are so nice that on a
 * full machine a short turn may end before they are let in.                                                                 */
static bool load_came(void)
{
	switch (load) {
	case 'b':
		return fired > 0;
	case 'c':
	case 's':
	case 'u':
		return posted > 0 && handled > 0;
	case 'd':
		return blocked > 0;
	default:
		return true;
	}
}

static void report(const char *side)
{
	double all = (double)frames + (double)missed, halted = halted_frames();
	struct rusage used;
	int on_time = 0;

	qsort(lates, (size_t)frames, sizeof *lates, by_value);
	while (on_time < frames && lates[on_time] <= TOLERANCE)
		on_time++;
	getrusage(RUSAGE_SELF, &used);
	printf("{\"bench\": \"ui\", \"side\": \"%s\", \"load\": \"%c\", \"frames\": %d, \"missed\": %llu, \"on_time\": %.5f, "
	       "\"halted\": %.0f, \"on_time_running\": %.5f, \"late_p50_us\": %.0f, \"late_p99_us\": %.0f, \"late_max_us\": %.0f, \"computed\": %llu, \"fired\": %llu, "
	       "\"posted\": %llu, \"handled\": %llu, \"cpu_s\": %.2f}\n",
	       side, load, frames, (unsigned long long)missed, (double)on_time / all, halted,
	       (double)on_time / (all - halted), (double)lates[frames / 2] / 1e3,
	       (double)lates[frames * 99 / 100] / 1e3, (double)lates[frames - 1] / 1e3, (unsigned long long)worked,
	       (unsigned long long)fired, (unsigned long long)posted, (unsigned long long)handled,
	       (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	               (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
}

/* ---- ours ---- */

static struct hive *hive;
static struct hive_frames clock_of_frames;
static struct hive_timer timers[TIMERS];
static struct hive_update update;

static void check(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "hive-bench-ui: %s: %s\n", what, hive_error_text(r));
	exit(1);
}

static void on_frame(struct hive_frames *clock, const struct hive_frame *now)
{
	if (!frame(now->late_ns, now->missed))
		return;
	hive_frames_stop(clock);
	end_posters();
	hive_stop(hive, HIVE_NOW, HIVE_FOREVER);
}

static void on_timer(struct hive_timer *timer)
{
	(void)timer;
	atomic_fetch_add(&fired, 1);
}

static void handle(void *arg)
{
	(void)arg;
	atomic_fetch_add(&handled, 1);
}

static void compute_and_again(void *arg)
{
	compute();
	if (!atomic_load(&ended) && hive_post_compute(hive, compute_and_again, arg) < 0)
		return; /* the end has come */
}

static void block_task(void *arg)
{
	(void)arg;
	block();
}

static void post_to_ui(void)
{
	if (hive_post_to(hive, HIVE_WORKER_MAIN, handle, NULL) < 0)
		atomic_store(&ended, true);
}

static void post_to_pool(void)
{
	if (hive_post(hive, handle, NULL) < 0)
		atomic_store(&ended, true);
}

static void post_update(void)
{
	hive_update_post(&update);
}

static void begin_hive(void *arg)
{
	uint32_t ids[2];

	(void)arg;
	hive_frames_init(&clock_of_frames, on_frame, NULL);
	check(hive_frames_start(&clock_of_frames, PERIOD), "hive_frames_start");
	for (int i = 0; i < tasks(); i++)
		check(hive_post_compute(hive, compute_and_again, NULL), "hive_post_compute");
	for (int i = 0; i < TIMERS && load == 'b'; i++) {
		hive_timer_init(&timers[i], on_timer, NULL);
		check(hive_timer_start(&timers[i], HIVE_US(100) * (i + 1), HIVE_MS(100)), "hive_timer_start");
	}
	if (load == 'c')
		start_posters(post_to_ui);
	if (load == 's')
		start_posters(post_to_pool);
	hive_update_init(&update, hive, HIVE_WORKER_MAIN, handle, NULL);
	if (load == 'u')
		start_posters(post_update);
	if (load == 'd' && hive_workers(hive, ids, 2) >= 2)
		check(hive_post_to(hive, ids[1], block_task, NULL), "hive_post_to");
}

static void run_hive(void)
{
	struct hive_worker_options ui = {
		.name = "ui", .core = hive_core_glib(), .ui = true, .realtime = load == 'r', .on_start = begin_hive
	};
	struct hive_options options = { .compute_workers = compute_threads() };

	check(hive_create(&options, &hive), "hive_create");
	check(hive_attach(hive, &ui, NULL), "hive_attach");
	check(hive_attach(hive, NULL, NULL), "hive_attach");
	check(hive_run(hive), "hive_run");
	hive_destroy(hive);
}

/* ---- plain GLib ---- */

static GMainLoop *loop;
static GThreadPool *pool;
static int64_t due_ns;

/* A source that is ready at a time: what GLib has that is more exact than a time-out in milliseconds. */
static gboolean dispatch_frame(GSource *source, GSourceFunc callback, gpointer data)
{
	int64_t now_ns = hive_now(NULL), late_ns = now_ns - due_ns, left_out = late_ns / PERIOD;

	(void)callback, (void)data;
	due_ns += left_out * PERIOD;
	if (frame(now_ns - due_ns, (uint64_t)left_out)) {
		end_posters();
		g_main_loop_quit(loop);
		return G_SOURCE_REMOVE;
	}
	due_ns += PERIOD;
	g_source_set_ready_time(source, (due_ns + 999) / 1000);
	return G_SOURCE_CONTINUE;
}

static GSourceFuncs frame_funcs = { .dispatch = dispatch_frame };

static void pool_task(gpointer data, gpointer user_data)
{
	(void)user_data;
	if (data == &handled) {
		atomic_fetch_add(&handled, 1);
		return;
	}
	if (load == 'd') {
		block();
		return;
	}
	compute();
	if (!atomic_load(&ended))
		g_thread_pool_push(pool, data, NULL);
}

static gboolean on_timeout(gpointer data)
{
	(void)data;
	atomic_fetch_add(&fired, 1);
	return G_SOURCE_CONTINUE;
}

static gboolean start_timeout(gpointer data)
{
	(void)data;
	g_timeout_add(100, on_timeout, NULL);
	return G_SOURCE_REMOVE;
}

static gboolean on_idle(gpointer data)
{
	(void)data;
	atomic_fetch_add(&handled, 1);
	return G_SOURCE_REMOVE;
}

static void add_idle(void)
{
	g_idle_add(on_idle, NULL);
}

static void push_small(void)
{
	g_thread_pool_push(pool, &handled, NULL);
}

/* By hand, as programs do it: a flag, and one idle source for all who have set it. */
static atomic_bool flagged;

static gboolean on_flag(gpointer data)
{
	atomic_store(&flagged, false);
	return on_idle(data);
}

static void set_flag(void)
{
	if (!atomic_exchange(&flagged, true))
		g_idle_add(on_flag, NULL);
}

static void run_glib(void)
{
	GSource *source = g_source_new(&frame_funcs, sizeof(GSource));
	struct sched_param param = { .sched_priority = 1 };

	loop = g_main_loop_new(NULL, FALSE);
	pool = g_thread_pool_new(pool_task, NULL, compute_threads(), TRUE, NULL);
	for (int i = 0; i < tasks(); i++)
		g_thread_pool_push(pool, &pool, NULL);
	for (guint i = 0; i < TIMERS && load == 'b'; i++)
		g_timeout_add(i / 10, start_timeout, NULL);
	if (load == 'c')
		start_posters(add_idle);
	if (load == 's')
		start_posters(push_small);
	if (load == 'u')
		start_posters(set_flag);
	if (load == 'd')
		g_thread_pool_push(pool, &pool, NULL);
	if (load == 'r' && sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) < 0)
		check(-errno, "sched_setscheduler");
	due_ns = hive_now(NULL) + PERIOD;
	g_source_set_ready_time(source, due_ns / 1000);
	g_source_set_priority(source, G_PRIORITY_HIGH); /* before all else that is ready */
	g_source_attach(source, NULL);
	g_main_loop_run(loop);
	g_thread_pool_free(pool, TRUE, TRUE);
	g_source_unref(source);
	g_main_loop_unref(loop);
}

/* ---- turns ---- */

static int take_turn(bool ours)
{
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child < 0)
		return 1;
	if (child == 0) {
		sees_halts = halts_begin(&halts, false) == 0;
		if (ours)
			run_hive();
		else
			run_glib();
		if (sees_halts)
			halts_end(&halts);
		report(ours ? "hive" : "glib");
		fflush(NULL);
		if (!load_came())
			fprintf(stderr, "hive-bench-ui: load %c has not come\n", load);
		_exit(!load_came());
	}
	if (waitpid(child, &status, 0) < 0)
		return 1;
	return status != 0;
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 1, bad = 0;
	const char *loads = argc > 3 ? argv[3] : "-pabcsdu";

	seconds = argc > 1 ? atof(argv[1]) : seconds;
	if (seconds < 0.1 || rounds < 1 || strspn(loads, "-parbcsdu") != strlen(loads)) {
		fputs("usage: hive-bench-ui [SECONDS a turn, 5] [ROUNDS, 1] [LOADS, \"-pabcsdu\"; or also r]\n",
		      stderr);
		return 2;
	}
	for (int round = 0; round < rounds; round++)
		for (const char *at = loads; *at; at++) {
			load = *at;
			bad |= take_turn(true);
			bad |= take_turn(false);
		}
	return bad;
}
