/* SPDX-License-Identifier: MIT */
/* The life of a fiber: spawned, run by a worker's loop, parked, ended. */
#include <string.h>

#include <rophive/hive.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/thread.h"
#include "fiber/fiber.h"
#include "fiber/overflow.h"

struct place_cache { /* O  what fibers keep with a worker */
	struct stack_cache stacks;
	void *signal_stack; /* for the handler of overflows; NULL: none, or one of the program's own */
};

struct hive_fiber *hive__fiber_here(void)
{
	struct guest_place *place = hive__place();

	return place ? (struct hive_fiber *)place->now : NULL;
}

struct hive_fiber *hive_fiber_current(void)
{
	struct hive_fiber *f = hive__fiber_here();

	return f ? fiber_handle(f) : NULL;
}

/* As above, in one order with who cancels: CELL-2 comes before it, and a canceller looks at the cell after he has written.   */
static bool is_cancelled_seq(struct hive_fiber *f, const ATOMIC(uint32_t) *state)
{
	struct hive_fiber *root = load_relaxed(&f->root);

	return load_seq(&f->cancelled) ||                   /* FIBER-1 (pairs with FIBER-2) */
	       (root && load_seq(&root->tree_cancelled)) || /* FIBER-3 (pairs with FIBER-4) */
	       state_ends_waits(state);
}

void hive__fiber_resume(struct hive_fiber *f)
{
	fiber_warm_up(f);
	if (f->pinned == HIVE_WORKER_NONE)
		hive__guest_ready(f->hive, &f->guest);
	else
		hive__guest_ready_at(f->hive, &f->guest, f->pinned);
}

void hive__fiber_cancel_wait(struct hive_fiber *f)
{
	if (cell_cancel(&f->waiter.cell) == CELL_OURS_PARKED)
		hive__fiber_resume(f);
}

void hive__fiber_free(struct hive_fiber *f, struct guest_place *place)
{
	struct place_cache *cache = place && place->hive == f->hive ? (struct place_cache *)place->cache[GUESTS_FIBERS]
	                                                            : NULL;

	hive__stack_put(f->all->stacks, cache ? &cache->stacks : NULL, f->stack);
}

static void body(void *arg)
{
	struct hive_fiber *f = (struct hive_fiber *)arg;

	f->result = load_relaxed(&f->fn)(f->arg);
	f->request = REQUEST_END;
	context_leave(&f->context, f->loop);
}

/* On the loop. Parked means: from here on whoever claims it owns it, and f may be running elsewhere, or be somebody else. A claim
 * by an old turn does nothing, so asking once more is safe. True: it has to go on here and now.                          */
static bool goes_on_instead_of_parking(struct hive_fiber *f)
{
	uint64_t turn = load_relaxed(&f->waiter.cell.word) >> CELL_TURN_SHIFT;
	const ATOMIC(uint32_t) *state = f->state;

	if (!cell_park(&f->waiter.cell))
		return true;
	return is_cancelled_seq(f, state) && cell_claim(&f->waiter.cell, turn, CELL_CANCELLED) == CELL_OURS_PARKED;
}

/* On the loop of `loop`, which asks for the next one then; NULL: wherever it was dropped. */
static void end(struct hive_fiber *f, struct guest_place *loop)
{
	struct hive *hive = f->hive;

#if defined(HIVE_DEBUG)
	scope_end(&f->waiter.scope, (struct scope){ 0, 0 });
#endif
	MISUSE(f->waiter.mutexes > 0, "a fiber ended with a mutex held"); /* nobody can unlock it any more */
	if (f->locals)
		hive__locals_drop(hive__guest_memory(hive), f->locals);
	if (f->cancel)
		hive__cancel_leave(f->cancel, &f->under);
	store_relaxed(&f->began, 2u);
	hive__fiber_ended(f, loop);
	hive__unhold(hive);
}

static void run(struct guest *guest);

/* The first fiber on this worker. Without memory for it there is none. */
static void furnish(struct guest_place *place)
{
	const struct memory *memory = hive__guest_memory(place->hive);
	struct place_cache *cache = (struct place_cache *)hive__memory_new(memory, sizeof *cache);

	if (cache && hive__overflow_thread_begin(memory, &cache->signal_stack) < 0)
		cache->signal_stack = NULL;
	place->cache[GUESTS_FIBERS] = cache;
}

static void begin(struct hive_fiber *f, const struct context *loop)
{
	f->guest.drop = NULL;
	store_relaxed(&f->began, 1u);
	context_make_like(&f->context, f->stack.low, (size_t)((char *)f - (char *)f->stack.low), body, f, loop);
}

/* Goes on with it until it, or another one to which it has passed the thread on, parks or ends, or none of them is next. */
static inline void run_one(struct hive_fiber *f, struct guest_place *place, struct context *loop)
{
	enum fiber_request request;

	if (f->guest.drop)
		begin(f, loop);
	do {
		place->now = f;
		f->loop = loop;
		context_enter(loop, &f->context);
		f = (struct hive_fiber *)place->now;
		place->now = NULL;
		request = f->request;
	} while (request == REQUEST_PARK && goes_on_instead_of_parking(f));
	if (request == REQUEST_MOVE) {
		hive__guest_move(f->hive, &f->guest);
	} else if (request == REQUEST_END) {
		context_destroy(&f->context);
		end(f, place);
	}
}

/* The task of a fiber; and of those that come next. */
static void run(struct guest *guest)
{
	struct guest_place *place = hive__place();
	struct context loop;

	if (!place->cache[GUESTS_FIBERS])
		furnish(place);
	context_here(&loop);
	while (guest) {
		if (guest->run == run)
			run_one(fiber_of_guest(guest), place, &loop);
		else
			guest->run(guest);
		guest = hive__guest_next(place);
	}
}

/* It will never begin. */
static void drop(struct guest *guest)
{
	struct hive_fiber *f = fiber_of_guest(guest);

	f->result = -ECANCELED;
	end(f, NULL);
}

static void visit_stop(void *arg, struct stack stack)
{
	(void)arg;
	hive__fiber_cancel_wait(fiber_of_stack(stack));
}

static void all_stop(void *fibers, void *cache)
{
	(void)cache;
	hive__stacks_visit(((struct fibers *)fibers)->stacks, visit_stop, NULL);
}

/* In the signal handler. */
static void tell_name(void *arg, struct stack stack, char *ret_name, size_t bytes)
{
	char name[32];

	(void)arg;
	fiber_name_read(fiber_of_stack(stack), name);
	strncat(ret_name, name, bytes - 1);
}

static void all_end(void *fibers)
{
	struct fibers *all = (struct fibers *)fibers;
	const struct memory *memory = hive__guest_memory(all->hive);

	hive__overflow_unwatch(all->stacks);
	hive__stacks_destroy(all->stacks);
	hive__memory_free(memory, all);
}

static void place_leave(void *fibers, void *cache)
{
	struct fibers *all = (struct fibers *)fibers;

	hive__stack_cache_empty(all->stacks, &((struct place_cache *)cache)->stacks);
	hive__overflow_thread_end(hive__guest_memory(all->hive), ((struct place_cache *)cache)->signal_stack);
	hive__memory_free(hive__guest_memory(all->hive), cache);
}

static void who(void *now, void **ret_fn, char ret_name[32])
{
	struct hive_fiber *f = (struct hive_fiber *)now;

	*ret_fn = (void *)(uintptr_t)load_relaxed(&f->fn);
	fiber_name_read(f, ret_name);
}

static const struct guest_ops ops = {
	all_stop, all_end, NULL, place_leave, hive__fibers_dump, who, hive__fibers_standstill
};

static __attribute__((noinline)) struct fibers *make_fibers(struct hive *hive)
{
	struct fibers *all, *kept;

	all = (struct fibers *)hive__memory_new(hive__guest_memory(hive), sizeof *all);
	if (!all)
		return NULL;
	all->hive = hive;
	all->state = hive__guest_state(hive);
	if (hive__stacks_create(hive__guest_memory(hive), &all->stacks) < 0) {
		hive__memory_free(hive__guest_memory(hive), all);
		return NULL;
	}
	kept = (struct fibers *)hive__guests_set(hive, GUESTS_FIBERS, all, &ops);
	if (kept != all)
		all_end(all);
	else if (hive__overflow_may_watch())
		hive__overflow_watch(all->stacks, tell_name,
		                     NULL); /* too many hives: then overflows are told of the first ones */
	return kept;
}

struct fibers *hive__fibers(struct hive *hive)
{
	struct fibers *all = (struct fibers *)hive__guests(hive, GUESTS_FIBERS);

	return all ? all : make_fibers(hive);
}

static int check(struct hive *hive, hive_fiber_fn *fn, const struct hive_fiber_options *o)
{
	int r = fn ? hive__guest_door(hive) : -EINVAL;

	if (r < 0 || !o)
		return r;
	for (size_t i = 0; i < sizeof o->reserved / sizeof *o->reserved; i++)
		if (o->reserved[i] != 0)
			return -EINVAL;
	if (o->flags != 0 || (o->cancel && !cancel_is_valid(o->cancel)))
		return -EINVAL;
	return o->worker == HIVE_WORKER_NONE ? 0 : hive__guest_check_worker(hive, o->worker);
}

/* The own worker's warm stacks; without memory for the cache there is none. */
static struct stack_cache *cache_here(struct hive *hive, struct guest_place *place)
{
	if (!place || place->hive != hive)
		return NULL;
	if (!place->cache[GUESTS_FIBERS])
		furnish(place);
	return place->cache[GUESTS_FIBERS] ? &((struct place_cache *)place->cache[GUESTS_FIBERS])->stacks : NULL;
}

/* A child enters the count of its parent before anybody can see it, let alone end it. */
static void enter_tree(struct hive_fiber *f, struct hive_fiber *parent, struct tracker *tracker)
{
	struct hive_fiber *root = tracker ? f : parent ? load_relaxed(&parent->root) : NULL;

	f->tracker = tracker;
	f->parent = root && root != f ? parent : NULL;
	store_relaxed(&f->tree_cancelled, 0u);
	store_relaxed(&f->root, root);
	if (!root)
		return;
	store_relaxed(&f->pending, 1u);
	if (f->parent)
		add_relaxed(&f->parent->pending, 1u);
}

static void leave_tree(struct hive_fiber *f)
{
	if (f->parent)
		sub_relaxed(&f->parent->pending, 1u); /* the caller is that parent: it cannot be the last */
}

static void fill(struct hive_fiber *f, struct fibers *all, hive_fiber_fn *fn, void *arg,
                 const struct hive_fiber_options *o)
{
	f->guest.run = run;
	f->guest.drop = drop;
	f->waiter.mutexes = 0;
#if defined(HIVE_DEBUG)
	f->waiter.scope = (struct scope){ 0, 0 };
#endif
	store_relaxed(&f->waiter.why, (const char *)NULL);
	store_relaxed(&f->cancelled, 0);
	store_relaxed(&f->began, 0u);
	f->all = all;
	f->hive = all->hive;
	f->state = all->state;
	store_relaxed(&f->fn, fn);
	f->arg = arg;
	f->pinned = o ? o->worker : HIVE_WORKER_NONE;
	fiber_name_write(f, o ? o->name : NULL);
}

static int start(struct hive *hive, hive_fiber_fn *fn, void *arg, const struct hive_fiber_options *options,
                 struct tracker *tracker, bool own, struct hive_fiber **ret_fiber)
{
	struct guest_place *place = hive__place();
	struct fibers *all = hive__fibers(hive);
	struct hive_fiber *f, *parent, *before;
	struct stack_cache *cache;
	struct stack stack;
	size_t bytes = options && options->stack_bytes ? options->stack_bytes : 0;
	int r;

	if (!all)
		return -ENOMEM;
	cache = cache_here(hive, place);
	r = bytes > SIZE_MAX - STACK_TOP ? -EINVAL
	                                 : hive__stack_get(all->stacks, cache, bytes ? bytes + STACK_TOP : 0, &stack);
	if (r < 0)
		return r;
	f = fiber_of_stack(stack);
	if (f->stack.low != stack.low) /* else it has been a fiber before, and what it says is still true */
		f->stack = stack;
	fill(f, all, fn, arg, options);
	r = hive__fiber_enter(f, options, own);
	if (r < 0) {
		store_relaxed(&f->began, 2u); /* it never was one: dumps pass it by */
		hive__stack_put(all->stacks, cache, stack);
		return r;
	}
	parent = !own && place && place->hive == hive ? (struct hive_fiber *)place->now : NULL;
	f->locals = parent && parent->locals ? hive__locals_share(parent->locals) : NULL;
	enter_tree(f, parent, tracker);
	fate_begin(&f->fate, ret_fiber ? 0 : FATE_RELEASED);
	before = ret_fiber ? *ret_fiber : NULL;
	if (ret_fiber)
		*ret_fiber = fiber_handle(f); /* before it runs: it may look for itself there */
	r = hive__guest_launch(hive, &f->guest, f->pinned);
	if (r == 0)
		return 0;
	if (ret_fiber)
		*ret_fiber = before;
	if (f->cancel)
		hive__cancel_leave(f->cancel, &f->under);
	leave_tree(f);
	hive__locals_drop(hive__guest_memory(hive), f->locals);
	store_relaxed(&f->began, 2u);
	hive__stack_put(all->stacks, cache, stack);
	return r;
}

int hive__fiber_start(struct hive *hive, hive_fiber_fn *fn, void *arg, const struct hive_fiber_options *options,
                      struct tracker *tracker, struct hive_fiber **ret_fiber)
{
	int r = check(hive, fn, options);

	return r < 0 ? r : start(hive, fn, arg, options, tracker, false, ret_fiber);
}

int hive__fiber_start_own(struct hive *hive, hive_fiber_fn *fn, void *arg, const struct hive_fiber_options *options,
                          struct tracker *tracker, struct hive_fiber **ret_fiber)
{
	return start(hive, fn, arg, options, tracker, true, ret_fiber);
}

int hive_spawn(struct hive *hive, hive_fiber_fn *fn, void *arg, const struct hive_fiber_options *options,
               struct hive_fiber **ret_fiber)
{
	return hive__fiber_start(hive, fn, arg, options, NULL, ret_fiber);
}

int hive_fiber_name(struct hive_fiber *fiber, char *ret_name, size_t bytes)
{
	struct hive_fiber *f = hive__fiber_here();
	bool own = !fiber || (f && fiber == fiber_handle(f)); /* which one may always ask for */
	uint64_t life;
	int r = own ? 0 : fiber_find(fiber, &f, &life);
	char name[32] = "";

	if (r < 0 || !ret_name || bytes == 0)
		return r < 0 ? r : -EINVAL;
	if (f)
		fiber_name_read(f, name);
	ret_name[0] = 0;
	strncat(ret_name, name, bytes - 1);
	return 0;
}

/* Queued before it is left: that queue is this thread's own. Then straight to the next fiber, if one is next. */
static inline void yield(struct hive_fiber *f, struct guest_place *place)
{
	struct hive_fiber *next;
	struct guest *guest;

	if (f->pinned == HIVE_WORKER_NONE && hive__guest_is_wanted_elsewhere(place)) {
		fiber_leave(f, REQUEST_MOVE);
		return;
	}
	guest = hive__guest_yield(place, &f->guest);
	next = guest ? fiber_of_guest(guest) : NULL;
	if (next == f)
		return;
	if (!next) {
		fiber_leave(f, REQUEST_NEXT);
		return;
	}
	if (next->guest.drop)
		begin(next, f->loop);
	place->now = next;
	next->loop = f->loop;
	context_switch(&f->context, &next->context);
}

int hive_yield(void)
{
	struct guest_place *place = hive__place();
	struct hive_fiber *f = place ? (struct hive_fiber *)place->now : NULL;

	if (!f) {
		if (!place)
			hive__thread_yield();
		return 0;
	}
	yield(f, place); /* also when cancelled: who ignores that must not keep the worker */
	return hive__fiber_reason(f);
}

int hive_yield_if_due(void)
{
	return hive_should_yield() ? hive_yield() : 0;
}

int hive_sleep(int64_t delay_ns)
{
	struct wait wait;
	int64_t deadline_ns;
	int r;

	if (delay_ns < 1)
		return hive_yield();
	deadline_ns = hive_deadline(hive_current() ? NULL : hive__guest_world(), delay_ns);
	r = hive__wait_begin(&wait, "sleep");
	if (r < 0)
		return r;
	r = hive__wait_end(wait, deadline_ns);
	return r == -ETIMEDOUT ? hive__wait_reason() : r; /* which may be that of its token */
}
