/* SPDX-License-Identifier: MIT */
#include "frames.h"
#include "hogs.h"
#include "rig.h"
#include "tally.h"
#include "ui_loads.h"
#include <sched.h>
#include <stdio.h>
#include <string.h>

/* mixed_ui, the loads: a frame clock of 60 Hz on a main worker with the manners of a UI, and beside it, one after the other, each for --seconds,
 *   compute  four compute workers for each CPU, all busy      timers  10,000 delayed posts a second fire
 *   posts    100,000 posts a second to the shared pool         block   a task on another IO worker blocks all the time
 *   updates  100,000 coalescing posts a second to the main worker, from another thread
 * Frames are judged by the bench's own clock. Of those that are late it is told how many were so while the machine stood
 * still, where the kernel lets us find out (halts.h).                                                                      */
#define IO_WORKERS 3 /* the UI, one that blocks, one more */
#define ROUND_NS HIVE_MS(1)
#define TIMERS_A_ROUND 10
#define POSTS_A_ROUND 100
#define DELAYS 50 /* ms, the longest of a delayed post */

struct ui {
	struct rig rig;
	struct hogs hogs;
	struct hive_frames clock;
	struct frames frames;
	struct hive_update update;
	_Atomic int64_t answers; /* of the main worker */
	atomic_bool unblock;
	int64_t updates, shown;
	int64_t end_ns;
	struct halts halts;
	bool sees_halts;
	bool realtime; /* so the main worker is scheduled */
};

static void on_frame(struct hive_frames *clock, const struct hive_frame *frame)
{
	struct ui *ui = clock->arg;
	(void)frame;
	frames_tick(&ui->frames, sync_now());
}

static void start_clock(void *arg)
{
	struct ui *ui = arg;
	ui->realtime = (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_FIFO;
	hive_frames_init(&ui->clock, on_frame, ui);
	frames_begin(&ui->frames, sync_now() + FRAMES_PERIOD_NS);
	int error = hive_frames_start(&ui->clock, FRAMES_PERIOD_NS);
	if (error)
		tally_fail(error);
	atomic_fetch_add(&ui->answers, 1);
}

static void stop_clock(void *arg)
{
	struct ui *ui = arg;
	ui->end_ns = sync_now();
	hive_frames_stop(&ui->clock);
	atomic_fetch_add(&ui->answers, 1);
}

static int on_main(struct ui *ui, hive_fn *fn)
{
	int64_t limit_ns = sync_now() + BENCH_PATIENCE_NS, target = atomic_load(&ui->answers) + 1;
	int error = hive_post_to(ui->rig.hive, HIVE_WORKER_MAIN, fn, ui);
	if (error)
		return bench_failed("hive_post_to", error);
	while (atomic_load(&ui->answers) < target) {
		if (sync_now() > limit_ns)
			return bench_timeout("the main worker", (uint64_t)target, (uint64_t)atomic_load(&ui->answers));
		sync_sleep(HIVE_US(200));
	}
	return tally_error() ? bench_failed("the frame clock", tally_error()) : BENCH_OK;
}

/* ---- the loads ---- */

static void block(void *arg)
{
	struct ui *ui = arg;
	while (!atomic_load(&ui->unblock))
		sync_sleep(HIVE_MS(5));
	tally_add();
}

static void show(void *arg)
{
	struct ui *ui = arg;
	ui->shown++;
}

/* What comes in a millisecond; how many tasks of that will be counted. */
static int send_timers(struct ui *ui, int64_t round, int64_t *ret_tasks)
{
	int error = 0;
	for (int i = 0; i < TIMERS_A_ROUND && !error; i++)
		error = hive_post_after(ui->rig.hive, HIVE_MS((round * 7 + i * 5) % DELAYS + 1), tally_task, NULL,
		                        NULL);
	*ret_tasks = TIMERS_A_ROUND;
	return error;
}

static int send_posts(struct ui *ui, int64_t round, int64_t *ret_tasks)
{
	int error = 0;
	(void)round;
	for (int i = 0; i < POSTS_A_ROUND && !error; i++)
		error = hive_post(ui->rig.hive, tally_task, NULL);
	*ret_tasks = POSTS_A_ROUND;
	return error;
}

static int send_updates(struct ui *ui, int64_t round, int64_t *ret_tasks)
{
	int r = 0;
	(void)round;
	for (int i = 0; i < POSTS_A_ROUND && r >= 0; i++)
		r = hive_update_post(&ui->update);
	ui->updates += POSTS_A_ROUND;
	*ret_tasks = 0;
	return r < 0 ? r : 0;
}

static int send_nothing(struct ui *ui, int64_t round, int64_t *ret_tasks)
{
	(void)ui, (void)round;
	*ret_tasks = 0;
	return 0;
}

static int begin_compute(struct ui *ui)
{
	return hogs_start_chains(&ui->hogs, &ui->rig, 4 * hive_cpus());
}

static int end_compute(struct ui *ui)
{
	return hogs_stop(&ui->hogs);
}

static int begin_block(struct ui *ui)
{
	int error = hive_post_to(ui->rig.hive, ui->rig.io[1], block, ui);
	return error ? bench_failed("hive_post_to", error) : BENCH_OK;
}

static int end_block(struct ui *ui)
{
	uint64_t target = tally_total() + 1;
	atomic_store(&ui->unblock, true);
	return tally_wait(target, BENCH_PATIENCE_NS, HIVE_MS(1));
}

static int begin_updates(struct ui *ui)
{
	hive_update_init(&ui->update, ui->rig.hive, HIVE_WORKER_MAIN, show, ui);
	return BENCH_OK;
}

struct load {
	const char *name;
	int (*begin)(struct ui *ui);                                    /* the bench's exit code; NULL: nothing to do */
	int (*round)(struct ui *ui, int64_t round, int64_t *ret_tasks); /* 0 or -errno */
	int (*end)(struct ui *ui);
};

static const struct load loads[] = {
	{ "compute", begin_compute, send_nothing, end_compute },
	{ "timers", NULL, send_timers, NULL },
	{ "posts", NULL, send_posts, NULL },
	{ "block", begin_block, send_nothing, end_block },
	{ "updates", begin_updates, send_updates, NULL },
};
enum { LOADS = sizeof loads / sizeof *loads };

bool ui_loads_know(const char *name)
{
	for (int i = 0; i < LOADS; i++)
		if (strcmp(loads[i].name, name) == 0)
			return true;
	return false;
}

/* ---- one load ---- */

static int send(struct ui *ui, const struct load *load, int64_t span_ns)
{
	int64_t first_ns = sync_now(), tasks, rounds = span_ns / ROUND_NS;
	uint64_t target = tally_total();
	for (int64_t i = 0; i < rounds; i++) {
		sync_sleep_until(first_ns + i * ROUND_NS);
		int error = load->round(ui, i, &tasks);
		if (error)
			return bench_failed(load->name, error);
		target += (uint64_t)tasks;
	}
	sync_sleep_until(first_ns + span_ns);
	int code = on_main(ui, stop_clock);
	return code ? code : tally_wait(target, BENCH_PATIENCE_NS, HIVE_MS(1));
}

static void put(struct record *result, const char *load, const char *name, double value)
{
	char text[48];
	snprintf(text, sizeof text, "%s_%s", load, name);
	record_metric(result, text, value);
}

static void put_load(struct ui *ui, const struct load *load, struct record *result)
{
	int64_t expected = frames_expected(&ui->frames, ui->end_ns);
	put(result, load->name, "realtime", ui->realtime);
	put(result, load->name, "frames", (double)expected);
	put(result, load->name, "frames_on_time", frames_share(&ui->frames, ui->end_ns));
	put(result, load->name, "missed", (double)(expected - ui->frames.drawn));
	put(result, load->name, "late_p50_ns", (double)stats_quantile(&ui->frames.lateness, 0.50));
	put(result, load->name, "late_p99_ns", (double)stats_quantile(&ui->frames.lateness, 0.99));
	put(result, load->name, "late_max_ns", (double)ui->frames.lateness.max);
	if (ui->sees_halts) {
		put(result, load->name, "halts", (double)halts_count(&ui->halts));
		put(result, load->name, "halt_max_ns", (double)halts_longest(&ui->halts));
		put(result, load->name, "frames_halted", (double)frames_halted(&ui->frames, &ui->halts, ui->end_ns));
		put(result, load->name, "frames_on_time_running",
		    frames_share_running(&ui->frames, &ui->halts, ui->end_ns));
	}
	if (ui->updates > 0)
		put(result, load->name, "per_run", (double)ui->updates / (double)(ui->shown > 0 ? ui->shown : 1));
}

static int run_load(const struct load *load, const struct bench_params *params, struct record *result)
{
	static struct ui ui;
	memset(&ui, 0, sizeof ui);
	struct bench_params with_ui = *params;
	with_ui.ui = true;
	int code = rig_open(&ui.rig, &with_ui, IO_WORKERS, 4 * hive_cpus());
	if (code)
		return code;
	sync_sleep_exactly();
	code = load->begin ? load->begin(&ui) : BENCH_OK;
	bool begun = !code;
	if (!code) {
		sync_sleep(HIVE_MS(100)); /* warm-up */
		ui.sees_halts = halts_begin(&ui.halts, false) == 0;
		code = on_main(&ui, start_clock);
	}
	if (!code)
		code = send(&ui, load, (int64_t)(params->seconds * 1e9));
	if (ui.sees_halts)
		halts_end(&ui.halts);
	if (begun && load->end) {
		int ended = load->end(&ui);
		code = code ? code : ended;
	}
	code = rig_close(&ui.rig, code);
	if (!code)
		put_load(&ui, load, result);
	return code;
}

int ui_loads_run(const struct bench_params *params, struct record *result)
{
	int code = BENCH_OK;
	for (int i = 0; i < LOADS && !code; i++)
		if (!params->load || strcmp(params->load, loads[i].name) == 0)
			code = run_load(&loads[i], params, result);
	if (!code && params->load) /* else it is there already */
		bench_put_memory(result);
	return code;
}
