/* SPDX-License-Identifier: MIT */
/* The list of arrays behind a lane, with arrays of three. */
#define CHUNK_TASKS 3
#include "queue/chunks.h"

#include "unit.h"

static struct unit_memory memory;
static struct chunk_store store;
static struct chunks list;

static void start(size_t keep)
{
	unit_memory_init(&memory);
	chunk_store_init(&store, &memory.memory, keep);
	list = (struct chunks){ 0 };
}

static uint64_t take(void)
{
	struct chunk *empty = NULL;
	uint64_t number = number_of(chunks_take(&list, &empty));

	chunks_free(empty, &store);
	return number;
}

static void drain(uint64_t first)
{
	while (list.count > 0)
		CHECK_EQ(take(), first++);
	CHECK(list.first == NULL && list.last == NULL);
}

static void end(void)
{
	chunk_store_destroy(&store);
	CHECK_EQ(atomic_load(&memory.live), 0);
}

static const struct hive_task *numbers(uint64_t first, size_t n)
{
	static struct hive_task tasks[32];

	CHECK(n <= 32);
	for (size_t i = 0; i < n; i++)
		tasks[i] = task_of(first + i);
	return tasks;
}

/* Small batches go into the pieces that are there, large ones are laid out first: as a lane does it. */
static int append(uint64_t first, size_t n)
{
	struct chunks batch = { 0 };
	int r;

	if (n <= CHUNK_TASKS)
		return chunks_append(&list, numbers(first, n), n, &store);
	r = chunks_fill(&batch, numbers(first, n), n, &store);
	if (r == 0)
		chunks_join(&list, &batch);
	return r;
}

TEST(one_task_in_one_out)
{
	start(0);
	CHECK_OK(append(5, 1));
	CHECK_EQ(list.count, 1);
	CHECK_EQ(take(), 5);
	CHECK_EQ(list.count, 0);
	CHECK(list.first == NULL && list.last == NULL);
	CHECK_EQ(atomic_load(&memory.live), 0);
	end();
}

/* Every size around the size of a chunk. */
TEST(batches_of_any_size_keep_their_order)
{
	for (size_t n = 1; n <= 10; n++) {
		start(2);
		CHECK_OK(append(0, n));
		CHECK_OK(append(n, n));
		CHECK_EQ(list.count, 2 * n);
		drain(0);
		end();
	}
}

TEST(order_holds_while_it_is_filled_and_emptied)
{
	uint64_t in = 0, out = 0;

	start(2);
	for (int i = 0; i < 200; i++) {
		CHECK_OK(append(in, 1 + (size_t)i % 5));
		in += 1 + (uint64_t)i % 5;
		for (int k = 0; k < 2 && list.count > 0; k++)
			CHECK_EQ(take(), out++);
		CHECK_EQ(list.count, in - out);
	}
	drain(out);
	end();
}

TEST(filling_with_nothing_allocates_nothing)
{
	struct chunks batch = { 0 };

	start(0);
	CHECK_OK(chunks_fill(&batch, NULL, 0, &store));
	CHECK_EQ(atomic_load(&memory.made), 0);
	CHECK(batch.first == NULL && batch.count == 0);
	end();
}

TEST(room_left_in_the_last_chunk_is_used_first)
{
	start(0);
	CHECK_OK(append(0, 1));
	CHECK_OK(append(1, 2));
	CHECK_EQ(atomic_load(&memory.made), 1);
	CHECK_OK(append(3, 1));
	CHECK_EQ(atomic_load(&memory.made), 2);
	drain(0);
	end();
}

TEST(small_batch_may_lie_in_two_chunks)
{
	start(0);
	CHECK_OK(append(0, 2));
	CHECK_OK(append(2, 3));
	CHECK_EQ(atomic_load(&memory.made), 2);
	CHECK_EQ(list.count, 5);
	drain(0);
	end();
}

/* A chunk that was not full when a batch was joined behind it is used up where it ends. */
TEST(joined_batches_keep_their_order_over_partial_chunks)
{
	uint64_t in = 0;

	start(0);
	for (size_t n = 1; n <= 8; n++) {
		CHECK_OK(append(in, 1));
		CHECK_OK(append(in + 1, n + CHUNK_TASKS));
		in += n + CHUNK_TASKS + 1;
	}
	CHECK_EQ(list.count, in);
	drain(0);
	CHECK_EQ(atomic_load(&memory.live), 0);
	end();
}

TEST(batch_joins_an_empty_list)
{
	start(0);
	CHECK_OK(append(0, 7));
	CHECK_EQ(list.count, 7);
	CHECK_EQ(take(), 0);
	CHECK_OK(append(7, 1));
	drain(1);
	end();
}

/* Each allocation of a batch of five chunks fails in turn: nothing is appended, nothing leaks, the next try works. */
TEST(large_batch_is_all_or_none)
{
	for (long n = 1; n <= 5; n++) {
		start(0);
		CHECK_OK(append(0, 2));
		unit_memory_fail(&memory, n);
		CHECK_ERR(append(2, 13), -ENOMEM);
		CHECK_EQ(list.count, 2);
		CHECK_EQ(atomic_load(&memory.live), 1);
		memory.fails_from = 0;
		CHECK_OK(append(2, 13));
		drain(0);
		end();
	}
}

TEST(small_batch_is_all_or_none)
{
	start(0);
	CHECK_OK(append(0, 2));
	unit_memory_fail(&memory, 1);
	CHECK_ERR(append(2, 2), -ENOMEM);
	CHECK_EQ(list.count, 2);
	CHECK_OK(append(2, 1)); /* fits */
	drain(0);
	CHECK_ERR(append(0, 1), -ENOMEM);
	CHECK(list.first == NULL && list.count == 0);
	end();
}

TEST(failed_batch_gives_chunks_back_to_the_store)
{
	struct chunks batch = { 0 };

	start(8);
	unit_memory_fail(&memory, 3);
	CHECK_ERR(chunks_fill(&batch, numbers(0, 9), 9, &store), -ENOMEM);
	CHECK_EQ(store.spare_count, 2);
	end();
}

TEST(used_chunks_are_handed_out_for_later)
{
	struct chunk *empty = NULL;

	start(0);
	CHECK_OK(append(0, 7));
	for (uint64_t i = 0; i < 7; i++)
		CHECK_EQ(number_of(chunks_take(&list, &empty)), i);
	CHECK_EQ(atomic_load(&memory.live), 3); /* nothing freed under the lock */
	CHECK(empty && empty->next && empty->next->next && !empty->next->next->next);
	chunks_free(empty, &store);
	CHECK_EQ(atomic_load(&memory.live), 0);
	chunks_free(NULL, &store);
	end();
}

TEST(store_keeps_as_many_as_it_was_told)
{
	start(2);
	CHECK_OK(append(0, 12));
	CHECK_EQ(atomic_load(&memory.live), 4);
	drain(0);
	CHECK_EQ(store.spare_count, 2);
	CHECK_EQ(atomic_load(&memory.live), 2);
	end();
}

TEST(spare_chunks_are_used_before_memory)
{
	start(4);
	CHECK_OK(append(0, 12));
	drain(0);
	unit_memory_fail(&memory, 1);
	CHECK_OK(append(0, 12));
	drain(0);
	CHECK_ERR(append(0, 13), -ENOMEM);
	end();
}

/* A reserve is for good: after each drain it is there again, although the store was told to keep nothing. */
TEST(reserved_chunks_come_back)
{
	start(0);
	CHECK_OK(chunk_store_reserve(&store, 4));
	unit_memory_fail(&memory, 1);
	for (int i = 0; i < 5; i++) {
		CHECK_OK(append(0, 12));
		drain(0);
	}
	CHECK_EQ(atomic_load(&memory.made), 0);
	CHECK_EQ(store.spare_count, 4);
	end();
}

TEST(reserve_that_fails_keeps_what_it_got)
{
	start(0);
	unit_memory_fail(&memory, 3);
	CHECK_ERR(chunk_store_reserve(&store, 4), -ENOMEM);
	CHECK_EQ(store.spare_count, 2);
	end();
}

TEST(recycled_chunk_starts_empty)
{
	start(1);
	CHECK_OK(append(0, 2));
	drain(0);
	CHECK_OK(append(7, 3));
	CHECK_EQ(list.first->begin, 0);
	CHECK_EQ(list.first->end, 3);
	drain(7);
	end();
}

static void get_and_put(int index, void *arg)
{
	const int *count = arg;

	(void)index;
	for (int i = 0; i < *count; i++) {
		struct chunk *a = chunk_get(&store), *b = chunk_get(&store);

		CHECK(a && b && a != b);
		a->end = b->end = (uint32_t)i;
		chunk_put(&store, a);
		chunk_put(&store, b);
	}
}

TEST(threads_share_the_store)
{
	int count = rounds(20000);

	start(3);
	crew_run(4, get_and_put, &count);
	CHECK(store.spare_count <= 3);
	end();
}
