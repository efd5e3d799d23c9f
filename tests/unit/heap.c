/* SPDX-License-Identifier: MIT */
/* Timers of a worker, by deadline. */
#include "queue/heap.h"

#include "base/rng.h"
#include "unit.h"

static struct unit_memory memory;
static struct heap heap;
static uint64_t sequence;

static void start(void)
{
	unit_memory_init(&memory);
	heap_init(&heap, &memory.memory);
	sequence = 0;
}

static void end(void)
{
	heap_destroy(&heap);
	CHECK_EQ(atomic_load(&memory.live), 0);
}

static int insert(struct hive_timer *timer, int64_t due_ns)
{
	timer->due_ns = due_ns;
	timer->sequence = sequence++;
	return heap_insert(&heap, timer);
}

static struct hive_timer *take_first(void)
{
	struct hive_timer *first = heap_first(&heap);

	if (first)
		heap_remove(&heap, first);
	return first;
}

TEST(empty_heap_is_due_never)
{
	start();
	CHECK(heap_first(&heap) == NULL);
	CHECK_EQ(heap_next_due(&heap), HIVE_FOREVER);
	CHECK(heap_valid(&heap));
	CHECK_EQ(atomic_load(&memory.made), 0);
	end();
}

TEST(one_timer_in_and_out)
{
	struct hive_timer timer;

	start();
	CHECK_OK(insert(&timer, 5));
	CHECK(heap_first(&heap) == &timer);
	CHECK_EQ(heap_next_due(&heap), 5);
	heap_remove(&heap, &timer);
	CHECK(heap_first(&heap) == NULL);
	CHECK_EQ(heap.count, 0);
	end();
}

TEST(timers_come_out_by_deadline)
{
	static const int64_t due[] = { 50, 10, 40, 30, 20, 0, -7, 60, INT64_MAX, INT64_MIN };
	struct hive_timer timers[10];
	int64_t last = INT64_MIN;

	start();
	for (int i = 0; i < 10; i++) {
		CHECK_OK(insert(&timers[i], due[i]));
		CHECK(heap_valid(&heap));
	}
	for (int i = 0; i < 10; i++) {
		struct hive_timer *first = take_first();

		CHECK(first && first->due_ns >= last);
		CHECK(heap_valid(&heap));
		last = first->due_ns;
	}
	end();
}

TEST(equal_deadlines_keep_the_order_in_which_they_were_started)
{
	struct hive_timer timers[100];

	start();
	for (int i = 0; i < 100; i++)
		CHECK_OK(insert(&timers[i], 7));
	for (int i = 0; i < 100; i++)
		CHECK(take_first() == &timers[i]);
	end();
}

TEST(few_deadlines_many_timers_keep_both_orders)
{
	struct hive_timer timers[300];
	struct hive_timer *last = NULL;

	start();
	for (int i = 0; i < 300; i++)
		CHECK_OK(insert(&timers[i], i * 7 % 5));
	for (struct hive_timer *t = take_first(); t; t = take_first()) {
		CHECK(!last || last->due_ns < t->due_ns || (last->due_ns == t->due_ns && last->sequence < t->sequence));
		last = t;
	}
	end();
}

/* From each place of heaps of each small size: the last, the first, an inner one. */
TEST(any_timer_can_be_removed)
{
	for (uint32_t size = 1; size <= 25; size++)
		for (uint32_t at = 0; at < size; at++) {
			struct hive_timer timers[25];

			start();
			for (uint32_t i = 0; i < size; i++)
				CHECK_OK(insert(&timers[i], (int64_t)(i * 11 % size)));
			heap_remove(&heap, heap.entries[at].timer);
			CHECK_EQ(heap.count, size - 1);
			CHECK(heap_valid(&heap));
			end();
		}
}

TEST(removed_timer_does_not_come_out)
{
	struct hive_timer timers[20];

	start();
	for (int i = 0; i < 20; i++)
		CHECK_OK(insert(&timers[i], 20 - i));
	heap_remove(&heap, &timers[13]);
	for (struct hive_timer *t = take_first(); t; t = take_first())
		CHECK(t != &timers[13]);
	end();
}

TEST(moved_timer_finds_its_new_place)
{
	for (int64_t to = -1; to <= 20; to++)
		for (int which = 0; which < 20; which++) {
			struct hive_timer timers[20];

			start();
			for (int i = 0; i < 20; i++)
				CHECK_OK(insert(&timers[i], i));
			timers[which].due_ns = to;
			timers[which].sequence = sequence++;
			heap_update(&heap, &timers[which]);
			CHECK(heap_valid(&heap));
			CHECK_EQ(heap.count, 20);
			CHECK(heap_next_due(&heap) == (to < 0 ? -1 : which == 0 ? (to >= 1 ? 1 : 0) : 0));
			end();
		}
}

TEST(update_allocates_nothing)
{
	struct hive_timer timers[64];

	start();
	for (int i = 0; i < HEAP_FIRST; i++)
		CHECK_OK(insert(&timers[i], i));
	unit_memory_fail(&memory, 1);
	timers[5].due_ns = -1;
	heap_update(&heap, &timers[5]);
	CHECK(heap_first(&heap) == &timers[5]);
	end();
}

TEST(insertion_without_memory_changes_nothing)
{
	struct hive_timer timers[HEAP_FIRST + 1];

	start();
	unit_memory_fail(&memory, 1);
	CHECK_ERR(insert(&timers[0], 1), -ENOMEM);
	CHECK_EQ(heap.count, 0);
	memory.fails_from = 0;
	for (int i = 0; i < HEAP_FIRST; i++)
		CHECK_OK(insert(&timers[i], 100 - i));
	unit_memory_fail(&memory, 1);
	CHECK_ERR(insert(&timers[HEAP_FIRST], 0), -ENOMEM);
	CHECK_EQ(heap.count, HEAP_FIRST);
	CHECK(heap_valid(&heap));
	CHECK_EQ(heap_next_due(&heap), 100 - HEAP_FIRST + 1);
	memory.fails_from = 0;
	CHECK_OK(insert(&timers[HEAP_FIRST], 0));
	CHECK(heap_first(&heap) == &timers[HEAP_FIRST]);
	end();
}

TEST(reserve_makes_insertions_free_of_allocation)
{
	static struct hive_timer timers[1000];

	start();
	CHECK_OK(heap_reserve(&heap, 1000));
	CHECK_OK(heap_reserve(&heap, 10));
	unit_memory_fail(&memory, 1);
	for (int i = 0; i < 1000; i++)
		CHECK_OK(insert(&timers[i], -i));
	CHECK_EQ(atomic_load(&memory.made), 0);
	CHECK(heap_valid(&heap));
	end();
}

TEST(absurd_reserve_is_refused)
{
	start();
	CHECK_ERR(heap_reserve(&heap, SIZE_MAX), -ENOMEM);
	CHECK_ERR(heap_reserve(&heap, (size_t)UINT32_MAX), -ENOMEM);
	CHECK_EQ(heap.capacity, 0);
	end();
}

TEST(growth_keeps_what_is_inside)
{
	static struct hive_timer timers[HEAP_FIRST * 4];

	start();
	for (int i = 0; i < HEAP_FIRST * 4; i++) {
		CHECK_OK(insert(&timers[i], i * 37 % 101));
		CHECK_EQ(heap.count, i + 1);
	}
	CHECK(heap_valid(&heap));
	CHECK_EQ(atomic_load(&memory.live), 1);
	end();
}

/* Several timers were struck out of the array at once: what is left is put in order. */
TEST(rebuilt_heap_is_valid_for_every_size)
{
	static struct hive_timer timers[70];

	for (uint32_t size = 0; size < 70; size++) {
		uint32_t kept = 0;

		start();
		for (uint32_t i = 0; i < size; i++)
			CHECK_OK(insert(&timers[i], (int64_t)(i * 29 % 31)));
		for (uint32_t i = 0; i < size; i++)
			if (heap.entries[i].timer->due_ns % 3 != 0)
				heap.entries[kept++] = heap.entries[i];
		heap_rebuild(&heap, kept);
		CHECK_EQ(heap.count, kept);
		CHECK(heap_valid(&heap));
		for (int64_t last = -1; heap.count > 0;) {
			struct hive_timer *t = take_first();

			CHECK(t->due_ns >= last && t->due_ns % 3 != 0);
			last = t->due_ns;
		}
		end();
	}
}

TEST(validity_check_notices_disorder)
{
	struct hive_timer timers[10];

	start();
	for (int i = 0; i < 10; i++)
		CHECK_OK(insert(&timers[i], i));
	heap.entries[9].due_ns = -1;
	CHECK(!heap_valid(&heap));
	heap.entries[9].due_ns = 9;
	CHECK(heap_valid(&heap));
	timers[3].index = 4;
	CHECK(!heap_valid(&heap));
	end();
}

/* The same operations on a list that is kept sorted. */
enum { MODEL = 200 };
static struct hive_timer *sorted[MODEL];
static uint32_t sorted_count;

static bool earlier(const struct hive_timer *a, const struct hive_timer *b)
{
	return a->due_ns < b->due_ns || (a->due_ns == b->due_ns && a->sequence < b->sequence);
}

static void sorted_insert(struct hive_timer *timer)
{
	uint32_t i = sorted_count++;

	for (; i > 0 && earlier(timer, sorted[i - 1]); i--)
		sorted[i] = sorted[i - 1];
	sorted[i] = timer;
}

static void sorted_remove(const struct hive_timer *timer)
{
	uint32_t i = 0;

	while (sorted[i] != timer)
		i++;
	for (sorted_count--; i < sorted_count; i++)
		sorted[i] = sorted[i + 1];
}

static void compare_with_model(uint64_t seed, int operations, bool check_each)
{
	static struct hive_timer timers[MODEL];
	bool inside[MODEL] = { false };

	start();
	sorted_count = 0;
	for (int i = 0; i < operations; i++) {
		uint32_t which = rng_below(rng_next(&seed), MODEL);
		int64_t due = (int64_t)rng_below(rng_next(&seed), 50);
		struct hive_timer *timer = &timers[which];

		if (!inside[which]) {
			CHECK_OK(insert(timer, due));
			sorted_insert(timer);
			inside[which] = true;
		} else if (rng_below(rng_next(&seed), 2) == 0) {
			heap_remove(&heap, timer);
			sorted_remove(timer);
			inside[which] = false;
		} else {
			sorted_remove(timer);
			timer->due_ns = due;
			timer->sequence = sequence++;
			heap_update(&heap, timer);
			sorted_insert(timer);
		}
		CHECK_EQ(heap.count, sorted_count);
		CHECK(heap_first(&heap) == (sorted_count ? sorted[0] : NULL));
		if (check_each)
			CHECK(heap_valid(&heap));
	}
	for (uint32_t i = 0; i < sorted_count; i++)
		CHECK(take_first() == sorted[i]);
	CHECK(take_first() == NULL);
	end();
}

TEST(random_operations_agree_with_a_sorted_list_step_by_step)
{
	for (uint64_t seed = 1; seed <= 5; seed++)
		compare_with_model(seed, rounds(5000), true);
}

TEST(hundred_thousand_operations_agree_with_a_sorted_list)
{
	compare_with_model(99, rounds(100000), false);
}

TEST(a_million_timers_come_out_in_order)
{
	uint32_t count = (uint32_t)rounds(1000000);
	struct hive_timer *timers = malloc(count * sizeof *timers);
	uint64_t seed = 1;
	int64_t last = -1;

	CHECK(timers);
	start();
	for (uint32_t i = 0; i < count; i++)
		CHECK_OK(insert(&timers[i], (int64_t)(rng_next(&seed) >> 20)));
	CHECK_EQ(heap.count, count);
	CHECK(heap_valid(&heap));
	for (uint32_t i = 0; i < count / 10; i++) {
		struct hive_timer *first = take_first();

		CHECK(first->due_ns >= last);
		last = first->due_ns;
	}
	CHECK(heap_valid(&heap));
	end();
	free(timers);
}

/* A clock set by hand: nothing fires early, everything that is due fires, in order. */
TEST(advancing_time_fires_exactly_what_is_due)
{
	struct hive_timer timers[50];
	uint32_t fired = 0;

	start();
	for (int i = 0; i < 50; i++)
		CHECK_OK(insert(&timers[i], (i * 13 % 50) * 10));
	for (int64_t now = 0; now <= 490; now += 7) {
		for (; heap_next_due(&heap) <= now; fired++)
			CHECK(take_first()->due_ns <= now);
		CHECK_EQ(fired, now / 10 + 1);
		CHECK_EQ(heap_next_due(&heap), fired < 50 ? fired * 10 : HIVE_FOREVER);
	}
	end();
}
