/* SPDX-License-Identifier: MIT */
#include "rig.h"
#include "tally.h"
#include <stdlib.h>

/* timer_cancel: 10,000 far timers are armed, or --armed; one operation cancels the oldest and arms a new one. On the worker itself,
 * as a server does with the time-outs of its connections.                                                           */
#define ARMED 10000 /* by default */
#define FAR_NS HIVE_S(3600)
#define POLL_NS HIVE_MS(1)

struct ring {
	struct hive_timer *timers;
	int64_t armed, operations, elapsed_ns, not_armed;
};

static void on_fire(struct hive_timer *timer)
{
	(void)timer;
	tally_fail(-ETIMEDOUT); /* none is due within the hour */
}

static int arm(struct hive_timer *timer, int64_t place)
{
	return hive_timer_start(timer, FAR_NS + place * HIVE_US(100), 0);
}

static int replace_oldest(struct ring *ring, int64_t operations)
{
	int error = 0;
	int64_t oldest = 0;
	for (int64_t i = 0; i < operations && !error; i++) {
		struct hive_timer *timer = &ring->timers[oldest];
		ring->not_armed += hive_timer_stop(timer) != 1;
		error = arm(timer, oldest);
		oldest = oldest + 1 < ring->armed ? oldest + 1 : 0;
	}
	return error;
}

static void run_all(void *arg)
{
	struct ring *ring = arg;
	int error = 0;
	for (int64_t i = 0; i < ring->armed && !error; i++) {
		hive_timer_init(&ring->timers[i], on_fire, ring);
		error = arm(&ring->timers[i], i);
	}
	if (!error)
		error = replace_oldest(ring, ring->operations / 10 + ring->armed); /* warm-up */
	int64_t begin = sync_now();
	if (!error)
		error = replace_oldest(ring, ring->operations);
	ring->elapsed_ns = sync_now() - begin;
	for (int64_t i = 0; i < ring->armed; i++)
		hive_timer_stop(&ring->timers[i]);
	if (error)
		tally_fail(error);
	tally_add();
}

int bench_timer_cancel(const struct bench_params *params, struct record *result)
{
	static struct ring ring;
	struct rig rig;
	ring = (struct ring){ .operations = params->n, .armed = params->armed ? params->armed : ARMED };
	ring.timers = calloc((size_t)ring.armed, sizeof *ring.timers);
	int code = ring.timers ? rig_open(&rig, params, params->threads, 0) : bench_failed("timers", -ENOMEM);
	if (code)
		return free(ring.timers), code;
	uint64_t target = tally_total() + 1;
	int error = hive_post_to(rig.hive, rig.io[0], run_all, &ring);
	code = error ? bench_failed("hive_post_to", error) : tally_wait(target, BENCH_PATIENCE_NS, POLL_NS);
	if (!code && ring.not_armed)
		code = bench_wrong("timers that were not armed when cancelled", 0, (uint64_t)ring.not_armed);
	bench_put_rate(result, (double)params->n, ring.elapsed_ns);
	record_count(result, "armed", ring.armed);
	bench_put_memory(result);
	code = rig_close(&rig, code);
	if (code != BENCH_TIMEOUT)
		free(ring.timers); /* else the worker may be at it */
	return code;
}
