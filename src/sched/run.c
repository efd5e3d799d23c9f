/* SPDX-License-Identifier: MIT */
/* The life of the hive: start, stop, join, report. */
#include "base/futex.h"
#include "base/thread.h"
#include "sched/internal.h"

static void set_state(struct hive *hive, uint32_t state)
{
	state_write(&hive->state, state);
	hive__futex_wake(&hive->state, INT32_MAX);
}

/* CREATED → STARTING, by one caller only. */
static int begin_start(struct hive *hive)
{
	uint32_t state = HIVE_CREATED;

	if (!hive || hive__current())
		return hive ? -EDEADLK : -EINVAL;
	if (forkmark_is_child(hive->mark))
		return -EOWNERDEAD;
	lock_acquire(&hive->registry_lock);
	if (!load_relaxed(&hive->main) && load_relaxed(&hive->state) == HIVE_CREATED) {
		lock_release(&hive->registry_lock);
		return -EINVAL;
	}
	state_move(&hive->state, &state, HIVE_STARTING);
	lock_release(&hive->registry_lock);
	if (state == HIVE_CREATED)
		return 0;
	return state >= HIVE_DRAINING ? -ESHUTDOWN : -EALREADY;
}

/* Under STARTING nobody else attaches or detaches. Launches all of one kind but `except`. */
static int launch_set(struct workers *set, struct worker *except)
{
	for (uint32_t i = 0; i < hive__limit(set); i++) {
		struct worker *w = hive__slot(set, i);
		int r;

		if (w == except || w->life != WORKER_ATTACHED)
			continue;
		r = hive__launch(w);
		if (r < 0)
			return r;
		w->life = WORKER_RUNNING;
	}
	return 0;
}

static void unlaunch_set(struct workers *set)
{
	for (uint32_t i = 0; i < hive__limit(set); i++) {
		struct worker *w = hive__slot(set, i);

		if (w->life != WORKER_RUNNING)
			continue;
		hive__unlaunch(w);
		w->life = WORKER_ATTACHED;
	}
}

/* Back to where we were: threads that wait for the start see that it is called off, and end; others go on waiting for us, and find nothing of it
 * when they no longer do.                                                                                                 */
static int undo_start(struct hive *hive, int r)
{
	hive__monitor_stop(hive);
	set_state(hive, HIVE_UNDOING);
	unlaunch_set(&hive->io);
	unlaunch_set(&hive->compute);
	hive__watchdog_close(hive);
	hive__worker_close(load_relaxed(&hive->main)); /* where this thread opened it: hive_run() */
	set_state(hive, HIVE_CREATED);
	return r;
}

static int launch_all(struct hive *hive, struct worker *except)
{
	int r;

	hive__watchdog_open(hive);
	r = launch_set(&hive->io, except);

	if (r == 0)
		r = launch_set(&hive->compute, NULL);
	if (r == 0 && (hive__follows(hive) || hive->stall_ns > 0))
		r = hive__monitor_start(hive);
	if (r < 0)
		return undo_start(hive, r);
	store_relaxed(&hive->compute_alive, load_relaxed(&hive->compute.count));
	store_relaxed(&hive->alive, load_relaxed(&hive->io.count) + load_relaxed(&hive->compute.count));
	return 0;
}

/* A stop that came while we started goes on from here. */
void hive__now_running(struct hive *hive)
{
	uint32_t starting = HIVE_STARTING;

	state_move(&hive->state, &starting, HIVE_RUNNING);
	hive__futex_wake(&hive->state, INT32_MAX);
}

int hive_start(struct hive *hive)
{
	int r = begin_start(hive);

	if (r < 0)
		return r;
	r = launch_all(hive, NULL);
	if (r < 0)
		return r;
	hive->main_has_thread = !hive->stepped;
	if (hive->stepped)
		hive__enter_world(hive);
	hive__now_running(hive);
	return 0;
}

/* A descriptor, if it was asked for. */
static int descriptor_of(struct hive_core *core, int *ret_fd)
{
	int fd = 0;

	if (ret_fd)
		fd = core->ops->fd ? core->ops->fd(core) : -ENOTSUP;
	if (fd < 0)
		return fd;
	if (ret_fd)
		*ret_fd = fd;
	return 0;
}

/* What the program's own thread is asked for; if a part is refused, nothing. The policy only while it runs the hive, which a guest's host does
 * not.                                                                                                                       */
static int dress_main(struct worker *main, bool is_guest)
{
	int r;

	main->policy_before = hive__thread_policy();
	main->slack_before = hive__thread_timer_slack(0); /* which is another one while the policy is */
	r = is_guest ? 0 : hive__ask_realtime(main);
	main->is_realtime = r > 0;
	if (r < 0 || main->setup.cpu_count == 0)
		return r;
	r = hive__thread_pin(main->setup.cpus, main->setup.cpu_count);
	if (r < 0 && main->is_realtime) {
		hive__thread_restore_policy(main->policy_before);
		hive__thread_timer_slack(main->slack_before);
	}
	return r;
}

/* The threads of the others inherit what this one has when it makes them: so it is dressed last. */
static int launch_and_dress(struct hive *hive, struct worker *main, bool is_guest)
{
	int r = launch_all(hive, main);

	if (r < 0)
		return r;
	r = dress_main(main, is_guest);
	return r < 0 ? undo_start(hive, r) : 0;
}

static int open_main(struct hive *hive, struct worker *main, int *ret_fd)
{
	int r = hive__worker_open(main), fd = -1;

	if (r < 0)
		return undo_start(hive, r);
	r = descriptor_of(main->core, ret_fd ? &fd : NULL);
	r = r < 0 ? undo_start(hive, r) : launch_and_dress(hive, main, ret_fd);
	if (r < 0)
		return r;
	main->life = WORKER_RUNNING;
	if (ret_fd)
		*ret_fd = fd;
	return 0;
}

int hive__start_around(struct hive *hive, int *ret_fd)
{
	int r = begin_start(hive);

	if (r < 0)
		return r;
	store_relaxed(&hive->in_run, 1u);
	r = open_main(hive, load_relaxed(&hive->main), ret_fd);
	if (r < 0)
		store_release(&hive->in_run, 0u); /* RUN-4 (pairs with RUN-2 and RUN-3) */
	return r;
}

static void run_main(struct hive *hive, struct worker *main)
{
	hive__thread_timer_slack(1);
	hive__ask_short_slices(main);
	hive__now_running(hive);
	hive__set_current(main);
	hive__worker_start(main);
	while (hive__beat(main))
		;
	hive__worker_end(main);
	hive__set_current(NULL);
	if (main->is_realtime)
		hive__thread_restore_policy(main->policy_before);
	hive__thread_timer_slack(main->slack_before);
	hive__thread_slices(0);
	hive__finish(hive);
}

int hive_run(struct hive *hive)
{
	int r;

	if (hive && hive->stepped) {
		r = hive_start(hive);
		return r < 0 ? r : hive_join(hive, HIVE_FOREVER);
	}
	r = hive__start_around(hive, NULL);
	if (r < 0)
		return r;
	run_main(hive, load_relaxed(&hive->main));
	store_release(&hive->in_run, 0u); /* RUN-1 (pairs with RUN-2 and RUN-3); the hive may be gone from here on */
	return 0;
}

static void finish_set(struct hive *hive, struct workers *set)
{
	struct hive_task task;

	for (uint32_t i = 0; i < hive__limit(set); i++) {
		struct worker *w = hive__slot(set, i);

		while (w->kind == HIVE_WORKER_IO &&
		       hive__take_one_placed(w, &task)) /* see hive__hand_over_unstarted() */
			hive__drop(hive, task);

		if (w != load_relaxed(&hive->main))
			hive__reap(w);
	}
}

/* The main worker, when all others have left: their threads end, the pools are emptied, and that was it. */
void hive__finish(struct hive *hive)
{
	hive__monitor_stop(hive);
	hive__watchdog_end(hive);
	finish_set(hive, &hive->io);
	finish_set(hive, &hive->compute);
	hive__drop_pool(hive, &hive->pool);
	hive__drop_compute(hive);
	lock_acquire(&hive->registry_lock);
	store_relaxed(&hive->alive, 0u);
	hive->stopped_ns = hive__now(hive);
	lock_release(&hive->registry_lock);
	set_state(hive, HIVE_STOPPED);
}

/* Never started: nobody else will empty the queues. */
void hive__stop_unstarted(struct hive *hive)
{
	for (uint32_t i = 0; i < hive__limit(&hive->io); i++)
		hive__drop_queues(hive__slot(&hive->io, i), true);
	hive__finish(hive);
}

/* Under registry_lock. A second call may only hurry. ret_before: the state that it found. */
static int stop_locked(struct hive *hive, uint32_t target, int64_t deadline_ns, uint32_t *ret_before)
{
	uint32_t state = load_relaxed(&hive->state);

	*ret_before = state;
	if (state == HIVE_STOPPED)
		return -EALREADY;
	if (state < HIVE_DRAINING) {
		store_relaxed(&hive->stop_ns, hive__now(hive));
		store_relaxed(&hive->stop_deadline_ns, deadline_ns);
	} else if (target <= state) {
		if (state == HIVE_LEAVING || deadline_ns >= load_relaxed(&hive->stop_deadline_ns))
			return -EALREADY;
		store_relaxed(&hive->stop_deadline_ns, deadline_ns);
		hive__kick_all(hive);
		return 0;
	}
	pool_close(&hive->pool); /* first: who sees the new state and an empty pool may rely on it */
	levels_close(&hive->compute_pool);
	for (uint32_t i = 0; i < hive__limit(&hive->io); i++)
		tray_close(&hive__slot(&hive->io, i)->placed);
	state_write(&hive->state, state == HIVE_CREATED ? HIVE_LEAVING : target);
	hive__kick_all(hive);
	return 0;
}

int hive_stop(struct hive *hive, enum hive_stop_mode mode, int64_t deadline_ns)
{
	uint32_t before;
	int r;

	if (!hive || (mode != HIVE_DRAIN && mode != HIVE_NOW))
		return -EINVAL;
	if (forkmark_is_child(hive->mark))
		return -EOWNERDEAD;
	hive__lock_settled(hive);
	r = stop_locked(hive, mode == HIVE_NOW ? HIVE_LEAVING : HIVE_DRAINING, deadline_ns, &before);
	lock_release(&hive->registry_lock);
	if (r == 0 && before == HIVE_CREATED)
		hive__stop_unstarted(hive);
	return r;
}

/* Once stopped. The first caller reaps the main worker's thread. */
void hive__join_main(struct hive *hive)
{
	struct worker *main = load_relaxed(&hive->main);
	bool ours;

	lock_acquire(&hive->registry_lock);
	ours = hive->main_has_thread && !hive->main_joined;
	hive->main_joined = true;
	lock_release(&hive->registry_lock);
	if (ours)
		hive__reap(main);
}

int hive_join(struct hive *hive, int64_t deadline_ns)
{
	uint32_t state;

	if (!hive)
		return -EINVAL;
	if (forkmark_is_child(hive->mark))
		return -EOWNERDEAD;
	if (hive__current_in(hive))
		return -EDEADLK;
	while ((state = hive__state(hive)) != HIVE_STOPPED) {
		int r;

		if (state == HIVE_CREATED)
			return -EINVAL;
		if (hive__steps_here(hive))
			return -EDEADLK;
		r = hive__wait_word(hive, &hive->state, state, deadline_ns);
		if (r < 0)
			return r;
	}
	/* RUN-2 (pairs with RUN-1, RUN-4 and RUN-5): it is about to return */
	for (uint32_t tries = 0; load_acquire(&hive->in_run); tries++)
		hive__thread_give_way(tries);
	hive__join_main(hive);
	return 0;
}
