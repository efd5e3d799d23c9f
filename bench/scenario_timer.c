/* SPDX-License-Identifier: MIT */
#include "machine.h"
#include "rig.h"
#include "tally.h"
#include <stdlib.h>

/* timer: n timers over 1 to 1000 ms, all outstanding at once, shared out among the workers. Two passes on the worker
 * itself: the first only inserts (and cancels again) and gives the rate; the second notes for each timer when it is
 * due, by the bench's own clock, so that one nanosecond too early would be seen.                                     */
#define SHORTEST_NS HIVE_MS(1)
#define SPREAD_NS HIVE_MS(999)
#define POLL_NS HIVE_MS(10) /* the waiting must not show in the CPU seconds */

struct timed {
	struct hive_timer timer;
	int64_t delay_ns, due_ns, late_ns;
};

struct load {
	struct timed *timers;
	int64_t count, insert_ns;
};

static void on_fire(struct hive_timer *timer)
{
	struct timed *timed = timer->arg;
	timed->late_ns = sync_now() - timed->due_ns;
	tally_add();
}

static void measure_insert(void *arg)
{
	struct load *load = arg;
	int error = 0;
	int64_t begin = sync_now();
	for (int64_t i = 0; i < load->count && !error; i++)
		error = hive_timer_start(&load->timers[i].timer, load->timers[i].delay_ns, 0);
	load->insert_ns = sync_now() - begin;
	for (int64_t i = 0; i < load->count; i++)
		hive_timer_stop(&load->timers[i].timer);
	if (error)
		tally_fail(error);
	tally_add();
}

/* Everything is due relative to a moment after the last insertion; else the first timers would come due while the
 * worker is still busy inserting the others, and that would be measured.                                          */
static void arm_all(void *arg)
{
	struct load *load = arg;
	int error = 0;
	int64_t base = sync_now() + 2 * load->insert_ns + load->count * 50;
	for (int64_t i = 0; i < load->count && !error; i++) {
		struct timed *timed = &load->timers[i];
		timed->due_ns = base + timed->delay_ns;
		error = hive_timer_start(&timed->timer, timed->due_ns - sync_now(), 0);
	}
	if (error)
		tally_fail(error);
}

static uint64_t next_random(uint64_t *state)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t mixed = (*state ^ (*state >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
	return mixed ^ (mixed >> 31);
}

static struct timed *make_timers(int64_t n)
{
	uint64_t seed = 1; /* the same delays in every run */
	struct timed *timers = calloc((size_t)n, sizeof *timers);
	for (int64_t i = 0; timers && i < n; i++) {
		hive_timer_init(&timers[i].timer, on_fire, &timers[i]);
		timers[i].delay_ns = SHORTEST_NS + (int64_t)(next_random(&seed) % (uint64_t)SPREAD_NS);
	}
	return timers;
}

static int on_every_worker(struct rig *rig, struct load *loads, hive_fn *fn, int64_t tallies)
{
	uint64_t target = tally_total() + (uint64_t)tallies;
	for (int32_t i = 0; i < rig->io_count; i++) {
		int error = hive_post_to(rig->hive, rig->io[i], fn, &loads[i]);
		if (error)
			return bench_failed("hive_post_to", error);
	}
	return tally_wait(target, BENCH_PATIENCE_NS, POLL_NS);
}

static int64_t slowest_insert(const struct load *loads, int32_t count)
{
	int64_t slowest = 0;
	for (int32_t i = 0; i < count; i++)
		slowest = loads[i].insert_ns > slowest ? loads[i].insert_ns : slowest;
	return slowest;
}

static void put_lateness(struct record *result, const struct timed *timers, int64_t n)
{
	static struct stats stats;
	stats_reset(&stats);
	for (int64_t i = 0; i < n; i++)
		stats_add(&stats, timers[i].late_ns);
	bench_put_percentiles(result, &stats);
	record_metric(result, "min_ns", (double)stats.min);
}

int bench_timer(const struct bench_params *params, struct record *result)
{
	struct load loads[RIG_IO_MAX] = { 0 };
	struct rig rig;
	struct timed *timers = make_timers(params->n);
	int code = timers ? rig_open(&rig, params, params->threads, 0) : bench_failed("timers", -ENOMEM);
	if (code)
		return free(timers), code;
	int64_t first = 0;
	for (int32_t i = 0; i < rig.io_count; i++) {
		loads[i].timers = timers + first;
		loads[i].count = params->n / rig.io_count + (i < params->n % rig.io_count);
		first += loads[i].count;
	}
	code = on_every_worker(&rig, loads, measure_insert, rig.io_count); /* warm-up */
	if (!code)
		code = on_every_worker(&rig, loads, measure_insert, rig.io_count);
	double cpu_before = machine_cpu_seconds();
	if (!code)
		code = on_every_worker(&rig, loads, arm_all, params->n);
	double cpu_s = machine_cpu_seconds() - cpu_before;
	bench_put_rate(result, (double)params->n, slowest_insert(loads, rig.io_count));
	put_lateness(result, timers, params->n);
	record_metric(result, "cpu_s", cpu_s);
	bench_put_memory(result);
	code = rig_close(&rig, code);
	if (code != BENCH_TIMEOUT)
		free(timers);
	return code;
}
