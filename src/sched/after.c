/* SPDX-License-Identifier: MIT */
/* Delayed posts: which worker gets them, how they come to its timers, how they end. */
#include "base/rng.h"
#include "base/thread.h"
#include "sched/internal.h"

/* A worker draws from its own generator, a foreign thread from one of its own: no lock, nothing shared. */
uint64_t hive__random(struct hive *hive)
{
	static _Thread_local uint64_t foreign;
	struct worker *w = hive__current_in(hive);

	if (hive->host.random)
		return hive->host.random(hive->host.arg, w ? w->self_id : HIVE_WORKER_NONE);
	if (w)
		return rng_next(&w->rng);
	if (foreign == 0)
		foreign = (uint64_t)hive__clock_now() ^ hive__thread_number() << 20;
	return rng_next(&foreign);
}

/* The lighter of two different IO workers drawn at random, by timers there and on the way there. Reads published counts
 * only. NULL: there is no IO worker.                                                                                   */
static struct worker *choose(struct hive *hive)
{
	struct worker *a, *b;

	if (!hive__draw_two(hive, &a, &b))
		return hive__main(hive);
	return b && worker_timers(b) < worker_timers(a) ? b : a;
}

static uint64_t post_id(struct delayed *d)
{
	return delayed_generation(d) << 32 | (uint64_t)d->parcel.home->index << 22 | d->parcel.item.number;
}

static void prepare(struct delayed *d, struct hive_task task, int64_t due_ns, bool alarm)
{
	d->parcel.kind = PARCEL_TIMER;
	d->counted = false;
	d->alarm = alarm;
	store_relaxed(&d->keeper, (struct worker *)NULL);
	d->parcel.target = HIVE_WORKER_NONE;
	d->parcel.task = task;
	d->timer.on_fire = hive__fire_delayed;
	d->timer.due_ns = due_ns;
	d->timer.period_ns = 0;
	delayed_show(d, task);
	delayed_begin(d);
}

/* Any thread. A delayed post on its way to a worker that will keep it; falls back to the main worker. False: all closed. */
static bool send_to(struct worker *w, struct delayed *d)
{
	add_relaxed(&w->delayed_count, 1u); /* counted when posted: a burst must not see old counts */
	if (!inbox_push(&w->inbox, &d->parcel.letter)) {
		sub_relaxed(&w->delayed_count, 1u);
		return false;
	}
	hive__wake_if_asleep(w);
	return true;
}

int hive__send_delayed(struct hive *hive, struct delayed *d)
{
	struct worker *w = choose(hive), *last_resort = hive__main(hive);

	return send_to(w, d) || send_to(last_resort, d) ? 0 : -ESHUTDOWN;
}

static int refuse(struct delayed *d, int error)
{
	if (error == -ESHUTDOWN)
		hive__refuse(d->parcel.home->hive, 1);
	delayed_end(d);
	hive__parcel_free(&d->parcel);
	return error;
}

static int send_new(struct hive *hive, struct hive_task task, int64_t due_ns, bool alarm, uint64_t *ret_post)
{
	struct worker *home = choose(hive);
	struct delayed *d;
	uint64_t id;

	if (!home)
		return -ESRCH;
	d = hive__delayed_new(home);
	if (!d)
		return -ENOMEM;
	prepare(d, task, due_ns, alarm);
	delayed_offer(d, due_ns, alarm);
	id = post_id(d);
	if (!send_to(home, d)) {
		int r = hive__send_delayed(hive, d);

		if (r < 0)
			return refuse(d, r);
	}
	if (ret_post)
		*ret_post = id;
	return 0;
}

int hive_post_after(struct hive *hive, int64_t delay_ns, hive_fn *fn, void *arg, uint64_t *ret_post)
{
	struct hive_task task = { fn, arg };
	int r = hive__door(hive, fn);

	return r < 0 ? r
	             : send_new(hive, task, time_add(hive__now(hive), delay_ns > 0 ? delay_ns : 0), false, ret_post);
}

/* What was asked for here stays here, but for alarms that any thread may ring. */
enum keeping { KEPT_POST, KEPT_ALARM, KEPT_FREE_ALARM };

static int keep_here(struct worker *w, struct hive_task task, int64_t due_ns, enum keeping how, uint64_t *ret_post)
{
	struct delayed *d = hive__delayed_new(w);
	int r;

	if (!d)
		return -ENOMEM;
	prepare(d, task, due_ns, how != KEPT_POST);
	d->timer.sequence = w->timer_sequence++;
	r = hive__insert_timer(w, &d->timer);
	if (r < 0)
		return refuse(d, r);
	store_relaxed(&d->keeper, w);
	if (how == KEPT_FREE_ALARM) /* not before it can be kept: else somebody might run what is refused */
		delayed_offer(d, due_ns, true);
	add_relaxed(&w->delayed_count, 1u);
	d->counted = true;
	bump(&w->stats.posted, 1);
	if (ret_post)
		*ret_post = post_id(d);
	return 0;
}

int hive_post_self_after(int64_t delay_ns, hive_fn *fn, void *arg, uint64_t *ret_post)
{
	struct hive_task task = { fn, arg };
	struct worker *w;
	int r = hive__own_door(fn, &w);

	if (r < 0)
		return r;
	return keep_here(w, task, time_add(hive__now(w->hive), delay_ns > 0 ? delay_ns : 0), KEPT_POST, ret_post);
}

int hive__alarm_start(int64_t due_ns, hive_fn *fn, void *arg, uint64_t *ret_alarm)
{
	struct hive_task task = { fn, arg };

	return keep_here(hive__current(), task, due_ns, KEPT_ALARM, ret_alarm);
}

int hive__alarm_start_free(int64_t due_ns, hive_fn *fn, void *arg, uint64_t *ret_alarm)
{
	struct hive_task task = { fn, arg };

	return keep_here(hive__current(), task, due_ns, KEPT_FREE_ALARM, ret_alarm);
}

int hive__alarm_send(struct hive *hive, int64_t due_ns, hive_fn *fn, void *arg, uint64_t *ret_alarm)
{
	struct hive_task task = { fn, arg };

	return forkmark_is_child(hive->mark) ? -EOWNERDEAD : send_new(hive, task, due_ns, true, ret_alarm);
}

bool hive__alarm_stop(struct hive *hive, uint64_t alarm)
{
	return hive_post_cancel(hive, alarm) == 0;
}

/* One timer less: it runs, was cancelled or is dropped. The parcel may be used again. */
static void let_go(struct worker *w, struct delayed *d)
{
	sub_relaxed(&w->delayed_count, 1u);
	delayed_end(d);
	hive__parcel_free(&d->parcel);
}

/* Was the keeper's timer, and is out of them. */
void hive__fire_delayed(struct hive_timer *timer)
{
	struct worker *w = hive__current();
	struct delayed *d = delayed_of_timer(timer);
	struct hive_task task = d->parcel.task;
	bool ours = delayed_claim(d, delayed_generation(d), TICKET_FREE);

	let_go(w, d);
	if (ours)
		hive__run_task(w, task);
}

/* Stop: what was due when stop was asked for still counts as queued. Alarms are rung: nobody may wait any more. */
static void settle(struct worker *w, struct delayed *d)
{
	struct hive *hive = w->hive;
	struct hive_task task = d->parcel.task;
	bool ours = delayed_claim(d, delayed_generation(d), TICKET_FREE), alarm;

	if (ours && !d->alarm && d->timer.due_ns <= load_relaxed(&hive->stop_ns) && !hive__is_halted(w)) {
		sub_relaxed(&w->delayed_count, 1u);
		hive__mail_append(w, &d->parcel);
		return;
	}
	alarm = d->alarm; /* before somebody else uses it */
	let_go(w, d);
	if (ours && alarm) {
		hive__run_task(w, task);
	} else if (ours) {
		add_relaxed(&hive->dropped_timers, 1u);
		hive__drop(hive, task);
	}
}

/* The letter has arrived: among the timers. While stopping: due ones are run as private tasks, the rest is dropped; alarms stay
 * until nobody may wait any more.                                                                                       */
void hive__place_delayed(struct worker *w, struct delayed *d)
{
	if (!d->counted)
		bump(&w->stats.posted, 1);
	d->counted = true; /* it may come again, from a worker that leaves */
	if (w->silenced && (!d->alarm || w->closing || hive__is_halted(w))) {
		settle(w, d);
		return;
	}
	if (delayed_is_cancelled(d)) { /* on its way here */
		let_go(w, d);
		return;
	}
	store_relaxed(&d->keeper, w);
	d->timer.sequence = w->timer_sequence++;
	if (hive__insert_timer(w, &d->timer) < 0) {
		d->parcel.letter.next = w->unplaced;
		w->unplaced = &d->parcel.letter;
	}
}

/* Found no memory in the heap: they wait in a list until there is, and those that are due are fired from there. True: one
 * was.                                                                                                                  */
bool hive__run_first_unplaced(struct worker *w, int64_t now_ns)
{
	struct letter *waiting = w->unplaced;
	struct delayed *due = NULL;

	w->unplaced = NULL;
	while (waiting) {
		struct delayed *d = delayed_of_letter(waiting);

		waiting = waiting->next;
		if (!due && d->timer.due_ns <= now_ns)
			due = d;
		else
			hive__place_delayed(w, d);
	}
	if (due)
		hive__fire_delayed(&due->timer);
	return due;
}

int64_t hive__next_due(const struct worker *w)
{
	int64_t due = timers_next_due(&w->timers);

	for (struct letter *l = w->unplaced; l; l = l->next)
		if (delayed_of_letter(l)->timer.due_ns < due)
			due = delayed_of_letter(l)->timer.due_ns;
	return due;
}

static bool is_dead(struct hive_timer *timer)
{
	return hive__timer_is_delayed(timer) && delayed_is_cancelled(delayed_of_timer(timer));
}

static void bury(struct hive_timer *timer, void *worker)
{
	let_go((struct worker *)worker, delayed_of_timer(timer));
}

/* Others cancel without touching the timers; when half of them are dead, the owner throws the dead out. */
void hive__sweep_cancelled(struct worker *w)
{
	uint32_t cancelled = load_relaxed(&w->cancelled);

	if (cancelled < 64 || cancelled < timers_count(&w->timers) / 2)
		return;
	store_relaxed(&w->cancelled, 0u);
	timers_sweep(&w->timers, is_dead, bury, w);
}

/* The keeper itself takes it out at once. */
static void cancel_here(struct worker *w, struct delayed *d)
{
	if (timers_contain(&w->timers, &d->timer)) {
		timers_remove(&w->timers, &d->timer);
		let_go(w, d);
	} else {
		add_relaxed(&w->cancelled, 1u); /* unplaced, or somebody else's by now */
	}
}

int hive_post_cancel(struct hive *hive, uint64_t post)
{
	uint32_t generation = (uint32_t)(post >> 32), index = (uint32_t)(post >> 22) & (HIVE_WORKERS_MAX - 1);
	struct worker *home, *keeper;
	struct delayed *d;

	if (!hive)
		return -EINVAL;
	if (forkmark_is_child(hive->mark))
		return -EOWNERDEAD;
	if (generation == 0 || index >= hive__limit(&hive->io))
		return -ESRCH;
	home = hive__slot(&hive->io, index);
	d = (struct delayed *)(void *)slab_at(&home->delayed, (uint32_t)post & ((1u << 22) - 1));
	if (!d)
		return -ESRCH;
	if (!delayed_claim(d, generation, TICKET_CANCELLED))
		return -ESRCH;
	add_relaxed(&hive->cancelled, 1u);
	keeper = load_relaxed(&d->keeper); /* who reads itself here has it, and nobody can take it away meanwhile */
	if (keeper && keeper == hive__current())
		cancel_here(keeper, d);
	else if (keeper)
		add_relaxed(&keeper->cancelled, 1u);
	return 0;
}

/* The monitor. One delayed post or alarm that is due, and that a worker which is stuck keeps or has in its inbox, becomes the caller's: it was accepted,
 * and runs or is dropped; here its parcel counts as cancelled. `place` goes on from call to call, from 0.                    */
bool hive__rescue_delayed(struct worker *stuck, int64_t now_ns, uint64_t *place, struct hive_task *ret_task,
                          bool *ret_alarm)
{
	struct workers *set = &stuck->hive->io;
	uint32_t index = (uint32_t)(*place >> 32), number = (uint32_t)*place;
	bool found = false;

	for (; !found && index < hive__limit(set); index++, number = 0) {
		struct worker *home = hive__slot(set, index), *keeper;
		struct delayed *d;

		while (!found && (d = (struct delayed *)(void *)slab_at(&home->delayed, number)) != NULL) {
			number++;
			keeper = load_relaxed(&d->keeper);
			found = (keeper ? keeper : home) == stuck && delayed_rescue(d, now_ns, ret_task, ret_alarm);
			if (found && keeper)
				add_relaxed(&keeper->cancelled, 1u);
		}
		if (found)
			break;
	}
	*place = (uint64_t)index << 32 | number;
	return found;
}
