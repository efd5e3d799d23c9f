/* SPDX-License-Identifier: MIT */
#pragma once
/* A tray: many put, many take, first in, first out, so many at most. No lock, and no memory after the beginning: full means refuse.
 *
 * Each cell has a turn, which says what it waits for: cell i is free for the put with number i, i + capacity, ..., and full for the
 * take with number i when its turn is i + 1. Who moves tail has the cell for his task; who moves head has the task.
 *
 *   Y1  A cell is written only by who moved tail past it, and read only by who moved head past it.
 *   Y2  Between moving tail and saying so in the cell a put is under way: the tray has a length, and nothing can be taken. Who
 *       relies on its being empty waits for that.
 *   Y3  A closed tray takes nothing in, not even from who looked a moment before: closing changes tail.                      */
#include <errno.h>

#include "base/atomic.h"
#include "queue/slot.h"

#if !defined(TRAY_START)
#define TRAY_START 0 /* where the indices begin; tests start near the wrap */
#endif

/* Indices have 63 bits; the highest bit of tail says closed. */
#define TRAY_CLOSED ((uint64_t)1 << 63)
#define TRAY_INDEX(x) ((x) & ~TRAY_CLOSED)

struct tray_cell {
	ATOMIC(uint64_t) turn;
	struct slot slot;
};

struct tray {
	struct tray_cell *cells;                   /* I */
	uint64_t capacity;                         /* I  a power of two */
	alignas(CACHE_LINE) ATOMIC(uint64_t) tail; /* A */
	alignas(CACHE_LINE) ATOMIC(uint64_t) head; /* A */
};

/* Before anybody uses it. */
static inline void tray_init(struct tray *t, struct tray_cell *cells, uint64_t capacity)
{
	uint64_t start = TRAY_INDEX((uint64_t)TRAY_START);

	t->cells = cells;
	t->capacity = capacity;
	store_relaxed(&t->tail, start);
	store_relaxed(&t->head, start);
	for (uint64_t i = 0; i < capacity; i++)
		store_relaxed(&cells[TRAY_INDEX(start + i) & (capacity - 1)].turn, TRAY_INDEX(start + i));
}

/* How far `to` is ahead of `from`, across the wrap of 63 bits. */
static inline uint64_t tray_distance(uint64_t from, uint64_t to)
{
	return TRAY_INDEX(to - from);
}

static inline struct tray_cell *tray_cell(struct tray *t, uint64_t index)
{
	return &t->cells[index & (t->capacity - 1)];
}

/* Any thread. Approximate while others work on it. Sees everything whose poster has already looked for sleepers. */
static inline uint64_t tray_length(struct tray *t)
{
	uint64_t head = load_acquire(&t->head); /* TRAY-5 (pairs with TRAY-4): tail must not be older */

	return tray_distance(head, load_seq(&t->tail)); /* TRAY-6 (pairs with TRAY-1) */
}

/* Any thread. 0; -ENOSPC: full; -ESHUTDOWN: closed. The move is seq_cst, because the poster looks for sleepers next (idle.h). */
static inline int tray_put(struct tray *t, struct hive_task task)
{
	uint64_t tail = load_relaxed(&t->tail);

	for (;;) {
		struct tray_cell *cell = tray_cell(t, tail);
		uint64_t turn;

		if (tail & TRAY_CLOSED)
			return -ESHUTDOWN;
		turn = load_acquire(&cell->turn); /* TRAY-2 (pairs with TRAY-7) */
		if (turn != tail) {
			uint64_t again = load_relaxed(&t->tail);

			if (again == tail)
				return -ENOSPC; /* the one of a round ago has not been taken, or is just being taken */
			tail = again;
		} else if (cas_seq(&t->tail, &tail, TRAY_INDEX(tail + 1))) { /* TRAY-1 (pairs with TRAY-6) */
			slot_write(&cell->slot, task);
			store_release(&cell->turn, TRAY_INDEX(tail + 1)); /* TRAY-3 (pairs with TRAY-8) */
			return 0;
		}
	}
}

/* Any thread. The oldest task; false: there is none, or its put is under way (Y2). */
static inline bool tray_take(struct tray *t, struct hive_task *ret_task)
{
	uint64_t head = load_relaxed(&t->head);

	for (;;) {
		struct tray_cell *cell = tray_cell(t, head);
		uint64_t turn = load_acquire(&cell->turn); /* TRAY-8 (pairs with TRAY-3) */

		if (turn != TRAY_INDEX(head + 1)) {
			uint64_t again = load_relaxed(&t->head);

			if (again == head)
				return false;
			head = again;
		} else if (cas_release(&t->head, &head, TRAY_INDEX(head + 1))) { /* TRAY-4 (pairs with TRAY-5) */
			*ret_task = slot_read(&cell->slot);
			store_release(&cell->turn, TRAY_INDEX(head + t->capacity)); /* TRAY-7 (pairs with TRAY-2) */
			return true;
		}
	}
}

/* Any thread. Nothing comes in any more; what is inside, or under way, can be taken. Whoever is told of it by a release afterwards sees
 * the length of all that was accepted.                                                                                    */
static inline void tray_close(struct tray *t)
{
	or_relaxed(&t->tail, TRAY_CLOSED);
}

/* After a close, when nobody relies on it any more. */
static inline void tray_open(struct tray *t)
{
	and_relaxed(&t->tail, ~TRAY_CLOSED);
}

/* Any thread. How many ever came in. */
static inline uint64_t tray_accepted(struct tray *t)
{
	return tray_distance((uint64_t)TRAY_START, load_relaxed(&t->tail));
}
