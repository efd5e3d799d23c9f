/* SPDX-License-Identifier: MIT */
#include "ping.h"
#include "rig.h"
#include "tally.h"

/* post_to: one outside thread, one named worker (the last one, so that with T > 1 it is not the main worker). First a
 * flood for the throughput; then one at a time for the latency, since in a flood it would measure the queue.        */
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

int bench_post_to(const struct bench_params *params, struct record *result)
{
	static struct stats stats;
	struct rig rig;
	int64_t elapsed_ns = 0, pings = params->n / 10 < PINGS_MAX ? params->n / 10 + 1 : PINGS_MAX;
	stats_reset(&stats);
	int code = rig_open(&rig, params, params->threads, 0);
	if (code)
		return code;
	sync_sleep_exactly();
	struct addressee addressee = { rig.hive, rig.io[rig.io_count - 1] };
	const struct ping_target target = { post_answer, &addressee };
	code = flood(&addressee, params->n / 10 + 1, &elapsed_ns);
	if (!code)
		code = flood(&addressee, params->n, &elapsed_ns);
	bench_put_rate(result, (double)params->n, elapsed_ns);
	if (!code)
		code = ping_measure(&target, pings / 10 + 1, 0, NULL);
	if (!code)
		code = ping_measure(&target, pings, 0, &stats);
	bench_put_percentiles(result, &stats);
	bench_put_memory(result);
	return rig_close(&rig, code);
}
