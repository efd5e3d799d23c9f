/* SPDX-License-Identifier: MIT */
/* Waking. One post wakes at most one sleeper, and none while somebody searches (W4); whoever takes and leaves more wakes
 * one more (W3); a claimed worker is woken by its claimer, exactly once (W2).                                           */
#include "base/thread.h"
#include "sched/internal.h"

static void deliver(struct worker *w)
{
	struct hive *hive = w->hive;

	if (hive->host.wake)
		hive->host.wake(hive->host.arg, w->self_id);
	else if (w->kind == HIVE_WORKER_COMPUTE)
		parker_unpark(&w->parker);
	else
		w->core->ops->wake(w->core);
}

/* The worker cannot close its core before `woken` has caught up with its claims. Who has not committed himself to sleep needs no
 * system call: he is going to notice.                                                                                     */
static void wake_claimed(struct worker *w)
{
	if (w->setup.spin_ns > 0)
		store_relaxed(&w->wake_ns, hive__now(w->hive));
	store_relaxed(&w->waker_cpu, hive__cpu(w->hive));
	if (parking_notify(&w->parking)) {
		add_relaxed(&w->hive->wakes, 1u);
		deliver(w);
	}
	idle_wake_delivered(&w->woken);
}

void hive__wake_one(struct hive *hive, struct workers *set)
{
	uint32_t index = idle_claim_one(&set->idle, hive__limit(set), hive__cpu(hive));

	if (index != IDLE_NOBODY)
		wake_claimed(hive__slot(set, index));
}

/* In either bed. Not by its options, which are those of the next one in its place if the caller is late. */
bool hive__wake_if_asleep(struct worker *w)
{
	if (!idle_claim(&hive__set_of(w)->idle, w->index) &&
	    !(w->kind == HIVE_WORKER_IO && idle_claim(&w->hive->outside, w->index)))
		return false;
	wake_claimed(w);
	return true;
}

/* Under registry_lock, which also guards the core against being closed. Whether it sleeps or not. */
void hive__kick(struct worker *w)
{
	if (w->kind == HIVE_WORKER_COMPUTE || w->core)
		deliver(w);
}

/* Under registry_lock. */
void hive__kick_all(struct hive *hive)
{
	for (uint32_t i = 0; i < hive__limit(&hive->io); i++)
		hive__kick(hive__slot(&hive->io, i));
	for (uint32_t i = 0; i < hive__limit(&hive->compute); i++)
		hive__kick(hive__slot(&hive->compute, i));
}

/* The last to leave looks whether there is more to do, for posters woke nobody while it searched; so does one that found
 * something in its last look before sleeping (S3). More may also lie in its own tray, where others have put it. And what a turn has left in the local queue is others' business as soon as
 * this worker does something else: a single task that it goes on with at once wakes nobody.                              */
void hive__end_search_now(struct worker *w)
{
	struct workers *set = hive__set_of(w);
	bool must_look = w->found, waits;

	if (w->brought_count > 0)
		hive__share_brought(w);
	waits = w->unshared && local_size(&w->local) > 0;
	if (w->searching && idle_search_end(&set->idle))
		must_look = true;
	hive__mark_searching(w, false);
	w->found = w->unshared = false;
	if (waits ||
	    (must_look && (local_size(&w->local) > 1 || tray_length(&w->placed) > 0 || hive__work_elsewhere(w))))
		hive__wake_if_needed(w->hive, set);
}
