/* SPDX-License-Identifier: MIT */
#include "peer_pool.h"
#include <pthread.h>
#include <stdlib.h>

enum { PRODUCERS_MAX = 256, WARM_UP_PINGS = 500, PINGS_MAX = 20000, HOG_CHAINS = 8 };
#define POLL_NS HIVE_US(500) /* each look costs a wake-up: few of them */
#define HOG_CPU_NS HIVE_MS(2)
#define TINY_PERIOD_NS HIVE_MS(1)

static int wait_for_tasks(uint64_t target, int64_t step_ns)
{
	return tally_wait(target, BENCH_PATIENCE_NS, step_ns);
}

/* ---- post ---- */

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
	producer->begin_ns = sync_now();
	for (int64_t i = 0; i < producer->count; i++)
		producer->target.post(producer->target.pool, tally_task, NULL);
	return NULL;
}

static int race(struct task_target target, int32_t producers, int64_t n, int64_t *ret_elapsed_ns)
{
	static struct producer all[PRODUCERS_MAX];
	pthread_barrier_t start;
	uint64_t expected = tally_total() + (uint64_t)n;
	pthread_barrier_init(&start, NULL, (unsigned)producers + 1);
	for (int32_t i = 0; i < producers; i++) {
		all[i] = (struct producer){ target, &start, 0, n / producers + (i < n % producers), 0 };
		peer_must_not(pthread_create(&all[i].thread, NULL, produce, &all[i]) != 0, "pthread_create");
	}
	pthread_barrier_wait(&start);
	int code = wait_for_tasks(expected, POLL_NS);
	if (code)
		return code;
	int64_t end = sync_now(), begin = end;
	for (int32_t i = 0; i < producers; i++) {
		pthread_join(all[i].thread, NULL);
		begin = all[i].begin_ns < begin ? all[i].begin_ns : begin;
	}
	pthread_barrier_destroy(&start);
	*ret_elapsed_ns = end - begin;
	return BENCH_OK;
}

int pool_post(const struct bench_params *params, struct record *result, struct task_target target)
{
	int64_t took = 0;
	sync_sleep_exactly();
	int code = race(target, params->producers, params->n / 10 + 1, &took); /* warm-up */
	if (!code)
		code = race(target, params->producers, params->n, &took);
	bench_put_rate(result, (double)params->n, took);
	return code;
}

/* ---- spawn_local ---- */

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

static int spawn_and_wait(struct task_target target, struct task_target local, int64_t n, int64_t *ret_elapsed_ns)
{
	static struct spawner spawner; /* static: who comes too late must not hit a dead stack */
	uint64_t expected = tally_total() + (uint64_t)n + 1;
	int64_t begin = sync_now();
	spawner = (struct spawner){ local, n };
	target.post(target.pool, spawn, &spawner);
	int code = wait_for_tasks(expected, POLL_NS);
	*ret_elapsed_ns = sync_now() - begin;
	return code;
}

int pool_spawn_local(const struct bench_params *params, struct record *result, struct task_target target,
                     struct task_target local)
{
	int64_t took = 0;
	sync_sleep_exactly();
	int code = spawn_and_wait(target, local, params->n / 10 + 1, &took); /* warm-up */
	if (!code)
		code = spawn_and_wait(target, local, params->n, &took);
	bench_put_rate(result, (double)params->n, took);
	return code;
}

/* ---- ping, ping_hot, post_to ---- */

static struct ping_slot *asked; /* a task without an argument: some peers need no memory for it then */

static void answer(void *unused)
{
	(void)unused;
	ping_answer(asked);
}

static int ask(void *target, struct ping_slot *slot)
{
	const struct task_target *pool = target;
	asked = slot;
	pool->post(pool->pool, answer, NULL);
	return 0;
}

static int ping(struct task_target target, int64_t warm_up, int64_t count, int64_t idle_ns, struct stats *stats)
{
	struct ping_target asked = { ask, &target };
	int code = ping_measure(&asked, warm_up, idle_ns, NULL);
	stats_reset(stats);
	return code ? code : ping_measure(&asked, count, idle_ns, stats);
}

static int measure_ping(const struct bench_params *params, struct record *result, struct task_target target,
                        int64_t warm_up, int64_t idle_ns)
{
	static struct stats stats;
	int64_t begin = sync_now();
	int code = ping(target, warm_up, params->n, idle_ns, &stats);
	bench_put_rate(result, (double)(params->n + warm_up), sync_now() - begin);
	peer_put_percentiles(result, "", &stats);
	return code;
}

int pool_ping(const struct bench_params *params, struct record *result, struct task_target target)
{
	sync_sleep_exactly();
	return measure_ping(params, result, target, WARM_UP_PINGS, PING_IDLE_NS);
}

int pool_ping_hot(const struct bench_params *params, struct record *result, struct task_target target)
{
	return measure_ping(params, result, target, params->n / 10 + WARM_UP_PINGS, 0);
}

static int flood(struct task_target target, int64_t n, int64_t *ret_elapsed_ns)
{
	uint64_t expected = tally_total() + (uint64_t)n;
	int64_t begin = sync_now();
	for (int64_t i = 0; i < n; i++)
		target.post(target.pool, tally_task, NULL);
	int code = wait_for_tasks(expected, HIVE_US(50));
	*ret_elapsed_ns = sync_now() - begin;
	return code;
}

int pool_post_to(const struct bench_params *params, struct record *result, struct task_target target)
{
	static struct stats stats;
	int64_t pings = params->n / 10 < PINGS_MAX ? params->n / 10 + 1 : PINGS_MAX, took = 0;
	sync_sleep_exactly();
	int code = flood(target, params->n / 10 + 1, &took); /* warm-up */
	if (!code)
		code = flood(target, params->n, &took);
	if (!code)
		code = ping(target, pings / 10 + 1, pings, 0, &stats);
	bench_put_rate(result, (double)params->n, took);
	peer_put_percentiles(result, "", &stats);
	return code;
}

/* ---- mixed ---- */

static struct {
	struct task_target target;
	atomic_bool stop;
	atomic_int chains;
	_Atomic int64_t done;
} hogs;

static void hog(void *unused)
{
	(void)unused;
	peer_burn(HOG_CPU_NS);
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

static int hogs_stop(void)
{
	int64_t limit = sync_now() + BENCH_PATIENCE_NS;
	atomic_store(&hogs.stop, true);
	for (; atomic_load(&hogs.chains) > 0; sync_sleep(HIVE_MS(1)))
		if (sync_now() > limit)
			return bench_timeout("the hogs' end", 0, (uint64_t)atomic_load(&hogs.chains));
	return BENCH_OK;
}

static double hogs_alone(double seconds)
{
	int64_t begin = sync_now(), done = atomic_load(&hogs.done);
	sync_sleep((int64_t)(seconds * 1e9));
	return (double)(atomic_load(&hogs.done) - done) * 1e9 / (double)(sync_now() - begin);
}

struct tiny {
	int64_t due_ns, posted_ns, started_ns;
};

static void run_tiny(void *arg)
{
	struct tiny *tiny = arg;
	tiny->started_ns = sync_now();
	tally_add();
}

/* By the clock: one that was posted late is late from when it was due. */
static void post_tiny(struct task_target target, struct tiny *all, int64_t count)
{
	int64_t first = sync_now() + TINY_PERIOD_NS;
	for (int64_t i = 0; i < count; i++) {
		all[i].due_ns = first + i * TINY_PERIOD_NS;
		sync_sleep_until(all[i].due_ns);
		all[i].posted_ns = sync_now();
		target.post(target.pool, run_tiny, &all[i]);
	}
}

static void put_tiny(struct record *result, const struct tiny *all, int64_t count)
{
	static struct stats run, whole;
	stats_reset(&run);
	stats_reset(&whole);
	for (int64_t i = 0; i < count; i++) {
		stats_add(&run, all[i].started_ns - all[i].posted_ns);
		stats_add(&whole, all[i].started_ns - all[i].due_ns);
	}
	peer_put_percentiles(result, "", &run);
	peer_put_percentiles(result, "e2e_", &whole);
}

int pool_mixed(const struct bench_params *params, struct record *result, struct task_target small,
               struct task_target large)
{
	int64_t count = (int64_t)(params->seconds * 1e9) / TINY_PERIOD_NS + 1;
	struct tiny *all = calloc((size_t)count, sizeof *all);
	peer_must_not(!all, "memory for the tasks");
	sync_sleep_exactly();
	hogs_start(large);
	hogs_alone(.2); /* warm-up */
	double alone = hogs_alone(params->seconds / 2);
	uint64_t expected = tally_total() + (uint64_t)count;
	int64_t begin = sync_now(), done = atomic_load(&hogs.done);
	post_tiny(small, all, count);
	int64_t took = sync_now() - begin;
	double beside = (double)(atomic_load(&hogs.done) - done) * 1e9 / (double)took;
	int code = wait_for_tasks(expected, HIVE_MS(1));
	if (code)
		return code; /* they may come still: their memory stays */
	alone = (alone + hogs_alone(params->seconds / 2)) / 2;
	code = hogs_stop();
	bench_put_rate(result, (double)count, took);
	put_tiny(result, all, count);
	record_metric(result, "hogs_per_s", beside);
	record_metric(result, "hogs_alone_per_s", alone);
	record_metric(result, "hogs_ratio", beside / alone);
	free(all);
	return code;
}
