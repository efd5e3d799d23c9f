/* SPDX-License-Identifier: MIT */
#pragma once
/* The inbox of inbox.h as a list under a lock: swap the content out, work on it after unlocking. Built in with
 * HIVE_LOCKED_QUEUES. Include inbox.h, not this file.                                                            */
#include "base/lock.h"

struct inbox {
	struct lock lock;
	ATOMIC(struct letter *) newest; /* L lock; dumps look at it without */
	bool closed;                    /* L lock */
};

static inline void inbox_init(struct inbox *b)
{
	lock_init(&b->lock);
	store_relaxed(&b->newest, (struct letter *)NULL);
	b->closed = false;
}

static inline void inbox_open(struct inbox *b)
{
	lock_acquire(&b->lock);
	b->closed = false;
	lock_release(&b->lock);
}

static inline bool inbox_push(struct inbox *b, struct letter *letter)
{
	bool open;

	lock_acquire(&b->lock);
	open = !b->closed;
	if (open) {
		letter->next = load_relaxed(&b->newest);
		store_relaxed(&b->newest, letter);
	}
	lock_release(&b->lock);
	return open;
}

static inline bool inbox_is_empty(struct inbox *b)
{
	bool empty;

	lock_acquire(&b->lock);
	empty = load_relaxed(&b->newest) == NULL;
	lock_release(&b->lock);
	return empty;
}

/* For dumps: whoever has the lock may be the one that hangs. */
static inline const struct letter *inbox_newest(struct inbox *b)
{
	return load_relaxed(&b->newest);
}

static inline struct letter *inbox_take(struct inbox *b)
{
	struct letter *chain;

	lock_acquire(&b->lock);
	chain = load_relaxed(&b->newest);
	store_relaxed(&b->newest, (struct letter *)NULL);
	lock_release(&b->lock);
	return letters_in_order(chain);
}

static inline struct letter *inbox_close(struct inbox *b)
{
	lock_acquire(&b->lock);
	b->closed = true;
	lock_release(&b->lock);
	return inbox_take(b);
}
