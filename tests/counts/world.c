/* SPDX-License-Identifier: MIT */
#include "world.h"

#include <string.h>

static int64_t host_now(void *arg)
{
	return ((const struct world *)arg)->now_ns;
}

uint64_t world_random(struct world *w)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return w->random ^ w->random >> 29;
}

static uint64_t host_random(void *arg, uint32_t worker)
{
	(void)worker;
	return world_random(arg);
}

static void host_wake(void *arg, uint32_t worker)
{
	struct world *w = arg;

	for (int i = 0; i < w->count; i++)
		if (w->workers[i].id == worker)
			w->workers[i].woken = true;
}

static int host_step_start(void *arg, uint32_t worker, hive_step_fn *step, void *step_arg)
{
	struct world *w = arg;

	if (w->count == WORLD_WORKERS)
		return -EAGAIN;
	w->workers[w->count++] = (struct world_worker){ worker, step, step_arg, 0, true, false };
	return 0;
}

static void host_step_stop(void *arg, void *step_arg)
{
	struct world *w = arg;

	for (int i = 0; i < w->count; i++)
		if (w->workers[i].step_arg == step_arg)
			w->workers[i].left = true;
}

static int host_step_wait(void *arg, int64_t deadline_ns)
{
	struct world *w = arg;

	if (world_settle(w))
		return 0;
	if (deadline_ns == HIVE_FOREVER)
		return -EDEADLK;
	w->now_ns = deadline_ns;
	return -ETIMEDOUT;
}

void world_step(struct world *w, int worker)
{
	struct world_worker *v = &w->workers[worker];
	int64_t wait_ns = 0;

	v->woken = false;
	v->left = v->step(v->step_arg, &wait_ns) < 0;
	v->due_ns = wait_ns == HIVE_FOREVER ? HIVE_FOREVER : w->now_ns + wait_ns;
}

bool world_settle(struct world *w)
{
	bool any = false, more;

	do {
		more = false;
		for (int i = 0; i < w->count; i++)
			if (!w->workers[i].left && (w->workers[i].woken || w->workers[i].due_ns <= w->now_ns)) {
				world_step(w, i);
				more = any = true;
			}
	} while (more);
	return any;
}

void world_open(struct world *w, struct hive_options options)
{
	memset(w, 0, sizeof *w);
	w->now_ns = HIVE_S(1000);
	w->random = 1;
	w->host = (struct hive_host){ .arg = w,
		                      .now = host_now,
		                      .random = host_random,
		                      .wake = host_wake,
		                      .step_start = host_step_start,
		                      .step_stop = host_step_stop,
		                      .step_wait = host_step_wait };
	options.host = &w->host;
	MUST(hive_create(&options, &w->hive) == 0);
	MUST(hive_start(w->hive) == 0);
	world_settle(w);
}

void world_close(struct world *w)
{
	struct hive_report report;

	MUST(hive_stop(w->hive, HIVE_DRAIN, HIVE_FOREVER) == 0);
	MUST(hive_join(w->hive, HIVE_FOREVER) == 0);
	MUST(hive_report_read(w->hive, &report) == 0);
	MUST(report.posted == report.ran + report.cancelled && report.refused == 0);
	MUST(hive_destroy(w->hive) == 0);
}
