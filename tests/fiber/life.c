/* SPDX-License-Identifier: MIT */
/* Spawn, join, detach: results, names, handles, and what is refused. */
#include "support/world.h"

static void *number(intptr_t n)
{
	return (void *)n;
}

static int return_number(void *arg)
{
	return (int)(intptr_t)arg;
}

static int count(void *arg)
{
	++*(int *)arg;
	return 0;
}

static int sleep_long(void *arg)
{
	(void)arg;
	return hive_sleep(HIVE_S(100));
}

/* F-6, F-13: a value, 0 or -errno: as it is. */
TEST(join_returns_what_the_function_returned)
{
	static const int results[] = { 0, 1, -1, -EIO, 4711, INT32_MAX, INT32_MIN + 1 };
	struct world w = world_open(1, 2, 0);

	for (size_t i = 0; i < sizeof results / sizeof *results; i++)
		CHECK_EQ(world_result(world_spawn(&w, return_number, number(results[i]))), results[i]);
	CHECK_OK(hive_fiber_join(world_spawn(&w, return_number, number(3)), HIVE_FOREVER, NULL));
	world_close(&w, HIVE_DRAIN);
}

TEST(a_detached_fiber_runs_to_its_end)
{
	struct world w = world_open(1, 2, 0);
	struct hive_fiber *fiber;
	int ran = 0;

	CHECK_OK(hive_spawn(w.hive, count, &ran, NULL, NULL));
	CHECK_OK(hive_spawn(w.hive, count, &ran, NULL, &fiber));
	CHECK_OK(hive_fiber_detach(fiber));
	world_settle(&w);
	CHECK_EQ(ran, 2);
	fiber = world_spawn(&w, count, &ran);
	world_settle(&w);
	CHECK_OK(hive_fiber_detach(fiber)); /* after its end */
	CHECK_ERR(hive_fiber_detach(fiber), -ESRCH);
	CHECK_EQ(world_close(&w, HIVE_DRAIN).ran, 3);
}

static void check_gone(struct hive_fiber *fiber)
{
	char name[8] = "x";
	size_t index;
	int result = 77;

	CHECK_ERR(hive_fiber_join(fiber, HIVE_FOREVER, &result), -ESRCH);
	CHECK_EQ(result, 77);
	CHECK_ERR(hive_fiber_detach(fiber), -ESRCH);
	CHECK_ERR(hive_fiber_cancel(fiber), -ESRCH);
	CHECK_ERR(hive_fiber_name(fiber, name, sizeof name), -ESRCH);
	CHECK_STR(name, "x");
	CHECK_ERR(hive_wait_all(&fiber, 1, HIVE_FOREVER), -ESRCH);
	CHECK_ERR(hive_wait_any(&fiber, 1, HIVE_FOREVER, &index), -ESRCH);
}

/* A stale handle is refused, whether its memory waits for somebody or belongs to somebody else by now. */
TEST(a_stale_handle_is_refused)
{
	struct world w = world_open(1, 1, 0);
	struct hive_fiber *joined = world_spawn(&w, return_number, number(1)), *detached, *others[200];

	CHECK_EQ(world_result(joined), 1);
	check_gone(joined);
	detached = world_spawn(&w, return_number, number(2));
	CHECK_OK(hive_fiber_detach(detached));
	check_gone(detached);
	world_settle(&w);
	check_gone(detached);
	for (int i = 0; i < 200; i++)
		others[i] = world_spawn(&w, return_number, number(i));
	check_gone(joined);
	check_gone(detached);
	for (int i = 0; i < 200; i++)
		CHECK_EQ(world_result(others[i]), i);
	for (int i = 0; i < 200; i++)
		check_gone(others[i]);
	world_close(&w, HIVE_DRAIN);
}

TEST(no_handle_and_no_function_are_refused)
{
	struct world w = world_open(1, 1, 0);
	struct hive_fiber *none = NULL, *untouched = (struct hive_fiber *)number(64), *fiber = untouched;
	size_t index;

	CHECK_ERR(hive_spawn(w.hive, NULL, NULL, NULL, &fiber), -EINVAL);
	CHECK_ERR(hive_spawn(NULL, count, NULL, NULL, &fiber), -EINVAL);
	CHECK(fiber == untouched);
	CHECK_ERR(hive_fiber_join(NULL, HIVE_FOREVER, NULL), -EINVAL);
	CHECK_ERR(hive_fiber_detach(NULL), -EINVAL);
	CHECK_ERR(hive_fiber_cancel(NULL), -EINVAL);
	CHECK_ERR(hive_wait_all(&none, 1, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_wait_any(&none, 1, HIVE_FOREVER, &index), -EINVAL);
	CHECK_ERR(hive_wait_all(NULL, 1, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_wait_any(NULL, 1, HIVE_FOREVER, &index), -EINVAL);
	CHECK_ERR(hive_offload(NULL, NULL, HIVE_FOREVER, NULL), -EINVAL);
	CHECK_ERR(hive_block_on(NULL, count, NULL, HIVE_FOREVER, NULL), -EINVAL);
	CHECK_ERR(hive_block_on(w.hive, NULL, NULL, HIVE_FOREVER, NULL), -EINVAL);
	world_close(&w, HIVE_DRAIN);
}

/* ---- who joins ---- */

static int join_self(void *arg)
{
	struct hive_fiber *me = hive_fiber_current();
	size_t index = 9;
	int result = 9;

	(void)arg;
	CHECK(me);
	CHECK_ERR(hive_fiber_join(me, HIVE_FOREVER, &result), -EDEADLK);
	CHECK_ERR(hive_fiber_join(me, HIVE_NOWAIT, &result), -EDEADLK);
	CHECK_ERR(hive_wait_all(&me, 1, HIVE_FOREVER), -EDEADLK);
	CHECK_ERR(hive_wait_any(&me, 1, HIVE_FOREVER, &index), -EDEADLK);
	CHECK_EQ(result, 9);
	CHECK_EQ(index, 9);
	return 5;
}

TEST(nobody_waits_for_itself)
{
	struct world w = world_open(1, 1, 0);

	CHECK_EQ(world_result(world_spawn(&w, join_self, NULL)), 5);
	CHECK_OK(hive_spawn(w.hive, join_self, NULL, NULL, NULL));
	world_close(&w, HIVE_DRAIN);
}

static int join_it(void *arg)
{
	int result = 0, r = hive_fiber_join(*(struct hive_fiber **)arg, HIVE_FOREVER, &result);

	return r < 0 ? r : result;
}

TEST(of_two_joiners_the_second_is_told)
{
	struct world w = world_open(1, 2, 0);
	struct hive_fiber *target = world_spawn(&w, sleep_long, NULL), *first, *second;

	first = world_spawn(&w, join_it, &target);
	world_settle(&w);
	second = world_spawn(&w, join_it, &target);
	CHECK_EQ(world_result(second), -EALREADY);
	CHECK_ERR(hive_fiber_join(target, HIVE_NOWAIT, NULL), -EALREADY);
	CHECK_ERR(hive_fiber_detach(target), -EALREADY);
	CHECK_OK(hive_wait_all(&target, 1, HIVE_FOREVER)); /* waiting is not joining */
	CHECK_EQ(world_result(first), 0);
	check_gone(target);
	world_close(&w, HIVE_DRAIN);
}

struct late_joiner {
	struct hive_fiber *target;
	int answer;
};

static int join_at_once(void *arg)
{
	struct late_joiner *l = arg;
	int result;

	l->answer = hive_fiber_join(l->target, HIVE_NOWAIT, &result);
	return 0;
}

/* Between its end and the moment in which the one who joined it runs again. */
TEST(who_joins_first_has_the_result)
{
	struct world w = world_open(1, 2, 0);
	struct hive_fiber_options here = { .worker = HIVE_WORKER_MAIN }, there = { 0 };
	struct late_joiner late = { .answer = 1 };
	struct hive_fiber *first;
	uint32_t ids[2];

	CHECK_EQ(hive_workers(w.hive, ids, 2), 2);
	there.worker = ids[1];
	CHECK_OK(hive_spawn(w.hive, sleep_long, NULL, &here, &late.target));
	CHECK_OK(hive_spawn(w.hive, join_it, &late.target, &there, &first));
	world_settle(&w);
	CHECK_OK(hive_fiber_cancel(late.target));
	CHECK_OK(hive_spawn(w.hive, join_at_once, &late, &here, NULL)); /* next in line behind its end */
	world_settle(&w);
	CHECK_ERR(late.answer, -EALREADY);
	CHECK_EQ(world_result(first), -ECANCELED);
	world_close(&w, HIVE_DRAIN);
}

/* -ETIMEDOUT leaves the handle as it was: the next join may be anybody's. */
TEST(a_join_that_gives_up_leaves_the_handle)
{
	struct world w = world_open(1, 2, 0);
	struct hive_fiber *fiber = world_spawn(&w, sleep_long, NULL);
	int64_t begin = hive_now(w.hive);

	CHECK_ERR(hive_fiber_join(fiber, HIVE_NOWAIT, NULL), -ETIMEDOUT);
	CHECK_EQ(hive_now(w.hive), begin);
	CHECK_ERR(hive_fiber_join(fiber, hive_deadline(w.hive, HIVE_S(3)), NULL), -ETIMEDOUT);
	CHECK_EQ(hive_now(w.hive), begin + HIVE_S(3));
	CHECK_EQ(world_result(fiber), 0);
	CHECK_EQ(hive_now(w.hive), begin + HIVE_S(100));
	world_close(&w, HIVE_DRAIN);
}

static struct hive_fiber *own;

static int compare_self(void *arg)
{
	(void)arg;
	CHECK(hive_fiber_current() == own);
	CHECK_OK(hive_yield());
	CHECK(hive_fiber_current() == own);
	return 0;
}

/* The handle is there before the fiber is: it may look for itself there. */
TEST(the_handle_is_written_before_the_fiber_runs)
{
	struct world w = world_open(1, 2, 0);

	CHECK(!hive_fiber_current());
	CHECK_OK(hive_spawn(w.hive, compare_self, NULL, NULL, &own));
	CHECK_EQ(world_result(own), 0);
	CHECK(!hive_fiber_current());
	world_close(&w, HIVE_DRAIN);
}

/* ---- options ---- */

static int check_name(void *arg)
{
	char name[64];

	CHECK_OK(hive_fiber_name(NULL, name, sizeof name));
	CHECK_STR(name, arg);
	CHECK_OK(hive_fiber_name(hive_fiber_current(), name, sizeof name));
	CHECK_STR(name, arg);
	return 0;
}

TEST(names_are_copied_and_cut)
{
	struct world w = world_open(1, 1, 0);
	char given[64] = "the name of this one is far too long for a fiber", cut[32], name[64];
	struct hive_fiber_options o = { .name = given };
	struct hive_fiber *fiber;

	snprintf(cut, sizeof cut, "%s", given);
	CHECK_OK(hive_spawn(w.hive, check_name, cut, &o, &fiber));
	memset(given, '#', sizeof given - 1);
	CHECK_OK(hive_fiber_name(fiber, name, sizeof name));
	CHECK_STR(name, cut);
	memset(name, 'x', sizeof name);
	CHECK_OK(hive_fiber_name(fiber, name, 4));
	CHECK_STR(name, "the");
	CHECK_EQ(name[4], 'x');
	CHECK_OK(hive_fiber_name(fiber, name, 1));
	CHECK_STR(name, "");
	CHECK_ERR(hive_fiber_name(fiber, name, 0), -EINVAL);
	CHECK_ERR(hive_fiber_name(fiber, NULL, 9), -EINVAL);
	CHECK_EQ(world_result(fiber), 0);
	CHECK_EQ(world_result(world_spawn(&w, check_name, "")), 0); /* the stack's last owner had one */
	CHECK_OK(hive_fiber_name(NULL, name, sizeof name));
	CHECK_STR(name, "");
	world_close(&w, HIVE_DRAIN);
}

TEST(options_of_a_newer_header_are_refused)
{
	struct world w = world_open(1, 1, 0);
	struct hive_fiber *fiber = NULL;
	int ran = 0;

	for (int i = 0; i < 4; i++) {
		struct hive_fiber_options o = { .name = "x" };

		o.reserved[i] = 1;
		CHECK_ERR(hive_spawn(w.hive, count, &ran, &o, &fiber), -EINVAL);
	}
	CHECK_ERR(hive_spawn(w.hive, count, &ran, &(struct hive_fiber_options){ .flags = 1 }, &fiber), -EINVAL);
	CHECK_ERR(hive_spawn(w.hive, count, &ran, &(struct hive_fiber_options){ .worker = 99999 }, &fiber), -ESRCH);
	CHECK(!fiber);
	CHECK_EQ(world_close(&w, HIVE_DRAIN).posted, 0);
	CHECK_EQ(ran, 0);
}

/* Uses about so many bytes of the stack. */
static int use_stack(void *arg)
{
	volatile char deep[4096];
	intptr_t bytes = (intptr_t)arg;

	for (size_t i = 0; i < sizeof deep; i += 64)
		deep[i] = (char)i;
	if (bytes > (intptr_t)sizeof deep)
		return use_stack(number(bytes - (intptr_t)sizeof deep)) + deep[64] - 64;
	return deep[0];
}

/* What was asked for can be used. */
TEST(stacks_have_the_size_that_was_asked_for)
{
	static const size_t sizes[] = { 0, 1, 512, 4096, 16384, 65536, 1 << 20, 8 << 20 };
	struct world w = world_open(1, 1, 0);

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct hive_fiber_options o = { .stack_bytes = sizes[i] };
		size_t used = sizes[i] ? sizes[i] : 48 << 10;
		struct hive_fiber *fiber;

		used = test_slowness() > 1 ? used / 8 : used * 3 / 4; /* sanitizers make frames larger */
		CHECK_OK(hive_spawn(w.hive, sizes[i] < 16384 ? return_number : use_stack,
		                    number(sizes[i] < 16384 ? 0 : (intptr_t)used), &o, &fiber));
		CHECK_EQ(world_result(fiber), 0);
	}
	world_close(&w, HIVE_DRAIN);
}

TEST(stacks_that_are_too_big_are_refused)
{
	static const size_t sizes[] = { ((size_t)1 << 30) + 1, (size_t)1 << 31, SIZE_MAX, SIZE_MAX - 511,
		                        SIZE_MAX / 2 };
	struct world w = world_open(1, 1, 0);

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct hive_fiber_options o = { .stack_bytes = sizes[i] };

		CHECK_ERR(hive_spawn(w.hive, count, NULL, &o, NULL), -EINVAL);
	}
	CHECK_EQ(world_close(&w, HIVE_DRAIN).posted, 0);
}

/* ---- when ---- */

/* Before start they wait; after stop they are refused. */
TEST(fibers_spawned_before_the_start_run_after_it)
{
	struct hive *hive;
	struct hive_options o = { .io_workers = 2 };
	struct world w;
	struct hive_fiber *fibers[20], *none = NULL;
	int r;

	CHECK_OK(hive_sim_create(NULL, &w.sim));
	o.host = hive_sim_host(w.sim);
	CHECK_OK(hive_create(&o, &hive));
	w.hive = hive;
	for (int i = 0; i < 20; i++) {
		struct hive_fiber_options main = { .worker = HIVE_WORKER_MAIN };

		CHECK_OK(hive_spawn(hive, return_number, number(i), i % 2 ? &main : NULL, &fibers[i]));
	}
	CHECK_ERR(hive_fiber_join(fibers[0], HIVE_NOWAIT, NULL), -ETIMEDOUT);
	CHECK_OK(hive_start(hive));
	for (int i = 0; i < 20; i++)
		CHECK_EQ(world_result(fibers[i]), i);
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	r = hive_spawn(hive, count, NULL, NULL, &none);
	CHECK_ERR(r, -ESHUTDOWN);
	CHECK_ERR(hive_spawn(hive, count, NULL, &(struct hive_fiber_options){ .worker = HIVE_WORKER_MAIN }, &none),
	          -ESHUTDOWN);
	CHECK_ERR(hive_block_on(hive, count, NULL, HIVE_FOREVER, NULL), -ESHUTDOWN);
	CHECK(!none);
	CHECK_EQ(world_join(&w).refused, 3);
}

/* The handle of one that never began is joined as any other, as long as its hive exists. */
TEST(a_hive_that_never_starts_ends_its_fibers)
{
	struct hive_fiber *fibers[4];
	struct hive_report report;
	struct hive *hive;
	int result;

	CHECK_OK(hive_create(&(struct hive_options){ .io_workers = 2 }, &hive));
	for (int i = 0; i < 4; i++) {
		struct hive_fiber_options main = { .worker = HIVE_WORKER_MAIN };

		CHECK_OK(hive_spawn(hive, return_number, number(i), i % 2 ? &main : NULL, &fibers[i]));
	}
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	for (int i = 0; i < 4; i++) {
		CHECK_OK(hive_fiber_join(fibers[i], HIVE_NOWAIT, &result));
		CHECK_EQ(result, -ECANCELED);
	}
	CHECK_OK(hive_report_read(hive, &report));
	CHECK_EQ(report.posted, 4);
	CHECK_EQ(report.dropped, 4);
	CHECK_OK(hive_destroy(hive));
	CHECK_OK(hive_create(&(struct hive_options){ .io_workers = 1 }, &hive));
	CHECK_OK(hive_spawn(hive, return_number, NULL, NULL, NULL));
	CHECK_OK(hive_destroy(hive)); /* nothing but that: a sanitizer would find what is left */
}
