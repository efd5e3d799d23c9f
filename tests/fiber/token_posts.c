/* SPDX-License-Identifier: MIT */
/* Tasks under cancel tokens: run, or go to the drop hook, exactly once; also when the hive stops. */
#include "support/fake.h"
#include "test.h"

static struct hive_cancel cancel, *seen;
static int ran, checked;

static void run(void *arg)
{
	ran++;
	checked = hive_cancel_check(NULL);
	CHECK(hive_cancelled() == (checked != 0));
	if (arg)
		hive_cancel_fire(arg);
	checked = hive_cancel_check(NULL);
}

static void open_fake(struct fake *f)
{
	fake_create(f, (struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	fake_start(f);
	fake_settle(f);
	hive_cancel_init(&cancel, NULL, HIVE_FOREVER);
	ran = checked = 0;
}

static int dropped_before;

/* What was posted last has become this. */
static void expect(struct fake *f, int runs, int drops)
{
	fake_settle(f);
	CHECK_EQ(ran, runs);
	CHECK_EQ(f->drops, drops);
	for (int i = dropped_before; i < f->drops; i++)
		CHECK(f->dropped[i].fn == run); /* what its user has posted, and not what it was wrapped in */
}

TEST(a_task_runs_and_sees_its_token)
{
	static const enum hive_kind kinds[] = { HIVE_MICRO, HIVE_COMPUTE };

	for (int i = 0; i < 2; i++) {
		struct fake f = { .now_ns = 1 };

		open_fake(&f);
		CHECK_OK(hive_post_under(f.hive, &cancel, kinds[i], run, NULL));
		CHECK_ERR(hive_cancel_join(&cancel, HIVE_NOWAIT), -ETIMEDOUT);
		expect(&f, 1, 0);
		CHECK_OK(checked);
		CHECK_OK(
			hive_post_under(f.hive, &cancel, kinds[i], run, &cancel)); /* fired while it runs: it goes on */
		expect(&f, 2, 0);
		CHECK_ERR(checked, -ECANCELED);
		CHECK_OK(hive_cancel_check(NULL));
		CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
		fake_destroy(&f);
	}
}

TEST(a_task_that_has_not_begun_goes_to_the_drop_hook)
{
	struct fake f = { .now_ns = 1 };
	int arg;

	open_fake(&f);
	CHECK_OK(hive_post_under(f.hive, &cancel, HIVE_MICRO, run, &arg));
	CHECK_OK(hive_post_under(f.hive, &cancel, HIVE_COMPUTE, run, &arg));
	CHECK_OK(hive_cancel_fire_with(&cancel, -EIO));
	CHECK_ERR(hive_post_under(f.hive, &cancel, HIVE_MICRO, run, &arg), -EIO);
	CHECK_ERR(hive_post_after_under(f.hive, &cancel, 1, run, &arg), -EIO);
	CHECK_ERR(hive_cancel_join(&cancel, HIVE_NOWAIT), -ETIMEDOUT);
	expect(&f, 0, 2);
	CHECK(f.dropped[0].arg == &arg && f.dropped[1].arg == &arg);
	CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
	fake_destroy(&f);
	CHECK_EQ(f.drops, 2);
}

TEST(a_delayed_task_runs_when_it_is_due_or_is_dropped_at_once)
{
	struct fake f = { .now_ns = 1 };

	open_fake(&f);
	CHECK_OK(hive_post_after_under(f.hive, &cancel, HIVE_MS(1), run, NULL));
	CHECK_OK(hive_post_after_under(f.hive, &cancel, HIVE_S(3600), run, NULL));
	CHECK_OK(hive_post_after_under(f.hive, &cancel, 0, run, NULL));
	expect(&f, 1, 0);
	fake_advance(&f, HIVE_MS(1));
	expect(&f, 2, 0);
	hive_cancel_fire(&cancel);
	CHECK_EQ(f.drops, 1); /* no beat was needed */
	CHECK(f.dropped[0].fn == run);
	CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
	fake_destroy(&f);
	CHECK_EQ(f.drops, 1);
}

/* Due and queued, on its way: the token may fire at any of these moments. */
TEST(a_delayed_task_that_is_due_is_dropped_when_its_turn_comes)
{
	struct fake f = { .now_ns = 1 };

	open_fake(&f);
	CHECK_OK(hive_post_after_under(f.hive, &cancel, HIVE_MS(1), run, NULL));
	fake_settle(&f);
	f.now_ns += HIVE_MS(2);
	hive_cancel_fire(&cancel);
	expect(&f, 0, 1);
	CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
	fake_destroy(&f);
}

TEST(a_stop_drops_what_is_under_a_token_once)
{
	for (int fired = 0; fired < 2; fired++) {
		struct fake f = { .now_ns = 1 };

		open_fake(&f);
		CHECK_OK(hive_post_under(f.hive, &cancel, HIVE_MICRO, run, NULL));
		CHECK_OK(hive_post_under(f.hive, &cancel, HIVE_COMPUTE, run, NULL));
		CHECK_OK(hive_post_after_under(f.hive, &cancel, HIVE_S(1), run, NULL));
		CHECK_OK(hive_stop(f.hive, HIVE_NOW, HIVE_FOREVER));
		if (fired)
			hive_cancel_fire(&cancel);
		CHECK_ERR(hive_post_under(f.hive, &cancel, HIVE_MICRO, run, NULL), fired ? -ECANCELED : -ESHUTDOWN);
		CHECK_ERR(hive_post_after_under(f.hive, &cancel, 1, run, NULL), fired ? -ECANCELED : -ESHUTDOWN);
		fake_destroy(&f);
		CHECK_EQ(ran, 0);
		CHECK_EQ(f.drops, 3);
		CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
	}
}

static void look_for_token(void *arg)
{
	ran++;
	CHECK_OK(hive_cancel_check(NULL));
	(void)arg;
}

/* NULL takes the token of the task that posts; a plain post does not. */
static void post_more(void *arg)
{
	struct fake *f = arg;

	seen = &cancel;
	CHECK_OK(hive_post(f->hive, look_for_token, NULL));
	CHECK_OK(hive_post_under(f->hive, NULL, HIVE_COMPUTE, run, NULL));
	CHECK_OK(hive_post_after_under(f->hive, NULL, HIVE_S(1), run, NULL));
	CHECK_OK(hive_cancel_fire_with(seen, -EIO));
}

TEST(without_a_token_it_is_that_of_who_posts)
{
	struct fake f = { .now_ns = 1 };

	open_fake(&f);
	CHECK_OK(hive_post_under(f.hive, NULL, HIVE_MICRO, run, NULL));
	CHECK_OK(hive_post_after_under(f.hive, NULL, 1, run, NULL));
	fake_advance(&f, 1);
	expect(&f, 2, 0);
	CHECK_OK(hive_post_under(f.hive, &cancel, HIVE_MICRO, post_more, &f));
	expect(&f, 3, 2);
	CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
	fake_destroy(&f);
}

TEST(what_is_wrong_is_refused)
{
	struct hive_cancel raw = { .magic = 3 };
	struct fake f = { .now_ns = 1 };

	open_fake(&f);
	CHECK_ERR(hive_post_under(NULL, &cancel, HIVE_MICRO, run, NULL), -EINVAL);
	CHECK_ERR(hive_post_under(f.hive, &cancel, HIVE_MICRO, NULL, NULL), -EINVAL);
	CHECK_ERR(hive_post_under(f.hive, &cancel, 0, run, NULL), -EINVAL);
	CHECK_ERR(hive_post_under(f.hive, &raw, HIVE_MICRO, run, NULL), -EINVAL);
	CHECK_ERR(hive_post_under(f.hive, NULL, 0, run, NULL), -EINVAL);
	CHECK_ERR(hive_post_after_under(NULL, &cancel, 1, run, NULL), -EINVAL);
	CHECK_ERR(hive_post_after_under(f.hive, &cancel, 1, NULL, NULL), -EINVAL);
	CHECK_ERR(hive_post_after_under(f.hive, &raw, 1, run, NULL), -EINVAL);
	f.sticky = true;
	f.fail_at = 1;
	CHECK_ERR(hive_post_under(f.hive, &cancel, HIVE_MICRO, run, NULL), -ENOMEM);
	CHECK_ERR(hive_post_after_under(f.hive, &cancel, 1, run, NULL), -ENOMEM);
	f.fail_at = 0;
	CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT)); /* nothing stayed */
	fake_destroy(&f);
	CHECK_EQ(ran + f.drops, 0);
}

TEST(a_deadline_drops_what_waits)
{
	struct fake f = { .now_ns = 1 };

	open_fake(&f);
	CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
	hive_cancel_init(&cancel, NULL, hive_deadline(f.hive, HIVE_MS(5)));
	CHECK_OK(hive_post_after_under(f.hive, &cancel, HIVE_MS(4), run, NULL));
	CHECK_OK(hive_post_after_under(f.hive, &cancel, HIVE_MS(6), run, NULL));
	fake_advance(&f, HIVE_MS(4));
	expect(&f, 1, 0);
	fake_advance(&f, HIVE_MS(1));
	expect(&f, 1, 1);
	CHECK_ERR(hive_cancel_check(&cancel), -ETIMEDOUT);
	CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
	fake_destroy(&f);
}
