/* SPDX-License-Identifier: MIT */
/* Stacks of a test of their own. */
#pragma once

#include "fiber/stack.h"
#include "test.h"

static const struct memory memory = { hive__memory_system, NULL };

static inline struct stacks *open_stacks(void)
{
	struct stacks *s = NULL;

	CHECK_OK(hive__stacks_create(&memory, &s));
	return s;
}

static inline char *top_of(struct stack stack)
{
	return (char *)stack.low + stack.bytes;
}
