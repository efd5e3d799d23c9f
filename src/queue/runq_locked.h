/* SPDX-License-Identifier: MIT */
#pragma once
/* The ring of runq.h with a lock around everything: no cleverness. Built in with HIVE_LOCKED_QUEUES, so that a failing test
 * shows whether the scheduler or the lock-free code is wrong. Include runq.h, not this file. A thief holds one lock at a
 * time, so two that rob each other cannot jam.                                                                            */
#include "base/lock.h"
#include "queue/slot.h"

struct runq {
	struct lock lock;
	struct slot *slots;  /* I */
	uint32_t capacity;   /* I  power of two */
	uint32_t head, tail; /* L lock */
};

static inline void runq_init(struct runq *q, struct slot *slots, uint32_t capacity, uint32_t start)
{
	lock_init(&q->lock);
	q->slots = slots;
	q->capacity = capacity;
	q->head = q->tail = start;
}

static inline uint32_t runq_size(struct runq *q)
{
	uint32_t size;

	lock_acquire(&q->lock);
	size = q->tail - q->head;
	lock_release(&q->lock);
	return size;
}

static inline uint32_t runq_room(struct runq *q)
{
	return q->capacity - runq_size(q);
}

static inline void runq_push_many(struct runq *q, const struct hive_task *tasks, uint32_t n)
{
	lock_acquire(&q->lock);
	for (uint32_t i = 0; i < n; i++)
		slot_write(&q->slots[q->tail++ & (q->capacity - 1)], tasks[i]);
	lock_release(&q->lock);
}

static inline bool runq_push(struct runq *q, struct hive_task task)
{
	if (runq_room(q) < 1)
		return false;
	runq_push_many(q, &task, 1);
	return true;
}

/* The oldest n, under the lock. */
static inline void runq_take(struct runq *q, struct hive_task *ret_tasks, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		ret_tasks[i] = slot_read(&q->slots[q->head++ & (q->capacity - 1)]);
}

static inline uint32_t runq_take_oldest(struct runq *q, struct hive_task *ret_tasks, uint32_t max)
{
	uint32_t n;

	lock_acquire(&q->lock);
	n = q->tail - q->head < max ? q->tail - q->head : max;
	runq_take(q, ret_tasks, n);
	lock_release(&q->lock);
	return n;
}

static inline bool runq_pop(struct runq *q, struct hive_task *ret_task)
{
	bool found;

	lock_acquire(&q->lock);
	found = q->tail != q->head;
	if (found)
		*ret_task = slot_read(&q->slots[q->head++ & (q->capacity - 1)]);
	lock_release(&q->lock);
	return found;
}

static inline uint32_t runq_steal_some(struct runq *q, struct hive_task *ret_tasks, uint32_t max)
{
	uint32_t n;

	lock_acquire(&q->lock);
	n = (q->tail - q->head + 1) / 2;
	if (n > max)
		n = max;
	runq_take(q, ret_tasks, n);
	lock_release(&q->lock);
	return n;
}

static inline uint32_t runq_steal(struct runq *victim, struct runq *mine, struct hive_task *ret_task)
{
	uint32_t room = runq_room(mine), wanted = (runq_size(victim) + 1) / 2, n = 0;
	struct hive_task task;

	if (room < mine->capacity / 2)
		return 0;
	if (wanted > room)
		wanted = room;
	while (n < wanted && runq_steal_some(victim, &task, 1) == 1) {
		if (n++ > 0)
			runq_push(mine, *ret_task);
		*ret_task = task;
	}
	return n;
}
