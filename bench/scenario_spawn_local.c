/* SPDX-License-Identifier: MIT */
#include "rig.h"
#include "tally.h"

/* spawn_local: one task on the pool posts n tasks with the in-worker call; until the last ran. */
#define POLL_NS HIVE_US(500) /* rare: each look takes a CPU away from a worker for a moment */

static void spawn(void *arg)
{
	int error = 0;
	for (int64_t left = *(const int64_t *)arg; left > 0 && !error; left--)
		error = hive_post_local(tally_task, NULL);
	if (error)
		tally_fail(error);
}

static int spawn_and_wait(struct rig *rig, int64_t n, int64_t *ret_elapsed_ns)
{
	static int64_t counts[2]; /* outlives this call: a spawner that is late must find its number */
	static int round;
	int64_t *count = &counts[round++ % 2];
	uint64_t target = tally_total() + (uint64_t)n;
	*count = n;
	int64_t begin = sync_now();
	int error = hive_post(rig->hive, spawn, count);
	if (error)
		return bench_failed("hive_post", error);
	int code = tally_wait(target, BENCH_PATIENCE_NS, POLL_NS);
	*ret_elapsed_ns = sync_now() - begin;
	return code;
}

int bench_spawn_local(const struct bench_params *params, struct record *result)
{
	struct rig rig;
	int64_t elapsed_ns = 0;
	int code = rig_open(&rig, params, params->threads, 0);
	if (code)
		return code;
	sync_sleep_exactly();
	code = spawn_and_wait(&rig, params->n / 10 + 1, &elapsed_ns);
	if (!code)
		code = spawn_and_wait(&rig, params->n, &elapsed_ns);
	bench_put_rate(result, (double)params->n, elapsed_ns);
	bench_put_memory(result);
	return rig_close(&rig, code);
}
