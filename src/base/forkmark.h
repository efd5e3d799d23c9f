/* SPDX-License-Identifier: MIT */
#pragma once
/* Tells a child after fork() from its parent at the price of one load: a page that the kernel wipes in the child. */
#include "base/atomic.h"

typedef ATOMIC(uint32_t) forkmark;

/* Any thread. A mark that reads 1 here and 0 in children. NULL: no memory. Where the kernel cannot wipe pages the mark
 * reads 1 everywhere, and a forked child is not detected.                                                          */
forkmark *hive__forkmark_new(void);
void hive__forkmark_free(forkmark *mark);
/* Any thread. What lies at `at`, made by who needs it first, and never gone: zeros, at least this many bytes, that are zeros again in each
 * child, for what belongs to one process and has to be fresh in the next, locks included. NULL: no memory.                    */
void *hive__forkmark_once(ATOMIC(void *) *at, size_t bytes);

static inline bool forkmark_is_child(const forkmark *mark)
{
	return load_relaxed(mark) == 0;
}
