/* SPDX-License-Identifier: MIT */
#pragma once
/* The shared pool: many to many, without limit. A posting thread owns a lane, so that a post meets no other poster and needs no
 * lock; takers go round the lanes whose bit is set. First in, first out for each posting thread.
 *
 * Lane 0 is common: threads that find no lane of their own write it under its posters' lock. A thread looks for a lane by its
 * number, in a few places; a free one it claims for good. A lane whose thread has ended is found out by asking the system, now
 * and then, when lanes are wanting; the next thread goes on where the dead one stopped.
 *
 *   P1  ready is a hint for takers: which lanes may hold something. A bit can be missing for a moment, between a post and
 *       its poster's or; and while a taker, who found a lane empty, has cleared the bit and looks once more. So the question
 *       "is it empty" is put to the lanes themselves, and whoever finds a bit missing sets it.
 *   P2  A lane other than 0 is written by the thread whose number stands in it, and by nobody else while that thread lives.  */
#include "base/thread.h"
#include "queue/lane.h"

#if !defined(POOL_LANES)
#define POOL_LANES 16 /* power of two, at most 32 */
#endif
#if !defined(POOL_PROBES)
#define POOL_PROBES 4 /* lanes that a thread looks at */
#endif
#define POOL_COMMON 0u

struct pool {
	struct chunk_store *store; /* I  its own, or one that several pools share */
	struct chunk_store own;
	alignas(CACHE_LINE) ATOMIC(uint32_t) ready; /* A  bit i: lane i may hold something */
	ATOMIC(uint32_t) used;                      /* A  bit i: lane i was ever written; set before its first task */
	alignas(CACHE_LINE) struct lock common;     /* writers of lane 0 */
	uint32_t crowd;                             /* L common  posts by threads that found no lane */
	struct lane lanes[POOL_LANES];
};

static inline void pool_init(struct pool *p, const struct memory *memory, size_t keep_chunks)
{
	chunk_store_init(&p->own, memory, keep_chunks);
	p->store = &p->own;
	store_relaxed(&p->ready, 0u);
	store_relaxed(&p->used, 1u << POOL_COMMON);
	lock_init(&p->common);
	p->crowd = 0;
	for (int i = 0; i < POOL_LANES; i++)
		lane_init(&p->lanes[i]);
}

/* Before anybody uses it. */
static inline int pool_make_rings(struct pool *p)
{
	int r = 0;

	for (int i = 0; r == 0 && i < POOL_LANES; i++)
		r = lane_make_ring(&p->lanes[i], &p->store->memory);
	return r;
}

/* Pieces for so many waiting tasks, however they are spread over the lanes of so many pools. */
static inline size_t pool_chunks_for(size_t tasks, size_t pools)
{
	return 2 * (tasks / CHUNK_TASKS) + 2 * POOL_LANES * pools;
}

/* Before anybody uses it. Afterwards up to `tasks` waiting tasks need no memory. */
static inline int pool_reserve(struct pool *p, size_t tasks)
{
	int r = chunk_store_reserve(p->store, pool_chunks_for(tasks, 1));

	return r < 0 ? r : pool_make_rings(p);
}

/* After the last user; what is still inside is forgotten. */
static inline void pool_destroy(struct pool *p)
{
	for (int i = 0; i < POOL_LANES; i++) {
		struct hive_task task;

		while (lane_take(&p->lanes[i], &task, 1, p->store) > 0)
			;
		hive__memory_free(&p->store->memory, load_relaxed(&p->lanes[i].ring));
	}
	chunk_store_destroy(&p->own);
}

/* The n-th lane at which the thread with this number looks; never the common one. */
static inline uint32_t pool_place(uint64_t poster, uint32_t n)
{
	return 1 + ((uint32_t)poster + n) % (POOL_LANES - 1);
}

/* The lane that this thread owns or can claim, POOL_COMMON if there is none. Its first tasks may lie in the common lane: it stays
 * there until that is empty, so that they keep their order.                                                                   */
static inline uint32_t pool_claim_lane(struct pool *p, uint64_t poster)
{
	for (uint32_t n = 0; n < POOL_PROBES; n++)
		if (load_relaxed(&p->lanes[pool_place(poster, n)].owner) == poster)
			return pool_place(poster, n);
	for (uint32_t n = 0; n < POOL_PROBES && lane_length(&p->lanes[POOL_COMMON]) == 0; n++) {
		uint64_t nobody = 0;

		if (cas_relaxed(&p->lanes[pool_place(poster, n)].owner, &nobody, poster)) {
			or_seq(&p->used, 1u << pool_place(poster, n)); /* POOL-4 (pairs with POOL-5) */
			/* A read-modify-write sees the last value there is, also that of a writer who has died, and with it
			 * what he did before: POOL-6 (pairs with LANE-2). */
			or_acquire(&p->lanes[pool_place(poster, n)].tail, (uint64_t)0);
			return pool_place(poster, n);
		}
	}
	return POOL_COMMON;
}

/* Under the common lock. Frees the lanes of threads that have ended. */
static inline void pool_reclaim(struct pool *p, uint64_t poster)
{
	for (uint32_t n = 0; n < POOL_PROBES; n++) {
		struct lane *lane = &p->lanes[pool_place(poster, n)];
		uint64_t owner = load_relaxed(&lane->owner);

		if (owner != 0 && !hive__thread_lives(owner))
			cas_relaxed(&lane->owner, &owner, (uint64_t)0);
	}
}

static inline int pool_give_common(struct pool *p, uint64_t poster, const struct hive_task *tasks, size_t n, bool fresh)
{
	int r;

	lock_acquire(&p->common);
	if (p->crowd++ % 1024 == 0)
		pool_reclaim(p, poster);
	r = lane_give(&p->lanes[POOL_COMMON], tasks, n, fresh, p->store);
	lock_release(&p->common);
	return r;
}

/* The poster has no lane where it looks first. Out of line, as lane_give_slowly(). */
static __attribute__((noinline, unused)) int pool_give_elsewhere(struct pool *p, uint64_t poster,
                                                                 const struct hive_task *tasks, size_t n, bool fresh,
                                                                 uint32_t *ret_lane)
{
	uint32_t lane = *ret_lane = pool_claim_lane(p, poster);

	if (lane == POOL_COMMON)
		return pool_give_common(p, poster, tasks, n, fresh);
	return lane_give(&p->lanes[lane], tasks, n, fresh, p->store);
}

/* Any thread. All or none: 0, -ENOMEM, -ESHUTDOWN. `poster` is the caller's thread number, not 0. */
static inline int pool_give_many(struct pool *p, uint64_t poster, const struct hive_task *tasks, size_t n, bool fresh)
{
	uint32_t lane = pool_place(poster, 0);
	int r;

	if (load_relaxed(&p->lanes[lane].owner) == poster)
		r = lane_give(&p->lanes[lane], tasks, n, fresh, p->store);
	else
		r = pool_give_elsewhere(p, poster, tasks, n, fresh, &lane);
	if (r == 0 && !(load_seq(&p->ready) & (1u << lane))) /* POOL-1 (pairs with POOL-2) */
		or_relaxed(&p->ready, 1u << lane);
	return r;
}

static inline int pool_give(struct pool *p, uint64_t poster, struct hive_task task, bool fresh)
{
	return pool_give_many(p, poster, &task, 1, fresh);
}

/* The lanes of `ready`, beginning with `from`: moves its bits so that lane `from` is bit 0. */
static inline uint32_t pool_rotate(uint32_t ready, uint32_t from)
{
	uint64_t twice = (uint64_t)ready << POOL_LANES | ready;

	return (uint32_t)(twice >> from) & (uint32_t)(((uint64_t)1 << POOL_LANES) - 1);
}

/* Any thread. Up to max (at least 1) tasks of one lane, the first non-empty one from `start` on; how many there were. */
static inline size_t pool_take_many(struct pool *p, uint32_t start, struct hive_task *ret_tasks, size_t max)
{
	uint32_t from = start & (POOL_LANES - 1);
	uint32_t ready = pool_rotate(load_relaxed(&p->ready), from);

	while (ready) {
		uint32_t lane = ((uint32_t)__builtin_ctz(ready) + from) & (POOL_LANES - 1);
		size_t n = lane_take(&p->lanes[lane], ret_tasks, max, p->store);

		if (n > 0)
			return n;
		and_seq(&p->ready, ~(1u << lane)); /* POOL-2 (pairs with POOL-1) */
		if (lane_length(&p->lanes[lane]) > 0)
			or_relaxed(&p->ready, 1u << lane);
		else
			ready &= ready - 1;
	}
	return 0;
}

/* Any thread. Cheap, and may be wrong for a moment either way. */
static inline bool pool_looks_empty(struct pool *p)
{
	return load_relaxed(&p->ready) == 0;
}

/* Any thread. Sees everything whose poster has already looked for sleepers, and sees to it that takers find it. */
static inline bool pool_is_empty(struct pool *p)
{
	for (uint32_t used = load_seq(&p->used); used; used &= used - 1) { /* POOL-5 (pairs with POOL-4) */
		uint32_t lane = (uint32_t)__builtin_ctz(used);

		if (lane_length(&p->lanes[lane]) == 0)
			continue;
		if (!(load_relaxed(&p->ready) & (1u << lane)))
			or_relaxed(&p->ready, 1u << lane);
		return false;
	}
	return true;
}

/* Any thread. Approximate while others work on it. */
static inline uint64_t pool_length(struct pool *p)
{
	uint64_t length = 0;

	for (int i = 0; i < POOL_LANES; i++)
		length += lane_length(&p->lanes[i]);
	return length;
}

/* Any thread. Tasks that ever came in through a door. */
static inline uint64_t pool_accepted(struct pool *p)
{
	uint64_t accepted = 0;

	for (int i = 0; i < POOL_LANES; i++)
		accepted += load_relaxed(&p->lanes[i].accepted);
	return accepted;
}

/* Any thread. Nothing fresh comes in any more. */
static inline void pool_close(struct pool *p)
{
	for (int i = 0; i < POOL_LANES; i++)
		lane_close(&p->lanes[i]);
}
