/* SPDX-License-Identifier: MIT */
#include "base/buffers.h"

/* The three lists lie in one block, which begins with `idle`. */
int hive__buffers_open(struct buffers *b, const struct memory *memory, uint32_t count, uint32_t bytes)
{
	*b = (struct buffers){ .count = count, .bytes = bytes };
	b->stride = ((size_t)bytes + BUFFERS_ALIGN - 1) / BUFFERS_ALIGN * BUFFERS_ALIGN;
	b->idle = (uint32_t *)hive__memory_new(memory, 2 * count * sizeof *b->idle + count * sizeof *b->states);
	b->first = b->idle ? (char *)hive__memory_new(memory, count * b->stride) : NULL;
	if (!b->first) {
		hive__memory_free(memory, b->idle);
		return -ENOMEM;
	}
	b->back = b->idle + count;
	b->states = (ATOMIC(uint32_t) *)(void *)(b->back + count);
	lock_init(&b->lock);
	POISON(b->first, count * b->stride);
	buffers_adopt(b);
	return 0;
}

void hive__buffers_close(struct buffers *b, const struct memory *memory)
{
	UNPOISON(b->first, b->count * b->stride);
	hive__memory_free(memory, b->first);
	hive__memory_free(memory, b->idle);
}
