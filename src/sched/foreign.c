/* SPDX-License-Identifier: MIT */
/* A hive whose main worker has no thread of its own: another loop owns the thread, waits for the descriptor of the worker's core, and calls steps. It is
 * the beat all the same (hive__beat_foreign()); only the wait is elsewhere.
 *
 * Between two steps the worker is announced asleep and committed to it (parking.h), as one that blocks in its core. So who posts claims it
 * and wakes the core, which makes the descriptor readable; and the next step, whyever it is made, gets up first, and takes back what the wake has
 * left in the core by a turn that does not wait. After a step that has used up its frame it is awake, and is called again at once.
 *
 * The thread is a worker's only inside a step. Elsewhere it is a foreign one, but for what would wait for ever: its own steps.    */
#include "base/thread.h"
#include "sched/internal.h"

bool hive__steps_here(const struct hive *hive)
{
	uint64_t thread = load_relaxed(&hive->guest_thread);

	return thread != 0 && thread == hive__thread_number();
}

bool hive__acts_for(struct hive *hive, uint32_t worker)
{
	struct worker *w = hive__find_io(hive, worker), *here = hive__current_in(hive);

	if (here && (here == w || here->self_id == worker))
		return true;
	if (!w || hive__state(hive) == HIVE_STOPPED)
		return true;
	return !here && w == load_relaxed(&hive->main) && hive__steps_here(hive);
}

/* What it does not want to wait for it must not be asked to do by others first. */
static void become_guest(struct worker *w)
{
	if (w->frame_ns <= 0)
		w->frame_ns = TUNE_FRAME_NS;
	store_relaxed(&w->shy, 1u);
}

int hive_guest_start(struct hive *hive, int *ret_fd)
{
	struct worker *w;
	int r;

	if (!hive || !ret_fd)
		return -EINVAL;
	if (hive->stepped)
		return -ENOTSUP;
	r = hive__start_around(hive, ret_fd);
	if (r < 0)
		return r;
	w = load_relaxed(&hive->main);
	become_guest(w);
	store_relaxed(&hive->guest_thread, hive__thread_number());
	hive__now_running(hive);
	hive->stepping = true;
	hive__set_current(w);
	hive__worker_start(w);
	hive__set_current(NULL);
	hive->stepping = false;
	parking_begin(&w->parking); /* not stuck, whenever the first step is */
	return 0;
}

/* 0: this thread may make a step now. */
static int may_step(const struct hive *hive, int64_t *ret_wait_ns)
{
	if (forkmark_is_child(hive->mark))
		return -EOWNERDEAD;
	if (load_relaxed(&hive->guest_thread) == 0)
		return -EINVAL;
	if (!hive__steps_here(hive))
		return -EPERM;
	if (hive->stepping) {
		*ret_wait_ns = HIVE_FOREVER;
		return -EDEADLK;
	}
	return hive__state(hive) == HIVE_STOPPED ? -ESHUTDOWN : 0;
}

int hive_guest_step(struct hive *hive, int64_t *ret_wait_ns)
{
	struct worker *w, *outer;
	int64_t wait_ns = 0;
	bool goes_on;
	int r = hive && ret_wait_ns ? may_step(hive, ret_wait_ns) : -EINVAL;

	if (r < 0)
		return r;
	w = load_relaxed(&hive->main);
	outer = hive__current(); /* of another hive, whose task runs a loop in which this one is a guest */
	hive->stepping = true;
	hive__set_current(w);
	goes_on = hive__beat_foreign(w, &wait_ns);
	if (!goes_on)
		hive__worker_end(w);
	hive__set_current(outer);
	hive->stepping = false;
	if (goes_on) {
		*ret_wait_ns = wait_ns;
		return 0;
	}
	hive__finish(hive);
	store_release(&hive->in_run, 0u); /* RUN-5 (pairs with RUN-2 and RUN-3); the hive may be gone from here on */
	return -ESHUTDOWN;
}
