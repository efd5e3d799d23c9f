/* SPDX-License-Identifier: MIT */
#pragma once
/* What the files of groups offer each other. */
#include <rophive/hive.h>

#include "base/check.h"
#include "fiber/wait.h"
#include "group/word.h"
#include "sched/team.h"

#define GROUP_MAGIC 0x67726f75u
/* Of the library's own groups: their tasks are called in any case, and look themselves whether there is anything left to do. Nobody else knows of
 * them, the drop hook least of all.                                                                                      */
#define GROUP_INSISTS 0x80000000u
#define GROUP_PRIORITY_SHIFT 8    /* in flags */
#define GROUP_HAS_OTHERS 0x10000u /* in flags: fibers, or compute tasks in a group for IO workers */

static inline enum hive_priority group_priority(const struct hive_group *group)
{
	return (enum hive_priority)(load_relaxed(&group->flags) >> GROUP_PRIORITY_SHIFT & 3);
}

/* Which of two priorities comes first: the greater number. */
static inline int group_rank(enum hive_priority priority)
{
	return priority == HIVE_PRIORITY_HIGH ? 2 : priority == HIVE_PRIORITY_NORMAL ? 1 : 0;
}

/* What the compiler shall lay out without jumps: where nanoseconds are counted, and nowhere else. */
#define MOSTLY(x) __builtin_expect((x), 1)

/* Any thread. An initialised group, or not. */
static inline bool group_is_sound(const struct hive_group *group)
{
	return group && group->magic == GROUP_MAGIC;
}

static inline struct wait_list *group_waiters(struct hive_group *group)
{
	return (struct wait_list *)(void *)group->waiters;
}

/* May one of its tasks begin on this worker, and does nobody have to know under which token? */
static inline bool group_goes_on(const struct worker *w, const struct hive_group *group)
{
	return load_relaxed(&group->error) == 0 && !team_is_halted(w->state) && !group->cancel && !w->task_slot;
}

/* group.c */
/* Any thread. One of those that are counted in the word has ended; the group may be gone from here on. */
void hive__group_end_one(struct hive_group *group);
/* Any thread. One of its tasks runs here, under its token, or, as the group has failed or nothing may begin, is dropped. */
void hive__group_call(struct hive_group *group, struct hive_task task);
/* Any thread. May the caller take part in what it starts, or at least wait for it? 0, -EINVAL, -EOWNERDEAD, -EDEADLK. */
int hive__group_check_place(struct hive *hive, enum hive_kind kind);
/* Initialised for our own use. */
void hive__group_init_insisting(struct hive_group *group, struct hive *hive, enum hive_kind kind);
void hive__group_run_fork(struct worker *w, const struct fork *fork, bool taken);
/* The owner. What it counts for itself goes into the word, and the group is this one's: nobody's, or lent. Under its latch. */
uint64_t hive__group_fold(struct hive_group *group, uint64_t word, void *owner);

/* While its owner sleeps others count for it; but it is nobody else's. No worker has this address. */
static inline void *group_lent(struct worker *owner)
{
	return (char *)owner + 1;
}

/* On a worker of the hive for which something may be computed, or on a thread of the program; not in a fiber, nor on an IO worker. */
static inline bool group_may_compute_here(void)
{
	struct worker *w = hive__current_worker;

	return !w || w->kind == HIVE_WORKER_COMPUTE;
}

/* What a fork is: called or dropped, and counted down where it was counted. */
static inline void group_run_fork(struct worker *w, const struct fork *fork, bool taken)
{
	struct hive_group *group = (struct hive_group *)fork->group;

	if (MOSTLY(group_goes_on(w, group))) {
		struct scope outer = scope_begin(&w->scope);

		fork->task.fn(fork->task.arg);
		scope_end(&w->scope, outer);
	} else {
		hive__group_call(group, fork->task);
	}
	if (MOSTLY(!taken && load_relaxed(&group->owner) == w))
		group->local--;
	else
		hive__group_end_one(group);
}

/* member.c: what goes by the scheduler's ordinary doors */
/* Counted, and sent. False: neither, it has to be run here. */
bool hive__group_send(struct hive_group *group, enum hive_kind kind, hive_fn *fn, void *arg);
/* A worker whose task waits for the group. Runs, or drops, one of those that were sent and have not begun. */
bool hive__group_run_queued(struct worker *w, struct hive_group *group);
/* The group is over. */
void hive__group_start_then(void *then);
