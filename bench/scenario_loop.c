/* SPDX-License-Identifier: MIT */
#include "groups.h"
#include <pthread.h>
#include <stdlib.h>

/* loop: hive_parallel_for() over n numbers in memory, one step of a generator for each, in turns with what one writes by hand: T threads, each with
 * its share, cut beforehand. One operation is one number. Measured from a compute task, where T threads do it all; and from this
 * thread, which then works as well.                                                                                       */
#define TURNS 15
#define THREADS_MOST 64
#define FACTOR UINT32_C(1664525)
#define PLUS UINT32_C(1013904223)

struct job {
	struct hive *hive;
	uint32_t *numbers;
	int64_t n;
	int32_t threads;
	int error;
};

struct share {
	struct job *job;
	int64_t begin, end;
	pthread_t thread;
};

static void advance(void *arg, int64_t begin, int64_t end)
{
	uint32_t *numbers = ((struct job *)arg)->numbers;
	for (int64_t i = begin; i < end; i++)
		numbers[i] = numbers[i] * FACTOR + PLUS;
}

static void loop_here(void *arg)
{
	struct job *job = arg;
	int error = hive_parallel_for(job->hive, 0, job->n, 0, advance, job, HIVE_FOREVER);
	if (error)
		job->error = error;
}

static void *advance_share(void *arg)
{
	struct share *share = arg;
	advance(share->job, share->begin, share->end);
	return NULL;
}

/* The caller has the first share. */
static void loop_by_hand(struct job *job)
{
	struct share shares[THREADS_MOST];
	int32_t started = 1;
	for (int32_t i = 0; i < job->threads; i++) {
		shares[i].job = job;
		shares[i].begin = job->n * i / job->threads;
		shares[i].end = job->n * (i + 1) / job->threads;
	}
	for (; started < job->threads; started++)
		if (pthread_create(&shares[started].thread, NULL, advance_share, &shares[started]) != 0) {
			job->error = -EAGAIN;
			break;
		}
	advance_share(&shares[0]);
	for (int32_t i = 1; i < started; i++)
		pthread_join(shares[i].thread, NULL);
}

enum who { TASK, THREAD, HAND, ALL };

static int64_t time_one(const struct rig *rig, struct job *job, enum who who)
{
	if (who == TASK)
		return groups_time(rig, loop_here, job);
	int64_t begin = sync_now();
	if (who == THREAD)
		loop_here(job);
	else
		loop_by_hand(job);
	return sync_now() - begin;
}

/* Each number has made so many steps from its index. */
static int check(const struct job *job, int64_t steps)
{
	uint32_t factor = 1, plus = 0;
	for (int64_t i = 0; i < steps; i++) {
		factor *= FACTOR;
		plus = plus * FACTOR + PLUS;
	}
	for (int64_t i = 0; i < job->n; i++)
		if (job->numbers[i] != (uint32_t)i * factor + plus)
			return bench_wrong("steps of a number", (uint32_t)i * factor + plus, job->numbers[i]);
	return job->error ? bench_failed("a loop", job->error) : BENCH_OK;
}

static int measure(const struct rig *rig, struct job *job, struct record *result)
{
	static int64_t times_ns[ALL][TURNS];
	double task_ratios[TURNS], thread_ratios[TURNS];
	for (int who = 0; who < ALL; who++)
		time_one(rig, job, (enum who)who); /* warm-up */
	for (int turn = 0; turn < TURNS; turn++) {
		for (int i = 0; i < ALL; i++) {
			int who = (i + turn) % ALL; /* nobody always comes after the same one */
			times_ns[who][turn] = time_one(rig, job, (enum who)who);
		}
		task_ratios[turn] = (double)times_ns[TASK][turn] / (double)times_ns[HAND][turn];
		thread_ratios[turn] = (double)times_ns[THREAD][turn] / (double)times_ns[HAND][turn];
	}
	double hand_s = (double)groups_median(times_ns[HAND], TURNS) / 1e9;
	bench_put_rate(result, (double)job->n, groups_median(times_ns[TASK], TURNS));
	record_metric(result, "hand_ops_per_s", (double)job->n / hand_s);
	record_metric(result, "hand_ratio", stats_median(task_ratios, TURNS)); /* time by time: below 1 is faster */
	record_metric(result, "thread_hand_ratio", stats_median(thread_ratios, TURNS));
	return check(job, ALL * (TURNS + 1));
}

int bench_loop(const struct bench_params *params, struct record *result)
{
	struct rig rig;
	struct job job = { .numbers = calloc((size_t)params->n, sizeof *job.numbers),
		           .n = params->n,
		           .threads = params->threads };
	if (!job.numbers || params->threads > THREADS_MOST)
		return bench_failed("numbers, or threads", job.numbers ? -EINVAL : -ENOMEM);
	for (int64_t i = 0; i < job.n; i++)
		job.numbers[i] = (uint32_t)i;
	int code = groups_open(&rig, params);
	if (!code) {
		job.hive = rig.hive;
		code = measure(&rig, &job, result);
		bench_put_memory(result);
		code = rig_close(&rig, code);
	}
	free(job.numbers);
	return code;
}
