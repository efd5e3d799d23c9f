/* SPDX-License-Identifier: MIT */
#pragma once
/* The scheduler's half of groups: where a worker keeps its forks, who takes them from there, and what a worker does whose task waits.
 *
 * Forks are not in the books of the hive: what its own worker runs again is a call with a detour, and no counter of the hive sees it. A group
 * counts for itself. To the scheduler a fork is three words and a function that knows what to do with them.
 *
 * Besides guest.h the only header of the scheduler that the upper layer sees, and only groups do: a fork and a join cost a few nanoseconds, of
 * which a call more would be a good part.                                                                               */
#include "queue/forks.h"
#include "sched/state.h"
#include "sched/tune.h"
#include "sched/worker.h"

/* On a worker of the kind that has forked it; `taken`: by another one. */
typedef void fork_fn(struct worker *w, const struct fork *fork, bool taken);

struct fork_stack { /* of one worker, made with its first fork; stays as long as the worker's memory */
	struct forks forks;
	fork_fn *run; /* I */
	struct fork_slot slots[TUNE_FORKS];
};

/* Whose thread this is: internal.h. Not in fibers, which may go on on another one. */
extern _Thread_local struct worker *hive__current_worker
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* ---- the worker itself ---- */

/* Kept, for itself or whoever is faster. False: there is no room, and no memory: the caller runs it. */
bool hive__fork_slowly(struct worker *w, struct fork fork, fork_fn *run);

/* The same, if there is room and nobody is hungry. */
static inline bool team_fork_quickly(struct worker *w, struct fork fork)
{
	struct fork_stack *stack = load_relaxed(&w->forks);

	return stack && forks_push(&stack->forks, fork);
}

static inline bool team_fork(struct worker *w, struct fork fork, fork_fn *run)
{
	return team_fork_quickly(w, fork) || hive__fork_slowly(w, fork, run);
}

/* The newest of its own, if nobody else has to be asked. */
static inline bool team_pop_quickly(struct worker *w, struct fork *ret_fork)
{
	struct fork_stack *stack = load_relaxed(&w->forks);

	return stack && forks_pop_private(&stack->forks, ret_fork);
}

/* The newest of its own. */
static inline bool team_pop(struct worker *w, struct fork *ret_fork)
{
	struct fork_stack *stack = load_relaxed(&w->forks);

	return stack && forks_length(&stack->forks) > 0 && forks_pop(&stack->forks, ret_fork);
}

/* Somebody looks for work, and there is nothing for him here. */
static inline bool team_is_wanted(struct worker *w)
{
	struct fork_stack *stack = load_relaxed(&w->forks);

	return !stack || load_relaxed(&stack->forks.limit) == FORKS_HUNGRY;
}

/* What groups have left behind for which nobody waits: so many of them, at most. True: there was something. */
bool hive__run_own_forks(struct worker *w, int32_t most);
/* One fork of another worker of its kind. True: there was one, and it was run. */
bool hive__run_others_fork(struct worker *w);
/* The same, with all means: waits a moment for somebody to show one, and then opens what they keep to themselves. */
bool hive__search_forks(struct worker *w);
/* Before sleep, announced: whoever forks from now on looks for sleepers. True: there are forks already. */
bool hive__call_for_forks(struct worker *w);
/* How long to sleep at most before one more look at forks; HIVE_FOREVER: there is nobody who might have been overlooked. */
int64_t hive__fork_patience(struct worker *w);

/* There is room on its stack for one more task, beside those that wait. */
bool hive__has_room_to_help(const struct worker *w);
/* A worker whose task waits for others. Runs a fork of another one meanwhile; false: there is none, or no room on its stack. */
bool hive__help_by_fork(struct worker *w);
/* The task that runs, or waits, here has used up its slice (slice.c): what is not its own business is not begun any more. */
bool hive__slice_is_over(struct worker *w);
/* A compute worker whose task waits for others. Runs something else meanwhile; false: there is nothing, or no room on its stack. */
bool hive__help(struct worker *w);
/* There was nothing. Sleeps until there is, or hive__team_wake(), or the deadline; or not so long. Negative: in a world without threads nothing
 * will ever happen any more.                                                                                            */
int hive__doze(struct worker *w, int64_t deadline_ns);
/* Any thread. Ends the doze of a worker, the present one or the next. */
void hive__team_wake(struct worker *w);
/* The wait is over: its task goes on. */
void hive__end_doze(struct worker *w);
/* Any worker. Its task waits, and it may neither sleep nor help: a moment passes. `tries`: so many before. Negative as above. */
int hive__linger(struct worker *w, uint32_t tries, int64_t deadline_ns);

/* A task of a guest that was dropped, and is in the books already: to the drop hook. */
void hive__tell_dropped(struct hive *hive, struct hive_task task);

/* Any thread. 0: one may ask others for help, as far as there are any; -EINVAL, -EOWNERDEAD. */
int hive__team_door(struct hive *hive);
/* Any thread. Holds for a task of a group that is about to be sent: 0; -ESHUTDOWN, -EOWNERDEAD: it may not, and is run by who has it, which nobody
 * counts as refused. On a worker of the hive it always may.                                                             */
int hive__team_begin(struct hive *hive);
/* Any thread. How many workers of this kind there are. */
uint32_t hive__team_size(struct hive *hive, enum hive_kind kind);

/* Nothing new may begin. `state`: of its hive. */
static inline bool team_is_halted(const ATOMIC(uint32_t) *state)
{
	return load_relaxed(state) >= HIVE_LEAVING;
}
