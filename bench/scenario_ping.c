/* SPDX-License-Identifier: MIT */
#include "floor.h"
#include "machine.h"
#include "ping.h"
#include "rig.h"

/* ping, ping_hot, eventfd_floor: how long from submit to the start of the run. The machine has moods that last
 * seconds, so ping takes the raw wake in turns with the hive: the ratio means something even when the times do not. */
#define BLOCK 250   /* pings of one kind in a row */
#define WARM_UP 500 /* pings of each kind */

static void answer_task(void *arg)
{
	ping_answer(arg);
}

static int post_answer(void *arg, struct ping_slot *slot)
{
	return hive_post(arg, answer_task, slot);
}

static int floor_cpu(const struct bench_params *params)
{
	return params->pin ? machine_allowed_cpu(0) : -1;
}

static int measure_in_turns(const struct ping_target *hive, const struct ping_target *floor, int64_t n,
                            struct stats *hive_stats, struct stats *floor_stats)
{
	int code = ping_measure(hive, WARM_UP, PING_IDLE_NS, NULL);
	if (!code)
		code = ping_measure(floor, WARM_UP, PING_IDLE_NS, NULL);
	for (int64_t left = n; left > 0 && !code; left -= BLOCK) {
		int64_t count = left < BLOCK ? left : BLOCK;
		code = ping_measure(hive, count, PING_IDLE_NS, hive_stats);
		if (!code)
			code = ping_measure(floor, count, PING_IDLE_NS, floor_stats);
	}
	return code;
}

int bench_ping(const struct bench_params *params, struct record *result)
{
	static struct stats hive_stats, floor_stats;
	struct rig rig;
	struct floor floor;
	stats_reset(&hive_stats), stats_reset(&floor_stats);
	int code = rig_open(&rig, params, params->threads, 0);
	if (code)
		return code;
	code = floor_open(&floor, floor_cpu(params));
	if (code)
		return rig_close(&rig, code);
	sync_sleep_exactly();
	const struct ping_target hive = { post_answer, rig.hive }, raw = { floor_submit, &floor };
	code = measure_in_turns(&hive, &raw, params->n, &hive_stats, &floor_stats);
	floor_close(&floor);
	/* There are two ways for a wake to go: the woken thread takes the poster's CPU at once, or when the poster yields.
	 * The median may fall on the edge between them; the first quartile shows the quick way alone.                    */
	bench_put_percentiles(result, &hive_stats);
	bench_put_percentiles_of(result, "floor_", &floor_stats);
	record_metric(result, "ratio",
	              (double)stats_quantile(&hive_stats, 0.5) / (double)stats_quantile(&floor_stats, 0.5));
	bench_put_memory(result);
	return rig_close(&rig, code);
}

int bench_ping_hot(const struct bench_params *params, struct record *result)
{
	static struct stats stats;
	struct rig rig;
	stats_reset(&stats);
	int code = rig_open(&rig, params, params->threads, 0);
	if (code)
		return code;
	const struct ping_target hive = { post_answer, rig.hive };
	code = ping_measure(&hive, params->n / 10 + WARM_UP, 0, NULL);
	int64_t begin = sync_now();
	if (!code)
		code = ping_measure(&hive, params->n, 0, &stats);
	bench_put_rate(result, (double)params->n, sync_now() - begin);
	bench_put_percentiles(result, &stats);
	bench_put_memory(result);
	return rig_close(&rig, code);
}

int bench_floor(const struct bench_params *params, struct record *result)
{
	static struct stats stats;
	struct floor floor;
	stats_reset(&stats);
	int code = floor_open(&floor, floor_cpu(params));
	if (code)
		return code;
	sync_sleep_exactly();
	const struct ping_target raw = { floor_submit, &floor };
	code = ping_measure(&raw, WARM_UP, PING_IDLE_NS, NULL);
	if (!code)
		code = ping_measure(&raw, params->n, PING_IDLE_NS, &stats);
	if (code == BENCH_TIMEOUT)
		return code;
	floor_close(&floor);
	bench_put_percentiles(result, &stats);
	bench_put_memory(result);
	return code;
}
