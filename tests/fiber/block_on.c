/* SPDX-License-Identifier: MIT */
/* hive_block_on(): the root and everybody beneath it, from a thread that waits. */
#include <pthread.h>

#include "sched/tune.h"
#include "support/real.h"
#include "support/world.h"

static int begun, ended;

static int return_number(void *arg)
{
	return (int)(intptr_t)arg;
}

static int count_ends(void *arg)
{
	begun++;
	hive_sleep(HIVE_MS((intptr_t)arg));
	ended++;
	return 0;
}

/* F-13 */
TEST(block_on_returns_the_result_of_the_root)
{
	struct world w = world_open(1, 2, 0);
	int result = 0;

	CHECK_OK(hive_block_on(w.hive, return_number, (void *)42, HIVE_FOREVER, &result));
	CHECK_EQ(result, 42);
	CHECK_OK(hive_block_on(w.hive, return_number, (void *)(intptr_t)-EIO, HIVE_FOREVER, &result));
	CHECK_EQ(result, -EIO);
	CHECK_OK(hive_block_on(w.hive, return_number, NULL, HIVE_FOREVER, NULL));
	world_close(&w, HIVE_DRAIN);
}

/* A tree: each node spawns two and ends before they do. Handles are thrown away, kept and joined, as depth has it. */
static int grow(void *arg)
{
	intptr_t depth = (intptr_t)arg;
	struct hive_fiber *fiber;

	begun++;
	for (int i = 0; i < 2 && depth > 0; i++) {
		if (depth % 3 == 0) {
			CHECK_OK(hive_spawn(hive_current(), grow, (void *)(depth - 1), NULL, NULL));
			continue;
		}
		CHECK_OK(hive_spawn(hive_current(), grow, (void *)(depth - 1), NULL, &fiber));
		if (depth % 3 == 1)
			CHECK_OK(hive_fiber_detach(fiber));
		else
			CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, NULL));
	}
	if (depth % 2)
		CHECK_OK(hive_sleep(HIVE_MS(depth)));
	ended++;
	return (int)depth;
}

/* F-11, F-12: all of them, whoever ends first; under many schedules. */
TEST(block_on_waits_for_all_descendants)
{
	for (uint64_t seed = 0; seed < 100; seed++) {
		struct world w = world_open(seed, 1 + (int32_t)(seed % 5), 0);
		intptr_t depth = 1 + (intptr_t)(seed % 7);
		int result = 0;

		begun = ended = 0;
		CHECK_OK(hive_block_on(w.hive, grow, (void *)depth, HIVE_FOREVER, &result));
		CHECK_EQ(result, depth);
		CHECK_EQ(ended, (2 << depth) - 1);
		CHECK_EQ(begun, ended);
		world_close(&w, HIVE_DRAIN);
	}
}

static int spawn_and_end(void *arg)
{
	for (intptr_t i = 0; i < (intptr_t)arg; i++)
		CHECK_OK(hive_spawn(hive_current(), count_ends, NULL, NULL, NULL));
	return 1;
}

/* F-12: a child that ends before its parent's next step cannot bring the count to zero. */
TEST(children_that_end_at_once_do_not_end_the_wait)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 3 });
	int rounds = 300 / test_slowness(), result = 0;

	for (int i = 0; i < rounds; i++) {
		CHECK_OK(hive_block_on(hive, return_number, (void *)7, HIVE_FOREVER, &result));
		CHECK_EQ(result, 7);
	}
	real_end(hive, HIVE_DRAIN);
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct world w = world_open(seed, 3, 0);

		ended = 0;
		CHECK_OK(hive_block_on(w.hive, spawn_and_end, (void *)30, HIVE_FOREVER, &result));
		CHECK_EQ(ended, 30);
		world_close(&w, HIVE_DRAIN);
	}
}

/* Only its own: others of the hive go on, and are neither waited for nor cancelled. */
TEST(block_on_has_nothing_to_do_with_other_fibers)
{
	struct world w = world_open(2, 2, 0);
	struct hive_fiber *other = world_spawn(&w, count_ends, (void *)50);

	begun = ended = 0;
	CHECK_OK(hive_block_on(w.hive, spawn_and_end, (void *)3, HIVE_FOREVER, NULL));
	CHECK_EQ(ended, 3);
	CHECK_ERR(hive_block_on(w.hive, count_ends, (void *)1000, hive_deadline(w.hive, HIVE_MS(10)), NULL),
	          -ETIMEDOUT);
	CHECK_ERR(hive_fiber_join(other, HIVE_NOWAIT, NULL), -ETIMEDOUT);
	CHECK_EQ(world_result(other), 0);
	CHECK_EQ(hive_now(w.hive), HIVE_MS(50));
	world_close(&w, HIVE_DRAIN);
}

/* ---- the deadline ---- */

static int last_word(void *arg)
{
	int r = hive_sleep(HIVE_FOREVER);

	begun++;
	CHECK_ERR(r, -ECANCELED);
	CHECK_ERR(hive_sleep(HIVE_MS(1)), -ECANCELED); /* and so do all later ones */
	CHECK_ERR(hive_yield(), -ECANCELED);
	for (int i = 0; i < (int)(intptr_t)arg; i++)
		hive_yield();
	ended++;
	return r;
}

static int root_of_sleepers(void *arg)
{
	struct hive_fiber *child;
	int result;

	for (int i = 0; i < 5; i++)
		CHECK_OK(hive_spawn(hive_current(), last_word, (void *)20, NULL, NULL));
	CHECK_OK(hive_spawn(hive_current(), last_word, arg, NULL, &child));
	CHECK_ERR(hive_fiber_join(child, HIVE_FOREVER, &result), -ECANCELED);
	CHECK_OK(hive_fiber_detach(child));
	ended++;
	return 99;
}

/* They are cancelled, all of them, and then waited for. */
TEST(at_the_deadline_the_tree_is_cancelled_and_waited_for)
{
	for (uint64_t seed = 0; seed < 30; seed++) {
		struct world w = world_open(seed, 1 + (int32_t)(seed % 3), 0);
		int result = 0;

		begun = ended = 0;
		CHECK_ERR(hive_block_on(w.hive, root_of_sleepers, (void *)(4 * TUNE_PRIVATE_BUDGET),
		                        hive_deadline(w.hive, HIVE_MS(5)), &result),
		          -ETIMEDOUT);
		CHECK_EQ(ended, 7);
		CHECK_EQ(result, 99);
		CHECK_EQ(hive_now(w.hive), HIVE_MS(5));
		world_close(&w, HIVE_DRAIN);
	}
}

static int spawn_after_cancel(void *arg)
{
	CHECK_ERR(hive_sleep(HIVE_FOREVER), -ECANCELED);
	CHECK_OK(hive_spawn(hive_current(), last_word, arg, NULL, NULL));
	return 0;
}

/* Born into a tree that is cancelled: cancelled from birth, and waited for all the same. */
TEST(children_of_a_cancelled_tree_are_cancelled_too)
{
	struct world w = world_open(2, 2, 0);

	begun = ended = 0;
	CHECK_ERR(hive_block_on(w.hive, spawn_after_cancel, NULL, hive_deadline(w.hive, HIVE_MS(5)), NULL), -ETIMEDOUT);
	CHECK_EQ(ended, 1);
	CHECK_EQ(hive_now(w.hive), HIVE_MS(5));
	world_close(&w, HIVE_DRAIN);
}

/* A deadline that is over cancels at once; who needs no wait comes to its end as usual. */
TEST(a_deadline_in_the_past_still_waits_for_the_end)
{
	struct world w = world_open(2, 2, 0);
	int result = 0;

	CHECK_ERR(hive_block_on(w.hive, return_number, (void *)5, HIVE_NOWAIT, &result), -ETIMEDOUT);
	CHECK_EQ(result, 5);
	begun = ended = 0;
	CHECK_ERR(hive_block_on(w.hive, last_word, NULL, HIVE_NOWAIT, &result), -ETIMEDOUT);
	CHECK_EQ(result, -ECANCELED);
	CHECK_EQ(ended, 1);
	world_close(&w, HIVE_DRAIN);
}

/* ---- where ---- */

static int blocked;

static void block_in_task(void *arg)
{
	blocked += hive_block_on(arg, return_number, NULL, HIVE_FOREVER, NULL) == -EDEADLK;
	blocked += hive_block_on(arg, return_number, NULL, HIVE_NOWAIT, NULL) == -EDEADLK;
}

static int block_in_fiber(void *arg)
{
	block_in_task(arg);
	return 0;
}

/* On a worker of any kind, of any hive: refused, and nothing was begun. */
TEST(block_on_is_refused_on_workers)
{
	struct world w = world_open(2, 2, 1);
	struct hive *other = real_start((struct hive_options){ .io_workers = 1 });

	blocked = 0;
	CHECK_OK(hive_post(w.hive, block_in_task, w.hive));
	CHECK_OK(hive_post(w.hive, block_in_task, other));
	CHECK_OK(hive_post_compute(w.hive, block_in_task, w.hive));
	CHECK_OK(hive_spawn(w.hive, block_in_fiber, other, NULL, NULL));
	CHECK_OK(hive_spawn(w.hive, block_in_fiber, w.hive, NULL, NULL));
	world_settle(&w);
	CHECK_EQ(blocked, 10);
	CHECK_EQ(real_end(other, HIVE_DRAIN).posted, 0);
	CHECK_EQ(world_close(&w, HIVE_DRAIN).ran, 5);
}

static int stop_it(void *arg)
{
	CHECK_OK(hive_spawn(hive_current(), last_word, NULL, NULL, NULL));
	CHECK_OK(hive_sleep(1));
	CHECK_OK(hive_stop(arg, HIVE_NOW, HIVE_FOREVER));
	CHECK_ERR(hive_sleep(1), -ECANCELED);
	return 3;
}

/* The hive stops under it: it returns all the same. */
TEST(a_stop_ends_block_on)
{
	struct world w = world_open(2, 2, 0);
	int result = 0;

	begun = ended = 0;
	CHECK_OK(hive_block_on(w.hive, stop_it, w.hive, HIVE_FOREVER, &result));
	CHECK_EQ(result, 3);
	CHECK_EQ(ended, 1);
	world_join(&w);
}

static void *block_thread(void *arg)
{
	int result = 0;

	for (int i = 0; i < 20; i++) {
		CHECK_OK(hive_block_on(arg, grow, (void *)0, HIVE_FOREVER, &result));
		CHECK_EQ(result, 0);
	}
	return NULL;
}

/* Program 8 of the tour: several threads, one runtime. */
TEST(several_threads_may_block_on_one_hive)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1 }); /* one: the counters are its own */
	pthread_t threads[3];

	begun = ended = 0;
	for (int i = 0; i < 3; i++)
		CHECK_OK(pthread_create(&threads[i], NULL, block_thread, hive));
	for (int i = 0; i < 3; i++)
		CHECK_OK(pthread_join(threads[i], NULL));
	real_end(hive, HIVE_DRAIN);
	CHECK_EQ(ended, 60);
}
