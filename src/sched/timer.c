/* SPDX-License-Identifier: MIT */
/* Embedded timers, and the step that fires what is due. Owner thread throughout. */
#include "sched/internal.h"

/* Magic: anything else was never initialised. MOVING: armed, in a letter to the main worker, whose it is already. */
enum { TIMER_IDLE = 0x71e51d1e, TIMER_ARMED = 0x71e5a23d, TIMER_MOVING = 0x71e53076 };

static bool is_initialised(const struct hive_timer *timer)
{
	return timer && (timer->state == TIMER_IDLE || timer->state == TIMER_ARMED || timer->state == TIMER_MOVING);
}

/* Its new owner asks for it: the letter must be in the inbox. */
static void end_move(struct worker *w, const struct hive_timer *timer)
{
	if (timer->state == TIMER_MOVING)
		hive__take_letters(w);
}

int hive__timer_may_tie(const struct hive_timer *timer)
{
	if (!is_initialised(timer))
		return -EINVAL;
	return timer->tie ? -EALREADY : 0;
}

void hive__timer_tie(struct hive_timer *timer, struct timer_tie *tie)
{
	timer->tie = tie;
}

bool hive__tie_is_here(const struct timer_tie *tie)
{
	struct worker *w = hive__current();
	uint32_t worker = load_acquire(&tie->worker); /* TIE-1 (pairs with TIE-2) */

	return worker == w->self_id || (worker == HIVE_WORKER_MAIN && w == load_relaxed(&w->hive->main));
}

/* One that moves is said to be the main worker's before the letter is in its inbox. What takes it over may end it. */
bool hive__timer_has_arrived(struct hive_timer *timer)
{
	if (timer && timer->state == TIMER_MOVING) {
		end_move(hive__current(), timer);
		return false; /* look again */
	}
	return true;
}

/* It is not armed any more. */
static void untie(struct hive_timer *timer)
{
	struct timer_tie *tie = (struct timer_tie *)timer->tie;

	timer->tie = NULL;
	if (!tie)
		return;
	tie->halt(tie);
	tie->part(tie);
}

void hive_timer_init(struct hive_timer *timer, hive_timer_fn *on_fire, void *arg)
{
	if (!timer)
		return;
	*timer = (struct hive_timer){ .arg = arg, .state = TIMER_IDLE, .on_fire = on_fire };
}

/* With due_ns and sequence set. 0 or -ENOMEM. */
int hive__insert_timer(struct worker *w, struct hive_timer *timer)
{
	if (timers_want_clock(&w->timers))
		timers_tell_clock(&w->timers, hive__now(w->hive));
	return timers_insert(&w->timers, timer);
}

static int arm(struct worker *w, struct hive_timer *timer, int64_t due_ns)
{
	uint64_t sequence = w->timer_sequence++, sequence_before = timer->sequence;
	int64_t due_before = timer->due_ns;
	int r;

	if (timer->state == TIMER_ARMED) {
		timers_update(&w->timers, timer, due_ns, sequence);
		return 0;
	}
	timer->due_ns = due_ns;
	timer->sequence = sequence;
	r = hive__insert_timer(w, timer);
	if (r < 0) {
		timer->due_ns = due_before;
		timer->sequence = sequence_before;
		return r;
	}
	timer->state = TIMER_ARMED;
	timer->owner = w;
	bump(&w->stats.timers, 1);
	return 0;
}

static void disarm(struct worker *w, struct hive_timer *timer)
{
	timers_remove(&w->timers, timer);
	timer->state = TIMER_IDLE;
	bump(&w->stats.timers, (uint64_t)-1);
	untie(timer);
}

static bool is_ended(const struct hive_timer *timer)
{
	const struct timer_tie *tie = (const struct timer_tie *)timer->tie;

	return tie && load_relaxed(&tie->ended);
}

/* 0: it may be started here. */
static int may_start(const struct worker *w, const struct hive_timer *timer, int64_t period_ns)
{
	if (!is_initialised(timer) || !timer->on_fire || period_ns < 0 || (uint32_t)timer->drift > HIVE_DRIFT_DELAY)
		return -EINVAL;
	if (MISUSE(!w || w->kind != HIVE_WORKER_IO, "not on an IO worker"))
		return -EPERM;
	if (MISUSE(timer->state != TIMER_IDLE && timer->owner != w, "armed on another worker"))
		return -EPERM;
	if (forkmark_is_child(w->hive->mark))
		return -EOWNERDEAD;
	return hive__state(w->hive) >= HIVE_DRAINING ? -ESHUTDOWN : 0;
}

static int start(struct worker *w, struct hive_timer *timer, int64_t due_ns, int64_t period_ns)
{
	int r = arm(w, timer, due_ns);

	if (r < 0)
		return r;
	timer->period_ns = period_ns;
	if (w->firing == timer)
		w->firing = NULL;
	return 0;
}

int hive_timer_start(struct hive_timer *timer, int64_t delay_ns, int64_t period_ns)
{
	struct worker *w = hive__current();
	int r = may_start(w, timer, period_ns);

	if (r < 0)
		return r;
	end_move(w, timer);
	return start(w, timer, time_add(hive__now(w->hive), delay_ns > 0 ? delay_ns : 0), period_ns);
}

int hive__timer_start_at(struct hive_timer *timer, int64_t due_ns, int64_t period_ns)
{
	struct worker *w = hive__current();
	int r = may_start(w, timer, period_ns);

	if (r < 0)
		return r;
	end_move(w, timer);
	return start(w, timer, due_ns, period_ns);
}

int hive_timer_stop(struct hive_timer *timer)
{
	struct worker *w = hive__current();

	if (!is_initialised(timer))
		return -EINVAL;
	if (timer->state == TIMER_IDLE)
		return 0;
	if (MISUSE(timer->owner != w, "not the worker on which it was started"))
		return -EPERM;
	end_move(w, timer);
	if (timer->state == TIMER_IDLE) /* there was no memory to take it over */
		return 0;
	if (w->firing == timer)
		w->firing = NULL;
	disarm(w, timer);
	return 1;
}

/* The first point of the grid after now. */
static int64_t next_on_grid(int64_t due_ns, int64_t period_ns, int64_t now_ns)
{
	int64_t missed = (now_ns - due_ns) / period_ns;

	return time_add(time_add(due_ns, missed * period_ns), period_ns);
}

/* A periodic timer stays among the others while its callback runs, so that re-arming needs no memory; under DRIFT_DELAY it
 * waits at the far end for the callback to end. The callback may stop, restart and free it: `firing` tells.          */
static void fire_periodic(struct worker *w, struct hive_timer *timer, int64_t now_ns)
{
	int64_t due_ns = HIVE_FOREVER;

	switch (timer->drift) {
	case HIVE_DRIFT_SKIP:
		due_ns = next_on_grid(timer->due_ns, timer->period_ns, now_ns);
		break;
	case HIVE_DRIFT_BURST:
		due_ns = time_add(timer->due_ns, timer->period_ns);
		break;
	case HIVE_DRIFT_DELAY:
		break;
	}
	arm(w, timer, due_ns);
	w->firing = timer;
	timer->on_fire(timer);
	if (w->firing == timer && timer->drift == HIVE_DRIFT_DELAY)
		arm(w, timer, time_add(hive__now(w->hive), timer->period_ns));
	w->firing = NULL;
}

bool hive__timer_is_delayed(const struct hive_timer *timer)
{
	return timer->on_fire == hive__fire_delayed;
}

/* What it was tied to is told when its function has returned: others may wait for that. */
static void fire_once(struct worker *w, struct hive_timer *timer)
{
	struct timer_tie *tie = (struct timer_tie *)timer->tie;
	bool goes = true;

	timer->tie = NULL;
	disarm(w, timer);
	if (tie)
		goes = tie->halt(tie);
	if (goes)
		timer->on_fire(timer);
	if (tie)
		tie->part(tie);
}

/* Fires the earliest timer if it is due. Never early (T5). */
bool hive__run_first_timer(struct worker *w, int64_t now_ns)
{
	struct hive_timer *timer;

	if (hive__is_stopping(w)) {
		hive__silence(w);
		if (hive__is_halted(w))
			return false;
	}
	if (w->unplaced && hive__run_first_unplaced(w, now_ns))
		return true;
	timer = timers_first_due(&w->timers, now_ns);
	if (!timer)
		return false;
	hive__end_search(w);
	bump(&w->stats.timers_fired, 1);
	hive__trail(w, TRAIL_TIMER, 0);
	if (hive__timer_is_delayed(timer)) {
		timers_remove(&w->timers, timer);
		hive__fire_delayed(timer);
	} else if (is_ended(timer)) {
		disarm(w, timer);
	} else if (timer->period_ns > 0) {
		fire_periodic(w, timer, now_ns);
	} else {
		fire_once(w, timer);
	}
	return true;
}

/* The leaving worker, before it sends the chain, and again with false if nobody takes it. */
void hive__move_timers(struct hive_timer *chain, struct worker *to, bool moving)
{
	for (struct hive_timer *next; chain; chain = next) {
		struct timer_tie *tie = (struct timer_tie *)chain->tie;

		next = (struct hive_timer *)chain->next;
		chain->owner = to;
		chain->state = moving ? TIMER_MOVING : TIMER_IDLE;
		if (tie && moving)
			store_release(&tie->worker, HIVE_WORKER_MAIN); /* TIE-2 (pairs with TIE-1) */
		else
			untie(chain); /* its memory may go then */
	}
}

/* The owner, when timers fall silent. */
void hive__end_timers(struct hive_timer *chain)
{
	while (chain) {
		struct hive_timer *next = (struct hive_timer *)chain->next;

		untie(chain); /* its memory may go then */
		chain = next;
	}
}

/* A chain of armed timers, linked through next, that a leaving worker handed over. */
void hive__adopt_timers(struct worker *w, struct hive_timer *chain)
{
	while (chain) {
		struct hive_timer *next = (struct hive_timer *)chain->next;

		chain->next = NULL;
		chain->state = TIMER_IDLE;
		if (w->silenced) {
			untie(chain);
		} else if (arm(w, chain, chain->due_ns) < 0) {
			hive__warn(w->hive, "worker %s: no memory to take over a timer: it is stopped", w->name);
			untie(chain);
		}
		chain = next;
	}
}

/* Empties the timers, earliest first: embedded timers into a chain through next (stopped), delayed posts into a chain through
 * their letters.                                                                                                        */
void hive__unhook_timers(struct worker *w, struct hive_timer **ret_timers, struct letter **ret_delayed)
{
	struct hive_timer *timer;
	void **last_timer = (void **)ret_timers;
	struct letter **last_delayed = ret_delayed;

	while ((timer = timers_first_due(&w->timers, HIVE_FOREVER)) != NULL) {
		timers_remove(&w->timers, timer);
		if (hive__timer_is_delayed(timer)) {
			store_relaxed(&delayed_of_timer(timer)->keeper, (struct worker *)NULL);
			*last_delayed = &delayed_of_timer(timer)->parcel.letter;
			last_delayed = &(*last_delayed)->next;
			continue;
		}
		timer->state = TIMER_IDLE;
		bump(&w->stats.timers, (uint64_t)-1);
		*last_timer = timer;
		last_timer = &timer->next;
	}
	*last_timer = NULL;
	*last_delayed = w->unplaced;
	w->unplaced = NULL;
	for (struct letter *l = *last_delayed; l; l = l->next)
		store_relaxed(&delayed_of_letter(l)->keeper, (struct worker *)NULL);
}
