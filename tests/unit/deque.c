/* SPDX-License-Identifier: MIT */
/* The local queue: R-47 …. */
#include "queue/deque.h"

#include "unit.h"

enum { SLOTS = 64 };

static struct slot slots[SLOTS];
static struct deque deque;

static void start(uint64_t capacity, uint64_t index)
{
	CHECK(capacity <= SLOTS);
	deque_init(&deque, slots, capacity, index);
}

static int64_t popped(void)
{
	struct hive_task task;

	return deque_pop(&deque, &task) ? (int64_t)number_of(task) : -1;
}

static int64_t stolen(void)
{
	struct hive_task task;

	return deque_steal(&deque, &task) ? (int64_t)number_of(task) : -1;
}

TEST(empty_deque_gives_nothing)
{
	start(4, 0);
	CHECK_EQ(popped(), -1);
	CHECK_EQ(stolen(), -1);
	CHECK_EQ(deque_size(&deque), 0);
	CHECK_EQ(deque_room(&deque), 4);
}

/* At index 0 an empty pop must not run below it and look full. */
TEST(empty_pop_at_index_zero_leaves_room_for_all)
{
	start(2, 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(popped(), -1);
	CHECK_EQ(deque_room(&deque), 2);
	CHECK(deque_push(&deque, task_of(1)));
	CHECK_EQ(stolen(), 1);
}

TEST(owner_takes_the_newest_first)
{
	start(8, 0);
	for (uint64_t i = 0; i < 5; i++)
		CHECK(deque_push(&deque, task_of(i)));
	for (int64_t i = 4; i >= 0; i--)
		CHECK_EQ(popped(), i);
	CHECK_EQ(popped(), -1);
}

TEST(thieves_take_the_oldest_first)
{
	start(8, 0);
	for (uint64_t i = 0; i < 5; i++)
		CHECK(deque_push(&deque, task_of(i)));
	for (int64_t i = 0; i < 5; i++)
		CHECK_EQ(stolen(), i);
	CHECK_EQ(stolen(), -1);
}

TEST(owner_and_thief_meet_in_the_middle)
{
	start(8, 3);
	for (uint64_t i = 0; i < 6; i++)
		CHECK(deque_push(&deque, task_of(i)));
	CHECK_EQ(popped(), 5);
	CHECK_EQ(stolen(), 0);
	CHECK_EQ(popped(), 4);
	CHECK_EQ(stolen(), 1);
	CHECK_EQ(deque_size(&deque), 2);
	CHECK_EQ(stolen(), 2);
	CHECK_EQ(popped(), 3);
	CHECK_EQ(popped(), -1);
	CHECK_EQ(stolen(), -1);
}

TEST(full_deque_refuses_and_keeps_what_it_has)
{
	start(4, 0);
	for (uint64_t i = 0; i < 4; i++)
		CHECK(deque_push(&deque, task_of(i)));
	CHECK_EQ(deque_room(&deque), 0);
	CHECK(!deque_push(&deque, task_of(99)));
	CHECK_EQ(deque_size(&deque), 4);
	CHECK_EQ(stolen(), 0);
	CHECK(deque_push(&deque, task_of(4)));
	CHECK(!deque_push(&deque, task_of(99)));
	for (int64_t i = 4; i >= 1; i--)
		CHECK_EQ(popped(), i);
}

TEST(capacity_of_one_holds_one)
{
	start(1, 0);
	for (uint64_t i = 0; i < 10; i++) {
		CHECK(deque_push(&deque, task_of(i)));
		CHECK(!deque_push(&deque, task_of(99)));
		CHECK_EQ(i % 2 ? popped() : stolen(), (int64_t)i);
		CHECK_EQ(deque_room(&deque), 1);
	}
}

TEST(indices_pass_the_wrap)
{
	start(4, UINT64_MAX - 5);
	for (uint64_t i = 0; i < 40; i += 4) {
		for (uint64_t k = 0; k < 4; k++)
			CHECK(deque_push(&deque, task_of(i + k)));
		CHECK(!deque_push(&deque, task_of(99)));
		CHECK_EQ(deque_size(&deque), 4);
		CHECK_EQ(stolen(), (int64_t)i);
		CHECK_EQ(popped(), (int64_t)i + 3);
		CHECK_EQ(stolen(), (int64_t)i + 1);
		CHECK_EQ(popped(), (int64_t)i + 2);
		CHECK_EQ(popped(), -1);
		CHECK_EQ(deque_room(&deque), 4);
	}
}

TEST(push_many_keeps_the_order_of_the_array)
{
	struct hive_task tasks[] = { task_of(0), task_of(1), task_of(2) };

	start(4, UINT64_MAX - 1);
	CHECK(deque_room(&deque) >= 3);
	deque_push_many(&deque, tasks, 3, false);
	CHECK_EQ(deque_size(&deque), 3);
	CHECK_EQ(deque_room(&deque), 1);
	CHECK_EQ(stolen(), 0);
	CHECK_EQ(popped(), 2);
	CHECK_EQ(popped(), 1);
}

TEST(push_many_turns_the_array_round_if_asked)
{
	struct hive_task tasks[] = { task_of(0), task_of(1), task_of(2) };

	start(4, UINT64_MAX - 1);
	CHECK(deque_room(&deque) >= 3);
	deque_push_many(&deque, tasks, 3, true);
	CHECK_EQ(popped(), 0);
	CHECK_EQ(stolen(), 2);
	CHECK_EQ(popped(), 1);
	CHECK_EQ(popped(), -1);
}

TEST(push_many_of_nothing_changes_nothing)
{
	start(4, 0);
	deque_push_many(&deque, NULL, 0, false);
	CHECK_EQ(deque_size(&deque), 0);
	CHECK_EQ(popped(), -1);
}

TEST(owner_takes_the_oldest_in_one_claim)
{
	struct hive_task got[4];

	start(8, UINT64_MAX - 2);
	CHECK_EQ(deque_take_oldest(&deque, got, 4), 0);
	for (uint64_t i = 0; i < 6; i++)
		CHECK(deque_push(&deque, task_of(i)));
	CHECK_EQ(deque_take_oldest(&deque, got, 4), 4);
	for (uint64_t i = 0; i < 4; i++)
		CHECK_EQ(number_of(got[i]), i);
	CHECK_EQ(deque_room(&deque), 6);
	CHECK_EQ(deque_take_oldest(&deque, got, 4), 2);
	CHECK_EQ(number_of(got[1]), 5);
	CHECK_EQ(deque_size(&deque), 0);
}

TEST(taking_the_oldest_takes_at_most_max)
{
	struct hive_task got[1];

	start(4, 0);
	for (uint64_t i = 0; i < 3; i++)
		CHECK(deque_push(&deque, task_of(i)));
	CHECK_EQ(deque_take_oldest(&deque, got, 0), 0);
	CHECK_EQ(deque_take_oldest(&deque, got, 1), 1);
	CHECK_EQ(number_of(got[0]), 0);
	CHECK_EQ(popped(), 2);
	CHECK_EQ(popped(), 1);
	CHECK_EQ(deque_take_oldest(&deque, got, 1), 0);
}

TEST(size_and_room_add_up_to_the_capacity)
{
	start(8, UINT64_MAX - 3);
	for (uint64_t i = 0; i <= 8; i++) {
		CHECK_EQ(deque_size(&deque), i);
		CHECK_EQ(deque_room(&deque), 8 - i);
		if (i < 8)
			CHECK(deque_push(&deque, task_of(i)));
	}
}

/* Against a plain array, whatever the order of operations. */
TEST(random_operations_agree_with_an_array)
{
	uint64_t array[8192], random = 7, first = 0, end = 0;

	start(8, UINT64_MAX - 100);
	for (uint64_t i = 0; i < 8000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		switch (random >> 62) {
		case 0:
		case 1:
			CHECK_EQ(deque_push(&deque, task_of(i)), end - first < 8);
			if (end - first < 8)
				array[end++] = i;
			break;
		case 2:
			CHECK_EQ(popped(), end > first ? (int64_t)array[--end] : -1);
			break;
		default:
			CHECK_EQ(stolen(), end > first ? (int64_t)array[first++] : -1);
		}
		CHECK_EQ(deque_size(&deque), end - first);
	}
}

/* ---- threads ---- */

struct race {
	struct tally tally;
	_Atomic(bool) over;
	int burst;
};

static void thief(struct race *race)
{
	struct hive_task task;

	while (!atomic_load(&race->over))
		if (deque_steal(&deque, &task))
			tally_mark(&race->tally, number_of(task));
		else
			breathe();
}

/* one task, one owner, one thief. */
static void last_task(int index, void *arg)
{
	struct race *race = arg;
	struct hive_task task;

	if (index > 0) {
		thief(race);
		return;
	}
	for (uint32_t i = 0; i < race->tally.count; i++) {
		CHECK(deque_push(&deque, task_of(i)));
		if (deque_pop(&deque, &task))
			tally_mark(&race->tally, number_of(task));
		CHECK_EQ(deque_size(&deque), 0);
	}
	atomic_store(&race->over, true);
}

TEST(last_task_goes_to_exactly_one_of_owner_and_thief)
{
	struct race race = { 0 };

	start(2, UINT64_MAX - 1000);
	tally_init(&race.tally, (uint32_t)rounds(100000));
	crew_run(2, last_task, &race);
	tally_end(&race.tally);
}

static void bursts(int index, void *arg)
{
	struct race *race = arg;
	struct hive_task task, oldest[4];
	uint32_t next = 0;

	if (index > 0) {
		thief(race);
		return;
	}
	while (next < race->tally.count) {
		for (int i = 0; i < race->burst && next < race->tally.count; i++) {
			if (deque_push(&deque, task_of(next)))
				next++;
			else
				breathe();
		}
		for (int i = 0; i < race->burst / 2 && deque_pop(&deque, &task); i++)
			tally_mark(&race->tally, number_of(task));
		if (next % 5 == 0)
			for (uint64_t n = deque_take_oldest(&deque, oldest, 4); n > 0; n--)
				tally_mark(&race->tally, number_of(oldest[n - 1]));
	}
	while (deque_pop(&deque, &task))
		tally_mark(&race->tally, number_of(task));
	tally_await(&race->tally); /* a thief has the last ones in hand */
	atomic_store(&race->over, true);
}

TEST(three_thieves_and_the_owner_lose_nothing)
{
	struct race race = { .burst = 7 };

	start(8, UINT64_MAX - 50);
	tally_init(&race.tally, (uint32_t)rounds(100000));
	crew_run(4, bursts, &race);
	tally_end(&race.tally);
}

TEST(one_slot_under_three_thieves_loses_nothing)
{
	struct race race = { .burst = 3 };

	start(1, UINT64_MAX - 50);
	tally_init(&race.tally, (uint32_t)rounds(100000));
	crew_run(4, bursts, &race);
	tally_end(&race.tally);
}

static void ordered_thief(int index, void *arg)
{
	struct race *race = arg;
	struct hive_task task;
	int64_t last = -1;

	if (index == 0) {
		for (uint32_t i = 0; i < race->tally.count;) {
			if (deque_push(&deque, task_of(i)))
				i++;
			else
				breathe();
		}
		tally_await(&race->tally);
		atomic_store(&race->over, true);
		return;
	}
	while (!atomic_load(&race->over)) {
		if (!deque_steal(&deque, &task)) {
			breathe();
			continue;
		}
		CHECK((int64_t)number_of(task) > last);
		last = (int64_t)number_of(task);
		tally_mark(&race->tally, number_of(task));
	}
}

TEST(each_thief_sees_rising_numbers)
{
	struct race race = { 0 };

	start(4, UINT64_MAX - 9);
	tally_init(&race.tally, (uint32_t)rounds(30000));
	crew_run(3, ordered_thief, &race);
	tally_end(&race.tally);
}
