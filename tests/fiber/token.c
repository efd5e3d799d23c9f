/* SPDX-License-Identifier: MIT */
/* Cancel tokens by themselves: the tree, the reason, watches, join; twice, late, from anywhere. No hive is needed for that. */
#include <pthread.h>
#include <stdatomic.h>

#include "support/real.h"
#include "test.h"

#include <rophive/hive.h>

static int calls, reasons[8];

static void note(struct hive_cancel_watch *watch, int reason)
{
	CHECK(watch->arg == &calls);
	reasons[calls++ % 8] = reason;
}

static void watch(struct hive_cancel *cancel, struct hive_cancel_watch *w)
{
	hive_cancel_watch_init(w, note, &calls);
	CHECK_OK(hive_cancel_watch_start(cancel, w));
}

TEST(a_token_fires_once_and_its_first_reason_stays)
{
	struct hive_cancel cancel;
	struct hive_cancel_watch w;

	calls = 0;
	hive_cancel_init(&cancel, NULL, HIVE_FOREVER);
	CHECK_OK(hive_cancel_check(&cancel));
	watch(&cancel, &w);
	CHECK_OK(hive_cancel_fire_with(&cancel, -EIO));
	CHECK_ERR(hive_cancel_check(&cancel), -EIO);
	CHECK_EQ(calls, 1);
	CHECK_EQ(reasons[0], -EIO);
	hive_cancel_fire(&cancel);
	CHECK_ERR(hive_cancel_fire_with(&cancel, -EPIPE), -EALREADY);
	CHECK_ERR(hive_cancel_check(&cancel), -EIO);
	CHECK_EQ(calls, 1);
	CHECK_ERR(hive_cancel_watch_start(&cancel, &w), -EIO); /* late: refused, and not called */
	CHECK_EQ(calls, 1);
	CHECK_EQ(hive_cancel_watch_stop(&w), 0);
	CHECK_OK(hive_cancel_join(&cancel, HIVE_FOREVER));
}

TEST(what_is_wrong_is_told)
{
	struct hive_cancel cancel, child, raw = { .magic = 0 };
	struct hive_cancel_watch w = { 0 };

	hive_cancel_init(NULL, NULL, HIVE_FOREVER);
	hive_cancel_watch_init(NULL, note, NULL);
	hive_cancel_fire(NULL);
	hive_cancel_fire(&raw);
	CHECK_ERR(hive_cancel_fire_with(NULL, -EIO), -EINVAL);
	CHECK_ERR(hive_cancel_fire_with(&raw, -EIO), -EINVAL);
	CHECK_ERR(hive_cancel_check(&raw), -EINVAL);
	CHECK_ERR(hive_cancel_join(NULL, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_cancel_join(&raw, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_cancel_arm(&raw, NULL), -EINVAL);
	hive_cancel_init(&cancel, NULL, HIVE_FOREVER);
	CHECK_ERR(hive_cancel_arm(&cancel, NULL), -EINVAL);
	CHECK_ERR(hive_cancel_fire_with(&cancel, 0), -EINVAL);
	CHECK_ERR(hive_cancel_fire_with(&cancel, 5), -EINVAL);
	CHECK_ERR(hive_cancel_fire_with(&cancel, -4096), -EINVAL);
	CHECK_OK(hive_cancel_check(&cancel));
	CHECK_ERR(hive_cancel_watch_start(&cancel, NULL), -EINVAL);
	CHECK_ERR(hive_cancel_watch_start(&cancel, &w), -EINVAL); /* never initialised */
	CHECK_ERR(hive_cancel_watch_stop(&w), -EINVAL);
	CHECK_ERR(hive_cancel_watch_stop(NULL), -EINVAL);
	hive_cancel_watch_init(&w, NULL, NULL);
	CHECK_ERR(hive_cancel_watch_start(&cancel, &w), -EINVAL);
	watch(&cancel, &w);
	CHECK_ERR(hive_cancel_watch_start(&cancel, &w), -EALREADY);
	CHECK_EQ(hive_cancel_watch_stop(&w), 1);
	CHECK_EQ(hive_cancel_watch_stop(&w), 0);
	hive_cancel_init(&child, &raw, HIVE_FOREVER);
	CHECK_ERR(hive_cancel_check(&child), -EINVAL);
	CHECK_OK(hive_cancel_join(&child, HIVE_NOWAIT));
	CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
	CHECK_ERR(hive_cancel_check(&cancel), -EINVAL); /* joined: it is none any more */
	CHECK_ERR(hive_cancel_join(&cancel, HIVE_NOWAIT), -EINVAL);
	CHECK_OK(hive_cancel_check(NULL));
	CHECK(!hive_cancelled());
}

TEST(a_deadline_that_is_past_has_fired)
{
	struct hive_cancel root, child;

	hive_cancel_init(&root, NULL, HIVE_NOWAIT);
	CHECK_ERR(hive_cancel_check(&root), -ETIMEDOUT);
	hive_cancel_init(&child, &root, HIVE_FOREVER);
	CHECK_ERR(hive_cancel_check(&child), -ETIMEDOUT);
	CHECK_OK(hive_cancel_join(&root, HIVE_NOWAIT)); /* one that was born so is under nothing */
	CHECK_OK(hive_cancel_join(&child, HIVE_NOWAIT));
}

/* Down, not up; and not twice into what had fired. */
TEST(a_token_reaches_what_is_below_it_and_nothing_else)
{
	struct hive_cancel root, left, right, leaf;
	struct hive_cancel_watch w[4];

	calls = 0;
	hive_cancel_init(&root, NULL, HIVE_FOREVER);
	hive_cancel_init(&left, &root, HIVE_FOREVER);
	hive_cancel_init(&right, &root, HIVE_FOREVER);
	hive_cancel_init(&leaf, &left, HIVE_FOREVER);
	watch(&root, &w[0]);
	watch(&left, &w[1]);
	watch(&right, &w[2]);
	watch(&leaf, &w[3]);
	CHECK_OK(hive_cancel_fire_with(&left, -EIO));
	CHECK_EQ(calls, 2);
	CHECK_OK(hive_cancel_check(&root));
	CHECK_OK(hive_cancel_check(&right));
	CHECK_ERR(hive_cancel_check(&leaf), -EIO);
	hive_cancel_fire(&root);
	CHECK_EQ(calls, 4);
	CHECK_ERR(hive_cancel_check(&left), -EIO);
	CHECK_ERR(hive_cancel_check(&right), -ECANCELED);
	CHECK_ERR(hive_cancel_join(&left, HIVE_NOWAIT), -ETIMEDOUT); /* its child is there */
	CHECK_OK(hive_cancel_join(&leaf, HIVE_FOREVER));
	CHECK_OK(hive_cancel_join(&left, HIVE_FOREVER));
	CHECK_ERR(hive_cancel_join(&root, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_OK(hive_cancel_join(&right, HIVE_FOREVER));
	CHECK_OK(hive_cancel_join(&root, HIVE_FOREVER));
}

/* On a thread with little stack: a hundred thousand, one under the other. */
enum { DEEP = 100000 };

static void *fire_on_a_small_stack(void *cancel)
{
	hive_cancel_fire(cancel);
	return NULL;
}

TEST(a_deep_tree_needs_no_stack)
{
	struct hive_cancel *all = malloc(DEEP * sizeof *all);
	pthread_attr_t small;
	pthread_t thread;

	CHECK(all);
	for (int i = 0; i < DEEP; i++)
		hive_cancel_init(&all[i], i > 0 ? &all[i - 1] : NULL, HIVE_FOREVER);
	CHECK_OK(pthread_attr_init(&small));
	CHECK_OK(pthread_attr_setstacksize(&small, 128 * 1024));
	CHECK_OK(pthread_create(&thread, &small, fire_on_a_small_stack, all));
	CHECK_OK(pthread_join(thread, NULL));
	CHECK_OK(pthread_attr_destroy(&small));
	for (int i = DEEP; i-- > 0;) {
		CHECK_ERR(hive_cancel_check(&all[i]), -ECANCELED);
		CHECK_OK(hive_cancel_join(&all[i], HIVE_FOREVER));
	}
	free(all);
}

/* ---- inside the function of a watch ---- */

struct inside {
	struct hive_cancel_watch watch;
	struct hive_cancel *cancel, *other;
	int stopped, joined, fired, started;
};

/* No lock is held: each call is allowed, and its answer is known. */
static void do_all(struct hive_cancel_watch *watch, int reason)
{
	struct inside *i = watch->arg;

	CHECK_EQ(reason, -ECANCELED);
	CHECK_ERR(hive_cancel_check(i->cancel), -ECANCELED);
	i->fired = hive_cancel_fire_with(i->cancel, -EIO);
	i->joined = hive_cancel_join(i->cancel, HIVE_FOREVER);
	i->stopped = hive_cancel_watch_stop(watch);
	i->started = hive_cancel_watch_start(i->other, watch);
}

TEST(the_function_of_a_watch_may_use_tokens_and_stop_itself)
{
	struct hive_cancel cancel, other;
	struct inside *i = calloc(1, sizeof *i);

	CHECK(i);
	hive_cancel_init(&cancel, NULL, HIVE_FOREVER);
	hive_cancel_init(&other, NULL, HIVE_FOREVER);
	i->cancel = &cancel;
	i->other = &other;
	hive_cancel_watch_init(&i->watch, do_all, i);
	CHECK_OK(hive_cancel_watch_start(&cancel, &i->watch));
	hive_cancel_fire(&cancel);
	CHECK_ERR(i->fired, -EALREADY);
	CHECK_ERR(i->joined, -EDEADLK);
	CHECK_EQ(i->stopped, 0);
	CHECK_OK(i->started);
	CHECK_EQ(hive_cancel_watch_stop(&i->watch), 1);
	CHECK_OK(hive_cancel_join(&other, HIVE_FOREVER));
	CHECK_OK(hive_cancel_join(&cancel, HIVE_FOREVER));
	free(i);
}

static void free_it(struct hive_cancel_watch *watch, int reason)
{
	(void)reason;
	CHECK_EQ(hive_cancel_watch_stop(watch), 0);
	free(watch);
	calls++;
}

TEST(a_watch_that_stopped_itself_may_be_freed_inside)
{
	struct hive_cancel cancel;
	struct hive_cancel_watch *w = malloc(sizeof *w);

	CHECK(w);
	calls = 0;
	hive_cancel_init(&cancel, NULL, HIVE_FOREVER);
	hive_cancel_watch_init(w, free_it, NULL);
	CHECK_OK(hive_cancel_watch_start(&cancel, w));
	hive_cancel_fire(&cancel);
	CHECK_EQ(calls, 1);
	CHECK_OK(hive_cancel_join(&cancel, HIVE_FOREVER));
}

/* Called and returned; then the token goes; then somebody stops the watch: it must not look for the token. */
TEST(a_watch_may_be_stopped_when_its_token_is_gone)
{
	struct hive_cancel *cancel = malloc(sizeof *cancel);
	struct hive_cancel_watch w;

	CHECK(cancel);
	hive_cancel_init(cancel, NULL, HIVE_FOREVER);
	watch(cancel, &w);
	hive_cancel_fire(cancel);
	CHECK_OK(hive_cancel_join(cancel, HIVE_FOREVER));
	free(cancel);
	CHECK_EQ(hive_cancel_watch_stop(&w), 0);
}

/* ---- stop and join are synchronous ---- */

static struct gate entered, leave;
static _Atomic bool returned;

static void pass_slowly(struct hive_cancel_watch *watch, int reason)
{
	(void)watch;
	(void)reason;
	gate_open(&entered);
	gate_pass(&leave);
	returned = true;
}

static void *fire_it(void *cancel)
{
	hive_cancel_fire(cancel);
	return NULL;
}

static struct hive_cancel_watch *stopped_watch;

static void *stop_it(void *arg)
{
	(void)arg;
	CHECK_EQ(hive_cancel_watch_stop(stopped_watch), 0);
	CHECK(returned);
	return NULL;
}

TEST(stop_and_join_wait_for_a_function_that_runs)
{
	struct hive_cancel cancel;
	struct hive_cancel_watch w;
	pthread_t firer, stopper;

	gate_init(&entered);
	gate_init(&leave);
	returned = false;
	hive_cancel_init(&cancel, NULL, HIVE_FOREVER);
	hive_cancel_watch_init(&w, pass_slowly, NULL);
	stopped_watch = &w;
	CHECK_OK(hive_cancel_watch_start(&cancel, &w));
	CHECK_OK(pthread_create(&firer, NULL, fire_it, &cancel));
	gate_pass(&entered);
	CHECK_ERR(hive_cancel_join(&cancel, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_OK(pthread_create(&stopper, NULL, stop_it, NULL));
	gate_open(&leave);
	CHECK_OK(hive_cancel_join(&cancel, HIVE_FOREVER));
	CHECK(returned);
	CHECK_OK(pthread_join(stopper, NULL));
	CHECK_OK(pthread_join(firer, NULL));
	gate_destroy(&entered);
	gate_destroy(&leave);
}

/* A foreign thread's join: its deadline fires, and what is under it is waited for. */
static void stop_when_told(struct hive_cancel_watch *watch, int reason)
{
	CHECK_EQ(reason, -ETIMEDOUT);
	*(bool *)watch->arg = true;
}

TEST(the_deadline_of_a_join_fires_and_waits_for_the_rest)
{
	struct hive_cancel cancel;
	struct hive_cancel_watch w;
	bool told = false;

	hive_cancel_init(&cancel, NULL, HIVE_FOREVER);
	hive_cancel_watch_init(&w, stop_when_told, &told);
	CHECK_OK(hive_cancel_watch_start(&cancel, &w));
	CHECK_ERR(hive_cancel_join(&cancel, hive_deadline(NULL, 1)), -ETIMEDOUT);
	CHECK(told);
	CHECK_ERR(hive_cancel_check(&cancel), -EINVAL); /* joined all the same */
}
