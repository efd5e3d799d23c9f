/* SPDX-License-Identifier: MIT */
/* Once. */
#include "crew.h"

static struct hive_once once;
static ATOMIC(uint32_t) calls, ready, open_now;
static uint64_t made;

static int make(void *arg)
{
	(void)arg;
	add_seq(&calls, 1u);
	made = 42;
	return 0;
}

static void begin(void)
{
	hive_once_init(&once);
	store_relaxed(&calls, 0);
	store_relaxed(&ready, 0);
	store_relaxed(&open_now, 0);
	made = 0;
}

TEST(it_is_called_once)
{
	begin();
	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_once_run(&once, make, NULL, HIVE_NOWAIT));
	CHECK_EQ(load_relaxed(&calls), 1);
}

static int fail(void *arg)
{
	add_seq(&calls, 1u);
	return *(int *)arg;
}

TEST(what_failed_is_tried_again)
{
	int error = -EIO, value = 7;

	begin();
	CHECK_ERR(hive_once_run(&once, fail, &error, HIVE_NOWAIT), -EIO);
	CHECK_ERR(hive_once_run(&once, fail, &error, HIVE_NOWAIT), -EIO);
	CHECK_OK(hive_once_run(&once, fail, &value, HIVE_NOWAIT)); /* a result that is no error */
	CHECK_OK(hive_once_run(&once, fail, &error, HIVE_NOWAIT));
	CHECK_EQ(load_relaxed(&calls), 3);
}

static int run_inside(void *arg)
{
	return hive_once_run(arg, make, NULL, HIVE_FOREVER);
}

TEST(mistakes_are_told)
{
	struct hive_once never = { 0 };

	hive_once_init(NULL);
	CHECK_ERR(hive_once_run(NULL, make, NULL, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_once_run(&never, make, NULL, HIVE_NOWAIT), -EINVAL);
	begin();
	CHECK_ERR(hive_once_run(&once, NULL, NULL, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_once_run(&once, run_inside, &once, HIVE_FOREVER), -EDEADLK);
	CHECK_OK(hive_once_run(&once, make, NULL, HIVE_NOWAIT));
}

static int make_when_told(void *arg)
{
	store_release(&ready, 1);
	until(&open_now, 1);
	return make(arg);
}

static void ask(void *arg)
{
	CHECK_OK(hive_once_run(&once, make_when_told, arg, HIVE_FOREVER));
	CHECK_EQ(made, 42);
}

/* Others wait for who has begun, and see what it did; with a deadline not for ever. */
CREW_TEST(others_wait_for_the_first)
{
	struct crew crew;

	begin();
	crew_begin(&crew, crew_kind);
	crew_add(&crew, ask, NULL);
	until(&ready, 1);
	for (int i = 0; i < 4; i++)
		crew_add(&crew, ask, NULL);
	UNTIL_WAITING(&once.mutex, 4);
	CHECK_ERR(hive_once_run(&once, make, NULL, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_EQ(load_relaxed(&calls), 0);
	store_release(&open_now, 1);
	crew_end(&crew);
	CHECK_EQ(load_relaxed(&calls), 1);
}
