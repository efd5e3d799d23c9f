/* SPDX-License-Identifier: MIT */
/* Just a runtime: a hive that runs on threads of its own, in one call. */
#include <rophive/hive.h>

/* Each deadline is a timer that is mostly stopped before it fires. */
static void suit_fibers(enum hive_preset preset, struct hive_worker_options *io)
{
	if (preset != HIVE_PRESET_DEFAULT)
		return;
	if (io->timers == HIVE_TIMERS_DEFAULT)
		io->timers = HIVE_TIMERS_WHEEL;
}

int hive_runtime_start(const struct hive_options *options, struct hive **ret_hive)
{
	struct hive_options o = { 0 };
	struct hive_worker_options io = { 0 };
	struct hive *hive;
	int r;

	if (!ret_hive)
		return -EINVAL;
	if (options)
		o = *options;
	if (o.io_workers == 0)
		o.io_workers = HIVE_AUTO;
	if (o.compute_workers == 0)
		o.compute_workers = HIVE_AUTO;
	else if (o.compute_workers == HIVE_NONE)
		o.compute_workers = 0;
	if (o.io)
		io = *o.io;
	suit_fibers(o.preset, &io);
	o.io = &io;
	r = hive_create(&o, &hive);
	if (r < 0)
		return r;
	r = hive_start(hive);
	if (r < 0) {
		hive_destroy(hive);
		return r;
	}
	*ret_hive = hive;
	return 0;
}

int hive_runtime_stop(struct hive *hive, enum hive_stop_mode mode, int64_t deadline_ns)
{
	struct hive_report report;
	int r;

	if (!hive)
		return -EINVAL;
	if (hive_worker_current() != HIVE_WORKER_NONE)
		return -EDEADLK;
	r = hive_stop(hive, mode, deadline_ns);
	if (r < 0 && r != -EALREADY)
		return r;
	r = hive_join(hive, HIVE_FOREVER);
	if (r < 0)
		return r;
	r = hive_report_read(hive, &report);
	hive_destroy(hive);
	return r == 0 && report.deadline_missed ? -ETIMEDOUT : r;
}
