/* SPDX-License-Identifier: MIT */
/* Values by key: inherited at spawn, changed by one without the others' notice, and never more memory than keys. */
#include "support/fake.h"
#include "support/world.h"

static char keys[64];

static void *number(intptr_t n)
{
	return (void *)n;
}

static int check_inherited(void *arg)
{
	struct hive_fiber *child;

	CHECK(hive_fiber_get(&keys[0]) == number(1));
	CHECK(hive_fiber_get(&keys[1]) == number(2));
	CHECK_OK(hive_fiber_set(&keys[0], number(10)));
	CHECK_OK(hive_fiber_set(&keys[2], number(30)));
	CHECK_OK(hive_yield());
	CHECK(hive_fiber_get(&keys[0]) == number(10));
	CHECK(hive_fiber_get(&keys[1]) == number(2)); /* what the parent set after the spawn is the parent's */
	if (arg) {
		CHECK_OK(hive_fiber_set(&keys[0], number(1)));
		CHECK_OK(hive_spawn(hive_current(), check_inherited, NULL, NULL, &child));
		CHECK_OK(hive_fiber_join(child, HIVE_FOREVER, NULL));
		CHECK(hive_fiber_get(&keys[0]) == number(1));
	}
	return 0;
}

static int check_values(void *arg)
{
	struct hive_fiber *children[3];

	(void)arg;
	CHECK(!hive_fiber_get(&keys[0])); /* the stack's last owner's are gone */
	CHECK_OK(hive_fiber_set(&keys[0], number(1)));
	CHECK_OK(hive_fiber_set(&keys[1], number(2)));
	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_spawn(hive_current(), check_inherited, i ? &keys : NULL, NULL, &children[i]));
	CHECK_OK(hive_fiber_set(&keys[1], number(20)));
	CHECK_OK(hive_wait_all(children, 3, HIVE_FOREVER));
	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_fiber_join(children[i], HIVE_FOREVER, NULL));
	CHECK(hive_fiber_get(&keys[0]) == number(1));
	CHECK(hive_fiber_get(&keys[1]) == number(20));
	CHECK(!hive_fiber_get(&keys[2]));
	CHECK_OK(hive_fiber_set(&keys[0], NULL));
	CHECK(!hive_fiber_get(&keys[0]));
	CHECK_ERR(hive_fiber_set(NULL, number(1)), -EINVAL);
	CHECK(!hive_fiber_get(NULL));
	return 0;
}

TEST(children_inherit_values_and_change_their_own)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct world w = world_open(seed, 3, 0);

		CHECK_EQ(world_result(world_spawn(&w, check_values, NULL)), 0);
		CHECK_EQ(world_result(world_spawn(&w, check_values, NULL)), 0);
		world_close(&w, HIVE_DRAIN);
	}
}

static int outside;

static void set_in_task(void *arg)
{
	(void)arg;
	outside += hive_fiber_set(&keys[0], number(1)) == -EPERM && !hive_fiber_get(&keys[0]);
}

TEST(outside_of_fibers_there_are_no_values)
{
	struct world w = world_open(1, 1, 1);

	outside = 0;
	set_in_task(NULL);
	CHECK_OK(hive_post(w.hive, set_in_task, NULL));
	CHECK_OK(hive_post_compute(w.hive, set_in_task, NULL));
	world_settle(&w);
	CHECK_EQ(outside, 3);
	world_close(&w, HIVE_DRAIN);
}

/* ---- memory, counted: the fake world's ---- */

static struct fake world;

static int set_often(void *arg)
{
	int64_t before;

	(void)arg;
	for (int i = 0; i < 8; i++)
		CHECK_OK(hive_fiber_set(&keys[i], number(i)));
	before = world.balance;
	for (intptr_t i = 0; i < 10000; i++)
		CHECK_OK(hive_fiber_set(&keys[i % 8], number(i)));
	CHECK_EQ(world.balance, before);
	for (int i = 0; i < 8; i++)
		CHECK(hive_fiber_get(&keys[i]) == number(9992 + i));
	return 0;
}

static int set_as_heir(void *arg)
{
	int64_t before = world.balance;

	for (intptr_t i = 0; i < 1000; i++)
		CHECK_OK(hive_fiber_set(&keys[3], number(i)));
	CHECK(world.balance <= before + 8); /* its own copies of at most all the nodes */
	(void)arg;
	CHECK(hive_fiber_get(&keys[0]) == number(9992));
	return 0;
}

static int set_and_spawn(void *arg)
{
	(void)arg;
	set_often(NULL);
	for (int i = 0; i < 5; i++)
		CHECK_OK(hive_spawn(hive_current(), set_as_heir, &keys, NULL, NULL));
	return 0;
}

/* One key set a thousand times is one value; when all have ended nothing is left. */
TEST(values_cost_memory_once_and_give_it_back)
{
	int64_t before;

	world = (struct fake){ 0 };
	fake_create(&world, (struct hive_options){ .io_workers = 1 });
	fake_start(&world);
	CHECK_OK(hive_spawn(world.hive, set_and_spawn, NULL, NULL, NULL)); /* queues, caches */
	fake_settle(&world);
	before = world.balance;
	for (int i = 0; i < 3; i++) {
		CHECK_OK(hive_spawn(world.hive, set_and_spawn, NULL, NULL, NULL));
		fake_settle(&world);
		CHECK_EQ(world.balance, before);
	}
	fake_destroy(&world);
}

static int failures;

/* Its n-th allocation fails: -ENOMEM, all values as they were; then it works. */
static int set_without_memory(void *arg)
{
	for (int nth = 1; nth < 12; nth++) {
		int r;

		world.allocations = 0;
		world.fail_at = nth;
		r = hive_fiber_set(&keys[(intptr_t)arg % 8], number(100));
		world.fail_at = 0;
		CHECK(r == 0 || r == -ENOMEM);
		if (r == 0)
			return 0;
		failures++;
		for (int i = 0; i < 8; i++)
			CHECK(hive_fiber_get(&keys[i]) == number(9992 + i));
	}
	CHECK(false);
	return 0;
}

static int spawn_the_poor(void *arg)
{
	set_often(NULL);
	CHECK_OK(hive_spawn(hive_current(), set_without_memory, arg, NULL, NULL));
	CHECK_OK(hive_yield()); /* the child shares the list meanwhile */
	return 0;
}

/* A refused allocation leaks nothing: at the end of the hive everything has been given back. */
TEST(setting_without_memory_changes_nothing_and_leaks_nothing)
{
	failures = 0;
	for (intptr_t key = 0; key < 8; key++) {
		world = (struct fake){ 0 };
		fake_create(&world, (struct hive_options){ .io_workers = 1 });
		fake_start(&world);
		CHECK_OK(hive_spawn(world.hive, spawn_the_poor, number(key), NULL, NULL));
		fake_settle(&world);
		fake_destroy(&world); /* compares what was allocated and what was freed */
	}
	CHECK_EQ(failures,
	         1 + 2 + 3 + 4 + 5 + 6 + 7 + 8); /* one allocation for each node before the key, and its own */
}
