/* SPDX-License-Identifier: MIT */
/* Embedded timers under a cancel token. Only a timer's owner may stop it, so who fires says that the timer must not call its function any more, and sends
 * a letter that stops it. The timer may have ended by the time the letter arrives, and its memory be gone: hence letter and watch are in
 * memory of their own, which counts under the token until both have let go of it.                                         */
#include <rophive/hive.h>

#include "base/memory.h"
#include "base/refs.h"
#include "fiber/fiber.h"

struct tied {
	struct guest letter; /* first */
	struct timer_tie tie;
	struct hive_timer *timer;   /* O  of the timer's owner; NULL: it has ended */
	struct memory memory;       /* I */
	struct hive *hive;          /* I */
	struct hive_cancel *cancel; /* I */
	ATOMIC(uint32_t) refs;      /* A  the timer's, the letter's */
	struct hive_cancel_watch watch;
};

#define tied_of_tie(t) ((struct tied *)(void *)((char *)(t)-offsetof(struct tied, tie)))

static void release(struct tied *t)
{
	struct hive_cancel *cancel = t->cancel;
	struct memory memory = t->memory;

	if (!refs_drop(&t->refs))
		return;
	hive__memory_free(&memory, t);
	hive__cancel_leave(cancel, NULL);
}

/* Owner. */
static bool halt(struct timer_tie *tie)
{
	struct tied *t = tied_of_tie(tie);

	t->timer = NULL;
	return hive_cancel_watch_stop(&t->watch) == 1;
}

static void part(struct timer_tie *tie)
{
	release(tied_of_tie(tie));
}

static void send(struct tied *t)
{
	hive__guest_ready_at(t->hive, &t->letter, load_relaxed(&t->tie.worker));
}

static void end(struct tied *t)
{
	struct hive *hive = t->hive;

	release(t);
	hive__unhold(hive);
}

/* It has ended; or it is this worker's, and is stopped. Letters to a worker that leaves come to others, until its timers are the main worker's. */
static bool is_stopped(struct tied *t)
{
	if (refs_are(&t->refs, 1))
		return true;
	if (!hive__tie_is_here(&t->tie) || !hive__timer_has_arrived(t->timer))
		return false;
	if (t->timer) /* else there was no memory to take it over */
		hive_timer_stop(t->timer);
	return true;
}

static void arrive(struct guest *letter)
{
	struct tied *t = (struct tied *)(void *)letter;

	if (is_stopped(t))
		end(t);
	else
		send(t);
}

/* The timer's owner has not left: it parts with all its timers before, and waits for us. So the hive is there, and may be held. */
static void on_fired(struct hive_cancel_watch *watch, int reason)
{
	struct tied *t = (struct tied *)watch->arg;

	(void)reason;
	store_relaxed(&t->tie.ended, 1u);
	refs_add(&t->refs);
	hive__hold(t->hive);
	send(t);
}

/* 0, the reason, -ENOMEM, or what the deadline's alarm says. A hive that knows of fibers does not end while it is held, so letters arrive. This one does not before the caller, on the same worker, is through. */
static int make(struct hive *hive, struct hive_cancel *cancel, struct hive_timer *timer, struct tied **ret_tied)
{
	const struct memory *memory = hive__guest_memory(hive);
	struct tied *t;
	int r = hive__cancel_enter(cancel);

	if (r < 0)
		return r;
	r = hive__cancel_arm(cancel, hive);
	t = r < 0 || !hive__fibers(hive) ? NULL : (struct tied *)hive__memory_new(memory, sizeof *t);
	if (!t) {
		hive__cancel_leave(cancel, NULL);
		return r < 0 ? r : -ENOMEM;
	}
	t->letter.run = arrive;
	t->tie.halt = halt;
	t->tie.part = part;
	store_relaxed(&t->tie.worker, hive_worker_current());
	t->timer = timer;
	t->memory = *memory;
	t->hive = hive;
	t->cancel = cancel;
	store_relaxed(&t->refs, 1u);
	hive_cancel_watch_init(&t->watch, on_fired, t);
	*ret_tied = t;
	return 0;
}

int hive_timer_start_under(struct hive_timer *timer, struct hive_cancel *cancel, int64_t delay_ns, int64_t period_ns)
{
	struct tied *t;
	int r = hive__timer_may_tie(timer);

	if (!cancel)
		cancel = hive__cancel_here();
	if (r < 0 || (cancel && !cancel_is_valid(cancel)))
		return r < 0 ? r : -EINVAL;
	if (!cancel || !hive__place()) /* which says what is wrong with that */
		return hive_timer_start(timer, delay_ns, period_ns);
	r = make(hive_current(), cancel, timer, &t);
	if (r < 0)
		return r;
	r = hive__cancel_watch(cancel, &t->watch);
	if (r == 0)
		r = hive_timer_start(timer, delay_ns, period_ns);
	if (r == 0) {
		hive__timer_tie(timer, &t->tie);
		return 0;
	}
	halt(&t->tie);
	part(&t->tie);
	return r;
}
