/* SPDX-License-Identifier: MIT */
/* hive_wait_all() and hive_wait_any(): how many, in which order, until when. */
#include "support/world.h"

enum { MANY = 1000 };

static int sleep_for(void *arg)
{
	intptr_t ms = (intptr_t)arg;
	int r = hive_sleep(HIVE_MS(ms));

	return r < 0 ? r : (int)ms;
}

static void *ms(intptr_t n)
{
	return (void *)n;
}

struct crowd {
	struct hive_fiber *fibers[MANY];
	size_t count, index;
	int64_t deadline_ns;
	bool any;
};

static int wait_in_fiber(void *arg)
{
	struct crowd *c = arg;

	if (c->any)
		return hive_wait_any(c->fibers, c->count, c->deadline_ns, &c->index);
	return hive_wait_all(c->fibers, c->count, c->deadline_ns);
}

/* From a fiber, or from the test's thread. */
static int wait_for(struct world *w, struct crowd *c, bool in_fiber)
{
	return in_fiber ? world_result(world_spawn(w, wait_in_fiber, c)) : wait_in_fiber(c);
}

static void join_all(struct crowd *c)
{
	int result;

	for (size_t i = 0; i < c->count; i++) {
		CHECK_OK(hive_fiber_join(c->fibers[i], HIVE_NOWAIT, &result)); /* does not wait any more */
		CHECK(result > 0);
	}
}

static const size_t counts[] = { 1, 2, 15, 16, 17, 33, MANY };
enum { COUNTS = sizeof counts / sizeof *counts };
static struct crowd crowd;

static void gather(struct world *w, size_t count, bool any, intptr_t (*delay)(size_t i))
{
	crowd = (struct crowd){ .count = count, .any = any, .deadline_ns = HIVE_FOREVER, .index = MANY };
	for (size_t i = 0; i < count; i++)
		crowd.fibers[i] = world_spawn(w, sleep_for, ms(delay(i)));
}

static intptr_t later_first(size_t i)
{
	return (intptr_t)(MANY + 5 - i);
}

static intptr_t some_order(size_t i)
{
	return (intptr_t)(1 + i * 7919 % MANY);
}

/* F-14: returns when the last has ended, not before. */
TEST(wait_all_returns_with_the_last_end)
{
	for (size_t i = 0; i < 2 * COUNTS; i++) {
		struct world w = world_open(i, 3, 0);
		intptr_t last = 0;

		gather(&w, counts[i / 2], false, some_order);
		for (size_t j = 0; j < crowd.count; j++)
			last = some_order(j) > last ? some_order(j) : last;
		CHECK_OK(wait_for(&w, &crowd, i % 2));
		CHECK_EQ(hive_now(w.hive), HIVE_MS(last));
		join_all(&crowd);
		world_close(&w, HIVE_DRAIN);
	}
}

TEST(wait_any_returns_with_the_first_end)
{
	for (size_t i = 0; i < 2 * COUNTS; i++) {
		struct world w = world_open(i, 3, 0);

		gather(&w, counts[i / 2], true, later_first);
		CHECK_OK(wait_for(&w, &crowd, i % 2));
		CHECK_EQ(crowd.index, crowd.count - 1);
		CHECK_EQ(hive_now(w.hive), HIVE_MS(later_first(crowd.index)));
		CHECK_OK(hive_wait_all(crowd.fibers, crowd.count, HIVE_FOREVER));
		CHECK_OK(hive_wait_any(crowd.fibers, crowd.count, HIVE_NOWAIT, &crowd.index));
		CHECK_EQ(crowd.index, 0); /* all have: the first in the array */
		join_all(&crowd);
		world_close(&w, HIVE_DRAIN);
	}
}

TEST(waiting_for_none_is_done_at_once_or_refused)
{
	struct world w = world_open(1, 1, 0);
	size_t index = 7;

	CHECK_OK(hive_wait_all(NULL, 0, HIVE_FOREVER));
	CHECK_ERR(hive_wait_any(NULL, 0, HIVE_FOREVER, &index), -EINVAL);
	crowd = (struct crowd){ .any = true };
	CHECK_ERR(wait_for(&w, &crowd, true), -EINVAL);
	crowd.any = false;
	CHECK_OK(wait_for(&w, &crowd, true));
	CHECK_EQ(index, 7);
	world_close(&w, HIVE_DRAIN);
}

/* Ended before the call: no wait, whatever the deadline; the same fiber may stand there twice. */
TEST(fibers_that_have_ended_are_not_waited_for)
{
	for (int in_fiber = 0; in_fiber < 2; in_fiber++) {
		struct world w = world_open(1, 2, 0);

		gather(&w, 20, false, some_order);
		world_advance(&w, HIVE_MS(MANY));
		crowd.deadline_ns = HIVE_NOWAIT;
		CHECK_OK(wait_for(&w, &crowd, in_fiber));
		crowd.any = true;
		CHECK_OK(wait_for(&w, &crowd, in_fiber));
		CHECK_EQ(crowd.index, 0);
		join_all(&crowd);
		world_close(&w, HIVE_DRAIN);
	}
}

TEST(the_same_fiber_may_be_waited_for_twice_in_one_call)
{
	struct world w = world_open(1, 2, 0);
	struct hive_fiber *fiber = world_spawn(&w, sleep_for, ms(3)), *twice[2] = { fiber, fiber };
	size_t index = 9;

	CHECK_OK(hive_wait_any(twice, 2, HIVE_FOREVER, &index));
	CHECK_EQ(index, 0);
	CHECK_OK(hive_wait_all(twice, 2, HIVE_FOREVER));
	CHECK_EQ(world_result(fiber), 3);
	world_close(&w, HIVE_DRAIN);
}

/* At the deadline, exactly; then everybody can still be waited for. */
TEST(waits_for_several_end_at_their_deadline)
{
	for (size_t i = 0; i < 4 * COUNTS; i++) {
		struct world w = world_open(i, 2, 0);

		gather(&w, counts[i / 4], i % 2, later_first);
		crowd.deadline_ns = hive_deadline(w.hive, HIVE_MS(3));
		CHECK_ERR(wait_for(&w, &crowd, i / 2 % 2), -ETIMEDOUT);
		CHECK_EQ(hive_now(w.hive), HIVE_MS(3));
		CHECK_EQ(crowd.index, MANY);
		crowd.deadline_ns = HIVE_NOWAIT;
		CHECK_ERR(wait_for(&w, &crowd, i / 2 % 2), -ETIMEDOUT);
		crowd.deadline_ns = HIVE_FOREVER;
		crowd.any = false;
		CHECK_OK(wait_for(&w, &crowd, i / 2 % 2));
		join_all(&crowd);
		world_close(&w, HIVE_DRAIN);
	}
}

/* Several may wait for the same ones, with and without success; nobody is left behind. */
TEST(many_may_wait_for_the_same_fibers)
{
	struct world w = world_open(5, 3, 0);
	static struct crowd copies[20];
	struct hive_fiber *waiters[20];

	gather(&w, 20, false, later_first);
	for (int i = 0; i < 20; i++) {
		copies[i] = crowd;
		copies[i].any = i % 2;
		copies[i].deadline_ns = i % 3 ? HIVE_FOREVER : hive_deadline(w.hive, HIVE_MS(1 + i));
		waiters[i] = world_spawn(&w, wait_in_fiber, &copies[i]);
	}
	for (int i = 0; i < 20; i++)
		CHECK_EQ(world_result(waiters[i]), i % 3 ? 0 : -ETIMEDOUT);
	join_all(&crowd);
	world_close(&w, HIVE_DRAIN);
}

/* A mistake anywhere in the array is told before anything is waited for. */
TEST(one_bad_handle_refuses_the_whole_wait)
{
	struct world w = world_open(5, 1, 0);
	struct hive_fiber *three[3];
	size_t index = 9;

	three[0] = world_spawn(&w, sleep_for, ms(50));
	three[1] = world_spawn(&w, sleep_for, ms(1));
	three[2] = world_spawn(&w, sleep_for, ms(60));
	CHECK_EQ(world_result(three[1]), 1);
	CHECK_ERR(hive_wait_all(three, 3, HIVE_FOREVER), -ESRCH);
	CHECK_ERR(hive_wait_any(three, 3, HIVE_FOREVER, &index), -ESRCH);
	CHECK_ERR(hive_wait_any(three, 3, HIVE_FOREVER, NULL), -EINVAL);
	CHECK_EQ(hive_now(w.hive), HIVE_MS(1));
	three[1] = three[2];
	CHECK_OK(hive_wait_any(three, 3, HIVE_FOREVER, &index));
	CHECK_EQ(index, 0);
	CHECK_EQ(world_result(three[0]), 50);
	CHECK_EQ(world_result(three[2]), 60);
	world_close(&w, HIVE_DRAIN);
}
