/* SPDX-License-Identifier: MIT */
/* hive_parallel_for() and its kin: every element once, whoever calls. */
#include <rophive/hive.h>

#include "base/atomic.h"
#include "support/real.h"
#include "test.h"

enum { MOST = 100000 };

static ATOMIC(uint8_t) seen[MOST];
static ATOMIC(uint64_t) total;

static void forget_all(void)
{
	for (int i = 0; i < MOST; i++)
		store_relaxed(&seen[i], (uint8_t)0);
}

static void mark(void *arg, int64_t begin, int64_t end)
{
	int64_t offset = *(int64_t *)arg;

	CHECK(begin < end);
	for (int64_t i = begin; i < end; i++)
		add_relaxed(&seen[i - offset], (uint8_t)1);
	add_relaxed(&total, (uint64_t)(end - begin));
}

static void check_range(struct hive *hive, enum hive_kind kind, int64_t begin, int64_t length, int64_t grain)
{
	store_relaxed(&total, 0);
	forget_all();
	CHECK_OK(hive_parallel_for_on(hive, kind, begin, begin + length, grain, mark, &begin, HIVE_FOREVER));
	CHECK_EQ(load_relaxed(&total), length);
	for (int64_t i = 0; i < length; i++)
		CHECK_EQ(load_relaxed(&seen[i]), 1);
}

static void check_ranges(struct hive *hive, enum hive_kind kind)
{
	check_range(hive, kind, 0, 0, 0);
	check_range(hive, kind, 0, 1, 0);
	check_range(hive, kind, -7, 100, 0);
	check_range(hive, kind, 5, 1000, 1);
	check_range(hive, kind, 0, 10001, 1000);
	check_range(hive, kind, INT64_MIN, MOST / test_slowness(), 0);
	check_range(hive, kind, INT64_MAX - 5000, 5000, 3);
	check_range(hive, kind, 0, 1000, INT64_MAX);
}

static int in_fiber(void *arg)
{
	check_ranges(arg, HIVE_COMPUTE);
	check_ranges(arg, HIVE_MICRO);
	return 0;
}

static struct gate gate;

static void in_compute_task(void *arg)
{
	check_ranges(arg, HIVE_COMPUTE);
	gate_open(&gate);
}

static void in_micro_task(void *arg)
{
	int64_t zero = 0;

	check_ranges(arg, HIVE_MICRO);
	CHECK_ERR(hive_parallel_for(arg, 0, 10, 0, mark, &zero, HIVE_FOREVER), -EDEADLK);
	gate_open(&gate);
}

static void check_everywhere(int32_t io, int32_t compute)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = io, .compute_workers = compute });

	gate_init(&gate);
	check_ranges(hive, HIVE_COMPUTE);
	check_ranges(hive, HIVE_MICRO);
	CHECK_OK(hive_block_on(hive, in_fiber, hive, HIVE_FOREVER, NULL));
	if (compute > 0) {
		CHECK_OK(hive_post_compute(hive, in_compute_task, hive));
		gate_pass(&gate);
	}
	CHECK_OK(hive_post(hive, in_micro_task, hive));
	gate_pass(&gate);
	gate_destroy(&gate);
	real_end(hive, HIVE_DRAIN);
}

TEST(every_element_is_there_once_whoever_calls)
{
	check_everywhere(1, 1);
	check_everywhere(2, 2);
	check_everywhere(1, 3);
}

TEST(without_workers_the_caller_does_it_all)
{
	check_everywhere(1, 0);
}

TEST(mistakes_are_told)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1 });
	int64_t zero = 0;

	CHECK_ERR(hive_parallel_for(NULL, 0, 1, 0, mark, &zero, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_parallel_for(hive, 0, 1, 0, NULL, NULL, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_parallel_for(hive, 0, 1, -1, mark, &zero, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_parallel_for_on(hive, (enum hive_kind)9, 0, 1, 0, mark, &zero, HIVE_FOREVER), -EINVAL);
	CHECK_OK(hive_parallel_for(hive, 5, 5, 0, mark, &zero, HIVE_FOREVER));
	CHECK_OK(hive_parallel_for(hive, 5, -5, 0, mark, &zero, HIVE_FOREVER)); /* empty too */
	real_end(hive, HIVE_DRAIN);
}

static void dawdle(void *arg, int64_t begin, int64_t end)
{
	int64_t *limit = arg;

	(void)begin, (void)end;
	while (hive_now(NULL) < *limit)
		sched_yield();
	add_relaxed(&total, 1u);
}

/* Pieces that last until the deadline: each of those who take part has done one, then. A loop that is late before it begins does nothing, so
 * it is tried until one does.                                                                                           */
TEST(at_the_deadline_no_new_piece_begins)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 2 });
	int64_t deadline;

	store_relaxed(&total, 0);
	for (int64_t delay_ns = HIVE_MS(2); load_relaxed(&total) == 0; delay_ns *= 2) {
		deadline = hive_deadline(NULL, delay_ns);
		CHECK_ERR(hive_parallel_for(hive, 0, 1000, 1, dawdle, &deadline, deadline), -ETIMEDOUT);
	}
	CHECK(load_relaxed(&total) <= 3);
	CHECK_ERR(hive_parallel_for(hive, 0, 1000, 1, dawdle, &deadline, HIVE_NOWAIT), -ETIMEDOUT);
	real_end(hive, HIVE_DRAIN);
}

/* ---- tables ---- */

static void mark_tile(void *arg, const struct hive_tile *tile)
{
	int64_t columns = *(int64_t *)arg;

	CHECK(tile->row < tile->row_end && tile->column < tile->column_end);
	for (int64_t row = tile->row; row < tile->row_end; row++)
		for (int64_t column = tile->column; column < tile->column_end; column++)
			add_relaxed(&seen[row * columns + column], (uint8_t)1);
}

static void check_table(struct hive *hive, int64_t rows, int64_t columns, int64_t tile_rows, int64_t tile_columns)
{
	forget_all();
	CHECK_OK(hive_parallel_for_2d(hive, rows, columns, tile_rows, tile_columns, mark_tile, &columns, HIVE_FOREVER));
	for (int64_t i = 0; i < rows * columns; i++)
		CHECK_EQ(load_relaxed(&seen[i]), 1);
	CHECK_EQ(load_relaxed(&seen[rows * columns]), 0);
}

TEST(every_place_of_a_table_is_there_once)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 2 });
	int64_t columns = 1;

	check_table(hive, 100, 200, 0, 0);
	check_table(hive, 100, 200, 7, 13);
	check_table(hive, 1, 1, 1000, 1);
	check_table(hive, 0, 10, 1, 1);
	check_table(hive, 10, 0, 1, 1);
	CHECK_ERR(hive_parallel_for_2d(hive, -1, 1, 0, 0, mark_tile, &columns, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_parallel_for_2d(hive, 1, 1, 0, -1, mark_tile, &columns, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_parallel_for_2d(hive, 1, 1, 0, 0, NULL, &columns, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_parallel_for_2d(hive, INT64_MAX, INT64_MAX, 1, 1, mark_tile, &columns, HIVE_FOREVER), -EINVAL);
	real_end(hive, HIVE_DRAIN);
}

/* ---- sums ---- */

struct sum {
	uint64_t sum;
	int64_t least, most;
	char padding[100];
};

static void add_up(void *arg, int64_t begin, int64_t end, void *accumulator)
{
	struct sum *s = accumulator;

	(void)arg;
	for (int64_t i = begin; i < end; i++) {
		s->sum += (uint64_t)i;
		s->least = i < s->least ? i : s->least;
		s->most = i > s->most ? i : s->most;
	}
}

static void add_sums(void *arg, void *into, const void *from)
{
	struct sum *s = into;
	const struct sum *other = from;

	(void)arg;
	s->sum += other->sum;
	s->least = other->least < s->least ? other->least : s->least;
	s->most = other->most > s->most ? other->most : s->most;
}

static const struct sum none = { 0, INT64_MAX, INT64_MIN, { 0 } };
static const struct hive_reduction summing = { sizeof(struct sum), &none, add_up, add_sums };

static int sum_up(void *arg)
{
	for (int i = 0; i < 20; i++) {
		struct sum s;

		CHECK_OK(hive_parallel_reduce(arg, 0, MOST, i % 2 ? 0 : 7, &summing, NULL, &s, HIVE_FOREVER));
		CHECK_EQ(s.sum, (uint64_t)MOST * (MOST - 1) / 2);
		CHECK_EQ(s.least, 0);
		CHECK_EQ(s.most, MOST - 1);
	}
	return 0;
}

TEST(the_sum_of_parts_is_that_of_all)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 3 });
	struct hive_reduction bad = summing;
	struct sum s = { .sum = 77 };
	int result;

	sum_up(hive);
	CHECK_OK(hive_block_on(hive, sum_up, hive, HIVE_FOREVER, NULL));
	CHECK_OK(hive_block_on(hive, sum_up, hive, HIVE_FOREVER, &result));
	CHECK_ERR(hive_parallel_reduce(hive, 0, MOST, 1, &summing, NULL, &s, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_EQ(s.sum, 77); /* untouched */
	CHECK_OK(hive_parallel_reduce(hive, 3, 3, 0, &summing, NULL, &s, HIVE_FOREVER));
	CHECK(s.sum == 0 && s.least == INT64_MAX);
	bad.bytes = 0;
	CHECK_ERR(hive_parallel_reduce(hive, 0, 1, 0, &bad, NULL, &s, HIVE_FOREVER), -EINVAL);
	bad = summing;
	bad.bytes = SIZE_MAX;
	CHECK_ERR(hive_parallel_reduce(hive, 0, 1, 0, &bad, NULL, &s, HIVE_FOREVER), -EINVAL);
	bad = summing;
	bad.combine = NULL;
	CHECK_ERR(hive_parallel_reduce(hive, 0, 1, 0, &bad, NULL, &s, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_parallel_reduce(hive, 0, 1, 0, &summing, NULL, NULL, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_parallel_reduce(NULL, 0, 1, 0, &summing, NULL, &s, HIVE_FOREVER), -EINVAL);
	real_end(hive, HIVE_DRAIN);
}

/* ---- several at once ---- */

static void add_arg(void *arg)
{
	add_relaxed(&total, (uint64_t)(uintptr_t)arg);
}

TEST(all_tasks_are_invoked)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 2 });
	struct hive_task tasks[10];

	store_relaxed(&total, 0);
	for (uintptr_t i = 0; i < 10; i++)
		tasks[i] = (struct hive_task){ add_arg, (void *)(i + 1) };
	CHECK_OK(hive_parallel_invoke(hive, tasks, 10, HIVE_FOREVER));
	CHECK_EQ(load_relaxed(&total), 55);
	CHECK_OK(hive_parallel_invoke(hive, tasks, 1, HIVE_FOREVER));
	CHECK_EQ(load_relaxed(&total), 56);
	CHECK_OK(hive_parallel_invoke(hive, NULL, 0, HIVE_FOREVER));
	CHECK_ERR(hive_parallel_invoke(hive, NULL, 1, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_parallel_invoke(NULL, tasks, 1, HIVE_FOREVER), -EINVAL);
	tasks[3].fn = NULL;
	CHECK_ERR(hive_parallel_invoke(hive, tasks, 10, HIVE_FOREVER), -EINVAL);
	CHECK_EQ(load_relaxed(&total), 56);
	real_end(hive, HIVE_DRAIN);
}
