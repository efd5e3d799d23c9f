/* SPDX-License-Identifier: MIT */
#pragma once
/* The compute pool: one pool for each priority, and whose turn it is.
 *
 *   V1  While several levels have something, their tasks are taken in the order of TUNE_LEVEL_TURNS, round after round, by all workers
 *       together: there is one count of turns for the hive. So a level that has something is passed over for less than a round, however
 *       many workers there are, and however long what they took keeps them.
 *   V2  The turns of a level that has nothing are left out: the others share them as they share the rest, and nobody waits.
 *   V3  While one level alone has something nobody counts: a program that uses one level pays for two looks at the others.
 *
 * Which levels have something is asked of the pools' hints (queue/pool.h, P1): a taker that came a moment too early may leave out the turn
 * of a level once. Whether all are empty is asked of the lanes. With each round the look at the lanes of a level begins one lane further, so
 * that each lane has its turn too.                                                                                                      */
#include "queue/pool.h"
#include "sched/tune.h"

#include <rophive/task.h>

enum {
	LEVELS = HIVE_PRIORITY_LOW + 1,
	LEVEL_TURNS = sizeof TUNE_LEVEL_TURNS - 1, /* in a round */
	LEVEL_TURNS_ALL = LEVEL_TURNS *
	                  POOL_LANES /* until they begin anew, so that no lane is left out when the count wraps */
};

struct levels {
	struct pool pools[LEVELS];                 /* by enum hive_priority */
	alignas(CACHE_LINE) ATOMIC(uint32_t) turn; /* A  the next one, below LEVEL_TURNS_ALL */
};

/* The levels share what their lists are made of: it is one backlog, and one reserve. Their rings are made when they are first used. */
static inline void levels_init(struct levels *l, const struct memory *memory, size_t keep_chunks)
{
	store_relaxed(&l->turn, 0u);
	for (int i = 0; i < LEVELS; i++) {
		pool_init(&l->pools[i], memory, keep_chunks);
		l->pools[i].store = &l->pools[0].own;
	}
}

/* Before anybody uses it. Afterwards up to `tasks` waiting tasks need no memory, whatever their levels. */
static inline int levels_reserve(struct levels *l, size_t tasks)
{
	int r = chunk_store_reserve(&l->pools[0].own, pool_chunks_for(tasks, LEVELS));

	for (int i = 0; r == 0 && i < LEVELS; i++)
		r = pool_make_rings(&l->pools[i]);
	return r;
}

/* After the last user; what is still inside is forgotten. The first last: its store is that of all. */
static inline void levels_destroy(struct levels *l)
{
	for (int i = LEVELS; i-- > 0;)
		pool_destroy(&l->pools[i]);
}

/* Any thread. All or none: 0, -ENOMEM, -ESHUTDOWN; as pool_give_many(). */
static inline int levels_give_many(struct levels *l, enum hive_priority level, uint64_t poster,
                                   const struct hive_task *tasks, size_t n, bool fresh)
{
	return pool_give_many(&l->pools[level], poster, tasks, n, fresh);
}

/* levels.c: what levels_take() does when there may be something beside the level that all use. */
bool hive__levels_take_in_turn(struct levels *l, uint32_t start, struct hive_task *ret_task,
                               enum hive_priority *ret_level);

/* Any thread. One task; `start` as in pool_take_many(). False is no proof of emptiness: levels_are_empty() is. */
static inline bool levels_take(struct levels *l, uint32_t start, struct hive_task *ret_task,
                               enum hive_priority *ret_level)
{
	*ret_level = HIVE_PRIORITY_NORMAL;
	if (pool_looks_empty(&l->pools[HIVE_PRIORITY_HIGH]) && pool_looks_empty(&l->pools[HIVE_PRIORITY_LOW]))
		return pool_take_many(&l->pools[HIVE_PRIORITY_NORMAL], start, ret_task, 1) > 0;
	return hive__levels_take_in_turn(l, start, ret_task, ret_level);
}

/* Any thread. Cheap, and may be wrong for a moment either way. */
static inline bool levels_look_empty(struct levels *l)
{
	for (int i = 0; i < LEVELS; i++)
		if (!pool_looks_empty(&l->pools[i]))
			return false;
	return true;
}

/* Any thread. As pool_is_empty(): sees everything whose poster has already looked for sleepers. */
static inline bool levels_are_empty(struct levels *l)
{
	for (int i = 0; i < LEVELS; i++)
		if (!pool_is_empty(&l->pools[i]))
			return false;
	return true;
}

/* Any thread. Approximate while others work on it. */
static inline uint64_t levels_length(struct levels *l)
{
	uint64_t length = 0;

	for (int i = 0; i < LEVELS; i++)
		length += pool_length(&l->pools[i]);
	return length;
}

/* Any thread. Tasks that ever came in through a door. */
static inline uint64_t levels_accepted(struct levels *l)
{
	uint64_t accepted = 0;

	for (int i = 0; i < LEVELS; i++)
		accepted += pool_accepted(&l->pools[i]);
	return accepted;
}

/* Any thread. Nothing fresh comes in any more. */
static inline void levels_close(struct levels *l)
{
	for (int i = 0; i < LEVELS; i++)
		pool_close(&l->pools[i]);
}
