/* SPDX-License-Identifier: MIT */
/* Stop: a drain lets fibers finish, HIVE_NOW ends their waits; nobody is lost, and the books balance. */
#include "support/real.h"
#include "support/world.h"

static int begun, ended, cancelled;

static void forget_counts(void)
{
	begun = ended = cancelled = 0;
}

static int sleep_for(void *arg)
{
	int r;

	begun++;
	r = hive_sleep((intptr_t)arg);
	cancelled += r == -ECANCELED;
	ended++;
	return r;
}

static void *ns(int64_t delay)
{
	return (void *)(intptr_t)delay;
}

static int join_it(void *arg)
{
	struct hive_fiber *fiber = *(struct hive_fiber **)arg;
	int r;

	begun++;
	r = hive_fiber_join(fiber, HIVE_FOREVER, NULL);
	if (r < 0)
		CHECK_OK(hive_fiber_detach(fiber));
	cancelled += r == -ECANCELED;
	ended++;
	return r;
}

/* ---- drain ---- */

/* Sleeping and blocked ones finish; time goes on for them although other timers are silent. */
TEST(a_drain_waits_for_sleeping_and_blocked_fibers)
{
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct world w = world_open(seed, 1 + (int32_t)(seed % 4), (int32_t)(seed % 2));
		struct hive_fiber *sleepers[5], *joiners[5];

		forget_counts();
		for (int i = 0; i < 5; i++) {
			sleepers[i] = world_spawn(&w, sleep_for, ns(HIVE_MS(i * 10)));
			joiners[i] = world_spawn(&w, join_it, &sleepers[i]);
		}
		if (seed % 3)
			world_advance(&w, (int64_t)(seed % 3) * HIVE_MS(7));
		CHECK_OK(hive_stop(w.hive, HIVE_DRAIN, HIVE_FOREVER));
		for (int i = 0; i < 5; i++)
			CHECK_EQ(world_result(joiners[i]), 0);
		CHECK_EQ(ended, 10);
		CHECK_EQ(cancelled, 0);
		CHECK_EQ(hive_now(w.hive), HIVE_MS(40));
		CHECK(!world_join(&w).deadline_missed);
	}
}

static int spawn_while_draining(void *arg)
{
	struct hive_fiber *none = NULL;

	(void)arg;
	CHECK_OK(hive_sleep(HIVE_MS(5)));
	CHECK_ERR(hive_spawn(hive_current(), sleep_for, NULL, NULL, &none), -ESHUTDOWN);
	CHECK_ERR(hive_spawn(hive_current(), sleep_for, NULL,
	                     &(struct hive_fiber_options){ .worker = hive_worker_current() }, NULL),
	          -ESHUTDOWN);
	CHECK(!none);
	CHECK_OK(hive_yield());
	CHECK_OK(hive_sleep(HIVE_MS(5)));
	ended++;
	return 0;
}

/* What runs goes on as before; what is new is refused. */
TEST(a_drain_refuses_new_fibers_and_serves_the_old)
{
	struct world w = world_open(3, 2, 0);
	struct hive_report report;

	forget_counts();
	CHECK_OK(hive_spawn(w.hive, spawn_while_draining, NULL, NULL, NULL));
	world_settle(&w);
	CHECK_OK(hive_stop(w.hive, HIVE_DRAIN, HIVE_FOREVER));
	report = world_join(&w);
	CHECK_EQ(ended, 1);
	CHECK_EQ(report.refused, 2);
	CHECK_EQ(report.stop_ns, HIVE_MS(10));
}

/* Queued and never begun: a drain lets them begin. */
TEST(a_drain_lets_queued_fibers_begin)
{
	struct world w = world_open(3, 2, 0);

	forget_counts();
	for (int i = 0; i < 100; i++)
		CHECK_OK(hive_spawn(w.hive, sleep_for, ns(i), NULL, NULL));
	world_close(&w, HIVE_DRAIN);
	CHECK_EQ(ended, 100);
	CHECK_EQ(cancelled, 0);
}

/* The deadline turns it into HIVE_NOW, at that very moment. */
TEST(the_deadline_of_a_drain_cancels_fibers)
{
	for (uint64_t seed = 0; seed < 30; seed++) {
		struct world w = world_open(seed, 1 + (int32_t)(seed % 4), 0);
		struct hive_report report;

		forget_counts();
		for (int i = 0; i < 10; i++)
			CHECK_OK(hive_spawn(w.hive, sleep_for, ns(HIVE_MS(i)), NULL, NULL));
		world_settle(&w);
		CHECK_OK(hive_stop(w.hive, HIVE_DRAIN, hive_deadline(w.hive, HIVE_US(4500))));
		report = world_join(&w);
		CHECK_EQ(ended, 10);
		CHECK_EQ(cancelled, 5);
		CHECK(report.deadline_missed);
		CHECK_EQ(report.stop_ns, HIVE_US(4500));
	}
}

/* A second call may hurry. */
TEST(a_drain_may_be_hurried)
{
	struct world w = world_open(3, 2, 0);

	forget_counts();
	CHECK_OK(hive_spawn(w.hive, sleep_for, ns(HIVE_S(100)), NULL, NULL));
	world_settle(&w);
	CHECK_OK(hive_stop(w.hive, HIVE_DRAIN, HIVE_FOREVER));
	world_advance(&w, HIVE_S(1));
	CHECK_EQ(ended, 0);
	CHECK_OK(hive_stop(w.hive, HIVE_NOW, HIVE_FOREVER));
	CHECK_EQ(world_join(&w).stop_ns, HIVE_S(1));
	CHECK_EQ(ended, 1);
	CHECK_EQ(cancelled, 1);
}

/* ---- now ---- */

/* All waits return; those that never began have a result all the same. */
TEST(now_cancels_every_wait_and_drops_who_never_began)
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct world w = world_open(seed, 1 + (int32_t)(seed % 4), (int32_t)(seed % 2));
		struct hive_fiber *sleeper = world_spawn(&w, sleep_for, ns(HIVE_FOREVER)), *others[20], *late[30];
		struct hive_report report;
		int dropped = 0, result;

		forget_counts();
		for (int i = 0; i < 20; i++)
			others[i] = world_spawn(&w, sleep_for, ns(i % 2 ? HIVE_S(i) : HIVE_FOREVER));
		CHECK_OK(hive_spawn(w.hive, join_it, &sleeper, NULL, NULL));
		world_settle(&w);
		CHECK_EQ(begun, 22);
		for (int i = 0; i < 30; i++) {
			struct hive_fiber_options o = { .worker = i % 3 ? HIVE_WORKER_NONE : HIVE_WORKER_MAIN };

			CHECK_OK(hive_spawn(w.hive, sleep_for, ns(1), &o, &late[i]));
		}
		CHECK_OK(hive_stop(w.hive, HIVE_NOW, HIVE_FOREVER));
		for (int i = 0; i < 20; i++)
			CHECK_EQ(world_result(others[i]), -ECANCELED);
		for (int i = 0; i < 30; i++)
			CHECK_EQ(world_result(late[i]), -ECANCELED);
		CHECK_OK(hive_join(w.hive, HIVE_FOREVER));
		CHECK_ERR(hive_fiber_join(others[0], HIVE_NOWAIT, &result), -ESRCH);
		CHECK_EQ(begun, ended);
		CHECK(cancelled >= begun - 1); /* the joiner may hear of the end before it is cancelled */
		dropped = 52 - begun;
		report = world_join(&w);
		CHECK_EQ(report.dropped, dropped);
		CHECK_EQ(report.stop_ns, 0);
	}
}

static int yield_until_cancelled(void *arg)
{
	begun++;
	while (hive_yield() == 0)
		++*(int *)arg;
	ended++;
	return -ECANCELED;
}

static int ignore_it_for_a_while(void *arg)
{
	begun++;
	for (int i = 0; i < 100; i++)
		hive_yield();
	ended++;
	return arg != NULL;
}

static int stop_after_a_while(void *arg)
{
	begun++;
	for (int i = 0; i < 30; i++)
		CHECK_OK(hive_yield());
	CHECK_OK(hive_stop(hive_current(), HIVE_NOW, HIVE_FOREVER));
	ended++;
	return arg != NULL;
}

/* Who looks at the result ends; who does not is served all the same, and so are the others. */
TEST(yielders_end_when_they_look)
{
	for (uint64_t seed = 0; seed < 30; seed++) {
		struct world w = world_open(seed, 1 + (int32_t)(seed % 3), 0);
		int yields = 0;

		forget_counts();
		for (int i = 0; i < 10; i++)
			CHECK_OK(hive_spawn(w.hive, i % 2 ? yield_until_cancelled : ignore_it_for_a_while, &yields,
			                    NULL, NULL));
		CHECK_OK(hive_spawn(w.hive, stop_after_a_while, NULL, NULL, NULL));
		world_join(&w);
		CHECK_EQ(ended, begun);
		if (seed % 3 > 0)
			continue; /* others may not have come to their turn when the one that stops has had all of its own */
		CHECK_EQ(begun, 11);
		CHECK(yields > 30);
	}
}

static _Atomic int after_the_end;
static _Atomic bool joined;

static int work_after_cancel(void *arg)
{
	int r;

	(void)arg;
	r = hive_sleep(HIVE_FOREVER);
	CHECK_ERR(r, -ECANCELED);
	for (int i = 0; i < 50; i++) {
		hive_yield();
		after_the_end += joined;
	}
	return r;
}

/* No code of a fiber runs after hive_join(); with real threads. */
TEST(no_fiber_runs_after_the_join)
{
	for (int round = 0; round < 20; round++) {
		struct hive *hive = real_start((struct hive_options){ .io_workers = 3, .compute_workers = 1 });
		struct hive_report report;

		after_the_end = 0;
		joined = false;
		for (int i = 0; i < 30; i++)
			CHECK_OK(hive_spawn(hive, work_after_cancel, NULL, NULL, NULL));
		CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
		CHECK_OK(hive_join(hive, real_patience()));
		joined = true;
		CHECK_OK(hive_report_read(hive, &report));
		CHECK_EQ(report.posted, report.ran + report.cancelled + report.dropped);
		CHECK_OK(hive_destroy(hive));
		CHECK_EQ(after_the_end, 0);
	}
}

static int stop_from_inside(void *arg)
{
	enum hive_stop_mode mode = arg ? HIVE_NOW : HIVE_DRAIN;

	CHECK_OK(hive_stop(hive_current(), mode, HIVE_FOREVER));
	CHECK_ERR(hive_join(hive_current(), HIVE_FOREVER), -EDEADLK);
	CHECK_ERR(hive_yield(), arg ? -ECANCELED : 0);
	CHECK_ERR(hive_sleep(1), arg ? -ECANCELED : 0);
	ended++;
	return 0;
}

TEST(a_fiber_may_stop_its_hive)
{
	for (int now = 0; now < 2; now++) {
		struct world w = world_open(3, 2, 0);

		forget_counts();
		CHECK_OK(hive_spawn(w.hive, stop_from_inside, now ? &w : NULL, NULL, NULL));
		world_join(&w);
		CHECK_EQ(ended, 1);
	}
}

/* The drop hook is for tasks; fibers tell by their result. */
static int hooked;

static void on_drop(void *arg, const struct hive_task *task)
{
	(void)arg, (void)task;
	hooked++;
}

TEST(fibers_that_never_began_are_counted_and_not_handed_to_the_drop_hook)
{
	struct world w = world_with((struct hive_sim_options){ .seed = 1 },
	                            (struct hive_options){ .io_workers = 1, .on_drop = on_drop });

	hooked = 0;
	for (int i = 0; i < 10; i++)
		CHECK_OK(hive_spawn(w.hive, sleep_for, NULL, NULL, NULL));
	CHECK_EQ(world_close(&w, HIVE_NOW).dropped, 10);
	CHECK_EQ(hooked, 0);
}

/* Handles outlive the stop, as long as the hive exists. */
TEST(results_can_be_asked_for_after_the_end)
{
	struct world w = world_open(3, 2, 0);
	struct hive_fiber *fiber = world_spawn(&w, sleep_for, ns(1)), *other = world_spawn(&w, sleep_for, ns(2));
	int result = 1;

	CHECK_OK(hive_stop(w.hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(w.hive, HIVE_FOREVER));
	CHECK_OK(hive_fiber_cancel(fiber));
	CHECK_OK(hive_wait_all(&fiber, 1, HIVE_FOREVER));
	CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, &result));
	CHECK_EQ(result, 0);
	CHECK_OK(hive_fiber_detach(other));
	world_join(&w);
}
