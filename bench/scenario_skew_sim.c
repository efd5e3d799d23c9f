/* SPDX-License-Identifier: MIT */
#include "bench.h"
#include "sync.h"
#include <rophive/sim.h>
#include <stdio.h>

/* skew_sim: simulated machines of 4, 16 and 64 workers. One worker posts n tasks for each of them in bursts; one in ten takes 100 us,
 * the others 1 us, a post 50 ns, a beat 100 ns. When the last one ends, in virtual time: with two choices and stealing, with either
 * alone, and through the pool. It depends on the seeds alone, and not on the machine that it runs on. No warm-up: time
 * is virtual, and a seed gives the same run each time.                                                                      */
#define BURST 24
#define GAP_NS HIVE_US(250)
#define SEEDS 32
#define WORKERS_LEAST 4
#define WORKERS_MOST 64

static const struct policy {
	const char *name;
	enum hive_placement placement;
	int32_t steal_attempts;
	bool local; /* posts stay with who posts */
} policies[] = { { "both", HIVE_PLACE_TWO_CHOICES, 0, false },
	         { "choices", HIVE_PLACE_TWO_CHOICES, HIVE_OFF, false },
	         { "stealing", HIVE_PLACE_POOL, 0, true },
	         { "pool", HIVE_PLACE_POOL, 0, false } };

#define POLICIES (sizeof policies / sizeof *policies)

static struct {
	const struct policy *policy;
	struct hive_sim *sim;
	struct hive *hive;
	uint64_t rng;
	uint32_t workers;
	int64_t left, ran, end_ns;
	int error;
} skew;

static void fail(int error)
{
	if (error && !skew.error)
		skew.error = error;
}

static void work(void *arg)
{
	fail(hive_sim_spend(skew.sim, arg ? HIVE_US(100) : HIVE_US(1)));
	skew.ran++;
	if (hive_now(skew.hive) > skew.end_ns)
		skew.end_ns = hive_now(skew.hive);
}

static void post(void)
{
	skew.rng = skew.rng * 6364136223846793005u + 1442695040888963407u;
	void *length = (skew.rng >> 33) % 10 == 0 ? &skew : NULL;
	fail(skew.policy->local ? hive_post_local(work, length) : hive_post(skew.hive, work, length));
	fail(hive_sim_spend(skew.sim, 50));
}

static void burst(void *arg)
{
	for (uint32_t i = 0; i < BURST * skew.workers && skew.left > 0; i++, skew.left--)
		post();
	if (skew.left > 0)
		fail(hive_post_self_after(GAP_NS, burst, arg, NULL));
}

static int load(int64_t n)
{
	int64_t begin = skew.end_ns = hive_now(skew.hive);
	skew.left = n, skew.ran = 0;
	fail(hive_post_to(skew.hive, HIVE_WORKER_MAIN, burst, NULL));
	hive_sim_advance(skew.sim, HIVE_FOREVER);
	skew.end_ns -= begin;
	if (skew.error)
		return bench_failed("a simulated task", skew.error);
	return skew.ran == n ? BENCH_OK : bench_wrong("tasks run", (uint64_t)n, (uint64_t)skew.ran);
}

static int simulate(uint64_t seed, int64_t n)
{
	struct hive_sim_options how = { .seed = seed, .beat_ns = 100 };
	struct hive_worker_options io = { .local_budget = 1, .steal_attempts = skew.policy->steal_attempts };
	struct hive_options options = { .io_workers = (int32_t)skew.workers,
		                        .io = &io,
		                        .placement = skew.policy->placement };
	int error = hive_sim_create(&how, &skew.sim);
	if (error)
		return bench_failed("hive_sim_create", error);
	options.host = hive_sim_host(skew.sim);
	error = hive_create(&options, &skew.hive);
	if (!error)
		error = hive_start(skew.hive);
	if (error)
		return bench_failed("hive_start", error);
	skew.rng = seed;
	int code = load(n);
	hive_stop(skew.hive, HIVE_NOW, HIVE_FOREVER);
	hive_join(skew.hive, HIVE_FOREVER);
	hive_destroy(skew.hive);
	hive_sim_destroy(skew.sim);
	return code;
}

/* The mean end of each policy, and how the first compares with the best of the others alone. */
static int compare(uint32_t workers, int64_t n, struct record *result, double *worst)
{
	double ends[POLICIES];
	char name[32];
	int code = BENCH_OK;
	skew.workers = workers;
	for (size_t i = 0; i < POLICIES && !code; i++) {
		skew.policy = &policies[i];
		ends[i] = 0;
		for (uint64_t seed = 1; seed <= SEEDS && !code; seed++) {
			code = simulate(seed, n * workers);
			ends[i] += (double)skew.end_ns / SEEDS;
		}
		snprintf(name, sizeof name, "%s_%u_ns", policies[i].name, workers);
		record_metric(result, name, ends[i]);
		if (i > 0 && ends[0] / ends[i] > *worst)
			*worst = ends[0] / ends[i];
	}
	return code;
}

int bench_skew_sim(const struct bench_params *params, struct record *result)
{
	int code = BENCH_OK;
	int64_t begin = sync_now(), tasks = 0;
	double worst = 0;
	for (uint32_t workers = WORKERS_LEAST; workers <= WORKERS_MOST && !code; workers *= 4) {
		code = compare(workers, params->n, result, &worst);
		tasks += params->n * workers * SEEDS * (int64_t)POLICIES;
	}
	record_metric(result, "worst_ratio", worst);
	bench_put_rate(result, (double)tasks, sync_now() - begin);
	bench_put_memory(result);
	return code;
}
