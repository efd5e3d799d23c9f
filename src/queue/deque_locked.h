/* SPDX-License-Identifier: MIT */
#pragma once
/* The deque of deque.h with a lock around everything: no cleverness. Built in with HIVE_LOCKED_QUEUES, so that a failing
 * test shows whether the scheduler or the lock-free code is wrong. Include deque.h, not this file.                     */
#include "base/lock.h"
#include "queue/slot.h"

struct deque {
	struct lock lock;
	struct slot *slots;   /* I */
	uint64_t capacity;    /* I  power of two */
	uint64_t bottom, top; /* L lock */
};

static inline void deque_init(struct deque *d, struct slot *slots, uint64_t capacity, uint64_t start)
{
	lock_init(&d->lock);
	d->slots = slots;
	d->capacity = capacity;
	d->bottom = d->top = start;
}

static inline uint64_t deque_size(struct deque *d)
{
	uint64_t size;

	lock_acquire(&d->lock);
	size = d->bottom - d->top;
	lock_release(&d->lock);
	return size;
}

static inline uint64_t deque_room(struct deque *d)
{
	return d->capacity - deque_size(d);
}

static inline void deque_push_many(struct deque *d, const struct hive_task *tasks, uint64_t n, bool last_first)
{
	lock_acquire(&d->lock);
	for (uint64_t i = 0; i < n; i++)
		slot_write(&d->slots[d->bottom++ & (d->capacity - 1)], tasks[last_first ? n - 1 - i : i]);
	lock_release(&d->lock);
}

static inline bool deque_push(struct deque *d, struct hive_task task)
{
	if (deque_room(d) < 1)
		return false;
	deque_push_many(d, &task, 1, false);
	return true;
}

static inline bool deque_pop(struct deque *d, struct hive_task *ret_task)
{
	bool found;

	lock_acquire(&d->lock);
	found = d->bottom != d->top;
	if (found)
		*ret_task = slot_read(&d->slots[--d->bottom & (d->capacity - 1)]);
	lock_release(&d->lock);
	return found;
}

static inline void deque_look_ahead(struct deque *d, size_t from)
{
	(void)d;
	(void)from;
}

static inline bool deque_steal(struct deque *d, struct hive_task *ret_task)
{
	bool found;

	lock_acquire(&d->lock);
	found = d->bottom != d->top;
	if (found)
		*ret_task = slot_read(&d->slots[d->top++ & (d->capacity - 1)]);
	lock_release(&d->lock);
	return found;
}

static inline uint64_t deque_take_oldest(struct deque *d, struct hive_task *ret_tasks, uint64_t max)
{
	uint64_t n = 0;

	while (n < max && deque_steal(d, &ret_tasks[n]))
		n++;
	return n;
}
