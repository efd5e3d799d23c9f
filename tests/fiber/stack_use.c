/* SPDX-License-Identifier: MIT */
/* Stacks that come and go: caches, the shared list, pages that are given back, several threads. */
#include <pthread.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "support/stacks.h"
#include "test.h"

enum { MANY = 300, CAP = 64 };

static uint32_t cached(const struct stack_cache *cache)
{
	uint32_t count = 0;

	for (int i = 0; i < STACK_CLASSES; i++)
		count += cache->classes[i].count;
	return count;
}

static int compare_lows(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct stack *)a)->low, y = (uintptr_t)((const struct stack *)b)->low;

	return x < y ? -1 : x > y;
}

/* All stacks of the cache and of the shared list are the MANY that were put: none is lost, none is there twice. */
static void check_all_come_back(struct stacks *s, struct stack_cache *cache, struct stack *expected)
{
	struct stack got[MANY];

	for (int i = 0; i < MANY; i++)
		CHECK_OK(hive__stack_get(s, cache, 16384, &got[i]));
	qsort(got, MANY, sizeof *got, compare_lows);
	qsort(expected, MANY, sizeof *expected, compare_lows);
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(got[i].low, expected[i].low);
}

TEST(a_cache_keeps_a_cap_and_shares_the_rest)
{
	struct stacks *s = open_stacks();
	struct stack_cache cache = { 0 }, other = { 0 };
	struct stack stacks[MANY], stack;

	for (int i = 0; i < MANY; i++)
		CHECK_OK(hive__stack_get(s, &cache, 16384, &stacks[i]));
	for (int i = 0; i < MANY; i++) {
		hive__stack_put(s, &cache, stacks[i]);
		CHECK(cached(&cache) <= CAP);
	}
	CHECK(cached(&cache) >= CAP / 2);
	CHECK_OK(hive__stack_get(s, &other, 16384, &stack)); /* shared ones, several at once */
	CHECK(cached(&other) > 0);
	hive__stack_put(s, &other, stack);
	hive__stack_cache_empty(s, &other);
	CHECK_EQ(cached(&other), 0);
	hive__stack_cache_empty(s, &other); /* once more: nothing happens */
	check_all_come_back(s, &cache, stacks);
	for (int i = 0; i < MANY; i++)
		hive__stack_put(s, i % 2 ? &cache : NULL, stacks[i]);
	hive__stack_cache_empty(s, &cache);
	check_all_come_back(s, &cache, stacks);
	hive__stacks_destroy(s);
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

TEST(the_high_water_mark_is_the_lowest_page_that_was_touched)
{
	struct stacks *s = open_stacks();
	size_t page = page_bytes();
	struct stack stack;

	CHECK_OK(hive__stack_get(s, NULL, 16 << 20, &stack)); /* more than one look at the kernel's table */
	CHECK_EQ(hive__stack_used(stack), 0);
	top_of(stack)[-1] = 1;
	CHECK_EQ(hive__stack_used(stack), page);
	top_of(stack)[-(long)(5 * page)] = 1;
	CHECK_EQ(hive__stack_used(stack), 5 * page);
	top_of(stack)[-(long)(3 * page)] = 1;
	CHECK_EQ(hive__stack_used(stack), 5 * page);
	*(char *)stack.low = 1;
	CHECK_EQ(hive__stack_used(stack), stack.bytes);
	hive__stacks_destroy(s);
}

TEST(what_does_not_exist_has_no_high_water_mark)
{
	errno = 7;
	CHECK_EQ(hive__stack_used((struct stack){ (void *)((uintptr_t)1 << 62), 65536 }), 0);
	CHECK_EQ(errno, 7);
}

enum { LARGE = 200 }; /* of 1 MiB; 64 of them may keep their pages */

TEST(many_free_stacks_give_their_pages_back_but_keep_their_top)
{
	struct stacks *s = open_stacks();
	size_t page = page_bytes();
	struct stack stacks[LARGE], stack;
	int cold = 0;

	for (int i = 0; i < LARGE; i++) {
		CHECK_OK(hive__stack_get(s, NULL, 1 << 19, &stacks[i]));
		memset(top_of(stacks[i]) - 4 * page, i, 4 * page);
	}
	for (int i = 0; i < LARGE; i++)
		hive__stack_put(s, NULL, stacks[i]);
	for (int i = 0; i < LARGE; i++) {
		cold += hive__stack_used(stacks[i]) == page;
		for (int k = 0; k < STACK_TOP; k++)
			CHECK_EQ(top_of(stacks[i])[k - STACK_TOP], (char)i);
	}
	CHECK_EQ(cold, LARGE - 64);
	for (int i = 0; i < LARGE; i++) { /* warm ones are handed out first */
		CHECK_OK(hive__stack_get(s, NULL, 1 << 19, &stack));
		CHECK_EQ(hive__stack_used(stack) == page, i >= 64);
	}
	hive__stacks_destroy(s);
}

static void note_it(void *arg, struct stack stack)
{
	struct stack **at = arg;

	*(*at)++ = stack;
}

TEST(a_visit_sees_all_that_were_handed_out)
{
	static const size_t sizes[] = { 0, 1, 100000, 0, 3 << 20, 0, 1 };
	enum { COUNT = sizeof sizes / sizeof *sizes };
	struct stacks *s = open_stacks();
	struct stack given[COUNT], seen[COUNT + 1], *at = seen;

	for (int i = 0; i < COUNT; i++)
		CHECK_OK(hive__stack_get(s, NULL, sizes[i], &given[i]));
	hive__stack_put(s, NULL, given[3]);
	hive__stacks_visit(s, note_it, &at);
	CHECK_EQ(at - seen, COUNT);
	qsort(seen, COUNT, sizeof *seen, compare_lows);
	qsort(given, COUNT, sizeof *given, compare_lows);
	for (int i = 0; i < COUNT; i++) {
		CHECK_EQ(seen[i].low, given[i].low);
		CHECK_EQ(seen[i].bytes, given[i].bytes);
	}
	hive__stacks_destroy(s);
}

/* ---- threads ---- */

enum { THREADS = 4, HELD = 8 };

struct top { /* at the top of each stack, as a fiber would be */
	ATOMIC(uint64_t) owner;
	uint64_t times; /* owner's */
};

static struct {
	struct stacks *stacks;
	ATOMIC(uint64_t) gets;
	ATOMIC(bool) over;
	long rounds;
} crowd;

static struct top *top_object(struct stack stack)
{
	return (struct top *)(void *)(top_of(stack) - sizeof(struct top));
}

static struct stack take(struct stack_cache *cache, size_t bytes, uint64_t self)
{
	struct stack stack;
	uint64_t nobody = 0;

	CHECK_OK(hive__stack_get(crowd.stacks, cache, bytes, &stack));
	CHECK(cas_acquire(&top_object(stack)->owner, &nobody, self));
	top_object(stack)->times++;
	memset(top_of(stack) - 2048, (int)self, 1024); /* over the link of a free stack, too */
	return stack;
}

static void give(struct stack_cache *cache, struct stack stack, uint64_t self)
{
	for (int i = 0; i < 1024; i++)
		CHECK_EQ((top_of(stack) - 2048)[i], (char)self);
	CHECK_EQ(load_relaxed(&top_object(stack)->owner), self);
	store_release(&top_object(stack)->owner, (uint64_t)0);
	hive__stack_put(crowd.stacks, cache, stack);
}

static void *come_and_go(void *arg)
{
	static const size_t sizes[] = { 1, 0, 0, 200000 };
	uint64_t self = (uint64_t)(uintptr_t)arg, random = self * 77777, done = 0;
	struct stack_cache cache = { 0 };
	struct stack held[HELD];

	for (long round = 0; round < crowd.rounds; round++) {
		int count = (int)((random = random * 6364136223846793005u + 1442695040888963407u) >> 40) % HELD + 1;

		for (int i = 0; i < count; i++)
			held[i] = take(round % 5 ? &cache : NULL, sizes[(random >> (2 * i)) & 3], self);
		done += (uint64_t)count;
		for (int i = 0; i < count; i++)
			give((round + i) % 7 ? &cache : NULL, held[i], self);
		if (round % 1000 == 0)
			hive__stack_cache_empty(crowd.stacks, &cache);
	}
	hive__stack_cache_empty(crowd.stacks, &cache);
	add_relaxed(&crowd.gets, done);
	return NULL;
}

static void add_times(void *arg, struct stack stack)
{
	*(uint64_t *)arg += top_object(stack)->times;
}

static void look_at_top(void *arg, struct stack stack)
{
	++*(int *)arg;
	CHECK(load_relaxed(&top_object(stack)->owner) <= THREADS);
}

static void *look_around(void *arg)
{
	(void)arg;
	while (!load_acquire(&crowd.over)) {
		int count = 0;

		hive__stacks_visit(crowd.stacks, look_at_top, &count);
		CHECK(count <= 1000);
	}
	return NULL;
}

TEST(threads_never_share_a_stack)
{
	pthread_t threads[THREADS], watcher;
	uint64_t times = 0;

	crowd.stacks = open_stacks();
	crowd.rounds = 40000 / test_slowness();
	CHECK_EQ(pthread_create(&watcher, NULL, look_around, NULL), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, come_and_go, (void *)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	store_release(&crowd.over, true);
	pthread_join(watcher, NULL);
	hive__stacks_visit(crowd.stacks, add_times, &times);
	CHECK_EQ(times, load_relaxed(&crowd.gets));
	hive__stacks_destroy(crowd.stacks);
}
