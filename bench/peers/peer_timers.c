/* SPDX-License-Identifier: MIT */
#include "peer_timers.h"
#include <pthread.h>
#include <stdlib.h>

enum { ARMED = 10000, THREADS_MAX = 256 };
#define HOUR_NS HIVE_S(3600)

struct load {
	const struct timers_kind *kind;
	struct timed *timers;
	int64_t count, insert_ns;
	pthread_barrier_t *ready;
	pthread_t thread;
	bool late; /* not all have fired in time */
};

void timers_fired(struct timed *timed)
{
	timed->late_ns = sync_now() - timed->due_ns;
}

static void measure_insert(struct load *load, void *loop)
{
	int64_t armed = 0, begin = sync_now();
	for (int64_t i = 0; i < load->count; i++)
		load->kind->arm(loop, &load->timers[i], load->timers[i].delay_ns);
	load->insert_ns = sync_now() - begin;
	for (int64_t i = 0; i < load->count; i++)
		armed += load->kind->cancel(loop, &load->timers[i]);
	peer_must_not(armed != load->count, "arming timers");
}

/* Due after the last insertion, so that the inserting is not measured as lateness. */
static void arm_all(struct load *load, void *loop)
{
	int64_t base = sync_now() + 2 * load->insert_ns + load->count * 50;
	for (int64_t i = 0; i < load->count; i++) {
		struct timed *timed = &load->timers[i];
		timed->due_ns = base + timed->delay_ns;
		load->kind->arm(loop, timed, timed->due_ns - sync_now());
	}
}

static void *run_load(void *arg)
{
	struct load *load = arg;
	void *loop = load->kind->open(load->count);
	measure_insert(load, loop); /* warm-up */
	measure_insert(load, loop);
	pthread_barrier_wait(load->ready);
	pthread_barrier_wait(load->ready); /* the CPU time was read between the two */
	arm_all(load, loop);
	load->late = !load->kind->run(loop, load->count, BENCH_PATIENCE_NS);
	load->kind->close(loop);
	return NULL;
}

static struct timed *make_timers(int64_t n)
{
	uint64_t seed = 1; /* the same delays in every run, and in `hive bench` */
	struct timed *timers = calloc((size_t)n, sizeof *timers);
	peer_must_not(!timers, "memory for the timers");
	for (int64_t i = 0; i < n; i++)
		timers[i].delay_ns = peer_next_delay(&seed);
	return timers;
}

static void start_loads(struct load *loads, int32_t threads, struct timed *timers, int64_t n, struct load like)
{
	for (int32_t i = 0; i < threads; i++) {
		loads[i] = like;
		loads[i].timers = timers;
		loads[i].count = n / threads + (i < n % threads);
		timers += loads[i].count;
		peer_must_not(pthread_create(&loads[i].thread, NULL, run_load, &loads[i]) != 0, "pthread_create");
	}
}

static void put_lateness(struct record *result, const struct timed *timers, int64_t n)
{
	static struct stats late;
	stats_reset(&late);
	for (int64_t i = 0; i < n; i++)
		stats_add(&late, timers[i].late_ns);
	peer_put_percentiles(result, "", &late);
	record_metric(result, "min_ns", (double)late.min);
}

int timers_timer(const struct bench_params *params, struct record *result, const struct timers_kind *kind)
{
	static struct load loads[THREADS_MAX];
	pthread_barrier_t ready;
	int64_t slowest = 0;
	uint64_t late = 0;
	struct timed *timers = make_timers(params->n);
	pthread_barrier_init(&ready, NULL, (unsigned)params->threads + 1);
	start_loads(loads, params->threads, timers, params->n, (struct load){ .kind = kind, .ready = &ready });
	pthread_barrier_wait(&ready);
	double before = peer_cpu_seconds();
	pthread_barrier_wait(&ready);
	for (int32_t i = 0; i < params->threads; i++) {
		pthread_join(loads[i].thread, NULL);
		slowest = loads[i].insert_ns > slowest ? loads[i].insert_ns : slowest;
		late += loads[i].late;
	}
	bench_put_rate(result, (double)params->n, slowest);
	put_lateness(result, timers, params->n);
	record_metric(result, "cpu_s", peer_cpu_seconds() - before);
	pthread_barrier_destroy(&ready);
	free(timers);
	return late ? bench_timeout("loops whose timers have fired", (uint64_t)params->threads,
	                            (uint64_t)params->threads - late)
	            : BENCH_OK;
}

static int64_t replace_oldest(const struct timers_kind *kind, void *loop, struct timed *timers, int64_t count)
{
	int64_t armed = 0, oldest = 0;
	for (int64_t i = 0; i < count; i++) {
		armed += kind->cancel(loop, &timers[oldest]);
		kind->arm(loop, &timers[oldest], HOUR_NS + oldest * 100000);
		oldest = oldest + 1 < ARMED ? oldest + 1 : 0;
	}
	return armed;
}

int timers_cancel(const struct bench_params *params, struct record *result, const struct timers_kind *kind)
{
	static struct timed timers[ARMED];
	void *loop = kind->open(ARMED);
	for (int64_t i = 0; i < ARMED; i++)
		kind->arm(loop, &timers[i], HOUR_NS + i * 100000);
	replace_oldest(kind, loop, timers, params->n / 10 + ARMED); /* warm-up */
	int64_t begin = sync_now(), armed = replace_oldest(kind, loop, timers, params->n);
	int64_t took = sync_now() - begin;
	for (int64_t i = 0; i < ARMED; i++)
		kind->cancel(loop, &timers[i]);
	kind->close(loop);
	bench_put_rate(result, (double)params->n, took);
	return armed == params->n ? BENCH_OK
	                          : bench_wrong("timers that were armed", (uint64_t)params->n, (uint64_t)armed);
}
