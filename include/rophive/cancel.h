/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/task.h>
#include <rophive/time.h>

/* Cancel tokens: a tree. To fire one reaches all that is under it, and under its children: waits of fibers end with its reason, operations
 * are cancelled, tasks that have not begun go to the drop hook, watches are called. It fires once, and stays so: who fires it again, or too
 * late, from whatever thread, changes nothing; what comes under it later is refused with the reason. docs/cancellation.md says what is
 * reached when.
 *
 * A deadline is watched by the timers of a hive, on its clock: of the one to which the first fiber, task or operation under the token belongs,
 * or on whose worker the first watch is started, or which hive_cancel_arm() names. So nobody has to ask, and hive_cancel_check() never reads a
 * clock; but under a token that no hive knows of nothing happens at the deadline. When that hive ends before, the next one that comes
 * under the token watches. A child has its own deadline, or that of its parent if that is earlier.
 *
 * A token lends its memory: to its children, and to all that is under it. Join them before it, and it before its memory goes.             */
HIVE_BEGIN
struct hive;
struct hive_cancel_watch;
struct hive_timer;

struct hive_cancel_link { /* private */
	struct hive_cancel_link *next, **back;
};

/* All fields private. Zeroed memory is not a token. */
struct hive_cancel {
	HIVE_ATOMIC(uint64_t) state;
	HIVE_ATOMIC(int32_t) reason;
	uint32_t magic;
	struct hive_cancel *parent, *fired;
	struct hive_cancel_link sibling, *children, *fibers, *watches;
	void *waits[2], *joiner;
	int64_t deadline_ns;
	struct hive *hive;
	uint64_t alarm;
	void *firer;
	uint64_t spare[2];
};

/* Any thread. parent NULL: a root. deadline_ns: it fires by itself then, with -ETIMEDOUT (HIVE_FOREVER: never; HIVE_NOWAIT: it has fired). Under
 * a parent that has fired it has fired too; under one that was never initialised it has, with -EINVAL.                   */
void hive_cancel_init(struct hive_cancel *cancel, struct hive_cancel *parent, int64_t deadline_ns);
/* Any thread. With -ECANCELED. On return all that was under it has been told, but for what another thread that fires it, or a child of it, is
 * just telling. Functions of watches are called here.                                                                    */
void hive_cancel_fire(struct hive_cancel *cancel);
/* Any thread. The same, with a reason of one's own: a negative errno. -EALREADY: it had fired, and its reason stays. -EINVAL. */
int hive_cancel_fire_with(struct hive_cancel *cancel, int error);
/* Any thread. A load, hardly more than the call itself. 0; or the reason: -ECANCELED, -ETIMEDOUT, or what it was fired with. NULL: of the fiber or task that runs here,
 * for a fiber also when it was cancelled in another way; 0: it is under no token. -EINVAL: never initialised, or joined.  */
int hive_cancel_check(const struct hive_cancel *cancel);
/* Any thread. For loops: hive_cancel_check(NULL) is not 0. */
bool hive_cancelled(void);
/* May wait. Until the last fiber, task, operation, watch and child under it has ended; 0: its memory is yours again. At the deadline it fires
 * (-ETIMEDOUT), and so it does when the caller is cancelled or has no memory for the timer; what is under it is waited for all the same, and
 * then the result says why. HIVE_NOWAIT asks, and fires nothing: 0, or -ETIMEDOUT and it is as before. So it is after -EDEADLK (on an IO
 * worker outside a fiber, by who is under it himself, or from inside the function of a watch of it), and after -EALREADY (somebody else
 * joins it), -EINVAL.                                                                                                     */
int hive_cancel_join(struct hive_cancel *cancel, int64_t deadline_ns);
/* Any thread. The timers of this hive watch the deadline from here on, if none do. 0, also without a deadline; -EINVAL, -ENOMEM, -ESHUTDOWN, -EOWNERDEAD;
 * -ESRCH: no IO worker attached yet. The reason, if it has fired.                                                            */
HIVE_CHECKED int hive_cancel_arm(struct hive_cancel *cancel, struct hive *hive);

/* On the thread that fires; it must not wait. No lock is held: it may use tokens, this one too, and stop its watch. */
typedef void hive_cancel_fn(struct hive_cancel_watch *watch, int reason);

/* A function that is called once when a token fires. Embed it. */
struct hive_cancel_watch {
	/* yours */
	void *arg;
	/* private */
	hive_cancel_fn *fn;
	HIVE_ATOMIC(uint32_t) state;
	int32_t reason;
	struct hive_cancel_link link;
	struct hive_cancel *cancel;
	HIVE_ATOMIC(void *) caller;
	bool *left;
};

/* Any thread. */
void hive_cancel_watch_init(struct hive_cancel_watch *watch, hive_cancel_fn *fn, void *arg);
/* Any thread. 0: fn is called when the token fires, unless stop comes first. The reason: it has fired, and fn is not called. -EALREADY: started.
 * -EINVAL. -ENOMEM: for the deadline's timer.                                                                            */
HIVE_CHECKED int hive_cancel_watch_start(struct hive_cancel *cancel, struct hive_cancel_watch *watch);
/* Any thread. 1: fn will not be called. 0: it was called, and has returned; or it was never started. The memory is free after both, and the watch
 * may be started again. Inside fn: 0 at once. -EINVAL.                                                                   */
int hive_cancel_watch_stop(struct hive_cancel_watch *watch);

/* Any thread. As hive_post() or hive_post_compute(), under a token: if that fires before the task has begun, the task goes to the drop hook in
 * place of running, at the latest when its turn comes. While it runs, hive_cancel_check(NULL) is about this token; what it posts or spawns
 * is not under it by itself. cancel NULL: the token of the fiber or task that runs here; if there is none, a plain post. Refused as these
 * calls say, and with the reason if it has fired.                                                                        */
HIVE_CHECKED int hive_post_under(struct hive *hive, struct hive_cancel *cancel, enum hive_kind kind, hive_fn *fn,
                                 void *arg);
/* Any thread. As hive_post_after(), under a token as above; one that is not due when the token fires is dropped at once. */
HIVE_CHECKED int hive_post_after_under(struct hive *hive, struct hive_cancel *cancel, int64_t delay_ns, hive_fn *fn,
                                       void *arg);
/* Owner thread (this worker becomes it). As hive_timer_start(), under a token: when that fires the timer is stopped, by a letter to its worker; meanwhile its
 * function is not begun any more. Join waits for the letter. hive_timer_stop(), the last call of its function and a stop of the hive take it
 * from under the token. cancel NULL: as above. -EALREADY: it is under one. The reason, if that has fired.                   */
HIVE_CHECKED int hive_timer_start_under(struct hive_timer *timer, struct hive_cancel *cancel, int64_t delay_ns,
                                        int64_t period_ns);
HIVE_END
