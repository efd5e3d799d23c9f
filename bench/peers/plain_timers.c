/* SPDX-License-Identifier: MIT */
#include "plain_timers.h"
#include <pthread.h>
#include <stdlib.h>

enum { ARMED = 10000, THREADS_MAX = 256 };
#define SHORTEST_NS INT64_C(1000000)
#define SPREAD_NS INT64_C(999000000)
#define HOUR_NS INT64_C(3600000000000)

struct load {
	const struct timers_kind *kind;
	struct timed *timers;
	int64_t count, insert_ns;
	pthread_barrier_t *ready;
	pthread_t thread;
};

void timers_fired(struct timed *timed)
{
	timed->late_ns = plain_now() - timed->due_ns;
}

static void measure_insert(struct load *load, void *loop)
{
	int64_t armed = 0, begin = plain_now();
	for (int64_t i = 0; i < load->count; i++)
		load->kind->arm(loop, &load->timers[i], load->timers[i].delay_ns);
	load->insert_ns = plain_now() - begin;
	for (int64_t i = 0; i < load->count; i++)
		armed += load->kind->cancel(loop, &load->timers[i]);
	plain_check("timers that were armed", (uint64_t)load->count, (uint64_t)armed);
}

/* Due after the last insertion, so that the inserting is not measured as lateness. */
static void arm_all(struct load *load, void *loop)
{
	int64_t base = plain_now() + 2 * load->insert_ns + load->count * 50;
	for (int64_t i = 0; i < load->count; i++) {
		struct timed *timed = &load->timers[i];
		timed->due_ns = base + timed->delay_ns;
		load->kind->arm(loop, timed, timed->due_ns - plain_now());
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
	if (!load->kind->run(loop, load->count, PLAIN_PATIENCE_NS))
		plain_lost("timers to fire");
	load->kind->close(loop);
	return NULL;
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
	uint64_t seed = 1; /* the same delays in every run, and in `hive bench` */
	struct timed *timers = calloc((size_t)n, sizeof *timers);
	if (!timers)
		plain_failed("memory for the timers");
	for (int64_t i = 0; i < n; i++)
		timers[i].delay_ns = SHORTEST_NS + (int64_t)(next_random(&seed) % (uint64_t)SPREAD_NS);
	return timers;
}

static void start_loads(struct load *loads, int threads, struct timed *timers, int64_t n, struct load like)
{
	for (int i = 0; i < threads; i++) {
		loads[i] = like;
		loads[i].timers = timers;
		loads[i].count = n / threads + (i < n % threads);
		timers += loads[i].count;
		if (pthread_create(&loads[i].thread, NULL, run_load, &loads[i]) != 0)
			plain_failed("thread for a loop");
	}
}

static void put_lateness(struct timed *timers, int64_t n)
{
	int64_t *late = calloc((size_t)n, sizeof *late);
	if (!late)
		plain_failed("memory for the times");
	for (int64_t i = 0; i < n; i++)
		late[i] = timers[i].late_ns;
	plain_percentiles("", late, (size_t)n); /* sorted from here on */
	plain_field("min_ns", (double)late[0]);
	free(late);
}

void timers_timer(const char *peer, struct plain_options o, const struct timers_kind *kind)
{
	static struct load loads[THREADS_MAX];
	pthread_barrier_t ready;
	int64_t slowest = 0;
	o.n = o.n ? o.n : 100000;
	struct timed *timers = make_timers(o.n);
	pthread_barrier_init(&ready, NULL, (unsigned)o.threads + 1);
	start_loads(loads, o.threads, timers, o.n, (struct load){ .kind = kind, .ready = &ready });
	pthread_barrier_wait(&ready);
	double before = plain_cpu_seconds();
	pthread_barrier_wait(&ready);
	for (int i = 0; i < o.threads; i++) {
		pthread_join(loads[i].thread, NULL);
		slowest = loads[i].insert_ns > slowest ? loads[i].insert_ns : slowest;
	}
	double used = plain_cpu_seconds() - before;
	plain_begin(peer, &o, (double)o.n, slowest);
	put_lateness(timers, o.n);
	plain_field("cpu_s", used);
	plain_end();
	pthread_barrier_destroy(&ready);
	free(timers);
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

void timers_cancel(const char *peer, struct plain_options o, const struct timers_kind *kind)
{
	static struct timed timers[ARMED];
	o.n = o.n ? o.n : 5000000;
	void *loop = kind->open(ARMED);
	for (int64_t i = 0; i < ARMED; i++)
		kind->arm(loop, &timers[i], HOUR_NS + i * 100000);
	replace_oldest(kind, loop, timers, o.n / 10 + ARMED); /* warm-up */
	int64_t begin = plain_now(), armed = replace_oldest(kind, loop, timers, o.n);
	int64_t took = plain_now() - begin;
	plain_check("timers that were armed", (uint64_t)o.n, (uint64_t)armed);
	for (int64_t i = 0; i < ARMED; i++)
		kind->cancel(loop, &timers[i]);
	kind->close(loop);
	plain_begin(peer, &o, (double)o.n, took);
	plain_end();
}
