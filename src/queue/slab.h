/* SPDX-License-Identifier: MIT */
#pragma once
/* Items of one size, taken and given back by any thread, with a number each. Memory is type-stable: an item's place
 * never moves and is freed only with the slab, so a late reader finds an old item, never a hole.
 *
 * Free items form a stack of numbers. Its head carries a tag that grows with each change, so that a slow thread cannot
 * swap in a head that went and came back (the ABA error of untagged stacks).                                          */
#include <errno.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "base/memory.h"

struct slab_item {                  /* first member of every item */
	ATOMIC(uint32_t) next_free; /* number + 1 of the next free item, 0: none */
	uint32_t number;            /* I */
};

enum { SLAB_FIRST = 64, SLAB_SEGMENTS = 16, SLAB_ITEMS_MAX = SLAB_FIRST * ((1 << SLAB_SEGMENTS) - 1) };

struct slab {
	size_t item_bytes;    /* I */
	struct memory memory; /* I */
	struct lock growing;
	ATOMIC(char *) segments[SLAB_SEGMENTS];         /* A  segment k holds SLAB_FIRST << k items */
	ATOMIC(uint32_t) count;                         /* A  items that exist */
	alignas(CACHE_LINE) ATOMIC(uint64_t) free_head; /* A  tag << 32 | number + 1 */
};

static inline void slab_init(struct slab *s, size_t item_bytes, const struct memory *memory)
{
	s->item_bytes = item_bytes;
	s->memory = *memory;
	lock_init(&s->growing);
	for (int i = 0; i < SLAB_SEGMENTS; i++)
		store_relaxed(&s->segments[i], (char *)NULL);
	store_relaxed(&s->count, 0u);
	store_relaxed(&s->free_head, (uint64_t)0);
}

static inline void slab_destroy(struct slab *s)
{
	for (int i = 0; i < SLAB_SEGMENTS; i++)
		hive__memory_free(&s->memory, load_relaxed(&s->segments[i]));
}

/* Any thread. The item with this number, NULL if there is none. */
static inline struct slab_item *slab_at(struct slab *s, uint32_t number)
{
	uint32_t scaled = number / SLAB_FIRST + 1;
	int segment = 31 - __builtin_clz(scaled);

	if (number >= load_acquire(&s->count)) /* SLAB-1 (pairs with SLAB-2) */
		return NULL;
	number -= SLAB_FIRST * ((1u << segment) - 1);
	return (struct slab_item *)(void *)(load_relaxed(&s->segments[segment]) + number * s->item_bytes);
}

/* Any thread. Gives back a chain that is linked through next_free from first to last. */
static inline void slab_put_chain(struct slab *s, struct slab_item *first, struct slab_item *last)
{
	uint64_t head = load_relaxed(&s->free_head), next;

	do {
		store_relaxed(&last->next_free, (uint32_t)head);
		next = ((head >> 32) + 1) << 32 | (first->number + 1);
	} while (!cas_release(&s->free_head, &head, next)); /* SLAB-3 (pairs with SLAB-4) */
}

static inline void slab_put(struct slab *s, struct slab_item *item)
{
	slab_put_chain(s, item, item);
}

static inline int slab_grow_locked(struct slab *s)
{
	uint32_t count = load_relaxed(&s->count);
	int segment = 31 - __builtin_clz(count / SLAB_FIRST + 1);
	uint32_t more = (uint32_t)SLAB_FIRST << segment;
	struct slab_item *item = NULL;
	char *memory;

	if (segment >= SLAB_SEGMENTS)
		return -ENOMEM;
	memory = (char *)hive__memory_new(&s->memory, more * s->item_bytes);
	if (!memory)
		return -ENOMEM;
	for (uint32_t i = 0; i < more; i++) {
		item = (struct slab_item *)(void *)(memory + i * s->item_bytes);
		item->number = count + i;
		store_relaxed(&item->next_free, i + 1 < more ? count + i + 2 : 0);
	}
	store_relaxed(&s->segments[segment], memory); /* count publishes it */
	store_release(&s->count, count + more);       /* SLAB-2 (pairs with SLAB-1) */
	slab_put_chain(s, (struct slab_item *)(void *)memory, item);
	return 0;
}

/* Any thread. Makes at least `items` exist. 0 or -ENOMEM. */
static inline int slab_reserve(struct slab *s, size_t items)
{
	int r = 0;

	lock_acquire(&s->growing);
	while (r == 0 && load_relaxed(&s->count) < items)
		r = slab_grow_locked(s);
	lock_release(&s->growing);
	return r;
}

static inline struct slab_item *slab_pop(struct slab *s)
{
	struct slab_item *item;
	uint64_t head, next;

	do {
		head = load_acquire(&s->free_head); /* SLAB-4 (pairs with SLAB-3) */
		if ((uint32_t)head == 0)
			return NULL;
		item = slab_at(s, (uint32_t)head - 1);
		next = ((head >> 32) + 1) << 32 | load_relaxed(&item->next_free);
	} while (!cas_relaxed(&s->free_head, &head, next)); /* the very head that was read: its tag says so */
	return item;
}

/* Any thread. NULL: no memory. The item's content is what its last user left. */
static inline struct slab_item *slab_get(struct slab *s)
{
	struct slab_item *item = slab_pop(s);

	while (!item) {
		int r = 0;

		lock_acquire(&s->growing);
		if ((uint32_t)load_relaxed(&s->free_head) == 0) /* else somebody grew it, or gave one back */
			r = slab_grow_locked(s);
		lock_release(&s->growing);
		item = slab_pop(s);
		if (!item && r < 0)
			return NULL;
	}
	return item;
}
