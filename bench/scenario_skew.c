/* SPDX-License-Identifier: MIT */
#include "rig.h"
#include "sync.h"
#include <stdlib.h>

/* skew: T workers, more than there are CPUs. The main worker posts n tasks in bursts; one in ten takes about 100 us of CPU, the others
 * 1 us. How long until the last has ended, with two choices and stealing, with either alone, and through the pool. Four hives live
 * side by side and are loaded in turns, so that what else the machine does befalls all alike; the ratios are medians over the
 * rounds. Each task leaves a result of its own, and all of them are checked.                                              */
#define ROUNDS 15
#define BURST 256
#define GAP_NS HIVE_MS(1)
#define SHORT_ROUNDS 3000u
#define LONG_ROUNDS 300000u

static const struct policy {
	const char *name;
	enum hive_placement placement;
	bool no_stealing, local;
} policies[] = { { "both", HIVE_PLACE_TWO_CHOICES, false, false },
	         { "choices", HIVE_PLACE_TWO_CHOICES, true, false },
	         { "stealing", HIVE_PLACE_POOL, false, true },
	         { "pool", HIVE_PLACE_POOL, false, false } };

#define POLICIES (sizeof policies / sizeof *policies)

struct cell {
	uint32_t rounds, runs;
};

static struct {
	struct rig rigs[POLICIES];
	struct hive_stats before[POLICIES];
	struct cell *cells;
	int64_t n, posted;
	const struct policy *policy;
	struct rig *rig;
	_Alignas(SYNC_LINE) _Atomic int64_t done;
	_Atomic int64_t end_ns, error;
} skew;

static void work(void *arg)
{
	struct cell *cell = arg;
	for (unsigned i = 0; i < cell->rounds; i++)
		__asm__ volatile("" : "+r"(i)); /* the compiler must count, not compute */
	cell->runs++;
	if (atomic_fetch_add_explicit(&skew.done, 1, memory_order_acq_rel) + 1 == skew.n)
		atomic_store(&skew.end_ns, sync_now());
}

static void burst(void *arg)
{
	int error = 0;
	for (int i = 0; i < BURST && skew.posted < skew.n && !error; i++) {
		struct cell *cell = &skew.cells[skew.posted++];
		error = skew.policy->local ? hive_post_local(work, cell) : hive_post(skew.rig->hive, work, cell);
	}
	if (!error && skew.posted < skew.n)
		error = hive_post_self_after(GAP_NS, burst, arg, NULL);
	if (error)
		atomic_store(&skew.error, error);
}

static int check(uint32_t runs)
{
	for (int64_t i = 0; i < skew.n; i++)
		if (skew.cells[i].runs != runs)
			return bench_wrong("runs of a task", runs, skew.cells[i].runs);
	return BENCH_OK;
}

/* The same tasks in the same order each time. */
static int turn(size_t policy, double *ret_ns)
{
	skew.policy = &policies[policy];
	skew.rig = &skew.rigs[policy];
	skew.posted = 0;
	atomic_store(&skew.done, 0), atomic_store(&skew.end_ns, 0);
	int64_t begin = sync_now();
	int error = hive_post_to(skew.rig->hive, HIVE_WORKER_MAIN, burst, NULL);
	if (error)
		return bench_failed("hive_post_to", error);
	while (!atomic_load(&skew.end_ns) && !atomic_load(&skew.error)) {
		if (sync_now() - begin > BENCH_PATIENCE_NS)
			return bench_timeout("tasks", (uint64_t)skew.n, (uint64_t)atomic_load(&skew.done));
		sync_sleep(HIVE_US(500));
	}
	*ret_ns = (double)(atomic_load(&skew.end_ns) - begin);
	return atomic_load(&skew.error) ? bench_failed("a post", (int)atomic_load(&skew.error)) : BENCH_OK;
}

static int open_all(const struct bench_params *params)
{
	int code = BENCH_OK;
	for (size_t i = 0; i < POLICIES && !code; i++) {
		struct bench_params its = *params;
		its.placement = policies[i].placement;
		its.no_stealing = policies[i].no_stealing;
		code = rig_open(&skew.rigs[i], &its, params->threads, 0);
	}
	return code;
}

static void fill(uint64_t seed)
{
	for (int64_t i = 0; i < skew.n; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		skew.cells[i].rounds = (seed >> 33) % 10 == 0 ? LONG_ROUNDS : SHORT_ROUNDS;
	}
}

static void put(struct record *result, double times[POLICIES][ROUNDS])
{
	char name[32];
	double ratios[ROUNDS], both[ROUNDS], worst = 0;
	for (size_t i = 0; i < ROUNDS; i++)
		both[i] = times[0][i];
	for (size_t i = 0; i < POLICIES; i++) {
		struct hive_stats stats = { 0 };
		for (size_t round = 0; round < ROUNDS; round++)
			ratios[round] = both[round] / times[i][round];
		snprintf(name, sizeof name, "both_by_%s", policies[i].name);
		double ratio = stats_median(ratios, ROUNDS);
		if (i > 0)
			record_metric(result, name, ratio);
		worst = i > 0 && ratio > worst ? ratio : worst;
		snprintf(name, sizeof name, "%s_ns", policies[i].name);
		record_metric(result, name, stats_median(times[i], ROUNDS));
		hive_stats_read(skew.rigs[i].hive, &stats);
		snprintf(name, sizeof name, "%s_wakes_per_million", policies[i].name);
		record_metric(result, name,
		              (double)(stats.wakes - skew.before[i].wakes) * 1e6 / ((double)skew.n * ROUNDS));
	}
	record_metric(result, "worst_ratio", worst);
}

static int run(struct record *result)
{
	static double times[POLICIES][ROUNDS];
	double warm_up_ns;
	int code = BENCH_OK;
	for (size_t i = 0; i < POLICIES && !code; i++) {
		code = turn(i, &warm_up_ns);
		hive_stats_read(skew.rigs[i].hive, &skew.before[i]);
	}
	for (size_t round = 0; round < ROUNDS && !code; round++)
		for (size_t i = 0; i < POLICIES && !code; i++) {
			size_t policy = (i + round) % POLICIES; /* nobody always comes after the same one */
			code = turn(policy, &times[policy][round]);
		}
	if (!code)
		code = check(POLICIES * (ROUNDS + 1));
	if (!code)
		put(result, times);
	return code;
}

int bench_skew(const struct bench_params *params, struct record *result)
{
	skew.n = params->n;
	skew.cells = calloc((size_t)skew.n, sizeof *skew.cells);
	if (!skew.cells)
		return bench_failed("cells", -ENOMEM);
	fill(1);
	int code = open_all(params);
	if (code)
		return code;
	sync_sleep_exactly();
	int64_t begin = sync_now();
	code = run(result);
	bench_put_rate(result, (double)(skew.n * (int64_t)POLICIES * (ROUNDS + 1)), sync_now() - begin);
	bench_put_memory(result);
	for (size_t i = 0; i < POLICIES && code != BENCH_TIMEOUT; i++)
		code = rig_close(&skew.rigs[i], code);
	free(skew.cells);
	return code;
}
