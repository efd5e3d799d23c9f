/* SPDX-License-Identifier: MIT */
/* Who waits for a group when those who could end it wait as well, or have gone. */
#include <rophive/hive.h>

#include "base/atomic.h"
#include "sched/internal.h"
#include "support/real.h"
#include "test.h"

static ATOMIC(uint32_t) ran, dropped, begun, waited;
static uint32_t expected;
static struct hive_group group; /* of whoever the test says */
static struct gate ready, go;

static void count(void *arg)
{
	add_relaxed((ATOMIC(uint32_t) *)arg, 1u);
}

static void count_drop(void *hook_arg, const struct hive_task *task)
{
	(void)hook_arg, (void)task;
	add_relaxed(&dropped, 1u);
}

static struct hive_options team(int32_t io, int32_t compute)
{
	store_relaxed(&ran, 0);
	store_relaxed(&dropped, 0);
	store_relaxed(&begun, 0);
	store_relaxed(&waited, 0);
	expected = (uint32_t)compute;
	gate_init(&ready);
	gate_init(&go);
	return (struct hive_options){ .io_workers = io, .compute_workers = compute, .on_drop = count_drop };
}

static struct hive_report end(struct hive *hive, enum hive_stop_mode mode)
{
	struct hive_report report = real_end(hive, mode);

	gate_destroy(&ready);
	gate_destroy(&go);
	return report;
}

/* ---- several who wait ---- */

/* Each on a worker of its own: one that waits would run the next of them. */
static void meet(uint32_t n)
{
	add_relaxed(&begun, 1u);
	WAIT_UNTIL(load_relaxed(&begun) >= n);
}

static void wait_for_it(void *arg)
{
	meet(expected);
	CHECK_OK(hive_group_wait(arg, HIVE_FOREVER));
	add_relaxed(&waited, 1u);
}

TEST(several_compute_tasks_wait_for_one_group)
{
	struct hive *hive = real_start(team(1, 3));

	hive_group_init(&group, hive, HIVE_COMPUTE);
	CHECK_OK(hive_group_enter(&group));
	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_post_compute(hive, wait_for_it, &group));
	real_wait_asleep(hive, 4); /* they have nothing else to do */
	CHECK_OK(hive_group_leave(&group, 0));
	WAIT_UNTIL(load_relaxed(&waited) == 3);
	end(hive, HIVE_DRAIN);
}

static void wait_until_late(void *arg)
{
	meet(expected);
	CHECK_ERR(hive_group_wait(arg, hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT);
	add_relaxed(&waited, 1u);
}

/* They get up by themselves meanwhile, and lie down again. */
TEST(several_compute_tasks_wait_for_one_group_until_they_are_late)
{
	struct hive *hive = real_start(team(1, 3));

	hive_group_init(&group, hive, HIVE_COMPUTE);
	CHECK_OK(hive_group_enter(&group));
	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_post_compute(hive, wait_until_late, &group));
	WAIT_UNTIL(hive_group_error(&group) < 0);
	real_wait_asleep(hive, 4);
	CHECK_OK(hive_group_leave(&group, 0));
	WAIT_UNTIL(load_relaxed(&waited) == 3);
	end(hive, HIVE_DRAIN);
}

static void come_later(void *arg)
{
	CHECK_OK(hive_group_then(arg, count, &ran));
}

TEST(what_comes_afterwards_may_be_said_while_others_wait)
{
	struct hive *hive = real_start(team(1, 2));

	hive_group_init(&group, hive, HIVE_COMPUTE);
	CHECK_OK(hive_group_enter(&group));
	for (int i = 0; i < 2; i++)
		CHECK_OK(hive_post_compute(hive, wait_for_it, &group));
	real_wait_asleep(hive, 3);
	CHECK_OK(hive_post_compute(hive, come_later, &group));
	real_wait_asleep(hive, 3);
	CHECK_OK(hive_group_leave(&group, 0));
	WAIT_UNTIL(load_relaxed(&waited) == 2 && load_relaxed(&ran) == 1);
	end(hive, HIVE_DRAIN);
}

/* ---- those who could end it wait themselves ---- */

static void wait_at_the_gate(void *arg)
{
	enum hive_kind kind = hive__current()->kind == HIVE_WORKER_IO ? HIVE_MICRO : HIVE_COMPUTE;
	int r;

	hive_group_init(&group, arg, kind);
	gate_open(&ready);
	gate_pass(&go);
	r = hive_group_wait(&group, HIVE_FOREVER);
	CHECK(r == (hive__is_halted(hive__current()) ? -ECANCELED : 0));
	add_relaxed(&waited, 1u);
}

static void run_three(void)
{
	gate_pass(&ready);
	for (int i = 0; i < 3; i++)
		hive_group_run(&group, count, &ran);
}

TEST(a_task_of_the_only_worker_waits_for_what_threads_have_run)
{
	for (int kind = 0; kind < 2; kind++) {
		struct hive *hive = real_start(team(1, kind));

		CHECK_OK(hive_post_kind(hive, kind ? HIVE_COMPUTE : HIVE_MICRO, 0, wait_at_the_gate, hive));
		run_three();
		gate_open(&go);
		WAIT_UNTIL(load_relaxed(&waited) == 1);
		CHECK_EQ(load_relaxed(&ran), 3);
		CHECK_EQ(end(hive, HIVE_DRAIN).dropped, 0);
	}
}

static void wait_for_what_fibers_have_run(void *arg)
{
	CHECK_EQ(load_relaxed(&ran), 0);
	CHECK_OK(hive_group_wait(arg, HIVE_FOREVER));
	CHECK_EQ(load_relaxed(&ran), 3);
	add_relaxed(&waited, 1u);
}

/* The newest first: who waits comes before those for whom it does. */
static int run_in_fiber(void *arg)
{
	for (int i = 0; i < 3; i++)
		hive_group_run(arg, count, &ran);
	return hive_post_local(wait_for_what_fibers_have_run, arg);
}

TEST(a_task_of_the_only_worker_waits_for_what_a_fiber_has_run)
{
	struct hive *hive = real_start(team(1, 0));
	int result;

	hive_group_init(&group, hive, HIVE_MICRO);
	CHECK_OK(hive_block_on(hive, run_in_fiber, &group, HIVE_FOREVER, &result));
	CHECK_OK(result);
	end(hive, HIVE_DRAIN);
	CHECK_EQ(load_relaxed(&waited), 1);
}

TEST(a_stop_at_once_drops_what_a_task_of_the_only_worker_waits_for)
{
	for (int kind = 0; kind < 2; kind++) {
		struct hive *hive = real_start(team(1, kind));

		CHECK_OK(hive_post_kind(hive, kind ? HIVE_COMPUTE : HIVE_MICRO, 0, wait_at_the_gate, hive));
		run_three();
		CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
		gate_open(&go);
		CHECK_EQ(end(hive, HIVE_NOW).dropped, 3);
		CHECK_EQ(load_relaxed(&dropped), 3);
		CHECK_EQ(load_relaxed(&ran), 0);
		CHECK_EQ(load_relaxed(&waited), 1);
	}
}

/* ---- what others have forked ---- */

enum { STRANGERS = 3 };
static ATOMIC(uint32_t) forked, by_waiter;

/* Longer than the slice of who waits, if that is short. */
static void be_a_stranger(void *waiter)
{
	int64_t until = hive_now(NULL) + HIVE_US(2);

	if (hive__current() == waiter)
		add_relaxed(&by_waiter, 1u);
	while (hive_now(NULL) <= until)
		cpu_pause();
}

/* When nobody is left who looks for work: so one that was forked is shown, at least. Then it is stuck. */
static void fork_strangers(void *waiter)
{
	struct hive_group mine;

	meet(STRANGERS);
	hive_group_init(&mine, hive_current(), HIVE_MICRO);
	for (int i = 0; i < 4; i++)
		hive_group_run(&mine, be_a_stranger, waiter);
	add_relaxed(&forked, 1u);
	gate_pass(&go);
	CHECK_OK(hive_group_wait(&mine, HIVE_FOREVER));
}

static void wait_among_strangers(void *arg)
{
	struct hive *hive = hive_current();
	uint32_t ids[1 + STRANGERS];

	(void)arg;
	hive_group_init(&group, hive, HIVE_MICRO);
	CHECK_OK(hive_group_enter(&group));
	CHECK_EQ(hive_workers(hive, ids, 1 + STRANGERS), 1 + STRANGERS);
	for (int i = 0; i < 1 + STRANGERS; i++)
		if (ids[i] != hive_worker_current())
			CHECK_OK(hive_post_to(hive, ids[i], fork_strangers, hive__current()));
	WAIT_UNTIL(load_relaxed(&forked) == STRANGERS);
	gate_open(&ready);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	for (int i = 0; i < STRANGERS; i++)
		gate_open(&go);
}

/* How many of theirs it has run, so many at least, when its own tasks, which come one by one, have all run. */
static uint32_t help_with_slice(int64_t slice_ns, uint32_t least)
{
	struct hive_worker_options io = { .slice_ns = slice_ns };
	struct hive_options options = team(1 + STRANGERS, 0);
	struct hive *hive;
	uint32_t helped;

	options.io = &io;
	store_relaxed(&forked, 0);
	store_relaxed(&by_waiter, 0);
	hive = real_start(options);
	CHECK_OK(hive_post(hive, wait_among_strangers, NULL));
	gate_pass(&ready);
	WAIT_UNTIL(load_relaxed(&by_waiter) >= least);
	for (uint32_t i = 1; i <= 100; i++) {
		hive_group_run(&group, count, &ran);
		WAIT_UNTIL(load_relaxed(&ran) == i);
	}
	helped = load_relaxed(&by_waiter);
	CHECK_OK(hive_group_leave(&group, 0));
	end(hive, HIVE_DRAIN);
	return helped;
}

/* Its own tasks it runs in any case. */
TEST(a_task_of_an_io_worker_that_waits_helps_others_until_its_slice_is_over)
{
	CHECK_EQ(help_with_slice(1, 1), 1);
	CHECK(help_with_slice(HIVE_FOREVER, STRANGERS) >= STRANGERS);
}

/* ---- those who could end it have gone ---- */

static void enter_and_go(void *arg)
{
	(void)arg;
	CHECK_OK(hive_group_enter(&group));
	CHECK_OK(hive_group_then(&group, count, &ran));
	gate_open(&ready);
}

TEST(what_comes_afterwards_is_dropped_when_all_compute_workers_have_left)
{
	struct hive *hive = real_start(team(1, 1));

	hive_group_init(&group, hive, HIVE_COMPUTE);
	CHECK_OK(hive_post_compute(hive, enter_and_go, hive));
	gate_pass(&ready);
	CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
	WAIT_UNTIL(load_relaxed(&hive->compute_alive) == 0);
	WAIT_UNTIL(idle_is_asleep(&hive->io.idle, 0));
	CHECK_OK(hive_group_leave(&group, 0));
	CHECK_EQ(end(hive, HIVE_NOW).dropped, 1);
	CHECK_EQ(load_relaxed(&dropped), 1);
	CHECK_EQ(load_relaxed(&ran), 0);
}

/* Nobody runs for it what it forks with its last breath. */
static void fork_at_the_end(void *arg)
{
	hive_group_init(&group, hive_current(), HIVE_COMPUTE);
	for (int i = 0; i < 3; i++)
		hive_group_run(&group, count, arg);
	CHECK_OK(hive_group_then(&group, count, &waited));
}

TEST(what_a_compute_worker_forks_when_it_ends_is_run)
{
	struct hive_options options = team(1, 1);
	struct hive_worker_options worker = { .on_stop = fork_at_the_end, .hook_arg = &ran };

	options.compute = &worker;
	end(real_start(options), HIVE_DRAIN);
	CHECK_EQ(load_relaxed(&ran), 3);
	CHECK_EQ(load_relaxed(&waited) + load_relaxed(&dropped), 1);
}

/* ---- mistakes ---- */

static void leave_too_often(void *arg)
{
	struct hive_group mine;

	hive_group_init(&mine, arg, HIVE_COMPUTE);
	CHECK_ERR(hive_group_leave(&mine, 0), -EINVAL);
	CHECK_OK(hive_group_enter(&mine));
	CHECK_OK(hive_group_leave(&mine, 0));
	CHECK_ERR(hive_group_leave(&mine, 0), -EINVAL);
	CHECK_OK(hive_group_wait(&mine, HIVE_FOREVER));
	gate_open(&ready);
}

TEST(nobody_leaves_who_has_not_entered)
{
	struct hive *hive = real_start(team(1, 1));

	hive_group_init(&group, hive, HIVE_COMPUTE);
	CHECK_ERR(hive_group_leave(&group, -EIO), -EINVAL);
	CHECK_OK(hive_group_enter(&group));
	CHECK_OK(hive_group_leave(&group, 0));
	CHECK_ERR(hive_group_leave(&group, 0), -EINVAL);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	CHECK_OK(hive_post_compute(hive, leave_too_often, hive));
	gate_pass(&ready);
	end(hive, HIVE_DRAIN);
}

static int end_at_once(void *arg)
{
	(void)arg;
	return 0;
}

static struct hive_group of_fibers;

static void wait_for_fibers(void *arg)
{
	hive_group_init(&of_fibers, hive_current(), HIVE_MICRO);
	CHECK_OK(hive_group_spawn(&of_fibers, end_at_once, NULL, NULL));
	CHECK_ERR(hive_group_wait(&of_fibers, HIVE_FOREVER), -EDEADLK);
	CHECK_OK(hive_group_then(&of_fibers, gate_open_task, arg));
}

TEST(a_task_of_an_io_worker_does_not_wait_for_fibers)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1 });
	struct gate gate;

	gate_init(&gate);
	CHECK_OK(hive_post(hive, wait_for_fibers, &gate));
	gate_pass(&gate);
	real_end(hive, HIVE_DRAIN);
	gate_destroy(&gate);
}

static void wait_again(void *arg)
{
	int r;

	hive_group_init(&group, hive_current(), HIVE_MICRO);
	hive_group_run_on(&group, HIVE_COMPUTE, count, &ran);
	STEP_UNTIL((r = hive_group_wait(&group, HIVE_FOREVER)) == 0, CHECK_ERR(r, -EDEADLK));
	hive_group_run(&group, count, &ran);
	CHECK_OK(hive_group_wait(&group, real_patience()));
	gate_open(arg);
}

/* What was in it and has ended is not in it. */
TEST(a_group_that_is_used_again_has_forgotten_what_was_in_it)
{
	struct hive *hive = real_start(team(1, 1));

	CHECK_OK(hive_post(hive, wait_again, &ready));
	gate_pass(&ready);
	CHECK_EQ(load_relaxed(&ran), 2);
	end(hive, HIVE_DRAIN);
}
