/* SPDX-License-Identifier: MIT */
/* Where one thread sleeps until it is handed a token. */
#include "base/parker.h"

#include "base/clock.h"
#include "unit.h"

static struct parker parker;

TEST(token_before_the_wait_makes_it_return_at_once)
{
	parker_init(&parker);
	parker_unpark(&parker);
	parker_park(&parker, HIVE_FOREVER);
	CHECK_EQ(load_relaxed(&parker.state), PARKER_EMPTY);
}

TEST(tokens_do_not_add_up)
{
	int64_t before;

	parker_init(&parker);
	parker_unpark(&parker);
	parker_unpark(&parker);
	parker_unpark(&parker);
	parker_park(&parker, HIVE_FOREVER);
	before = hive__clock_now();
	parker_park(&parker, HIVE_MS(20));
	CHECK(hive__clock_now() - before >= HIVE_MS(20));
}

TEST(wait_without_token_ends_with_its_time)
{
	int64_t before = hive__clock_now(), waited;

	parker_init(&parker);
	parker_park(&parker, HIVE_MS(30));
	waited = hive__clock_now() - before;
	CHECK(waited >= HIVE_MS(30));
	CHECK_EQ(load_relaxed(&parker.state), PARKER_EMPTY);
}

TEST(wait_of_no_time_returns_at_once)
{
	parker_init(&parker);
	parker_park(&parker, 0);
	CHECK_EQ(load_relaxed(&parker.state), PARKER_EMPTY);
}

TEST(token_after_a_wait_that_timed_out_is_kept_for_the_next)
{
	parker_init(&parker);
	parker_park(&parker, HIVE_US(100));
	parker_unpark(&parker);
	CHECK_EQ(load_relaxed(&parker.state), PARKER_TOKEN);
	parker_park(&parker, HIVE_FOREVER);
}

TEST(unparking_nobody_leaves_a_token)
{
	parker_init(&parker);
	parker_unpark(&parker);
	CHECK_EQ(load_relaxed(&parker.state), PARKER_TOKEN);
}

struct relay {
	struct parker parkers[2];
	int rounds;
	uint64_t ball; /* plain */
	_Atomic(int) turn;
};

/* A lost token hangs here. */
static void play(int index, void *arg)
{
	struct relay *r = arg;

	for (int i = 0; i < r->rounds; i++) {
		if (index == 1 || i > 0)
			do
				parker_park(&r->parkers[index], HIVE_FOREVER);
			while (atomic_load_explicit(&r->turn, memory_order_acquire) != index);
		CHECK_EQ(r->ball, (uint64_t)(2 * i + index));
		r->ball++;
		atomic_store_explicit(&r->turn, 1 - index, memory_order_release);
		parker_unpark(&r->parkers[1 - index]);
	}
}

TEST(two_threads_hand_a_ball_to_and_fro)
{
	struct relay relay = { .rounds = rounds(20000) };

	parker_init(&relay.parkers[0]);
	parker_init(&relay.parkers[1]);
	crew_run(2, play, &relay);
	CHECK_EQ(relay.ball, 2 * (uint64_t)relay.rounds);
}

struct crowd {
	_Atomic(uint32_t) given;
	uint32_t each;
};

static void unpark_often(int index, void *arg)
{
	struct crowd *c = arg;

	if (index == 0) {
		while (atomic_load(&c->given) < 3 * c->each)
			parker_park(&parker, HIVE_FOREVER);
		return;
	}
	for (uint32_t i = 0; i < c->each; i++) {
		atomic_fetch_add(&c->given, 1);
		parker_unpark(&parker);
	}
}

TEST(three_threads_wake_one_and_the_last_token_is_not_lost)
{
	struct crowd crowd = { .each = (uint32_t)rounds(20000) };

	parker_init(&parker);
	crew_run(4, unpark_often, &crowd);
}

static void unpark_under_time_limits(int index, void *arg)
{
	struct crowd *c = arg;

	if (index == 0) {
		for (int64_t limit = 1; atomic_load(&c->given) < c->each; limit = limit % 2000 + 7)
			parker_park(&parker, limit);
		return;
	}
	for (uint32_t i = 0; i < c->each; i++) {
		atomic_fetch_add(&c->given, 1);
		parker_unpark(&parker);
		if (i % 16 == 0)
			sched_yield();
	}
}

TEST(time_limits_and_tokens_meet)
{
	struct crowd crowd = { .each = (uint32_t)rounds(20000) };

	parker_init(&parker);
	crew_run(2, unpark_under_time_limits, &crowd);
	parker_park(&parker, 0);
	CHECK_EQ(load_relaxed(&parker.state), PARKER_EMPTY);
}
