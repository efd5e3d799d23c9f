/* SPDX-License-Identifier: MIT */
/* hive_offload(): a function that blocks or computes goes to a compute worker, and the fiber parks.
 *
 * The request has memory of its own, for the fiber may give up while it is queued; what has begun is waited for:
 * an errand (errand.h), taken when it begins, abandoned at a deadline or a cancel.                                          */
#include <rophive/fiber.h>

#include "base/memory.h"
#include "fiber/errand.h"
#include "fiber/fiber.h"

struct offload {
	struct guest guest;      /* first */
	struct memory memory;    /* I */
	struct hive *hive;       /* I */
	hive_fiber_fn *fn;       /* I */
	void *arg;               /* I */
	ATOMIC(uint32_t) errand; /* A */
	struct once once;
	bool dropped; /* I once done */
	int result;   /* I once done */
};

/* The fiber holds the hive until it is done; an abandoned request holds it itself (see below). */
static void discard(struct offload *o)
{
	struct hive *hive = o->hive;
	struct memory memory = o->memory;

	hive__memory_free(&memory, o);
	hive__unhold(hive);
}

static void run(struct guest *guest)
{
	struct offload *o = (struct offload *)(void *)guest;

	if (!errand_take(&o->errand)) {
		discard(o);
		return;
	}
	o->result = o->fn(o->arg);
	once_finish(&o->once);
}

/* The hive stops before a compute worker came to it. */
static void drop(struct guest *guest)
{
	struct offload *o = (struct offload *)(void *)guest;

	if (!errand_take(&o->errand)) {
		discard(o);
		return;
	}
	o->dropped = true;
	once_finish(&o->once);
}

static struct offload *new_offload(struct hive_fiber *f, hive_fiber_fn *fn, void *arg)
{
	const struct memory *memory = hive__guest_memory(f->hive);
	struct offload *o = (struct offload *)hive__memory_new(memory, sizeof *o);

	if (!o)
		return NULL;
	o->guest.run = run;
	o->guest.drop = drop;
	o->memory = *memory;
	o->hive = f->hive;
	o->fn = fn;
	o->arg = arg;
	once_init(&o->once);
	return o;
}

static int in_fiber(struct hive_fiber *f, hive_fiber_fn *fn, void *arg, int64_t deadline_ns, int *ret_result)
{
	int r = hive__fiber_reason(f);
	struct offload *o = r < 0 ? NULL : new_offload(f, fn, arg);
	struct hive *hive = f->hive;

	if (!o)
		return r < 0 ? r : -ENOMEM;
	hive__hold(hive); /* for the request: it may outlive the fiber */
	r = hive__guest_compute(hive, &o->guest);
	if (r < 0) {
		discard(o);
		return r;
	}
	r = once_wait(&o->once, false, "offload, queued", deadline_ns);
	if (r < 0 && errand_abandon(&o->errand))
		return r;
	while (r < 0)
		r = once_wait(&o->once, true, "offload", HIVE_FOREVER);
	if (o->dropped)
		r = -ECANCELED;
	else if (ret_result)
		*ret_result = o->result;
	discard(o);
	return r;
}

int hive_offload(hive_fiber_fn *fn, void *arg, int64_t deadline_ns, int *ret_result)
{
	struct hive_fiber *f = hive__fiber_here();
	int result;

	if (!fn)
		return -EINVAL;
	if (f)
		return in_fiber(f, fn, arg, deadline_ns, ret_result);
	if (hive__place())
		return -EDEADLK;
	result = fn(arg);
	if (ret_result)
		*ret_result = result;
	return 0;
}
