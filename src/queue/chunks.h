/* SPDX-License-Identifier: MIT */
#pragma once
/* A queue of tasks without a limit: a list of arrays. Not thread-safe; used under a lane's lock. A batch is laid out in a
 * queue of its own first, which is then joined: all or none, and the lock is held for a moment only.                     */
#include <errno.h>

#include "base/lock.h"
#include "base/memory.h"

#include <rophive/task.h>

#if !defined(CHUNK_TASKS)
#define CHUNK_TASKS 254 /* 4 KiB with the header; model checkers use 2 */
#endif

struct chunk {
	struct chunk *next;
	uint32_t begin, end; /* tasks[begin … end) are queued */
	struct hive_task tasks[CHUNK_TASKS];
};

struct chunks {
	struct chunk *first, *last;
	size_t count; /* tasks */
};

/* Empty chunks kept for the next need, shared by the lanes of a pool, or of several. */
struct chunk_store {
	struct lock lock;
	struct memory memory; /* I */
	size_t keep;          /* I  how many are kept instead of freed */
	struct chunk *spare;  /* L lock */
	size_t spare_count;   /* L lock */
};

static inline void chunk_store_init(struct chunk_store *s, const struct memory *memory, size_t keep)
{
	lock_init(&s->lock);
	s->memory = *memory;
	s->keep = keep;
	s->spare = NULL;
	s->spare_count = 0;
}

static inline void chunk_put(struct chunk_store *s, struct chunk *chunk)
{
	lock_acquire(&s->lock);
	if (s->spare_count < s->keep) {
		chunk->next = s->spare;
		s->spare = chunk;
		s->spare_count++;
		chunk = NULL;
	}
	lock_release(&s->lock);
	hive__memory_free(&s->memory, chunk);
}

static inline struct chunk *chunk_get(struct chunk_store *s)
{
	struct chunk *chunk;

	lock_acquire(&s->lock);
	chunk = s->spare;
	if (chunk) {
		s->spare = chunk->next;
		s->spare_count--;
	}
	lock_release(&s->lock);
	if (!chunk)
		chunk = (struct chunk *)hive__memory_new(&s->memory, sizeof *chunk);
	if (chunk) {
		chunk->next = NULL;
		chunk->begin = chunk->end = 0;
	}
	return chunk;
}

/* Before anybody uses it. These stay, however often they are used. */
static inline int chunk_store_reserve(struct chunk_store *s, size_t chunks)
{
	if (s->keep < chunks)
		s->keep = chunks;
	while (s->spare_count < chunks) {
		struct chunk *chunk = (struct chunk *)hive__memory_new(&s->memory, sizeof *chunk);

		if (!chunk)
			return -ENOMEM;
		chunk->next = s->spare;
		s->spare = chunk;
		s->spare_count++;
	}
	return 0;
}

static inline void chunk_store_destroy(struct chunk_store *s)
{
	while (s->spare) {
		struct chunk *next = s->spare->next;

		hive__memory_free(&s->memory, s->spare);
		s->spare = next;
	}
}

/* Gives back a chain of chunks, whatever is in them. */
static inline void chunks_free(struct chunk *chunk, struct chunk_store *store)
{
	while (chunk) {
		struct chunk *next = chunk->next;

		chunk_put(store, chunk);
		chunk = next;
	}
}

static inline int chunks_grow(struct chunks *q, struct chunk_store *store)
{
	struct chunk *chunk = chunk_get(store);

	if (!chunk)
		return -ENOMEM;
	if (q->last)
		q->last->next = chunk;
	else
		q->first = q->last = chunk;
	return 0;
}

/* Appends n <= CHUNK_TASKS tasks. All or none: 0 or -ENOMEM. */
static inline int chunks_append(struct chunks *q, const struct hive_task *tasks, size_t n, struct chunk_store *store)
{
	if ((!q->last || CHUNK_TASKS - q->last->end < n) && chunks_grow(q, store) < 0)
		return -ENOMEM;
	q->count += n;
	for (size_t i = 0; i < n; i++) {
		if (q->last->end == CHUNK_TASKS)
			q->last = q->last->next;
		q->last->tasks[q->last->end++] = tasks[i];
	}
	return 0;
}

/* An empty queue is filled with any number of tasks. 0, or -ENOMEM and it is empty again. */
static inline int chunks_fill(struct chunks *q, const struct hive_task *tasks, size_t n, struct chunk_store *store)
{
	for (size_t i = 0; i < n; i += CHUNK_TASKS) {
		size_t piece = n - i < CHUNK_TASKS ? n - i : CHUNK_TASKS;

		if (chunks_append(q, tasks + i, piece, store) < 0) {
			chunks_free(q->first, store);
			q->first = q->last = NULL;
			q->count = 0;
			return -ENOMEM;
		}
	}
	return 0;
}

/* Puts all of `more` behind q, in no time: what takes long is done before, outside the lock. */
static inline void chunks_join(struct chunks *q, const struct chunks *more)
{
	if (q->last)
		q->last->next = more->first;
	else
		q->first = more->first;
	q->last = more->last;
	q->count += more->count;
}

/* The oldest task; the caller saw count > 0. A chunk that is used up goes in front of *ret_empty, to be freed later. */
static inline struct hive_task chunks_take(struct chunks *q, struct chunk **ret_empty)
{
	struct chunk *first = q->first;
	struct hive_task task = first->tasks[first->begin++];

	q->count--;
	if (first->begin == first->end) {
		q->first = first->next;
		if (!q->first)
			q->last = NULL;
		first->next = *ret_empty;
		*ret_empty = first;
	}
	return task;
}
