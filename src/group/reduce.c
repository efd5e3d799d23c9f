/* SPDX-License-Identifier: MIT */
/* hive_parallel_reduce(): everybody who takes part has an accumulator of his own, and adds it to that of all when there is nothing left to take. */
#include <string.h>

#include "base/lock.h"
#include "base/memory.h"
#include "group/loop.h"
#include "sched/guest.h"

struct reduction {
	struct loop loop; /* first */
	const struct hive_reduction *how;
	void *arg;
	char *room;             /* I  for as many as may take part, and one more */
	size_t stride;          /* I  of an accumulator: nobody shares a cache line */
	ATOMIC(uint32_t) parts; /* A  how many have taken part */
	struct lock lock;
	char *all; /* L lock */
};

static void add_to_all(struct reduction *reduction, const char *accumulator)
{
	lock_acquire(&reduction->lock);
	reduction->how->combine(reduction->arg, reduction->all, accumulator);
	lock_release(&reduction->lock);
}

static void take_part(void *arg)
{
	struct reduction *reduction = (struct reduction *)arg;
	const struct hive_reduction *how = reduction->how;
	char *accumulator = NULL;
	struct loop_part part;
	int64_t begin, end;

	hive__loop_enter(&reduction->loop, &part);
	while (hive__loop_next(&reduction->loop, &part, &begin, &end)) {
		if (!accumulator) {
			accumulator = reduction->room + add_relaxed(&reduction->parts, 1u) * reduction->stride;
			memcpy(accumulator, how->identity, how->bytes);
		}
		how->fold(reduction->arg, begin, end, accumulator);
	}
	if (accumulator)
		add_to_all(reduction, accumulator);
}

static bool is_complete(const struct hive_reduction *how, const void *ret_result)
{
	return how && ret_result && how->bytes > 0 && how->bytes <= PTRDIFF_MAX / (2 * HIVE_WORKERS_MAX) &&
	       how->identity && how->fold && how->combine;
}

int hive_parallel_reduce(struct hive *hive, int64_t begin, int64_t end, int64_t grain, const struct hive_reduction *how,
                         void *arg, void *ret_result, int64_t deadline_ns)
{
	struct reduction reduction = { .how = how, .arg = arg };
	const struct memory *memory;
	int r = -EINVAL;

	if (is_complete(how, ret_result))
		r = hive__loop_begin(&reduction.loop, hive, HIVE_COMPUTE, begin, end, grain, deadline_ns);
	if (r == 1)
		memcpy(ret_result, how->identity, how->bytes);
	if (r != 0)
		return r < 0 ? r : 0;
	memory = hive__guest_memory(hive);
	reduction.stride = (how->bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	/* That of all stands first; then whoever was asked in, and who asked. */
	reduction.room = (char *)hive__memory_new(memory, (reduction.loop.crew + (size_t)3) * reduction.stride);
	if (!reduction.room)
		return -ENOMEM;
	lock_init(&reduction.lock);
	reduction.all = reduction.room;
	store_relaxed(&reduction.parts, 1u);
	memcpy(reduction.all, how->identity, how->bytes);
	r = hive__loop_run(&reduction.loop, take_part);
	if (r == 0)
		memcpy(ret_result, reduction.all, how->bytes);
	hive__memory_free(memory, reduction.room);
	return r;
}
