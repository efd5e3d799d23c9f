/* SPDX-License-Identifier: MIT */
/* Groups under cancel tokens, and at priorities. */
#include <rophive/hive.h>

#include "base/atomic.h"
#include "support/fake.h"
#include "support/real.h"
#include "test.h"

static ATOMIC(uint32_t) ran, dropped;

static void count(void *arg)
{
	add_relaxed((ATOMIC(uint32_t) *)arg, 1u);
}

static void note_drop(void *hook_arg, const struct hive_task *task)
{
	(void)hook_arg, (void)task;
	add_relaxed(&dropped, 1u);
}

static struct hive *begin(int32_t compute)
{
	store_relaxed(&ran, 0);
	store_relaxed(&dropped, 0);
	return real_start((struct hive_options){ .io_workers = 1, .compute_workers = compute, .on_drop = note_drop });
}

/* ---- tokens ---- */

static void fire(void *arg)
{
	CHECK_OK(hive_cancel_fire_with(arg, -EILSEQ));
	CHECK(hive_cancelled()); /* it is under it itself */
	CHECK_ERR(hive_cancel_check(NULL), -EILSEQ);
}

struct plan {
	struct hive *hive;
	struct hive_cancel token;
};

/* The newest runs first: it fires, and the others are dropped. */
static void fork_under_a_token(void *arg)
{
	struct plan *p = arg;
	struct hive_group_options options = { .cancel = &p->token };
	struct hive_group group;

	CHECK(!hive_cancelled());
	CHECK_OK(hive_group_init_with(&group, p->hive, HIVE_COMPUTE, &options));
	for (int i = 0; i < 10; i++)
		hive_group_run(&group, count, &ran);
	hive_group_run(&group, fire, &p->token);
	CHECK_ERR(hive_group_wait(&group, HIVE_FOREVER), -EILSEQ);
	CHECK(!hive_cancelled()); /* who waited is not */
}

static void run_alone(struct hive *hive, hive_fn *fn, void *arg)
{
	struct hive_group group;

	hive_group_init(&group, hive, HIVE_COMPUTE);
	hive_group_run(&group, fn, arg);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
}

TEST(a_token_that_fires_drops_what_has_not_begun)
{
	struct plan p = { .hive = begin(1) };

	hive_cancel_init(&p.token, NULL, HIVE_FOREVER);
	run_alone(p.hive, fork_under_a_token, &p);
	CHECK_EQ(load_relaxed(&ran), 0);
	CHECK_OK(hive_cancel_join(&p.token, HIVE_FOREVER));
	real_end(p.hive, HIVE_DRAIN);
	CHECK_EQ(load_relaxed(&dropped), 10);
}

static int sleep_for_ever(void *arg)
{
	(void)arg;
	return hive_sleep(HIVE_S(36000));
}

static int fail_soon(void *arg)
{
	(void)arg;
	CHECK_OK(hive_sleep(HIVE_MS(1)));
	return -ENOLINK;
}

TEST(the_first_error_cancels_the_siblings_when_asked)
{
	struct hive *hive = begin(1);
	struct hive_group_options options = { .flags = HIVE_GROUP_CANCEL };
	struct hive_cancel token;
	struct hive_group group;

	hive_cancel_init(&token, NULL, HIVE_FOREVER);
	options.cancel = &token;
	CHECK_OK(hive_group_init_with(&group, hive, HIVE_COMPUTE, &options));
	for (int i = 0; i < 5; i++)
		CHECK_OK(hive_group_spawn(&group, sleep_for_ever, NULL, NULL));
	CHECK_OK(hive_group_spawn(&group, fail_soon, NULL, NULL));
	CHECK_ERR(hive_group_wait(&group, HIVE_FOREVER), -ENOLINK);
	CHECK_ERR(hive_cancel_check(&token), -ENOLINK);
	CHECK_ERR(hive_group_spawn(&group, sleep_for_ever, NULL, NULL), -ENOLINK); /* it has fired */
	CHECK_OK(hive_cancel_join(&token, HIVE_FOREVER));
	real_end(hive, HIVE_DRAIN);
}

static void look(void *arg)
{
	struct plan *p = arg;

	CHECK(hive_cancelled() == (hive_cancel_check(&p->token) != 0));
	count(&ran);
}

/* What is forked by a task under a token is under it too, wherever it runs. */
static void fork_and_inherit(void *arg)
{
	struct plan *p = arg;
	struct hive_group group;

	hive_group_init(&group, p->hive, HIVE_COMPUTE);
	for (int i = 0; i < 50; i++)
		hive_group_run(&group, look, p);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	hive_cancel_fire(&p->token);
	hive_group_run(&group, look, p);
	CHECK_ERR(hive_group_wait(&group, HIVE_FOREVER), -ECANCELED);
}

TEST(groups_inherit_the_token_of_their_task)
{
	struct plan p = { .hive = begin(2) };

	hive_cancel_init(&p.token, NULL, HIVE_FOREVER);
	CHECK_OK(hive_post_under(p.hive, &p.token, HIVE_COMPUTE, fork_and_inherit, &p));
	CHECK_OK(hive_cancel_join(&p.token, HIVE_FOREVER));
	CHECK_EQ(load_relaxed(&ran), 50);
	real_end(p.hive, HIVE_DRAIN);
	CHECK_EQ(load_relaxed(&dropped), 1);
}

/* A task that waits under a token, and helps meanwhile: others do not see its token. */
static struct hive_semaphore seen;

static void see_no_token(void *arg)
{
	(void)arg;
	CHECK(!hive_cancelled());
	CHECK_OK(hive_semaphore_release(&seen, 1));
}

/* The only compute worker waits for this fiber, which waits for a compute task. */
static int wait_for_the_other(void *arg)
{
	CHECK_OK(hive_post_compute(arg, see_no_token, NULL));
	return hive_semaphore_acquire(&seen, 1, HIVE_FOREVER);
}

static void wait_under_a_fired_token(void *arg)
{
	struct plan *p = arg;
	struct hive_group_options options = { .flags = HIVE_GROUP_SHARED };
	struct hive_group group;

	hive_cancel_fire(&p->token);
	CHECK(hive_cancelled());
	CHECK_OK(hive_group_init_with(&group, p->hive, HIVE_COMPUTE, &options));
	group.cancel = NULL; /* its fiber is under none */
	CHECK_OK(hive_group_spawn(&group, wait_for_the_other, p->hive, NULL));
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	CHECK(hive_cancelled());
}

TEST(who_is_helped_by_a_task_under_a_token_is_not_under_it)
{
	struct plan p = { .hive = begin(1) };

	hive_semaphore_init(&seen, 0);
	hive_cancel_init(&p.token, NULL, HIVE_FOREVER);
	CHECK_OK(hive_post_under(p.hive, &p.token, HIVE_COMPUTE, wait_under_a_fired_token, &p));
	CHECK_OK(hive_cancel_join(&p.token, HIVE_FOREVER));
	real_end(p.hive, HIVE_DRAIN);
}

/* ---- priorities ---- */

static char order[64];
static size_t order_length;

static void note(void *arg)
{
	order[order_length++] = *(const char *)arg;
	order[order_length] = 0;
}

static struct hive_group low;
static struct fake f;
static uint32_t compute;

static void prepare(void)
{
	uint32_t ids[4];
	struct hive_group_options options = { .priority = HIVE_PRIORITY_LOW };

	order_length = 0;
	memset(&f, 0, sizeof f);
	fake_create(&f, (struct hive_options){ .io_workers = 1, .compute_workers = 1 });
	fake_start(&f);
	CHECK_EQ(hive_workers(f.hive, ids, 4), 2);
	compute = ids[1];
	CHECK_OK(hive_group_init_with(&low, f.hive, HIVE_COMPUTE, &options));
	for (int i = 0; i < 3; i++)
		hive_group_run(&low, note, "l");
	for (int i = 0; i < 10; i++)
		CHECK_OK(hive_post_compute(f.hive, note, "n"));
}

static void step_all(void)
{
	for (int i = 0; i < 40; i++)
		fake_step(&f, compute);
}

TEST(tasks_of_a_group_wait_at_its_priority)
{
	prepare();
	step_all();
	CHECK_EQ(order_length, 13);
	CHECK(strspn(order, "n") >= 4 && order[12] == 'l'); /* one of five has its turn */
	fake_destroy(&f);
}

TEST(a_group_that_is_raised_comes_sooner_and_once)
{
	prepare();
	CHECK_OK(hive_group_raise(&low, HIVE_PRIORITY_HIGH));
	CHECK_OK(hive_group_raise(&low, HIVE_PRIORITY_HIGH)); /* they are there */
	CHECK_OK(hive_group_raise(&low, HIVE_PRIORITY_LOW));
	step_all();
	CHECK_EQ(order_length, 13);
	CHECK(strspn(order, "ln") == 13 && strrchr(order, 'l') - order < 6);
	CHECK_ERR(hive_group_raise(&low, (enum hive_priority)3), -EINVAL);
	CHECK_ERR(hive_group_raise(NULL, HIVE_PRIORITY_HIGH), -EINVAL);
	fake_destroy(&f);
}

/* The important one is the first to run; the tasks of the group that it waits for are next, on its own stack. */
static void wait_for_low(void *arg)
{
	(void)arg;
	note("h");
	CHECK_OK(hive_group_wait(&low, HIVE_FOREVER));
	note("H");
}

TEST(who_is_important_and_waits_raises_what_he_waits_for)
{
	prepare();
	CHECK_OK(hive_post_compute_at(f.hive, HIVE_PRIORITY_HIGH, wait_for_low, NULL));
	step_all();
	CHECK_EQ(order_length, 15);
	CHECK(strchr(order, 'H') - order < 8);
	CHECK(strrchr(order, 'l') < strchr(order, 'H'));
	fake_destroy(&f);
}
