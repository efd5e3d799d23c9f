/* SPDX-License-Identifier: MIT */
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/fault.h"

void *hive__memory_system(void *arg, void *old, size_t bytes)
{
	(void)arg;
	if (bytes == 0) {
		free(old);
		return NULL;
	}
	return realloc(old, bytes);
}

/* The hook promises malloc's alignment only; the word in front of an aligned block remembers what it gave. */
void *hive__memory_new_raw(const struct memory *memory, size_t bytes)
{
	char *raw, *block;

	if (bytes > SIZE_MAX / 2 || HIVE_FAULT("allocation"))
		return NULL;
	raw = (char *)memory->allocate(memory->arg, NULL, bytes + CACHE_LINE + sizeof(void *));
	if (!raw)
		return NULL;
	block = raw + sizeof(void *);
	block += (CACHE_LINE - (uintptr_t)block % CACHE_LINE) % CACHE_LINE;
	memcpy(block - sizeof(void *), &raw, sizeof raw);
	return block;
}

void *hive__memory_new(const struct memory *memory, size_t bytes)
{
	void *block = hive__memory_new_raw(memory, bytes);

	return block ? memset(block, 0, bytes) : NULL;
}

void hive__memory_free(const struct memory *memory, void *block)
{
	void *raw;

	if (!block)
		return;
	memcpy(&raw, (char *)block - sizeof(void *), sizeof raw);
	memory->allocate(memory->arg, raw, 0);
}
