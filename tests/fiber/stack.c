/* SPDX-License-Identifier: MIT */
#include "fiber/stack.h"

#include "test.h"

static const struct memory memory = { hive__memory_system, NULL };

static struct stacks *open_stacks(void)
{
	struct stacks *s = NULL;

	CHECK_OK(hive__stacks_create(&memory, &s));
	return s;
}

static char *top_of(struct stack stack)
{
	return (char *)stack.low + stack.bytes;
}

TEST(a_fresh_stack_reads_as_zeros_and_can_be_written_from_top_to_low)
{
	struct stacks *s = open_stacks();
	struct stack stack;

	for (size_t bytes = 0; bytes < 1 << 20; bytes = bytes * 2 + 1) {
		CHECK_OK(hive__stack_get(s, NULL, bytes, &stack));
		CHECK(stack.bytes >= bytes);
		for (size_t i = 0; i < stack.bytes; i++) {
			CHECK_EQ(((char *)stack.low)[i], 0);
			((char *)stack.low)[i] = 1;
		}
	}
	hive__stacks_destroy(s);
}

TEST(a_stack_comes_back_from_the_cache_newest_first)
{
	struct stacks *s = open_stacks();
	struct stack_cache cache = { 0 };
	struct stack a, b, c;

	CHECK_OK(hive__stack_get(s, &cache, 0, &a));
	CHECK_OK(hive__stack_get(s, &cache, 0, &b));
	CHECK(a.low != b.low);
	memset(top_of(a) - STACK_TOP, 7, STACK_TOP);
	hive__stack_put(s, &cache, b);
	hive__stack_put(s, &cache, a);
	CHECK_OK(hive__stack_get(s, &cache, 0, &c));
	CHECK_EQ(c.low, a.low);
	CHECK_EQ(c.bytes, a.bytes);
	for (int i = 0; i < STACK_TOP; i++)
		CHECK_EQ(top_of(c)[i - STACK_TOP], 7);
	CHECK_OK(hive__stack_get(s, &cache, 0, &c));
	CHECK_EQ(c.low, b.low);
	hive__stacks_destroy(s);
}
