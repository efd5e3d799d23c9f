/* SPDX-License-Identifier: MIT */
/* Room for the task that was posted last: F-29. */
#include "queue/newest.h"

#include "unit.h"

static struct newest newest;

static int64_t taken(void)
{
	struct hive_task task;

	return newest_take(&newest, &task) ? (int64_t)number_of(task) : -1;
}

TEST(empty_gives_nothing)
{
	newest_init(&newest, 0);
	CHECK_EQ(newest_size(&newest), 0);
	CHECK_EQ(taken(), -1);
}

TEST(what_was_put_is_taken_once)
{
	newest_init(&newest, UINT64_MAX - 3); /* the count of turns passes its wrap */
	for (uint64_t i = 0; i < 5; i++) {
		newest_put(&newest, task_of(i));
		CHECK_EQ(newest_size(&newest), 1);
		CHECK_EQ(taken(), (int64_t)i);
		CHECK_EQ(taken(), -1);
		CHECK_EQ(newest_size(&newest), 0);
	}
}

struct race {
	struct tally tally;
	_Atomic(bool) over;
};

static void put_and_take(int index, void *arg)
{
	struct race *race = arg;
	struct hive_task task;

	for (uint32_t i = 0; index == 0 && i < race->tally.count; i++) {
		newest_put(&newest, task_of(i));
		if (i % 32 == 0)
			sched_yield();
		if (newest_take(&newest, &task))
			tally_mark(&race->tally, number_of(task));
	}
	if (index == 0) {
		tally_await(&race->tally);
		atomic_store(&race->over, true);
	}
	while (!atomic_load(&race->over))
		if (newest_take(&newest, &task))
			tally_mark(&race->tally, number_of(task));
		else
			breathe();
}

/* F-29, F-34: whoever is faster has it, whole. */
TEST(owner_and_thieves_take_each_task_once)
{
	struct race race = { 0 };

	newest_init(&newest, UINT64_MAX - 999);
	tally_init(&race.tally, (uint32_t)rounds(50000));
	crew_run(3, put_and_take, &race);
	tally_end(&race.tally);
}
