/* SPDX-License-Identifier: MIT */
#pragma once
/* Buffers of one worker, lent one by one.
 *
 *   IDLE --lend, owner--> LENT --return, anybody--> BACK --owner, when he looks--> IDLE
 *
 * The owner alone takes and lends. What comes back waits in a list under the lock until he looks. An idle buffer is in his stack, or with
 * his core, whose own business it is then which ones those are. The memory of what is not lent is poisoned where a checker looks. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/poison.h"

enum { BUFFERS_ALIGN = 64, BUFFERS_MOST = 32768 }; /* MOST: what a ring of the kernel holds */
enum { BUFFER_IDLE, BUFFER_LENT, BUFFER_BACK };

struct buffers {
	char *first;                 /* I */
	uint32_t count, bytes;       /* I */
	size_t stride;               /* I */
	ATOMIC(uint32_t) *states;    /* A */
	uint32_t *idle;              /* O  indices, a stack */
	uint32_t idle_count;         /* O */
	struct lock lock;            /* of what comes back */
	uint32_t *back;              /* L  indices */
	ATOMIC(uint32_t) back_count; /* stored under the lock; anybody may have a look */
	/* the core's own, O */
	void *ring;                              /* NULL: it has none of them */
	uint32_t in_ring;                        /* how many it has */
	void (*let_go)(struct buffers *buffers); /* afterwards it has none */
};

/* As a number: in an operation that has its buffers from them, its offset2. */
static inline struct buffers *buffers_of(int64_t number)
{
	return (struct buffers *)(uintptr_t)number;
}

/* 0, -ENOMEM. All are idle. */
int hive__buffers_open(struct buffers *b, const struct memory *memory, uint32_t count, uint32_t bytes);
void hive__buffers_close(struct buffers *b, const struct memory *memory);

static inline char *buffers_at(const struct buffers *b, uint32_t index)
{
	return b->first + index * b->stride;
}

/* Any thread. Which one it is; count: none of these. */
static inline uint32_t buffers_index(const struct buffers *b, const void *at)
{
	uintptr_t from = (uintptr_t)at - (uintptr_t)b->first;

	return (uintptr_t)at >= (uintptr_t)b->first && from < b->count * b->stride && from % b->stride == 0
	               ? (uint32_t)(from / b->stride)
	               : b->count;
}

/* Owner. What has come back is idle. */
static inline void buffers_look(struct buffers *b)
{
	uint32_t n;

	if (load_relaxed(&b->back_count) == 0)
		return;
	lock_acquire(&b->lock);
	n = load_relaxed(&b->back_count);
	for (uint32_t i = 0; i < n; i++) {
		store_relaxed(&b->states[b->back[i]], (uint32_t)BUFFER_IDLE);
		b->idle[b->idle_count++] = b->back[i];
	}
	store_relaxed(&b->back_count, 0u);
	lock_release(&b->lock);
}

/* Owner. False: there is none. */
static inline bool buffers_take(struct buffers *b, uint32_t *ret_index)
{
	if (b->idle_count == 0)
		buffers_look(b);
	if (b->idle_count == 0)
		return false;
	*ret_index = b->idle[--b->idle_count];
	return true;
}

/* Owner. Taken, and not lent after all. */
static inline void buffers_put(struct buffers *b, uint32_t index)
{
	POISON(buffers_at(b, index), b->stride);
	b->idle[b->idle_count++] = index;
}

/* Owner. Taken, and to be written to. */
static inline char *buffers_open_one(const struct buffers *b, uint32_t index)
{
	UNPOISON(buffers_at(b, index), b->bytes);
	return buffers_at(b, index);
}

/* Owner. Taken; its user is told next. */
static inline char *buffers_lend(struct buffers *b, uint32_t index)
{
	store_relaxed(&b->states[index], (uint32_t)BUFFER_LENT);
	return buffers_open_one(b, index);
}

/* Any thread, under the lock. -EINVAL: it was not lent. */
static inline int buffers_return(struct buffers *b, uint32_t index)
{
	uint32_t n = load_relaxed(&b->back_count);

	if (load_relaxed(&b->states[index]) != BUFFER_LENT)
		return -EINVAL;
	POISON(buffers_at(b, index), b->stride);
	store_relaxed(&b->states[index], (uint32_t)BUFFER_BACK);
	b->back[n] = index;
	store_relaxed(&b->back_count, n + 1);
	return 0;
}

/* Owner. One of them can be had, here or by the core. */
static inline bool buffers_are_there(const struct buffers *b)
{
	return b->idle_count > 0 || b->in_ring > 0 || load_relaxed(&b->back_count) > 0;
}

/* Any thread, when nobody lends. */
static inline bool buffers_any_lent(const struct buffers *b)
{
	for (uint32_t i = 0; i < b->count; i++)
		if (load_relaxed(&b->states[i]) == BUFFER_LENT)
			return true;
	return false;
}

/* The next owner, when the core of the last one has let go: which ones are idle. */
static inline void buffers_adopt(struct buffers *b)
{
	b->idle_count = 0;
	for (uint32_t i = b->count; i > 0; i--)
		if (load_relaxed(&b->states[i - 1]) == BUFFER_IDLE)
			b->idle[b->idle_count++] = i - 1;
}
