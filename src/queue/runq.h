/* SPDX-License-Identifier: MIT */
#pragma once
/* The other local queue: a bounded ring, oldest first for everybody, of which a thief takes half at once.
 *
 *       steal        local              tail
 *   ······|  claimed   |     waiting      |········      steal == local: no theft is under way
 *
 * One word holds steal (upper half) and local, so that one compare-and-swap decides between the owner's pop and a claim.
 * A theft has three steps: claim (local moves past the loot, steal stays), copy, finish (steal catches up with local,
 * wherever the owner has moved that meanwhile).
 *
 *   Q3  Only the owner moves tail and writes slots. local only grows, by compare-and-swap; steal never passes it.
 *   Q4  Who moved local past a slot has its task, nobody else. Tasks between steal and local are the thief's.
 *   Q5  A slot is overwritten only after tail - steal < capacity was seen: never one that is being copied.
 *   Q6  One thief at a time; a second one goes away. The owner pushes and pops whatever thieves do.
 *   Q7  Full means refuse: it never grows, blocks or overwrites.
 *
 * A head is never seen without the tail that it was moved under: the owner's moves and a thief's finish release, a thief's
 * look acquires, and reads tail afterwards. The other way round the distance could be negative, and a claim of nothing
 * would succeed. With an old head it is too large; then the claim fails. Moving tail is a seq_cst exchange, because the
 * caller looks for sleepers next (see idle.h).
 *
 * Indices have 32 bits. Were a thief to stop between its look and its claim, while exactly 2^32 tasks go through the ring,
 * its claim would succeed with an old tail. 16 bits were too few elsewhere; at a hundred million tasks a second these are
 * forty seconds in the middle of a dozen instructions, and then one task in four billion would have to be hit.             */
#include "base/fault.h"
#include "queue/slot.h"

#if defined(HIVE_LOCKED_QUEUES)
#include "queue/runq_locked.h"
#else

struct runq {
	struct slot *slots;                        /* I */
	uint32_t capacity;                         /* I  power of two */
	uint32_t steal_seen;                       /* O  an old steal: looked at anew only when the ring seems full */
	alignas(CACHE_LINE) ATOMIC(uint32_t) tail; /* S  next free slot */
	alignas(CACHE_LINE) ATOMIC(uint64_t) head; /* A  steal << 32 | local */
};

static inline uint64_t runq_pack(uint32_t steal, uint32_t local)
{
	return (uint64_t)steal << 32 | local;
}

static inline uint32_t runq_steal_of(uint64_t head)
{
	return (uint32_t)(head >> 32);
}

static inline uint32_t runq_local_of(uint64_t head)
{
	return (uint32_t)head;
}

/* The index n places on. With runq_distance() all there is to know about the wrap. */
static inline uint32_t runq_after(uint32_t index, uint32_t n)
{
	return index + n;
}

static inline uint32_t runq_distance(uint32_t from, uint32_t to)
{
	return to - from;
}

static inline struct slot *runq_slot(struct runq *q, uint32_t index)
{
	return &q->slots[index & (q->capacity - 1)];
}

/* Before anybody uses it. `start` is where the indices begin: tests start near the wrap. */
static inline void runq_init(struct runq *q, struct slot *slots, uint32_t capacity, uint32_t start)
{
	q->slots = slots;
	q->capacity = capacity;
	q->steal_seen = start;
	store_relaxed(&q->tail, start);
	store_relaxed(&q->head, runq_pack(start, start));
}

/* Any thread. Tasks that nobody has claimed. Approximate while others work on it. */
static inline uint32_t runq_size(struct runq *q)
{
	uint64_t head = load_relaxed(&q->head); /* an old one: too large; one newer than tail: those tasks are taken */
	uint32_t size = runq_distance(runq_local_of(head), load_seq(&q->tail)); /* RUNQ-6 (pairs with RUNQ-2) */

	return (int32_t)size < 0 ? 0 : size > q->capacity ? q->capacity : size;
}

/* Owner thread only. May be too small when a thief is at work, never too large. */
static inline uint32_t runq_room(struct runq *q)
{
	q->steal_seen = runq_steal_of(load_acquire(&q->head)); /* RUNQ-1 (pairs with RUNQ-4) */
	if (HIVE_FAULT("local queue full"))
		return 0;
	return q->capacity - runq_distance(q->steal_seen, load_relaxed(&q->tail));
}

/* Owner thread only. All tasks of an array; the caller saw room for them. */
static inline void runq_push_many(struct runq *q, const struct hive_task *tasks, uint32_t n)
{
	uint32_t tail = load_relaxed(&q->tail);

	for (uint32_t i = 0; i < n; i++)
		slot_write(runq_slot(q, runq_after(tail, i)), tasks[i]);
	exchange_seq(&q->tail, runq_after(tail, n)); /* RUNQ-2 (pairs with RUNQ-3 and RUNQ-6) */
}

/* Owner thread only. False when full. */
static inline bool runq_push(struct runq *q, struct hive_task task)
{
	if (runq_distance(q->steal_seen, load_relaxed(&q->tail)) >= q->capacity && runq_room(q) < 1)
		return false;
	runq_push_many(q, &task, 1);
	return true;
}

/* Owner thread only. The oldest task that no thief has claimed; false when there is none. */
static inline bool runq_pop(struct runq *q, struct hive_task *ret_task)
{
	uint64_t head = load_relaxed(&q->head), next; /* an old one has a smaller local: what looks empty is empty */
	uint32_t tail = load_relaxed(&q->tail), local, after;

	do {
		local = runq_local_of(head);
		if (local == tail)
			return false;
		after = runq_after(local, 1);
		next = runq_pack(runq_steal_of(head) == local ? after : runq_steal_of(head), after);
	} while (!cas_release(&q->head, &head, next)); /* RUNQ-5 (pairs with RUNQ-7) */
	*ret_task = slot_read(runq_slot(q, local));
	return true;
}

/* Owner thread only. Up to max of the oldest tasks, in order, by one claim; how many. None while a thief is at work: its
 * slots would not become free, and the tasks could not be put back.                                                      */
static inline uint32_t runq_take_oldest(struct runq *q, struct hive_task *ret_tasks, uint32_t max)
{
	uint64_t head = load_relaxed(&q->head);
	uint32_t local, size, n;

	do {
		local = runq_local_of(head);
		size = runq_distance(local, load_relaxed(&q->tail));
		n = size < max ? size : max;
		if (n == 0 || runq_steal_of(head) != local)
			return 0;
	} while (!cas_release(&q->head, &head, runq_pack(runq_after(local, n), runq_after(local, n)))); /* RUNQ-5 */
	for (uint32_t i = 0; i < n; i++)
		ret_tasks[i] = slot_read(runq_slot(q, runq_after(local, i)));
	return n;
}

/* Any thread but the owner. First step of a theft: half of what waits, rounded up, and at most max. How many, and from where
 * on; 0: there is nothing, or another thief.                                                                             */
static inline uint32_t runq_claim(struct runq *q, uint32_t max, uint32_t *ret_from)
{
	uint64_t head;
	uint32_t local, size, n;

	do {
		head = load_acquire(&q->head); /* RUNQ-7 (pairs with RUNQ-4 and RUNQ-5) */
		local = runq_local_of(head);
		if (runq_steal_of(head) != local)
			return 0;
		size = runq_distance(local, load_acquire(&q->tail)); /* RUNQ-3 (pairs with RUNQ-2) */
		n = size - size / 2;
		if (n > max)
			n = max;
		if (n == 0)
			return 0;
	} while (!cas_relaxed(&q->head, &head, runq_pack(local, runq_after(local, n))));
	*ret_from = local;
	return n;
}

/* The thief, after it has copied: the slots are the owner's again. */
static inline void runq_finish(struct runq *q)
{
	uint64_t head = load_relaxed(&q->head);

	while (!cas_release(&q->head, &head, runq_pack(runq_local_of(head), runq_local_of(head))))
		; /* RUNQ-4 (pairs with RUNQ-1 and RUNQ-7): the owner popped meanwhile */
}

/* Owner of `mine`. Half of what waits in `victim`: the last one for running now, the others go behind the tail of the own ring
 * and become visible together. How many in all. A ring that is more than half full takes none; one that is empty, but has no room
 * since a thief copies from it, which may be kept from going on for long, the one that needs none.                         */
static inline uint32_t runq_steal(struct runq *victim, struct runq *mine, struct hive_task *ret_task)
{
	uint32_t room = runq_room(mine), tail = load_relaxed(&mine->tail), from, n;

	if (room < mine->capacity / 2) {
		if (runq_size(mine) > 0)
			return 0;
		room = 1;
	}
	n = runq_claim(victim, room, &from);
	if (n == 0)
		return 0;
	for (uint32_t i = 0; i + 1 < n; i++)
		slot_write(runq_slot(mine, runq_after(tail, i)), slot_read(runq_slot(victim, runq_after(from, i))));
	*ret_task = slot_read(runq_slot(victim, runq_after(from, n - 1)));
	runq_finish(victim);
	if (n > 1)
		exchange_seq(&mine->tail, runq_after(tail, n - 1)); /* RUNQ-2 */
	return n;
}

/* Any thread but the owner. Half of what waits, at most max, into an array, oldest first; how many. */
static inline uint32_t runq_steal_some(struct runq *q, struct hive_task *ret_tasks, uint32_t max)
{
	uint32_t from, n = runq_claim(q, max, &from);

	if (n == 0)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		ret_tasks[i] = slot_read(runq_slot(q, runq_after(from, i)));
	runq_finish(q);
	return n;
}
#endif
