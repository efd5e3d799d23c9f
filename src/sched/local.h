/* SPDX-License-Identifier: MIT */
#pragma once
/* The local queue of an IO worker, of one of two kinds for its whole life (option `order`):
 *
 *   newest first   the deque: the owner works at the new end, thieves take single tasks from the old one
 *   oldest first   the ring, of which a thief takes half by one claim, and before it the task that was posted last
 *
 * A worker may rob one of the other kind. Whoever uses the queue of a worker calls these, and need not know the kind.       */
#include "queue/deque.h"
#include "queue/newest.h"
#include "queue/runq.h"
#include "sched/tune.h"

struct local {
	bool oldest;        /* I  oldest first: ring and newest, else deque */
	struct slot *slots; /* I */
	union {
		struct deque deque;
		struct {
			struct runq ring;
			alignas(CACHE_LINE) struct newest newest;
		};
	};
};

/* Before anybody uses it. */
static inline void local_init(struct local *l, struct slot *slots, uint64_t capacity, bool oldest)
{
	l->oldest = oldest;
	l->slots = slots;
	if (oldest) {
		runq_init(&l->ring, slots, (uint32_t)capacity, (uint32_t)DEQUE_START);
		newest_init(&l->newest, (uint64_t)DEQUE_START & ~(uint64_t)1);
	} else {
		deque_init(&l->deque, slots, capacity, (uint64_t)DEQUE_START);
	}
}

/* Any thread. Approximate while others work on it. Sees everything whose poster has already looked for sleepers. */
static inline uint64_t local_size(struct local *l)
{
	return l->oldest ? runq_size(&l->ring) + newest_size(&l->newest) : deque_size(&l->deque);
}

/* Owner thread only. May be too small when thieves are at work, never too large. */
static inline uint64_t local_room(struct local *l)
{
	return l->oldest ? runq_room(&l->ring) : deque_room(&l->deque);
}

/* Owner thread only. False when full. */
static inline bool local_push(struct local *l, struct hive_task task)
{
	return l->oldest ? runq_push(&l->ring, task) : deque_push(&l->deque, task);
}

/* Owner thread only. As push, for a task that is to run soon: of two, the one before moves into the ring. */
static inline bool local_post(struct local *l, struct hive_task task)
{
	struct hive_task before;

	if (!l->oldest)
		return deque_push(&l->deque, task);
	if (newest_take(&l->newest, &before) && !runq_push(&l->ring, before)) {
		newest_put(&l->newest, before);
		return false;
	}
	newest_put(&l->newest, task);
	return true;
}

/* Owner thread only. A batch for which it saw room, to be run in the order of the array. */
static inline void local_push_batch(struct local *l, const struct hive_task *tasks, size_t n)
{
	if (l->oldest) {
		runq_push_many(&l->ring, tasks, (uint32_t)n);
		return;
	}
	deque_push_many(&l->deque, tasks, n, true);
}

/* Owner thread only. The oldest task; false when empty, or when a thief was faster. */
static inline bool local_pop_oldest(struct local *l, struct hive_task *ret_task)
{
	if (!l->oldest)
		return deque_steal(&l->deque, ret_task);
	return runq_pop(&l->ring, ret_task) || newest_take(&l->newest, ret_task);
}

/* Owner thread only. The task whose turn it is. *run counts turns in a row that went to the newest task; after `most` of them
 * the oldest has its turn (most 0: in the deque the newest always, in the ring the oldest).                                 */
static inline bool local_pop(struct local *l, struct hive_task *ret_task, int32_t *run, int32_t most)
{
	if (l->oldest) {
		if (*run < most && newest_take(&l->newest, ret_task)) {
			++*run;
			return true;
		}
		*run = 0;
		return local_pop_oldest(l, ret_task);
	}
	if (most > 0 && ++*run > most) {
		*run = 0;
		if (deque_steal(&l->deque, ret_task))
			return true;
	}
	if (deque_pop(&l->deque, ret_task))
		return true;
	*run = 0;
	return false;
}

/* Owner thread only. Who goes on with one thing after the other: what the next one is about comes into the cache meanwhile. Not for
 * tasks of any kind, whose argument may be no address at all: to look for one costs more than it saves.                   */
static inline void local_look_ahead(struct local *l, size_t from)
{
	if (!l->oldest)
		deque_look_ahead(&l->deque, from);
}

/* Owner thread only. Up to max of the oldest tasks by one claim; how many. None from a ring that is being robbed. */
static inline size_t local_take_oldest(struct local *l, struct hive_task *ret_tasks, size_t max)
{
	return l->oldest ? runq_take_oldest(&l->ring, ret_tasks, (uint32_t)max)
	                 : (size_t)deque_take_oldest(&l->deque, ret_tasks, max);
}

/* Owner thread only. What it has just taken by local_take_oldest() fits again: nobody else puts. */
static inline void local_put_back(struct local *l, const struct hive_task *tasks, size_t n)
{
	if (l->oldest)
		runq_push_many(&l->ring, tasks, (uint32_t)n);
	else
		deque_push_many(&l->deque, tasks, n, false);
}

/* Up to half, one at a time: each is decided by its own compare-and-swap. */
static inline uint32_t local_rob_deque(struct local *mine, struct deque *victim, struct hive_task *ret_first)
{
	uint64_t half = (deque_size(victim) + 1) / 2, room = local_room(mine);
	uint32_t loot = 0;
	struct hive_task task;

	if (half > TUNE_STEAL_BATCH)
		half = TUNE_STEAL_BATCH;
	if (half > room + 1) /* the first needs none */
		half = room + 1;
	while (loot < half && deque_steal(victim, &task)) {
		if (loot++ == 0)
			*ret_first = task;
		else
			local_push(mine, task);
	}
	return loot;
}

/* The deque of a thief takes the loot of a ring from an array. */
static inline uint32_t local_rob_ring(struct deque *mine, struct runq *victim, struct hive_task *ret_first)
{
	struct hive_task loot[TUNE_STEAL_BATCH];
	uint64_t room = deque_room(mine);
	uint32_t n = runq_steal_some(victim, loot, room < TUNE_STEAL_BATCH ? (uint32_t)room : TUNE_STEAL_BATCH);

	if (n == 0)
		return 0;
	*ret_first = loot[0];
	for (uint32_t i = n - 1; i > 0; i--) /* the oldest runs first */
		deque_push(mine, loot[i]);
	return n;
}

/* Owner of `mine`. Up to half of what the victim has: one for running at once, the others are in the own queue. How many. The
 * newest task is taken when there is nothing else: its poster is about to run it, unless it is in the middle of a long one.  */
static inline uint32_t local_rob(struct local *mine, struct local *victim, struct hive_task *ret_first)
{
	uint32_t loot;

	if (!victim->oldest)
		return local_rob_deque(mine, &victim->deque, ret_first);
	loot = mine->oldest ? runq_steal(&victim->ring, &mine->ring, ret_first)
	                    : local_rob_ring(&mine->deque, &victim->ring, ret_first);
	if (loot == 0 && runq_size(&victim->ring) == 0 && newest_take(&victim->newest, ret_first))
		loot = 1;
	return loot;
}
