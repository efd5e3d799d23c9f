/* SPDX-License-Identifier: MIT */
/* A worker on its way out: what it still runs, what others may take, and whose its timers are. */
#include "support/lone.h"
#include "support/kinds.h"

static struct lone world;

static void stop_now(void *arg)
{
	(void)arg;
	CHECK_OK(hive_stop(world.f.hive, HIVE_NOW, HIVE_FOREVER));
}

/* what has not begun when the stop comes is dropped, also by a worker that was about to leave. */
TEST(a_stop_from_the_last_tasks_of_a_leaving_worker_drops_the_rest)
{
	memset(&world, 0, sizeof world);
	lone_open(&world, 2, (struct hive_worker_options){ 0 });
	fake_log_clear();
	CHECK_OK(hive_post_to(world.f.hive, world.ids[1], stop_now, NULL));
	CHECK_OK(hive_post_to(world.f.hive, world.ids[1], fake_note, number(1)));
	CHECK_ERR(hive_detach(world.f.hive, world.ids[1], HIVE_NOWAIT), -EINPROGRESS);
	fake_step(&world.f, world.ids[1]);
	CHECK_STR(fake_log(), "");
	CHECK_EQ(world.f.drops, 1);
	lone_close(&world);
}

/* nor is anything stolen that would then begin. */
TEST(nothing_is_stolen_after_a_stop_now)
{
	memset(&world, 0, sizeof world);
	lone_open(&world, 2, (struct hive_worker_options){ 0 });
	fake_log_clear();
	lone_become(&world, 1);
	CHECK_OK(hive_post_local(fake_note, number(1)));
	CHECK_OK(hive_post_local(fake_note, number(2)));
	lone_become(&world, LONE_NOBODY);
	CHECK_OK(hive_post_to(world.f.hive, world.ids[0], stop_now, NULL));
	fake_push_random(&world.f, fake_random(1, 2));
	lone_beat(&world, 0);
	CHECK_STR(fake_log(), "");
	lone_close(&world);
}

/* what it may not take is no reason to stay awake. */
TEST(a_worker_that_does_not_steal_sleeps_beside_a_busy_one)
{
	struct hive_worker_options o = { .steal_attempts = HIVE_OFF };

	memset(&world, 0, sizeof world);
	lone_open(&world, 2, o);
	lone_beat(&world, 0);
	lone_become(&world, 1);
	CHECK_OK(hive_post_local(fake_note, number(1)));
	lone_become(&world, LONE_NOBODY);
	lone_beat(&world, 0);
	CHECK_EQ(lone_timeout(&world, 0), HIVE_FOREVER);
	lone_close(&world);
}

static int fired;

static void on_fire(struct hive_timer *timer)
{
	(void)timer;
	fired++;
}

/* Worker 1 arms the timer and leaves; its letter lies in the inbox of worker 0, which runs now. */
static void leave_a_timer(struct hive_timer *timer)
{
	memset(&world, 0, sizeof world);
	fired = 0;
	lone_open(&world, 3, (struct hive_worker_options){ 0 });
	hive_timer_init(timer, on_fire, NULL);
	lone_become(&world, 1);
	CHECK_OK(hive_timer_start(timer, HIVE_MS(1), 0));
	lone_become(&world, LONE_NOBODY);
	CHECK_ERR(hive_detach(world.f.hive, world.ids[1], HIVE_NOWAIT), -EINPROGRESS);
	fake_step(&world.f, world.ids[1]);
	lone_become(&world, 0);
}

/* a timer that moves to the main worker is the main worker's from the moment it moves. */
TEST(a_timer_that_moves_can_be_stopped_by_its_new_owner)
{
	struct hive_timer timer;

	leave_a_timer(&timer);
	CHECK_EQ(hive_timer_stop(&timer), 1);
	memset(&timer, 0xdd, sizeof timer); /* its memory is free */
	lone_become(&world, LONE_NOBODY);
	fake_advance(&world.f, HIVE_MS(10));
	CHECK_EQ(fired, 0);
	lone_close(&world);
}

TEST(a_timer_that_moves_can_be_started_anew_by_its_new_owner)
{
	struct hive_timer timer;

	leave_a_timer(&timer);
	CHECK_OK(hive_timer_start(&timer, HIVE_MS(5), 0));
	lone_become(&world, LONE_NOBODY);
	fake_advance(&world.f, HIVE_MS(4));
	CHECK_EQ(fired, 0);
	fake_advance(&world.f, HIVE_MS(2));
	CHECK_EQ(fired, 1);
	lone_close(&world);
}

/* The misuse aborts in debug builds, and is told in the others. */
TEST(a_timer_that_moves_belongs_to_nobody_else)
{
	struct hive_timer timer;

	leave_a_timer(&timer);
	lone_become(&world, 2);
	CHECK_MISUSE(hive_timer_stop(&timer), -EPERM);
	lone_become(&world, LONE_NOBODY);
	fake_advance(&world.f, HIVE_MS(10));
	CHECK_EQ(fired, 1);
	lone_close(&world);
}
