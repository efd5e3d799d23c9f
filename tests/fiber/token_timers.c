/* SPDX-License-Identifier: MIT */
/* Embedded timers under cancel tokens: stopped on their worker when it fires, wherever that is by then. */
#include "support/fake.h"
#include "test.h"

static struct fake *world;
static struct hive_timer timer;
static struct hive_cancel cancel;
static int fired, started;
static int64_t delay_ns, period_ns;

static void on_fire(struct hive_timer *t)
{
	CHECK(t == &timer);
	fired++;
}

static void start_it(void *arg)
{
	(void)arg;
	started = hive_timer_start_under(&timer, &cancel, delay_ns, period_ns);
}

static void stop_it(void *expected)
{
	CHECK_EQ(hive_timer_stop(&timer), (intptr_t)expected);
}

static void *n(intptr_t number)
{
	return (void *)number;
}

/* On this worker; what it is told to do is done, and nobody else has made a beat. */
static void do_on(uint32_t worker, hive_fn *fn, void *arg)
{
	CHECK_OK(hive_post_to(world->hive, worker, fn, arg));
	fake_step(world, worker);
}

static uint32_t worker_of(int i)
{
	return world->workers[i].id;
}

static void open_fake(struct fake *f)
{
	world = f;
	fake_create(f, (struct hive_options){ .io_workers = 2 });
	fake_start(f);
	fake_settle(f);
	hive_cancel_init(&cancel, NULL, HIVE_FOREVER);
	hive_timer_init(&timer, on_fire, NULL);
	fired = 0;
}

static void start_on(int worker, int64_t delay, int64_t period)
{
	delay_ns = delay;
	period_ns = period;
	do_on(worker_of(worker), start_it, NULL);
	CHECK_OK(started);
}

TEST(a_timer_that_has_fired_is_under_nothing)
{
	struct fake f = { 0 };

	open_fake(&f);
	start_on(1, HIVE_MS(1), 0);
	CHECK_ERR(hive_cancel_join(&cancel, HIVE_NOWAIT), -ETIMEDOUT);
	fake_advance(&f, HIVE_MS(1));
	CHECK_EQ(fired, 1);
	CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
	fake_destroy(&f);
}

TEST(a_token_stops_timers_on_their_worker)
{
	for (int worker = 0; worker < 2; worker++) {
		struct fake f = { 0 };

		open_fake(&f);
		start_on(worker, HIVE_MS(1), HIVE_MS(1));
		fake_advance(&f, HIVE_MS(1));
		fake_advance(&f, HIVE_MS(1));
		CHECK_EQ(fired, 2);
		hive_cancel_fire(&cancel);
		CHECK_ERR(hive_cancel_join(&cancel, HIVE_NOWAIT), -ETIMEDOUT); /* the letter is on its way */
		fake_advance(&f, HIVE_S(1));
		CHECK_EQ(fired, 2);
		CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
		do_on(worker_of(1 - worker), stop_it, n(0)); /* idle: anybody may ask */
		fake_destroy(&f);
	}
}

/* Due in the very beat in which the letter arrives, or before it. */
TEST(after_the_token_has_fired_no_function_begins)
{
	struct fake f = { 0 };

	open_fake(&f);
	start_on(0, HIVE_MS(1), 0);
	f.now_ns += HIVE_MS(5);
	hive_cancel_fire(&cancel);
	fake_settle(&f);
	CHECK_EQ(fired, 0);
	CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
	fake_destroy(&f);
}

static void fire_then_stop(void *arg)
{
	(void)arg;
	hive_cancel_fire(&cancel);
	CHECK_EQ(hive_timer_stop(&timer), 1);
	memset(&timer, 0xa5, sizeof timer); /* gone before the letter comes */
}

TEST(a_stop_takes_it_from_under_the_token)
{
	struct fake f = { 0 };

	open_fake(&f);
	start_on(0, HIVE_MS(1), HIVE_MS(1));
	do_on(worker_of(0), stop_it, n(1));
	CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
	hive_cancel_init(&cancel, NULL, HIVE_FOREVER);
	start_on(0, HIVE_MS(1), HIVE_MS(1));
	do_on(worker_of(0), fire_then_stop, NULL);
	fake_settle(&f);
	CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
	fake_destroy(&f);
}

static void stop_and_join(struct fake *f, enum hive_stop_mode mode)
{
	CHECK_OK(hive_stop(f->hive, mode, HIVE_FOREVER));
	fake_settle(f);
	CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
	fake_destroy(f);
	CHECK_EQ(fired, 0);
}

TEST(a_hive_that_stops_takes_its_timers_from_under_the_token)
{
	for (int i = 0; i < 4; i++) {
		struct fake f = { 0 };

		open_fake(&f);
		start_on(1, HIVE_MS(1), HIVE_MS(1));
		if (i & 2) /* its letter is under way when the stop comes */
			hive_cancel_fire(&cancel);
		stop_and_join(&f, i & 1 ? HIVE_NOW : HIVE_DRAIN);
	}
}

/* Its worker leaves: the timer goes to the main worker, and the letter after it, wherever it was. */
TEST(a_timer_that_moves_is_still_under_its_token)
{
	for (int early = 0; early < 2; early++) {
		struct fake f = { 0 };

		open_fake(&f);
		start_on(1, HIVE_MS(2), HIVE_MS(2));
		if (early)
			hive_cancel_fire(&cancel);
		CHECK_ERR(hive_detach(f.hive, worker_of(1), HIVE_NOWAIT), -EINPROGRESS);
		if (!early) {
			fake_settle(&f);
			fake_advance(&f, HIVE_MS(2));
			CHECK_EQ(fired, 1);
			hive_cancel_fire(&cancel);
		}
		fake_settle(&f);
		fake_advance(&f, HIVE_S(1));
		CHECK_EQ(fired, early ? 0 : 1);
		CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
		fake_destroy(&f);
	}
}

static void start_wrongly(void *arg)
{
	struct hive_timer raw = { .state = 1 }, other;
	struct hive_cancel bad = { .magic = 1 };
	struct fake *f = arg;

	hive_timer_init(&other, on_fire, NULL);
	CHECK_OK(hive_timer_start_under(&timer, &cancel, HIVE_MS(1), 0));
	CHECK_ERR(hive_timer_start_under(&timer, &cancel, HIVE_MS(1), 0), -EALREADY);
	CHECK_ERR(hive_timer_start_under(NULL, &cancel, HIVE_MS(1), 0), -EINVAL);
	CHECK_ERR(hive_timer_start_under(&raw, &cancel, HIVE_MS(1), 0), -EINVAL);
	CHECK_ERR(hive_timer_start_under(&other, &bad, HIVE_MS(1), 0), -EINVAL);
	CHECK_ERR(hive_timer_start_under(&other, &cancel, HIVE_MS(1), -1), -EINVAL);
	f->fail_at = 1;
	f->allocations = 0;
	CHECK_ERR(hive_timer_start_under(&other, &cancel, HIVE_MS(1), 0), -ENOMEM);
	f->fail_at = 0;
	CHECK_OK(hive_timer_start_under(&other, NULL, HIVE_MS(1), 0)); /* under nothing: as hive_timer_start() */
	CHECK_EQ(hive_timer_stop(&other), 1);
	hive_cancel_fire(&cancel);
	CHECK_ERR(hive_timer_start_under(&other, &cancel, HIVE_MS(1), 0), -ECANCELED);
	CHECK_EQ(hive_timer_stop(&other), 0);
}

TEST(what_is_wrong_is_refused)
{
	struct fake f = { 0 };

	open_fake(&f);
	CHECK_MISUSE(hive_timer_start_under(&timer, &cancel, HIVE_MS(1), 0), -EPERM);
	do_on(worker_of(0), start_wrongly, &f);
	fake_settle(&f);
	CHECK_EQ(fired, 0);
	CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
	fake_destroy(&f);
}
