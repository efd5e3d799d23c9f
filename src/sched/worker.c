/* SPDX-License-Identifier: MIT */
/* The beat of an IO worker: the one function to know. Steps are numbered as in ARCHITECTURE.md. */
#include "sched/internal.h"
#include "sched/step.h"

static uint32_t stride(const struct step *s, int64_t spent_ns)
{
	int64_t each_ns = spent_ns / s->done;

	if (each_ns >= s->slice_ns / TUNE_SHORT)
		return 1;
	return each_ns >= s->slice_ns / TUNE_TINY ? TUNE_SHORT_STRIDE : TUNE_TINY_STRIDE;
}

bool hive__step_is_in_time(struct worker *w, struct step *s)
{
	int64_t spent_ns = hive__now(w->hive) - s->began_ns;
	uint32_t next = s->close ? 1 : stride(s, spent_ns);

	w->tiny = next == TUNE_TINY_STRIDE;
	if (spent_ns >= s->slice_ns)
		return false; /* and so for whoever asks next: guests ask before the step does */
	s->next_look = s->budget - s->done > next ? s->done + next : s->budget;
	return true;
}

static void step_run(struct worker *w, struct step *step)
{
	struct hive_task task;

	w->step = step;
	while (step_next(w, &task))
		hive__run_task(w, task);
	w->step = NULL;
}

void hive__run_task(struct worker *w, struct hive_task task)
{
	struct scope outer;

	hive__end_search(w);
	bump(&w->stats.ran, 1);
	store_relaxed(&w->last_task, task.fn);
	w->up_ns = 0;
	outer = scope_begin(&w->scope);
	task.fn(task.arg);
	scope_end(&w->scope, outer);
}

/* Hooks are user code as well. */
void hive__call_hook(struct worker *w, hive_fn *hook)
{
	if (!hook)
		return;
	hive__end_search(w);
	w->up_ns = 0;
	hook(w->setup.hook_arg);
}

/* 0: there is something to do at once. Only a beat that found nothing in pool and neighbours may be followed by sleep. */
static int64_t time_to_sleep(struct worker *w)
{
	return w->busy || hive__own_work(w) ? 0 : hive__time_to_wait(w);
}

static int turn(struct worker *w, int64_t timeout_ns)
{
	uint64_t events = load_relaxed(&w->stats.events);
	int r;

	w->turning = w->still = true;
	r = w->core->ops->turn(w->core, timeout_ns);
	w->turning = false;
	if (load_relaxed(&w->stats.events) != events)
		w->up_ns = 0;
	if (w->brought_count > 0)
		hive__share_brought(w);
	return r;
}

static int sleep_in_core(struct worker *w, int64_t timeout_ns)
{
	int64_t began_ns = hive__now(w->hive);
	int r;

	bump(&w->stats.sleeps, 1);
	r = turn(w, timeout_ns);
	hive__get_up(w);
	hive__note_wait(w, began_ns);
	hive__follow_waker(w);
	w->up_ns = hive__now(w->hive);
	bump(&w->stats.asleep_ns, w->up_ns - began_ns);
	if (w->up_ns >= w->review_ns)
		hive__review_realtime(w);
	return r;
}

static void report_failure(struct worker *w, int r)
{
	if (w->core_failed)
		return;
	w->core_failed = true;
	hive__warn(w->hive, "worker %s: core %s: %s", w->name, w->core->ops->name, hive_error_name(r));
}

/* Steps 1 and 7. One place to wait, and it is the first step: an event waits for at most one beat. on_park may post, so the
 * time is computed after it.                                                                                             */
static void turn_core(struct worker *w)
{
	int64_t timeout_ns = time_to_sleep(w);
	bool parks = timeout_ns > 0 && !hive__spin(w);
	int r;

	if (parks && w->setup.on_park) {
		hive__call_hook(w, w->setup.on_park);
		timeout_ns = time_to_sleep(w);
	}
	if (parks && timeout_ns > 0 && hive__fall_asleep(w))
		r = sleep_in_core(w, timeout_ns);
	else
		r = turn(w, 0);
	if (parks)
		hive__call_hook(w, w->setup.on_unpark);
	if (r < 0)
		report_failure(w, r);
}

/* Who has yielded has another turn in this beat if there are no others that wait for theirs. */
static bool has_private(struct worker *w)
{
	if (!w->mail.first && w->yielded.first && local_size(&w->local) == 0 && pool_looks_empty(&w->hive->pool))
		hive__mail_take_back(w);
	return w->mail.first;
}

static bool next_private(struct worker *w, struct hive_task *ret_task)
{
	struct parcel *p;

	if (!has_private(w))
		return false;
	p = hive__mail_take(w);
	*ret_task = p->task;
	if (p->kind != PARCEL_GUEST)
		hive__parcel_free(p);
	return true;
}

/* hive__mail_take_guest() of the step under way: NULL also when that is over, or one of others. */
struct guest *hive__step_next_guest(struct worker *w, guest_fn *run)
{
	struct step *step = w->step;
	struct guest *guest;

	if (!step || step->next != next_private || !has_private(w) || !step_goes_on(w, step))
		return NULL;
	guest = hive__mail_take_guest(w, run);
	if (guest)
		step->done++;
	return guest;
}

/* Steps that a beat has in any case: it shall not pay for a call because a worker with a frame calls them, too. */
#define BEAT_INLINE inline __attribute__((always_inline))

/* Step 2: letters become private tasks and timers, and private tasks run. True: there was something. */
static BEAT_INLINE bool run_private(struct worker *w)
{
	struct step step;

	hive__mail_take_back(w);
	if (!hive__no_letters(w))
		hive__take_letters(w);
	if (!w->mail.first)
		return false;
	step = step_begin(w, w->setup.private_budget, next_private, has_private);
	step_run(w, &step);
	return true;
}

/* Step 3. The clock is read afresh; what becomes due meanwhile waits for the next beat. */
static BEAT_INLINE void run_due_timers(struct worker *w)
{
	struct step step;
	int64_t now;

	hive__sweep_cancelled(w);
	if (hive__next_due(w) == HIVE_FOREVER)
		return;
	step = step_begin(w, w->setup.timer_budget, NULL, NULL);
	now = step.budget > 1 ? step.began_ns : hive__now(w->hive);
	while (step_goes_on(w, &step) && hive__run_first_timer(w, now))
		step.done++;
	if (step.done > 0)
		w->timer_wake_ns = now;
}

static bool has_local(struct worker *w)
{
	return local_size(&w->local) > 0;
}

static bool next_local(struct worker *w, struct hive_task *ret_task)
{
	return local_pop(&w->local, ret_task, &w->newest_run, w->setup.newest_run);
}

/* Would a task that is pushed into the local queue now be the next one of the step under way? Then it counts as such. */
bool hive__step_would_take(struct worker *w)
{
	struct step *step = w->step;
	bool is_next = !w->local.oldest &&
	               w->newest_run < w->setup.newest_run; /* else it is, or may be, an older one's turn */

	if (!step || step->next != next_local || !is_next || !step_has_time(w, step))
		return false;
	step->done++;
	w->newest_run++;
	return true;
}

/* Half as much while the world outside waits: something came from there since the last beat with local tasks. A quarter more when
 * nothing did, and the budget was too small.                                                                             */
static void adapt_budget(struct worker *w, bool private_came, bool used_up)
{
	uint64_t events = load_relaxed(&w->stats.events);
	uint32_t budget = load_relaxed(&w->stats.budget);

	if (private_came || events != w->events_seen)
		budget = budget / 2 > TUNE_ADAPTIVE_LEAST ? budget / 2 : TUNE_ADAPTIVE_LEAST;
	else if (used_up)
		budget = budget + budget / 4 < TUNE_ADAPTIVE_MOST ? budget + budget / 4 : TUNE_ADAPTIVE_MOST;
	w->events_seen = events;
	store_relaxed(&w->stats.budget, budget);
}

/* Step 4. True: there was something. */
static BEAT_INLINE bool run_local(struct worker *w, bool private_came)
{
	bool at_once = tray_length(&w->placed) > 0 && hive__take_placed(w);
	struct step step;

	if (local_size(&w->local) == 0) {
		w->newest_run = 0;
		w->oldest_turn_ns = 0;
		return at_once;
	}
	step = step_begin(w, (int32_t)load_relaxed(&w->stats.budget), next_local, has_local);
	if (w->oldest_turn_ns == 0) {
		w->oldest_turn_ns = step.began_ns;
	} else if (step.began_ns - w->oldest_turn_ns >= TUNE_NEWEST_NS && w->newest_run >= TUNE_NEWEST_ROW) {
		w->oldest_turn_ns = step.began_ns;
		w->newest_run = w->setup.newest_run;
	}
	step_run(w, &step);
	if (w->setup.adaptive)
		adapt_budget(w, private_came, step.done >= step.budget);
	return at_once || step.done > 0;
}

static bool tick_is(const struct worker *w, int32_t interval)
{
	return interval == 1 || w->tick % (uint32_t)interval == 0;
}

/* One way to keep a stream of local tasks from starving the pool: it comes before them, now and then. */
static bool run_pool_first(struct worker *w)
{
	return w->setup.pool_first && tick_is(w, w->setup.pool_probe_interval) && hive__run_from_pool(w);
}

/* The other way: it comes after them, now and then. */
static void probe_pool_now_and_then(struct worker *w)
{
	if (!w->setup.pool_first && ++w->busy_beats >= (uint32_t)w->setup.pool_probe_interval)
		hive__take_from_pool(w);
}

/* Does this beat have steps 1 to 3? Each one does, unless it was told to look at the system less often while it is busy. */
static bool begin_beat(struct worker *w)
{
	w->tick++;
	return !w->busy || tick_is(w, w->setup.io_interval);
}

/* The parts of a beat that has to end in time. */
enum part { PART_PRIVATE, PART_TIMERS, PART_LOCAL, PART_FORKS, PART_OTHERS, PARTS };

/* What a beat has done, besides looking. */
static uint64_t deeds(const struct worker *w)
{
	return load_relaxed(&w->stats.ran) + load_relaxed(&w->stats.events) + load_relaxed(&w->stats.timers_fired);
}

static bool frame_is_over(const struct worker *w)
{
	return hive__now(w->hive) >= w->frame_end_ns;
}

static void run_forks_in_frame(struct worker *w)
{
	uint32_t most = load_relaxed(&w->stats.budget);

	for (uint32_t n = 0; n < most && (n == 0 || !frame_is_over(w)) && hive__run_own_forks(w, 1); n++)
		w->busy = true;
}

static void run_part(struct worker *w, enum part part, bool looks_outside, bool *private_came)
{
	switch (part) {
	case PART_PRIVATE:
		*private_came = looks_outside && run_private(w);
		break;
	case PART_TIMERS:
		if (looks_outside)
			run_due_timers(w);
		break;
	case PART_LOCAL:
		w->busy = run_pool_first(w) || run_local(w, *private_came) || w->busy;
		break;
	case PART_FORKS:
		run_forks_in_frame(w);
		break;
	case PART_OTHERS:
		if (w->busy || local_size(&w->local) > 0) /* which had no turn in this beat */
			probe_pool_now_and_then(w);
		else
			w->busy = hive__take_from_pool(w) || hive__steal_some(w);
		break;
	case PARTS:
		break;
	}
}

/* Steps 2 to 6 of a worker with a frame: they end with the first task after it, and not before there was one, so that a thread which others keep from running
 * gets on all the same. Whoever had no turn because of that is the first in the next beat, so that none of them, however long its tasks are,
 * starves another; without such a flood the order is that of every beat.                                               */
static __attribute__((noinline)) void work_in_frame(struct worker *w, bool looks_outside)
{
	uint32_t part = w->frame_part, n = 0;
	uint64_t before = deeds(w);
	bool private_came = false;

	w->frame_end_ns = time_add(hive__now(w->hive), w->frame_ns);
	if (w->frame_end_ns > w->frame_limit_ns)
		w->frame_end_ns = w->frame_limit_ns;
	do {
		run_part(w, (enum part)part, looks_outside, &private_came);
		part = part + 1 < PARTS ? part + 1 : 0;
		n++;
	} while (n < PARTS && !hive__is_halted(w) && ((deeds(w) == before && !w->busy) || !frame_is_over(w)));
	w->frame_part = n < PARTS ? part : 0;
	if (n < PARTS) {
		bump(&w->stats.frames_cut, 1);
		w->busy = true; /* it has not looked everywhere */
	}
}

/* Steps 2 to 6.5. */
static void work(struct worker *w, bool looks_outside)
{
	bool private_came = false;

	bump(&w->stats.beats, 1);
	w->busy = false;
	if (w->frame_ns > 0 && !hive__is_halted(w)) {
		work_in_frame(w, looks_outside);
	} else if (!hive__is_halted(w)) {
		if (looks_outside) {
			private_came = run_private(w); /* 2 */
			run_due_timers(w);             /* 3 */
		}
		w->busy = run_pool_first(w) || run_local(w, private_came); /* 4 */
		if (load_relaxed(&w->forks))                               /* 4, forks */
			w->busy = hive__run_own_forks(w, (int32_t)load_relaxed(&w->stats.budget)) || w->busy;
		if (w->busy)
			probe_pool_now_and_then(w); /* 5, now and then */
		else
			w->busy = hive__take_from_pool(w) || /* 5 */
			          hive__steal_some(w);       /* 6 */
	}
	hive__flush_outbox(w); /* 6.5 */
}

bool hive__beat(struct worker *w)
{
	bool looks_outside = begin_beat(w);

	if (looks_outside)
		turn_core(w);
	work(w, looks_outside);
	return hive__parting(w) != PARTING_LEAVE;
}

/* Announced asleep, so that any later post wakes it; the host waits, so long at most. 0: there is something to do. */
static int64_t sleep_in_host(struct worker *w)
{
	int64_t wait_ns = time_to_sleep(w);

	if (wait_ns <= 0 || !hive__fall_asleep(w))
		return 0;
	bump(&w->stats.sleeps, 1);
	return wait_ns;
}

/* The host waits instead of the core: the beat ends announced asleep. Nobody sleeps without having
 * looked, and at the time at which he does: in a beat that takes time others see its end before it is.                      */
bool hive__beat_stepped(struct worker *w, int64_t *ret_wait_ns)
{
	bool looks_outside = begin_beat(w);
	int64_t began_ns = hive__now(w->hive);

	hive__get_up(w);
	if (looks_outside)
		turn(w, 0);
	work(w, looks_outside);
	if (hive__parting(w) == PARTING_LEAVE)
		return false;
	*ret_wait_ns = looks_outside && hive__now(w->hive) == began_ns ? sleep_in_host(w) : 0;
	return true;
}

/* As turn_core() does it: what on_park posts keeps it awake, and each is followed by one on_unpark. */
static int64_t park_in_host(struct worker *w)
{
	int64_t wait_ns;

	if (time_to_sleep(w) <= 0)
		return 0;
	hive__call_hook(w, w->setup.on_park);
	wait_ns = sleep_in_host(w);
	if (wait_ns <= 0)
		hive__call_hook(w, w->setup.on_unpark);
	return wait_ns;
}

static void get_up_in_host(struct worker *w, int64_t now_ns)
{
	bool parked = w->announced;

	hive__get_up(w);
	parking_end(&w->parking);
	if (!parked)
		return;
	bump(&w->stats.asleep_ns, now_ns - w->down_ns);
	hive__call_hook(w, w->setup.on_unpark);
}

/* Only a beat that has done nothing is followed by sleep: what is asked of the core in one is sent off by the turn of the next. Its frame used up, it
 * is awake until its next step, and nobody shall count on it meanwhile; nor is it stuck.                                  */
bool hive__beat_foreign(struct worker *w, int64_t *ret_wait_ns)
{
	int64_t now_ns = hive__now(w->hive);

	get_up_in_host(w, now_ns);
	w->frame_limit_ns = time_add(now_ns, w->frame_ns);
	do {
		bool looks_outside = begin_beat(w);
		uint64_t before = deeds(w);
		int r = looks_outside ? turn(w, 0) : 0;

		if (r < 0 && r != -EAGAIN) /* that: it could not send all it had */
			report_failure(w, r);
		work(w, looks_outside);
		if (hive__parting(w) == PARTING_LEAVE)
			return false;
		*ret_wait_ns = looks_outside && deeds(w) == before ? park_in_host(w) : 0;
		now_ns = hive__now(w->hive);
		if (*ret_wait_ns > 0) {
			w->down_ns = now_ns;
			if (r < 0 && *ret_wait_ns > TUNE_GUEST_RETRY_NS)
				*ret_wait_ns = TUNE_GUEST_RETRY_NS;
			return true;
		}
	} while (now_ns < w->frame_limit_ns);
	hive__end_search(w);
	parking_begin(&w->parking);
	return true;
}

/* Inside a turn, in a callback that runs the core's loop once more: all of a beat but the turn. Announced asleep at its end, as above; but not
 * if it has done something, which may have ended that loop: then the callback goes on.                                     */
bool hive__beat_nested(struct worker *w, int64_t *ret_wait_ns)
{
	uint64_t before;

	w->turning = w->foreign = false;
	w->up_ns = 0;
	hive__get_up(w);
	if (w->brought_count > 0)
		hive__share_brought(w);
	before = deeds(w);
	work(w, true);
	w->turning = w->foreign = w->still = true;
	if (hive__parting(w) == PARTING_LEAVE)
		return false;
	*ret_wait_ns = deeds(w) == before ? sleep_in_host(w) : 0;
	return true;
}
