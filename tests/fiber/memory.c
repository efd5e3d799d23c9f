/* SPDX-License-Identifier: MIT */
/* No memory: a spawn, a wait, an offload say so, and the hive goes on. Allocations are the fake world's; mappings fail in a
 * child whose system calls are filtered.                                                                                 */
#include <sys/resource.h>
#include <sys/syscall.h>

#include "support/child.h"
#include "support/fake.h"
#include "support/world.h"

static struct fake world;
static int ended;

static int count(void *arg)
{
	(void)arg;
	ended++;
	return 0;
}

static void open_world(int32_t io, int32_t compute)
{
	world.worker_count = 0; /* those of the world before are gone */
	fake_create(&world, (struct hive_options){ .io_workers = io, .compute_workers = compute });
	fake_start(&world);
	fake_settle(&world);
	ended = 0;
}

static void fail_at(int nth, bool sticky)
{
	world.allocations = 0;
	world.fail_at = nth;
	world.sticky = sticky;
}

/* -ENOMEM or 0; the same again without faults succeeds. How many fibers it made. */
static int spawn_failing(int nth, bool sticky, bool detached, const struct hive_fiber_options *o)
{
	struct hive_fiber *untouched = (struct hive_fiber *)(uintptr_t)64, *fiber = untouched;
	int r;

	fail_at(nth, sticky);
	r = hive_spawn(world.hive, count, NULL, o, detached ? NULL : &fiber);
	fail_at(0, false);
	CHECK(r == 0 || r == -ENOMEM);
	if (r < 0) {
		CHECK(fiber == untouched);
		CHECK_OK(hive_spawn(world.hive, count, NULL, o, detached ? NULL : &fiber));
	}
	fake_settle(&world);
	if (!detached)
		CHECK_OK(hive_fiber_join(fiber, HIVE_NOWAIT, NULL));
	CHECK_EQ(ended, 1);
	return r;
}

/* Each allocation of a first spawn by itself, and from each on; foreign thread. */
TEST(a_spawn_without_memory_is_refused_and_leaves_nothing)
{
	struct hive_fiber_options main = { .worker = HIVE_WORKER_MAIN, .stack_bytes = 1 << 20 };
	int refused = 0;

	for (int how = 0; how < 8; how++) {
		bool failed = true;

		for (int nth = 1; failed; nth++) {
			CHECK(nth < 50);
			open_world(1, 0);
			failed = spawn_failing(nth, how & 1, how & 2, how & 4 ? &main : NULL) < 0;
			refused += failed;
			fake_destroy(&world);
		}
	}
	CHECK(refused >= 16);
}

static int nth_inside, refused_inside;
static bool sticky_inside;

static int spawn_inside(void *arg)
{
	int r;

	fail_at(nth_inside, sticky_inside);
	r = hive_spawn(world.hive, count, NULL, arg, NULL);
	fail_at(0, false);
	CHECK(r == 0 || r == -ENOMEM);
	refused_inside += r < 0;
	if (r < 0)
		CHECK_OK(hive_spawn(world.hive, count, NULL, arg, NULL));
	return 0;
}

/* On a worker: with a cache that cannot be had, and a class of stacks that is new. */
TEST(a_spawn_inside_without_memory_is_refused)
{
	struct hive_fiber_options big = { .stack_bytes = 1 << 20 };

	for (int sticky = 0; sticky < 2; sticky++) {
		sticky_inside = sticky;
		refused_inside = 0;
		for (nth_inside = 1; nth_inside < 8; nth_inside++) {
			open_world(1, 0);
			CHECK_OK(hive_spawn(world.hive, spawn_inside, &big, NULL, NULL));
			fake_settle(&world);
			CHECK_EQ(ended, 1);
			fake_destroy(&world);
		}
		CHECK(refused_inside > 0);
	}
}

/* ---- waits ---- */

static int wait_results[6];

/* A deadline needs a timer; without memory for it the wait says so. Waits without deadline need nothing. */
static int wait_without_memory(void *arg)
{
	struct hive_fiber *other = *(struct hive_fiber **)arg;
	size_t index;

	fail_at(1, true);
	wait_results[0] = hive_sleep(HIVE_MS(1));
	wait_results[1] = hive_fiber_join(other, hive_deadline(NULL, 5), NULL);
	wait_results[2] = hive_wait_all(&other, 1, hive_deadline(NULL, 5));
	wait_results[3] = hive_wait_any(&other, 1, hive_deadline(NULL, 5), &index);
	wait_results[4] = hive_yield();
	wait_results[5] = hive_fiber_join(other, HIVE_FOREVER, NULL);
	fail_at(0, false);
	ended++;
	return 0;
}

static int sleep_for(void *arg)
{
	(void)arg;
	return hive_sleep(HIVE_S(1));
}

static int sleep_for_ever(void *arg)
{
	(void)arg;
	return hive_sleep(HIVE_FOREVER);
}

TEST(a_deadline_without_memory_is_an_error_of_the_wait)
{
	struct hive_fiber *other;

	open_world(1, 0);
	CHECK_OK(hive_spawn(world.hive, sleep_for_ever, NULL, NULL, &other));
	fake_settle(&world);
	CHECK_OK(hive_spawn(world.hive, wait_without_memory, &other, NULL, NULL));
	fake_settle(&world);
	CHECK_EQ(ended, 0);
	CHECK_OK(hive_fiber_cancel(other));
	fake_settle(&world);
	CHECK_EQ(ended, 1);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(wait_results[i], -ENOMEM);
	CHECK_EQ(wait_results[4], 0);
	CHECK_EQ(wait_results[5], 0);
	fake_destroy(&world);
}

/* Many sleepers fill the heap; one of them finds no room there. */
static int first_error;

static int sleep_or_tell(void *arg)
{
	int r = hive_sleep(HIVE_MS(1));

	(void)arg;
	if (r < 0)
		first_error = r;
	ended++;
	return r;
}

TEST(sleepers_without_memory_are_told_and_the_others_sleep_on)
{
	open_world(1, 0);
	first_error = 0;
	CHECK_OK(hive_spawn(world.hive, sleep_or_tell, NULL, NULL, NULL)); /* brings memory for a few more */
	fake_settle(&world);
	for (int i = 0; i < 499; i++)
		CHECK_OK(hive_spawn(world.hive, sleep_or_tell, NULL, NULL, NULL));
	fail_at(1, true);
	fake_settle(&world);
	fail_at(0, false);
	CHECK_EQ(first_error, -ENOMEM);
	CHECK(ended > 0 && ended < 500);
	fake_advance(&world, HIVE_MS(1));
	CHECK_EQ(ended, 500);
	fake_destroy(&world);
}

/* Waking needs no memory, whatever the queues say: a thousand at once from outside and from inside. */
static struct hive_fiber *master;

static int wait_for_master(void *arg)
{
	(void)arg;
	CHECK_OK(hive_wait_all(&master, 1, HIVE_FOREVER));
	ended++;
	return 0;
}

TEST(waking_many_needs_no_memory)
{
	for (int from_outside = 0; from_outside < 2; from_outside++) {
		world = (struct fake){ 0 };
		fake_create(&world,
		            (struct hive_options){ .io_workers = 2,
		                                   .io = &(struct hive_worker_options){ .local_capacity = 4 } });
		fake_start(&world);
		ended = 0;
		CHECK_OK(hive_spawn(world.hive, sleep_for, NULL, NULL, &master));
		fake_settle(&world);
		for (int i = 0; i < 1000; i++)
			CHECK_OK(hive_spawn(world.hive, wait_for_master, NULL, NULL, NULL));
		fake_settle(&world);
		fail_at(1, true);
		if (from_outside)
			CHECK_OK(hive_fiber_cancel(master));
		fake_advance(&world, HIVE_S(1));
		fail_at(0, false);
		CHECK_EQ(ended, 1000);
		CHECK_OK(hive_fiber_join(master, HIVE_NOWAIT, NULL));
		fake_destroy(&world);
	}
}

/* Yielding neither: thousands in a queue of four. */
static int yield_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++)
		CHECK_OK(hive_yield());
	ended++;
	return 0;
}

TEST(yielding_needs_no_memory)
{
	world = (struct fake){ 0 };
	fake_create(&world, (struct hive_options){ .io_workers = 2,
	                                           .io = &(struct hive_worker_options){ .local_capacity = 4 } });
	fake_start(&world);
	ended = 0;
	for (int i = 0; i < 2000; i++)
		CHECK_OK(hive_spawn(world.hive, yield_often, NULL, NULL, NULL));
	fail_at(1, true);
	fake_settle(&world);
	fail_at(0, false);
	CHECK_EQ(ended, 2000);
	fake_destroy(&world);
}

/* ---- offload ---- */

static int offloaded;

static int offload_without_memory(void *arg)
{
	int r;

	(void)arg;
	fail_at(nth_inside, true);
	r = hive_offload(count, NULL, HIVE_FOREVER, NULL);
	fail_at(0, false);
	CHECK(r == 0 || r == -ENOMEM);
	refused_inside += r < 0;
	if (r < 0)
		CHECK_OK(hive_offload(count, NULL, HIVE_FOREVER, NULL));
	offloaded++;
	return 0;
}

TEST(an_offload_without_memory_is_refused_and_runs_nothing)
{
	offloaded = refused_inside = 0;
	for (nth_inside = 1; nth_inside < 6; nth_inside++) {
		open_world(1, 1);
		CHECK_OK(hive_spawn(world.hive, offload_without_memory, NULL, NULL, NULL));
		fake_settle(&world);
		CHECK_EQ(ended, 1);
		fake_destroy(&world);
	}
	CHECK_EQ(offloaded, 5);
	CHECK(refused_inside > 0);
}

/* ---- mappings ---- */

static void task(void *arg)
{
	++*(int *)arg;
}

/* Every spawn says -ENOMEM; tasks run. */
static void spawn_without(const long *calls, size_t calls_count)
{
	struct world w = world_open(1, 2, 0);
	struct hive_fiber *none = NULL;
	int ran = 0;

	if (!filter_system_calls(calls, calls_count, ENOMEM))
		_exit(CHILD_NO_FILTER);
	for (int i = 0; i < 100; i++) {
		CHECK_ERR(hive_spawn(w.hive, count, NULL, NULL, i % 2 ? &none : NULL), -ENOMEM);
		CHECK_ERR(hive_block_on(w.hive, count, NULL, HIVE_FOREVER, NULL), -ENOMEM);
		CHECK_OK(hive_post(w.hive, task, &ran));
	}
	CHECK(!none);
	world_settle(&w);
	CHECK_EQ(ran, 100);
	CHECK_EQ(world_close(&w, HIVE_DRAIN).posted, 100);
	_exit(0);
}

static void spawn_in_child(const long *calls, size_t calls_count)
{
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		spawn_without(calls, calls_count);
	status = child_wait(child);
	CHECK(status == 0 || status == CHILD_NO_FILTER);
}

TEST(without_mappings_there_are_no_fibers_and_the_hive_goes_on)
{
	if (test_slowness() > 1) {
		test_skip("sanitizers and emulators need mappings themselves");
		return;
	}
	spawn_in_child((const long[]){ SYS_mmap }, 1);
	spawn_in_child((const long[]){ SYS_madvise, SYS_mprotect }, 2); /* no guard, no stack */
}

/* As vm.max_map_count has it: some stacks are there, and then there are no more. */
static void spawn_until_there_is_none(void)
{
	struct world w = world_open(1, 1, 0);
	struct hive_fiber_options huge = { .stack_bytes = ((size_t)1 << 30) - (1 << 20) };
	int spawned = 0, r;

	ended = 0;
	while ((r = hive_spawn(w.hive, count, NULL, &huge, NULL)) == 0)
		CHECK(++spawned < 1000);
	CHECK_ERR(r, -ENOMEM);
	CHECK(spawned > 0);
	world_settle(&w);
	CHECK_EQ(ended, spawned);
	CHECK_OK(hive_spawn(w.hive, count, NULL, &huge, NULL)); /* those that ended are there again */
	CHECK_OK(hive_spawn(w.hive, count, NULL, NULL, NULL));
	world_close(&w, HIVE_DRAIN);
	CHECK_EQ(ended, spawned + 2);
}

TEST(the_end_of_address_space_is_the_end_of_spawning_only)
{
	struct rlimit limit = { (rlim_t)6 << 30, (rlim_t)6 << 30 };
	pid_t child;

	if (test_slowness() > 1) {
		test_skip("sanitizers and emulators need address space themselves");
		return;
	}
	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		CHECK_OK(setrlimit(RLIMIT_AS, &limit));
		spawn_until_there_is_none();
		_exit(0);
	}
	CHECK_EQ(child_wait(child), 0);
}
