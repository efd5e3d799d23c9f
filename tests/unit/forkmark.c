/* SPDX-License-Identifier: MIT */
/* Telling a child after fork() from its parent. */
#include "base/forkmark.h"

#include <sys/wait.h>

#include "support/wipe.h"
#include "unit.h"

/* The status of a child that answers with forkmark_is_child(). */
static int ask_child(const forkmark *mark)
{
	int status = 0;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0)
		_exit(forkmark_is_child(mark) ? 7 : 8);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(parent_is_no_child)
{
	forkmark *mark = hive__forkmark_new();

	CHECK(mark);
	CHECK(!forkmark_is_child(mark));
	hive__forkmark_free(mark);
}

TEST(child_sees_that_it_is_one)
{
	forkmark *mark;

	if (!kernel_wipes_pages()) {
		test_skip(NO_WIPING);
		return;
	}
	mark = hive__forkmark_new();
	CHECK(mark);
	CHECK_EQ(ask_child(mark), 7);
	CHECK(!forkmark_is_child(mark)); /* and its birth changed nothing here */
	CHECK_EQ(ask_child(mark), 7);
	hive__forkmark_free(mark);
}

TEST(grandchild_is_a_child_too)
{
	forkmark *mark;
	int status = 0;
	pid_t child;

	if (!kernel_wipes_pages()) {
		test_skip(NO_WIPING);
		return;
	}
	mark = hive__forkmark_new();
	child = fork();
	CHECK(mark && child >= 0);
	if (child == 0)
		_exit(ask_child(mark));
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(WEXITSTATUS(status), 7);
	hive__forkmark_free(mark);
}

TEST(mark_made_in_a_child_is_its_own)
{
	int status = 0;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		forkmark *mark = hive__forkmark_new();

		_exit(mark && !forkmark_is_child(mark) ? 3 : 4);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(WEXITSTATUS(status), 3);
}

TEST(marks_are_independent)
{
	forkmark *a = hive__forkmark_new(), *b = hive__forkmark_new();

	CHECK(a && b && a != b);
	hive__forkmark_free(a);
	CHECK(!forkmark_is_child(b));
	hive__forkmark_free(b);
	hive__forkmark_free(NULL);
}
