/* SPDX-License-Identifier: MIT */
#pragma once
/* Lanes from worker to worker: a ring for each pair, with one who writes and one who reads, and a word that says which lanes were written
 * to. Letters lie in the lane itself: the reader links them into whatever he likes, and says so when a cell is free again, in any order.
 *
 *   M1  tail is moved by the sender alone; closing, by the reader, sets its highest bit. What was sent before that is found, and nothing is
 *       sent afterwards, not even by who looked a moment before: the move is a compare-and-swap.
 *   M2  A cell is written only when it has the turn of the letter: who had the one before has freed it.
 *   M3  Whoever has sent a letter sees the lane's bit, or sets it; the reader clears the bit, then reads tail. Both by seq_cst: one sees the other.
 *   M4  First in, first out, also for letters that found no room and went by another way, the inbox: the sender counts them (`fell`), the
 *       reader those that arrived (`returned`), and while the two differ nothing enters the lane. The reader looks at the inbox first and
 *       takes from the lanes before what he found in the inbox, so what is older comes first.
 *
 * A lane is put into the table of its reader by one compare-and-swap. A closed table takes none; one that was closed is opened for the next
 * owner, and its lanes with it: they belong to places, not to lives.                                                         */
#include <errno.h>

#include "base/atomic.h"
#include "base/fault.h"

#if !defined(MESH_LANES)
#define MESH_LANES 64 /* that a reader has at most: the bits of a word */
#endif
#if !defined(MESH_PATIENCE)
#define MESH_PATIENCE 8 /* letters more by the other way, before its sender asks again whether all have arrived */
#endif
#if !defined(MESH_START)
#define MESH_START 0 /* where the indices begin; tests start near the wrap */
#endif

/* Indices have 63 bits; the highest bit of tail says closed. */
#define MESH_CLOSED ((uint64_t)1 << 63)
#define MESH_INDEX(x) ((x) & ~MESH_CLOSED)

struct mesh_cell {             /* part of each letter */
	ATOMIC(uint64_t) turn; /* A  number of the letter for which it is free, or which it holds */
};

/* The sender. Is it free for the letter with this number? */
static inline bool mesh_cell_is_free(struct mesh_cell *cell, uint64_t number)
{
	return load_acquire(&cell->turn) == number; /* MESH-5 (pairs with MESH-6) */
}

/* Whoever has the letter that was taken from it, when he has no need of the cell any more. */
static inline void mesh_free(struct mesh_cell *cell, uint64_t capacity)
{
	/* MESH-6 (pairs with MESH-5) */
	store_release(&cell->turn, MESH_INDEX(load_relaxed(&cell->turn) + capacity));
}

/* The reader. It has arrived, and stands before all that will be taken from the lane. */
static inline void mesh_return(ATOMIC(uint64_t) *returned)
{
	add_release(returned, (uint64_t)1); /* MESH-8 (pairs with MESH-7) */
}

/* The sender. How many have arrived that he sent on the other way. */
static inline uint64_t mesh_returned(ATOMIC(uint64_t) *returned)
{
	return load_acquire(returned); /* MESH-7 (pairs with MESH-8) */
}

#if defined(HIVE_LOCKED_QUEUES)
#include "queue/mesh_locked.h"
#else

struct mesh_lane {
	char *cells;                               /* I  the first one; each is `stride` bytes after the one before */
	size_t stride;                             /* I */
	uint64_t capacity;                         /* I  a power of two */
	uint32_t number;                           /* I  its bit */
	alignas(CACHE_LINE) ATOMIC(uint64_t) tail; /* S sender; the reader sets MESH_CLOSED */
	uint64_t fell, returned_seen;              /* O sender  letters that took the other way; an old `returned` */
	uint64_t ask_at;                           /* O sender  from how many on `returned` is looked at again */
	alignas(CACHE_LINE) ATOMIC(uint64_t) head; /* S reader */
	ATOMIC(uint64_t) returned;                 /* A  of those that took the other way: have arrived */
};

static inline struct mesh_cell *mesh_cell(struct mesh_lane *l, uint64_t index)
{
	return (struct mesh_cell *)(void *)(l->cells + (index & (l->capacity - 1)) * l->stride);
}

/* Before anybody uses it. */
static inline void mesh_lane_init(struct mesh_lane *l, void *cells, size_t stride, uint64_t capacity)
{
	uint64_t start = MESH_INDEX((uint64_t)MESH_START);

	l->cells = (char *)cells;
	l->stride = stride;
	l->capacity = capacity;
	l->number = 0;
	l->fell = l->returned_seen = l->ask_at = 0;
	store_relaxed(&l->tail, start);
	store_relaxed(&l->head, start);
	store_relaxed(&l->returned, (uint64_t)0);
	for (uint64_t i = 0; i < capacity; i++)
		store_relaxed(&mesh_cell(l, start + i)->turn, MESH_INDEX(start + i));
}

/* The sender. All that he sent on the other way has arrived. In a flood the reader counts each letter, so he does not look too often. */
static inline bool mesh_is_settled(struct mesh_lane *l)
{
	if (l->returned_seen != l->fell && l->fell >= l->ask_at) {
		l->returned_seen = mesh_returned(&l->returned);
		l->ask_at = l->fell + MESH_PATIENCE;
	}
	return l->returned_seen == l->fell;
}

/* The sender. The cell for the next letter, to be filled in; NULL: full, or closed, or an earlier letter is still on the other way. */
static inline struct mesh_cell *mesh_reserve(struct mesh_lane *l)
{
	uint64_t tail = load_relaxed(&l->tail);
	struct mesh_cell *cell = mesh_cell(l, tail);

	if ((tail & MESH_CLOSED) || !mesh_is_settled(l))
		return NULL;
	if (!mesh_cell_is_free(cell, tail) || HIVE_FAULT("mesh lane full"))
		return NULL;
	return cell;
}

/* The sender. The letter in the reserved cell is sent; false: closed meanwhile, and it is not. */
static inline bool mesh_commit(struct mesh_lane *l)
{
	uint64_t tail = load_relaxed(&l->tail);

	if (tail & MESH_CLOSED)
		return false;
	return cas_seq(&l->tail, &tail, MESH_INDEX(tail + 1)); /* MESH-1 (pairs with MESH-2) */
}

/* The reader. How many letters there are now; those can be taken. */
static inline uint64_t mesh_waiting(struct mesh_lane *l)
{
	uint64_t tail = load_seq(&l->tail); /* MESH-2 (pairs with MESH-1) */

	return MESH_INDEX(tail - load_relaxed(&l->head));
}

/* The reader, who knows that there is one. The oldest letter. */
static inline struct mesh_cell *mesh_take(struct mesh_lane *l)
{
	uint64_t head = load_relaxed(&l->head);

	store_relaxed(&l->head, MESH_INDEX(head + 1));
	return mesh_cell(l, head);
}

/* The reader. Whether there is something left is asked afterwards. */
static inline void mesh_lane_close(struct mesh_lane *l)
{
	or_relaxed(&l->tail, MESH_CLOSED);
}

static inline void mesh_lane_open(struct mesh_lane *l)
{
	and_relaxed(&l->tail, ~MESH_CLOSED);
}
#endif

/* Any thread. For dumps. */
static inline uint64_t mesh_length(struct mesh_lane *l)
{
	uint64_t head = load_relaxed(&l->head), length = MESH_INDEX(load_relaxed(&l->tail) - head);

	return length <= l->capacity ? length : 0; /* both moved meanwhile */
}

/* The sender. A letter has been sent on the other way. */
static inline void mesh_fell(struct mesh_lane *l)
{
	l->fell++;
}

/* All lanes to one reader. */
struct mesh {
	alignas(CACHE_LINE) ATOMIC(uint64_t) written;                     /* A  bit n: lane n may hold something */
	alignas(CACHE_LINE) ATOMIC(struct mesh_lane *) lanes[MESH_LANES]; /* A  NULL: none yet; MESH_SHUT */
};

#define MESH_SHUT ((struct mesh_lane *)1) /* there is none, and there shall be none until it is opened */

static inline void mesh_init(struct mesh *m)
{
	store_relaxed(&m->written, (uint64_t)0);
	for (uint32_t n = 0; n < MESH_LANES; n++)
		store_relaxed(&m->lanes[n], (struct mesh_lane *)NULL);
}

/* Any thread. Lane n; NULL: there is none. */
static inline struct mesh_lane *mesh_lane(struct mesh *m, uint32_t n)
{
	struct mesh_lane *lane = load_acquire(&m->lanes[n]); /* MESH-9 (pairs with MESH-10) */

	return lane == MESH_SHUT ? NULL : lane;
}

/* A sender, for his lane to this reader. 0; -ENOSPC: the table is full; -ESHUTDOWN: it is closed. */
static inline int mesh_join(struct mesh *m, struct mesh_lane *lane)
{
	bool shut = false;

	for (uint32_t n = 0; n < MESH_LANES; n++) {
		struct mesh_lane *there = NULL;

		lane->number = n;
		if (load_relaxed(&m->lanes[n]) == NULL &&
		    cas_release(&m->lanes[n], &there, lane)) /* MESH-10 (pairs with MESH-9) */
			return 0;
		shut = shut || load_relaxed(&m->lanes[n]) == MESH_SHUT;
	}
	return shut ? -ESHUTDOWN : -ENOSPC;
}

/* The sender, after mesh_commit() and before he looks whether the reader sleeps. */
static inline void mesh_mark(struct mesh *m, const struct mesh_lane *lane)
{
	uint64_t bit = (uint64_t)1 << lane->number;

	if (!(load_seq(&m->written) & bit)) /* MESH-3 (pairs with MESH-4) */
		or_seq(&m->written, bit);   /* MESH-3 (pairs with MESH-4) */
}

/* Any thread. Sees every letter whose sender has already looked whether the reader sleeps. */
static inline bool mesh_is_empty(struct mesh *m)
{
	return load_seq(&m->written) == 0; /* MESH-4 (pairs with MESH-3) */
}

/* The reader. Which lanes to look at, each once for each time it stands here. */
static inline uint64_t mesh_written(struct mesh *m)
{
	if (load_relaxed(&m->written) == 0)
		return 0;
	return exchange_seq(&m->written, (uint64_t)0); /* MESH-4 (pairs with MESH-3) */
}

/* The reader. Nothing is sent any more; what was can be taken. */
static inline void mesh_close(struct mesh *m)
{
	for (uint32_t n = 0; n < MESH_LANES; n++) {
		struct mesh_lane *there = NULL;

		if (!cas_relaxed(&m->lanes[n], &there, MESH_SHUT) && there != MESH_SHUT)
			mesh_lane_close(mesh_lane(m, n));
	}
}

/* The next reader, after a close, before he can be found. */
static inline void mesh_open(struct mesh *m)
{
	for (uint32_t n = 0; n < MESH_LANES; n++) {
		struct mesh_lane *lane = load_relaxed(&m->lanes[n]);

		if (lane == MESH_SHUT)
			store_relaxed(&m->lanes[n], (struct mesh_lane *)NULL);
		else if (lane)
			mesh_lane_open(lane);
	}
}
