/* SPDX-License-Identifier: MIT */
/* Sleep, yield and deadlines: never early, exact in virtual time, and everybody has a turn. */
#include "support/real.h"
#include "support/world.h"

static char order[256];

static void note(char c)
{
	size_t n = strlen(order);

	CHECK(n + 1 < sizeof order);
	order[n] = c;
	order[n + 1] = 0;
}

struct sleeper {
	int64_t delay_ns, woke_ns;
	char letter;
	int result;
};

static int sleep_and_note(void *arg)
{
	struct sleeper *s = arg;

	s->result = hive_sleep(s->delay_ns);
	s->woke_ns = hive_now(NULL);
	note(s->letter);
	return s->result;
}

/* F-59: in the order of their times, each at its own, under many schedules. */
TEST(sleepers_wake_in_the_order_of_their_times)
{
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct world w = world_open(seed, 1 + (int32_t)(seed % 4), 0);
		struct sleeper s[5] = {
			{ HIVE_S(3), 0, 'c', 1 },     { 1, 0, 'a', 1 },
			{ HIVE_MS(1), 0, 'b', 1 },    { HIVE_S(40), 0, 'd', 1 },
			{ HIVE_S(90000), 0, 'e', 1 },
		};

		order[0] = 0;
		for (int i = 0; i < 5; i++)
			CHECK_OK(hive_spawn(w.hive, sleep_and_note, &s[i], NULL, NULL));
		world_advance(&w, HIVE_FOREVER);
		CHECK_STR(order, "abcde");
		for (int i = 0; i < 5; i++) {
			CHECK_EQ(s[i].woke_ns, s[i].delay_ns);
			CHECK_EQ(s[i].result, 0);
		}
		world_close(&w, HIVE_DRAIN);
	}
}

TEST(a_sleeper_does_not_wake_a_nanosecond_early)
{
	struct world w = world_open(3, 2, 0);
	struct sleeper s = { HIVE_MS(7), 0, 'x', 1 };

	order[0] = 0;
	CHECK_OK(hive_spawn(w.hive, sleep_and_note, &s, NULL, NULL));
	world_advance(&w, HIVE_MS(7) - 1);
	CHECK_STR(order, "");
	world_advance(&w, 1);
	CHECK_STR(order, "x");
	world_close(&w, HIVE_DRAIN);
}

static int sleep_nothing(void *arg)
{
	int64_t before = hive_now(NULL);

	(void)arg;
	CHECK_OK(hive_sleep(0));
	CHECK_OK(hive_sleep(-5));
	CHECK_OK(hive_sleep(INT64_MIN));
	CHECK_EQ(hive_now(NULL), before);
	return 0;
}

TEST(delays_below_one_are_a_yield)
{
	struct world w = world_open(3, 1, 0);

	CHECK_EQ(world_result(world_spawn(&w, sleep_nothing, NULL)), 0);
	CHECK_OK(hive_sleep(0));
	CHECK_OK(hive_sleep(-1));
	CHECK_OK(hive_yield());
	CHECK_EQ(hive_now(w.hive), 0);
	world_close(&w, HIVE_DRAIN);
}

static int sleep_without_end(void *arg)
{
	*(int *)arg = hive_sleep(HIVE_FOREVER);
	return *(int *)arg;
}

TEST(a_sleep_for_ever_ends_with_a_cancel_alone)
{
	struct world w = world_open(3, 1, 0);
	int result = 77;
	struct hive_fiber *fiber = world_spawn(&w, sleep_without_end, &result);

	world_advance(&w, HIVE_S(1000000000));
	CHECK_EQ(result, 77);
	CHECK_OK(hive_fiber_cancel(fiber));
	CHECK_EQ(world_result(fiber), -ECANCELED);
	world_close(&w, HIVE_DRAIN);
}

/* A thread of the test sleeps on the clock of its world. */
TEST(a_foreign_thread_sleeps_in_virtual_time)
{
	struct world w = world_open(3, 2, 0);
	struct sleeper s = { HIVE_MS(2), 0, 'x', 1 };

	order[0] = 0;
	CHECK_OK(hive_spawn(w.hive, sleep_and_note, &s, NULL, NULL));
	CHECK_OK(hive_sleep(HIVE_MS(1)));
	CHECK_EQ(hive_now(w.hive), HIVE_MS(1));
	CHECK_STR(order, "");
	CHECK_OK(hive_sleep(HIVE_MS(1)));
	CHECK_EQ(hive_now(w.hive), HIVE_MS(2));
	CHECK_OK(hive_sleep(HIVE_S(1)));
	CHECK_STR(order, "x");
	world_close(&w, HIVE_DRAIN);
}

/* And without a world, on that of the system. */
TEST(a_foreign_thread_sleeps_in_real_time)
{
	int64_t before = hive_now(NULL);

	CHECK_OK(hive_sleep(HIVE_MS(3)));
	CHECK(hive_now(NULL) >= before + HIVE_MS(3));
}

static void sleep_in_task(void *arg)
{
	int *results = arg;

	results[0] = hive_sleep(HIVE_MS(1));
	results[1] = hive_sleep(0);
	results[2] = hive_yield();
	results[3] = hive_now(NULL) >= HIVE_MS(1);
}

/* On an IO worker outside a fiber a wait is refused; a compute task waits. */
TEST(tasks_of_io_workers_may_not_sleep_and_compute_tasks_may)
{
	struct world w = world_open(3, 2, 1);
	int io[4] = { 1, 1, 1, 1 }, compute[4] = { 1, 1, 1, 1 };

	CHECK_OK(hive_post(w.hive, sleep_in_task, io));
	CHECK_OK(hive_post_compute(w.hive, sleep_in_task, compute));
	world_advance(&w, HIVE_S(1));
	CHECK_EQ(io[0], -EDEADLK);
	CHECK_EQ(io[1], 0);
	CHECK_EQ(io[2], 0);
	CHECK_EQ(io[3], 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(compute[i], 0);
	CHECK_EQ(compute[3], 1);
	world_close(&w, HIVE_DRAIN);
}

/* ---- yield ---- */

static int yield_and_note(void *arg)
{
	char *letter = arg;

	for (int i = 0; i < 3; i++) {
		note(*letter);
		CHECK_OK(hive_yield());
	}
	return 0;
}

/* Everybody else has a turn before the yielder has its next one. */
TEST(yield_lets_all_the_others_have_a_turn)
{
	struct world w = world_open(3, 1, 0);

	order[0] = 0;
	for (int i = 0; i < 4; i++)
		CHECK_OK(hive_spawn(w.hive, yield_and_note, &"abcd"[i], NULL, NULL));
	world_settle(&w);
	CHECK_EQ(strlen(order), 12);
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 4; i++)
			CHECK(memchr(order + 4 * round, "abcd"[i], 4));
	world_close(&w, HIVE_DRAIN);
}

static _Atomic bool over;

static int yield_until_over(void *arg)
{
	while (!over)
		CHECK_OK(hive_yield());
	return (int)(intptr_t)arg;
}

static void do_nothing(void *arg)
{
	(void)arg;
}

static void be_over(void *arg)
{
	(void)arg;
	over = true;
}

/* Fibers that yield and yield keep nobody away: neither tasks nor timers nor other fibers. */
TEST(yielders_starve_nobody)
{
	for (int how = 0; how < 4; how++) {
		struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 1 });
		struct hive_fiber *fibers[8];
		int result;

		over = false;
		for (intptr_t i = 0; i < 8; i++)
			CHECK_OK(hive_spawn(hive, yield_until_over, (void *)i, NULL, &fibers[i]));
		if (how == 0)
			CHECK_OK(hive_post(hive, be_over, NULL));
		else if (how == 1)
			CHECK_OK(hive_post_after(hive, HIVE_MS(1), be_over, NULL, NULL));
		else if (how == 2)
			CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, be_over, NULL));
		else
			CHECK_OK(hive_post_compute_then(hive, do_nothing, HIVE_WORKER_MAIN, be_over, NULL));
		for (int i = 0; i < 8; i++) {
			CHECK_OK(hive_fiber_join(fibers[i], real_patience(), &result));
			CHECK_EQ(result, i);
		}
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- deadlines ---- */

static int wait_with_deadline(void *arg)
{
	struct hive_fiber *never = *(struct hive_fiber **)arg;
	int64_t begin = hive_now(NULL);

	for (int64_t i = 1; i <= 50; i++) {
		CHECK_ERR(hive_fiber_join(never, hive_deadline(NULL, i * i * 1000), NULL), -ETIMEDOUT);
		begin += i * i * 1000;
		CHECK_EQ(hive_now(NULL), begin);
	}
	for (int i = 0; i < 3; i++) {
		static const int64_t past[] = { HIVE_NOWAIT, -1, INT64_MIN };

		CHECK_ERR(hive_fiber_join(never, past[i], NULL), -ETIMEDOUT);
	}
	CHECK_ERR(hive_fiber_join(never, hive_now(NULL), NULL), -ETIMEDOUT);
	CHECK_EQ(hive_now(NULL), begin);
	return 0;
}

TEST(a_deadline_is_kept_to_the_nanosecond)
{
	struct world w = world_open(11, 2, 0);
	int result = 0;
	struct hive_fiber *never = world_spawn(&w, sleep_without_end, &result);

	CHECK_EQ(world_result(world_spawn(&w, wait_with_deadline, &never)), 0);
	CHECK_OK(hive_fiber_cancel(never));
	CHECK_EQ(world_result(never), -ECANCELED);
	world_close(&w, HIVE_DRAIN);
}

/* Alarms that were not needed are cancelled, each once. */
static int join_short_ones(void *arg)
{
	struct sleeper s = { 10, 0, 'x', 1 };
	struct hive_fiber *fiber;

	(void)arg;
	for (int i = 0; i < 2000; i++) {
		order[0] = 0;
		CHECK_OK(hive_spawn(hive_current(), sleep_and_note, &s, NULL, &fiber));
		CHECK_OK(hive_fiber_join(fiber, hive_deadline(NULL, HIVE_S(1000)), NULL));
	}
	return 0;
}

TEST(deadlines_that_were_not_reached_are_cleared_away)
{
	struct world w = world_open(11, 3, 0);

	CHECK_EQ(world_result(world_spawn(&w, join_short_ones, NULL)), 0);
	CHECK(hive_now(w.hive) < HIVE_S(1));
	CHECK_EQ(world_close(&w, HIVE_DRAIN).cancelled, 2000);
}
