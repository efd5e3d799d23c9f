/* SPDX-License-Identifier: MIT */
/* The shared pool under many posters and takers, so small that every edge is met: few lanes, short rings, tiny chunks. */
#define LANE_CAPACITY 4
#define LANE_START (UINT64_MAX / 2 - 100)
#define CHUNK_TASKS 2
#define POOL_LANES 4
#include "queue/pool.h"

#include "unit.h"

enum { POSTERS = 4, TAKERS = 3, CREW = POSTERS + TAKERS };

struct fair {
	struct pool pool;
	struct unit_memory memory;
	struct tally tally;
	uint32_t each, batch, claimed;
	_Atomic(int) posting;
	_Atomic(uint32_t) refused;
	bool closes;
};

static void fair_init(struct fair *f, uint32_t each, uint32_t batch)
{
	*f = (struct fair){ .each = each / batch * batch, .batch = batch };
	unit_memory_init(&f->memory);
	pool_init(&f->pool, &f->memory.memory, 2);
	tally_init(&f->tally, POSTERS * f->each);
	atomic_init(&f->posting, POSTERS);
}

static void fair_end(struct fair *f)
{
	CHECK(pool_is_empty(&f->pool));
	CHECK_EQ(pool_length(&f->pool), 0);
	CHECK_EQ(pool_accepted(&f->pool), atomic_load(&f->tally.total));
	CHECK_EQ(atomic_load(&f->tally.total) + atomic_load(&f->refused), f->tally.count);
	free((void *)(uintptr_t)f->tally.seen);
	pool_destroy(&f->pool);
	CHECK_EQ(atomic_load(&f->memory.live), 0);
}

static void post_all(struct fair *f, uint32_t poster)
{
	for (uint32_t i = 0; i < f->each; i += f->batch) {
		struct hive_task tasks[8];
		int r;

		for (uint32_t k = 0; k < f->batch; k++)
			tasks[k] = task_of(poster * f->each + i + k);
		r = pool_give_many(&f->pool, hive__thread_number(), tasks, f->batch, true);
		if (r != 0) {
			CHECK(f->closes && r == -ESHUTDOWN);
			atomic_fetch_add(&f->refused, f->batch);
		}
	}
	atomic_fetch_sub(&f->posting, 1);
}

static void take_all(struct fair *f, uint32_t taker)
{
	int64_t last[POSTERS] = { -1, -1, -1, -1 };
	struct hive_task got[5];

	while (atomic_load(&f->posting) > 0 || !pool_is_empty(&f->pool)) {
		size_t n = pool_take_many(&f->pool, taker, got, 1 + taker);

		for (size_t i = 0; i < n; i++) {
			uint64_t number = number_of(got[i]);

			CHECK((int64_t)number > last[number / f->each]); /* first in, first out for each poster */
			last[number / f->each] = (int64_t)number;
			tally_mark(&f->tally, number);
		}
		if (f->closes && atomic_load(&f->tally.total) > f->tally.count / 2)
			pool_close(&f->pool);
		if (n == 0)
			breathe();
	}
}

static void attend(int index, void *arg)
{
	struct fair *f = arg;

	if (index < POSTERS)
		post_all(f, (uint32_t)index);
	else
		take_all(f, (uint32_t)(index - POSTERS));
}

TEST(many_to_many_exactly_once_one_by_one)
{
	struct fair fair;

	fair_init(&fair, (uint32_t)rounds(20000), 1);
	crew_run(CREW, attend, &fair);
	CHECK(tally_complete(&fair.tally));
	fair_end(&fair);
}

TEST(many_to_many_exactly_once_in_batches)
{
	for (uint32_t batch = 3; batch <= 7; batch += 2) {
		struct fair fair;

		fair_init(&fair, (uint32_t)rounds(12000), batch);
		crew_run(CREW, attend, &fair);
		CHECK(tally_complete(&fair.tally));
		fair_end(&fair);
	}
}

/* Threads come and go: their numbers and lanes are taken over. */
TEST(generations_of_posters_share_the_lanes)
{
	for (int i = 0; i < 20; i++) {
		struct fair fair;

		fair_init(&fair, (uint32_t)rounds(1500), 3);
		crew_run(CREW, attend, &fair);
		CHECK(tally_complete(&fair.tally));
		fair_end(&fair);
	}
}

TEST(one_pool_outlives_generations_of_posters)
{
	struct fair fair;
	uint32_t total = 0;

	fair_init(&fair, (uint32_t)rounds(1500), 3);
	for (int i = 0; i < 20; i++) {
		atomic_store(&fair.posting, POSTERS);
		crew_run(CREW, attend, &fair);
		CHECK(tally_complete(&fair.tally));
		total += atomic_load(&fair.tally.total);
		CHECK_EQ(pool_accepted(&fair.pool), total);
		if (i < 19) {
			free((void *)(uintptr_t)fair.tally.seen);
			tally_init(&fair.tally, POSTERS * fair.each);
		}
	}
	fair.tally.total = total; /* for the last look at the ledger */
	fair.tally.count = total;
	fair_end(&fair);
}

TEST(close_under_fire_refuses_or_delivers)
{
	for (int i = 0; i < 5; i++) {
		struct fair fair;

		fair_init(&fair, (uint32_t)rounds(4000), 4);
		fair.closes = true;
		crew_run(CREW, attend, &fair);
		fair_end(&fair);
	}
}

/* Memory runs out now and then: the batch is refused as a whole, its poster tries again, nothing is lost. */
static void *rare_memory(void *arg, void *old, size_t bytes)
{
	struct unit_memory *m = arg;

	if (bytes > 0 && atomic_fetch_add(&m->made, 1) % 7 == 6)
		return NULL;
	if (bytes > 0)
		atomic_fetch_add(&m->live, 1);
	else if (old)
		atomic_fetch_sub(&m->live, 1);
	return hive__memory_system(NULL, old, bytes);
}

static void insist(int index, void *arg)
{
	struct fair *f = arg;

	if (index >= POSTERS) {
		take_all(f, (uint32_t)(index - POSTERS));
		return;
	}
	for (uint32_t i = 0; i < f->each; i += f->batch) {
		struct hive_task tasks[8];

		for (uint32_t k = 0; k < f->batch; k++)
			tasks[k] = task_of((uint32_t)index * f->each + i + k);
		while (pool_give_many(&f->pool, hive__thread_number(), tasks, f->batch, true) == -ENOMEM)
			breathe();
	}
	atomic_fetch_sub(&f->posting, 1);
}

TEST(want_of_memory_under_fire_loses_nothing)
{
	struct fair fair;

	fair_init(&fair, (uint32_t)rounds(10000), 5);
	fair.pool.store->memory = (struct memory){ rare_memory, &fair.memory };
	fair.pool.store->keep = 0;
	crew_run(CREW, insist, &fair);
	CHECK(tally_complete(&fair.tally));
	fair_end(&fair);
}
