/* SPDX-License-Identifier: MIT */
#include "fibers.h"

/* spawn_join: a fiber spawns an empty one and joins it, n times, one after the other: how many nanoseconds the two take. */
struct family {
	int64_t count, born,
		elapsed_ns; /* one child at a time, and join orders what it wrote before what the parent reads */
};

static int do_nothing(void *arg)
{
	struct family *family = arg;
	family->born++;
	return 7;
}

static int spawn_and_join(void *arg)
{
	struct family *family = arg;
	struct hive *hive = hive_current();
	struct hive_fiber *child;
	int error = 0, result = 7;
	int64_t begin = sync_now();
	for (int64_t i = 0; i < family->count && !error && result == 7; i++) {
		error = hive_spawn(hive, do_nothing, family, NULL, &child);
		if (!error)
			error = hive_fiber_join(child, HIVE_FOREVER, &result);
	}
	family->elapsed_ns = sync_now() - begin;
	return error ? error : result == 7 ? 0 : -EPROTO;
}

int bench_spawn_join(const struct bench_params *params, struct record *result)
{
	struct rig rig;
	struct family family = { .count = params->n / 10 + 1 }; /* warm-up */
	int code = rig_open(&rig, params, params->threads, 0);
	if (code)
		return code;
	code = fibers_run(&rig, spawn_and_join, &family);
	family = (struct family){ .count = params->n };
	if (!code)
		code = fibers_run(&rig, spawn_and_join, &family);
	if (!code && family.born != params->n)
		code = bench_wrong("children that ran", (uint64_t)params->n, (uint64_t)family.born);
	bench_put_rate(result, (double)params->n, family.elapsed_ns);
	record_metric(result, "ns_each", (double)family.elapsed_ns / (double)params->n);
	bench_put_memory(result);
	return rig_close(&rig, code);
}
