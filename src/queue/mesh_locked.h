/* SPDX-License-Identifier: MIT */
#pragma once
/* The lane of mesh.h with a lock around everything: no cleverness. Built in with HIVE_LOCKED_QUEUES. Include mesh.h, not this file. */
#include "base/lock.h"

struct mesh_lane {
	char *cells;
	size_t stride;
	uint64_t capacity;
	uint32_t number;
	struct lock lock;
	bool closed;                 /* L lock */
	uint64_t fell;               /* L lock */
	ATOMIC(uint64_t) tail, head; /* L lock; dumps look at them without */
	ATOMIC(uint64_t) returned;   /* A */
};

static inline struct mesh_cell *mesh_cell(struct mesh_lane *l, uint64_t index)
{
	return (struct mesh_cell *)(void *)(l->cells + (index & (l->capacity - 1)) * l->stride);
}

static inline void mesh_lane_init(struct mesh_lane *l, void *cells, size_t stride, uint64_t capacity)
{
	uint64_t start = MESH_INDEX((uint64_t)MESH_START);

	lock_init(&l->lock);
	l->cells = (char *)cells;
	l->stride = stride;
	l->capacity = capacity;
	l->number = 0;
	l->fell = 0;
	l->closed = false;
	store_relaxed(&l->tail, start);
	store_relaxed(&l->head, start);
	store_relaxed(&l->returned, (uint64_t)0);
	for (uint64_t i = 0; i < capacity; i++)
		store_relaxed(&mesh_cell(l, start + i)->turn, MESH_INDEX(start + i));
}

static inline struct mesh_cell *mesh_reserve(struct mesh_lane *l)
{
	struct mesh_cell *cell;
	uint64_t tail;

	lock_acquire(&l->lock);
	tail = load_relaxed(&l->tail);
	cell = mesh_cell(l, tail);
	if (l->closed || mesh_returned(&l->returned) != l->fell || !mesh_cell_is_free(cell, tail))
		cell = NULL;
	lock_release(&l->lock);
	return cell;
}

static inline bool mesh_commit(struct mesh_lane *l)
{
	bool open;

	lock_acquire(&l->lock);
	open = !l->closed;
	if (open)
		store_relaxed(&l->tail, MESH_INDEX(load_relaxed(&l->tail) + 1));
	lock_release(&l->lock);
	return open;
}

static inline uint64_t mesh_waiting(struct mesh_lane *l)
{
	uint64_t n;

	lock_acquire(&l->lock);
	n = MESH_INDEX(load_relaxed(&l->tail) - load_relaxed(&l->head));
	lock_release(&l->lock);
	return n;
}

static inline struct mesh_cell *mesh_take(struct mesh_lane *l)
{
	uint64_t head;

	lock_acquire(&l->lock);
	head = load_relaxed(&l->head);
	store_relaxed(&l->head, MESH_INDEX(head + 1));
	lock_release(&l->lock);
	return mesh_cell(l, head);
}

static inline void mesh_lane_close(struct mesh_lane *l)
{
	lock_acquire(&l->lock);
	l->closed = true;
	lock_release(&l->lock);
}

static inline void mesh_lane_open(struct mesh_lane *l)
{
	lock_acquire(&l->lock);
	l->closed = false;
	lock_release(&l->lock);
}
