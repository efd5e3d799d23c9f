/* SPDX-License-Identifier: MIT */
#pragma once
/* The cores of this build. */
#include "base/core_setup.h"
#include "base/memory.h"

#include <rophive/core.h>

extern const struct hive_core_ops hive__core_epoll;
extern const struct hive_core_ops hive__core_poll;
#if defined(HIVE_URING)
extern const struct hive_core_ops hive__core_uring;
/* Any thread. Whether the system lets us have one: 0, or -ENOSYS, -EPERM, -ENOMEM, ... */
int hive__uring_probe(void);
#endif

static inline struct core_setup core_setup(const void *arg)
{
	struct core_setup none = { { hive__memory_system, NULL }, 0 };

	return arg ? *(const struct core_setup *)arg : none;
}

static inline struct memory core_memory(const void *arg)
{
	return core_setup(arg).memory;
}
