/* SPDX-License-Identifier: MIT */
#pragma once
/* The cores of this build. */
#include "base/memory.h"

#include <rophive/core.h>

/* In hive_core_ops.flags: with core_arg NULL, open() gets a struct memory of the hive. */
#define CORE_TAKES_MEMORY 1u

extern const struct hive_core_ops hive__core_epoll;
extern const struct hive_core_ops hive__core_poll;

static inline struct memory core_memory(const void *arg)
{
	struct memory system = { hive__memory_system, NULL };

	return arg ? *(const struct memory *)arg : system;
}
