/* SPDX-License-Identifier: MIT */
#pragma once
/* A part of a test in a child, in which some system calls fail. A check that fails there fails the test. */
#include <sys/wait.h>

#include "support/filter.h"
#include "test.h"

enum { CHILD_NO_FILTER = 77 };

/* Exit status of the child. */
static inline int child_wait(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0)
		CHECK_EQ(errno, EINTR);
	if (!WIFEXITED(status))
		test_fail(__FILE__, __LINE__, "the child died: wait status 0x%x", (unsigned)status);
	return WEXITSTATUS(status);
}

static inline void child_without(const long *calls, size_t count, int error, void (*body)(void))
{
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		if (!filter_system_calls(calls, count, error))
			_exit(CHILD_NO_FILTER);
		body();
		_exit(0);
	}
	status = child_wait(child);
	if (status == CHILD_NO_FILTER)
		printf("skipped: this kernel gives us no seccomp\n");
	else
		CHECK_EQ(status, 0);
}

/* child_without_calls(ENOMEM, body, SYS_mmap, SYS_brk) */
#define child_without_calls(error, body, ...)                                                                       \
	child_without((const long[]){ __VA_ARGS__ }, sizeof((const long[]){ __VA_ARGS__ }) / sizeof(long), (error), \
	              (body))
