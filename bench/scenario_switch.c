/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "bench.h"
#include "fiber/stack.h"
#include "fiber/switch.h"
#include "sync.h"

/* switch: what going from one stack to another costs, alone. The peer is bench/peers/boost_context.cpp. These parts have no public
 * face, so this file may look into src/fiber (tools/check/layers.py).                                                     */
struct pair {
	struct context here, there;
	int64_t rounds; /* made by the other side */
};

static void back_at_once(void *arg)
{
	struct pair *pair = arg;
	for (;;) {
		pair->rounds++;
		context_switch(&pair->there, &pair->here);
	}
}

/* As two fibers do that hand over to each other. */
static int64_t time_switches(struct pair *pair, int64_t pairs)
{
	int64_t begin = sync_now();
	for (int64_t i = 0; i < pairs; i++)
		context_switch(&pair->here, &pair->there);
	return sync_now() - begin;
}

/* As a worker does that resumes fibers. */
static int64_t time_enters(struct pair *pair, int64_t pairs)
{
	int64_t begin = sync_now();
	for (int64_t i = 0; i < pairs; i++)
		context_enter(&pair->here, &pair->there);
	return sync_now() - begin;
}

static int64_t time_stacks(struct stacks *stacks, struct stack_cache *cache, int64_t pairs)
{
	int64_t begin = sync_now();
	for (int64_t i = 0; i < pairs; i++) {
		struct stack stack;
		if (hive__stack_get(stacks, cache, 0, &stack) < 0)
			return 0;
		hive__stack_put(stacks, cache, stack);
	}
	return sync_now() - begin;
}

enum { SLICES = 100 }; /* on a busy machine some are undisturbed */

struct times {
	int64_t slices[SLICES];
};

static int compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Nanoseconds for one of `each` operations in the median slice and in the best. */
static void put_times(struct record *result, const char *median, const char *best, struct times *times, int64_t each)
{
	qsort(times->slices, SLICES, sizeof *times->slices, compare_times);
	record_metric(result, best, (double)times->slices[0] / (double)each);
	record_metric(result, median, (double)times->slices[SLICES / 2] / (double)each);
}

static void warm_up(struct pair *pair, struct stacks *stacks, struct stack_cache *cache, int64_t n)
{
	time_switches(pair, n);
	time_enters(pair, n);
	time_stacks(stacks, cache, n);
}

static int measure(struct pair *pair, struct stacks *stacks, const struct bench_params *params, struct record *result)
{
	struct stack_cache cache = { 0 };
	struct times switches, enters, gets;
	int64_t n = params->n / SLICES + 1, total_ns = 0;
	warm_up(pair, stacks, &cache, 10 * n);
	pair->rounds = 0;
	for (int i = 0; i < SLICES; i++) {
		total_ns += switches.slices[i] = time_switches(pair, n);
		enters.slices[i] = time_enters(pair, n);
		gets.slices[i] = time_stacks(stacks, &cache, n);
	}
	hive__stack_cache_empty(stacks, &cache);
	if (pair->rounds != 2 * n * SLICES)
		return bench_wrong("switches", (uint64_t)(2 * n * SLICES), (uint64_t)pair->rounds);
	bench_put_rate(result, 2 * (double)(n * SLICES), total_ns);
	put_times(result, "switch_ns", "switch_best_ns", &switches, 2 * n);
	put_times(result, "enter_switch_ns", "enter_switch_best_ns", &enters, 2 * n);
	put_times(result, "stack_get_put_ns", "stack_get_put_best_ns", &gets, n);
	bench_put_memory(result);
	return BENCH_OK;
}

int bench_switch(const struct bench_params *params, struct record *result)
{
	const struct memory memory = { hive__memory_system, NULL };
	struct pair pair = { .rounds = 0 };
	struct stacks *stacks;
	struct stack stack;
	int code = hive__stacks_create(&memory, &stacks);
	if (code)
		return bench_failed("stacks", code);
	code = hive__stack_get(stacks, NULL, 0, &stack);
	if (code) {
		hive__stacks_destroy(stacks);
		return bench_failed("a stack", code);
	}
	context_here(&pair.here);
	context_make(&pair.there, stack.low, stack.bytes - STACK_TOP, back_at_once, &pair);
	code = measure(&pair, stacks, params, result);
	context_destroy(&pair.there);
	hive__stacks_destroy(stacks);
	return code;
}
