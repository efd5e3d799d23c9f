/* SPDX-License-Identifier: MIT */
/* The ring that is robbed by halves: F-30, F-33 … F-46. */
#include "queue/runq.h"

#include "unit.h"

enum { SLOTS = 64, NEAR_WRAP = -3 };

static struct slot slots[SLOTS], thief_slots[SLOTS];
static struct runq ring, thief_ring;

static void start(uint32_t capacity, uint32_t index)
{
	CHECK(capacity <= SLOTS);
	runq_init(&ring, slots, capacity, index);
	runq_init(&thief_ring, thief_slots, capacity, index);
}

static void push(uint64_t first, uint64_t last)
{
	for (uint64_t i = first; i <= last; i++)
		CHECK(runq_push(&ring, task_of(i)));
}

static int64_t popped_from(struct runq *q)
{
	struct hive_task task;

	return runq_pop(q, &task) ? (int64_t)number_of(task) : -1;
}

static int64_t popped(void)
{
	return popped_from(&ring);
}

/* The task that is to run now; the others are in the thief's ring. */
static int64_t robbed(void)
{
	struct hive_task task = { 0 };

	return runq_steal(&ring, &thief_ring, &task) > 0 ? (int64_t)number_of(task) : -1;
}

/* F-30 */
TEST(owner_takes_the_oldest_first)
{
	start(8, 0);
	CHECK_EQ(popped(), -1);
	push(0, 4);
	for (int64_t i = 0; i < 5; i++)
		CHECK_EQ(popped(), i);
	CHECK_EQ(popped(), -1);
}

/* F-40, F-45: of n tasks n - n/2 go, the oldest; the last of them is for now, the others wait in the thief's ring in order. */
TEST(thief_takes_half_rounded_up_and_the_last_of_it_for_now)
{
	for (uint64_t n = 1; n <= 8; n++) {
		uint64_t half = n - n / 2;

		start(8, (uint32_t)NEAR_WRAP);
		push(0, n - 1);
		CHECK_EQ(robbed(), (int64_t)half - 1);
		CHECK_EQ(runq_size(&thief_ring), half - 1);
		CHECK_EQ(runq_size(&ring), n - half);
		for (uint64_t i = 0; i + 1 < half; i++)
			CHECK_EQ(popped_from(&thief_ring), (int64_t)i);
		for (uint64_t i = half; i < n; i++)
			CHECK_EQ(popped(), (int64_t)i);
		CHECK_EQ(popped(), -1);
	}
}

/* F-40: else it would wait behind a long task for ever. */
TEST(single_task_can_be_stolen)
{
	start(4, 0);
	push(7, 7);
	CHECK_EQ(robbed(), 7);
	CHECK_EQ(runq_size(&ring) + runq_size(&thief_ring), 0);
	CHECK_EQ(robbed(), -1);
}

/* F-44 */
TEST(ring_that_is_more_than_half_full_does_not_steal)
{
	start(8, 5);
	push(0, 7);
	for (uint64_t i = 0; i < 5; i++)
		CHECK(runq_push(&thief_ring, task_of(100 + i)));
	CHECK_EQ(robbed(), -1);
	CHECK_EQ(runq_size(&ring), 8);
	CHECK_EQ(popped_from(&thief_ring), 100); /* exactly half full now */
	CHECK_EQ(robbed(), 3);
	CHECK_EQ(runq_size(&thief_ring), 4 + 3);
}

TEST(theft_takes_no_more_than_fits)
{
	start(16, 0);
	runq_init(&thief_ring, thief_slots, 4, 1);
	push(0, 15);
	CHECK_EQ(robbed(), 3);
	CHECK_EQ(runq_size(&thief_ring), 3);
	CHECK_EQ(runq_size(&ring), 12);
}

/* F-33, F-46: so many fit and no more, wherever the indices are. */
TEST(full_ring_refuses_and_keeps_what_it_has)
{
	static const uint32_t starts[] = { 0, 1, UINT32_MAX, UINT32_MAX - 2, (uint32_t)INT32_MAX };

	for (size_t s = 0; s < sizeof starts / sizeof *starts; s++) {
		start(4, starts[s]);
		push(0, 3);
		CHECK_EQ(runq_room(&ring), 0);
		CHECK(!runq_push(&ring, task_of(99)));
		CHECK_EQ(runq_size(&ring), 4);
		CHECK_EQ(popped(), 0);
		push(4, 4);
		CHECK(!runq_push(&ring, task_of(99)));
		for (int64_t i = 1; i <= 4; i++)
			CHECK_EQ(popped(), i);
	}
}

TEST(capacity_of_one_holds_one)
{
	start(1, (uint32_t)NEAR_WRAP);
	for (uint64_t i = 0; i < 10; i++) {
		push(i, i);
		CHECK(!runq_push(&ring, task_of(99)));
		CHECK_EQ(i % 2 ? popped() : robbed(), (int64_t)i);
		CHECK_EQ(runq_room(&ring), 1);
	}
}

/* F-32 */
TEST(owner_takes_the_oldest_in_one_claim)
{
	struct hive_task got[4];

	start(8, (uint32_t)NEAR_WRAP);
	CHECK_EQ(runq_take_oldest(&ring, got, 4), 0);
	push(0, 5);
	CHECK_EQ(runq_take_oldest(&ring, got, 0), 0);
	CHECK_EQ(runq_take_oldest(&ring, got, 4), 4);
	for (uint64_t i = 0; i < 4; i++)
		CHECK_EQ(number_of(got[i]), i);
	CHECK_EQ(runq_room(&ring), 6);
	CHECK_EQ(runq_take_oldest(&ring, got, 4), 2);
	CHECK_EQ(number_of(got[1]), 5);
	CHECK_EQ(runq_size(&ring), 0);
}

TEST(push_many_keeps_the_order_of_the_array)
{
	struct hive_task tasks[] = { task_of(0), task_of(1), task_of(2) };

	start(4, UINT32_MAX);
	CHECK(runq_room(&ring) >= 3);
	runq_push_many(&ring, tasks, 3);
	runq_push_many(&ring, NULL, 0);
	CHECK_EQ(runq_size(&ring), 3);
	for (int64_t i = 0; i < 3; i++)
		CHECK_EQ(popped(), i);
}

TEST(loot_into_an_array_is_half_in_order_and_at_most_max)
{
	struct hive_task loot[8];

	start(8, UINT32_MAX - 1);
	CHECK_EQ(runq_steal_some(&ring, loot, 8), 0);
	push(0, 6);
	CHECK_EQ(runq_steal_some(&ring, loot, 0), 0);
	CHECK_EQ(runq_steal_some(&ring, loot, 8), 4);
	for (uint64_t i = 0; i < 4; i++)
		CHECK_EQ(number_of(loot[i]), i);
	CHECK_EQ(runq_steal_some(&ring, loot, 1), 1);
	CHECK_EQ(number_of(loot[0]), 4);
	CHECK_EQ(popped(), 5);
}

/* Against a plain array, whatever the order of operations. */
TEST(random_operations_agree_with_an_array)
{
	uint64_t array[20000], random = 11, first = 0, end = 0;

	start(8, UINT32_MAX - 100);
	for (uint64_t i = 0; i < 16000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		switch (random >> 61) {
		case 0:
		case 1:
		case 2:
		case 3:
			CHECK_EQ(runq_push(&ring, task_of(i)), end - first < 8);
			if (end - first < 8)
				array[end++] = i;
			break;
		case 4:
		case 5:
			CHECK_EQ(popped(), end > first ? (int64_t)array[first++] : -1);
			break;
		default: {
			uint64_t half = (end - first + 1) / 2;

			CHECK_EQ(robbed(), half > 0 ? (int64_t)array[first + half - 1] : -1);
			for (uint64_t k = 0; k + 1 < half; k++)
				CHECK_EQ(popped_from(&thief_ring), (int64_t)array[first + k]);
			first += half;
		}
		}
		CHECK_EQ(runq_size(&ring), end - first);
		CHECK_EQ(runq_room(&ring), 8 - (end - first));
	}
}

/* ---- in the middle of a theft ---- */

#if !defined(HIVE_LOCKED_QUEUES)
/* Neither of two threads that are stopped in the middle of a theft keeps the next one from working. */
TEST(ring_that_is_empty_but_is_being_robbed_steals_what_runs_at_once)
{
	uint32_t from;

	start(8, 5);
	push(0, 7);
	for (uint64_t i = 0; i < 8; i++)
		CHECK(runq_push(&thief_ring, task_of(100 + i)));
	CHECK_EQ(runq_claim(&thief_ring, 8, &from), 4);
	for (uint64_t i = 4; i < 8; i++) {
		CHECK_EQ(robbed(), -1);
		CHECK_EQ(popped_from(&thief_ring), 100 + i);
	}
	CHECK_EQ(runq_room(&thief_ring), 0);
	CHECK_EQ(robbed(), 0);
	CHECK_EQ(runq_size(&thief_ring), 0);
	CHECK_EQ(runq_size(&ring), 7);
	runq_finish(&thief_ring);
	CHECK_EQ(robbed(), 4);
	CHECK_EQ(runq_size(&thief_ring), 3);
}

static bool heads_are_equal(void)
{
	uint64_t head = load_relaxed(&ring.head);

	return runq_steal_of(head) == runq_local_of(head);
}

/* F-35, F-38: the claim alone moves local, the finish makes steal follow. */
TEST(heads_differ_exactly_while_a_theft_is_under_way)
{
	uint32_t from;

	start(8, UINT32_MAX - 1);
	CHECK(heads_are_equal());
	push(0, 5);
	CHECK_EQ(popped(), 0);
	CHECK(heads_are_equal());
	CHECK_EQ(runq_claim(&ring, 8, &from), 3);
	CHECK_EQ(from, UINT32_MAX);
	CHECK_EQ(runq_steal_of(load_relaxed(&ring.head)), UINT32_MAX);
	CHECK_EQ(runq_local_of(load_relaxed(&ring.head)), 2);
	runq_finish(&ring);
	CHECK(heads_are_equal());
	CHECK_EQ(runq_local_of(load_relaxed(&ring.head)), 2);
	CHECK_EQ(popped(), 4);
}

/* F-36, F-42: the owner pops what is left, never what is claimed; the finish reckons with it. */
TEST(owner_pops_the_rest_while_a_thief_copies)
{
	uint32_t from;

	start(8, (uint32_t)NEAR_WRAP);
	push(0, 5);
	CHECK_EQ(runq_claim(&ring, 8, &from), 3);
	CHECK_EQ(runq_size(&ring), 3);
	CHECK_EQ(popped(), 3);
	CHECK_EQ(popped(), 4);
	CHECK(!heads_are_equal());
	for (uint32_t i = 0; i < 3; i++)
		CHECK_EQ(number_of(slot_read(runq_slot(&ring, from + i))), i);
	runq_finish(&ring);
	CHECK(heads_are_equal());
	CHECK_EQ(popped(), 5);
	CHECK_EQ(popped(), -1);
	CHECK_EQ(runq_room(&ring), 8);
}

/* F-37, F-43: pushing goes on; what is being copied counts as occupied, also when the owner has popped everything else. */
TEST(owner_pushes_during_a_theft_and_overwrites_nothing)
{
	uint32_t from;

	start(4, (uint32_t)NEAR_WRAP);
	push(0, 3);
	CHECK_EQ(runq_claim(&ring, 4, &from), 2);
	CHECK_EQ(popped(), 2);
	CHECK_EQ(popped(), 3);
	CHECK_EQ(popped(), -1);
	CHECK_EQ(runq_room(&ring), 0);
	CHECK(!runq_push(&ring, task_of(99)));
	CHECK_EQ(number_of(slot_read(runq_slot(&ring, from))), 0);
	CHECK_EQ(number_of(slot_read(runq_slot(&ring, from + 1))), 1);
	runq_finish(&ring);
	CHECK_EQ(runq_room(&ring), 4);
	push(4, 5);
	CHECK_EQ(runq_claim(&ring, 4, &from), 1);
	push(6, 7);
	CHECK_EQ(popped(), 5);
	runq_finish(&ring);
	CHECK_EQ(popped(), 6);
	CHECK_EQ(popped(), 7);
}

/* F-39 */
TEST(second_thief_goes_away_while_the_first_copies)
{
	struct hive_task loot[4];
	uint32_t from;

	start(8, 0);
	push(0, 7);
	CHECK_EQ(runq_claim(&ring, 8, &from), 4);
	CHECK_EQ(robbed(), -1);
	CHECK_EQ(runq_steal_some(&ring, loot, 4), 0);
	runq_finish(&ring);
	CHECK_EQ(robbed(), 5);
}

/* F-32: its slots would not become free, and what it took could not be put back. */
TEST(owner_takes_no_half_away_while_a_thief_copies)
{
	struct hive_task half[4];
	uint32_t from;

	start(8, 0);
	push(0, 7);
	CHECK_EQ(runq_claim(&ring, 8, &from), 4);
	CHECK_EQ(runq_take_oldest(&ring, half, 4), 0);
	runq_finish(&ring);
	CHECK_EQ(runq_take_oldest(&ring, half, 4), 4);
	CHECK_EQ(number_of(half[0]), 4);
}

/* F-41, F-45: all of the loot but the task that runs now, in order behind the old tail. */
TEST(loot_becomes_visible_by_one_store_of_the_tail)
{
	uint32_t tail;

	start(8, UINT32_MAX - 1);
	push(0, 7);
	tail = load_relaxed(&thief_ring.tail);
	CHECK_EQ(robbed(), 3);
	CHECK_EQ(load_relaxed(&thief_ring.tail), tail + 3);
	for (uint32_t i = 0; i < 3; i++)
		CHECK_EQ(number_of(slot_read(runq_slot(&thief_ring, tail + i))), i);
}
#endif

/* ---- threads ---- */

struct race {
	struct tally tally;
	_Atomic(bool) over;
};

static struct runq thief_rings[4];
static struct slot many_slots[4][SLOTS];

static void rob_until_over(struct race *race, int index)
{
	struct runq *mine = &thief_rings[index];
	struct hive_task task = { 0 };

	while (!atomic_load(&race->over)) {
		bool found = runq_steal(&ring, mine, &task) > 0;

		if (!found) /* thieves rob each other, too */
			found = runq_steal(&thief_rings[index % 3 + 1], mine, &task) > 0;
		if (found)
			tally_mark(&race->tally, number_of(task));
		else
			breathe();
		if (runq_pop(mine, &task))
			tally_mark(&race->tally, number_of(task));
	}
}

static void bursts(int index, void *arg)
{
	struct race *race = arg;
	struct hive_task task, half[4];
	uint32_t next = 0;

	if (index > 0) {
		rob_until_over(race, index);
		return;
	}
	while (next < race->tally.count) {
		for (int i = 0; i < 7 && next < race->tally.count; i++) {
			if (runq_push(&ring, task_of(next)))
				next++;
			else
				breathe();
		}
		for (int i = 0; i < 3 && runq_pop(&ring, &task); i++)
			tally_mark(&race->tally, number_of(task));
		if (next % 5 == 0)
			for (uint32_t n = runq_take_oldest(&ring, half, 4); n > 0; n--)
				tally_mark(&race->tally, number_of(half[n - 1]));
	}
	while (runq_pop(&ring, &task))
		tally_mark(&race->tally, number_of(task));
	tally_await(&race->tally); /* thieves have the last ones in hand */
	atomic_store(&race->over, true);
}

static void run_race(uint32_t capacity)
{
	struct race race = { 0 };

	start(capacity, UINT32_MAX - 50);
	for (int i = 1; i < 4; i++)
		runq_init(&thief_rings[i], many_slots[i], capacity, UINT32_MAX - 9);
	tally_init(&race.tally, (uint32_t)rounds(100000));
	crew_run(4, bursts, &race);
	tally_end(&race.tally);
}

/* F-34 */
TEST(three_thieves_and_the_owner_lose_nothing)
{
	run_race(8);
}

TEST(small_ring_under_three_thieves_loses_nothing)
{
	run_race(2);
}
