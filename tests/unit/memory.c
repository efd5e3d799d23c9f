/* SPDX-License-Identifier: MIT */
/* Blocks on cache lines, zeroed, from whatever allocator the host gives us. */
#include "base/memory.h"

#include "base/atomic.h"
#include "unit.h"

static const struct memory system_memory = { hive__memory_system, NULL };

TEST(blocks_start_on_a_cache_line)
{
	void *blocks[200];

	for (size_t i = 0; i < 200; i++) {
		blocks[i] = hive__memory_new(&system_memory, i * 7 + 1);
		CHECK(blocks[i]);
		CHECK_EQ((uintptr_t)blocks[i] % CACHE_LINE, 0);
	}
	for (size_t i = 0; i < 200; i++)
		hive__memory_free(&system_memory, blocks[i]);
}

TEST(blocks_are_zeroed_even_when_the_memory_was_used)
{
	for (int round = 0; round < 20; round++) {
		unsigned char *block = hive__memory_new(&system_memory, 1000);

		CHECK(block);
		for (int i = 0; i < 1000; i++)
			CHECK_EQ(block[i], 0);
		memset(block, 0xff, 1000);
		hive__memory_free(&system_memory, block);
	}
}

TEST(blocks_do_not_overlap)
{
	unsigned char *blocks[50];

	for (int i = 0; i < 50; i++) {
		blocks[i] = hive__memory_new(&system_memory, 65);
		CHECK(blocks[i]);
		memset(blocks[i], i, 65);
	}
	for (int i = 0; i < 50; i++) {
		for (int k = 0; k < 65; k++)
			CHECK_EQ(blocks[i][k], i);
		hive__memory_free(&system_memory, blocks[i]);
	}
}

TEST(nothing_can_be_freed)
{
	struct unit_memory memory;

	unit_memory_init(&memory);
	hive__memory_free(&memory.memory, NULL);
	CHECK_EQ(atomic_load(&memory.live), 0);
}

TEST(block_of_no_bytes_can_be_had_and_freed)
{
	void *block = hive__memory_new(&system_memory, 0);

	CHECK(block);
	hive__memory_free(&system_memory, block);
}

TEST(each_block_is_one_request_and_one_return)
{
	struct unit_memory memory;
	void *a, *b;

	unit_memory_init(&memory);
	a = hive__memory_new(&memory.memory, 10);
	b = hive__memory_new(&memory.memory, 10000);
	CHECK(a && b && a != b);
	CHECK_EQ(atomic_load(&memory.made), 2);
	CHECK_EQ(atomic_load(&memory.live), 2);
	hive__memory_free(&memory.memory, a);
	CHECK_EQ(atomic_load(&memory.live), 1);
	hive__memory_free(&memory.memory, b);
	CHECK_EQ(atomic_load(&memory.live), 0);
}

TEST(refusal_of_the_allocator_is_passed_on)
{
	struct unit_memory memory;

	unit_memory_init(&memory);
	unit_memory_fail(&memory, 1);
	CHECK(hive__memory_new(&memory.memory, 1) == NULL);
	CHECK_EQ(atomic_load(&memory.made), 1);
	CHECK_EQ(atomic_load(&memory.live), 0);
}

TEST(absurd_sizes_are_refused_without_asking)
{
	struct unit_memory memory;

	unit_memory_init(&memory);
	CHECK(hive__memory_new(&memory.memory, SIZE_MAX) == NULL);
	CHECK(hive__memory_new(&memory.memory, SIZE_MAX - 16) == NULL);
	CHECK(hive__memory_new(&memory.memory, SIZE_MAX / 2 + 1) == NULL);
	CHECK_EQ(atomic_load(&memory.made), 0);
}

/* An allocator with malloc's alignment and no more: every offset within a line must do. */
static void *offset_allocate(void *arg, void *old, size_t bytes)
{
	size_t *offset = arg;
	char *block;

	if (bytes == 0) {
		free(old ? (char *)old - *offset : NULL);
		return NULL;
	}
	block = malloc(bytes + 64);
	return block ? block + *offset : NULL;
}

TEST(any_alignment_of_the_allocator_will_do)
{
	for (size_t offset = 0; offset <= 64; offset += 16) {
		struct memory memory = { offset_allocate, &offset };
		char *block = hive__memory_new(&memory, 300);

		CHECK(block);
		CHECK_EQ((uintptr_t)block % CACHE_LINE, 0);
		memset(block, 1, 300); /* the sanitizer watches both ends */
		hive__memory_free(&memory, block);
	}
}

TEST(the_systems_hook_behaves_like_realloc)
{
	char *block = hive__memory_system(NULL, NULL, 10);

	CHECK(block);
	memcpy(block, "123456789", 10);
	block = hive__memory_system(NULL, block, 10000);
	CHECK(block);
	CHECK_STR(block, "123456789");
	CHECK(hive__memory_system(NULL, block, 0) == NULL);
	CHECK(hive__memory_system(NULL, NULL, 0) == NULL);
}
