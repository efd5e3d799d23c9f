/* SPDX-License-Identifier: MIT */
#include "ping.h"
#include "rig.h"
#include "tally.h"

/* post_to: one outside thread, one named worker (the last one, so that with T > 1 it is not the main worker). First a
 * flood for the throughput; then one at a time for the latency, since in a flood it would measure the queue. With --mesh, on or off, it is
 * the first worker that posts, of two at least: outside threads have no lanes.                                      */
#define POLL_NS HIVE_US(50)
#define PINGS_MAX 20000

struct addressee {
	struct hive *hive;
	uint32_t worker;
};

static void answer_task(void *arg)
{
	ping_answer(arg);
}

static int post_answer(void *arg, struct ping_slot *slot)
{
	const struct addressee *addressee = arg;
	return hive_post_to(addressee->hive, addressee->worker, answer_task, slot);
}

static int flood(const struct addressee *addressee, int64_t n, int64_t *ret_elapsed_ns)
{
	uint64_t target = tally_total() + (uint64_t)n;
	int64_t begin = sync_now();
	for (int64_t i = 0; i < n; i++) {
		int error = hive_post_to(addressee->hive, addressee->worker, tally_task, NULL);
		if (error)
			return bench_failed("hive_post_to", error);
	}
	int code = tally_wait(target, BENCH_PATIENCE_NS, POLL_NS);
	*ret_elapsed_ns = sync_now() - begin;
	return code;
}

struct work { /* of whoever posts */
	struct addressee addressee;
	int64_t n;
	struct stats *stats;
	int64_t elapsed_ns;
	int code;
	_Atomic int64_t done;
};

static void do_work(void *arg)
{
	struct work *work = arg;
	const struct ping_target target = { post_answer, &work->addressee };
	int64_t pings = work->n / 10 < PINGS_MAX ? work->n / 10 + 1 : PINGS_MAX;
	int code = flood(&work->addressee, work->n / 10 + 1, &work->elapsed_ns);
	if (!code)
		code = flood(&work->addressee, work->n, &work->elapsed_ns);
	if (!code)
		code = ping_measure(&target, pings / 10 + 1, 0, NULL);
	if (!code)
		code = ping_measure(&target, pings, 0, work->stats);
	work->code = code;
	atomic_store_explicit(&work->done, 1, memory_order_release);
}

static int work_on_a_worker(struct rig *rig, struct work *work)
{
	int error = hive_post_to(rig->hive, rig->io[0], do_work, work);
	if (error)
		return bench_failed("hive_post_to", error);
	while (!atomic_load_explicit(&work->done, memory_order_acquire))
		sync_sleep(HIVE_MS(1)); /* it has limits of its own */
	return work->code;
}

int bench_post_to(const struct bench_params *params, struct record *result)
{
	static struct stats stats;
	bool on_a_worker = params->mesh != HIVE_MESH_DEFAULT;
	struct rig rig;
	stats_reset(&stats);
	int code = rig_open(&rig, params, on_a_worker && params->threads < 2 ? 2 : params->threads, 0);
	if (code)
		return code;
	static struct work work; /* static: a worker may be at it when we give up */
	work = (struct work){ .addressee = { rig.hive, rig.io[rig.io_count - 1] }, .n = params->n, .stats = &stats };
	if (on_a_worker) {
		code = work_on_a_worker(&rig, &work);
	} else {
		sync_sleep_exactly();
		do_work(&work);
		code = work.code;
	}
	bench_put_rate(result, (double)params->n, work.elapsed_ns);
	bench_put_percentiles(result, &stats);
	bench_put_memory(result);
	return rig_close(&rig, code);
}
