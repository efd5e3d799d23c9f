/* SPDX-License-Identifier: MIT */
/* Compute workers: take, run, repeat; nothing there: announce, look again, park. They take one task at a time: for heavy
 * tasks that is the fair share, and no task ever waits behind another while somebody idles. Tasks of the pool come before what other workers
 * have forked: those are at it already.                                                                                  */
#include "sched/internal.h"

bool hive__run_compute_task(struct worker *w)
{
	struct hive *hive = w->hive;
	enum hive_priority outer = w->level, level;
	struct hive_task task;

	if (!levels_take(&hive->compute_pool, w->take_lane++, &task, &level))
		return false;
	w->level = level;
	w->looked_twice = false;
	hive__end_search(w);
	if (idle_needs_wake(&hive->compute.idle) && !levels_are_empty(&hive->compute_pool)) /* W3 */
		hive__wake_one(hive, &hive->compute);
	hive__run_task(w, task);
	w->level = outer;
	return true;
}

static void sleep_in_parker(struct worker *w)
{
	int64_t began_ns;

	hive__call_hook(w, w->setup.on_park);
	if (hive__fall_asleep(w)) {
		bump(&w->stats.sleeps, 1);
		began_ns = hive__now(w->hive);
		parker_park(&w->parker, hive__fork_patience(w));
		hive__get_up(w);
		bump(&w->stats.asleep_ns, hive__now(w->hive) - began_ns);
	}
	hive__call_hook(w, w->setup.on_unpark);
}

/* False: it shall leave. With ret_wait_ns the host waits in its place. */
bool hive__compute_beat(struct worker *w, int64_t *ret_wait_ns)
{
	struct hive *hive = w->hive;

	hive__get_up(w);
	bump(&w->stats.beats, 1);
	if (hive__run_own_forks(w, INT32_MAX))
		return true;
	if (hive__is_halted(w) || load_acquire(&w->leave)) /* LEAVE-2 (pairs with LEAVE-1) */
		return false;
	if (hive__run_compute_task(w) || hive__run_others_fork(w))
		return true;
	if (hive__state(hive) >= HIVE_DRAINING) { /* asked once: what was accepted before it was so has to run */
		if (!levels_are_empty(&hive->compute_pool))
			return true; /* the hint said empty */
		if (!hive__guests_hold(hive))
			return false;
	}
	if (hive__search_forks(w))
		return true;
	if (!ret_wait_ns) {
		sleep_in_parker(w);
	} else if (hive__fall_asleep(w)) {
		bump(&w->stats.sleeps, 1);
		*ret_wait_ns = hive__fork_patience(w);
	}
	return true;
}

/* An answer is no longer under way, a fiber has ended. The last one ends the waiting of workers that drain. */
void hive__let_end(struct hive *hive, uint32_t holds)
{
	if (holds_end(&hive->holds, &hive->state, holds)) {
		lock_acquire(&hive->registry_lock);
		hive__kick_all(hive);
		lock_release(&hive->registry_lock);
	}
}

static bool deliver_reply(struct worker *to, struct parcel *p)
{
	if (!inbox_push(&to->inbox, &p->letter))
		return false;
	hive__wake_if_asleep(to);
	return true;
}

/* The task behind hive_post_compute_then(): the work here, then the parcel goes home with the other half. */
void hive__run_then(void *arg)
{
	struct parcel *p = (struct parcel *)arg;
	struct worker *home = p->home;
	struct hive *hive = home->hive;

	p->task.fn(p->task.arg);
	p->task.fn = p->then;
	if (deliver_reply(home, p))
		return;
	p->target = HIVE_WORKER_NONE; /* it has left: the main worker stands in */
	if (deliver_reply(hive__main(hive), p))
		return;
	hive__let_end(hive, 1);
	add_relaxed(&hive->lost_replies, 1u); /* accepted, and dropped below: the books must balance */
	hive__drop(hive, p->task);
	hive__parcel_free(p);
}

struct hive_task hive__cancel_then(void *arg)
{
	struct parcel *p = (struct parcel *)arg;
	struct hive_task work = p->task;

	hive__let_end(p->home->hive, 1);
	hive__parcel_free(p);
	return work;
}
