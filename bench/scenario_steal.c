/* SPDX-License-Identifier: MIT */
#include "rig.h"
#include "tally.h"
#include <stdlib.h>

/* steal: half of the workers are kept full of local tasks, the other half have nothing of their own. A feeder on each
 * loaded worker keeps its local queue filled, but not so full that it spills: then the pool would be measured.       */
#define POLL_NS HIVE_US(100)
#define QUEUED_MOST 128   /* half of the default local queue */
#define QUEUED_LEAST 64   /* feed again below that */
#define WORK_ROUNDS 3000u /* about 1 µs: long enough that a theft is worth its price */

struct home {
	_Alignas(SYNC_LINE) _Atomic int64_t done;
	_Atomic int64_t moved; /* of those, run by another worker */
	_Alignas(SYNC_LINE) int64_t total, fed;
	uint32_t worker;
};

static void burn(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		__asm__ volatile("" : "+r"(i)); /* the compiler must count, not compute */
}

static void work(void *arg)
{
	struct home *home = arg;
	burn(WORK_ROUNDS);
	if (hive_worker_current() != home->worker)
		atomic_fetch_add_explicit(&home->moved, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&home->done, 1, memory_order_relaxed);
	tally_add();
}

static void feed(void *arg)
{
	struct home *home = arg;
	int error = 0;
	int64_t queued = home->fed - atomic_load_explicit(&home->done, memory_order_relaxed);
	if (queued < QUEUED_LEAST)
		for (; queued < QUEUED_MOST && home->fed < home->total && !error; queued++, home->fed++)
			error = hive_post_local(work, home);
	if (!error && home->fed < home->total)
		error = hive_post_self(feed, home); /* in the next beat again */
	if (error)
		tally_fail(error);
}

static int overload(struct rig *rig, struct home *homes, int32_t home_count, int64_t n, int64_t *ret_elapsed_ns)
{
	uint64_t target = tally_total() + (uint64_t)n;
	int64_t begin = sync_now();
	for (int32_t i = 0; i < home_count; i++) {
		struct home *home = &homes[i];
		atomic_store(&home->done, 0), atomic_store(&home->moved, 0);
		home->worker = rig->io[i];
		home->total = n / home_count + (i < n % home_count);
		home->fed = 0;
		int error = hive_post_to(rig->hive, home->worker, feed, home);
		if (error)
			return bench_failed("hive_post_to", error);
	}
	int code = tally_wait(target, BENCH_PATIENCE_NS, POLL_NS);
	*ret_elapsed_ns = sync_now() - begin;
	return code;
}

static void put_shares(const struct rig *rig, const struct home *homes, int32_t home_count, int64_t n,
                       const struct hive_stats *before, struct record *result)
{
	int64_t moved = 0;
	struct hive_stats stats = { 0 };
	for (int32_t i = 0; i < home_count; i++)
		moved += atomic_load(&homes[i].moved);
	hive_stats_read(rig->hive, &stats);
	record_metric(result, "stolen_share", (double)moved / (double)n);
	record_metric(result, "steals", (double)(stats.steals - before->steals));
	record_metric(result, "spills", (double)(stats.spills - before->spills));
}

int bench_steal(const struct bench_params *params, struct record *result)
{
	static struct home warm_up_homes[RIG_IO_MAX], homes[RIG_IO_MAX]; /* a feeder may outlive its last task */
	struct rig rig;
	struct hive_stats before = { 0 };
	int64_t elapsed_ns = 0;
	int32_t home_count = params->threads > 1 ? params->threads / 2 : 1;
	int code = rig_open(&rig, params, params->threads, 0);
	if (code)
		return code;
	sync_sleep_exactly();
	code = overload(&rig, warm_up_homes, home_count, params->n / 10 + 1, &elapsed_ns);
	hive_stats_read(rig.hive, &before);
	if (!code)
		code = overload(&rig, homes, home_count, params->n, &elapsed_ns);
	bench_put_rate(result, (double)params->n, elapsed_ns);
	put_shares(&rig, homes, home_count, params->n, &before, result);
	bench_put_memory(result);
	return rig_close(&rig, code);
}
