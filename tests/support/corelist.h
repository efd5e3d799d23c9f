/* SPDX-License-Identifier: MIT */
#pragma once
/* The cores of this build that this kernel lets us have; in a program that is built for it, the one of an edge library alone. */
#include <rophive/core.h>

#include "base/role.h"
#include "test.h"
#if defined(TEST_GLIB)
#include <glib.h>
#include <rophive/glib.h>

/* The default context and its descriptor are made when they are first asked for, and stay: not by a test, which may leave none open. */
__attribute__((constructor)) static void make_default_context(void)
{
	g_main_context_default();
}
#endif

#if defined(TEST_GLIB)
static const char *const core_names[] = { "glib" };
#else
static const char *const core_names[] = { "epoll", "poll", "uring" };
#endif
enum { CORES = sizeof core_names / sizeof *core_names };

static inline int core_find(const char *name, const struct hive_core_ops **ret_core)
{
#if defined(TEST_GLIB)
	(void)name;
	*ret_core = hive_core_glib();
	return 0;
#else
	return hive_core_find(name, ret_core);
#endif
}

/* The first so many. What is missing is said once in a program: all its tests are without it. */
static inline int core_count(void)
{
	static ATOMIC(uint32_t) said;
	const struct hive_core_ops *core;
	int n = 0, r = 0;

	while (n < CORES && (r = core_find(core_names[n], &core)) == 0)
		n++;
	if (n < CORES && role_enter(&said))
		printf("skipped on %s, and all that follows: %s\n", core_names[n], test_error(r));
	return n;
}
