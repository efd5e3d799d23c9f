/* SPDX-License-Identifier: MIT */
/* hive_fiber_cancel(): the present wait, all later ones, before the beginning, after the end. */
#include "support/world.h"

static int waits, cancelled;

static void expect_cancelled(int r)
{
	CHECK_ERR(r, -ECANCELED);
	cancelled++;
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

static int sleep_for_ever(void *arg)
{
	(void)arg;
	return hive_sleep(HIVE_FOREVER);
}

/* Each kind of wait there is; the first is under way when the cancel comes, the others come later. */
static int wait_in_all_ways(void *arg)
{
	struct hive_fiber *other = *(struct hive_fiber **)arg;
	size_t index;
	int result = 77;

	waits++;
	expect_cancelled(hive_sleep(HIVE_S(1)));
	expect_cancelled(hive_sleep(HIVE_FOREVER));
	expect_cancelled(hive_sleep(0));
	expect_cancelled(hive_yield());
	expect_cancelled(hive_fiber_join(other, HIVE_FOREVER, &result));
	expect_cancelled(hive_fiber_join(other, hive_deadline(NULL, HIVE_S(1)), &result));
	expect_cancelled(hive_wait_all(&other, 1, HIVE_FOREVER));
	expect_cancelled(hive_wait_any(&other, 1, HIVE_FOREVER, &index));
	expect_cancelled(hive_offload(nothing, NULL, HIVE_FOREVER, &result));
	CHECK_EQ(result, 77);
	return 12;
}

TEST(present_and_later_waits_return_at_once)
{
	struct world w = world_open(1, 2, 1);
	struct hive_fiber *other = world_spawn(&w, sleep_for_ever, NULL), *fiber;

	waits = cancelled = 0;
	fiber = world_spawn(&w, wait_in_all_ways, &other);
	world_advance(&w, HIVE_MS(1));
	CHECK_EQ(waits, 1);
	CHECK_EQ(cancelled, 0);
	CHECK_OK(hive_fiber_cancel(fiber));
	CHECK_OK(hive_fiber_cancel(fiber)); /* once more: nothing changes */
	CHECK_EQ(world_result(fiber), 12);
	CHECK_EQ(cancelled, 9);
	CHECK_EQ(hive_now(w.hive), HIVE_MS(1));
	CHECK_OK(hive_fiber_cancel(other));
	CHECK_EQ(world_result(other), -ECANCELED);
	world_close(&w, HIVE_DRAIN);
}

/* It begins, as spawned, and finds its waits cancelled. */
TEST(a_cancel_before_the_beginning_is_not_lost)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct world w = world_open(seed, 2, 1);
		struct hive_fiber *other = world_spawn(&w, sleep_for_ever, NULL), *fiber;

		waits = cancelled = 0;
		fiber = world_spawn(&w, wait_in_all_ways, &other);
		CHECK_OK(hive_fiber_cancel(fiber));
		CHECK_EQ(world_result(fiber), 12);
		CHECK_EQ(waits, 1);
		CHECK_EQ(cancelled, 9);
		CHECK_OK(hive_fiber_cancel(other));
		CHECK_EQ(world_result(other), -ECANCELED);
		world_close(&w, HIVE_DRAIN);
	}
}

/* The end was faster: no effect, and the result is what it was. */
TEST(a_cancel_after_the_end_changes_nothing)
{
	struct world w = world_open(1, 1, 0);
	struct hive_fiber *fiber = world_spawn(&w, nothing, NULL);

	world_settle(&w);
	CHECK_OK(hive_fiber_cancel(fiber));
	CHECK_EQ(world_result(fiber), 0);
	fiber = world_spawn(&w, nothing, NULL); /* the same stack: it is not cancelled by what was */
	CHECK_EQ(world_result(fiber), 0);
	world_close(&w, HIVE_DRAIN);
}

/* What has ended need not be waited for, also by who is cancelled. */
static int look_at_the_ended(void *arg)
{
	struct hive_fiber **ended = arg;
	size_t index = 9;
	int result = 9;

	expect_cancelled(hive_sleep(HIVE_S(1)));
	CHECK_OK(hive_wait_all(ended, 2, HIVE_FOREVER));
	CHECK_OK(hive_wait_any(ended, 2, HIVE_FOREVER, &index));
	CHECK_EQ(index, 0);
	CHECK_OK(hive_fiber_join(ended[0], HIVE_FOREVER, &result));
	CHECK_EQ(result, 0);
	CHECK_OK(hive_fiber_join(ended[1], HIVE_FOREVER, NULL));
	return 1;
}

TEST(a_cancelled_fiber_can_still_join_what_has_ended)
{
	struct world w = world_open(1, 1, 0);
	struct hive_fiber *ended[2] = { world_spawn(&w, nothing, NULL), world_spawn(&w, nothing, NULL) };
	struct hive_fiber *fiber = world_spawn(&w, look_at_the_ended, ended);

	world_settle(&w);
	CHECK_OK(hive_fiber_cancel(fiber));
	CHECK_EQ(world_result(fiber), 1);
	world_close(&w, HIVE_DRAIN);
}

static int cancel_self(void *arg)
{
	(void)arg;
	CHECK_OK(hive_fiber_cancel(hive_fiber_current()));
	CHECK_ERR(hive_sleep(5), -ECANCELED);
	return 8;
}

TEST(a_fiber_may_cancel_itself)
{
	struct world w = world_open(1, 1, 0);

	CHECK_EQ(world_result(world_spawn(&w, cancel_self, NULL)), 8);
	world_close(&w, HIVE_DRAIN);
}

/* Children are fibers of their own: a cancel is for one. */
static int raise_child(void *arg)
{
	CHECK_OK(hive_spawn(hive_current(), sleep_for_ever, NULL, NULL, arg));
	return hive_sleep(HIVE_FOREVER);
}

TEST(a_cancel_does_not_reach_children)
{
	struct world w = world_open(1, 2, 0);
	struct hive_fiber *child = NULL, *parent = world_spawn(&w, raise_child, &child);

	world_settle(&w);
	CHECK_OK(hive_fiber_cancel(parent));
	CHECK_EQ(world_result(parent), -ECANCELED);
	CHECK_ERR(hive_fiber_join(child, hive_deadline(w.hive, HIVE_S(5)), NULL), -ETIMEDOUT);
	CHECK_OK(hive_fiber_cancel(child));
	CHECK_EQ(world_result(child), -ECANCELED);
	world_close(&w, HIVE_DRAIN);
}

/* A joiner that was cancelled leaves the one it waited for as it was. */
static int join_it(void *arg)
{
	return hive_fiber_join(*(struct hive_fiber **)arg, HIVE_FOREVER, NULL);
}

TEST(a_cancelled_join_leaves_the_handle)
{
	struct world w = world_open(1, 2, 0);
	struct hive_fiber *target = world_spawn(&w, sleep_for_ever, NULL), *joiner = world_spawn(&w, join_it, &target);

	world_settle(&w);
	CHECK_OK(hive_fiber_cancel(joiner));
	CHECK_EQ(world_result(joiner), -ECANCELED);
	joiner = world_spawn(&w, join_it, &target);
	world_settle(&w);
	CHECK_OK(hive_fiber_cancel(target));
	CHECK_EQ(world_result(joiner), 0);
	world_close(&w, HIVE_DRAIN);
}

/* Whether the cancel or the deadline is first: one of the two, each wait once. */
TEST(a_cancel_and_a_deadline_at_one_moment_end_a_wait_once)
{
	int late = 0, early = 0;

	for (uint64_t seed = 0; seed < 200; seed++) {
		struct world w = world_open(seed, 2, 0);
		struct hive_fiber *fiber = world_spawn(&w, sleep_for_ever, NULL), *joiner;
		int r;

		joiner = world_spawn(&w, sleep_for_ever, NULL);
		CHECK_ERR(hive_fiber_join(fiber, hive_deadline(w.hive, 10), NULL), -ETIMEDOUT);
		world_settle(&w);
		CHECK_OK(hive_fiber_cancel(seed % 2 ? fiber : joiner));
		CHECK_OK(hive_fiber_cancel(seed % 2 ? joiner : fiber));
		r = hive_fiber_join(fiber, hive_deadline(w.hive, (int64_t)(seed % 3)), NULL);
		CHECK(r == 0 || r == -ETIMEDOUT);
		late += r != 0;
		early += r == 0;
		if (r < 0)
			CHECK_EQ(world_result(fiber), -ECANCELED);
		CHECK_EQ(world_result(joiner), -ECANCELED);
		world_close(&w, HIVE_DRAIN);
	}
	CHECK(late + early == 200 && early > 0);
}
