/* SPDX-License-Identifier: MIT */
/* The life of a worker on its thread: open the core, beat, leave, close the core. */
#include "base/futex.h"
#include "base/thread.h"
#include "base/core_setup.h"
#include "sched/internal.h"

/* A compute worker, to whoever waits for events; most of all beside a window. */
static void give_way(bool shows)
{
	hive__thread_nice_at_least(shows ? TUNE_UI_COMPUTE_NICE : TUNE_COMPUTE_NICE);
	if (shows)
		hive__thread_slices(TUNE_UI_COMPUTE_SLICE_NS);
}

/* So short that it is let in when it wakes. */
void hive__ask_short_slices(const struct worker *w)
{
	hive__thread_slices(w->setup.ui ? TUNE_UI_SLICE_NS : TUNE_IO_SLICE_NS);
}

/* Before all that is ordinary: because the program demands it, or because it is a UI thread and the system allows it. */
int hive__ask_realtime(struct worker *w)
{
	w->review_ns = HIVE_FOREVER;
	if (w->setup.realtime > 0) {
		int r = hive__thread_realtime(w->setup.realtime);

		return r < 0 ? r : 1;
	}
	if (!w->setup.realtime_if_allowed || !hive__thread_realtime_if_allowed(TUNE_UI_REALTIME))
		return 0;
	w->review_ns = 0;
	return 1;
}

/* A limit may come later: who plays sound by way of RealtimeKit sets one, for the whole process. */
void hive__review_realtime(struct worker *w)
{
	w->review_ns = time_add(w->up_ns, TUNE_UI_REVIEW_NS);
	if (!hive__thread_is_timed())
		return;
	hive__thread_restore_policy(w->policy_before);
	hive__ask_short_slices(w);
	w->review_ns = HIVE_FOREVER;
}

static int apply_schedule(struct worker *w)
{
	int r;

	w->policy_before = hive__thread_policy();

	if (w->kind == HIVE_WORKER_IO)
		hive__ask_short_slices(w);
	r = hive__ask_realtime(w);
	if (r < 0)
		return r;
	if (w->setup.batch) {
		r = hive__thread_batch();
		if (r < 0)
			return r;
	}
	if (w->setup.nice_by_default) {
		give_way(load_relaxed(&w->hive->shows));
		return 0;
	}
	return w->setup.nice == HIVE_OFF ? 0 : hive__thread_nice(w->setup.nice);
}

/* What the system shall know of a thread that is ours. */
static int dress_thread(struct worker *w)
{
	int r = 0;

	hive__thread_name(w->name);
	hive__thread_timer_slack(1);
	if (w->setup.keep_signals)
		hive__thread_restore_signals(&w->creator_signals);
	else
		hive__thread_block_signals();
	hive__watchdog_dress(w->hive);
	if (w->setup.cpu_count > 0)
		r = hive__thread_pin(w->setup.cpus, w->setup.cpu_count);
	return r < 0 ? r : apply_schedule(w);
}

/* The library's own cores take the hive's memory unless they are told otherwise. */
static int open_core(struct worker *w, const struct hive_core_ops *ops, struct hive_core **ret_core)
{
	struct core_setup setup = { w->hive->memory, w->setup.ring_entries };
	void *arg = w->setup.core_arg;

	return ops->open(!arg && (ops->flags & CORE_TAKES_SETUP) ? &setup : arg, ret_core);
}

/* In place of a core that nobody named, and that could be had a moment ago. */
static int open_other_core(struct worker *w, int why, const struct hive_core_ops **ret_ops, struct hive_core **ret_core)
{
	const struct hive_core_ops *ops = NULL;

	if (hive_core_find("epoll", &ops) < 0 || ops == w->setup.core || open_core(w, ops, ret_core) < 0)
		return why;
	hive__notice_core(w->hive, w->setup.core->name, why, ops->name);
	*ret_ops = ops;
	return 0;
}

/* On its thread (or on that of whoever steps it). 0 or -errno. */
int hive__worker_open(struct worker *w)
{
	const struct hive_core_ops *ops = w->setup.core;
	struct hive_core *core;
	int r;

	if (w->kind == HIVE_WORKER_COMPUTE)
		return 0;
	r = open_core(w, ops, &core);
	if (r < 0 && w->setup.any_core)
		r = open_other_core(w, r, &ops, &core);
	if (r < 0)
		return r;
	lock_acquire(&w->hive->registry_lock);
	w->setup.core = ops;
	w->core = core;
	lock_release(&w->hive->registry_lock);
	return 0;
}

void hive__worker_close(struct worker *w)
{
	struct hive_core *core = w->core;

	if (!core)
		return;
	for (uint32_t tries = 0; !idle_wakes_delivered(&w->woken, w->claims); tries++)
		hive__thread_give_way(tries);
	lock_acquire(&w->hive->registry_lock);
	w->core = NULL;
	lock_release(&w->hive->registry_lock);
	core->ops->close(core);
}

void hive__worker_start(struct worker *w)
{
	w->started = true;
	store_relaxed(&w->system_thread, w->hive->stepped ? (uint32_t)WORKER_STEPPED : hive__thread_system_number());
	hive__call_hook(w, w->setup.on_start);
}

/* What an IO worker still has goes to the others while anything may run. The main worker is the last: there are no others. */
static void end_io(struct worker *w)
{
	uint32_t state = hive__state(w->hive);

	if (state >= HIVE_DRAINING)
		hive__silence(w);
	if (state < HIVE_LEAVING && w != load_relaxed(&w->hive->main)) {
		hive__hand_over(w);
		return;
	}
	hive__call_hook(w, w->setup.on_stop);
	if (w != load_relaxed(&w->hive->main)) /* detached, and then the stop came: others end what waits here */
		hive__move_guests(w);
	hive__drop_queues(w, true);
}

/* After the last beat. */
void hive__worker_end(struct worker *w)
{
	hive__trail(w, TRAIL_LEAVES, 0);
	hive__get_up(w);
	hive__end_search(w); /* it may have been claimed for work that it will not do: passed on */
	if (w->kind == HIVE_WORKER_IO) {
		end_io(w);
	} else {
		hive__call_hook(w, w->setup.on_stop);
		hive__run_own_forks(w, INT32_MAX); /* of that */
	}
	hive__place_leave(w);
	hive__worker_close(w);
	store_relaxed(&w->system_thread, 0u);
}

/* The last thing but one that a worker does: afterwards it may be freed once its thread is joined. */
static void sign_off(struct worker *w)
{
	struct hive *hive = w->hive;
	struct worker *main = load_relaxed(&hive->main);

	lock_acquire(&hive->registry_lock);
	if (w->kind == HIVE_WORKER_COMPUTE)
		sub_seq(&hive->compute_alive, 1u); /* ALIVE-3 (pairs with ALIVE-4) */
	sub_seq(&hive->alive, 1u);                 /* ALIVE-1 (pairs with ALIVE-2) */
	store_release(&w->gone, 1u);               /* GONE-1 (pairs with GONE-2) */
	hive__kick(main);                          /* which is another one: it does not sign off */
	hive__futex_wake(&w->gone, INT32_MAX);
	lock_release(&hive->registry_lock);
}

static void report_open(struct worker *w, int r)
{
	store_release(&w->opened, r < 0 ? (uint32_t)(1 - r) : 1u); /* OPEN-1 (pairs with OPEN-2) */
	hive__futex_wake(&w->opened, INT32_MAX);
}

/* At start nobody begins before everybody is there; true: go. */
static bool wait_for_all(struct hive *hive)
{
	hive__wait_word(hive, &hive->state, HIVE_STARTING, HIVE_FOREVER);
	return hive__state(hive) != HIVE_UNDOING; /* which stays until we have ended */
}

static void run_loop(struct worker *w)
{
	if (w->kind == HIVE_WORKER_COMPUTE) {
		while (hive__compute_beat(w, NULL))
			;
	} else {
		while (hive__beat(w))
			;
	}
}

static void thread_main(void *arg)
{
	struct worker *w = (struct worker *)arg;
	struct hive *hive = w->hive;
	int r = dress_thread(w);
	bool is_main;

	if (r == 0)
		r = hive__worker_open(w);
	report_open(w, r);
	if (r < 0)
		return;
	if (!wait_for_all(hive)) {
		hive__worker_close(w);
		return;
	}
	is_main = w == load_relaxed(&hive->main);
	w->stack_low = hive__thread_stack_low();
	hive__set_current(w);
	hive__worker_start(w);
	run_loop(w);
	hive__worker_end(w);
	hive__set_current(NULL);
	if (is_main)
		hive__finish(hive);
	else
		sign_off(w);
}

/* The host calls this instead of giving it a thread. */
static int step(void *arg, int64_t *ret_wait_ns)
{
	struct worker *w = (struct worker *)arg, *outer = hive__current();
	struct hive *hive = w->hive;
	bool goes_on;

	if (load_relaxed(&w->gone))
		return -ESHUTDOWN;
	*ret_wait_ns = 0;
	hive__set_current(w);
	if (!w->started)
		hive__worker_start(w);
	goes_on = w->kind == HIVE_WORKER_COMPUTE ? hive__compute_beat(w, ret_wait_ns)
	                                         : hive__beat_stepped(w, ret_wait_ns);
	if (!goes_on)
		hive__worker_end(w);
	hive__set_current(outer);
	if (goes_on)
		return 0;
	if (w == load_relaxed(&hive->main)) {
		store_relaxed(&w->gone, 1u);
		hive__finish(hive);
	} else {
		sign_off(w);
	}
	return -ESHUTDOWN;
}

/* Waits until *word != value. 0, or -ETIMEDOUT; with a host that has no threads it makes the world go on meanwhile. */
int hive__wait_word(struct hive *hive, ATOMIC(uint32_t) *word, uint32_t value, int64_t deadline_ns)
{
	/* OPEN-2 (pairs with OPEN-1), GONE-2 (pairs with GONE-1), or the caller says */
	while (load_acquire(word) == value) {
		int64_t now = deadline_ns == HIVE_FOREVER ? 0 : hive__now(hive);

		if (now >= deadline_ns)
			return -ETIMEDOUT;
		if (hive->stepped) {
			int r = hive->host.step_wait(hive->host.arg, deadline_ns);

			if (r < 0)
				return r;
		} else {
			hive__futex_wait(word, value, deadline_ns == HIVE_FOREVER ? HIVE_FOREVER : deadline_ns - now);
		}
	}
	return 0;
}

static int launch_stepped(struct worker *w)
{
	struct hive *hive = w->hive;
	int r = hive__worker_open(w);

	if (r < 0)
		return r;
	r = hive->host.step_start(hive->host.arg, w->self_id, step, w);
	if (r < 0)
		hive__worker_close(w);
	return r;
}

/* Gives the worker its thread and waits until its core is open. 0 or -errno, and then nothing is left of it. */
int hive__launch(struct worker *w)
{
	struct hive *hive = w->hive;
	uint32_t opened;
	int r;

	store_relaxed(&w->opened, 0u);
	store_relaxed(&w->gone, 0u);
	w->started = false;
	if (hive->stepped)
		return launch_stepped(w);
	hive__thread_save_signals(&w->creator_signals);
	r = hive->host.thread_start(hive->host.arg, thread_main, w, &w->thread);
	if (r < 0)
		return r;
	w->has_thread = true;
	hive__wait_word(hive, &w->opened, 0, HIVE_FOREVER);
	opened = load_acquire(&w->opened); /* OPEN-2 (pairs with OPEN-1) */
	if (opened == 1)
		return 0;
	hive__reap(w);
	return 1 - (int)opened;
}

/* It was launched, and then the start was called off. */
void hive__unlaunch(struct worker *w)
{
	if (w->hive->stepped) {
		w->hive->host.step_stop(w->hive->host.arg, w);
		hive__worker_close(w);
	}
	hive__reap(w);
}

/* The thread has ended or is about to. Whoever comes first joins it. Under registry_lock. */
void hive__reap_locked(struct worker *w)
{
	if (w->has_thread)
		w->hive->host.thread_join(w->hive->host.arg, w->thread);
	w->has_thread = false;
}

void hive__reap(struct worker *w)
{
	bool ours;

	lock_acquire(&w->hive->registry_lock);
	ours = w->has_thread;
	w->has_thread = false;
	lock_release(&w->hive->registry_lock);
	if (ours)
		w->hive->host.thread_join(w->hive->host.arg, w->thread);
}
