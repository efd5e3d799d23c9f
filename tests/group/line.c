/* SPDX-License-Identifier: MIT */
/* The line of a strand: order, marks, and whose memory it is. */
#include "test.h"

#include "group/line.h"

static void nothing(void *arg)
{
	(void)arg;
}

static int made, freed;

static void put(struct line *l, intptr_t n, bool mark)
{
	struct line_chunk *fresh = NULL;

	if (!line_has_room(l)) {
		fresh = calloc(1, sizeof *fresh);
		CHECK(fresh);
		made++;
	}
	line_put(l, (struct hive_task){ nothing, (void *)n }, mark, &fresh);
	CHECK(!fresh);
}

static void take(struct line *l, intptr_t n, bool mark)
{
	struct line_chunk *empty = NULL;

	CHECK(l->count > 0);
	CHECK_EQ(line_first_is_marked(l), mark);
	CHECK_EQ((intptr_t)line_take(l, &empty).arg, n);
	freed += empty != NULL;
	free(empty);
}

static void end(struct line *l)
{
	CHECK_EQ(l->count, 0);
	CHECK_EQ(made - freed, (l->first != NULL) + (l->spare != NULL));
	free(l->first);
	free(l->spare);
	made = freed = 0;
}

TEST(first_come_first_served_each_with_its_mark)
{
	struct line l = { 0 };

	for (intptr_t i = 0; i < 10 * LINE_TASKS; i++)
		put(&l, i, i % 3 == 0);
	CHECK_EQ(l.count, 10 * LINE_TASKS);
	CHECK_EQ(made, 10);
	for (intptr_t i = 0; i < 10 * LINE_TASKS; i++)
		take(&l, i, i % 3 == 0);
	CHECK_EQ(freed, 8); /* one stays, and a spare */
	end(&l);
}

/* One that is filled and emptied again and again needs no more than it had, and its marks are new each time. */
TEST(memory_is_used_again)
{
	struct line l = { 0 };

	for (int round = 0; round < 50; round++) {
		int n = round % (2 * LINE_TASKS) + 1;

		for (intptr_t i = 0; i < n; i++)
			put(&l, i, round % 2);
		for (intptr_t i = 0; i < n; i++)
			take(&l, i, round % 2);
	}
	CHECK(made <= 2);
	end(&l);
}

/* A line that is never empty goes through its memory in a circle. */
TEST(a_line_that_is_never_empty_needs_three_at_most)
{
	struct line l = { 0 };
	intptr_t next = 0;

	for (intptr_t i = 0; i < 1000; i++) {
		put(&l, i, false);
		if (i >= LINE_TASKS)
			take(&l, next++, false);
	}
	CHECK(made <= 3);
	while (l.count > 0)
		take(&l, next++, false);
	end(&l);
}
