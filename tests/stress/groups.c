/* SPDX-License-Identifier: MIT */
/* Groups on stacks, from threads, fibers and tasks at once: waits inside waits, errors, deadlines, and what comes afterwards. All count what they
 * began and what has ended, or was dropped: when a wait returns, that is the same.                                      */
#include <rophive/hive.h>

#include <pthread.h>

#include "base/atomic.h"
#include "support/real.h"
#include "test.h"

static struct hive *hive;
static ATOMIC(uint64_t) begun, ended, dropped, groups, followed;
static ATOMIC(uint32_t) stopped;

struct branch {
	ATOMIC(uint32_t) left; /* tasks of its group that have neither ended nor been dropped */
	struct hive_group group;
	uint32_t seed;
	int depth;
};

static uint32_t draw(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 16) % n;
}

static void grow(uint32_t seed, int depth);

static void leaf_or_branch(void *arg)
{
	struct branch *b = arg;
	uint32_t seed = b->seed + (uint32_t)add_relaxed(&begun, 1u);

	if (draw(&seed, 64) == 0)
		hive_group_fail(&b->group, -EIO);
	if (b->depth > 0 && draw(&seed, 3) == 0)
		grow(seed, b->depth - 1);
	add_relaxed(&ended, 1u);
	sub_relaxed(&b->left, 1u);
}

static int grow_in_fiber(void *arg)
{
	leaf_or_branch(arg);
	return 0;
}

static void note_drop(void *hook_arg, const struct hive_task *task)
{
	(void)hook_arg;
	CHECK(task->fn == leaf_or_branch);
	add_relaxed(&dropped, 1u);
	sub_relaxed(&((struct branch *)task->arg)->left, 1u);
}

/* An IO worker outside a fiber may wait for its own kind only. */
static bool in_io_task(void)
{
	return hive_parallel_invoke(hive, NULL, 0, HIVE_FOREVER) == -EDEADLK;
}

static enum hive_kind kind_here(uint32_t *seed)
{
	return in_io_task() || draw(seed, 4) == 0 ? HIVE_MICRO : HIVE_COMPUTE;
}

/* A group that stands here. Nothing of it is left when this returns. */
static void grow(uint32_t seed, int depth)
{
	struct branch b = { .seed = seed, .depth = depth };
	uint32_t n = draw(&seed, 5);
	int64_t deadline = draw(&seed, 16) == 0 ? hive_deadline(hive, HIVE_US(draw(&seed, 200))) : HIVE_FOREVER;
	enum hive_kind kind = kind_here(&seed);
	bool with_fiber = hive_fiber_current() && draw(&seed, 4) == 0;
	int r;

	store_relaxed(&b.left, n);
	hive_group_init(&b.group, hive, kind);
	for (uint32_t i = 0; i < n; i++)
		hive_group_run(&b.group, leaf_or_branch, &b);
	if (with_fiber) {
		add_relaxed(&b.left, 1u);
		if (hive_group_spawn(&b.group, grow_in_fiber, &b, NULL) < 0)
			sub_relaxed(&b.left, 1u);
	}
	r = hive_group_wait(&b.group, deadline);
	CHECK(r == 0 || r == -EIO || r == -ENOMEM || (r == -ETIMEDOUT && deadline != HIVE_FOREVER));
	CHECK_EQ(load_relaxed(&b.left), 0);
	add_relaxed(&groups, 1u);
}

/* ---- what comes afterwards ---- */

static void forget(void *arg)
{
	struct branch *b = arg;

	CHECK_EQ(load_relaxed(&b->left), 0);
	free(b);
	add_relaxed(&followed, 1u);
}

static void leave_behind(uint32_t seed)
{
	struct branch *b = calloc(1, sizeof *b);

	CHECK(b);
	b->seed = seed;
	b->depth = 1;
	store_relaxed(&b->left, 3u);
	hive_group_init(&b->group, hive, HIVE_COMPUTE);
	for (int i = 0; i < 3; i++)
		hive_group_run(&b->group, leaf_or_branch, b);
	CHECK_OK(hive_group_then(&b->group, forget, b));
}

/* ---- everywhere ---- */

static ATOMIC(uint32_t) tasks;

static void task(void *arg)
{
	uint32_t seed = (uint32_t)(uintptr_t)arg;

	if (!in_io_task() && draw(&seed, 3) == 0)
		leave_behind(seed);
	else
		grow(seed, 2);
	sub_relaxed(&tasks, 1u);
}

static int fiber(void *arg)
{
	uint32_t seed = (uint32_t)(uintptr_t)arg;

	while (!load_relaxed(&stopped)) {
		grow(seed, 3);
		seed += 7919;
	}
	return 0;
}

static void *thread(void *arg)
{
	uint32_t seed = (uint32_t)(uintptr_t)arg;

	for (uint32_t i = 0; !load_relaxed(&stopped); i++, seed += 104729) {
		grow(seed, 3);
		if (load_relaxed(&tasks) > 64)
			continue;
		add_relaxed(&tasks, 1u);
		if (hive_post_kind(hive, i % 2 ? HIVE_MICRO : HIVE_COMPUTE, 0, task, (void *)(uintptr_t)seed) < 0)
			sub_relaxed(&tasks, 1u);
	}
	return NULL;
}

TEST(groups_from_everywhere)
{
	struct hive_options options = { .io_workers = 2, .compute_workers = 2, .on_drop = note_drop };
	struct hive_fiber *fibers[4];
	int64_t end = hive_now(NULL) + test_stress_ns();
	struct hive_report report;
	pthread_t threads[2];

	hive = real_start(options);
	for (uintptr_t i = 0; i < 4; i++)
		CHECK_OK(hive_spawn(hive, fiber, (void *)(i * 31 + 1), NULL, &fibers[i]));
	for (uintptr_t i = 0; i < 2; i++)
		CHECK_OK(pthread_create(&threads[i], NULL, thread, (void *)(i * 17 + 5)));
	while (hive_now(NULL) < end)
		sched_yield();
	store_relaxed(&stopped, 1u);
	for (int i = 0; i < 2; i++)
		CHECK_OK(pthread_join(threads[i], NULL));
	for (int i = 0; i < 4; i++)
		CHECK_OK(hive_fiber_join(fibers[i], HIVE_FOREVER, NULL));
	report = real_end(hive, HIVE_DRAIN);
	CHECK_EQ(load_relaxed(&begun), load_relaxed(&ended));
	CHECK_EQ(report.dropped, load_relaxed(&dropped));
	CHECK(load_relaxed(&groups) > 0);
	printf("groups: %llu, tasks %llu, dropped %llu, afterwards %llu\n", (unsigned long long)load_relaxed(&groups),
	       (unsigned long long)load_relaxed(&ended), (unsigned long long)load_relaxed(&dropped),
	       (unsigned long long)load_relaxed(&followed));
}

/* ---- many that live for a moment ---- */

static void nothing(void *arg)
{
	add_relaxed((ATOMIC(uint32_t) *)arg, 1u);
}

static __attribute__((noinline)) void one_of_many(enum hive_kind kind)
{
	ATOMIC(uint32_t) here = 0;
	struct hive_group group;

	hive_group_init(&group, hive, kind);
	hive_group_run(&group, nothing, &here);
	hive_group_run(&group, nothing, &here);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	CHECK_EQ(load_relaxed(&here), 2);
}

static void many_of_them(void *arg)
{
	for (int i = 0, n = 50000 / test_slowness(); i < n; i++)
		one_of_many(*(enum hive_kind *)arg);
}

TEST(a_hundred_thousand_on_stacks_that_are_used_again)
{
	enum hive_kind compute = HIVE_COMPUTE;
	struct hive_group all;

	hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 2 });
	hive_group_init(&all, hive, HIVE_COMPUTE);
	hive_group_run(&all, many_of_them, &compute);
	hive_group_run(&all, many_of_them, &compute);
	for (int i = 0, n = 5000 / test_slowness(); i < n; i++)
		one_of_many(i % 2 ? HIVE_MICRO : HIVE_COMPUTE);
	CHECK_OK(hive_group_wait(&all, HIVE_FOREVER));
	real_end(hive, HIVE_DRAIN);
}
