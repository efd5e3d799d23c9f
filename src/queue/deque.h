/* SPDX-License-Identifier: MIT */
#pragma once
/* The local queue: a bounded work-stealing deque (Chase and Lev). The owner works at the bottom, newest first; thieves
 * take the oldest at the top.
 *
 *   D1  Only the owner moves bottom. top only grows, by compare-and-swap.
 *   D2  A slot is overwritten only after bottom - top < capacity was seen.
 *   D3  Full means refuse: it never grows, blocks or overwrites.
 *
 * The race is about the last task. The owner lowers bottom, then reads top; a thief reads top, then bottom. Both
 * sides must not see the old value of the other: the lowering is a seq_cst exchange and all these loads are seq_cst, so
 * in their one total order at least one of the two notices; the compare-and-swap on top decides. push() is a seq_cst
 * exchange as well, because the caller looks for sleepers next (see idle.h). Where the owner moves top, release is enough:
 * a thief who sees that top sees the bottom that the owner had lowered before.                                        */
#include "base/fault.h"
#include "base/fetch.h"
#include "queue/slot.h"

#if !defined(DEQUE_START)
#define DEQUE_START 0 /* where the indices of a new worker begin; the explorer starts near the wrap */
#endif

#if defined(HIVE_LOCKED_QUEUES)
#include "queue/deque_locked.h"
#else

struct deque {
	struct slot *slots;                          /* I */
	uint64_t capacity;                           /* I  power of two */
	uint64_t top_seen;                           /* O  an old top: looked at anew only when the deque seems full */
	alignas(CACHE_LINE) ATOMIC(uint64_t) bottom; /* S  next free slot */
	alignas(CACHE_LINE) ATOMIC(uint64_t) top;    /* A  oldest task */
};

/* Before anybody uses it. `start` is where the indices begin: tests start near the wrap. */
static inline void deque_init(struct deque *d, struct slot *slots, uint64_t capacity, uint64_t start)
{
	d->slots = slots;
	d->capacity = capacity;
	d->top_seen = start;
	store_relaxed(&d->bottom, start);
	store_relaxed(&d->top, start);
}

static inline struct slot *deque_slot(struct deque *d, uint64_t index)
{
	return &d->slots[index & (d->capacity - 1)];
}

/* How far `to` is ahead of `from`; negative when behind. Right across the wrap. */
static inline int64_t deque_distance(uint64_t from, uint64_t to)
{
	return (int64_t)(to - from);
}

/* Any thread. Approximate while others work on it. */
static inline uint64_t deque_size(struct deque *d)
{
	uint64_t top = load_relaxed(&d->top); /* an old one: too large; one newer than bottom: those tasks are taken */
	int64_t size = deque_distance(top, load_seq(&d->bottom)); /* DEQUE-6 (pairs with DEQUE-2) */

	return size < 0 ? 0 : (uint64_t)size;
}

/* Owner thread only. May be too small when thieves are at work, never too large. */
static inline uint64_t deque_room(struct deque *d)
{
	d->top_seen = load_acquire(&d->top); /* DEQUE-1 (pairs with DEQUE-4) */
	if (HIVE_FAULT("local queue full"))
		return 0;
	return d->capacity - (load_relaxed(&d->bottom) - d->top_seen);
}

/* Owner thread only. All tasks of an array, as it lies or its last one first; the caller saw room for them. */
static inline void deque_push_many(struct deque *d, const struct hive_task *tasks, uint64_t n, bool last_first)
{
	uint64_t bottom = load_relaxed(&d->bottom);

	for (uint64_t i = 0; i < n; i++)
		slot_write(deque_slot(d, bottom + i), tasks[last_first ? n - 1 - i : i]);
	exchange_seq(&d->bottom, bottom + n); /* DEQUE-2 (pairs with DEQUE-3 and DEQUE-6) */
}

/* Owner thread only. False when full. */
static inline bool deque_push(struct deque *d, struct hive_task task)
{
	if (load_relaxed(&d->bottom) - d->top_seen >= d->capacity && deque_room(d) < 1)
		return false;
	deque_push_many(d, &task, 1, false);
	return true;
}

/* Owner thread only. The newest task; false when empty. */
static inline bool deque_pop(struct deque *d, struct hive_task *ret_task)
{
	uint64_t bottom = load_relaxed(&d->bottom) - 1;
	uint64_t top = load_relaxed(&d->top);
	bool won = false;

	if (deque_distance(top, bottom) < 0) /* an old top is a smaller top: what looks empty is empty */
		return false;
	exchange_seq(&d->bottom, bottom); /* DEQUE-5 (pairs with DEQUE-3) */
	top = load_seq(&d->top);          /* DEQUE-7 (pairs with DEQUE-4) */
	if (deque_distance(top, bottom) > 0) {
		*ret_task = slot_read(deque_slot(d, bottom));
		return true;
	}
	if (top == bottom) { /* the last one: whoever moves top has it */
		*ret_task = slot_read(deque_slot(d, bottom));
		won = cas_release(&d->top, &top, top + 1); /* DEQUE-8 (pairs with DEQUE-9) */
	}
	store_relaxed(&d->bottom, bottom + 1);
	return won;
}

/* Owner thread only. What the next task is about comes into the cache meanwhile, from so many bytes on. */
static inline void deque_look_ahead(struct deque *d, size_t from)
{
	const void *about = load_hint(&deque_slot(d, load_hint(&d->bottom) - 1)->arg);

	fetch_ahead((const void *)((uintptr_t)about + from));
}

/* Owner thread only. Up to max of the oldest tasks, in order, by one claim; how many. Sound for the owner alone: nobody else
 * lowers bottom, so what lies between top and bottom stays there until top moves.                                         */
static inline uint64_t deque_take_oldest(struct deque *d, struct hive_task *ret_tasks, uint64_t max)
{
	uint64_t top = load_relaxed(&d->top), n; /* an old one fails below */
	int64_t size;

	do {
		size = deque_distance(top, load_relaxed(&d->bottom));
		n = size <= 0 ? 0 : (uint64_t)size < max ? (uint64_t)size : max;
		for (uint64_t i = 0; i < n; i++)
			ret_tasks[i] = slot_read(deque_slot(d, top + i));
	} while (n > 0 && !cas_release(&d->top, &top, top + n)); /* DEQUE-8 (pairs with DEQUE-9) */
	return n;
}

/* Any thread. The oldest task; false when empty or when somebody else was faster. */
static inline bool deque_steal(struct deque *d, struct hive_task *ret_task)
{
	uint64_t top = load_seq(&d->top);       /* DEQUE-9 (pairs with DEQUE-8) */
	uint64_t bottom = load_seq(&d->bottom); /* DEQUE-3 (pairs with DEQUE-2 and DEQUE-5) */
	struct hive_task task;

	if (deque_distance(top, bottom) <= 0)
		return false;
	task = slot_read(deque_slot(d, top)); /* before the claim: afterwards the slot is the owner's */
	if (!cas_seq(&d->top, &top, top + 1)) /* DEQUE-4 (pairs with DEQUE-1 and DEQUE-7) */
		return false;
	*ret_task = task;
	return true;
}
#endif
