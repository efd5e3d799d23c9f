/* SPDX-License-Identifier: MIT */
/* What goes into a group by the ordinary doors of the scheduler: tasks that are run from threads, fibers and workers of the other kind; fibers; and
 * what follows when the group is over. All are guests (sched/guest.h), for whoever waits for them cannot be told no.           */
#include "base/memory.h"
#include "base/refs.h"
#include "fiber/cancel.h"
#include "fiber/errand.h"
#include "fiber/fiber.h"
#include "group/group.h"
#include "group/scope.h"

/* A task on its way. While it waits it is in a list of its group, so that it can be raised: then it stands in the pool twice, and whoever comes
 * second finds nothing to do.                                                                                           */
struct member {
	struct guest guest;       /* first */
	struct memory memory;     /* I */
	struct hive *hive;        /* I */
	struct hive_group *group; /* I  of whoever has taken it */
	struct hive_task task;    /* I */
	enum hive_kind kind;      /* I */
	ATOMIC(uint32_t) errand;  /* A  errand.h */
	ATOMIC(uint32_t) refs;    /* A  as often as it stands in a pool */
	enum hive_priority level; /* L the group's latch */
	struct member *next;      /* L */
	struct member **link;     /* L */
};

/* ---- the list of those that wait ---- */

static void count_and_enlist(struct hive_group *group, struct member *m)
{
	uint64_t word = latch_take(&group->word);
	struct member *first = (struct member *)group->queued;

	m->next = first;
	m->link = (struct member **)(void *)&group->queued;
	if (first)
		first->link = &m->next;
	group->queued = m;
	latch_give(&group->word, word + GROUP_ONE);
}

/* Under the latch. */
static void unlink_member(struct member *m)
{
	*m->link = m->next;
	if (m->next)
		m->next->link = m->link;
}

static void delist(struct member *m)
{
	uint64_t word = latch_take(&m->group->word);

	unlink_member(m);
	latch_give(&m->group->word, word);
}

/* It will not be sent: as before. */
static void uncount(struct member *m)
{
	uint64_t word = latch_take(&m->group->word);

	unlink_member(m);
	latch_give(&m->group->word, word - GROUP_ONE);
}

/* ---- its way ---- */

/* One of its places in a pool is gone. */
static void leave_pool(struct member *m)
{
	struct hive *hive = m->hive;
	struct memory memory = m->memory;

	if (refs_drop(&m->refs))
		hive__memory_free(&memory, m);
	hive__unhold(hive);
}

static void run(struct guest *guest)
{
	struct member *m = (struct member *)(void *)guest;

	if (errand_take(&m->errand)) {
		delist(m);
		hive__group_call(m->group, m->task);
		hive__group_end_one(m->group);
	}
	leave_pool(m);
}

static void drop(struct guest *guest)
{
	struct member *m = (struct member *)(void *)guest;

	if (errand_take(&m->errand)) {
		delist(m);
		hive_group_fail(m->group, -ECANCELED);
		if (load_relaxed(&m->group->flags) & GROUP_INSISTS)
			m->task.fn(m->task.arg);
		else
			hive__tell_dropped(m->hive, m->task);
		hive__group_end_one(m->group);
	} else {
		hive__guest_not_dropped(m->hive);
	}
	leave_pool(m);
}

static enum hive_kind kind_of(const struct worker *w)
{
	return w->kind == HIVE_WORKER_COMPUTE ? HIVE_COMPUTE : HIVE_MICRO;
}

/* Under the latch. Whoever has taken it is about to take it out of the list: so it is there as long as the latch is. */
static bool take_first(struct member *m)
{
	refs_add(&m->refs); /* before it is ours: who comes second may be the last */
	if (errand_take(&m->errand)) {
		unlink_member(m);
		return true;
	}
	refs_drop(&m->refs);
	return false;
}

/* One for this kind of worker that nobody has begun, with a reference; NULL: there is none. When nothing may begin, of either kind. */
static struct member *take_queued(struct hive_group *group, const struct worker *w)
{
	uint64_t word = latch_take(&group->word);
	struct member *m = (struct member *)group->queued;

	while (m && ((m->kind != kind_of(w) && !team_is_halted(w->state)) || !take_first(m)))
		m = m->next;
	latch_give(&group->word, word);
	return m;
}

/* On who waits for it: everybody who would find it in the queues may be waiting, too. */
bool hive__group_run_queued(struct worker *w, struct hive_group *group)
{
	struct memory memory;
	struct hive_task task;
	struct member *m;

	if (w->hive != group->hive || (!hive__has_room_to_help(w) && !team_is_halted(w->state)))
		return false;
	m = take_queued(group, w);
	if (!m)
		return false;
	memory = m->memory;
	task = m->task;
	if (refs_drop(&m->refs))
		hive__memory_free(&memory, m);
	hive__end_doze(w);
	w->helps++;
	hive__group_call(group, task);
	w->helps--;
	hive__group_end_one(group);
	return true;
}

static void nothing(void *guests)
{
	(void)guests;
}

static void nothing_here(void *guests, void *cache)
{
	(void)guests, (void)cache;
}

/* There are guests that may hold: compute workers that drain wait for them. They keep nothing anywhere. */
static void register_groups(struct hive *hive)
{
	static const struct guest_ops ops = { .stop = nothing_here, .end = nothing, .leave = nothing_here };
	static char some;

	if (!hive__guests(hive, GUESTS_GROUPS))
		hive__guests_set(hive, GUESTS_GROUPS, &some, &ops);
}

/* The caller holds. 0; -ENOMEM, -ENOTSUP: it is in no queue. `level`: as it was; others may raise it already. */
static int put(struct member *m, enum hive_priority level)
{
	if (m->kind == HIVE_COMPUTE)
		return hive__guest_compute_at(m->hive, &m->guest, level);
	hive__guest_ready(m->hive, &m->guest);
	return 0;
}

static struct member *new_member(struct hive_group *group, enum hive_kind kind, enum hive_priority level,
                                 struct hive_task task)
{
	const struct memory *memory = hive__guest_memory(group->hive);
	struct member *m = (struct member *)hive__memory_new(memory, sizeof *m);

	if (!m)
		return NULL;
	m->guest.run = run;
	m->guest.drop = drop;
	m->memory = *memory;
	m->hive = group->hive;
	m->group = group;
	m->task = task;
	m->kind = kind;
	m->level = level;
	store_relaxed(&m->errand, (uint32_t)ERRAND_WANTED);
	store_relaxed(&m->refs, 1u);
	return m;
}

/* Held before it is in the list, where others may take it, or raise it, before it is in a queue. */
bool hive__group_send(struct hive_group *group, enum hive_kind kind, hive_fn *fn, void *arg)
{
	enum hive_priority level = group_priority(group); /* asked now: the group may go as soon as the task is sent */
	struct hive *hive = group->hive;
	struct member *m;
	bool taken;

	if (hive__team_size(hive, kind) == 0)
		return false;
	register_groups(hive); /* before it is held: who leaves heeds holds only where there are guests */
	if (hive__team_begin(hive) < 0)
		return false;
	m = new_member(group, kind, level, (struct hive_task){ fn, arg });
	if (!m) {
		hive__unhold(hive);
		return false;
	}
	count_and_enlist(group, m);
	if (put(m, level) == 0)
		return true;
	taken = !errand_take(&m->errand); /* who waits for the group was faster */
	if (!taken)
		uncount(m);
	leave_pool(m);
	return taken;
}

enum { RAISED = 32 }; /* at a time */

/* Under the latch. Those that may begin sooner, each held, and with a reference more. */
static size_t choose(struct hive_group *group, enum hive_priority priority, struct member **ret_chosen)
{
	size_t n = 0;

	for (struct member *m = (struct member *)group->queued; m && n < RAISED; m = m->next) {
		if (m->kind != HIVE_COMPUTE || group_rank(m->level) >= group_rank(priority))
			continue;
		m->level = priority;
		refs_add(&m->refs);
		hive__hold(m->hive); /* as long as it is in the list the hive is held */
		ret_chosen[n++] = m;
	}
	return n;
}

/* The group may go after the latch; those that were chosen stay. True: there may be more, so somebody waits for it still. */
static bool raise_some(struct hive_group *group, enum hive_priority priority)
{
	struct member *chosen[RAISED];
	uint64_t word = latch_take(&group->word);
	size_t n = choose(group, priority, chosen);

	latch_give(&group->word, word);
	for (size_t i = 0; i < n; i++)
		if (hive__guest_compute_at(chosen[i]->hive, &chosen[i]->guest, priority) < 0)
			leave_pool(chosen[i]);
	return n == RAISED;
}

int hive_group_raise(struct hive_group *group, enum hive_priority priority)
{
	if (!group_is_sound(group) || priority > HIVE_PRIORITY_LOW)
		return -EINVAL;
	while (raise_some(group, priority))
		;
	return 0;
}

/* ---- fibers ---- */

struct fiber_member {
	struct tracker tracker; /* first */
	struct hive_group *group;
};

static void fiber_ended(struct tracker *tracker)
{
	struct fiber_member *m = (struct fiber_member *)(void *)tracker;
	struct hive_group *group = m->group;

	if (tracker->result < 0)
		hive_group_fail(group, tracker->result);
	hive__memory_free(hive__guest_memory(group->hive), m);
	hive__group_end_one(group);
}

int hive_group_spawn(struct hive_group *group, hive_fiber_fn *fn, void *arg, const struct hive_fiber_options *options)
{
	struct hive_fiber_options how = { .name = NULL };
	struct fiber_member *m;
	int r;

	if (!group_is_sound(group) || !fn)
		return -EINVAL;
	m = (struct fiber_member *)hive__memory_new(hive__guest_memory(group->hive), sizeof *m);
	if (!m) {
		hive_group_fail(group, -ENOMEM);
		return -ENOMEM;
	}
	hive__group_open(group);
	or_relaxed(&group->flags, GROUP_HAS_OTHERS);
	m->tracker.ended = fiber_ended;
	m->group = group;
	if (options)
		how = *options;
	if (!how.cancel)
		how.cancel = group->cancel;
	group_add(&group->word, 1);
	r = hive__fiber_start(group->hive, fn, arg, &how, &m->tracker, NULL);
	if (r == 0)
		return 0;
	hive_group_fail(group, r);
	hive__memory_free(hive__guest_memory(group->hive), m);
	hive__group_end_one(group);
	return r;
}

/* ---- afterwards ---- */

struct then {
	struct guest guest; /* first */
	struct hive *hive;
	uint32_t worker; /* HIVE_WORKER_NONE: a compute worker */
	struct hive_task task;
	struct hive_cancel *cancel; /* of the group, which outlives the task that brought it; NULL: none */
};

/* Nobody asks the group any more. */
static void release_token(struct then *t)
{
	struct hive_cancel *cancel = t->cancel;

	t->cancel = NULL;
	if (cancel)
		hive__cancel_leave(cancel, NULL);
}

static void forget(struct then *t)
{
	struct hive *hive = t->hive;

	release_token(t);
	hive__memory_free(hive__guest_memory(hive), t);
	hive__unhold(hive);
}

/* Its function may be the one that joins the token. */
static void run_then(struct guest *guest)
{
	struct then *t = (struct then *)(void *)guest;

	release_token(t);
	t->task.fn(t->task.arg);
	forget(t);
}

static void drop_then(struct guest *guest)
{
	struct then *t = (struct then *)(void *)guest;

	hive__tell_dropped(t->hive, t->task);
	forget(t);
}

/* Where the compute workers cannot take it, for there is no memory, an IO worker does. */
void hive__group_start_then(void *then)
{
	struct then *t = (struct then *)then;

	if (t->worker != HIVE_WORKER_NONE)
		hive__guest_ready_at(t->hive, &t->guest, t->worker);
	else if (hive__guest_compute(t->hive, &t->guest) < 0)
		hive__guest_ready(t->hive, &t->guest);
}

/* From here on it belongs to nobody, as its last task may end anywhere. */
static int promise(struct hive_group *group, struct then *t, bool *ret_over)
{
	uint64_t word = latch_take(&group->word);

	if (group->then) {
		latch_give(&group->word, word);
		return -EALREADY;
	}
	if (load_relaxed(&group->owner))
		word = hive__group_fold(group, word, NULL);
	*ret_over = group_count(word) == 0;
	if (!*ret_over)
		group->then = t;
	latch_give(&group->word, *ret_over ? word : word | GROUP_WAITED);
	return 0;
}

int hive_group_then(struct hive_group *group, hive_fn *fn, void *arg)
{
	struct worker *w = hive__current_worker, *owner;
	bool over = false, was_open;
	struct then *t;
	int r;

	if (!group_is_sound(group) || !fn)
		return -EINVAL;
	owner = (struct worker *)load_relaxed(&group->owner);
	if (!w || w->hive != group->hive || (owner && owner != w))
		return -EPERM;
	t = (struct then *)hive__memory_new(hive__guest_memory(w->hive), sizeof *t);
	if (!t)
		return -ENOMEM;
	t->guest.run = run_then;
	t->guest.drop = drop_then;
	t->hive = w->hive;
	t->worker = w->kind == HIVE_WORKER_COMPUTE ? HIVE_WORKER_NONE : w->self_id;
	t->task = (struct hive_task){ fn, arg };
	register_groups(w->hive);
	hive__hold(w->hive);
	t->cancel = group->cancel;
	if (t->cancel)
		hive__cancel_enter_anyway(t->cancel);
	was_open = hive__group_close(group); /* now: it may be gone afterwards */
	r = promise(group, t, &over);
	if (r < 0 && was_open)
		hive__group_open(group);
	if (r < 0)
		forget(t);
	else if (over)
		hive__group_start_then(t);
	return r;
}
