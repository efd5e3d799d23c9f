/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/time.h>

/* Embed it, init it, start it on the worker that shall fire it. stop() is synchronous: after it nothing is
 * called. Never early; equal deadlines fire in the order in which they were started. Callbacks run in step 3
 * of the beat. When the hive stops, armed timers fall silent; they need not be stopped.                    */
HIVE_BEGIN
struct hive_timer;
typedef void hive_timer_fn(struct hive_timer *timer);

/* A period was missed (long task, suspended machine): */
enum hive_drift {
	HIVE_DRIFT_SKIP = 0,  /* stay on the grid, fire once for all that were missed */
	HIVE_DRIFT_BURST = 1, /* stay on the grid, fire once for each, within the budget */
	HIVE_DRIFT_DELAY = 2  /* next period counts from the end of the callback */
};

struct hive_timer {
	/* yours */
	void *arg;
	enum hive_drift drift; /* while idle */
	/* private */
	uint32_t state; /* a magic word: an uninitialised timer is refused, not undefined */
	union {         /* its place among the timers of its owner */
		uint32_t index;
		void *previous;
	};
	int64_t due_ns, period_ns;
	uint64_t sequence;
	hive_timer_fn *on_fire;
	void *owner, *next, *tie;
};

/* Any thread. */
void hive_timer_init(struct hive_timer *timer, hive_timer_fn *on_fire, void *arg);
/* Owner thread (this worker becomes it). period_ns 0: once. Armed already: moved to the new time (cannot fail).
 * -EPERM: not on an IO worker, or armed on another one. -EINVAL: not initialised, negative period. -ESHUTDOWN.
 * -ENOMEM.                                                                                                    */
HIVE_CHECKED int hive_timer_start(struct hive_timer *timer, int64_t delay_ns, int64_t period_ns);
/* Owner thread. 1: was armed; 0: was not. Allowed in its own callback and in any other; the memory is free after it. */
int hive_timer_stop(struct hive_timer *timer);
HIVE_END
