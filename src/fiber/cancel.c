/* SPDX-License-Identifier: MIT */
/* Cancel tokens: what comes under them, how they fire, when they may go. cancel.h says how that is locked. */
#include "fiber/cancel.h"

#include "fiber/wakes.h"
#include "fiber/watch.h"

enum { FIBERS_AT_ONCE = 32 }; /* are told under the latch */
enum { ERRNO_MOST = 4095 };

#define token_of_sibling(l) ((struct hive_cancel *)(void *)((char *)(l)-offsetof(struct hive_cancel, sibling)))
#define watch_of_link(l) ((struct hive_cancel_watch *)(void *)((char *)(l)-offsetof(struct hive_cancel_watch, link)))

static struct wait_list *waits_of(struct hive_cancel *cancel)
{
	_Static_assert(sizeof(struct wait_list) == sizeof cancel->waits, "a token has room for a list of waits");
	return (struct wait_list *)(void *)cancel->waits;
}

/* ---- under it ---- */

/* Under the latch, as the last that is done with it: so many fewer are under it. Who joins it is woken by the last one. */
static void give_fewer(struct hive_cancel *cancel, uint64_t word, uint64_t fewer)
{
	struct wakes wakes;

	wakes_init(&wakes);
	word -= fewer * CANCEL_ONE;
	if (word < CANCEL_ONE && cancel->joiner) {
		wakes_claim(&wakes, (struct wait_node *)cancel->joiner);
		cancel->joiner = NULL;
	}
	latch_give(&cancel->state, word);
	wakes_deliver(&wakes);
}

static int enter(struct hive_cancel *cancel, struct hive_cancel_link **list, struct hive_cancel_link *link)
{
	uint64_t word = latch_take(&cancel->state);
	int reason = load_relaxed(&cancel->reason);

	if (reason == 0 && link)
		link_add(list, link);
	latch_give(&cancel->state, reason == 0 ? word + CANCEL_ONE : word);
	return reason;
}

int hive__cancel_enter(struct hive_cancel *cancel)
{
	return enter(cancel, NULL, NULL);
}

void hive__cancel_enter_anyway(struct hive_cancel *cancel)
{
	uint64_t word = latch_take(&cancel->state);

	latch_give(&cancel->state, word + CANCEL_ONE);
}

int hive__cancel_enter_fiber(struct hive_cancel *cancel, struct hive_cancel_link *fiber)
{
	fiber->back = NULL;
	return enter(cancel, &cancel->fibers, fiber);
}

void hive__cancel_leave(struct hive_cancel *cancel, struct hive_cancel_link *link)
{
	uint64_t word = latch_take(&cancel->state);

	if (link)
		link_remove(link);
	give_fewer(cancel, word, 1);
}

int hive__cancel_look(struct hive_cancel *cancel)
{
	uint64_t word = latch_take(&cancel->state);
	int reason = load_relaxed(&cancel->reason);

	latch_give(&cancel->state, word);
	return reason;
}

bool hive__cancel_enlist(struct hive_cancel *cancel, struct wait_node *node, struct wait wait)
{
	uint64_t word = latch_take(&cancel->state);
	bool enters = load_relaxed(&cancel->reason) == 0;

	node->link = NULL;
	if (enters)
		node_add(waits_of(cancel), node, wait);
	latch_give(&cancel->state, enters ? word + CANCEL_ONE : word);
	return enters;
}

void hive__cancel_delist(struct hive_cancel *cancel, struct wait_node *node)
{
	uint64_t word = latch_take(&cancel->state);

	node_remove(waits_of(cancel), node);
	give_fewer(cancel, word, 1);
}

/* ---- init ---- */

/* The reason of the parent; 0: it is under that now. */
static int enter_parent(struct hive_cancel *cancel, struct hive_cancel *parent)
{
	int reason = enter(parent, &parent->children, &cancel->sibling);

	if (reason == 0)
		cancel->parent = parent;
	return reason;
}

void hive_cancel_init(struct hive_cancel *cancel, struct hive_cancel *parent, int64_t deadline_ns)
{
	int r;

	if (!cancel)
		return;
	store_relaxed(&cancel->state, UINT64_C(0));
	store_relaxed(&cancel->reason, deadline_ns <= HIVE_NOWAIT ? -ETIMEDOUT : 0);
	cancel->magic = CANCEL_MAGIC;
	cancel->parent = cancel->fired = NULL;
	cancel->sibling.back = NULL;
	cancel->children = cancel->fibers = cancel->watches = NULL;
	cancel->waits[0] = cancel->waits[1] = cancel->joiner = NULL;
	cancel->deadline_ns = deadline_ns;
	cancel->hive = NULL;
	cancel->alarm = 0;
	cancel->firer = NULL;
	if (parent && !cancel_is_valid(parent)) {
		store_relaxed(&cancel->reason, -EINVAL);
	} else if (parent && load_relaxed(&cancel->reason) == 0) {
		if (parent->deadline_ns < deadline_ns)
			cancel->deadline_ns = parent->deadline_ns;
		r = enter_parent(cancel, parent);
		if (r != 0) /* else it may have been fired already, by who fires the parent */
			store_relaxed(&cancel->reason, r);
	}
}

/* ---- to fire ---- */

/* Under its latch. True: the caller fires it, counts under it, and has to give the latch back with *word. */
static bool mark(struct hive_cancel *cancel, uint64_t *word, int reason)
{
	if (load_relaxed(&cancel->reason) != 0)
		return false;
	store_release(&cancel->reason, reason); /* CANCEL-1 (pairs with CANCEL-2) */
	cancel->fired = NULL;
	cancel->firer = hive__wait_self();
	*word += CANCEL_ONE;
	return true;
}

/* Those that have not fired are appended to what is fired next. */
static void take_children(struct hive_cancel *cancel, int reason, struct hive_cancel **last)
{
	uint64_t word = latch_take(&cancel->state);

	while (cancel->children) {
		struct hive_cancel *child = token_of_sibling(cancel->children);
		uint64_t child_word = latch_take(&child->state);

		link_remove(&child->sibling);
		if (mark(child, &child_word, reason)) {
			(*last)->fired = child;
			*last = child;
		}
		latch_give(&child->state, child_word);
		latch_give(&cancel->state, word);
		word = latch_take(&cancel->state);
	}
	latch_give(&cancel->state, word);
}

static void wake_waits(struct hive_cancel *cancel)
{
	uint64_t word = latch_take(&cancel->state);
	struct wait_node *node;
	struct wakes wakes;

	wakes_init(&wakes);
	while ((node = node_take(waits_of(cancel))) != NULL)
		wakes_claim(&wakes, node);
	latch_give(&cancel->state, word);
	wakes_deliver(&wakes);
}

/* Who is parked and claimed does not run, and so does not leave, before it is made to: its link is free for our chain. */
static bool tell_some(struct hive_cancel *cancel, int reason)
{
	uint64_t word = latch_take(&cancel->state);
	struct hive_cancel_link *woken = NULL, **last = &woken, *next;
	bool more;

	for (int n = 0; cancel->fibers && n < FIBERS_AT_ONCE; n++) {
		struct hive_cancel_link *fiber = cancel->fibers;

		link_remove(fiber);
		if (hive__fiber_tell(fiber, reason)) {
			*last = fiber;
			last = &fiber->next;
		}
	}
	*last = NULL;
	more = cancel->fibers;
	latch_give(&cancel->state, word);
	for (; woken; woken = next) {
		next = woken->next;
		hive__fiber_go_on(woken);
	}
	return more;
}

/* Out of the list, and ours unless it is being stopped. True: there was one. */
static bool call_next(struct hive_cancel *cancel, int reason)
{
	uint64_t word = latch_take(&cancel->state);
	struct hive_cancel_watch *watch;
	bool claimed, left = false;

	if (!cancel->watches) {
		latch_give(&cancel->state, word);
		return false;
	}
	watch = watch_of_link(cancel->watches);
	link_remove(&watch->link);
	store_relaxed(&watch->caller, cancel->firer);
	watch->left = &left;
	watch->reason = reason;
	claimed = watch_claim(&watch->state);
	latch_give(&cancel->state, claimed ? word - CANCEL_ONE : word); /* we still count */
	if (claimed)
		watch->fn(watch, reason);
	if (claimed && !left)
		watch_idle(&watch->state);
	return true;
}

static void end_firing(struct hive_cancel *cancel)
{
	uint64_t word = latch_take(&cancel->state);

	cancel->firer = NULL;
	give_fewer(cancel, word, 1);
}

int hive__cancel_fire(struct hive_cancel *cancel, int reason)
{
	struct hive_cancel *last = cancel, *next;
	uint64_t word = latch_take(&cancel->state);
	bool ours = mark(cancel, &word, reason);

	latch_give(&cancel->state, word);
	if (!ours)
		return -EALREADY;
	for (; cancel; cancel = next) {
		take_children(cancel, reason, &last);
		wake_waits(cancel);
		while (tell_some(cancel, reason))
			;
		while (call_next(cancel, reason))
			;
		next = cancel->fired;
		end_firing(cancel); /* it may be gone */
	}
	return 0;
}

void hive_cancel_fire(struct hive_cancel *cancel)
{
	if (cancel_is_valid(cancel))
		hive__cancel_fire(cancel, -ECANCELED);
}

int hive_cancel_fire_with(struct hive_cancel *cancel, int error)
{
	if (!cancel_is_valid(cancel) || error >= 0 || error < -ERRNO_MOST)
		return -EINVAL;
	return hive__cancel_fire(cancel, error);
}

/* ---- watches ---- */

void hive_cancel_watch_init(struct hive_cancel_watch *watch, hive_cancel_fn *fn, void *arg)
{
	if (!watch)
		return;
	watch->arg = arg;
	watch->fn = fn;
	store_relaxed(&watch->state, (uint32_t)WATCH_IDLE);
	watch->reason = 0;
	watch->link.back = NULL;
	watch->cancel = NULL;
}

int hive__cancel_watch(struct hive_cancel *cancel, struct hive_cancel_watch *watch)
{
	int reason;

	watch->cancel = cancel;
	watch_begin(&watch->state); /* before anybody finds it in the list */
	reason = enter(cancel, &cancel->watches, &watch->link);
	if (reason != 0)
		watch_idle(&watch->state);
	return reason;
}

int hive_cancel_watch_stop(struct hive_cancel_watch *watch)
{
	struct hive_cancel *cancel;

	if (!watch || !watch_is_valid(&watch->state))
		return -EINVAL;
	switch (watch_stop(&watch->state, &watch->caller, hive__wait_self())) {
	case WATCH_IS_OURS:
		cancel = watch->cancel;
		hive__cancel_leave(cancel, &watch->link);
		watch_idle(&watch->state);
		return 1;
	case WATCH_IS_INSIDE:
		*watch->left = true;
		watch_idle(&watch->state);
		return 0;
	case WATCH_IS_IDLE:
		break;
	}
	return 0;
}

/* ---- join ---- */

/* 0: nothing was under it, for a moment. */
static int wait_for_none(struct hive_cancel *cancel, bool shielded, int64_t deadline_ns)
{
	struct wait_node node;
	struct wait wait;
	int r = shielded ? hive__wait_begin_shielded(&wait, "cancel") : hive__wait_begin(&wait, "cancel");
	uint64_t word;

	if (r < 0)
		return r;
	word = latch_take(&cancel->state);
	if (word < CANCEL_ONE) {
		latch_give(&cancel->state, word);
		hive__wait_give_up(wait);
		return 0;
	}
	node.link = NULL;
	node.wait = wait;
	cancel->joiner = &node;
	latch_give(&cancel->state, word);
	r = hive__wait_end(wait, deadline_ns);
	word = latch_take(&cancel->state);
	cancel->joiner = NULL;
	latch_give(&cancel->state, word);
	return r;
}

/* True: nothing is under it, it is under nothing, and nobody comes to it any more but its alarm. */
static bool part(struct hive_cancel *cancel)
{
	struct hive_cancel *parent = cancel->parent;
	uint64_t parent_word = parent ? latch_take(&parent->state) : 0;
	uint64_t word = latch_take(&cancel->state);
	bool parts = word < CANCEL_ONE;

	if (parts)
		link_remove(&cancel->sibling); /* unless who fires has done so */
	latch_give(&cancel->state, word);
	if (parent)
		give_fewer(parent, parent_word, parts ? 1 : 0);
	return parts;
}

/* Who is under it waits for himself; so does who fires it. */
static bool is_above(struct hive_cancel *cancel)
{
	struct hive_cancel *here = hive__cancel_here();
	uint64_t word = latch_take(&cancel->state);
	bool fires = cancel->firer == hive__wait_self();

	latch_give(&cancel->state, word);
	while (here && here != cancel)
		here = here->parent;
	return fires || here;
}

static int begin_join(struct hive_cancel *cancel)
{
	uint64_t word;

	if (!cancel_is_valid(cancel))
		return -EINVAL;
	if (is_above(cancel))
		return -EDEADLK;
	word = latch_take(&cancel->state);
	latch_give(&cancel->state, word | CANCEL_JOINING);
	return word & CANCEL_JOINING ? -EALREADY : 0;
}

/* It is as before. */
static int end_join(struct hive_cancel *cancel, int r)
{
	uint64_t word = latch_take(&cancel->state);

	latch_give(&cancel->state, word & ~CANCEL_JOINING);
	return r;
}

int hive_cancel_join(struct hive_cancel *cancel, int64_t deadline_ns)
{
	int result = 0, r = begin_join(cancel);

	if (r < 0)
		return r;
	while (!part(cancel)) {
		if (deadline_ns <= HIVE_NOWAIT)
			return end_join(cancel, -ETIMEDOUT);
		r = wait_for_none(cancel, result < 0, result < 0 ? HIVE_FOREVER : deadline_ns);
		if (r == -EDEADLK && hive__wait_reason() == 0)
			return end_join(cancel, r);
		if (r < 0 && result == 0) {
			result = r;
			hive__cancel_fire(cancel, r);
		}
	}
	hive__cancel_disarm(cancel);
	cancel->magic = 0;
	return result;
}
