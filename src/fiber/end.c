/* SPDX-License-Identifier: MIT */
/* The end of a fiber, and those who wait for it: join, detach, wait_all, wait_any, block_on. */
#include <rophive/hive.h>

#include "base/memory.h"
#include "fiber/fiber.h"
#include "fiber/wakes.h"

enum { FEW_FIBERS = 16 }; /* so many waits of wait_any() lie on the stack */

/* The handle is gone, and with the last of the two the stack. False: it was gone before. */
bool hive__fiber_release(struct hive_fiber *f, uint64_t life)
{
	uint64_t fate;

	if (!fate_release(&f->fate, life, 0, &fate))
		return false;
	if (fate & FATE_DONE)
		hive__fiber_free(f, hive__place());
	return true;
}

/* After the latch. The loop, if one asks for the next fiber then, goes on with one of them. */
static void deliver(struct wakes *wakes, struct guest_place *loop)
{
	struct wait_node *first = wakes->first;

	if (loop && first) {
		wakes->first = first->next;
		hive__wait_hand(first->wait, loop);
	}
	wakes_deliver(wakes);
}

/* Tells all who wait. The last that is done to the object, if `bits` say so. */
static void publish(struct hive_fiber *f, uint64_t bits, struct guest_place *loop)
{
	uint64_t fate = latch_take(&f->fate);
	struct wait_node *node;
	struct wakes wakes;

	wakes_init(&wakes);
	while ((node = node_take(&f->waits)) != NULL)
		wakes_claim(&wakes, node);
	latch_give(&f->fate, fate | bits);
	if ((bits & FATE_DONE) && (fate & FATE_RELEASED))
		hive__fiber_free(f, loop);
	deliver(&wakes, loop);
}

/* The last that is done with it. */
static void tell(struct tracker *tracker, int result)
{
	tracker->result = result;
	if (tracker->ended)
		tracker->ended(tracker);
	else
		once_finish(&tracker->once);
}

/* All beneath it have ended as well, so it goes; and that may complete its parent, and so on. */
static void complete(struct hive_fiber *f, uint64_t bits, struct guest_place *loop)
{
	bool goes_on;

	do {
		struct hive_fiber *parent = f->parent;
		struct tracker *tracker = f->tracker;
		int result = f->result;

		publish(f, bits, loop);
		if (tracker)
			tell(tracker, result);
		f = parent;
		bits = FATE_DONE;
		goes_on = f && tree_is_last(&f->pending);
	} while (goes_on);
}

/* On the loop that it has left, or, when it never began, anywhere, and loop is NULL. */
void hive__fiber_ended(struct hive_fiber *f, struct guest_place *loop)
{
	if (!load_relaxed(&f->root)) {
		publish(f, FATE_ENDED | FATE_DONE, loop);
	} else if (tree_is_leaf(&f->pending)) {
		complete(f, FATE_ENDED | FATE_DONE, loop);
	} else {
		publish(f, FATE_ENDED, loop);
		if (tree_is_last(&f->pending))
			complete(f, FATE_DONE, loop);
	}
}

/* Into its list, with these bits in its fate. What that was before; ENDED, RELEASED, or one of the bits: it is not in the list. */
static uint64_t enlist(struct hive_fiber *f, uint64_t life, struct wait_node *node, struct wait wait, uint64_t bits)
{
	uint64_t fate;
	bool enters;

	node->link = NULL;
	if (!fate_enter(&f->fate, life, &fate))
		return FATE_RELEASED;
	enters = !(fate & (FATE_ENDED | bits));
	if (enters)
		node_add(&f->waits, node, wait);
	latch_give(&f->fate, enters ? fate | bits : fate);
	return fate;
}

/* False: its end has done so. */
static bool strike_off(struct hive_fiber *f, uint64_t life, struct wait_node *node, uint64_t bits)
{
	uint64_t fate;

	if (!fate_enter_to_leave(&f->fate, life, &fate))
		return false;
	node_remove(&f->waits, node);
	latch_give(&f->fate, fate & ~bits);
	return true;
}

/* A thread that waits for the end of a fiber wants to know when no fiber can go on (sched/standstill.c). */
static __attribute__((noinline)) int end_of_wait_by_thread(struct hive_fiber *f, struct wait wait, int64_t deadline_ns)
{
	struct hive *hive = f->hive;
	int r;

	hive__guest_await(hive, 1);
	r = hive__wait_end_whom(wait, deadline_ns, false);
	hive__guest_await(hive, -1);
	return r;
}

static inline __attribute__((always_inline)) int end_of_wait_for(struct hive_fiber *f, struct wait wait,
                                                                 int64_t deadline_ns)
{
	if (wait.who->thread && deadline_ns == HIVE_FOREVER)
		return end_of_wait_by_thread(f, wait, deadline_ns);
#if defined(HIVE_DEBUG)
	return hive__wait_end_whom(wait, deadline_ns, false);
#else
	return fiber_wait_end(wait, deadline_ns);
#endif
}

/* `bits` FATE_JOINING: for who joins; it stays unless the wait fails. -EALREADY: somebody else does. -ESRCH: the handle went. */
static inline __attribute__((always_inline)) int wait_for_end(struct hive_fiber *f, uint64_t life, int64_t deadline_ns,
                                                              uint64_t bits)
{
	struct wait_node node;
	struct wait wait;
	uint64_t fate;
	int r;

	if (fate_has_ended(&f->fate, life, &fate))
		return fate & bits ? -EALREADY : 0; /* who joins it has been told, and comes for it */
	if (deadline_ns == HIVE_NOWAIT)
		return load_relaxed(&f->fate) & bits ? -EALREADY : -ETIMEDOUT;
	r = hive__wait_begin(&wait, WAIT_JOIN);
	if (r < 0)
		return r;
	fate = enlist(f, life, &node, wait, bits);
	if (fate & (FATE_ENDED | FATE_RELEASED | bits)) {
		hive__wait_give_up(wait);
		return fate & FATE_RELEASED ? -ESRCH : fate & bits ? -EALREADY : 0;
	}
	store_relaxed(&wait.who->detail, whom_is(&f->waiter));
	r = end_of_wait_for(f, wait, deadline_ns);
	return r < 0 && !strike_off(f, life, &node, bits) ? 0 : r;
}

static int find_other(struct hive_fiber *handle, struct hive_fiber **ret_fiber, uint64_t *ret_life)
{
	struct hive_fiber *self = hive__fiber_here();

	if (self && handle == fiber_handle(self))
		return -EDEADLK;
	return fiber_find(handle, ret_fiber, ret_life);
}

int hive_fiber_join(struct hive_fiber *fiber, int64_t deadline_ns, int *ret_result)
{
	struct hive_fiber *f;
	uint64_t life;
	int r = find_other(fiber, &f, &life), result;

	if (r < 0)
		return r;
	r = wait_for_end(f, life, deadline_ns, FATE_JOINING);
	if (r < 0)
		return r;
	result = f->result;
	if (!hive__fiber_release(f, life))
		return -ESRCH;
	if (ret_result)
		*ret_result = result;
	return 0;
}

int hive_fiber_detach(struct hive_fiber *fiber)
{
	struct hive_fiber *f;
	uint64_t life, fate;
	int r = fiber_find(fiber, &f, &life);

	if (r < 0)
		return r;
	if (!fate_release(&f->fate, life, FATE_JOINING, &fate))
		return fate & FATE_JOINING ? -EALREADY : -ESRCH;
	if (fate & FATE_DONE)
		hive__fiber_free(f, hive__place());
	return 0;
}

int hive_wait_all(struct hive_fiber *const *fibers, size_t count, int64_t deadline_ns)
{
	struct hive_fiber *f;
	uint64_t life;
	int r = !fibers && count > 0 ? -EINVAL : 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = find_other(fibers[i], &f, &life);
	for (size_t i = 0; r == 0 && i < count; i++) {
		r = fiber_find(fibers[i], &f, &life);
		if (r == 0)
			r = wait_for_end(f, life, deadline_ns, 0);
	}
	return r;
}

static bool find_ended(struct hive_fiber *const *fibers, size_t count, size_t *ret_index)
{
	struct hive_fiber *f;
	uint64_t life, fate;

	for (size_t i = 0; i < count; i++)
		if (fiber_find(fibers[i], &f, &life) == 0 && fate_has_ended(&f->fate, life, &fate)) {
			*ret_index = i;
			return true;
		}
	return false;
}

struct one_of_many { /* a wait for any of them is in the list of each */
	struct hive_fiber *fiber;
	uint64_t life;
	struct wait_node node;
};

/* Who has ended is told by the lists: a handle may be gone by the time we look, joined by somebody else. */
static int wait_for_one(struct hive_fiber *const *fibers, size_t count, int64_t deadline_ns, struct one_of_many *all,
                        size_t *ret_index)
{
	uint64_t fate = 0;
	size_t enlisted = 0;
	struct wait wait;
	int r = hive__wait_begin(&wait, "wait_any");

	if (r < 0)
		return r;
	for (; enlisted < count; enlisted++) {
		struct one_of_many *one = &all[enlisted];

		r = fiber_find(fibers[enlisted], &one->fiber, &one->life);
		if (r == 0)
			fate = enlist(one->fiber, one->life, &one->node, wait, 0);
		if (r < 0 || fate & (FATE_ENDED | FATE_RELEASED))
			break;
	}
	if (enlisted == count)
		r = hive__wait_end(wait, deadline_ns);
	else
		hive__wait_give_up(wait);
	if (enlisted < count && r == 0 && (fate & FATE_RELEASED))
		r = -ESRCH;
	else if (enlisted < count && r == 0)
		*ret_index = enlisted;
	for (size_t i = enlisted; i-- > 0;)
		if (!strike_off(all[i].fiber, all[i].life, &all[i].node, 0)) {
			*ret_index = i;
			r = 0;
		}
	return r;
}

int hive_wait_any(struct hive_fiber *const *fibers, size_t count, int64_t deadline_ns, size_t *ret_index)
{
	struct one_of_many few[FEW_FIBERS], *all = few;
	struct memory memory = { hive__memory_system, NULL };
	struct hive_fiber *f;
	uint64_t life;
	int r = !fibers || count == 0 || !ret_index ? -EINVAL : 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = find_other(fibers[i], &f, &life);
	if (r < 0 || find_ended(fibers, count, ret_index))
		return r;
	if (deadline_ns == HIVE_NOWAIT)
		return -ETIMEDOUT;
	if (count > FEW_FIBERS)
		all = count > SIZE_MAX / sizeof *all
		              ? NULL
		              : (struct one_of_many *)hive__memory_new(&memory, count * sizeof *all);
	if (!all)
		return -ENOMEM;
	r = wait_for_one(fibers, count, deadline_ns, all, ret_index);
	if (all != few)
		hive__memory_free(&memory, all);
	return r;
}

/* The word first, the root then: who waits under a new life of this memory has another root by then. */
static void visit_cancel_tree(void *root, struct stack stack)
{
	struct hive_fiber *f = fiber_of_stack(stack);
	uint64_t word = load_seq(&f->waiter.cell.word); /* CELL-4 (pairs with CELL-2) */

	if (load_relaxed(&f->root) == root &&
	    cell_claim_word(&f->waiter.cell, word, word >> CELL_TURN_SHIFT, CELL_CANCELLED) == CELL_OURS_PARKED)
		hive__fiber_resume(f);
}

void hive__fiber_cancel_tree(struct hive_fiber *root)
{
	store_seq(&root->tree_cancelled, 1u); /* FIBER-4 (pairs with FIBER-3) */
	hive__stacks_visit(root->all->stacks, visit_cancel_tree, root);
}

int hive_block_on(struct hive *hive, hive_fiber_fn *fn, void *arg, int64_t deadline_ns, int *ret_result)
{
	struct tracker tracker = { .result = 0 };
	struct hive_fiber *handle, *root;
	int r = hive && hive__on_worker() ? -EDEADLK : 0;

	once_init(&tracker.once);
	if (r == 0)
		r = hive__fiber_start(hive, fn, arg, NULL, &tracker, &handle);
	if (r < 0)
		return r;
	if (deadline_ns == HIVE_FOREVER)
		hive__guest_await(hive, 1);
	r = once_wait(&tracker.once, false, "block_on", deadline_ns);
	if (deadline_ns == HIVE_FOREVER)
		hive__guest_await(hive, -1);
	root = (struct hive_fiber *)HANDLE_ADDRESS((uintptr_t)handle);
	if (r < 0) {
		hive__fiber_cancel_tree(root);
		while (once_wait(&tracker.once, false, "block_on", HIVE_FOREVER) < 0)
			;
	}
	if (ret_result)
		*ret_result = tracker.result;
	hive__fiber_release(root, load_relaxed(&root->fate) & FATE_LIFE);
	return r;
}
