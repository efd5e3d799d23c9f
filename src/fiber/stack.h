/* SPDX-License-Identifier: MIT */
#pragma once
/* Stacks for contexts, many of them: a million must be possible although a process has 65,530 mappings.
 *
 * Stacks of one size class lie side by side in regions, large mappings that reserve nothing. Each stack has a guard at
 * its low end: pages that the kernel marks without splitting the mapping (MADV_GUARD_INSTALL, Linux 6.13), else pages
 * without rights, which cost two mappings a stack; when those run out, hive__stack_get() answers -ENOMEM and everything
 * else goes on.
 *
 *     | guard | low …  usable  … | top page: … link, then STACK_TOP bytes of the user |
 *
 * The user's STACK_TOP bytes are type-stable: zero until the stack is handed out for the first time, then only the user
 * writes to them, also while the stack is free, and they stay mapped until hive__stacks_destroy(). So a stale pointer to
 * an object there finds an old object, never a hole. The rest of a stack is the user's between get and put.
 *
 * Free stacks go to the cache of the worker (no lock, no shared line), newest first because its pages are warm; above a
 * cap half of them go to a list that is shared; there, above a number, stacks give their pages back, all but the top
 * one. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

enum {
	STACK_TOP = 1536,       /* bytes at the top of each stack that stay as the user left them */
	STACK_SHIFT_FIRST = 14, /* class 0 is 16 KiB, guard included */
	STACK_SHIFT_LAST = 30,
	STACK_CLASSES = STACK_SHIFT_LAST - STACK_SHIFT_FIRST + 1,
	STACK_SHIFT_DEFAULT = 16 /* the class that 0 means; larger with sanitizers */
};

struct stacks; /* one per hive */

struct stack {
	void *low;    /* the guard ends here */
	size_t bytes; /* from low to the top */
};

/* Zeroed is empty. Owner thread only. */
struct stack_cache {
	struct {
		struct stack_link *first;
		uint32_t count;
	} classes[STACK_CLASSES];
};

/* Any thread. 0 or -ENOMEM. */
int hive__stacks_create(const struct memory *memory, struct stacks **ret);
/* When nobody uses a stack any more. Caches need not be emptied. */
void hive__stacks_destroy(struct stacks *s);

/* Any thread (cache NULL), or the cache's owner. A stack of at least `bytes` usable bytes; 0 is the default size. 0,
 * -ENOMEM (no memory or no mappings), -EINVAL (more than 1 GiB less the guard). */
int hive__stack_get(struct stacks *s, struct stack_cache *cache, size_t bytes, struct stack *ret);
/* As get. The context that ran there is destroyed. */
void hive__stack_put(struct stacks *s, struct stack_cache *cache, struct stack stack);
/* The cache's owner: all its stacks go to the shared list. */
void hive__stack_cache_empty(struct stacks *s, struct stack_cache *cache);

/* Any thread. Calls visit for each stack that was ever handed out, also for those that are free now, and for some whose first
 * hand-out is under way or was refused: their top is zero. Concurrent with get and put. */
void hive__stacks_visit(struct stacks *s, void (*visit)(void *arg, struct stack stack), void *arg);

/* Any thread. High-water mark in bytes: the distance from the top to the lowest page that is resident, as the kernel
 * tells it (mincore), so it costs nothing until it is asked for. Counts in pages; shows the deepest use since the pages
 * came, maybe by an earlier owner of the stack; does not see pages that were swapped out. 0 when the kernel does not
 * answer. */
size_t hive__stack_used(struct stack stack);

/* Any thread, also in a signal handler. Is this address in the guard of one of our stacks? Then that stack is returned. */
bool hive__stack_owns_guard(struct stacks *s, const void *address, struct stack *ret);
