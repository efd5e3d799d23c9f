/* SPDX-License-Identifier: MIT */
#pragma once
/* Included after the other headers: each TEST of the file runs twice, as `name` with timers in a heap and as `name_wheel` with
 * timers in a wheel. Workers of the fake and of the real world that do not say how they keep their timers do so as test_timers
 * says.                                                                                                                      */
#include "support/kind.h"
#include "test.h"

static inline void test_with_timers(enum hive_timers timers, void (*body)(void))
{
	test_timers = timers;
	body();
	test_timers = HIVE_TIMERS_DEFAULT;
}

/* For CHECKs of what only one of them does. */
static inline bool test_has_heap(void)
{
	return test_timers == HIVE_TIMERS_HEAP;
}

#undef TEST
#define TEST(NAME)                                                                           \
	static void test_##NAME(void);                                                       \
	static void heap_##NAME(void)                                                        \
	{                                                                                    \
		test_with_timers(HIVE_TIMERS_HEAP, test_##NAME);                             \
	}                                                                                    \
	static void wheel_##NAME(void)                                                       \
	{                                                                                    \
		test_with_timers(HIVE_TIMERS_WHEEL, test_##NAME);                            \
	}                                                                                    \
	__attribute__((constructor)) static void register_##NAME(void)                       \
	{                                                                                    \
		static struct test heap = { #NAME, __LINE__, heap_##NAME, NULL };            \
		static struct test wheel = { #NAME "_wheel", __LINE__, wheel_##NAME, NULL }; \
		test_register(&wheel);                                                       \
		test_register(&heap);                                                        \
	}                                                                                    \
	static void test_##NAME(void)
