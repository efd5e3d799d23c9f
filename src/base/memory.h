/* SPDX-License-Identifier: MIT */
#pragma once
/* Memory comes from the host's allocator (or realloc). Blocks start on a cache line and are zeroed. */
#include <stddef.h>

struct memory {
	void *(*allocate)(void *arg, void *old, size_t bytes);
	void *arg;
};

/* Any thread. NULL when the allocator says no. */
void *hive__memory_new(const struct memory *memory, size_t bytes);
/* The same, not zeroed. */
void *hive__memory_new_raw(const struct memory *memory, size_t bytes);
/* Any thread. NULL is fine. */
void hive__memory_free(const struct memory *memory, void *block);
/* Any thread. The system's allocator in the form of the hook. */
void *hive__memory_system(void *arg, void *old, size_t bytes);
