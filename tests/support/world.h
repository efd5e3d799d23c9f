/* SPDX-License-Identifier: MIT */
#pragma once
/* A hive in the simulator for tests of fibers: virtual time, one seed, and an end that compares the books. */
#include <rophive/hive.h>
#include <rophive/sim.h>

#include "test.h"

struct world {
	struct hive_sim *sim;
	struct hive *hive;
};

static inline struct world world_with(struct hive_sim_options how, struct hive_options options)
{
	struct world w;

	CHECK_OK(hive_sim_create(&how, &w.sim));
	options.host = hive_sim_host(w.sim);
	CHECK_OK(hive_create(&options, &w.hive));
	CHECK_OK(hive_start(w.hive));
	return w;
}

static inline struct world world_open(uint64_t seed, int32_t io, int32_t compute)
{
	return world_with((struct hive_sim_options){ .seed = seed },
	                  (struct hive_options){ .io_workers = io, .compute_workers = compute });
}

/* Everything that can happen without time moving on. */
static inline void world_settle(struct world *w)
{
	hive_sim_advance(w->sim, 0);
}

static inline void world_advance(struct world *w, int64_t delay_ns)
{
	hive_sim_advance(w->sim, delay_ns);
}

/* Stopped already, or about to be. */
static inline struct hive_report world_join(struct world *w)
{
	struct hive_report report;

	CHECK_OK(hive_join(w->hive, HIVE_FOREVER));
	CHECK_OK(hive_report_read(w->hive, &report));
	CHECK_EQ(report.posted, report.ran + report.cancelled + report.dropped);
	CHECK_OK(hive_destroy(w->hive));
	CHECK_OK(hive_sim_destroy(w->sim));
	return report;
}

static inline struct hive_report world_close(struct world *w, enum hive_stop_mode mode)
{
	CHECK_OK(hive_stop(w->hive, mode, HIVE_FOREVER));
	return world_join(w);
}

/* A fiber whose handle the caller gets. */
static inline struct hive_fiber *world_spawn(struct world *w, hive_fiber_fn *fn, void *arg)
{
	struct hive_fiber *fiber;

	CHECK_OK(hive_spawn(w->hive, fn, arg, NULL, &fiber));
	return fiber;
}

/* Its result; it has to end. */
static inline int world_result(struct hive_fiber *fiber)
{
	int result = INT32_MIN;

	CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, &result));
	return result;
}
