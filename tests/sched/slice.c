/* SPDX-License-Identifier: MIT */
/* Time slices: when a task is told that others are due, on a clock that stands until the test moves it. */
#include "support/lone.h"

static struct lone l;

enum { SLICE = 1000000 };

struct loop {
	int64_t step_ns;  /* what a round takes */
	int rounds, told; /* rounds until it was told; -1: never */
};

static void run_loop(void *arg)
{
	struct loop *loop = arg;

	loop->told = -1;
	for (int i = 0; i < loop->rounds; i++) {
		if (hive_should_yield()) {
			loop->told = i;
			CHECK(hive_should_yield()); /* and it stays so */
			CHECK(hive_should_yield());
			return;
		}
		l.f.now_ns += loop->step_ns;
	}
}

static struct loop run_as_task(int64_t step_ns, int rounds)
{
	struct loop loop = { step_ns, rounds, 0 };

	CHECK_OK(hive_post_to(l.f.hive, l.ids[0], run_loop, &loop));
	CHECK(lone_beat(&l, 0));
	return loop;
}

static void open_world(void)
{
	memset(&l, 0, sizeof l);
	lone_open(&l, 1, (struct hive_worker_options){ .slice_ns = SLICE });
	l.f.now_ns = HIVE_S(1);
}

TEST(a_task_is_told_when_its_slice_is_over)
{
	open_world();
	for (int64_t step_ns = 1; step_ns <= SLICE * 2; step_ns = step_ns * 3 + 1) {
		struct loop loop = run_as_task(step_ns, 10 * SLICE);
		int64_t after_ns = loop.told * step_ns;

		CHECK(loop.told > 0);
		CHECK(after_ns >= SLICE);
		/* Not much later: an eighth of a slice, or the round in which it was over and the next one. */
		CHECK(after_ns <= SLICE + SLICE / 8 + 2 * step_ns);
	}
	lone_close(&l);
}

TEST(a_short_task_is_never_told_and_each_one_begins_anew)
{
	open_world();
	for (int i = 0; i < 100; i++)
		CHECK_EQ(run_as_task(SLICE / 200, 100).told, -1);
	lone_close(&l);
}

static void slow_down(void *arg)
{
	int *rounds = arg;

	for (int i = 0; i < 100000; i++) { /* fast for long: the clock is read rarely by now */
		CHECK(!hive_should_yield());
		l.f.now_ns += 1;
	}
	for (*rounds = 0; !hive_should_yield(); ++*rounds)
		l.f.now_ns += SLICE / 4;
}

/* Its rounds become longer without warning. The questions until the next look are all that it may be late. */
TEST(a_task_that_slows_down_is_told_after_some_rounds)
{
	int rounds = 0;

	open_world();
	CHECK_OK(hive_post_to(l.f.hive, l.ids[0], slow_down, &rounds));
	CHECK(lone_beat(&l, 0));
	CHECK(rounds >= 3);
	CHECK(rounds <= TUNE_SLICE_STRIDE);
	lone_close(&l);
}

TEST(who_is_no_worker_is_never_told)
{
	for (int i = 0; i < 1000; i++)
		CHECK(!hive_should_yield());
	CHECK_OK(hive_yield_if_due());
}
