/* SPDX-License-Identifier: MIT */
#pragma once
/* The test harness. A test program is one file:
 *
 *     #include "test.h"
 *     TEST(pool_wakes_only_one_sleeper)
 *     {
 *             CHECK_OK(hive_post(hive, nop, NULL));
 *             CHECK_EQ(wakes, 1);
 *     }
 *
 * Tests run in the order of the file, in one process; a check that fails, on whatever thread, ends the program with
 * status 1. Options and environment: tests/support/test_main.c.                                                     */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The library has a CHECK of its own (an assertion for debug builds). In a test program ours takes its place. */
#if __has_include("base/check.h")
#include "base/check.h"
#endif
#undef CHECK

/* Which sanitizer this build has, of gcc or of clang. */
#if !defined(__has_feature)
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define TEST_TSAN 1
#else
#define TEST_TSAN 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define TEST_ASAN 1
#else
#define TEST_ASAN 0
#endif

struct test {
	const char *name;
	int line;
	void (*run)(void);
	struct test *next;
};

void test_register(struct test *test);
/* Prints where and what, ends the program. Any thread. */
_Noreturn void test_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* "EINVAL" for -EINVAL, else the number. Valid until the thread's next call. */
const char *test_error(long long error);
/* This machine lacks what the test needs (a privilege, a system call): says why in place of "ok". The test then
 * returns. */
void test_skip(const char *why);
/* How much slower than a plain build this runs (sanitizers, valgrind, an emulator): divide counts and multiply patience
 * by it. */
int test_slowness(void);
/* A number from the environment: test_env("ROPHIVE_SIM_SEEDS", 200). */
long test_env(const char *name, long otherwise);
/* How long a stress test shall run: ROPHIVE_STRESS_SECONDS, else 2. */
int64_t test_stress_ns(void);
/* For CHECK_MISUSE: true in the child, which then makes the wrong call and comes back to be told that it survived. */
bool test_aborts_begin(int *ret_child);
void test_aborts_end(int child, const char *file, int line, const char *text);

#define TEST(NAME)                                                                \
	static void test_##NAME(void);                                            \
	__attribute__((constructor)) static void register_##NAME(void)            \
	{                                                                         \
		static struct test test = { #NAME, __LINE__, test_##NAME, NULL }; \
		test_register(&test);                                             \
	}                                                                         \
	static void test_##NAME(void)

#define CHECK(condition)                                                        \
	do {                                                                    \
		if (!(condition))                                               \
			test_fail(__FILE__, __LINE__, "CHECK(%s)", #condition); \
	} while (0)

/* Any integers or pointers; each side is evaluated once. */
#define CHECK_EQ(a, b)                                                                                              \
	do {                                                                                                        \
		long long check_a = (long long)(a), check_b = (long long)(b);                                       \
		if (check_a != check_b)                                                                             \
			test_fail(__FILE__, __LINE__, "CHECK_EQ(%s, %s): %lld and %lld", #a, #b, check_a, check_b); \
	} while (0)

#define CHECK_STR(a, b)                                                                               \
	do {                                                                                          \
		const char *check_a = (a), *check_b = (b);                                            \
		if (!check_a || !check_b || strcmp(check_a, check_b) != 0)                            \
			test_fail(__FILE__, __LINE__, "CHECK_STR(%s, %s): \"%s\" and \"%s\"", #a, #b, \
			          check_a ? check_a : "(null)", check_b ? check_b : "(null)");        \
	} while (0)

#define CHECK_OK(expression)                                                                         \
	do {                                                                                         \
		long long check_r = (long long)(expression);                                         \
		if (check_r != 0)                                                                    \
			test_fail(__FILE__, __LINE__, "CHECK_OK(%s): %lld %s", #expression, check_r, \
			          test_error(check_r));                                              \
	} while (0)

/* CHECK_ERR(hive_run(NULL), -EINVAL) */
#define CHECK_ERR(expression, error)                                                                              \
	do {                                                                                                      \
		long long check_r = (long long)(expression), check_e = (error);                                   \
		if (check_r != check_e)                                                                           \
			test_fail(__FILE__, __LINE__, "CHECK_ERR(%s, %s): %lld %s", #expression, #error, check_r, \
			          test_error(check_r));                                                           \
	} while (0)

/* A broken rule of the API: its code in release builds, an abort in debug builds (made in a child, so not counted). */
#if defined(HIVE_DEBUG)
#define CHECK_MISUSE(expression, error)                                        \
	do {                                                                   \
		int check_child;                                               \
		if (test_aborts_begin(&check_child))                           \
			(void)!(expression);                                   \
		test_aborts_end(check_child, __FILE__, __LINE__, #expression); \
	} while (0)
#else
#define CHECK_MISUSE(expression, error) CHECK_ERR(expression, error)
#endif
