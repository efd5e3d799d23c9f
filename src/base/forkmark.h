/* SPDX-License-Identifier: MIT */
#pragma once
/* Tells a child after fork() from its parent at the price of one load: a page that the kernel wipes in the child. */
#include "base/atomic.h"

typedef ATOMIC(uint32_t) forkmark;

/* Any thread. A mark that reads 1 here and 0 in children. NULL: no memory. Where the kernel cannot wipe pages the mark
 * reads 1 everywhere, and a forked child is not detected.                                                          */
forkmark *hive__forkmark_new(void);
void hive__forkmark_free(forkmark *mark);

static inline bool forkmark_is_child(const forkmark *mark)
{
	return load_relaxed(mark) == 0;
}
