/* SPDX-License-Identifier: MIT */
/* The deadline of a cancel token: an alarm of the hive to which the first that comes under it belongs. It is started by who comes under the token, and
 * counts there, so that it has been started when the token is joined. It rings at the deadline; or before, when its hive ends: then the
 * next hive that comes under the token watches.                                                                          */
#include <rophive/hive.h>

#include "fiber/cancel.h"
#include "fiber/watch.h"
#include "sched/guest.h"

/* An alarm that is out says so in the word of the token, until it has rung; the latch is the last that it touches. */
static void ring(void *arg)
{
	struct hive_cancel *cancel = (struct hive_cancel *)arg;
	uint64_t word;

	if (hive_now(cancel->hive) >= cancel->deadline_ns)
		hive__cancel_fire(cancel, -ETIMEDOUT);
	word = latch_take(&cancel->state);
	latch_give(&cancel->state, word & CANCEL_ARMING ? word | CANCEL_RUNG : word & ~CANCEL_ARMED);
}

/* True: the caller starts the alarm. False: somebody has, or it is too late for one. */
static bool begin_arming(struct hive_cancel *cancel, struct hive *hive)
{
	for (uint32_t tries = 0;; tries++) {
		uint64_t word = latch_take(&cancel->state);
		bool needed = !(word & (CANCEL_ARMING | CANCEL_ARMED)) && load_relaxed(&cancel->reason) == 0;

		if (needed)
			cancel->hive = hive;
		latch_give(&cancel->state, needed ? word | CANCEL_ARMING : word);
		if (!(word & CANCEL_ARMING) || load_relaxed(&cancel->reason) != 0)
			return needed;
		hive__latch_stay_away(tries);
	}
}

/* If it has rung meanwhile it is not out. */
static void end_arming(struct hive_cancel *cancel, bool armed)
{
	uint64_t word = latch_take(&cancel->state);

	if (armed && !(word & CANCEL_RUNG))
		word |= CANCEL_ARMED;
	latch_give(&cancel->state, word & ~(CANCEL_ARMING | CANCEL_RUNG));
}

static int arm(struct hive_cancel *cancel, struct hive *hive)
{
	int r;

	if ((load_relaxed(&cancel->state) & CANCEL_ARMED) || !begin_arming(cancel, hive))
		return 0;
	if (hive_now(hive) < cancel->deadline_ns) {
		r = hive__alarm_send(hive, cancel->deadline_ns, ring, cancel, &cancel->alarm);
		end_arming(cancel, r == 0);
		return r;
	}
	end_arming(cancel, false);
	hive__cancel_fire(cancel, -ETIMEDOUT);
	return 0;
}

/* What is under a token is under its parents too. A deadline that a child has of its parent is watched there, once for all children. */
int hive__cancel_arm(struct hive_cancel *cancel, struct hive *hive)
{
	int r = 0;

	for (struct hive_cancel *at = cancel; r == 0 && at && at->deadline_ns != HIVE_FOREVER; at = at->parent)
		if (!at->parent || at->parent->deadline_ns != at->deadline_ns)
			r = arm(at, hive);
	return r < 0 ? r : hive__cancel_reason(cancel);
}

/* While the alarm is out its hive has not ended, and that it is not any more is said under the latch: so the hive is asked under it, too. */
void hive__cancel_disarm(struct hive_cancel *cancel)
{
	uint64_t word = latch_take(&cancel->state);
	int r = word & CANCEL_ARMED ? hive_post_cancel(cancel->hive, cancel->alarm) : 0;
	bool rings = r == -ESRCH; /* -EOWNERDEAD: after a fork nobody can */

	latch_give(&cancel->state, word);
	for (uint32_t tries = 0; rings; tries++) { /* on another thread */
		hive__latch_stay_away(tries);
		word = latch_take(&cancel->state);
		latch_give(&cancel->state, word);
		rings = word & CANCEL_ARMED;
	}
}

int hive_cancel_arm(struct hive_cancel *cancel, struct hive *hive)
{
	int r;

	if (!cancel_is_valid(cancel) || !hive)
		return -EINVAL;
	r = hive__cancel_enter(cancel);
	if (r < 0)
		return r;
	r = hive__cancel_arm(cancel, hive);
	hive__cancel_leave(cancel, NULL);
	return r;
}

int hive_cancel_watch_start(struct hive_cancel *cancel, struct hive_cancel_watch *watch)
{
	struct hive *hive = hive_current() ? hive_current() : hive__guest_world();
	int r;

	if (!cancel_is_valid(cancel) || !watch || !watch_is_valid(&watch->state) || !watch->fn)
		return -EINVAL;
	if (!watch_is_idle(&watch->state))
		return -EALREADY;
	r = hive__cancel_enter(cancel);
	if (r < 0)
		return r;
	r = hive ? hive__cancel_arm(cancel, hive) : 0;
	if (r != -ENOMEM) /* else the hive is about to end, or has not begun: nobody watches */
		r = hive__cancel_watch(cancel, watch);
	hive__cancel_leave(cancel, NULL);
	return r;
}
