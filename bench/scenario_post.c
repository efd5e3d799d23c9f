/* SPDX-License-Identifier: MIT */
#include "rig.h"
#include "tally.h"
#include <pthread.h>

/* post: P outside threads hand n tasks to the pool; the clock runs from the first submit until the last task ran. */
#define POLL_NS HIVE_US(500) /* each look costs a wake-up of some 20 us on a machine that is full: few of them */

struct producer {
	struct hive *hive;
	pthread_barrier_t *start;
	pthread_t thread;
	int64_t count, begin_ns;
	int32_t batch;
};

static int post_single(const struct producer *producer)
{
	int error = 0;
	for (int64_t i = 0; i < producer->count && !error; i++)
		error = hive_post(producer->hive, tally_task, NULL);
	return error;
}

static int post_batches(const struct producer *producer)
{
	struct hive_task tasks[4096];
	int error = 0;
	for (int32_t i = 0; i < producer->batch; i++)
		tasks[i] = (struct hive_task){ tally_task, NULL };
	for (int64_t left = producer->count; left > 0 && !error; left -= producer->batch)
		error = hive_post_many(producer->hive, tasks,
		                       (size_t)(left < producer->batch ? left : producer->batch));
	return error;
}

static void *produce(void *arg)
{
	struct producer *producer = arg;
	pthread_barrier_wait(producer->start);
	producer->begin_ns = sync_now();
	int error = producer->batch > 1 ? post_batches(producer) : post_single(producer);
	if (error)
		tally_fail(error);
	return NULL;
}

/* Returns how many were started; those wait at the barrier until all of them and the caller are there. */
static int32_t start_producers(struct producer *producers, int32_t count, int64_t n, struct producer like)
{
	for (int32_t i = 0; i < count; i++) {
		producers[i] = like;
		producers[i].count = n / count + (i < n % count);
		if (pthread_create(&producers[i].thread, NULL, produce, &producers[i]) != 0)
			return i;
	}
	return count;
}

static int race(struct rig *rig, const struct bench_params *params, int64_t n, int64_t *ret_elapsed_ns)
{
	struct producer producers[256];
	pthread_barrier_t start;
	uint64_t target = tally_total() + (uint64_t)n;
	pthread_barrier_init(&start, NULL, (unsigned)params->producers + 1);
	struct producer like = { .hive = rig->hive, .start = &start, .batch = params->batch };
	if (start_producers(producers, params->producers, n, like) < params->producers)
		return bench_failed("threads for the producers",
		                    -EAGAIN); /* those at the barrier end with the process */
	pthread_barrier_wait(&start);
	int code = tally_wait(target, BENCH_PATIENCE_NS, POLL_NS);
	int64_t end = sync_now(), begin = end;
	if (code == BENCH_TIMEOUT)
		return code;
	for (int32_t i = 0; i < params->producers; i++) {
		pthread_join(producers[i].thread, NULL);
		begin = producers[i].begin_ns < begin ? producers[i].begin_ns : begin;
	}
	pthread_barrier_destroy(&start);
	*ret_elapsed_ns = end - begin;
	return code;
}

int bench_post(const struct bench_params *params, struct record *result)
{
	struct rig rig;
	struct hive_stats before = { 0 }, after = { 0 };
	int64_t elapsed_ns = 0;
	int code = rig_open(&rig, params, params->threads, 0);
	if (code)
		return code;
	sync_sleep_exactly();
	code = race(&rig, params, params->n / 10 + 1, &elapsed_ns); /* warm-up */
	hive_stats_read(rig.hive, &before);
	if (!code)
		code = race(&rig, params, params->n, &elapsed_ns);
	hive_stats_read(rig.hive, &after);
	bench_put_rate(result, (double)params->n, elapsed_ns);
	record_metric(result, "wakes_per_million", (double)(after.wakes - before.wakes) * 1e6 / (double)params->n);
	record_count(result, "batch", params->batch);
	bench_put_memory(result);
	return rig_close(&rig, code);
}
