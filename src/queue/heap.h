/* SPDX-License-Identifier: MIT */
#pragma once
/* Timers of one worker: a heap with four children per node. Owner thread only. Equal deadlines keep the order of their
 * sequence numbers. Each timer knows its place, so it can be removed in O(log n).
 *
 *   T1  No entry is earlier than its parent.      T2  entries[t->index].timer == t for each timer inside.             */
#include <errno.h>

#include "base/memory.h"

#include <rophive/timer.h>

struct heap_entry {
	int64_t due_ns; /* a copy: comparing touches no timer */
	uint64_t sequence;
	struct hive_timer *timer;
};

struct heap {
	struct heap_entry *entries;
	uint32_t count, capacity;
	struct memory memory; /* I */
};

enum { HEAP_FIRST = 64 };

static inline void heap_init(struct heap *h, const struct memory *memory)
{
	h->entries = NULL;
	h->count = h->capacity = 0;
	h->memory = *memory;
}

static inline void heap_destroy(struct heap *h)
{
	hive__memory_free(&h->memory, h->entries);
	h->entries = NULL;
	h->count = h->capacity = 0;
}

/* 0, or -ENOMEM and everything as before. */
static inline int heap_reserve(struct heap *h, size_t capacity)
{
	struct heap_entry *entries;

	if (capacity <= h->capacity)
		return 0;
	if (capacity > UINT32_MAX / 2)
		return -ENOMEM;
	entries = (struct heap_entry *)hive__memory_new(&h->memory, capacity * sizeof *entries);
	if (!entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < h->count; i++)
		entries[i] = h->entries[i];
	hive__memory_free(&h->memory, h->entries);
	h->entries = entries;
	h->capacity = (uint32_t)capacity;
	return 0;
}

static inline bool heap_before(const struct heap_entry *a, const struct heap_entry *b)
{
	return a->due_ns < b->due_ns || (a->due_ns == b->due_ns && a->sequence < b->sequence);
}

static inline void heap_place(struct heap *h, uint32_t at, struct heap_entry entry)
{
	h->entries[at] = entry;
	entry.timer->index = at;
}

static inline void heap_rise(struct heap *h, uint32_t at, struct heap_entry entry)
{
	while (at > 0) {
		uint32_t parent = (at - 1) / 4;

		if (!heap_before(&entry, &h->entries[parent]))
			break;
		heap_place(h, at, h->entries[parent]);
		at = parent;
	}
	heap_place(h, at, entry);
}

static inline void heap_sink(struct heap *h, uint32_t at, struct heap_entry entry)
{
	for (;;) {
		uint32_t child = at * 4 + 1, end = child + 4, least = child;

		if (child >= h->count)
			break;
		if (end > h->count)
			end = h->count;
		while (++child < end)
			if (heap_before(&h->entries[child], &h->entries[least]))
				least = child;
		if (!heap_before(&h->entries[least], &entry))
			break;
		heap_place(h, at, h->entries[least]);
		at = least;
	}
	heap_place(h, at, entry);
}

/* The timer's due_ns and sequence say where it belongs. 0 or -ENOMEM. */
static inline int heap_insert(struct heap *h, struct hive_timer *timer)
{
	struct heap_entry entry = { timer->due_ns, timer->sequence, timer };

	if (h->count == h->capacity) {
		int r = heap_reserve(h, h->capacity ? (size_t)h->capacity * 2 : HEAP_FIRST);

		if (r < 0)
			return r;
	}
	heap_rise(h, h->count++, entry);
	return 0;
}

static inline void heap_settle(struct heap *h, uint32_t at, struct heap_entry entry)
{
	if (at > 0 && heap_before(&entry, &h->entries[(at - 1) / 4]))
		heap_rise(h, at, entry);
	else
		heap_sink(h, at, entry);
}

/* The timer is inside. */
static inline void heap_remove(struct heap *h, struct hive_timer *timer)
{
	uint32_t at = timer->index;
	struct heap_entry moved = h->entries[--h->count];

	if (at < h->count)
		heap_settle(h, at, moved);
}

/* The timer is inside, and its due_ns or sequence has changed. Cannot fail. */
static inline void heap_update(struct heap *h, struct hive_timer *timer)
{
	struct heap_entry entry = { timer->due_ns, timer->sequence, timer };

	heap_settle(h, timer->index, entry);
}

/* The first `count` entries are what is left, in any order. */
static inline void heap_rebuild(struct heap *h, uint32_t count)
{
	h->count = count;
	for (uint32_t i = 0; i < count; i++)
		h->entries[i].timer->index = i;
	for (uint32_t i = count / 4 + 1; i-- > 0;)
		if (i < count)
			heap_sink(h, i, h->entries[i]);
}

/* The earliest timer, or NULL. */
static inline struct hive_timer *heap_first(const struct heap *h)
{
	return h->count ? h->entries[0].timer : NULL;
}

/* HIVE_FOREVER when empty. */
static inline int64_t heap_next_due(const struct heap *h)
{
	return h->count ? h->entries[0].due_ns : HIVE_FOREVER;
}

/* T1 and T2 hold everywhere. For tests. */
static inline bool heap_valid(const struct heap *h)
{
	for (uint32_t i = 0; i < h->count; i++)
		if ((i > 0 && heap_before(&h->entries[i], &h->entries[(i - 1) / 4])) || h->entries[i].timer->index != i)
			return false;
	return true;
}
