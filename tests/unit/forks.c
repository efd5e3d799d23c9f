/* SPDX-License-Identifier: MIT */
/* The stack of forks: what the owner keeps, what it shows, and what others open. */
#include "queue/forks.h"

#include "unit.h"

enum { SLOTS = 64 };

static struct fork_slot slots[SLOTS];
static struct forks forks;
static int group;

static void start(int64_t capacity, bool all_public)
{
	CHECK(capacity <= SLOTS);
	forks_init(&forks, slots, capacity, all_public);
}

static enum forks_push push(uint64_t number)
{
	struct fork fork = { task_of(number), &group };

	return forks_push(&forks, fork) ? FORKS_KEPT : forks_push_slowly(&forks, fork);
}

static int64_t number(struct fork fork)
{
	CHECK(fork.group == &group);
	return (int64_t)number_of(fork.task);
}

static int64_t popped(void)
{
	struct fork fork;

	return forks_pop(&forks, &fork) ? number(fork) : -1;
}

static int64_t stolen(void)
{
	struct fork fork;

	return forks_steal(&forks, &fork) ? number(fork) : -1;
}

TEST(an_empty_stack_gives_nothing)
{
	start(4, false);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(popped(), -1);
		CHECK_EQ(stolen(), -1);
		CHECK(!forks_rescue(&forks));
	}
	CHECK_EQ(forks_length(&forks), 0);
	CHECK_EQ(forks_hidden(&forks), 0);
}

TEST(the_first_is_shown_the_others_are_kept)
{
	start(8, false);
	CHECK_EQ(push(0), FORKS_SHOWN);
	CHECK_EQ(push(1), FORKS_KEPT);
	CHECK_EQ(push(2), FORKS_KEPT);
	CHECK_EQ(forks_hidden(&forks), 2);
	CHECK_EQ(popped(), 2);
	CHECK_EQ(popped(), 1);
	CHECK_EQ(popped(), 0);
	CHECK_EQ(popped(), -1);
}

/* Who takes the last one that was shown is hungry, and gets the oldest of the rest. */
TEST(hunger_shows_the_oldest)
{
	start(8, false);
	for (uint64_t i = 0; i < 4; i++)
		push(i);
	CHECK_EQ(stolen(), 0);
	CHECK_EQ(stolen(), -1);
	CHECK_EQ(push(4), FORKS_SHOWN);
	CHECK_EQ(stolen(), 1);
	CHECK_EQ(popped(), 4);
	CHECK_EQ(popped(), 3);
	CHECK_EQ(popped(), 2);
	CHECK_EQ(popped(), -1);
}

TEST(without_a_barrier_everything_is_shown)
{
	start(8, true);
	for (uint64_t i = 0; i < 5; i++)
		CHECK_EQ(push(i), FORKS_SHOWN);
	CHECK_EQ(forks_hidden(&forks), 0);
	CHECK_EQ(stolen(), 0);
	CHECK_EQ(popped(), 4);
	CHECK_EQ(stolen(), 1);
	CHECK_EQ(popped(), 3);
	CHECK_EQ(popped(), 2);
	CHECK_EQ(popped(), -1);
}

TEST(a_full_stack_refuses)
{
	start(4, false);
	for (int round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < 4; i++)
			CHECK(push(i) != FORKS_FULL);
		CHECK_EQ(push(4), FORKS_FULL);
		CHECK_EQ(stolen(), 0);
		CHECK(push(4) != FORKS_FULL);
		CHECK_EQ(push(5), FORKS_FULL);
		CHECK_EQ(popped(), 4);
		CHECK_EQ(popped(), 3);
		CHECK_EQ(popped(), 2);
		CHECK_EQ(popped(), 1);
		CHECK_EQ(popped(), -1);
	}
}

TEST(half_of_what_is_kept_can_be_opened)
{
	start(8, false);
	for (uint64_t i = 0; i < 6; i++)
		push(i);
	CHECK(hive__barrier_open());
	CHECK(forks_rescue(&forks));
	CHECK_EQ(forks_hidden(&forks), 2);
	for (int64_t i = 0; i < 4; i++)
		CHECK_EQ(stolen(), i);
	CHECK_EQ(stolen(), -1);
	CHECK(forks_rescue(&forks));
	CHECK_EQ(popped(), 5);
	CHECK_EQ(popped(), 4);
	CHECK(!forks_rescue(&forks));
	CHECK_EQ(popped(), -1);
}

TEST(who_calls_learns_what_is_there_and_is_told_of_the_next)
{
	start(8, false);
	CHECK_EQ(forks_call(&forks), 0);
	CHECK_EQ(push(0), FORKS_SHOWN);
	CHECK_EQ(push(1), FORKS_KEPT);
	CHECK_EQ(forks_call(&forks), 2);
	CHECK_EQ(push(2), FORKS_SHOWN);
	while (popped() >= 0) {}
	CHECK_EQ(forks_call(&forks), 0);
}

/* ---- threads ---- */

enum { THIEVES = 3 };

static struct tally tally;
static _Atomic(bool) over;

/* As a recursion does: up and down, with a long run at the top now and then. */
static void own(uint32_t count)
{
	uint32_t next = 0;
	int64_t got;

	while (next < count) {
		for (uint32_t up = next % 13 + 1; up > 0 && next < count; up--, next++)
			if (push(next) == FORKS_FULL)
				tally_mark(&tally, next);
		for (uint32_t down = next % 7; down > 0 && (got = popped()) >= 0; down--)
			tally_mark(&tally, (uint64_t)got);
	}
	while ((got = popped()) >= 0)
		tally_mark(&tally, (uint64_t)got);
}

static void rob(void)
{
	for (unsigned tries = 0; !atomic_load(&over); tries++) {
		int64_t got = stolen();

		if (got >= 0)
			tally_mark(&tally, (uint64_t)got);
		else if (tries % 4 == 3)
			forks_rescue(&forks);
		breathe();
	}
}

static void work(int index, void *arg)
{
	if (index > 0) {
		rob();
		return;
	}
	own(*(uint32_t *)arg);
	atomic_store(&over, true);
}

static void race(int64_t capacity, bool all_public)
{
	uint32_t count = (uint32_t)rounds(200000);

	start(capacity, all_public);
	tally_init(&tally, count);
	atomic_store(&over, false);
	crew_run(1 + THIEVES, work, &count);
	tally_end(&tally);
	CHECK_EQ(forks_length(&forks), 0);
}

TEST(each_fork_is_taken_once)
{
	CHECK(hive__barrier_open());
	race(8, false);
	race(SLOTS, false);
	race(SLOTS, true);
}
