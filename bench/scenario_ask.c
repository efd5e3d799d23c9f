/* SPDX-License-Identifier: MIT */
#include "fibers.h"

/* ask: a fiber in an inner loop asks n times whether its slice is over, and yields when it is; beside it the same loop without the
 * question.                                                                                                                   */
struct loop {
	int64_t n, asking_ns, bare_ns;
	uint64_t sum, yields;
};

static uint64_t step(uint64_t x)
{
	return x * UINT64_C(6364136223846793005) + 1;
}

static int run_loops(void *arg)
{
	struct loop *loop = arg;
	uint64_t sum = 1;
	int64_t began = sync_now();
	for (int64_t i = 0; i < loop->n; i++) {
		sum = step(sum);
		if (hive_should_yield()) {
			loop->yields++;
			hive_yield();
		}
	}
	loop->asking_ns = sync_now() - began;
	began = sync_now();
	for (int64_t i = 0; i < loop->n; i++) {
		sum = step(sum);
		__asm__ volatile("" : "+r"(sum));
	}
	loop->bare_ns = sync_now() - began;
	loop->sum = sum;
	return 0;
}

int bench_ask(const struct bench_params *params, struct record *result)
{
	struct loop loop = { .n = params->n / 10 + 1 }; /* warm-up */
	struct rig rig;
	int code = rig_open(&rig, params, params->threads, 0);
	if (code)
		return code;
	code = fibers_run(&rig, run_loops, &loop);
	loop = (struct loop){ .n = params->n };
	if (!code)
		code = fibers_run(&rig, run_loops, &loop);
	record_metric(result, "ns_each", (double)(loop.asking_ns - loop.bare_ns) / (double)params->n);
	record_metric(result, "bare_ns_each", (double)loop.bare_ns / (double)params->n);
	record_metric(result, "yields", (double)loop.yields);
	bench_put_memory(result);
	return rig_close(&rig, code);
}
