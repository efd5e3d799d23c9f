/* SPDX-License-Identifier: MIT */
/* How a worker leaves, and what becomes of what it still has. Detached from a hive that goes on: tasks and timers move to
 * others. Hive stopping: what may not run goes through the drop hook.                                                  */
#include "base/thread.h"
#include "sched/internal.h"

/* One at a time. */
static void hand_to_hook(struct hive *hive, struct hive_task task)
{
	lock_acquire(&hive->drop_lock);
	bump(&hive->dropped, 1);
	if (hive->on_drop)
		hive->on_drop(hive->hook_arg, &task);
	lock_release(&hive->drop_lock);
}

/* Any thread. The task was accepted and will not run. */
void hive__drop(struct hive *hive, struct hive_task task)
{
	if (task.fn == hive__run_guest) {
		hive__drop_guest(hive, (struct guest *)task.arg);
		return;
	}
	if (task.fn == hive__run_then)
		task = hive__cancel_then(task.arg);
	if (task.fn != hive__run_wrapped) {
		hand_to_hook(hive, task);
	} else {
		struct wrapped *wrapped = (struct wrapped *)task.arg;

		hand_to_hook(hive, wrapped->task);
		wrapped->dropped(wrapped);
	}
}

void hive__run_wrapped(void *wrapped)
{
	((struct wrapped *)wrapped)->run((struct wrapped *)wrapped);
}

void hive__drop_instead(struct hive *hive, const struct wrapped *wrapped)
{
	bump(&hive__current()->stats.ran, (uint64_t)-1);
	hand_to_hook(hive, wrapped->task);
}

void hive__drop_cancelled(struct hive *hive, const struct wrapped *wrapped)
{
	sub_relaxed(&hive->cancelled, 1u);
	hand_to_hook(hive, wrapped->task);
}

/* Asks the lanes themselves: a poster may have put its task and not yet told the takers (pool.h, P1). */
void hive__drop_pool(struct hive *hive, struct pool *pool)
{
	struct hive_task task;

	while (!pool_is_empty(pool))
		if (pool_take_many(pool, 0, &task, 1) > 0)
			hive__drop(hive, task);
}

void hive__drop_compute(struct hive *hive)
{
	for (int i = 0; i < LEVELS; i++)
		hive__drop_pool(hive, &hive->compute_pool.pools[i]);
}

/* Out of the way of those that it is about to run. */
static uint32_t take_outbox(struct worker *w, struct hive_task *ret_tasks)
{
	uint32_t n = w->outbox_count;

	for (uint32_t i = 0; i < n; i++)
		ret_tasks[i] = w->outbox[i];
	w->outbox_count = 0;
	return n;
}

static void drop_mail(struct worker *w)
{
	struct parcel *p;

	hive__mail_take_back(w);
	while ((p = hive__mail_take(w)) != NULL) {
		struct hive_task task = p->task;

		hive__parcel_free(p);
		hive__drop(w->hive, task);
	}
}

/* Everything this worker holds. Its inbox is closed for good when it leaves; others than the main worker, which takes what
 * finds no other place until the last guest has ended, may do so earlier.                                                 */
void hive__drop_queues(struct worker *w, bool leaves)
{
	struct hive_task task, posts[TUNE_OUTBOX];
	uint32_t n;

	w->closing = w->closing || leaves;
	hive__silence(w);
	hive__ring_alarms(w);
	if (leaves || w != load_relaxed(&w->hive->main))
		hive__close_letters(w);
	else
		hive__take_letters(w);
	hive__run_own_forks(w, INT32_MAX); /* which are dropped, now */
	drop_mail(w);
	n = take_outbox(w, posts);
	for (uint32_t i = 0; i < n; i++)
		hive__drop(w->hive, posts[i]);
	while (local_size(&w->local) > 0) /* a thief may be faster, and then there may be more */
		if (local_pop_oldest(&w->local, &task))
			hive__drop(w->hive, task);
	while (hive__take_one_placed(w, &task))
		hive__drop(w->hive, task);
}

/* Takes all timers out and places them again, each according to what may still happen. */
static void place_again(struct worker *w)
{
	struct hive_timer *timers;
	struct letter *delayed;

	hive__unhook_timers(w, &timers, &delayed);
	hive__end_timers(timers);
	while (delayed) {
		struct delayed *d = delayed_of_letter(delayed);

		delayed = delayed->next;
		hive__place_delayed(w, d);
	}
}

/* Stop was asked for: sources and embedded timers end here. Delayed posts that were due count as queued. */
void hive__silence(struct worker *w)
{
	if (w->silenced)
		return;
	w->silenced = true;
	hive__trail(w, TRAIL_SILENCED, 0);
	add_relaxed(&w->hive->open_sources, hive__stop_sources(w));
	place_again(w);
}

/* Nothing may wait any more: what is left among the timers of a silenced worker are alarms. */
void hive__ring_alarms(struct worker *w)
{
	if (hive__next_due(w) != HIVE_FOREVER)
		place_again(w);
}

/* At the deadline draining turns into leaving. */
static void hurry_if_late(struct hive *hive)
{
	uint32_t draining = HIVE_DRAINING;

	if (hive__now(hive) < load_relaxed(&hive->stop_deadline_ns))
		return;
	lock_acquire(&hive->registry_lock);
	if (state_move(&hive->state, &draining, HIVE_LEAVING)) {
		hive->deadline_missed = true;
		hive__kick_all(hive);
	}
	lock_release(&hive->registry_lock);
}

/* Draining. WAIT only for what will wake it: the last answer, or, for the main worker, the last of the others to leave.
 * Answers of compute tasks that nobody can run will not come.                                                            */
static enum parting parting_while_draining(struct worker *w, bool is_last)
{
	struct hive *hive = w->hive;

	hive__return_holds(w);
	if (hive__own_work(w) || !pool_is_empty(&hive->pool))
		return PARTING_BUSY;
	if (holds_left(&hive->holds) > 0 && load_seq(&hive->compute_alive) == 0) /* ALIVE-4 (pairs with ALIVE-3) */
		hive__drop_compute(hive);
	if (holds_left(&hive->holds) > 0)
		return PARTING_WAIT;
	if (hive__own_work(w))
		return PARTING_BUSY;
	return is_last ? PARTING_LEAVE : PARTING_WAIT;
}

/* Leaving. What is queued is dropped at once, and not when the worker leaves: it must be able to sleep until the others have left.
 * Guests run until they have ended; what they wait for of compute workers that have left will not come.                        */
static enum parting parting_at_once(struct worker *w, bool is_last)
{
	struct hive *hive = w->hive;

	hive__stop_guests(w);
	hive__drop_queues(w, false);
	hive__drop_pool(hive, &hive->pool);
	hive__return_holds(w);
	if (hive__guests_hold(hive)) {
		if (load_seq(&hive->compute_alive) == 0) /* ALIVE-4 (pairs with ALIVE-3) */
			hive__drop_compute(hive);
		return hive__own_work(w) || !pool_is_empty(&hive->pool) ? PARTING_BUSY : PARTING_WAIT;
	}
	return is_last ? PARTING_LEAVE : PARTING_WAIT;
}

/* IO workers, after each beat and before each sleep; compute workers before each sleep. The main worker is the last to leave,
 * and it looks who is left before it looks at what they left.                                                              */
enum parting hive__parting(struct worker *w)
{
	struct hive *hive = w->hive;
	bool is_last;

	if (hive__state(hive) < HIVE_DRAINING) /* LEAVE-2 (pairs with LEAVE-1) */
		return load_acquire(&w->leave) ? PARTING_LEAVE : PARTING_NONE;
	if (w->kind == HIVE_WORKER_COMPUTE)
		return load_relaxed(&hive->state) == HIVE_DRAINING && hive__guests_hold(hive) ? PARTING_WAIT
		                                                                              : PARTING_LEAVE;
	hive__silence(w);
	is_last = w != load_relaxed(&hive->main) || load_acquire(&hive->alive) == 1; /* ALIVE-2 (pairs with ALIVE-1) */
	if (load_relaxed(&hive->state) == HIVE_DRAINING)
		hurry_if_late(hive);
	if (load_relaxed(&hive->state) == HIVE_DRAINING && load_acquire(&w->leave))
		return PARTING_LEAVE; /* LEAVE-2 (pairs with LEAVE-1); it cannot be found: what is sent to it would never arrive */
	if (load_relaxed(&hive->state) == HIVE_DRAINING)
		return parting_while_draining(w, is_last);
	return parting_at_once(w, is_last);
}

/* Without memory in the pool the task runs here: it must not be lost. */
static void give_away(struct worker *w, const struct hive_task *tasks, size_t n)
{
	struct hive *hive = w->hive;

	if (n == 0)
		return;
	if (pool_give_many(&hive->pool, hive__thread_number(), tasks, n, false) == 0) {
		hive__wake_if_needed(hive, &hive->io);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (hive__is_halted(w))
			hive__drop(hive, tasks[i]);
		else
			hive__run_task(w, tasks[i]);
	}
}

static void give_local(struct worker *w)
{
	struct hive_task task;

	while (local_size(&w->local) > 0) /* oldest first; a thief may be faster, and then there may be more */
		if (local_pop_oldest(&w->local, &task))
			give_away(w, &task, 1);
	while (hive__take_one_placed(w, &task))
		give_away(w, &task, 1);
}

static void give_outbox(struct worker *w)
{
	struct hive_task tasks[TUNE_OUTBOX];

	give_away(w, tasks, take_outbox(w, tasks));
}

/* What was posted to this very worker runs here as long as that takes a reasonable time; then anywhere. */
static void finish_private(struct worker *w, int *budget)
{
	hive__mail_take_back(w);
	while (w->mail.first) {
		struct parcel *p = hive__mail_take(w);
		struct hive_task task = p->task;

		hive__parcel_free(p);
		if (hive__is_halted(w)) /* a stop came meanwhile, perhaps from one of these */
			hive__drop(w->hive, task);
		else if ((*budget)-- > 0)
			hive__run_task(w, task);
		else
			give_away(w, &task, 1);
	}
}

/* What runs here may post again, to wherever it likes. */
static void hand_over_tasks(struct worker *w, int *budget)
{
	do {
		finish_private(w, budget);
		give_outbox(w);
		give_local(w);
		hive__run_own_forks(w, INT32_MAX);
	} while (w->mail.first || w->yielded.first || w->outbox_count > 0 || local_size(&w->local) > 0);
}

/* Delayed posts to whoever is lightest; embedded timers, which belong to somebody's code, to the main worker. */
static void give_timers(struct worker *w)
{
	struct hive *hive = w->hive;
	struct worker *main = hive__main(hive);
	struct hive_timer *timers;
	struct letter *delayed;

	hive__unhook_timers(w, &timers, &delayed);
	while (delayed) {
		struct delayed *d = delayed_of_letter(delayed);

		delayed = delayed->next;
		sub_relaxed(&w->delayed_count, 1u);
		if (hive__send_delayed(hive, d) < 0) { /* the hive has stopped meanwhile */
			add_relaxed(&w->delayed_count, 1u);
			w->silenced = true;
			hive__place_delayed(w, d);
		}
	}
	if (!timers)
		return;
	w->farewell.kind = PARCEL_ADOPT;
	w->farewell.home = w;
	w->farewell.task.arg = timers;
	store_relaxed(&w->adopting, 1u);
	hive__move_timers(timers, main, true);
	if (inbox_push(&main->inbox, &w->farewell.letter)) {
		hive__wake_if_asleep(main);
		return;
	}
	hive__move_timers(timers, main, false);
	store_relaxed(&w->adopting, 0u);
}

/* Detach. The inbox is closed first, so that nothing can arrive behind our back. */
void hive__hand_over(struct worker *w)
{
	int budget = TUNE_LAST_PRIVATE;
	uint32_t open;

	hive__close_letters(w);
	tray_close(&w->placed);
	hand_over_tasks(w, &budget);
	hive__call_hook(w, w->setup.on_stop);
	hand_over_tasks(w, &budget);
	hive__move_guests(w);
	give_timers(w);
	hand_over_tasks(w, &budget);
	open = hive__stop_sources(w);
	if (open > 0)
		hive__warn(w->hive, "worker %s left with %u sources started: they are stopped", w->name, open);
}

/* On no worker's thread: the task must not run here. Without memory in the pool the main worker gets it as it is. */
static void give_parcel(struct worker *w, struct parcel *p)
{
	struct hive *hive = w->hive;
	struct worker *main = hive__main(hive);
	struct hive_task task = p->task;
	bool is_guest = p->kind == PARCEL_GUEST;

	if (pool_give(&hive->pool, hive__thread_number(), task, false) == 0) {
		if (!is_guest) /* that one may run already */
			hive__parcel_free(p);
		hive__wake_if_needed(hive, &hive->io);
		return;
	}
	p->target = HIVE_WORKER_NONE;
	if (p->kind == PARCEL_REPLY) { /* it has been received: by us */
		p->kind = PARCEL_TASK;
		p->receipt = NULL;
	}
	bump(&w->stats.posted, (uint64_t)-1); /* it enters the books again where it arrives */
	if (inbox_push(&main->inbox, &p->letter)) {
		hive__wake_if_asleep(main);
		return;
	}
	bump(&w->stats.posted, 1);
	hive__parcel_free(p);
	hive__drop(hive, task);
}

/* On no worker's thread. Without memory in the pool it stays where it is: thieves find it, the slot's next worker, or the end. */
static void give_placed(struct worker *w)
{
	struct hive *hive = w->hive;
	struct hive_task task;

	while (hive__take_one_placed(w, &task)) {
		if (pool_give(&hive->pool, hive__thread_number(), task, false) < 0) {
			tray_open(&w->placed);
			if (tray_put(&w->placed, task) < 0)
				hive__drop(hive, task);
			return;
		}
		hive__wake_if_needed(hive, &hive->io);
	}
	tray_close(&w->placed);
}

/* Any thread. It never ran, and it is not going to: nothing has begun here, so everything may run anywhere. */
void hive__hand_over_unstarted(struct worker *w)
{
	hive__close_letters(w);
	while (w->mail.first)
		give_parcel(w, hive__mail_take(w));
	give_placed(w);
	give_timers(w);
}
