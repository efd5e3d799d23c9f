/* SPDX-License-Identifier: MIT */
#include "frames.h"
#include "hogs.h"
#include "rig.h"
#include "tally.h"
#include "ui_loads.h"
#include <stdlib.h>

/* mixed, mixed_ui: hogs saturate the compute workers while tiny tasks come from outside, a thousand a second, open loop;
 * with _ui the main worker keeps a 60 Hz frame timer as well, and then come the loads of scenario_mixed_ui.c. The hogs also run by themselves, before and after, in the
 * same hive: whether anybody hurt them is then a ratio and not a matter of the machine's mood.                        */
#define IO_WORKERS 2 /* main and one more */
#define TINY_PERIOD_NS HIVE_MS(1)

struct tiny {
	int64_t due_ns, posted_ns, started_ns;
};

struct ui {
	struct hive_timer timer;
	struct frames frames;
};

struct mixed {
	struct rig rig;
	struct hogs hogs;
	struct ui *ui; /* NULL: no frames */
	struct tiny *tiny;
	int64_t tiny_count;
	double alone_per_s, with_tiny_per_s;
	int64_t end_ns;
};

static void run_tiny(void *arg)
{
	struct tiny *tiny = arg;
	tiny->started_ns = sync_now();
	tally_add();
}

static void on_frame(struct hive_timer *timer)
{
	struct ui *ui = timer->arg;
	frames_tick(&ui->frames, sync_now());
}

static void start_frames(void *arg)
{
	struct ui *ui = arg;
	hive_timer_init(&ui->timer, on_frame, ui);
	frames_begin(&ui->frames, sync_now() + FRAMES_PERIOD_NS);
	int error = hive_timer_start(&ui->timer, FRAMES_PERIOD_NS, FRAMES_PERIOD_NS);
	if (error)
		tally_fail(error);
	tally_add();
}

static void stop_frames(void *arg)
{
	struct ui *ui = arg;
	hive_timer_stop(&ui->timer);
	tally_add();
}

static int on_main(struct mixed *mixed, hive_fn *fn)
{
	uint64_t target = tally_total() + 1;
	int error = hive_post_to(mixed->rig.hive, HIVE_WORKER_MAIN, fn, mixed->ui);
	return error ? bench_failed("hive_post_to", error) : tally_wait(target, BENCH_PATIENCE_NS, HIVE_US(200));
}

static void hogs_alone(struct mixed *mixed, int64_t span_ns)
{
	int64_t begin = sync_now(), done = hogs_done(&mixed->hogs);
	sync_sleep(span_ns);
	mixed->alone_per_s += (double)(hogs_done(&mixed->hogs) - done) * 1e9 / (double)(sync_now() - begin) / 2;
}

static int post_tiny(struct mixed *mixed)
{
	int64_t first_ns = sync_now() + TINY_PERIOD_NS;
	for (int64_t i = 0; i < mixed->tiny_count; i++) {
		struct tiny *tiny = &mixed->tiny[i];
		tiny->due_ns = first_ns + i * TINY_PERIOD_NS;
		sync_sleep_until(tiny->due_ns);
		tiny->posted_ns = sync_now();
		int error = hive_post(mixed->rig.hive, run_tiny, tiny);
		if (error)
			return bench_failed("hive_post", error);
	}
	return BENCH_OK;
}

static int hogs_with_tiny(struct mixed *mixed)
{
	int code = mixed->ui ? on_main(mixed, start_frames) : BENCH_OK;
	if (code)
		return code;
	uint64_t target = tally_total() + (uint64_t)mixed->tiny_count;
	int64_t begin = sync_now(), done = hogs_done(&mixed->hogs);
	code = post_tiny(mixed);
	mixed->end_ns = sync_now();
	mixed->with_tiny_per_s = (double)(hogs_done(&mixed->hogs) - done) * 1e9 / (double)(mixed->end_ns - begin);
	if (!code)
		code = tally_wait(target, BENCH_PATIENCE_NS, HIVE_MS(1));
	if (!code && mixed->ui)
		code = on_main(mixed, stop_frames);
	return code;
}

static void put_latencies(const struct mixed *mixed, struct record *result)
{
	static struct stats run, end_to_end;
	stats_reset(&run), stats_reset(&end_to_end);
	for (int64_t i = 0; i < mixed->tiny_count; i++) {
		const struct tiny *tiny = &mixed->tiny[i];
		stats_add(&run, tiny->started_ns - tiny->posted_ns);
		stats_add(&end_to_end, tiny->started_ns - tiny->due_ns);
	}
	bench_put_percentiles(result, &run);
	bench_put_percentiles_of(result, "e2e_", &end_to_end);
	record_metric(result, "hogs_per_s", mixed->with_tiny_per_s);
	record_metric(result, "hogs_alone_per_s", mixed->alone_per_s);
	record_metric(result, "hogs_ratio", mixed->with_tiny_per_s / mixed->alone_per_s);
}

static void put_frames(const struct mixed *mixed, struct record *result)
{
	const struct frames *frames = &mixed->ui->frames;
	record_metric(result, "frames", (double)frames_expected(frames, mixed->end_ns));
	record_metric(result, "frames_on_time", frames_share(frames, mixed->end_ns));
	record_metric(result, "late_p50_ns", (double)stats_quantile(&frames->lateness, 0.50));
	record_metric(result, "late_p99_ns", (double)stats_quantile(&frames->lateness, 0.99));
	record_metric(result, "late_max_ns", (double)frames->lateness.max);
}

static int run_mixed(struct mixed *mixed, const struct bench_params *params, struct record *result)
{
	int64_t span_ns = (int64_t)(params->seconds * 1e9);
	mixed->tiny_count = span_ns / TINY_PERIOD_NS + 1;
	mixed->tiny = calloc((size_t)mixed->tiny_count, sizeof *mixed->tiny);
	if (!mixed->tiny)
		return bench_failed("the tiny tasks", -ENOMEM);
	int code = rig_open(&mixed->rig, params, IO_WORKERS, params->threads);
	if (code)
		return free(mixed->tiny), code;
	sync_sleep_exactly();
	code = hogs_start(&mixed->hogs, &mixed->rig);
	if (!code) {
		sync_sleep(HIVE_MS(200)); /* warm-up */
		hogs_alone(mixed, span_ns / 2);
		code = hogs_with_tiny(mixed);
		hogs_alone(mixed, span_ns / 2);
	}
	int stopped = hogs_stop(&mixed->hogs);
	code = rig_close(&mixed->rig, code ? code : stopped);
	if (code)
		return code; /* late tasks may still write to the samples: leave them */
	put_latencies(mixed, result);
	if (mixed->ui)
		put_frames(mixed, result);
	bench_put_memory(result);
	free(mixed->tiny);
	return BENCH_OK;
}

int bench_mixed(const struct bench_params *params, struct record *result)
{
	static struct mixed mixed;
	mixed = (struct mixed){ 0 };
	return run_mixed(&mixed, params, result);
}

int bench_mixed_ui(const struct bench_params *params, struct record *result)
{
	static struct mixed mixed;
	static struct ui ui;
	mixed = (struct mixed){ .ui = &ui };
	int code = params->load ? BENCH_OK : run_mixed(&mixed, params, result);
	return code ? code : ui_loads_run(params, result);
}
