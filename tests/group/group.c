/* SPDX-License-Identifier: MIT */
/* Groups: from everywhere, in everything that may wait for them, to their end. */
#include <rophive/hive.h>

#include <pthread.h>

#include "base/atomic.h"
#include "support/real.h"
#include "test.h"

static ATOMIC(uint32_t) ran, dropped;

static struct hive_options team(int32_t io, int32_t compute)
{
	store_relaxed(&ran, 0);
	store_relaxed(&dropped, 0);
	return (struct hive_options){ .io_workers = io, .compute_workers = compute };
}

static void count(void *arg)
{
	add_relaxed((ATOMIC(uint32_t) *)arg, 1u);
}

/* ---- fork and join ---- */

struct call {
	struct hive *hive;
	enum hive_kind kind;
	int n;
	long result;
};

static void fib(void *arg)
{
	struct call *c = arg, left = { c->hive, c->kind, c->n - 1, 0 }, right = { c->hive, c->kind, c->n - 2, 0 };
	struct hive_group group;

	if (c->n < 2) {
		c->result = c->n;
		return;
	}
	hive_group_init(&group, c->hive, c->kind);
	hive_group_run(&group, fib, &left);
	fib(&right);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	c->result = left.result + right.result;
}

static void check_fib(struct hive *hive, enum hive_kind kind)
{
	int n = test_slowness() > 1 ? 18 : 24;
	struct call root = { hive, kind, n, 0 };
	struct hive_group group;
	long a = 0, b = 1;

	for (int i = 0; i < n; i++) {
		long next = a + b;

		a = b;
		b = next;
	}
	hive_group_init(&group, hive, kind);
	hive_group_run(&group, fib, &root);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	CHECK_EQ(root.result, a);
}

TEST(forks_are_joined_on_any_number_of_workers)
{
	for (int32_t workers = 1; workers <= 4; workers++) {
		struct hive *hive = real_start(team(1, workers));

		for (int i = 0; i < 5; i++)
			check_fib(hive, HIVE_COMPUTE);
		real_end(hive, HIVE_DRAIN);
	}
}

TEST(io_workers_fork_when_asked)
{
	for (int32_t workers = 1; workers <= 3; workers++) {
		struct hive *hive = real_start(team(workers, 0));

		for (int i = 0; i < 5; i++)
			check_fib(hive, HIVE_MICRO);
		real_end(hive, HIVE_DRAIN);
	}
}

/* More forks than there is room for: the rest runs in place. */
static void fork_many(void *arg)
{
	struct hive_group group;

	hive_group_init(&group, arg, HIVE_COMPUTE);
	for (int i = 0; i < 5000; i++)
		hive_group_run(&group, count, &ran);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	CHECK_EQ(load_relaxed(&ran), 5000);
}

static void run_alone(struct hive *hive, hive_fn *fn, void *arg)
{
	struct hive_group group;

	hive_group_init(&group, hive, HIVE_COMPUTE);
	hive_group_run(&group, fn, arg);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
}

TEST(what_finds_no_room_is_run_in_place)
{
	for (int32_t workers = 1; workers <= 2; workers++) {
		struct hive *hive = real_start(team(1, workers));

		run_alone(hive, fork_many, hive);
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- waits inside waits ---- */

struct nest {
	struct hive *hive;
	int depth;
	bool by_fiber;
};

static void go_deeper(void *arg);

static int go_deeper_in_fiber(void *arg)
{
	struct nest *outer = arg, inner = { outer->hive, outer->depth - 1, false };
	struct hive_group group;

	hive_group_init(&group, outer->hive, HIVE_COMPUTE);
	hive_group_run(&group, go_deeper, &inner);
	return hive_group_wait(&group, HIVE_FOREVER);
}

/* By turns the next task is a fork, and a fiber that starts a compute task: that one comes by the pool. */
static void go_deeper(void *arg)
{
	struct nest *outer = arg, inner = { outer->hive, outer->depth - 1, !outer->by_fiber };
	struct hive_group group;

	add_relaxed(&ran, 1u);
	if (outer->depth == 0)
		return;
	hive_group_init(&group, outer->hive, HIVE_COMPUTE);
	if (outer->by_fiber)
		CHECK_OK(hive_group_spawn(&group, go_deeper_in_fiber, outer, NULL));
	else
		hive_group_run(&group, go_deeper, &inner);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
}

TEST(nested_waits_sixty_four_deep_end_on_one_worker_and_on_two)
{
	for (int32_t workers = 1; workers <= 2; workers++) {
		struct hive *hive = real_start(team(1, workers));
		struct nest nest = { hive, 64, false };

		run_alone(hive, go_deeper, &nest);
		CHECK_EQ(load_relaxed(&ran), 65);
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- everybody may wait ---- */

static void check_count(struct hive *hive, enum hive_kind kind)
{
	struct hive_group group;

	store_relaxed(&ran, 0);
	hive_group_init(&group, hive, kind);
	for (int i = 0; i < 100; i++)
		hive_group_run(&group, count, &ran);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	CHECK_EQ(load_relaxed(&ran), 100);
}

static int wait_in_fiber(void *arg)
{
	check_count(arg, HIVE_COMPUTE);
	check_count(arg, HIVE_MICRO);
	return 0;
}

static void wait_in_compute_task(void *arg)
{
	check_count(arg, HIVE_COMPUTE);
	check_count(arg, HIVE_MICRO);
}

static void wait_in_micro_task(void *arg)
{
	struct hive_group group;

	check_count(arg, HIVE_MICRO);
	hive_group_init(&group, arg, HIVE_COMPUTE);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER)); /* nothing in it */
	CHECK_OK(hive_group_enter(&group));
	CHECK_ERR(hive_group_wait(&group, HIVE_FOREVER), -EDEADLK);
	CHECK_OK(hive_group_leave(&group, 0));
}

TEST(threads_fibers_and_tasks_may_wait)
{
	struct hive *hive = real_start(team(2, 2));
	struct hive_group group;
	int result = -1;

	check_count(hive, HIVE_COMPUTE);
	check_count(hive, HIVE_MICRO);
	CHECK_OK(hive_block_on(hive, wait_in_fiber, hive, HIVE_FOREVER, &result));
	CHECK_OK(result);
	run_alone(hive, wait_in_compute_task, hive);
	hive_group_init(&group, hive, HIVE_MICRO);
	hive_group_run(&group, wait_in_micro_task, hive);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	real_end(hive, HIVE_DRAIN);
}

static void run_on_compute(void *arg)
{
	uint32_t here = hive_worker_current(), other = *(uint32_t *)arg;

	CHECK(here != other);
	count(&ran);
}

static void run_on_io(void *arg)
{
	CHECK_EQ(hive_worker_current(), *(uint32_t *)arg); /* there is only one */
	count(&ran);
}

static void mix(struct hive *hive, enum hive_kind kind)
{
	struct hive_group group;
	uint32_t ids[2];

	store_relaxed(&ran, 0);
	CHECK_EQ(hive_workers(hive, ids, 2), 2);
	hive_group_init(&group, hive, kind);
	for (int i = 0; i < 20; i++) {
		hive_group_run_on(&group, HIVE_COMPUTE, run_on_compute, &ids[0]);
		hive_group_run_on(&group, HIVE_MICRO, run_on_io, &ids[0]);
	}
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	CHECK_EQ(load_relaxed(&ran), 40);
}

static void mix_in_compute_task(void *arg)
{
	mix(arg, HIVE_COMPUTE);
}

static int mix_in_fiber(void *arg)
{
	mix(arg, HIVE_MICRO);
	mix(arg, HIVE_COMPUTE);
	return 0;
}

TEST(a_group_has_tasks_of_both_kinds)
{
	struct hive *hive = real_start(team(1, 1));

	mix(hive, HIVE_COMPUTE);
	mix(hive, HIVE_MICRO);
	run_alone(hive, mix_in_compute_task, hive);
	CHECK_OK(hive_block_on(hive, mix_in_fiber, hive, HIVE_FOREVER, NULL));
	real_end(hive, HIVE_DRAIN);
}

TEST(without_workers_of_its_kind_the_caller_does_it)
{
	struct hive *hive = real_start(team(1, 0));

	check_count(hive, HIVE_COMPUTE);
	real_end(hive, HIVE_DRAIN);
}

static void *wait_for_group(void *arg)
{
	CHECK_ERR(hive_group_wait(arg, HIVE_FOREVER), -EILSEQ);
	return NULL;
}

TEST(several_wait_for_one_group)
{
	struct hive *hive = real_start(team(2, 2));
	struct hive_group group;
	pthread_t threads[3];

	hive_group_init(&group, hive, HIVE_COMPUTE);
	CHECK_OK(hive_group_enter(&group));
	for (int i = 0; i < 3; i++)
		CHECK_OK(pthread_create(&threads[i], NULL, wait_for_group, &group));
	CHECK_OK(hive_group_leave(&group, -EILSEQ));
	for (int i = 0; i < 3; i++)
		CHECK_OK(pthread_join(threads[i], NULL));
	CHECK_ERR(hive_group_error(&group), -EILSEQ);
	real_end(hive, HIVE_DRAIN);
}

/* ---- errors ---- */

static struct hive_group failing;

static void fail_first(void *arg)
{
	CHECK_OK(hive_group_fail(arg, -ENODATA));
	CHECK_OK(hive_group_fail(arg, -EIO)); /* the first one wins */
	CHECK_ERR(hive_group_error(arg), -ENODATA);
}

static void note_drop(void *hook_arg, const struct hive_task *task)
{
	(void)hook_arg;
	CHECK(task->fn == count ? task->arg == &ran : task->arg == &failing);
	add_relaxed(&dropped, 1u);
}

/* One worker, which is in the first task until all are there. */
static void fail_before_the_others(void *arg)
{
	hive_group_init(&failing, arg, HIVE_COMPUTE);
	hive_group_run(&failing, fail_first, &failing);
	fail_first(&failing);
	for (int i = 0; i < 10; i++)
		hive_group_run(&failing, count, &ran);
	CHECK_ERR(hive_group_wait(&failing, HIVE_FOREVER), -ENODATA);
}

TEST(the_first_error_wins_and_drops_what_has_not_begun)
{
	struct hive_options options = team(1, 1);
	struct hive_report report;
	struct hive *hive;

	options.on_drop = note_drop;
	hive = real_start(options);
	run_alone(hive, fail_before_the_others, hive);
	CHECK_EQ(load_relaxed(&ran), 0);
	report = real_end(hive, HIVE_DRAIN);
	CHECK_EQ(load_relaxed(&dropped), 11); /* the task that would have failed as well */
	CHECK_EQ(report.dropped, 11);
}

static int end_badly(void *arg)
{
	return *(int *)arg;
}

TEST(the_result_of_a_fiber_is_that_of_the_group)
{
	struct hive *hive = real_start(team(2, 1));
	int good = 5, bad = -EBADMSG;
	struct hive_group group;

	hive_group_init(&group, hive, HIVE_COMPUTE);
	for (int i = 0; i < 10; i++)
		CHECK_OK(hive_group_spawn(&group, end_badly, &good, NULL));
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	CHECK_OK(hive_group_spawn(&group, end_badly, &bad, NULL));
	CHECK_ERR(hive_group_wait(&group, HIVE_FOREVER), -EBADMSG);
	real_end(hive, HIVE_DRAIN);
}

TEST(mistakes_are_told)
{
	struct hive *hive = real_start(team(1, 1));
	struct hive_group_options options = { .flags = HIVE_GROUP_CANCEL };
	struct hive_group group, never = { .magic = 1 };

	CHECK_ERR(hive_group_wait(NULL, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_group_wait(&never, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_group_error(&never), -EINVAL);
	CHECK_ERR(hive_group_enter(&never), -EINVAL);
	CHECK_ERR(hive_group_leave(NULL, 0), -EINVAL);
	CHECK_ERR(hive_group_spawn(&never, end_badly, NULL, NULL), -EINVAL);
	CHECK_ERR(hive_group_init_with(&group, hive, HIVE_COMPUTE, &options), -EINVAL); /* no token */
	options = (struct hive_group_options){ .flags = 64 };
	CHECK_ERR(hive_group_init_with(&group, hive, HIVE_COMPUTE, &options), -EINVAL);
	options = (struct hive_group_options){ .reserved = { 1 } };
	CHECK_ERR(hive_group_init_with(&group, hive, HIVE_COMPUTE, &options), -EINVAL);
	CHECK_ERR(hive_group_init_with(&group, hive, (enum hive_kind)7, NULL), -EINVAL);
	CHECK_OK(hive_group_init_with(&group, hive, HIVE_COMPUTE, NULL));
	CHECK_ERR(hive_group_fail(&group, 0), -EINVAL);
	CHECK_ERR(hive_group_spawn(&group, NULL, NULL, NULL), -EINVAL);
	CHECK_ERR(hive_group_then(&group, NULL, NULL), -EINVAL);
	CHECK_ERR(hive_group_then(&group, count, &ran), -EPERM); /* not on a worker */
	real_end(hive, HIVE_DRAIN);
}

/* ---- deadlines ---- */

static void wait_for_error(void *arg)
{
	add_relaxed(&ran, 1u);
	while (hive_group_error(arg) == 0)
		sched_yield();
}

TEST(at_the_deadline_the_group_fails_and_the_rest_is_waited_for)
{
	struct hive *hive = real_start(team(1, 2));
	struct hive_group group;

	hive_group_init(&group, hive, HIVE_COMPUTE);
	hive_group_run(&group, wait_for_error, &group);
	CHECK_ERR(hive_group_wait(&group, hive_deadline(hive, HIVE_MS(1))), -ETIMEDOUT);
	CHECK(load_relaxed(&ran) <= 1); /* it may not have begun */
	real_end(hive, HIVE_DRAIN);
}

static int wait_until_cancelled(void *arg)
{
	struct hive_group group;

	hive_group_init(&group, hive_current(), HIVE_COMPUTE);
	hive_group_run(&group, wait_for_error, &group);
	gate_open(arg);
	return hive_group_wait(&group, HIVE_FOREVER);
}

TEST(a_cancelled_fiber_fails_its_group_and_waits_for_the_rest)
{
	struct hive *hive = real_start(team(1, 1));
	struct hive_fiber *fiber;
	struct gate gate;
	int result = 0;

	gate_init(&gate);
	CHECK_OK(hive_spawn(hive, wait_until_cancelled, &gate, NULL, &fiber));
	gate_pass(&gate);
	CHECK_OK(hive_fiber_cancel(fiber));
	CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, &result));
	CHECK_ERR(result, -ECANCELED);
	gate_destroy(&gate);
	real_end(hive, HIVE_DRAIN);
}

/* ---- afterwards ---- */

struct story {
	struct hive *hive;
	struct hive_group group;
	enum hive_kind kind;
	uint32_t worker;
	struct gate gate;
};

static void end_story(void *arg)
{
	struct story *s = arg;

	CHECK_EQ(load_relaxed(&ran), 20);
	if (s->worker != HIVE_WORKER_NONE)
		CHECK_EQ(hive_worker_current(), s->worker);
	gate_open(&s->gate);
}

static void tell_story(void *arg)
{
	struct story *s = arg;

	s->worker = s->kind == HIVE_MICRO ? hive_worker_current() : HIVE_WORKER_NONE;
	hive_group_init(&s->group, s->hive, s->kind);
	for (int i = 0; i < 20; i++)
		hive_group_run(&s->group, count, &ran);
	CHECK_OK(hive_group_then(&s->group, end_story, s));
}

TEST(what_comes_afterwards_comes_when_all_have_ended)
{
	struct story s = { .hive = real_start(team(2, 2)) };

	gate_init(&s.gate);
	for (int i = 0; i < 50; i++) {
		s.kind = i % 2 ? HIVE_MICRO : HIVE_COMPUTE;
		store_relaxed(&ran, 0);
		CHECK_OK(hive_post_kind(s.hive, s.kind, 0, tell_story, &s));
		gate_pass(&s.gate);
	}
	real_end(s.hive, HIVE_DRAIN);
	gate_destroy(&s.gate);
}

TEST(what_comes_afterwards_comes_before_a_drain_has_ended)
{
	struct story s = { .hive = real_start(team(2, 2)), .kind = HIVE_COMPUTE };

	gate_init(&s.gate);
	CHECK_OK(hive_post_compute(s.hive, tell_story, &s));
	real_end(s.hive, HIVE_DRAIN);
	gate_pass(&s.gate);
	gate_destroy(&s.gate);
}

/* ---- the end of a hive ---- */

static void run_until_stopped(void *arg)
{
	struct hive_group group;

	hive_group_init(&group, arg, HIVE_COMPUTE);
	while (hive_group_error(&group) == 0)
		for (int i = 0; i < 16; i++) {
			hive_group_run(&group, count, &ran);
			if (i == 15)
				hive_group_wait(&group, HIVE_FOREVER);
		}
	CHECK_ERR(hive_group_error(&group), -ECANCELED);
}

static void count_drop(void *hook_arg, const struct hive_task *task)
{
	(void)hook_arg;
	CHECK(task->fn == count || task->fn == run_until_stopped);
	add_relaxed(&dropped, 1u);
}

TEST(a_stop_at_once_drops_forks)
{
	struct hive_options options = team(1, 2);
	struct hive_report report;
	struct hive *hive;

	options.on_drop = count_drop;
	hive = real_start(options);
	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_post_compute(hive, run_until_stopped, hive));
	WAIT_UNTIL(load_relaxed(&ran) > 100);
	report = real_end(hive, HIVE_NOW);
	CHECK_EQ(report.dropped, load_relaxed(&dropped));
}

/* ---- many at once ---- */

static void spread(void *arg)
{
	struct call *c = arg;

	add_relaxed(&ran, 1u);
	if (c->n == 0)
		return;
	struct call below = { c->hive, c->kind, c->n - 1, 0 };
	struct hive_group group;

	hive_group_init(&group, c->hive, c->kind);
	for (int i = 0; i < 4; i++)
		hive_group_run(&group, spread, &below);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
}

TEST(threads_run_into_one_group_while_its_tasks_fork)
{
	struct hive *hive = real_start(team(2, 3));
	int64_t end = hive_now(NULL) + test_stress_ns() / 4;

	do {
		struct call root = { hive, HIVE_COMPUTE, 5, 0 }, micro = { hive, HIVE_MICRO, 4, 0 };
		struct hive_group group, small;

		store_relaxed(&ran, 0);
		hive_group_init(&group, hive, HIVE_COMPUTE);
		hive_group_init(&small, hive, HIVE_MICRO);
		for (int i = 0; i < 3; i++)
			hive_group_run(&group, spread, &root);
		for (int i = 0; i < 3; i++)
			hive_group_run(&small, spread, &micro);
		CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
		CHECK_OK(hive_group_wait(&small, HIVE_FOREVER));
		CHECK_EQ(load_relaxed(&ran), 3 * (1 + 4 + 16 + 64 + 256 + 1024) + 3 * (1 + 4 + 16 + 64 + 256));
	} while (hive_now(NULL) < end);
	real_end(hive, HIVE_DRAIN);
}
