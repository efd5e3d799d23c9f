/* SPDX-License-Identifier: MIT */
/* One lane with a ring of four and chunks of three; its indices wrap after six tasks. */
#define LANE_CAPACITY 4
#define LANE_START (UINT64_MAX / 2 - 5)
#define CHUNK_TASKS 3
#include "queue/lane.h"

#include "unit.h"

static struct unit_memory memory;
static struct chunk_store store;
static struct lane lane;

static void start(void)
{
	unit_memory_init(&memory);
	chunk_store_init(&store, &memory.memory, 2);
	lane_init(&lane);
}

static void end(void)
{
	struct hive_task task;

	while (lane_take(&lane, &task, 1, &store) > 0) {}
	CHECK_EQ(lane_length(&lane), 0);
	hive__memory_free(&memory.memory, load_relaxed(&lane.ring));
	chunk_store_destroy(&store);
	CHECK_EQ(atomic_load(&memory.live), 0);
}

static int give(uint64_t first, size_t n)
{
	struct hive_task tasks[32];

	CHECK(n <= 32);
	for (size_t i = 0; i < n; i++)
		tasks[i] = task_of(first + i);
	return lane_give(&lane, tasks, n, true, &store);
}

/* Takes up to max, expecting first, first + 1, …; how many. */
static size_t take(uint64_t first, size_t max)
{
	struct hive_task tasks[32];
	size_t n = lane_take(&lane, tasks, max, &store);

	CHECK(n <= max);
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(number_of(tasks[i]), first + i);
	return n;
}

TEST(empty_lane_gives_nothing_and_has_no_ring)
{
	start();
	CHECK_EQ(take(0, 4), 0);
	CHECK_EQ(lane_length(&lane), 0);
	CHECK_EQ(atomic_load(&memory.made), 0);
	end();
}

TEST(ring_is_made_once_and_without_it_there_is_no_room)
{
	start();
	CHECK(!lane_has_room(&lane, 1));
	CHECK_OK(lane_make_ring(&lane, &memory.memory));
	CHECK(lane_has_room(&lane, LANE_CAPACITY));
	CHECK(!lane_has_room(&lane, LANE_CAPACITY + 1));
	CHECK_OK(lane_make_ring(&lane, &memory.memory));
	CHECK_EQ(atomic_load(&memory.made), 1);
	end();
}

TEST(one_task_passes)
{
	start();
	CHECK_OK(give(3, 1));
	CHECK_EQ(lane_length(&lane), 1);
	CHECK_EQ(take(3, 4), 1);
	CHECK_EQ(lane_length(&lane), 0);
	CHECK_EQ(take(0, 4), 0);
	end();
}

TEST(ring_filled_to_the_last_slot_keeps_order)
{
	start();
	for (uint64_t i = 0; i < 4; i++)
		CHECK_OK(give(i, 1));
	CHECK_EQ(load_relaxed(&lane.listed), 0);
	CHECK_EQ(take(0, 3), 3);
	CHECK_EQ(take(3, 3), 1);
	end();
}

TEST(what_does_not_fit_goes_behind)
{
	start();
	for (uint64_t i = 0; i < 6; i++)
		CHECK_OK(give(i, 1));
	CHECK_EQ(load_relaxed(&lane.listed), 2);
	CHECK_EQ(lane_length(&lane), 6);
	CHECK_EQ(take(0, 32), 4); /* the ring … */
	CHECK_EQ(take(4, 32), 2); /* … then the list */
	CHECK_EQ(take(6, 32), 0);
	end();
}

/* While the list holds something, a task that would fit into the ring must not overtake it. */
TEST(nobody_overtakes_the_list)
{
	start();
	CHECK_OK(give(0, 4));
	CHECK_OK(give(4, 1));
	CHECK_EQ(take(0, 4), 4);
	CHECK_OK(give(5, 1));
	CHECK_EQ(take(4, 1), 1);
	CHECK_OK(give(6, 1));
	CHECK_EQ(take(5, 1), 1);
	CHECK_EQ(take(6, 1), 1);
	end();
}

TEST(ring_is_used_again_when_the_list_is_empty)
{
	start();
	CHECK_OK(give(0, 5));
	CHECK_EQ(take(0, 32), 5);
	CHECK_EQ(load_relaxed(&lane.listed), 0);
	CHECK_OK(give(5, 2));
	CHECK_EQ(load_relaxed(&lane.listed), 0);
	CHECK_EQ(lane_length(&lane), 2);
	CHECK_EQ(take(5, 32), 2);
	end();
}

TEST(batch_larger_than_the_ring_keeps_its_order)
{
	start();
	CHECK_OK(give(0, 2));
	CHECK_OK(give(2, 30));
	CHECK_EQ(lane_length(&lane), 32);
	for (uint64_t i = 0; i < 32;) {
		size_t n = take(i, 5);

		CHECK(n > 0);
		i += n;
	}
	end();
}

TEST(batch_of_nothing_is_accepted)
{
	start();
	CHECK_OK(give(0, 0));
	CHECK_EQ(lane_length(&lane), 0);
	CHECK_EQ(load_relaxed(&lane.accepted), 0);
	end();
}

/* In, out, full, empty, across the wrap of the indices, against a counter. */
TEST(order_holds_across_the_wrap)
{
	uint64_t in = 0, out = 0, random = 3;

	start();
	for (int i = 0; i < 3000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		if (random >> 63) {
			CHECK_OK(give(in, (size_t)(random >> 40) % 7));
			in += (random >> 40) % 7;
		} else {
			out += take(out, 1 + (size_t)(random >> 40) % 5);
		}
		CHECK_EQ(lane_length(&lane), in - out);
	}
	while (out < in) {
		size_t n = take(out, 7);

		CHECK(n > 0);
		out += n;
	}
	CHECK_EQ(load_relaxed(&lane.accepted), in);
	end();
}

TEST(only_fresh_tasks_count_as_accepted)
{
	struct hive_task task = task_of(0);

	start();
	CHECK_OK(lane_give(&lane, &task, 1, false, &store));
	CHECK_EQ(load_relaxed(&lane.accepted), 0);
	CHECK_OK(give(1, 3));
	CHECK_EQ(load_relaxed(&lane.accepted), 3);
	CHECK_EQ(take(0, 4), 4);
	CHECK_EQ(load_relaxed(&lane.accepted), 3);
	end();
}

TEST(closed_lane_refuses_into_the_ring)
{
	start();
	CHECK_OK(give(0, 2));
	lane_close(&lane);
	CHECK_ERR(give(2, 1), -ESHUTDOWN);
	CHECK_ERR(give(2, 1), -ESHUTDOWN);
	CHECK_EQ(lane_length(&lane), 2);
	CHECK_EQ(load_relaxed(&lane.accepted), 2);
	CHECK_EQ(take(0, 4), 2);
	end();
}

TEST(closed_lane_refuses_into_the_list)
{
	start();
	CHECK_OK(give(0, 6));
	lane_close(&lane);
	CHECK_ERR(give(6, 1), -ESHUTDOWN);
	CHECK_ERR(give(6, 9), -ESHUTDOWN);
	CHECK_EQ(lane_length(&lane), 6);
	CHECK_EQ(take(0, 32), 6);
	end();
}

/* What another queue hands over was accepted there: it must find a place here after the close too. */
TEST(closed_lane_still_takes_what_is_not_fresh)
{
	start();
	lane_close(&lane);
	for (uint64_t i = 0; i < 6; i++) {
		struct hive_task task = task_of(i);

		CHECK_OK(lane_give(&lane, &task, 1, false, &store));
	}
	CHECK_EQ(lane_length(&lane), 6);
	CHECK_EQ(take(0, 32), 4);
	CHECK_EQ(take(4, 32), 2);
	CHECK_ERR(give(0, 1), -ESHUTDOWN);
	end();
}

TEST(closed_empty_lane_is_empty)
{
	start();
	lane_close(&lane);
	lane_close(&lane);
	CHECK_EQ(lane_length(&lane), 0);
	CHECK_EQ(take(0, 4), 0);
	end();
}

TEST(without_memory_for_the_ring_nothing_is_given)
{
	start();
	unit_memory_fail(&memory, 1);
	CHECK_ERR(give(0, 1), -ENOMEM);
	CHECK_EQ(lane_length(&lane), 0);
	CHECK_EQ(load_relaxed(&lane.accepted), 0);
	memory.fails_from = 0;
	CHECK_OK(give(0, 1));
	CHECK_EQ(take(0, 1), 1);
	end();
}

/* Each allocation of the overflow fails in turn: all or none. */
TEST(without_memory_for_the_list_nothing_is_given)
{
	for (long n = 1; n <= 4; n++) {
		start();
		CHECK_OK(give(0, 3));
		unit_memory_fail(&memory, n);
		CHECK_ERR(give(3, 12), -ENOMEM);
		CHECK_EQ(lane_length(&lane), 3);
		CHECK_EQ(load_relaxed(&lane.accepted), 3);
		memory.fails_from = 0;
		CHECK_OK(give(3, 12));
		CHECK_EQ(take(0, 3), 3);
		CHECK_EQ(take(3, 32), 12);
		end();
	}
}

/* ---- threads: one writer, three takers ---- */

struct traffic {
	struct tally tally;
	uint32_t batch;
	_Atomic(bool) over;
	_Atomic(uint32_t) refused;
};

static void travel(int index, void *arg)
{
	struct traffic *t = arg;
	struct hive_task got[3];
	int64_t last = -1;

	if (index == 0) {
		for (uint32_t i = 0; i < t->tally.count; i += t->batch)
			CHECK_OK(give(i, t->batch));
		tally_await(&t->tally);
		atomic_store(&t->over, true);
		return;
	}
	while (!atomic_load(&t->over)) {
		size_t n = lane_take(&lane, got, 1 + (size_t)index % 3, &store);

		for (size_t i = 0; i < n; i++) {
			CHECK((int64_t)number_of(got[i]) > last); /* first in, first out, seen by each taker */
			last = (int64_t)number_of(got[i]);
			tally_mark(&t->tally, number_of(got[i]));
		}
		if (n == 0)
			breathe();
	}
}

TEST(three_takers_lose_nothing_and_see_the_order)
{
	for (uint32_t batch = 1; batch <= 7; batch += 3) {
		struct traffic traffic = { .batch = batch };

		start();
		tally_init(&traffic.tally, (uint32_t)rounds(28000) / 28 * 28);
		crew_run(4, travel, &traffic);
		CHECK_EQ(lane_length(&lane), 0);
		tally_end(&traffic.tally);
		end();
	}
}

static void close_in_the_middle(int index, void *arg)
{
	struct traffic *t = arg;
	struct hive_task task;

	if (index == 0) {
		for (uint32_t i = 0; i < t->tally.count; i++)
			if (give(i, 1) != 0) {
				CHECK_ERR(give(i, 1), -ESHUTDOWN);
				atomic_store(&t->refused, t->tally.count - i);
				break;
			}
		atomic_store(&t->over, true);
	} else if (index == 1) {
		while (atomic_load(&t->tally.total) < t->tally.count / 4)
			breathe();
		lane_close(&lane);
	} else {
		while (!atomic_load(&t->over) || lane_length(&lane) > 0)
			if (lane_take(&lane, &task, 1, &store) == 1)
				tally_mark(&t->tally, number_of(task));
			else
				breathe();
	}
}

TEST(close_under_fire_accounts_for_every_task)
{
	for (int i = 0; i < 10; i++) {
		struct traffic traffic = { .batch = 1 };

		start();
		tally_init(&traffic.tally, (uint32_t)rounds(8000));
		crew_run(4, close_in_the_middle, &traffic);
		CHECK_EQ(atomic_load(&traffic.tally.total) + atomic_load(&traffic.refused), traffic.tally.count);
		CHECK_EQ(load_relaxed(&lane.accepted), atomic_load(&traffic.tally.total));
		free((void *)(uintptr_t)traffic.tally.seen);
		end();
	}
}
