/* SPDX-License-Identifier: MIT */
#include "bench.h"
#include "halts.h"
#include "sync.h"

/* halts: nothing runs, and yet the machine stands still now and then if others own it too. For who wants to know what a
 * figure of his may be worth. Without the right to real-time priority (real_time 0) other programs count as well.        */
static int watch(struct halts *halts, int64_t span_ns)
{
	int error = halts_begin(halts, true);
	if (error)
		return error;
	sync_sleep(span_ns);
	halts_end(halts);
	return 0;
}

int bench_halts(const struct bench_params *params, struct record *result)
{
	static struct halts halts;
	int error = watch(&halts, HIVE_MS(20)); /* warm-up */
	if (!error)
		error = watch(&halts, (int64_t)(params->seconds * 1e9));
	if (error)
		return bench_failed("a thread on each processor", error);
	record_metric(result, "halts", (double)halts_count(&halts));
	record_metric(result, "per_s", (double)halts_count(&halts) / params->seconds);
	record_metric(result, "real_time", halts_are_certain(&halts));
	record_metric(result, "max_ns", (double)halts_longest(&halts));
	bench_put_memory(result);
	return BENCH_OK;
}
