/* SPDX-License-Identifier: MIT */
/* Groups: who is in it, and its end. A group that belongs to a worker keeps its tasks among the forks of that worker (queue/forks.h), and counts
 * them there without an atomic step; what others take over, and all that comes by other doors, is counted in its word.            */
#include "group/group.h"

#include "base/memory.h"
#include "fiber/cancel.h"
#include "fiber/wakes.h"
#include "group/scope.h"
#include "sched/guest.h"

/* The worker on which tasks of this kind of group are forks: of its kind, outside a fiber. */
static inline struct worker *worker_for(const struct hive *hive, uint32_t kind)
{
	struct worker *w = hive__current_worker;
	enum hive_worker_kind of = kind == HIVE_COMPUTE ? HIVE_WORKER_COMPUTE : HIVE_WORKER_IO;

	return w && w->hive == hive && w->kind == of && !w->place.now ? w : NULL;
}

void hive_group_init(struct hive_group *group, struct hive *hive, enum hive_kind kind)
{
	struct worker *w = worker_for(hive, kind);

	if (!group)
		return;
	store_relaxed(&group->word, UINT64_C(0));
	store_relaxed(&group->owner, (void *)w);
	group->local = 0;
	store_relaxed(&group->error, 0);
	group->magic = hive && (kind == HIVE_MICRO || kind == HIVE_COMPUTE) ? GROUP_MAGIC : 0;
	group->hive = hive;
	group->kind = kind;
	store_relaxed(&group->flags, 0u);
	group->cancel = w ? (struct hive_cancel *)w->task_slot : hive__cancel_here();
	group->helper = group->then = group->queued = NULL;
	group->waiters[0] = group->waiters[1] = NULL;
	hive__group_belongs_here(group);
}

int hive_group_init_with(struct hive_group *group, struct hive *hive, enum hive_kind kind,
                         const struct hive_group_options *options)
{
	static const struct hive_group_options zeros;
	const struct hive_group_options *o = options ? options : &zeros;
	int r;

	if (!group || !hive || (kind != HIVE_MICRO && kind != HIVE_COMPUTE) ||
	    (o->flags & ~(uint32_t)(HIVE_GROUP_SHARED | HIVE_GROUP_CANCEL)))
		return -EINVAL;
	if (o->priority > HIVE_PRIORITY_LOW || (o->cancel && !cancel_is_valid(o->cancel)) ||
	    ((o->flags & HIVE_GROUP_CANCEL) && !o->cancel))
		return -EINVAL;
	for (size_t i = 0; i < sizeof o->reserved / sizeof *o->reserved; i++)
		if (o->reserved[i] != 0)
			return -EINVAL;
	r = o->cancel ? hive_cancel_arm(o->cancel, hive) : 0;
	if (r < 0 && hive__cancel_reason(o->cancel) == 0)
		return r;
	hive_group_init(group, hive, kind);
	store_relaxed(&group->flags, o->flags | (uint32_t)o->priority << GROUP_PRIORITY_SHIFT);
	if (o->cancel || (o->flags & HIVE_GROUP_SHARED)) /* which may outlive the caller, and his token */
		group->cancel = o->cancel;
	if (o->flags & HIVE_GROUP_SHARED) {
		store_relaxed(&group->owner, (void *)NULL);
		hive__group_belongs_to_nobody(group);
	}
	return 0;
}

/* ---- the end ---- */

/* Under the latch: they stay in the list until they have had it. All but the first, for whom it need not be kept so long. */
static void wake_other_helpers(const struct worker *first)
{
	for (struct worker *w = first->next_helper; w; w = w->next_helper)
		hive__team_wake(w);
}

static bool is_on_worker_of(const struct hive *hive)
{
	return hive__current_worker && hive__current_worker->hive == hive;
}

/* With the latch, which is given back: after that the group is whoever's. */
static __attribute__((noinline)) void tell(struct hive_group *group, uint64_t word)
{
	struct worker *helper = (struct worker *)group->helper;
	void *then = group->then;
	struct wait_node *node;
	struct wakes wakes;

	wakes_init(&wakes);
	while ((node = node_take(group_waiters(group))))
		wakes_claim(&wakes, node);
	if (helper)
		wake_other_helpers(helper);
	if (helper && !is_on_worker_of(helper->hive)) { /* whose hive may be gone as soon as it goes on */
		hive__team_wake(helper);
		helper = NULL;
	}
	group->helper = group->then = NULL;
	latch_give(&group->word, word & ~GROUP_WAITED);
	wakes_deliver(&wakes);
	if (helper)
		hive__team_wake(helper);
	if (then)
		hive__group_start_then(then);
}

void hive__group_end_one(struct hive_group *group)
{
	uint64_t word;

	if (group_end_one(&group->word, &word))
		tell(group, word);
}

uint64_t hive__group_fold(struct hive_group *group, uint64_t word, void *owner)
{
	word += (uint64_t)group->local * GROUP_ONE;
	group->local = 0;
	store_relaxed(&group->owner, owner);
	return word;
}

/* ---- tasks ---- */

void hive__group_init_insisting(struct hive_group *group, struct hive *hive, enum hive_kind kind)
{
	hive_group_init(group, hive, kind);
	store_relaxed(&group->flags, GROUP_INSISTS);
}

/* Whoever waits for it gets to know why. */
static bool may_begin(struct hive_group *group)
{
	struct worker *w = hive__current_worker;
	int reason = load_relaxed(&group->error); /* first: of a group that has failed nobody asks the token */

	if (reason == 0 && group->cancel)
		reason = hive__cancel_reason(group->cancel);
	if (reason == 0 && w && w->hive == group->hive && team_is_halted(w->state))
		reason = -ECANCELED;
	if (reason != 0)
		hive_group_fail(group, reason);
	return load_relaxed(&group->error) == 0 || (load_relaxed(&group->flags) & GROUP_INSISTS);
}

/* In a fiber it is a part of that, and on a thread of nobody. */
static void call_in_scope(struct hive_task task)
{
	struct worker *w = hive__current_worker;
	struct scope outer;

	if (!w || w->place.now) {
		task.fn(task.arg);
		return;
	}
	outer = scope_begin(&w->scope);
	task.fn(task.arg);
	scope_end(&w->scope, outer);
}

void hive__group_call(struct hive_group *group, struct hive_task task)
{
	struct worker *w = hive__current_worker;
	void **slot = w && !w->place.now ? &w->task_slot : NULL, *outer = slot ? *slot : NULL; /* a fiber has its own */

	if (!may_begin(group)) {
		hive__guest_drop_task(group->hive, task);
		return;
	}
	if (slot)
		*slot = group->cancel;
	call_in_scope(task);
	if (slot)
		*slot = outer;
}

void hive__group_run_fork(struct worker *w, const struct fork *fork, bool taken)
{
	group_run_fork(w, fork, taken);
}

static __attribute__((noinline)) void run_counted(struct hive_group *group, enum hive_kind kind, hive_fn *fn, void *arg)
{
	struct worker *w = worker_for(group->hive, kind);
	struct fork fork = { { fn, arg }, group };

	if (!w && hive__group_send(group, kind, fn, arg))
		return;
	group_add(&group->word, 1);
	if (w && team_fork(w, fork, hive__group_run_fork))
		return;
	hive__group_call(group, fork.task);
	hive__group_end_one(group);
}

/* Nobody has room, or somebody is hungry. */
static __attribute__((noinline)) void run_slowly(struct hive_group *group, hive_fn *fn, void *arg)
{
	struct worker *w = hive__current_worker;

	if (hive__fork_slowly(w, (struct fork){ { fn, arg }, group }, hive__group_run_fork))
		group->local++;
	else
		hive__group_call(group, (struct hive_task){ fn, arg });
}

/* The other ways are calls at its end, so that this one needs no stack. */
void hive_group_run(struct hive_group *group, hive_fn *fn, void *arg)
{
	struct worker *w = hive__current_worker;

	if (MISUSE(!group_is_sound(group) || !fn, "not a group, or not a function"))
		return;
	hive__group_open(group);
	if (!w || load_relaxed(&group->owner) != w || w->place.now)
		run_counted(group, (enum hive_kind)group->kind, fn, arg);
	else if (team_fork_quickly(w, (struct fork){ { fn, arg }, group }))
		group->local++;
	else
		run_slowly(group, fn, arg);
}

void hive_group_run_on(struct hive_group *group, enum hive_kind kind, hive_fn *fn, void *arg)
{
	bool is_kind = kind == HIVE_MICRO || kind == HIVE_COMPUTE;

	if (MISUSE(!group_is_sound(group) || !fn || !is_kind, "not a group, not a kind, or not a function"))
		return;
	if ((uint32_t)kind == group->kind) {
		hive_group_run(group, fn, arg);
		return;
	}
	or_relaxed(&group->flags, GROUP_HAS_OTHERS);
	hive__group_open(group);
	run_counted(group, kind, fn, arg);
}

/* As far as one can tell: of another worker's group one sees only a part of the count. */
static bool is_empty(struct hive_group *group)
{
	void *owner = load_relaxed(&group->owner);
	int64_t counted = group_count(load_relaxed(&group->word));

	if (!owner)
		return counted <= 0;
	return owner == hive__current_worker && counted + group->local <= 0;
}

int hive_group_enter(struct hive_group *group)
{
	if (!group_is_sound(group))
		return -EINVAL;
	group_add(&group->word, 1);
	return 0;
}

int hive_group_leave(struct hive_group *group, int error)
{
	if (!group_is_sound(group) || is_empty(group))
		return -EINVAL;
	if (error < 0)
		hive_group_fail(group, error);
	hive__group_end_one(group);
	return 0;
}

int hive_group_fail(struct hive_group *group, int error)
{
	int32_t none = 0;

	if (!group_is_sound(group) || error >= 0)
		return -EINVAL;
	if (cas_relaxed(&group->error, &none, error) && (load_relaxed(&group->flags) & HIVE_GROUP_CANCEL))
		hive_cancel_fire_with(group->cancel, error);
	return 0;
}

int hive_group_error(const struct hive_group *group)
{
	return group_is_sound(group) ? load_relaxed(&group->error) : -EINVAL;
}

/* In a fiber one waits; on an IO worker outside a fiber it must be work of that kind. */
int hive__group_check_place(struct hive *hive, enum hive_kind kind)
{
	struct worker *w = hive__current_worker;
	int r = kind == HIVE_MICRO || kind == HIVE_COMPUTE ? hive__team_door(hive) : -EINVAL;

	if (r < 0 || group_may_compute_here() || w->place.now)
		return r;
	return kind == HIVE_MICRO && w->hive == hive ? 0 : -EDEADLK;
}
