/* SPDX-License-Identifier: MIT */
/* All fibers wait, and nobody is left who could wake one. Silence would be all that is heard of it; so the monitor says it, once for a hive.
 *
 * The rule, which has to hold for stall_ns without a change:
 *   - somebody waits for the end of fibers without a deadline: a drain, or a thread in hive_block_on(), hive_fiber_join() or
 *     hive_wait_all(). Fibers that wait for threads to come are ordinary otherwise;
 *   - every worker sleeps, and no task is queued anywhere;
 *   - no timer and no delayed post, so no deadline of anybody; no source; no operation under way;
 *   - no compute task waits for a group with a deadline;
 *   - there are fibers, and each waits for a mutex, a condition, a semaphore, a barrier, a channel, a group or the end of fibers
 *     (fiber/standstill.c).
 * A thread that is no worker could still come and wake one: it is a warning, and nothing is done about it. Workers pay nothing for this.      */
#include "sched/internal.h"

static bool is_awaited(struct hive *hive)
{
	uint32_t state = load_relaxed(&hive->state);

	if (state == HIVE_DRAINING)
		return load_relaxed(&hive->stop_deadline_ns) == HIVE_FOREVER;
	return state == HIVE_RUNNING && load_relaxed(&hive->awaited) > 0;
}

/* It sleeps, or is not there; and has nothing that would make it get up by itself. */
static bool is_still(struct worker *w)
{
	if (load_relaxed(&w->system_thread) != 0 && load_relaxed(&w->parking) != PARKING_PARKED)
		return false;
	if (w->kind == HIVE_WORKER_COMPUTE)
		return !load_relaxed(&w->dozes);
	return worker_timers(w) == 0 && load_relaxed(&w->stats.sources) == 0 &&
	       load_relaxed(&w->place.under_way) == 0 && load_relaxed(&w->stats.private_tasks) == 0 &&
	       local_size(&w->local) == 0 && tray_length(&w->placed) == 0 && hive__no_letters(w);
}

static bool all_still(struct workers *set, uint64_t *progress)
{
	for (uint32_t i = 0; i < hive__limit(set); i++) {
		struct worker *w = hive__slot(set, i);

		*progress += hive__progress_of(w);
		if (!is_still(w))
			return false;
	}
	return true;
}

static void say(void *hive, const char *line)
{
	hive__warn((struct hive *)hive, "%s", line);
}

static void tell(struct hive *hive, void *fibers)
{
	const struct guest_ops *ops = hive->guest_ops[GUESTS_FIBERS];
	uint64_t n = ops->standstill(fibers, NULL, NULL);

	if (n == 0)
		return;
	hive->standstill.told = true;
	hive__warn(hive, "all fibers (%llu) wait, nobody is left to wake them, and %s", (unsigned long long)n,
	           load_relaxed(&hive->state) == HIVE_DRAINING ? "the hive drains" : "a thread waits for their end");
	ops->standstill(fibers, hive, say);
}

/* The monitor. All fibers are looked at once for each time that nothing has happened for long. */
void hive__standstill_look(struct hive *hive)
{
	struct standstill *seen = &hive->standstill;
	void *fibers = hive__guests(hive, GUESTS_FIBERS);
	uint64_t progress = 0;
	int64_t now_ns = hive__now(hive);

	if (seen->told || !fibers)
		return;
	if (!is_awaited(hive) || !all_still(&hive->io, &progress) || !all_still(&hive->compute, &progress) ||
	    pool_length(&hive->pool) > 0 || levels_length(&hive->compute_pool) > 0 || progress != seen->progress) {
		*seen = (struct standstill){ .progress = progress, .since_ns = now_ns };
		return;
	}
	if (seen->looked || now_ns - seen->since_ns < hive->stall_ns)
		return;
	seen->looked = true;
	tell(hive, fibers);
}
