/* SPDX-License-Identifier: MIT */
#include "rig.h"
#include "machine.h"

static int attach_one(struct rig *rig, const struct bench_params *params, enum hive_worker_kind kind, int32_t index)
{
	uint16_t cpu = 0;
	struct hive_worker_options options = { .kind = kind };
	int error = hive_tune_options(&options, NULL); /* what the command line says comes after it */
	if (error)
		return error;
	options.order = params->order ? params->order : options.order;
	if (kind == HIVE_WORKER_IO) {
		options.core = params->core;
		options.timers = params->timers ? params->timers : options.timers;
		options.local_budget = params->budget ? params->budget : options.local_budget;
		options.steal_attempts = params->no_stealing ? HIVE_OFF : options.steal_attempts;
		options.ui = params->ui && index == 0;
		options.realtime = params->ordinary ? HIVE_OFF : 0;
	}
	if (params->pin) {
		cpu = machine_allowed_cpu((size_t)index);
		options.cpus = &cpu;
		options.cpu_count = 1;
	}
	uint32_t worker = HIVE_WORKER_NONE;
	error = hive_attach(rig->hive, &options, &worker);
	if (error)
		return error;
	if (kind == HIVE_WORKER_IO)
		rig->io[rig->io_count++] = worker;
	return 0;
}

static int attach_all(struct rig *rig, const struct bench_params *params, int32_t io_workers, int32_t compute_workers)
{
	int error = 0;
	for (int32_t i = 0; i < io_workers && !error; i++)
		error = attach_one(rig, params, HIVE_WORKER_IO, i);
	for (int32_t i = 0; i < compute_workers && !error; i++)
		error = attach_one(rig, params, HIVE_WORKER_COMPUTE, i);
	return error;
}

int rig_open(struct rig *rig, const struct bench_params *params, int32_t io_workers, int32_t compute_workers)
{
	struct hive_options options = { 0 };
	*rig = (struct rig){ 0 };
	if (io_workers > RIG_IO_MAX)
		return bench_failed("more workers than this bench can name", -ENOSPC);
	int error = hive_tune_options(NULL, &options);
	if (error)
		return bench_failed("HIVE_TUNE in the environment", error);
	options.preset = params->preset ? params->preset : options.preset;
	options.placement = params->placement ? params->placement : options.placement;
	options.mesh = params->mesh ? params->mesh : options.mesh;
	error = hive_create(&options, &rig->hive);
	if (error)
		return bench_failed("hive_create", error);
	error = attach_all(rig, params, io_workers, compute_workers);
	if (error) {
		hive_destroy(rig->hive);
		return bench_failed("hive_attach", error);
	}
	error = hive_start(rig->hive);
	if (error) {
		hive_destroy(rig->hive);
		return bench_failed("hive_start", error);
	}
	return BENCH_OK;
}

static int check_books(const struct rig *rig)
{
	struct hive_report report;
	int error = hive_report_read(rig->hive, &report);
	if (error)
		return bench_failed("hive_report_read", error);
	uint64_t settled = report.ran + report.cancelled + report.dropped;
	return report.posted == settled ? BENCH_OK : bench_wrong("tasks in the report", report.posted, settled);
}

int rig_close(struct rig *rig, int code)
{
	if (code == BENCH_TIMEOUT)
		return code; /* something hangs: whoever waits for it would hang too; the process is about to end */
	int error = hive_stop(rig->hive, HIVE_DRAIN, hive_deadline(rig->hive, BENCH_PATIENCE_NS));
	if (error && !code)
		code = bench_failed("hive_stop", error);
	error = hive_join(rig->hive, hive_deadline(rig->hive, 2 * BENCH_PATIENCE_NS));
	if (error)
		return code                  ? code
		       : error == -ETIMEDOUT ? bench_timeout("join", 0, 0)
		                             : bench_failed("hive_join", error);
	if (!code)
		code = check_books(rig);
	error = hive_destroy(rig->hive);
	return error && !code ? bench_failed("hive_destroy", error) : code;
}
