/* SPDX-License-Identifier: MIT */
/* Waiting for a group, in four ways. A compute worker runs what there is, and sleeps like any worker that has nothing to do, so that new tasks find
 * it. An IO worker, whose tasks may only wait for short ones, runs forks, those of others until its slice is over, and stays awake. Fibers and
 * threads enter the list.
 *
 * The last one may not touch the group after it has said so; so what it wakes has an address that stays: worker, fiber, thread.     */
#include "fiber/wakes.h"
#include "group/enlist.h"
#include "group/group.h"
#include "group/scope.h"

/* Some 20 µs, in which what others took may well end. */
#if !defined(PATIENT_LOOKS)
#define PATIENT_LOOKS 64 /* the explorer looks once */
#endif
enum { PATIENT_PAUSES = 16 };

/* ---- the list ---- */

int hive__group_check(struct hive_group *group)
{
	if (!group_is_sound(group))
		return -EINVAL;
	return load_relaxed(&group->owner) ? -EPERM : 0;
}

bool hive__group_is_over(struct hive_group *group)
{
	return group_is_over(&group->word, 0);
}

bool hive__group_enlist(struct hive_group *group, struct wait_node *node, struct wait wait)
{
	uint64_t word = latch_take(&group->word);
	bool over = group_count(word) == 0;

	if (!over)
		node_add(group_waiters(group), node, wait);
	latch_give(&group->word, over ? word : word | GROUP_WAITED);
	return !over;
}

/* Under the latch. What the word has to say of those who wait. */
static uint64_t still_waited(struct hive_group *group, uint64_t word)
{
	bool waited = group_waiters(group)->first || group->helper || group->then;

	return waited ? word : word & ~GROUP_WAITED;
}

void hive__group_delist(struct hive_group *group, struct wait_node *node)
{
	uint64_t word = latch_take(&group->word);

	node_remove(group_waiters(group), node);
	latch_give(&group->word, still_waited(group, word));
}

/* 0: it is over. Else why not. */
static int wait_in_list(struct hive_group *group, bool shielded, int64_t deadline_ns)
{
	struct wait_node node;
	struct wait wait;
	int r = shielded ? hive__wait_begin_shielded(&wait, "group") : hive__wait_begin(&wait, "group");

	if (r < 0)
		return r;
	if (!hive__group_enlist(group, &node, wait)) {
		hive__wait_give_up(wait);
		return 0;
	}
	r = hive__wait_end(wait, deadline_ns);
	if (r == 0)
		latch_pass(&group->word);
	else
		hive__group_delist(group, &node);
	return r;
}

/* A fiber parks, a thread blocks. */
static int wait_parked(struct hive_group *group, int64_t deadline_ns)
{
	int r = group_is_over(&group->word, 0) ? 0 : wait_in_list(group, false, deadline_ns);

	if (r == -EDEADLK && hive__wait_reason() == 0) /* else it is what a token was fired with */
		return r;
	if (r < 0)
		hive_group_fail(group, r);
	while (r < 0)
		r = wait_in_list(group, true, HIVE_FOREVER);
	return load_relaxed(&group->error);
}

/* ---- workers ---- */

static inline bool is_over(struct hive_group *group)
{
	return group_is_over(&group->word, group->local);
}

/* The newest of this worker's forks: of this group, or of one that was left open inside it. */
static inline bool run_one_fork(struct worker *w)
{
	struct fork fork;

	if (!team_pop(w, &fork))
		return false;
	group_run_fork(w, &fork, false);
	return true;
}

/* The deadline that is left to be heeded. */
static int64_t heed(struct hive_group *group, const struct worker *w, int64_t deadline_ns)
{
	if (deadline_ns == HIVE_FOREVER || hive_now(w->hive) < deadline_ns)
		return deadline_ns;
	hive_group_fail(group, -ETIMEDOUT);
	return HIVE_FOREVER;
}

/* Somebody else has it, and most likely not for long. True: it is over, or something else was done meanwhile. */
static bool be_patient(struct worker *w, struct hive_group *group)
{
	for (int look = 0; look < PATIENT_LOOKS; look++) {
		if (is_over(group) || hive__help_by_fork(w))
			return true;
		for (int i = 0; i < PATIENT_PAUSES; i++)
			cpu_pause();
	}
	return false;
}

/* True: it is over. Else whoever ends it wakes this worker. What it had counted is in the word meanwhile, as others have to see the end. */
static bool enter_as_helper(struct worker *w, struct hive_group *group, bool *ret_owned)
{
	uint64_t word = latch_take(&group->word);

	*ret_owned = load_relaxed(&group->owner) == w;
	if (*ret_owned)
		word = hive__group_fold(group, word, group_lent(w));
	if (group_count(word) == 0) {
		latch_give(&group->word, word);
		return true;
	}
	w->next_helper = (struct worker *)group->helper;
	group->helper = w;
	latch_give(&group->word, word | GROUP_WAITED);
	return false;
}

/* Under the latch. Unless everybody has been told, and nobody is there any more. */
static void remove_helper(struct hive_group *group, struct worker *w)
{
	struct worker *before = (struct worker *)group->helper;

	if (before == w)
		group->helper = w->next_helper;
	while (before && before != w && before->next_helper != w)
		before = before->next_helper;
	if (before && before != w)
		before->next_helper = w->next_helper;
}

static void leave_as_helper(struct worker *w, struct hive_group *group, bool owned)
{
	uint64_t word = latch_take(&group->word);

	remove_helper(group, w);
	if (owned)
		store_relaxed(&group->owner, (void *)w);
	latch_give(&group->word, still_waited(group, word));
}

static int sleep_as_helper(struct worker *w, struct hive_group *group, int64_t deadline_ns)
{
	bool owned;
	int r = 0;

	if (!enter_as_helper(w, group, &owned))
		r = hive__doze(w, deadline_ns);
	leave_as_helper(w, group, owned);
	return r == -ETIMEDOUT ? 0 : r;
}

static __attribute__((noinline)) int wait_helping(struct worker *w, struct hive_group *group, int64_t deadline_ns)
{
	bool dozed = false;
	int r = 0;

	if (group_rank(w->level) > group_rank(group_priority(group)))
		hive_group_raise(group, w->level);
	while (r == 0 && !is_over(group)) {
		deadline_ns = heed(group, w, deadline_ns);
		if (run_one_fork(w) || hive__group_run_queued(w, group) || hive__help_by_fork(w) ||
		    be_patient(w, group) || hive__help(w))
			continue;
		r = sleep_as_helper(w, group, deadline_ns);
		dozed = true;
	}
	if (dozed)
		hive__end_doze(w);
	return r < 0 ? r : load_relaxed(&group->error);
}

/* Whatever this worker has forked or this group has queued it runs itself, since nobody else may: so the wait ends without anybody's forks. Those of
 * others are a favour, for which its events and timers wait: no more of them once the slice is over.                        */
static bool help_in_slice(struct worker *w)
{
	return !hive__slice_is_over(w) && hive__help_by_fork(w);
}

/* Fibers wait for each other and for the world outside, compute tasks perhaps for tasks of IO workers, and this may be the only one. */
static __attribute__((noinline)) int wait_awake(struct worker *w, struct hive_group *group, int64_t deadline_ns)
{
	uint32_t tries = 0;
	int r = 0;

	while (r >= 0 && !is_over(group)) {
		if (load_relaxed(&group->flags) & GROUP_HAS_OTHERS)
			return -EDEADLK;
		deadline_ns = heed(group, w, deadline_ns);
		if (run_one_fork(w) || hive__group_run_queued(w, group) || help_in_slice(w))
			tries = 0;
		else
			r = hive__linger(w, tries++, deadline_ns);
		if (r == -ETIMEDOUT)
			r = 0;
	}
	if (r >= 0) /* it may be used again */
		and_relaxed(&group->flags, ~GROUP_HAS_OTHERS);
	return r < 0 ? r : load_relaxed(&group->error);
}

/* It does not belong to this worker, if the caller is on one at all. */
static int wait_for_any(struct worker *w, struct hive_group *group, int64_t deadline_ns)
{
	if (load_relaxed(&group->owner))
		return MISUSE(true, "the group belongs to another worker") ? -EPERM : 0;
	if (w && w->kind == HIVE_WORKER_COMPUTE)
		return wait_helping(w, group, deadline_ns);
	if (!w || w->place.now || group_is_over(&group->word, 0))
		return wait_parked(group, deadline_ns);
	if (group->kind != HIVE_MICRO || group->hive != w->hive)
		return -EDEADLK;
	return wait_awake(w, group, deadline_ns);
}

static __attribute__((noinline)) int wait_otherwise(struct worker *w, struct hive_group *group, int64_t deadline_ns)
{
	if (!group_is_sound(group))
		return -EINVAL;
	if (!w || load_relaxed(&group->owner) != w || w->place.now)
		return wait_for_any(w, group, deadline_ns);
	return group->kind == HIVE_COMPUTE ? wait_helping(w, group, deadline_ns) : wait_awake(w, group, deadline_ns);
}

/* Its owner, with all of it still here. True: it is over. */
static inline bool run_all(struct worker *w, struct hive_group *group)
{
	struct fork fork;

	while (group->local > 0 && MOSTLY(team_pop_quickly(w, &fork)))
		group_run_fork(w, &fork, false);
	return MOSTLY(is_over(group));
}

/* Debug builds: where one could not wait for it the group is still open. */
static inline int reopen(struct hive_group *group, bool was_open, int r)
{
	if (was_open && (r == -EPERM || r == -EDEADLK) && !is_over(group))
		hive__group_open(group);
	return r;
}

/* Nobody took anything: the forks are its own, and it calls them. */
int hive_group_wait(struct hive_group *group, int64_t deadline_ns)
{
	struct worker *w = hive__current_worker;
	bool was_open = group_is_sound(group) && hive__group_close(group);

	if (MOSTLY(group_is_sound(group) && w && load_relaxed(&group->owner) == w && !w->place.now &&
	           deadline_ns == HIVE_FOREVER && !(load_relaxed(&group->flags) & GROUP_HAS_OTHERS))) {
		if (run_all(w, group))
			return load_relaxed(&group->error);
		deadline_ns = HIVE_FOREVER; /* which need not be kept */
	}
	return reopen(group, was_open, wait_otherwise(w, group, deadline_ns));
}
