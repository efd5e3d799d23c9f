/* SPDX-License-Identifier: MIT */
/* hive_parallel_sort() against qsort(), which it has to agree with; and equals keep their order. */
#include <rophive/hive.h>

#include <math.h>

#include "base/atomic.h"
#include "base/rng.h"
#include "support/real.h"
#include "test.h"

static struct hive *hive;
static uint64_t seed;

static uint64_t draw(void)
{
	return rng_mix(++seed);
}

static void begin(int32_t compute)
{
	hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = compute });
}

/* Sorted by both, the same bytes. */
static void check_same(void *items, size_t count, size_t bytes, hive_compare_fn *compare)
{
	char *copy = malloc(count * bytes + 1);

	CHECK(copy);
	memcpy(copy, items, count * bytes);
	CHECK_OK(hive_parallel_sort(hive, items, count, bytes, compare, HIVE_FOREVER));
	qsort(copy, count, bytes, compare);
	CHECK(memcmp(copy, items, count * bytes) == 0);
	free(copy);
}

static const size_t sizes[] = { 0, 1, 2, 3, 12, 13, 100, 255, 256, 257, 5000, 70000, 300000 };

static size_t size_of(size_t i)
{
	return sizes[i] > 5000 ? sizes[i] / (size_t)test_slowness() : sizes[i];
}

#define FOR_SIZES(n) \
	for (size_t size_i = 0, n; size_i < sizeof sizes / sizeof *sizes && ((n = size_of(size_i)), true); size_i++)

/* Few different ones, many, all alike, in order, in the opposite order. */
static uint64_t pattern(int kind, size_t i, size_t n)
{
	switch (kind) {
	case 0:
		return draw();
	case 1:
		return draw() % 10;
	case 2:
		return 42;
	case 3:
		return i;
	default:
		return n - i;
	}
}

TEST(numbers_of_each_type_are_sorted_as_qsort_does)
{
	begin(2);
	for (int kind = 0; kind < 5; kind++) {
		FOR_SIZES(n)
		{
			uint32_t *small = malloc(n * sizeof *small + 8);
			uint64_t *large = malloc(n * sizeof *large + 8);

			CHECK(small && large);
			for (size_t i = 0; i < n; i++)
				small[i] = (uint32_t)pattern(kind, i, n);
			check_same(small, n, 4, hive_compare_i32);
			for (size_t i = 0; i < n; i++)
				small[i] = (uint32_t)pattern(kind, i, n);
			check_same(small, n, 4, hive_compare_u32);
			for (size_t i = 0; i < n; i++)
				large[i] = pattern(kind, i, n);
			check_same(large, n, 8, hive_compare_i64);
			for (size_t i = 0; i < n; i++)
				large[i] = pattern(kind, i, n);
			check_same(large, n, 8, hive_compare_u64);
			free(small);
			free(large);
		}
	}
	real_end(hive, HIVE_DRAIN);
}

TEST(doubles_have_an_order_too)
{
	double odd[] = { 0.0, -0.0, 1.5, -1.5, INFINITY, -INFINITY, 1e-310, -1e-310, 3.0 };

	begin(2);
	for (size_t n = 10; n < 2000; n *= 3) {
		double *items = malloc(n * sizeof *items);

		CHECK(items);
		for (size_t i = 0; i < n; i++)
			items[i] = draw() % 4 ? (double)(int64_t)draw() / 1e9 : odd[draw() % 9];
		items[n / 2] = (double)NAN;
		items[n / 3] = -(double)NAN;
		CHECK_OK(hive_parallel_sort(hive, items, n, sizeof *items, hive_compare_double, HIVE_FOREVER));
		CHECK(isnan(items[n - 1]) && isnan(items[n - 2]) && !isnan(items[n - 3]));
		for (size_t i = 1; i < n - 2; i++)
			CHECK(items[i - 1] <= items[i]);
		free(items);
	}
	real_end(hive, HIVE_DRAIN);
}

struct record {
	uint32_t key, number;
	char text[11];
};

static int by_key(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

static void check_records(size_t n, uint32_t keys)
{
	struct record *records = malloc(n * sizeof *records + 1);

	CHECK(records);
	for (size_t i = 0; i < n; i++) {
		records[i] = (struct record){ (uint32_t)(draw() % keys), (uint32_t)i, { 0 } };
		snprintf(records[i].text, sizeof records[i].text, "%u", records[i].key);
	}
	CHECK_OK(hive_parallel_sort(hive, records, n, sizeof *records, by_key, HIVE_FOREVER));
	for (size_t i = 0; i < n; i++) {
		CHECK_EQ(strtoul(records[i].text, NULL, 10), records[i].key);
		if (i > 0)
			CHECK(records[i - 1].key < records[i].key ||
			      (records[i - 1].key == records[i].key && records[i - 1].number < records[i].number));
	}
	free(records);
}

TEST(equals_keep_their_order)
{
	for (int32_t workers = 0; workers <= 3; workers++) {
		begin(workers);
		FOR_SIZES(n)
		{
			check_records(n, 1000);
			check_records(n, 3);
		}
		real_end(hive, HIVE_DRAIN);
	}
}

static int sort_in_fiber(void *arg)
{
	(void)arg;
	check_records(20000, 100);
	return 0;
}

static void sort_in_task(void *arg)
{
	check_records(20000, 100);
	gate_open(arg);
}

static void refuse_in_micro_task(void *arg)
{
	int items[2] = { 2, 1 };

	CHECK_ERR(hive_parallel_sort(hive, items, 2, 4, hive_compare_i32, HIVE_FOREVER), -EDEADLK);
	gate_open(arg);
}

TEST(fibers_and_tasks_sort_as_well)
{
	struct gate gate;

	gate_init(&gate);
	begin(2);
	CHECK_OK(hive_block_on(hive, sort_in_fiber, NULL, HIVE_FOREVER, NULL));
	CHECK_OK(hive_post_compute(hive, sort_in_task, &gate));
	gate_pass(&gate);
	CHECK_OK(hive_post(hive, refuse_in_micro_task, &gate));
	gate_pass(&gate);
	real_end(hive, HIVE_DRAIN);
	gate_destroy(&gate);
}

/* A comparison that takes the time away: it is over somewhere in the middle. */
static int64_t limit_ns;
static ATOMIC(int64_t) comparisons;

static int compare_slowly(const void *a, const void *b)
{
	int64_t n = add_relaxed(&comparisons, INT64_C(1));

	while (n == 20000 && hive_now(NULL) < limit_ns)
		sched_yield();
	return hive_compare_i32(a, b);
}

TEST(at_the_deadline_no_item_is_lost)
{
	enum { N = 30000 };
	static int items[N];
	static bool there[N];

	begin(2);
	for (int i = 0; i < N; i++)
		items[i] = (int)((int64_t)i * 7919 % N);
	store_relaxed(&comparisons, 0);
	limit_ns = hive_deadline(NULL, HIVE_MS(50));
	CHECK_ERR(hive_parallel_sort(hive, items, N, sizeof *items, compare_slowly, limit_ns), -ETIMEDOUT);
	for (int i = 0; i < N; i++) {
		CHECK(items[i] >= 0 && items[i] < N && !there[items[i]]);
		there[items[i]] = true;
	}
	real_end(hive, HIVE_DRAIN);
}

TEST(mistakes_are_told)
{
	int items[2] = { 2, 1 };

	begin(1);
	CHECK_ERR(hive_parallel_sort(NULL, items, 2, 4, hive_compare_i32, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_parallel_sort(hive, NULL, 2, 4, hive_compare_i32, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_parallel_sort(hive, items, 2, 0, hive_compare_i32, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_parallel_sort(hive, items, 2, 4, NULL, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_parallel_sort(hive, items, SIZE_MAX, 4, hive_compare_i32, HIVE_FOREVER), -EINVAL);
	CHECK_OK(hive_parallel_sort(hive, NULL, 0, 4, hive_compare_i32, HIVE_FOREVER));
	CHECK_EQ(items[0], 2);
	real_end(hive, HIVE_DRAIN);
}
