/* SPDX-License-Identifier: MIT */
#pragma once
/* What travels to one worker: a private task, a delayed task on its way to the timers, or the timers that a leaving
 * worker hands over. A parcel comes from the slab of a worker and is type-stable, so an old id can be looked at safely.
 *
 * The ticket of a delayed post decides between running and cancelling; whoever moves it has the task:
 *   FREE --hive_post_after--> WAITING --fire, drop--> FREE (next generation)
 *                             WAITING --hive_post_cancel--> CANCELLED --keeper lets go of it--> FREE
 *                             WAITING --rescued from a keeper that is stuck--> CANCELLED, and its task runs elsewhere
 *
 * Race: who rescues has to know the task before he has the ticket, for from then on the keeper may give the parcel to the next post. He reads
 * copies (OFFER-2), then claims. If one of the copies was the next post's, he sees that this one's ticket is gone, and claims nothing. */
#include "base/atomic.h"
#include "queue/inbox.h"
#include "queue/mesh.h"
#include "queue/slab.h"

#include <rophive/task.h>
#include <rophive/timer.h>

struct worker;

enum parcel_kind {
	PARCEL_TASK = 1,  /* run task, privately */
	PARCEL_REPLY = 2, /* the same, and somebody waits for it while draining */
	PARCEL_TIMER = 3, /* put timer among the timers */
	PARCEL_ADOPT = 4, /* take over the chain of embedded timers that begins at task.arg */
	PARCEL_GUEST = 5, /* as PARCEL_TASK, in memory of the guest's own */
	PARCEL_LANE = 6   /* as PARCEL_TASK, in memory of the lane by which it came */
};

enum { TICKET_FREE = 0, TICKET_WAITING = 1, TICKET_CANCELLED = 2, TICKET_STATES = 4 };

struct parcel {
	struct slab_item item;
	struct mesh_cell cell; /* PARCEL_LANE: its place in the lane */
	struct letter letter;  /* in an inbox, then in a private queue */
	uint32_t kind;
	uint32_t target; /* id of the worker it was posted to; HIVE_WORKER_NONE: anybody */
	struct hive_task task;
	union {
		hive_fn *then;             /* PARCEL_REPLY: of hive_post_compute_then() */
		ATOMIC(uint64_t) *receipt; /* PARCEL_TASK, PARCEL_GUEST: where its arrival is counted; NULL: nowhere */
	};
	struct worker *home; /* whose slab it belongs to */
};

/* A delayed post: PARCEL_TIMER. */
struct delayed {
	struct parcel parcel;           /* first */
	ATOMIC(uint64_t) ticket;        /* A  generation * TICKET_STATES + state */
	ATOMIC(struct worker *) keeper; /* S  among whose timers it is; NULL on its way */
	bool counted;                   /* its keeper has entered it in the books */
	bool alarm;                     /* of a guest: it outlives the silence of a drain */
	ATOMIC(int64_t) offered_due_ns; /* A  copies for who rescues it; INT64_MAX: it stays with its keeper */
	ATOMIC(hive_fn *) offered_fn;   /* A */
	ATOMIC(void *) offered_arg;     /* A */
	struct hive_timer timer;
};

#define parcel_of_letter(l) ((struct parcel *)(void *)((char *)(l)-offsetof(struct parcel, letter)))
#define parcel_of_cell(c) ((struct parcel *)(void *)((char *)(c)-offsetof(struct parcel, cell)))
#define delayed_of_letter(l) ((struct delayed *)(void *)parcel_of_letter(l))
#define delayed_of_timer(t) ((struct delayed *)(void *)((char *)(t)-offsetof(struct delayed, timer)))

static inline uint64_t delayed_generation(struct delayed *d)
{
	return load_relaxed(&d->ticket) / TICKET_STATES;
}

/* Generations live in 32 bits of an id and are never 0, so neither is an id. */
static inline uint64_t delayed_next_generation(struct delayed *d)
{
	uint64_t generation = (delayed_generation(d) + 1) & UINT32_MAX;

	return generation ? generation : 1;
}

/* Who took it from the slab, before delayed_begin(). What is to be had; not yet when. */
static inline void delayed_show(struct delayed *d, struct hive_task task)
{
	store_relaxed(&d->offered_due_ns, (int64_t)INT64_MAX);
	store_release(&d->offered_fn, task.fn);   /* OFFER-1 (pairs with OFFER-2) */
	store_release(&d->offered_arg, task.arg); /* OFFER-1 (pairs with OFFER-2) */
}

/* Its keeper, or who is about to send it there: when it is due, or a nanosecond later, others may run it. Times of alarms are odd. */
static inline void delayed_offer(struct delayed *d, int64_t due_ns, bool alarm)
{
	if (due_ns < INT64_MAX)
		due_ns += (due_ns & 1) != alarm;
	store_release(&d->offered_due_ns, due_ns); /* OFFER-1 (pairs with OFFER-2) */
}

/* Who took it from the slab, and has filled it in: from here on it can be cancelled. */
static inline void delayed_begin(struct delayed *d)
{
	/* TICKET-1 (pairs with TICKET-2 and TICKET-3) */
	store_release(&d->ticket, delayed_next_generation(d) * TICKET_STATES + TICKET_WAITING);
}

/* Moves the ticket from WAITING to `state`; exactly one caller succeeds per generation. */
static inline bool delayed_claim(struct delayed *d, uint64_t generation, uint64_t state)
{
	uint64_t waiting = generation * TICKET_STATES + TICKET_WAITING;

	/* TICKET-2 (pairs with TICKET-1) */
	return cas_acquire(&d->ticket, &waiting, generation * TICKET_STATES + state);
}

/* Any thread. True: it was due, and its task is the caller's; for its keeper it is cancelled. */
static inline bool delayed_rescue(struct delayed *d, int64_t now_ns, struct hive_task *ret_task, bool *ret_alarm)
{
	uint64_t ticket = load_acquire(&d->ticket); /* TICKET-3 (pairs with TICKET-1) */
	struct hive_task task;
	int64_t due_ns;

	if (ticket % TICKET_STATES != TICKET_WAITING)
		return false;
	due_ns = load_acquire(&d->offered_due_ns); /* OFFER-2 (pairs with OFFER-1) */
	if (due_ns > now_ns)
		return false;
	task.fn = load_acquire(&d->offered_fn);   /* OFFER-2 (pairs with OFFER-1) */
	task.arg = load_acquire(&d->offered_arg); /* OFFER-2 (pairs with OFFER-1) */
	if (!delayed_claim(d, ticket / TICKET_STATES, TICKET_CANCELLED))
		return false;
	*ret_task = task;
	*ret_alarm = due_ns & 1;
	return true;
}

/* The keeper. Nobody else uses it after cancelling, so seeing it is enough. */
static inline bool delayed_is_cancelled(struct delayed *d)
{
	return load_relaxed(&d->ticket) % TICKET_STATES == TICKET_CANCELLED;
}

/* The keeper, or its poster when it was refused; it goes back to the slab next, and the slab has the order. */
static inline void delayed_end(struct delayed *d)
{
	store_relaxed(&d->ticket, delayed_generation(d) * TICKET_STATES + TICKET_FREE);
}
