/* SPDX-License-Identifier: MIT */
/* What is under a cancel token: fibers, and tasks; and the token of what runs here.
 *
 * A task is wrapped, and looks at the token when its turn has come. That would be late for one that is due in an hour, so a delayed one has a
 * watch, which cancels the post. Who cancels it, who runs it and who drops it when the hive stops are told apart by the ticket
 * of the post: one of them has the task. The post is not known before it is made, and may have run by then: hence whoever posts has a
 * reference of his own, and looks at the token once the number of the post is there.                                       */
#include <rophive/hive.h>

#include "base/memory.h"
#include "base/refs.h"
#include "fiber/fiber.h"

/* ---- fibers ---- */

int hive__fiber_enter(struct hive_fiber *f, const struct hive_fiber_options *o, bool own)
{
	struct hive_fiber *spawner = own ? NULL : hive__fiber_here();
	int r;

	f->cancel = o && o->cancel ? o->cancel : spawner ? spawner->cancel : NULL;
	if (!f->cancel)
		return 0;
	r = hive__cancel_enter_fiber(f->cancel, &f->under);
	if (r < 0)
		return r;
	r = hive__cancel_arm(f->cancel, f->hive);
	if (r < 0)
		hive__cancel_leave(f->cancel, &f->under);
	return r;
}

/* The first reason stays. Who finds one has nothing to write: who wrote it looks at the cell as well. */
static void cancel_for(struct hive_fiber *f, int reason)
{
	int32_t none = 0;

	cas_seq(&f->cancelled, &none, reason); /* FIBER-2 (pairs with FIBER-1) */
}

bool hive__fiber_tell(struct hive_cancel_link *link, int reason)
{
	struct hive_fiber *f = fiber_of_link(link);

	cancel_for(f, reason);
	return cell_cancel(&f->waiter.cell) == CELL_OURS_PARKED;
}

void hive__fiber_go_on(struct hive_cancel_link *link)
{
	hive__fiber_resume(fiber_of_link(link));
}

int hive_fiber_cancel(struct hive_fiber *fiber)
{
	struct hive_fiber *f;
	uint64_t life;
	int r = fiber_find(fiber, &f, &life);

	if (r < 0)
		return r;
	cancel_for(f, -ECANCELED);
	hive__fiber_cancel_wait(f);
	return 0;
}

/* ---- tasks ---- */

struct under {
	struct wrapped wrapped;     /* first */
	struct memory memory;       /* I */
	struct hive *hive;          /* I */
	struct hive_cancel *cancel; /* I  under which it counts, as long as this is there */
	ATOMIC(uint32_t) refs;      /* A  the task's, and while it is posted its poster's */
	bool delayed;               /* I */
	ATOMIC(uint64_t) post;      /* S  its poster; 0: not yet */
	struct hive_cancel_watch watch;
};

#define under_of_wrapped(w) ((struct under *)(void *)(w))

/* Who gives the last reference back leaves the token. */
static void release(struct under *u)
{
	struct hive_cancel *cancel = u->cancel;
	struct memory memory = u->memory;

	if (!refs_drop(&u->refs))
		return;
	hive__memory_free(&memory, u);
	hive__cancel_leave(cancel, NULL);
}

/* The task has ended, in whatever way. */
static void end(struct under *u)
{
	if (u->delayed)
		hive_cancel_watch_stop(&u->watch);
	release(u);
}

static void dropped(struct wrapped *wrapped)
{
	end(under_of_wrapped(wrapped));
}

static void run(struct wrapped *wrapped)
{
	struct under *u = under_of_wrapped(wrapped);

	if (hive__cancel_reason(u->cancel) != 0) {
		hive__drop_instead(u->hive, wrapped);
	} else {
		void **slot = hive__task_slot(), *outer = *slot;

		*slot = u->cancel;
		wrapped->task.fn(wrapped->task.arg);
		*slot = outer;
	}
	end(u);
}

/* The token has fired. If nobody has begun with the task, it is ours to drop. */
static void drop_waiting(struct under *u, uint64_t post)
{
	if (hive_post_cancel(u->hive, post) < 0)
		return;
	hive__drop_cancelled(u->hive, &u->wrapped);
	end(u);
}

static void on_fired(struct hive_cancel_watch *watch, int reason)
{
	struct under *u = (struct under *)watch->arg;
	uint64_t post = load_relaxed(&u->post);

	(void)reason;
	if (post != 0) /* else its poster will look */
		drop_waiting(u, post);
}

/* Counted under the token. 0, -ENOMEM, what the deadline's alarm says, or the reason. */
static int make(struct hive *hive, struct hive_cancel *cancel, struct hive_task task, struct under **ret_under)
{
	const struct memory *memory = hive__guest_memory(hive);
	struct under *u;
	int r = hive__cancel_enter(cancel);

	if (r < 0)
		return r;
	r = hive__cancel_arm(cancel, hive);
	u = r < 0 ? NULL : (struct under *)hive__memory_new(memory, sizeof *u);
	if (!u) {
		hive__cancel_leave(cancel, NULL);
		return r < 0 ? r : -ENOMEM;
	}
	u->wrapped = (struct wrapped){ run, dropped, task };
	u->memory = *memory;
	u->hive = hive;
	u->cancel = cancel;
	store_relaxed(&u->refs, 1u);
	*ret_under = u;
	return 0;
}

int hive_post_under(struct hive *hive, struct hive_cancel *cancel, enum hive_kind kind, hive_fn *fn, void *arg)
{
	struct hive_task task = { fn, arg };
	struct under *u;
	int r;

	if (!cancel)
		cancel = hive__cancel_here();
	if (!cancel)
		return hive_post_kind(hive, kind, 0, fn, arg);
	if (!hive || !fn || !cancel_is_valid(cancel) || (kind != HIVE_MICRO && kind != HIVE_COMPUTE))
		return -EINVAL;
	r = make(hive, cancel, task, &u);
	if (r < 0)
		return r;
	r = hive_post_kind(hive, kind, 0, hive__run_wrapped, u);
	if (r < 0)
		release(u);
	return r;
}

static int post_after(struct under *u, int64_t delay_ns)
{
	uint64_t post;
	int r;

	u->delayed = true;
	hive_cancel_watch_init(&u->watch, on_fired, u);
	r = hive__cancel_watch(u->cancel, &u->watch);
	if (r == 0)
		r = hive_post_after(u->hive, delay_ns, hive__run_wrapped, u, &post);
	if (r < 0) {
		end(u);
		return r;
	}
	store_relaxed(&u->post, post);
	if (hive__cancel_look(u->cancel) != 0)
		drop_waiting(u, post);
	return 0;
}

int hive_post_after_under(struct hive *hive, struct hive_cancel *cancel, int64_t delay_ns, hive_fn *fn, void *arg)
{
	struct hive_task task = { fn, arg };
	struct under *u;
	int r;

	if (!cancel)
		cancel = hive__cancel_here();
	if (!cancel)
		return hive_post_after(hive, delay_ns, fn, arg, NULL);
	if (!hive || !fn || !cancel_is_valid(cancel))
		return -EINVAL;
	r = make(hive, cancel, task, &u);
	if (r < 0)
		return r;
	refs_add(&u->refs);
	r = post_after(u, delay_ns);
	release(u);
	return r;
}

/* ---- here ---- */

struct hive_cancel *hive__cancel_here(void)
{
	struct hive_fiber *f = hive__fiber_here();
	void **slot = f ? NULL : hive__task_slot();

	return f ? f->cancel : slot ? (struct hive_cancel *)*slot : NULL;
}

/* Asked in loops: one call, for a fiber. */
static inline int check_here(void)
{
	struct guest_place *place = hive__place();
	void **slot;

	if (place && place->now)
		return hive__fiber_reason((struct hive_fiber *)place->now);
	slot = hive__task_slot();
	return slot && *slot ? hive__cancel_reason((const struct hive_cancel *)*slot) : 0;
}

int hive_cancel_check(const struct hive_cancel *cancel)
{
	if (!cancel)
		return check_here();
	return cancel_is_valid(cancel) ? hive__cancel_reason(cancel) : -EINVAL;
}

bool hive_cancelled(void)
{
	return check_here() != 0;
}
