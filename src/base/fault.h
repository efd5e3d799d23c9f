/* SPDX-License-Identifier: MIT */
#pragma once
/* Misfortunes by name. HIVE_FAULT("name") is false in every build but the explorer's, which decides from its seed whether
 * this time the allocation fails, the queue is full, the wait ends early. Each place must do the right thing either way.  */
#include <stdbool.h>

#if defined(HIVE_EXPLORE)
bool hive__explore_fault(const char *name);
/* A literal. Names lie together, so that those are known too by which nobody ever came. */
#define HIVE_FAULT(name)                                                                        \
	__extension__({                                                                         \
		static const char known[] __attribute__((section("hive_faults"), used)) = name; \
		hive__explore_fault(known);                                                     \
	})
#else
#define HIVE_FAULT(name) false
#endif
