/* SPDX-License-Identifier: MIT */
/* Where groups meet tokens, priorities, stops and each other: each of these was a mistake once. */
#include <rophive/hive.h>

#include <pthread.h>

#include "base/atomic.h"
#include "base/rng.h"
#include "support/real.h"
#include "test.h"

static ATOMIC(uint32_t) ran;

static void count(void *arg)
{
	(void)arg;
	add_relaxed(&ran, 1u);
}

static struct hive *begin(int32_t io, int32_t compute)
{
	store_relaxed(&ran, 0);
	return real_start((struct hive_options){ .io_workers = io, .compute_workers = compute });
}

/* ---- tokens ---- */

static struct hive_cancel token;
static struct gate gate;

static void linger(void *arg)
{
	while (hive_group_error(arg) == 0)
		sched_yield();
	count(NULL);
}

/* Also with a reason that looks like one why it could not be waited for. */
static int wait_under_token(void *arg)
{
	struct hive_group group;
	int r;

	hive_group_init(&group, hive_current(), HIVE_COMPUTE);
	hive_group_run(&group, linger, &group);
	gate_open(&gate);
	r = hive_group_wait(&group, HIVE_FOREVER);
	CHECK(hive_group_error(&group) == r);
	(void)arg;
	return r;
}

TEST(a_wait_lasts_whatever_its_fiber_is_cancelled_with)
{
	static const int reasons[] = { -EDEADLK, -EPERM, -EAGAIN, -ETIMEDOUT };
	struct hive *hive = begin(1, 1);

	gate_init(&gate);
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
		struct hive_fiber_options under = { .cancel = &token };
		struct hive_fiber *fiber;
		int result = 0;

		hive_cancel_init(&token, NULL, HIVE_FOREVER);
		CHECK_OK(hive_spawn(hive, wait_under_token, NULL, &under, &fiber));
		gate_pass(&gate);
		CHECK_OK(hive_cancel_fire_with(&token, reasons[i]));
		CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, &result));
		CHECK_ERR(result, reasons[i]);
		CHECK_OK(hive_cancel_join(&token, HIVE_FOREVER));
	}
	real_end(hive, HIVE_DRAIN);
	gate_destroy(&gate);
}

/* Nobody else is under it: the group has to see to it that its deadline is watched. */
TEST(the_deadline_of_its_token_ends_a_group)
{
	struct hive *hive = begin(1, 1);
	struct hive_group_options options = { .cancel = &token };
	struct hive_group group;

	hive_cancel_init(&token, NULL, hive_deadline(hive, HIVE_MS(2)));
	CHECK_OK(hive_group_init_with(&group, hive, HIVE_COMPUTE, &options));
	do
		hive_group_run(&group, count, NULL);
	while (hive_group_wait(&group, HIVE_FOREVER) == 0);
	CHECK_ERR(hive_group_error(&group), -ETIMEDOUT);
	CHECK_OK(hive_cancel_join(&token, HIVE_FOREVER));
	real_end(hive, HIVE_DRAIN);
}

static struct hive_group followed;

/* The last step may be the one that ends the token. */
static void join_the_token(void *arg)
{
	(void)arg;
	CHECK_OK(hive_cancel_join(&token, HIVE_FOREVER));
	gate_open(&gate);
}

static void follow(void *arg)
{
	struct hive_group_options options = { .cancel = &token };

	CHECK_OK(hive_group_init_with(&followed, arg, HIVE_COMPUTE, &options));
	hive_group_run(&followed, count, NULL);
	CHECK_OK(hive_group_then(&followed, join_the_token, NULL));
}

TEST(what_follows_a_group_may_join_its_token)
{
	struct hive *hive = begin(1, 1);

	gate_init(&gate);
	hive_cancel_init(&token, NULL, HIVE_FOREVER);
	CHECK_OK(hive_post_compute(hive, follow, hive));
	gate_pass(&gate);
	real_end(hive, HIVE_DRAIN);
	gate_destroy(&gate);
}

/* A task that is called in a fiber, for there is no worker for it, and waits there: others on that worker are not under its token. */
static int look_while_the_other_sleeps(void *arg)
{
	(void)arg;
	CHECK(!hive_cancelled());
	return 0;
}

static void sleep_in_place(void *arg)
{
	hive_cancel_fire(arg);
	(void)!hive_sleep(HIVE_MS(1));
	(void)!hive_yield();
}

static int call_in_place(void *arg)
{
	struct hive_group_options options = { .cancel = arg };
	struct hive_group group;

	CHECK_OK(hive_group_init_with(&group, hive_current(), HIVE_COMPUTE, &options));
	hive_group_run(&group, sleep_in_place, arg);
	(void)!hive_group_wait(&group, HIVE_FOREVER);
	return 0;
}

static void look_in_task(void *arg)
{
	CHECK(!hive_cancelled());
	gate_open(arg);
}

TEST(a_task_that_waits_in_a_fiber_takes_its_token_along)
{
	struct hive *hive = begin(1, 0);
	struct hive_fiber *fiber;

	gate_init(&gate);
	hive_cancel_init(&token, NULL, HIVE_FOREVER);
	CHECK_OK(hive_spawn(hive, call_in_place, &token, NULL, &fiber));
	for (int i = 0; i < 20; i++) {
		CHECK_OK(hive_post(hive, look_in_task, &gate));
		CHECK_OK(hive_block_on(hive, look_while_the_other_sleeps, NULL, HIVE_FOREVER, NULL));
	}
	for (int i = 0; i < 20; i++)
		gate_pass(&gate);
	CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, NULL));
	CHECK_OK(hive_cancel_join(&token, HIVE_FOREVER));
	real_end(hive, HIVE_DRAIN);
	gate_destroy(&gate);
}

/* ---- IO workers ---- */

static void wait_for_both_kinds(void *arg)
{
	hive_group_init(&followed, hive_current(), HIVE_MICRO);
	hive_group_run_on(&followed, HIVE_COMPUTE, count, NULL);
	hive_group_run(&followed, count, NULL);
	for (int r = -EDEADLK; r == -EDEADLK && load_relaxed(&ran) == 0;) {
		r = hive_group_wait(&followed, HIVE_FOREVER); /* unless it is over */
		CHECK(r == 0 || r == -EDEADLK);
	}
	CHECK_OK(hive_group_then(&followed, gate_open_task, arg));
}

TEST(a_task_of_an_io_worker_does_not_wait_for_compute_tasks)
{
	struct hive *hive = begin(1, 1);

	gate_init(&gate);
	CHECK_OK(hive_post(hive, wait_for_both_kinds, &gate));
	gate_pass(&gate);
	CHECK_EQ(load_relaxed(&ran), 2);
	real_end(hive, HIVE_DRAIN);
	gate_destroy(&gate);
}

/* ---- a stop in the middle of a sort ---- */

enum { ITEMS = 60000 };

static int items[ITEMS];
static bool there[ITEMS];

static int compare(const void *a, const void *b)
{
	return hive_compare_i32(a, b);
}

static void *sort_items(void *arg)
{
	int r = hive_parallel_sort(arg, items, ITEMS, sizeof *items, compare, HIVE_FOREVER);

	CHECK(r == 0 || r == -ECANCELED);
	return NULL;
}

TEST(a_stop_at_once_in_a_sort_loses_no_item)
{
	for (int round = 0; round < 30 / test_slowness() + 3; round++) {
		struct hive *hive = begin(2, 2);
		pthread_t thread;

		for (int i = 0; i < ITEMS; i++) {
			items[i] = (int)((int64_t)i * 7919 % ITEMS);
			there[i] = false;
		}
		CHECK_OK(pthread_create(&thread, NULL, sort_items, hive));
		real_pass_time(HIVE_US(100) * round);
		CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
		CHECK_OK(pthread_join(thread, NULL));
		real_join(hive);
		for (int i = 0; i < ITEMS; i++) {
			CHECK(items[i] >= 0 && items[i] < ITEMS && !there[items[i]]);
			there[items[i]] = true;
		}
	}
}

/* ---- many who raise, send, wait and stop ---- */

struct crowd {
	struct hive *hive;
	struct hive_group *group;
	ATOMIC(uint32_t) *go_on;
};

static void *raise_again_and_again(void *arg)
{
	struct crowd *c = arg;
	uint64_t seed = (uintptr_t)&seed;

	while (load_acquire(c->go_on)) {
		CHECK_OK(hive_group_raise(c->group, (enum hive_priority)rng_below(rng_next(&seed), 3)));
		usleep(50); /* who looks through the list all the time keeps everybody else out of it */
	}
	return NULL;
}

static void *run_into(void *arg)
{
	struct crowd *c = arg;

	for (int i = 0; i < 2000 / test_slowness(); i++)
		hive_group_run(c->group, count, NULL);
	return NULL;
}

static void wait_too(void *arg)
{
	struct crowd *c = arg;

	CHECK_OK(hive_group_wait(c->group, HIVE_FOREVER));
}

TEST(tasks_that_are_raised_from_everywhere_run_once)
{
	struct hive *hive = begin(1, 2);
	struct hive_group_options low = { .priority = HIVE_PRIORITY_LOW, .flags = HIVE_GROUP_SHARED };

	for (int round = 0; round < 5; round++) {
		ATOMIC(uint32_t) go_on;
		struct hive_group group, waits;
		struct crowd crowd = { hive, &group, &go_on };
		pthread_t raisers[2], senders[2];

		store_relaxed(&go_on, 1u);
		store_relaxed(&ran, 0);
		CHECK_OK(hive_group_init_with(&group, hive, HIVE_COMPUTE, &low));
		CHECK_OK(hive_group_enter(&group));
		hive_group_init(&waits, hive, HIVE_COMPUTE);
		for (int i = 0; i < 2; i++) {
			CHECK_OK(pthread_create(&raisers[i], NULL, raise_again_and_again, &crowd));
			CHECK_OK(pthread_create(&senders[i], NULL, run_into, &crowd));
		}
		hive_group_run(&waits, wait_too, &crowd); /* by itself it raises them as well, and runs them */
		for (int i = 0; i < 2; i++)
			CHECK_OK(pthread_join(senders[i], NULL));
		CHECK_OK(hive_group_leave(&group, 0));
		CHECK_OK(hive_group_wait(&waits, HIVE_FOREVER));
		CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
		CHECK_EQ(load_relaxed(&ran), 2 * (2000 / test_slowness()));
		store_release(&go_on, 0u);
		for (int i = 0; i < 2; i++)
			CHECK_OK(pthread_join(raisers[i], NULL));
	}
	real_end(hive, HIVE_DRAIN);
}

/* Senders whom the drain refuses run their tasks themselves, while a task waits for the same group and takes what it finds. */
TEST(tasks_that_are_sent_while_the_hive_drains_run_once)
{
	for (int round = 0; round < 20 / test_slowness() + 2; round++) {
		struct hive *hive = begin(1, 2);
		struct hive_group group, waits;
		struct crowd crowd = { hive, &group, NULL };
		struct hive_group_options shared = { .flags = HIVE_GROUP_SHARED };
		pthread_t senders[2];

		CHECK_OK(hive_group_init_with(&group, hive, HIVE_COMPUTE, &shared));
		CHECK_OK(hive_group_enter(&group));
		hive_group_init(&waits, hive, HIVE_COMPUTE);
		hive_group_run(&waits, wait_too, &crowd);
		for (int i = 0; i < 2; i++)
			CHECK_OK(pthread_create(&senders[i], NULL, run_into, &crowd));
		CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
		for (int i = 0; i < 2; i++)
			CHECK_OK(pthread_join(senders[i], NULL));
		CHECK_OK(hive_group_leave(&group, 0));
		CHECK_OK(hive_group_wait(&waits, HIVE_FOREVER));
		CHECK_EQ(load_relaxed(&ran), 2 * (2000 / test_slowness()));
		real_join(hive);
	}
}
