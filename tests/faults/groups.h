/* SPDX-License-Identifier: MIT */
#pragma once
/* The calls of the table in functions.c that are about groups, on the hive of fibers.h. Where there is no memory a task of a group runs in
 * place: then the call has done all the same.                                                                            */
#include "fibers.h"

enum { PARTS = 40 };

static int parts_done;
static int32_t sorted[PARTS];

static void do_part(void *arg)
{
	(void)arg;
	parts_done++;
}

static int group_words(struct world *w)
{
	struct hive_group group;

	hive_group_init(&group, w->extra, HIVE_COMPUTE);
	CHECK_OK(hive_group_init_with(&group, w->extra, HIVE_MICRO, NULL));
	CHECK_OK(hive_group_enter(&group));
	CHECK_OK(hive_group_leave(&group, 0));
	CHECK_OK(hive_group_fail(&group, -EIO));
	CHECK_ERR(hive_group_error(&group), -EIO);
	CHECK_ERR(hive_group_wait(&group, HIVE_FOREVER), -EIO);
	return 0;
}

static int run_group(struct hive *hive, enum hive_kind kind)
{
	struct hive_group_options options = { .priority = HIVE_PRIORITY_LOW };
	struct hive_group group;
	int r;

	parts_done = 0;
	CHECK_OK(hive_group_init_with(&group, hive, kind, &options));
	for (int i = 0; i < PARTS; i++)
		hive_group_run_on(&group, kind, do_part, NULL);
	CHECK_OK(hive_group_raise(&group, HIVE_PRIORITY_HIGH)); /* as far as there is memory for it */
	r = hive_group_wait(&group, HIVE_FOREVER);
	CHECK_EQ(parts_done, PARTS);
	return r;
}

static int group_run_compute(struct world *w)
{
	return run_group(w->extra, HIVE_COMPUTE);
}

static int group_run_micro(struct world *w)
{
	return run_group(w->extra, HIVE_MICRO);
}

/* Inside, the first fork makes the stack. */
static int group_fork(struct world *w)
{
	return run_group(w->hive, HIVE_MICRO);
}

static int group_spawn(struct world *w)
{
	struct hive_group group;
	int r, waited;

	hive_group_init(&group, w->extra, HIVE_COMPUTE);
	r = hive_group_spawn(&group, fiber_nop, NULL, NULL);
	waited = hive_group_wait(&group, HIVE_FOREVER);
	CHECK_EQ(r, waited);
	return r;
}

static int say_then(void *arg)
{
	struct hive_group group;
	int r;

	(void)arg;
	hive_group_init(&group, hive_current(), HIVE_COMPUTE);
	r = hive_group_then(&group, do_part, NULL);
	if (r < 0)
		CHECK_OK(hive_group_wait(&group, HIVE_FOREVER)); /* it is as it was */
	return r;
}

static int group_then(struct world *w)
{
	return in_fiber(w, say_then, w);
}

static void do_range(void *arg, int64_t begin, int64_t end)
{
	(void)arg;
	parts_done += (int)(end - begin);
}

static void do_tile(void *arg, const struct hive_tile *tile)
{
	(void)arg;
	parts_done += (int)((tile->row_end - tile->row) * (tile->column_end - tile->column));
}

static int loops(struct world *w)
{
	const struct hive_task tasks[] = { { do_part, NULL }, { do_part, NULL }, { do_part, NULL } };

	parts_done = 0;
	CHECK_OK(hive_parallel_for(w->extra, 0, PARTS, 1, do_range, NULL, HIVE_FOREVER));
	CHECK_OK(hive_parallel_for_on(w->extra, HIVE_MICRO, 0, PARTS, 1, do_range, NULL, HIVE_FOREVER));
	CHECK_OK(hive_parallel_for_2d(w->extra, PARTS, 2, 1, 1, do_tile, NULL, HIVE_FOREVER));
	CHECK_OK(hive_parallel_invoke(w->extra, tasks, 3, HIVE_FOREVER));
	CHECK_EQ(parts_done, 4 * PARTS + 3);
	return 0;
}

static void fold(void *arg, int64_t begin, int64_t end, void *sum)
{
	(void)arg;
	*(int64_t *)sum += end - begin;
}

static void combine(void *arg, void *into, const void *from)
{
	(void)arg;
	*(int64_t *)into += *(const int64_t *)from;
}

static int reduce(struct world *w)
{
	static const int64_t zero;
	const struct hive_reduction how = { sizeof zero, &zero, fold, combine };
	int64_t sum = -1;
	int r = hive_parallel_reduce(w->extra, 0, PARTS, 1, &how, NULL, &sum, HIVE_FOREVER);

	CHECK_EQ(sum, r == 0 ? PARTS : -1);
	return r;
}

static int compare(const void *a, const void *b)
{
	return hive_compare_i32(a, b);
}

static int sort_numbers(struct world *w, hive_compare_fn *by)
{
	bool in_order = true;
	int r;

	for (int i = 0; i < PARTS; i++)
		sorted[i] = (i * 7) % PARTS;
	r = hive_parallel_sort(w->extra, sorted, PARTS, sizeof *sorted, by, HIVE_FOREVER);
	for (int i = 0; i < PARTS; i++) {
		in_order &= sorted[i] == i;
		CHECK(r == 0 || sorted[i] == (i * 7) % PARTS); /* as it was */
	}
	CHECK_EQ(in_order, r == 0);
	return r;
}

static int sort_some(struct world *w)
{
	return sort_numbers(w, compare);
}

static int sort_known(struct world *w)
{
	return sort_numbers(w, hive_compare_i32);
}

static int compare_all(struct world *w)
{
	const int64_t a = 1, b = 2;
	const double x = 1, y = 2;

	(void)w;
	CHECK(hive_compare_i32(&a, &b) < 0 && hive_compare_u32(&b, &a) > 0);
	CHECK(hive_compare_i64(&a, &b) < 0 && hive_compare_u64(&b, &a) > 0 && hive_compare_double(&x, &y) < 0);
	return 0;
}
