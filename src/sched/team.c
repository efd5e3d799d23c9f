/* SPDX-License-Identifier: MIT */
/* Workers as a team: forks, which one makes and others may take; and what a worker does while its task waits for what others took. */
#include "sched/team.h"

#include "base/latch.h"
#include "sched/internal.h"

int hive__team_door(struct hive *hive)
{
	if (!hive)
		return -EINVAL;
	return forkmark_is_child(hive->mark) ? -EOWNERDEAD : 0;
}

int hive__team_begin(struct hive *hive)
{
	if (forkmark_is_child(hive->mark))
		return -EOWNERDEAD;
	if (hive__current_in(hive)) {
		hive__hold(hive);
		return 0;
	}
	if (holds_begin_open(&hive->holds, &hive->state, 1u))
		return 0;
	hive__let_end(hive, 1);
	return -ESHUTDOWN;
}

uint32_t hive__team_size(struct hive *hive, enum hive_kind kind)
{
	return load_relaxed(kind == HIVE_COMPUTE ? &hive->compute.count : &hive->io.count);
}

/* ---- the worker's own ---- */

static struct fork_stack *make_stack(struct worker *w, fork_fn *run)
{
	struct fork_stack *stack = (struct fork_stack *)hive__memory_new(&w->hive->memory, sizeof *stack);

	if (!stack)
		return NULL;
	stack->run = run;
	forks_init(&stack->forks, stack->slots, TUNE_FORKS, !hive__barrier_open());
	forks_appear(&w->forks, stack);
	return stack;
}

bool hive__fork_slowly(struct worker *w, struct fork fork, fork_fn *run)
{
	struct fork_stack *stack = load_relaxed(&w->forks);
	enum forks_push pushed;

	if (!stack)
		stack = make_stack(w, run);
	if (!stack)
		return false;
	pushed = forks_push_slowly(&stack->forks, fork);
	if (pushed == FORKS_SHOWN && load_relaxed(&w->stealable))
		hive__wake_if_needed(w->hive, hive__set_of(w));
	return pushed != FORKS_FULL;
}

bool hive__run_own_forks(struct worker *w, int32_t most)
{
	struct fork_stack *stack = load_relaxed(&w->forks);
	struct fork fork;
	int32_t n;

	for (n = 0; n < most && team_pop(w, &fork); n++) {
		hive__end_search(w);
		stack->run(w, &fork, false);
	}
	return n > 0;
}

/* ---- those of others ---- */

/* The forks of the n-th worker of its kind after `w`, if it may have them; NULL. */
static struct fork_stack *forks_of(struct worker *w, struct workers *set, uint32_t n)
{
	struct worker *victim = hive__slot(set, (w->index + n) % hive__limit(set));
	struct fork_stack *stack = forks_seen(&victim->forks);

	return stack && load_relaxed(&victim->stealable) ? stack : NULL;
}

static void run_taken(struct worker *w, struct fork_stack *stack, const struct fork *fork)
{
	w->looked_twice = false;
	w->up_ns = 0;
	bump(&w->stats.forks, 1);
	store_relaxed(&w->last_task, fork->task.fn);
	hive__end_search(w);
	stack->run(w, fork, true);
}

bool hive__run_others_fork(struct worker *w)
{
	struct workers *set = hive__set_of(w);
	struct fork fork;

	if (hive__is_halted(w))
		return false;
	for (uint32_t n = 1; n < hive__limit(set); n++) {
		struct fork_stack *stack = forks_of(w, set, n);

		if (stack && forks_steal(&stack->forks, &fork)) {
			run_taken(w, stack, &fork);
			return true;
		}
	}
	return false;
}

static bool open_others(struct worker *w)
{
	struct workers *set = hive__set_of(w);
	struct fork fork;

	for (uint32_t n = 1; n < hive__limit(set); n++) {
		struct fork_stack *stack = forks_of(w, set, n);

		if (stack && forks_rescue(&stack->forks) && forks_steal(&stack->forks, &fork)) {
			run_taken(w, stack, &fork);
			return true;
		}
	}
	return false;
}

static bool others_have_forks(struct worker *w)
{
	struct workers *set = hive__set_of(w);

	for (uint32_t n = 1; n < hive__limit(set); n++) {
		struct fork_stack *stack = forks_of(w, set, n);

		if (stack && forks_length(&stack->forks) > 0)
			return true;
	}
	return false;
}

bool hive__search_forks(struct worker *w)
{
	struct hive *hive = w->hive;
	int64_t until_ns;

	if (hive__is_halted(w) || !others_have_forks(w))
		return false;
	if (w->kind == HIVE_WORKER_COMPUTE && !hive->exact_clock && !hive->stepped) {
		until_ns = hive__now(hive) + TUNE_FORK_SPIN_NS;
		do {
			if (hive__run_others_fork(w))
				return true;
			for (int i = 0; i < 16; i++)
				cpu_pause();
		} while (others_have_forks(w) && levels_look_empty(&hive->compute_pool) && hive__now(hive) < until_ns);
	}
	return hive__run_others_fork(w) || open_others(w);
}

bool hive__call_for_forks(struct worker *w)
{
	struct workers *set = hive__set_of(w);

	for (uint32_t n = 1; n < hive__limit(set); n++) {
		struct fork_stack *stack = forks_of(w, set, n);

		if (stack && forks_call(&stack->forks) > 0)
			return true;
	}
	return false;
}

/* A push that has passed the limit when it is called for is seen by nobody (forks_call). It is there a moment later. */
int64_t hive__fork_patience(struct worker *w)
{
	struct workers *set = hive__set_of(w);

	for (uint32_t n = 1; n < hive__limit(set) && !w->looked_twice; n++)
		if (forks_of(w, set, n) && !idle_is_asleep(&set->idle, (w->index + n) % hive__limit(set))) {
			w->looked_twice = true;
			return TUNE_FORK_LOOK_NS;
		}
	return HIVE_FOREVER;
}

/* ---- while a task waits ---- */

bool hive__has_room_to_help(const struct worker *w)
{
	const char *here = (const char *)__builtin_frame_address(0);

	if (!w->stack_low)
		return w->helps < TUNE_HELP_DEPTH;
	return here - w->stack_low > TUNE_HELP_STACK;
}

bool hive__help_by_fork(struct worker *w)
{
	bool found;

	if (!hive__has_room_to_help(w))
		return false;
	w->helps++;
	found = hive__run_others_fork(w);
	w->helps--;
	return found;
}

/* What is waited for may be among these; and others drop them only when no compute worker is left. */
static bool drop_compute_pool(struct hive *hive)
{
	if (levels_are_empty(&hive->compute_pool))
		return false;
	hive__drop_compute(hive);
	return true;
}

/* Tasks of the pool as well, though they may be long: what is waited for may be waiting for one of these. */
bool hive__help(struct worker *w)
{
	void *outer = w->task_slot; /* what is about the task that waits is not about the others */
	bool found;

	if (hive__is_halted(w))
		return drop_compute_pool(w->hive);
	if (!hive__has_room_to_help(w))
		return false;
	w->helps++;
	w->task_slot = NULL;
	found = hive__run_others_fork(w) || hive__run_compute_task(w) || open_others(w);
	w->task_slot = outer;
	w->helps--;
	return found;
}

/* Who has no room for what might come is not asleep to others: they would wake him for what he cannot do. */
static bool lie_down(struct worker *w, int64_t *ret_patience_ns)
{
	*ret_patience_ns = HIVE_FOREVER;
	if (!hive__has_room_to_help(w)) {
		hive__end_search(w);
		return true;
	}
	if (!hive__fall_asleep_in_task(w))
		return false;
	*ret_patience_ns = hive__fork_patience(w);
	return true;
}

int hive__doze(struct worker *w, int64_t deadline_ns)
{
	struct hive *hive = w->hive;
	int64_t began_ns, wait_ns, patience_ns;

	if (hive->stepped)
		return hive->host.step_wait(hive->host.arg, deadline_ns);
	began_ns = hive__now(hive);
	wait_ns = deadline_ns == HIVE_FOREVER ? HIVE_FOREVER : deadline_ns - began_ns;
	if (wait_ns <= 0 || !lie_down(w, &patience_ns))
		return 0;
	bump(&w->stats.sleeps, 1);
	store_relaxed(&w->dozes, (uint32_t)(deadline_ns != HIVE_FOREVER));
	parker_park(&w->parker, patience_ns < wait_ns ? patience_ns : wait_ns);
	store_relaxed(&w->dozes, 0u);
	hive__get_up(w);
	bump(&w->stats.asleep_ns, hive__now(hive) - began_ns);
	return 0;
}

void hive__team_wake(struct worker *w)
{
	parker_unpark(&w->parker);
}

/* What it was woken for, if for anything, it does not do: others have to. */
void hive__end_doze(struct worker *w)
{
	hive__end_search(w);
}

int hive__linger(struct worker *w, uint32_t tries, int64_t deadline_ns)
{
	struct hive *hive = w->hive;

	if (hive->stepped)
		return hive->host.step_wait(hive->host.arg, deadline_ns);
	hive__latch_stay_away(tries);
	return 0;
}

/* ---- what will not run ---- */

void hive__tell_dropped(struct hive *hive, struct hive_task task)
{
	lock_acquire(&hive->drop_lock);
	if (hive->on_drop)
		hive->on_drop(hive->hook_arg, &task);
	lock_release(&hive->drop_lock);
}
