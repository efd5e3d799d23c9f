/* SPDX-License-Identifier: MIT */
#include "machine.h"
#include "rig.h"
#include "tally.h"

/* idle: T IO workers and T compute workers, all of whom have worked before, with nothing to do. */
#define SETTLE_NS HIVE_MS(300) /* for spins and back-offs to run out */
#define WARM_UP 1000

static int warm_up(struct rig *rig)
{
	uint64_t target = tally_total() + 2 * WARM_UP;
	for (int i = 0; i < WARM_UP; i++) {
		int error = hive_post(rig->hive, tally_task, NULL);
		if (!error)
			error = hive_post_compute(rig->hive, tally_task, NULL);
		if (error)
			return bench_failed("hive_post", error);
	}
	return tally_wait(target, BENCH_PATIENCE_NS, HIVE_MS(1));
}

int bench_idle(const struct bench_params *params, struct record *result)
{
	struct rig rig;
	int code = rig_open(&rig, params, params->threads, params->threads);
	if (code)
		return code;
	code = warm_up(&rig);
	sync_sleep(SETTLE_NS);
	int64_t begin = sync_now(), switches = machine_context_switches();
	double cpu = machine_cpu_seconds();
	sync_sleep((int64_t)(params->seconds * 1e9));
	cpu = machine_cpu_seconds() - cpu;
	switches = machine_context_switches() - switches;
	double elapsed_s = (double)(sync_now() - begin) / 1e9;
	record_metric(result, "seconds", elapsed_s);
	record_metric(result, "cpu_s", cpu);
	record_metric(result, "cpu_percent", cpu * 100 / elapsed_s);
	record_metric(result, "context_switches", (double)switches);
	bench_put_memory(result);
	return rig_close(&rig, code);
}
