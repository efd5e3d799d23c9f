/* SPDX-License-Identifier: MIT */
#pragma once
/* Room for one task, the newest: its owner puts, anybody takes. Beside a ring that gives out the oldest first it keeps the
 * task that was posted last within reach, while the cache still holds what it is about.
 *
 *   N1  turn is odd while a task is in it. Only the owner makes it odd; who makes it even has the task.
 *   N2  The owner puts only when it is empty: then nobody reads the words, but for takers whose claim will fail.          */
#include "queue/slot.h"

struct newest {
	struct slot slot;
	ATOMIC(uint64_t) turn; /* A */
};

/* Before anybody uses it. `start` is even: tests start near the wrap. */
static inline void newest_init(struct newest *n, uint64_t start)
{
	store_relaxed(&n->turn, start);
}

/* Any thread. 0 or 1. */
static inline uint32_t newest_size(struct newest *n)
{
	return (uint32_t)(load_seq(&n->turn) & 1); /* NEWEST-4 (pairs with NEWEST-1) */
}

/* Owner thread only, and it is empty. seq_cst, because the caller looks for sleepers next (see idle.h). */
static inline void newest_put(struct newest *n, struct hive_task task)
{
	uint64_t turn = load_acquire(&n->turn); /* NEWEST-3 (pairs with NEWEST-2) */

	slot_write(&n->slot, task);
	exchange_seq(&n->turn, turn + 1); /* NEWEST-1 (pairs with NEWEST-4 and NEWEST-5) */
}

/* Any thread. False when there is none, or when somebody else was faster. */
static inline bool newest_take(struct newest *n, struct hive_task *ret_task)
{
	uint64_t turn = load_acquire(&n->turn); /* NEWEST-5 (pairs with NEWEST-1) */
	struct hive_task task;

	if (!(turn & 1))
		return false;
	task = slot_read(&n->slot);                  /* before the claim: afterwards it is the owner's to write */
	if (!cas_release(&n->turn, &turn, turn + 1)) /* NEWEST-2 (pairs with NEWEST-3) */
		return false;
	*ret_task = task;
	return true;
}
