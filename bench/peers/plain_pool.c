/* SPDX-License-Identifier: MIT */
#include "plain_pool.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CELLS = 4096, PRODUCERS_MAX = 256, WARM_UP_PINGS = 500, PINGS_MAX = 20000, HOG_CHAINS = 8 };
#define POLL_NS 500000 /* each look costs a wake-up: few of them */
#define PING_IDLE_NS 100000
#define ANSWER_SPIN_NS 3000
#define HOG_CPU_NS 2000000
#define TINY_PERIOD_NS INT64_C(1000000)

/* A cell for each thread, so that the counter is not contended. */
static struct {
	_Alignas(64) _Atomic uint64_t count;
} cells[CELLS];
static atomic_size_t claimed;
static _Thread_local _Atomic uint64_t *mine;

void tally_add(void)
{
	if (!mine)
		mine = &cells[atomic_fetch_add(&claimed, 1) % CELLS].count;
	atomic_store_explicit(mine, atomic_load_explicit(mine, memory_order_relaxed) + 1, memory_order_release);
}

uint64_t tally_total(void)
{
	uint64_t total = 0;
	size_t count = atomic_load(&claimed);
	for (size_t i = 0; i < count && i < CELLS; i++)
		total += atomic_load_explicit(&cells[i].count, memory_order_acquire);
	return total;
}

void tally_wait(uint64_t target, int64_t step_ns)
{
	int64_t limit = plain_now() + PLAIN_PATIENCE_NS;
	for (uint64_t total; (total = tally_total()) != target; plain_sleep_until(plain_now() + step_ns)) {
		if (total > target)
			plain_check("tasks that ran", target, total);
		if (plain_now() > limit)
			plain_lost("tasks to run");
	}
}

static void tally_task(void *unused)
{
	(void)unused;
	tally_add();
}

static void *memory_for(size_t count, size_t size)
{
	void *memory = calloc(count, size);
	if (!memory)
		plain_failed("memory");
	return memory;
}

struct producer {
	struct task_target target;
	pthread_barrier_t *start;
	pthread_t thread;
	int64_t count, begin_ns;
};

static void *produce(void *arg)
{
	struct producer *producer = arg;
	pthread_barrier_wait(producer->start);
	producer->begin_ns = plain_now();
	for (int64_t i = 0; i < producer->count; i++)
		producer->target.post(producer->target.pool, tally_task, NULL);
	return NULL;
}

static int64_t race(struct task_target target, int producers, int64_t n)
{
	struct producer all[PRODUCERS_MAX];
	pthread_barrier_t start;
	uint64_t expected = tally_total() + (uint64_t)n;
	pthread_barrier_init(&start, NULL, (unsigned)producers + 1);
	for (int i = 0; i < producers; i++) {
		all[i] = (struct producer){ target, &start, 0, n / producers + (i < n % producers), 0 };
		if (pthread_create(&all[i].thread, NULL, produce, &all[i]) != 0)
			plain_failed("thread for a producer");
	}
	pthread_barrier_wait(&start);
	tally_wait(expected, POLL_NS);
	int64_t end = plain_now(), begin = end;
	for (int i = 0; i < producers; i++) {
		pthread_join(all[i].thread, NULL);
		begin = all[i].begin_ns < begin ? all[i].begin_ns : begin;
	}
	pthread_barrier_destroy(&start);
	return end - begin;
}

void pool_post(const char *peer, struct plain_options o, struct task_target target)
{
	o.n = o.n ? o.n : 2000000;
	o.producers = o.producers ? o.producers : 1;
	plain_sleep_exactly();
	race(target, o.producers, o.n / 10 + 1);
	plain_begin(peer, &o, (double)o.n, race(target, o.producers, o.n));
	plain_end();
}

struct spawner {
	struct task_target local;
	int64_t count;
};

static void spawn(void *arg)
{
	const struct spawner *spawner = arg;
	for (int64_t i = 0; i < spawner->count; i++)
		spawner->local.post(spawner->local.pool, tally_task, NULL);
	tally_add(); /* it does not look at our memory any more */
}

static int64_t spawn_and_wait(struct task_target target, struct task_target local, int64_t n)
{
	struct spawner spawner = { local, n };
	uint64_t expected = tally_total() + (uint64_t)n + 1;
	int64_t begin = plain_now();
	target.post(target.pool, spawn, &spawner);
	tally_wait(expected, POLL_NS);
	return plain_now() - begin;
}

void pool_spawn_local(const char *peer, struct plain_options o, struct task_target target, struct task_target local)
{
	o.n = o.n ? o.n : 2000000;
	plain_sleep_exactly();
	spawn_and_wait(target, local, o.n / 10 + 1);
	plain_begin(peer, &o, (double)o.n, spawn_and_wait(target, local, o.n));
	plain_end();
}

static struct {
	_Alignas(64) _Atomic int64_t started_ns; /* 0: not yet */
} slot;

static void answer(void *unused)
{
	(void)unused;
	atomic_store_explicit(&slot.started_ns, plain_now(), memory_order_release);
}

/* The habit of whoever asks: 3 us of spinning, then sched_yield(). */
static int64_t await_answer(void)
{
	for (int64_t begin = plain_now();;) {
		int64_t started = atomic_load_explicit(&slot.started_ns, memory_order_acquire);
		if (started)
			return started;
		int64_t waited = plain_now() - begin;
		if (waited > PLAIN_PATIENCE_NS)
			plain_lost("an answer");
		if (waited < ANSWER_SPIN_NS)
			plain_pause();
		else
			sched_yield();
	}
}

/* times NULL: warm-up. */
static void ping(struct task_target target, int64_t count, int64_t idle_ns, int64_t *times)
{
	for (int64_t i = 0; i < count; i++) {
		if (idle_ns > 0)
			plain_sleep_until(plain_now() + idle_ns);
		atomic_store_explicit(&slot.started_ns, 0, memory_order_relaxed);
		int64_t posted = plain_now();
		target.post(target.pool, answer, NULL);
		int64_t took = await_answer() - posted;
		if (times)
			times[i] = took;
	}
}

void pool_ping(const char *peer, struct plain_options o, struct task_target target)
{
	bool hot = strcmp(o.scenario, "ping_hot") == 0;
	int64_t idle_ns = hot ? 0 : PING_IDLE_NS;
	o.n = o.n ? o.n : hot ? 200000 : 5000;
	int64_t *times = memory_for((size_t)o.n, sizeof *times);
	if (!hot)
		plain_sleep_exactly();
	ping(target, hot ? o.n / 10 + WARM_UP_PINGS : WARM_UP_PINGS, idle_ns, NULL);
	int64_t begin = plain_now();
	ping(target, o.n, idle_ns, times);
	plain_begin(peer, &o, (double)o.n, plain_now() - begin);
	plain_percentiles("", times, (size_t)o.n);
	plain_end();
	free(times);
}

static int64_t flood(struct task_target target, int64_t n)
{
	uint64_t expected = tally_total() + (uint64_t)n;
	int64_t begin = plain_now();
	for (int64_t i = 0; i < n; i++)
		target.post(target.pool, tally_task, NULL);
	tally_wait(expected, 50000);
	return plain_now() - begin;
}

void pool_post_to(const char *peer, struct plain_options o, struct task_target target)
{
	static int64_t times[PINGS_MAX];
	o.n = o.n ? o.n : 2000000;
	int64_t pings = o.n / 10 < PINGS_MAX ? o.n / 10 + 1 : PINGS_MAX;
	plain_sleep_exactly();
	flood(target, o.n / 10 + 1);
	int64_t took = flood(target, o.n);
	ping(target, pings / 10 + 1, 0, NULL);
	ping(target, pings, 0, times);
	plain_begin(peer, &o, (double)o.n, took);
	plain_percentiles("", times, (size_t)pings);
	plain_end();
}

static struct {
	struct task_target target;
	atomic_bool stop;
	atomic_int chains;
	_Atomic int64_t done;
} hogs;

static int64_t thread_cpu_ns(void)
{
	struct timespec used;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

/* CPU time, not time of day: a hog that is interrupted has to make up for it. */
static void hog(void *unused)
{
	int64_t until = thread_cpu_ns() + HOG_CPU_NS;
	(void)unused;
	while (thread_cpu_ns() < until)
		for (volatile unsigned i = 0; i < 5000; i++)
			; /* some 10 us between two looks at the clock, which is a system call */
	atomic_fetch_add_explicit(&hogs.done, 1, memory_order_relaxed);
	if (atomic_load(&hogs.stop))
		atomic_fetch_sub(&hogs.chains, 1);
	else
		hogs.target.post(hogs.target.pool, hog, NULL);
}

static void hogs_start(struct task_target target)
{
	hogs.target = target;
	atomic_store(&hogs.chains, HOG_CHAINS);
	for (int i = 0; i < HOG_CHAINS; i++)
		target.post(target.pool, hog, NULL);
}

static void hogs_stop(void)
{
	int64_t limit = plain_now() + PLAIN_PATIENCE_NS;
	atomic_store(&hogs.stop, true);
	for (; atomic_load(&hogs.chains) > 0; plain_sleep_until(plain_now() + 1000000))
		if (plain_now() > limit)
			plain_lost("the hogs' end");
}

static double hogs_alone(double seconds)
{
	int64_t begin = plain_now(), done = atomic_load(&hogs.done);
	plain_sleep_until(begin + (int64_t)(seconds * 1e9));
	return (double)(atomic_load(&hogs.done) - done) * 1e9 / (double)(plain_now() - begin);
}

struct tiny {
	int64_t due_ns, posted_ns, started_ns;
};

static void run_tiny(void *arg)
{
	struct tiny *tiny = arg;
	tiny->started_ns = plain_now();
	tally_add();
}

/* By the clock: one that was posted late is late from when it was due. */
static void post_tiny(struct task_target target, struct tiny *all, int64_t count)
{
	int64_t first = plain_now() + TINY_PERIOD_NS;
	for (int64_t i = 0; i < count; i++) {
		all[i].due_ns = first + i * TINY_PERIOD_NS;
		plain_sleep_until(all[i].due_ns);
		all[i].posted_ns = plain_now();
		target.post(target.pool, run_tiny, &all[i]);
	}
}

static void put_tiny(const struct tiny *all, int64_t count)
{
	int64_t *run = memory_for((size_t)count, sizeof *run), *whole = memory_for((size_t)count, sizeof *whole);
	for (int64_t i = 0; i < count; i++) {
		run[i] = all[i].started_ns - all[i].posted_ns;
		whole[i] = all[i].started_ns - all[i].due_ns;
	}
	plain_percentiles("", run, (size_t)count);
	plain_percentiles("e2e_", whole, (size_t)count);
	free(run);
	free(whole);
}

void pool_mixed(const char *peer, struct plain_options o, struct task_target small, struct task_target large)
{
	o.seconds = o.seconds > 0 ? o.seconds : 3;
	o.n = (int64_t)(o.seconds * 1e9) / TINY_PERIOD_NS + 1;
	struct tiny *all = memory_for((size_t)o.n, sizeof *all);
	plain_sleep_exactly();
	hogs_start(large);
	hogs_alone(.2); /* warm-up */
	double alone = hogs_alone(o.seconds / 2);
	uint64_t expected = tally_total() + (uint64_t)o.n;
	int64_t begin = plain_now(), done = atomic_load(&hogs.done);
	post_tiny(small, all, o.n);
	int64_t took = plain_now() - begin;
	double beside = (double)(atomic_load(&hogs.done) - done) * 1e9 / (double)took;
	tally_wait(expected, 1000000);
	alone = (alone + hogs_alone(o.seconds / 2)) / 2;
	hogs_stop();
	plain_begin(peer, &o, (double)o.n, took);
	put_tiny(all, o.n);
	plain_field("hogs_per_s", beside);
	plain_field("hogs_alone_per_s", alone);
	plain_field("hogs_ratio", beside / alone);
	plain_end();
	free(all);
}
