/* SPDX-License-Identifier: MIT */
/* Compute workers: take, run, repeat; nothing there: announce, look again, park. They take one task at a time: for heavy
 * tasks that is the fair share, and no task ever waits behind another while somebody idles.                            */
#include "sched/internal.h"

static void run_one(struct worker *w, struct hive_task task)
{
	struct hive *hive = w->hive;

	hive__end_search(w);
	if (idle_needs_wake(&hive->compute.idle) && !pool_is_empty(&hive->compute_pool)) /* W3 */
		hive__wake_one(hive, &hive->compute);
	hive__run_task(w, task);
}

static void sleep_in_parker(struct worker *w)
{
	int64_t began_ns;

	hive__call_hook(w, w->setup.on_park);
	if (hive__fall_asleep(w)) {
		bump(&w->stats.sleeps, 1);
		began_ns = hive__now(w->hive);
		parker_park(&w->parker, HIVE_FOREVER);
		hive__get_up(w);
		bump(&w->stats.asleep_ns, hive__now(w->hive) - began_ns);
	}
	hive__call_hook(w, w->setup.on_unpark);
}

/* False: it shall leave. With ret_wait_ns the host waits in its place. */
bool hive__compute_beat(struct worker *w, int64_t *ret_wait_ns)
{
	struct hive *hive = w->hive;
	struct hive_task task;

	hive__get_up(w);
	bump(&w->stats.beats, 1);
	if (hive__is_halted(w) || load_acquire(&w->leave))
		return false;
	if (pool_take_many(&hive->compute_pool, w->take_lane++, &task, 1) > 0) {
		run_one(w, task);
		return true;
	}
	if (hive__state(hive) >= HIVE_DRAINING) { /* asked once: what was accepted before it was so has to run */
		if (!pool_is_empty(&hive->compute_pool))
			return true; /* the hint said empty */
		if (!hive__guests_hold(hive))
			return false;
	}
	if (!ret_wait_ns) {
		sleep_in_parker(w);
	} else if (hive__fall_asleep(w)) {
		bump(&w->stats.sleeps, 1);
		*ret_wait_ns = HIVE_FOREVER;
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
