/* SPDX-License-Identifier: MIT */
#pragma once
/* One lane of a pool: a ring that one thread writes and any number of takers empty in batches, with a list behind it for what
 * does not fit. First in, first out: while the list holds something, new tasks go behind it, and it is taken from when the
 * ring is empty.
 *
 *   L1  The ring and tail are written by the lane's writer alone; others only set the closed bit of tail. head only grows, by
 *       compare-and-swap. The list changes only under the lock.
 *   L2  A slot is overwritten only after tail - head < capacity was seen.
 *   L3  Everything in the ring is older than everything in the list.
 *
 * Who is the writer is the pool's business: a thread that owns the lane, or whoever holds the lane's lock (pool.h).
 *
 * A taker copies first and claims afterwards (see slot.h). A post moves tail by a seq_cst compare-and-swap, because the poster
 * looks for sleepers next (see idle.h), and because it must fail when the lane was closed meanwhile: a closed lane accepts
 * nothing, not even from a poster who looked a moment before. Moving tail publishes the slots and the ring itself.       */
#include "base/fault.h"
#include "base/lock.h"
#include "queue/chunks.h"
#include "queue/slot.h"

#if !defined(LANE_CAPACITY)
#define LANE_CAPACITY 4096 /* tasks, power of two; model checkers use 2 */
#endif
#if !defined(LANE_START)
#define LANE_START 0 /* where the indices begin; tests start near the wrap */
#endif

/* Indices have 63 bits; the highest bit of tail says closed. */
#define LANE_CLOSED ((uint64_t)1 << 63)
#define LANE_INDEX(x) ((x) & ~LANE_CLOSED)

struct lane {
	alignas(CACHE_LINE) ATOMIC(uint64_t) tail; /* S writer; anyone sets LANE_CLOSED */
	ATOMIC(struct slot *) ring;                /* S writer  made at first use */
	ATOMIC(uint64_t) accepted;                 /* S writer  tasks that came in through a door */
	ATOMIC(uint64_t) head_seen; /* S writer  an old head: looked at anew only when the ring seems full */
	ATOMIC(uint64_t) owner;     /* A  thread that writes it, see pool.h */
	alignas(CACHE_LINE) struct lock lock;
	bool closed;                               /* L lock  no fresh task may enter the list */
	struct chunks list;                        /* L lock */
	ATOMIC(uint64_t) listed;                   /* L lock for writers  list.count, for those who only look */
	alignas(CACHE_LINE) ATOMIC(uint64_t) head; /* A */
};

static inline void lane_init(struct lane *l)
{
	lock_init(&l->lock);
	l->closed = false;
	l->list.first = l->list.last = NULL;
	l->list.count = 0;
	store_relaxed(&l->ring, (struct slot *)NULL);
	store_relaxed(&l->accepted, (uint64_t)0);
	store_relaxed(&l->owner, (uint64_t)0);
	store_relaxed(&l->head_seen, LANE_INDEX((uint64_t)LANE_START));
	store_relaxed(&l->tail, LANE_INDEX((uint64_t)LANE_START));
	store_relaxed(&l->listed, (uint64_t)0);
	store_relaxed(&l->head, LANE_INDEX((uint64_t)LANE_START));
}

/* How far `to` is ahead of `from`, across the wrap of 63 bits. */
static inline uint64_t lane_distance(uint64_t from, uint64_t to)
{
	return LANE_INDEX(to - from);
}

/* Any thread. Approximate while others work on it. */
static inline uint64_t lane_length(struct lane *l)
{
	uint64_t listed = load_seq(&l->listed); /* LANE-9 (pairs with LANE-3) */
	uint64_t head = load_acquire(&l->head); /* LANE-7 (pairs with LANE-5): tail must not be older */

	return listed + lane_distance(head, load_seq(&l->tail)); /* LANE-1 (pairs with LANE-2) */
}

/* The writer. 0 or -ENOMEM. */
static inline int lane_make_ring(struct lane *l, const struct memory *memory)
{
	struct slot *ring = load_relaxed(&l->ring);

	if (!ring) {
		ring = (struct slot *)hive__memory_new(memory, LANE_CAPACITY * sizeof(struct slot));
		store_relaxed(&l->ring, ring); /* tail publishes it */
	}
	return ring ? 0 : -ENOMEM;
}

/* The writer. Is there room for n in the ring? None while the list holds something. */
static inline bool lane_has_room(struct lane *l, size_t n)
{
	uint64_t tail = load_relaxed(&l->tail), head;

	if (load_relaxed(&l->listed) > 0 || !load_relaxed(&l->ring) || HIVE_FAULT("lane full"))
		return false;
	if (LANE_CAPACITY - lane_distance(load_relaxed(&l->head_seen), tail) >= n)
		return true;
	head = load_acquire(&l->head); /* LANE-4 (pairs with LANE-5) */
	store_relaxed(&l->head_seen, head);
	return LANE_CAPACITY - lane_distance(head, tail) >= n;
}

/* The writer, with room for them. False: the lane was closed, nothing was put. */
static inline bool lane_write(struct lane *l, const struct hive_task *tasks, uint64_t n, bool fresh)
{
	struct slot *ring = load_relaxed(&l->ring);
	uint64_t tail = load_relaxed(&l->tail);

	for (uint64_t i = 0; i < n; i++)
		slot_write(&ring[(tail + i) & (LANE_CAPACITY - 1)], tasks[i]);
	/* The takers have the lines that come next: fetch them in time, and for ourselves alone. Else the claim below waits for each of them. */
	prefetch_alone(&ring[(tail + n + 16) & (LANE_CAPACITY - 1)]);
	do {
		if (fresh && tail & LANE_CLOSED)
			return false;
		/* LANE-2 (pairs with LANE-1, LANE-6, LANE-8 and POOL-6) */
	} while (!cas_seq(&l->tail, &tail, (tail & LANE_CLOSED) | LANE_INDEX(tail + n)));
	return true;
}

/* The writer. Behind what is in the ring and in the list. 0, -ENOMEM, -ESHUTDOWN. */
static inline int lane_append(struct lane *l, const struct hive_task *tasks, size_t n, bool fresh,
                              struct chunk_store *store)
{
	struct chunks batch = { NULL, NULL, 0 };
	bool large = n > CHUNK_TASKS; /* then it is laid out beforehand, at the price of a piece that is not full */
	int r = large ? chunks_fill(&batch, tasks, n, store) : 0;

	if (r < 0)
		return r;
	lock_acquire(&l->lock);
	if (l->closed && fresh)
		r = -ESHUTDOWN;
	else if (large)
		chunks_join(&l->list, &batch);
	else
		r = chunks_append(&l->list, tasks, n, store);
	/* Who looks before sleeping sees the list in any case if there was one before; only its first tasks need the order. */
	if (r == 0 && l->list.count == n)
		exchange_seq(&l->listed, (uint64_t)n); /* LANE-3 (pairs with LANE-9) */
	else if (r == 0)
		store_relaxed(&l->listed, (uint64_t)l->list.count);
	lock_release(&l->lock);
	if (r < 0 && large)
		chunks_free(batch.first, store);
	return r;
}

/* The writer. There was no room for them, or no ring yet. Out of line: in the doors only what nearly every post does shall stand. */
static __attribute__((noinline, unused)) int lane_give_slowly(struct lane *l, const struct hive_task *tasks, size_t n,
                                                              bool fresh, struct chunk_store *store)
{
	int r;

	if (load_relaxed(&l->ring))
		return lane_append(l, tasks, n, fresh, store);
	r = lane_make_ring(l, &store->memory);
	if (r < 0)
		return r;
	if (!lane_has_room(l, n))
		return lane_append(l, tasks, n, fresh, store);
	return lane_write(l, tasks, n, fresh) ? 0 : -ESHUTDOWN;
}

/* The writer. All or none: 0, -ENOMEM, -ESHUTDOWN. `fresh`: they come through a door, not from another queue. A batch that
 * does not fit into the ring goes to the list as a whole.                                                               */
static inline __attribute__((always_inline)) int lane_give(struct lane *l, const struct hive_task *tasks, size_t n,
                                                           bool fresh, struct chunk_store *store)
{
	int r = !lane_has_room(l, n)              ? lane_give_slowly(l, tasks, n, fresh, store)
	        : !lane_write(l, tasks, n, fresh) ? -ESHUTDOWN
	                                          : 0;

	if (r == 0 && fresh)
		bump(&l->accepted, n);
	return r;
}

/* Any thread. From the list, when the ring is empty. Under the lock the ring cannot fill up behind our back: its writer uses
 * the list while there is one; and the lock shows what he put into the ring before.                                      */
static inline size_t lane_take_listed(struct lane *l, struct hive_task *ret_tasks, size_t max,
                                      struct chunk_store *store)
{
	struct chunk *empty = NULL;
	size_t n = 0;
	uint64_t head;

	lock_acquire(&l->lock);
	head = load_relaxed(&l->head);
	if (lane_distance(head, load_relaxed(&l->tail)) == 0)
		while (n < max && l->list.count > 0)
			ret_tasks[n++] = chunks_take(&l->list, &empty);
	if (n > 0)
		store_relaxed(&l->listed, (uint64_t)l->list.count);
	lock_release(&l->lock);
	chunks_free(empty, store);
	return n;
}

/* Any thread. Up to max of the oldest tasks; how many there were. None is no proof of emptiness: lane_length() is. */
static inline size_t lane_take(struct lane *l, struct hive_task *ret_tasks, size_t max, struct chunk_store *store)
{
	uint64_t head = load_relaxed(&l->head), listed, n;
	struct slot *ring;

	for (;;) {
		listed = load_relaxed(&l->listed);
		n = lane_distance(head, load_acquire(&l->tail)); /* LANE-6 (pairs with LANE-2) */
		/* A stale head: others took, and the writer went on. Or a stale tail, behind head: not with the next head. */
		if (n > LANE_CAPACITY) {
			head = load_acquire(&l->head); /* LANE-7 (pairs with LANE-5) */
			continue;
		}
		if (n == 0) {
			size_t taken = listed ? lane_take_listed(l, ret_tasks, max, store) : 0;

			if (taken > 0 || listed == 0)
				return taken;
			head = load_relaxed(&l->head); /* the ring was in use again */
			continue;
		}
		if (n > max)
			n = max;
		ring = load_relaxed(&l->ring);
		for (uint64_t i = 0; i < n; i++)
			ret_tasks[i] = slot_read(&ring[(head + i) & (LANE_CAPACITY - 1)]);
		if (cas_release(&l->head, &head, LANE_INDEX(head + n))) /* LANE-5 (pairs with LANE-4 and LANE-7) */
			return (size_t)n;
	}
}

/* Any thread. Nothing fresh comes in any more; what is inside can be taken, and moved about. Whoever is told of it by a
 * release afterwards (the state of the hive) sees all that was accepted, and what its posters did before.             */
static inline void lane_close(struct lane *l)
{
	or_acquire(&l->tail, LANE_CLOSED); /* LANE-8 (pairs with LANE-2) */
	lock_acquire(&l->lock);
	l->closed = true;
	lock_release(&l->lock);
}
