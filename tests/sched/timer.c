/* SPDX-License-Identifier: MIT */
/* Embedded timers on the fake clock: when they fire, in which order, and what their callbacks may do. */
#include "support/lone.h"
#include "support/kinds.h"

static struct fake *world;
static struct lone *rig;

/* A timer that writes its number into the log. */
static void note(struct hive_timer *timer)
{
	fake_note(timer->arg);
}

/* The world with one worker; the caller is that worker from here on. */
static void open_alone(struct lone *l)
{
	rig = l;
	world = &l->f;
	lone_open(l, 1, (struct hive_worker_options){ 0 });
	lone_become(l, 0);
	fake_log_clear();
}

static void pass(int64_t ns)
{
	rig->f.now_ns += ns;
	do
		lone_beat(rig, 0);
	while (hive__own_work(rig->w[0]) || hive__next_due(rig->w[0]) <= rig->f.now_ns);
}

/* never before its time, in the order of deadlines, each as often as it should. */
TEST(timers_fire_in_the_order_of_their_deadlines_and_never_early)
{
	struct lone l = { 0 };
	struct hive_timer timers[5];
	static const int64_t delay_ms[5] = { 30, 10, 50, 20, 40 };

	open_alone(&l);
	for (int i = 0; i < 5; i++) {
		hive_timer_init(&timers[i], note, number((int)delay_ms[i]));
		CHECK_OK(hive_timer_start(&timers[i], HIVE_MS(delay_ms[i]), 0));
	}
	pass(HIVE_MS(10) - 1);
	CHECK_STR(fake_log(), "");
	pass(1);
	CHECK_STR(fake_log(), "10");
	pass(HIVE_MS(25));
	CHECK_STR(fake_log(), "10 20 30");
	pass(HIVE_S(100));
	CHECK_STR(fake_log(), "10 20 30 40 50");
	lone_close(&l);
}

/* equal deadlines keep the order in which they were started, whatever kind of timer. */
TEST(equal_deadlines_fire_in_the_order_of_their_start)
{
	struct lone l = { 0 };
	struct hive_timer timers[20];

	open_alone(&l);
	for (int i = 0; i < 20; i++) {
		hive_timer_init(&timers[i], note, number(i));
		CHECK_OK(hive_timer_start(&timers[i], HIVE_MS(1), 0));
		CHECK_OK(hive_post_self_after(HIVE_MS(1), fake_note, number(100 + i), NULL));
	}
	CHECK_OK(hive_timer_start(&timers[0], HIVE_MS(1), 0)); /* started anew: behind the others */
	pass(HIVE_MS(1));
	CHECK_STR(fake_log(), "100 1 101 2 102 3 103 4 104 5 105 6 106 7 107 8 108 9 109 10 110 11 111 12 112 13 113 "
	                      "14 114 15 115 16 116 17 117 18 118 19 119 0");
	lone_close(&l);
}

/* the published count follows each timer that comes, fires, moves or is stopped. */
TEST(the_timer_count_rises_and_falls_with_the_timers)
{
	struct lone l = { 0 };
	struct hive_timer timers[3];
	struct hive_worker_stats s;
	uint64_t post;

	open_alone(&l);
	for (int i = 0; i < 3; i++) {
		hive_timer_init(&timers[i], note, number(i));
		CHECK_OK(hive_timer_start(&timers[i], HIVE_MS(i + 1), i == 2 ? HIVE_MS(1) : 0));
		CHECK_EQ(worker_timers(l.w[0]), i + 1);
	}
	CHECK_OK(hive_timer_start(&timers[0], HIVE_MS(1), 0)); /* moved: no more, no less */
	CHECK_EQ(worker_timers(l.w[0]), 3);
	lone_become(&l, LONE_NOBODY);
	CHECK_OK(hive_post_after(l.f.hive, HIVE_MS(9), fake_note, number(1), &post));
	CHECK_EQ(worker_timers(l.w[0]), 4); /* counted when posted */
	CHECK_OK(hive_worker_stats_read(l.f.hive, l.ids[0], &s));
	CHECK_EQ(s.timers, 4);
	lone_become(&l, 0);
	pass(HIVE_MS(1));
	CHECK_EQ(worker_timers(l.w[0]), 3);
	CHECK_EQ(hive_timer_stop(&timers[1]), 1);
	CHECK_EQ(worker_timers(l.w[0]), 2);
	CHECK_OK(hive_post_cancel(l.f.hive, post));
	CHECK_EQ(worker_timers(l.w[0]), 1);
	pass(HIVE_MS(5)); /* the periodic one fires and stays */
	CHECK_EQ(worker_timers(l.w[0]), 1);
	CHECK_EQ(hive_timer_stop(&timers[2]), 1);
	CHECK_EQ(worker_timers(l.w[0]), 0);
	lone_close(&l);
}

/* ---- periods ---- */

static int fired;
static int64_t fired_at[64], busy_ns;

static void tick(struct hive_timer *timer)
{
	(void)timer;
	fired_at[fired++ % 64] = world->now_ns;
	world->now_ns += busy_ns;
}

static void start_periodic(struct hive_timer *timer, enum hive_drift drift)
{
	hive_timer_init(timer, tick, NULL);
	timer->drift = drift;
	fired = 0;
	busy_ns = 0;
	CHECK_OK(hive_timer_start(timer, HIVE_MS(10), HIVE_MS(10)));
}

/* served in time, all three policies do the same. */
TEST(periodic_timers_served_in_time_keep_their_period_under_each_policy)
{
	for (int drift = HIVE_DRIFT_SKIP; drift <= HIVE_DRIFT_DELAY; drift++) {
		struct lone l = { 0 };
		struct hive_timer timer;
		int64_t begin;

		open_alone(&l);
		begin = l.f.now_ns;
		start_periodic(&timer, (enum hive_drift)drift);
		for (int i = 1; i <= 20; i++) {
			pass(HIVE_MS(10) - 1);
			CHECK_EQ(fired, i - 1);
			pass(1);
			CHECK_EQ(fired, i);
			CHECK_EQ(fired_at[i - 1], begin + i * HIVE_MS(10));
		}
		CHECK_EQ(hive_timer_stop(&timer), 1);
		lone_close(&l);
	}
}

/* SKIP: once for all that were missed, and back on the grid. */
TEST(skip_fires_once_for_all_missed_periods_and_stays_on_the_grid)
{
	struct lone l = { 0 };
	struct hive_timer timer;

	open_alone(&l);
	start_periodic(&timer, HIVE_DRIFT_SKIP);
	pass(HIVE_MS(57)); /* due at 10, 20, 30, 40, 50 */
	CHECK_EQ(fired, 1);
	pass(HIVE_MS(3) - 1);
	CHECK_EQ(fired, 1);
	pass(1); /* 60: the grid */
	CHECK_EQ(fired, 2);
	pass(HIVE_MS(20)); /* exactly on a point: 70 was missed, 80 is now */
	CHECK_EQ(fired, 3);
	pass(HIVE_MS(10));
	CHECK_EQ(fired, 4);
	lone_close(&l);
}

/* BURST: once for each that was missed, within the budget of the step. */
TEST(burst_fires_once_for_each_missed_period_within_the_budget)
{
	struct lone l = { 0 };
	struct hive_timer timer;

	open_alone(&l);
	start_periodic(&timer, HIVE_DRIFT_BURST);
	l.f.now_ns += HIVE_MS(1005);
	lone_beat(&l, 0);
	CHECK_EQ(fired, TUNE_TIMER_BUDGET); /* of a hundred; step 1 has its turn in between */
	lone_beat(&l, 0);
	CHECK_EQ(fired, 100);
	lone_beat(&l, 0);
	CHECK_EQ(fired, 100);
	pass(HIVE_MS(5));
	CHECK_EQ(fired, 101);
	lone_close(&l);
}

/* DELAY: the next period counts from the end of the callback. */
TEST(delay_counts_the_period_from_the_end_of_the_callback)
{
	struct lone l = { 0 };
	struct hive_timer timer;

	open_alone(&l);
	start_periodic(&timer, HIVE_DRIFT_DELAY);
	busy_ns = HIVE_MS(7);
	pass(HIVE_MS(25)); /* late by 15, then busy for 7: due again 17 later */
	CHECK_EQ(fired, 1);
	busy_ns = 0;
	pass(HIVE_MS(10) - 1);
	CHECK_EQ(fired, 1);
	pass(1);
	CHECK_EQ(fired, 2);
	lone_close(&l);
}

/* ---- what a callback may do ---- */

struct actor {
	struct hive_timer timer, *other;
	int64_t delay_ns, period_ns;
	int fired;
};

static void stop_self(struct hive_timer *timer)
{
	struct actor *a = timer->arg;

	a->fired++;
	CHECK_EQ(hive_timer_stop(timer), timer->period_ns > 0);
	CHECK_EQ(hive_timer_stop(timer), 0);
}

/* stopping itself ends a periodic timer under each policy. */
TEST(a_timer_may_stop_itself_in_its_callback)
{
	for (int drift = HIVE_DRIFT_SKIP; drift <= HIVE_DRIFT_DELAY; drift++) {
		for (int periodic = 0; periodic < 2; periodic++) {
			struct lone l = { 0 };
			struct actor a = { .fired = 0 };

			open_alone(&l);
			hive_timer_init(&a.timer, stop_self, &a);
			a.timer.drift = (enum hive_drift)drift;
			CHECK_OK(hive_timer_start(&a.timer, 1, periodic));
			pass(HIVE_S(1));
			CHECK_EQ(a.fired, 1);
			CHECK_EQ(timers_count(&l.w[0]->timers), 0);
			CHECK_EQ(worker_timers(l.w[0]), 0);
			lone_close(&l);
		}
	}
}

static void restart_self(struct hive_timer *timer)
{
	struct actor *a = timer->arg;

	if (++a->fired == 1)
		CHECK_OK(hive_timer_start(timer, a->delay_ns, a->period_ns));
}

/* restarting itself replaces the period under way, under each policy. */
TEST(a_timer_may_restart_itself_in_its_callback)
{
	for (int drift = HIVE_DRIFT_SKIP; drift <= HIVE_DRIFT_DELAY; drift++) {
		struct lone l = { 0 };
		struct actor a = { .delay_ns = HIVE_MS(3), .period_ns = 0 };

		open_alone(&l);
		hive_timer_init(&a.timer, restart_self, &a);
		a.timer.drift = (enum hive_drift)drift;
		CHECK_OK(hive_timer_start(&a.timer, HIVE_MS(1), HIVE_MS(1)));
		pass(HIVE_MS(1));
		CHECK_EQ(a.fired, 1);
		pass(HIVE_MS(3) - 1);
		CHECK_EQ(a.fired, 1);
		pass(1);
		CHECK_EQ(a.fired, 2);
		pass(HIVE_S(10)); /* it was restarted to fire once */
		CHECK_EQ(a.fired, 2);
		lone_close(&l);
	}
}

static void stop_other(struct hive_timer *timer)
{
	struct actor *a = timer->arg;

	a->fired++;
	CHECK_EQ(hive_timer_stop(a->other), 1);
}

/* after stop() nothing is called, not even what was due in the same step. */
TEST(a_callback_may_stop_another_timer_that_is_due_as_well)
{
	struct lone l = { 0 };
	struct actor a = { .fired = 0 };
	struct hive_timer victim;

	open_alone(&l);
	hive_timer_init(&victim, note, number(1));
	a.other = &victim;
	hive_timer_init(&a.timer, stop_other, &a);
	CHECK_OK(hive_timer_start(&a.timer, 1, 0));
	CHECK_OK(hive_timer_start(&victim, 2, 1));
	pass(HIVE_MS(1));
	CHECK_EQ(a.fired, 1);
	CHECK_STR(fake_log(), "");
	lone_close(&l);
}

static void restart_other(struct hive_timer *timer)
{
	struct actor *a = timer->arg;

	CHECK_OK(hive_timer_start(a->other, HIVE_MS(5), 0));
}

/* a callback may move a timer that is due: it fires at the new time and not now. */
TEST(a_callback_may_move_another_timer_that_is_due_as_well)
{
	struct lone l = { 0 };
	struct actor a = { .fired = 0 };
	struct hive_timer victim;

	open_alone(&l);
	hive_timer_init(&victim, note, number(1));
	a.other = &victim;
	hive_timer_init(&a.timer, restart_other, &a);
	CHECK_OK(hive_timer_start(&a.timer, 1, 0));
	CHECK_OK(hive_timer_start(&victim, 2, 1));
	pass(HIVE_MS(1));
	CHECK_STR(fake_log(), "");
	pass(HIVE_MS(5));
	CHECK_STR(fake_log(), "1");
	lone_close(&l);
}

static void free_self(struct hive_timer *timer)
{
	CHECK(hive_timer_stop(timer) >= 0);
	memset(timer, 0xa5, sizeof *timer); /* what a sanitizer would not see, this makes go wrong */
	free(timer);
	fired++;
}

/* the memory is free after stop, in the timer's own callback too. */
TEST(a_timer_may_be_freed_in_its_own_callback)
{
	struct lone l = { 0 };

	open_alone(&l);
	fired = 0;
	for (int i = 0; i < 60; i++) {
		struct hive_timer *timer = malloc(sizeof *timer);

		CHECK(timer);
		hive_timer_init(timer, free_self, NULL);
		timer->drift = (enum hive_drift)(i % 3);
		CHECK_OK(hive_timer_start(timer, HIVE_MS(1 + i % 7), i % 2 ? HIVE_MS(1) : 0));
	}
	pass(HIVE_S(1));
	CHECK_EQ(fired, 60);
	CHECK_EQ(timers_count(&l.w[0]->timers), 0);
	lone_close(&l);
}

static void free_other(void *arg)
{
	CHECK_EQ(hive_timer_stop(arg), 1);
	memset(arg, 0xa5, sizeof(struct hive_timer));
	free(arg);
}

/* and in any other callback, that of a delayed post without memory in the heap included. */
TEST(a_timer_may_be_freed_in_the_callback_of_a_delayed_post_that_found_no_memory)
{
	struct lone l = { 0 };
	struct hive_timer *timer = malloc(sizeof *timer), fillers[63];

	open_alone(&l);
	CHECK(timer);
	hive_timer_init(timer, note, number(1));
	CHECK_OK(hive_timer_start(timer, HIVE_MS(1), 0));
	for (int i = 0; i < 63; i++) { /* the heap's first block is full now */
		hive_timer_init(&fillers[i], note, number(2));
		CHECK_OK(hive_timer_start(&fillers[i], HIVE_S(1000), 0));
	}
	CHECK_OK(hive_post_after(l.f.hive, HIVE_US(500), free_other, timer, NULL));
	l.f.allocations = 0;
	l.f.fail_at = 1;
	l.f.sticky = true;
	lone_beat(&l, 0);
	CHECK(!l.w[0]->unplaced == !test_has_heap()); /* the wheel needs no memory */
	pass(HIVE_MS(2));
	CHECK_STR(fake_log(), "");
	l.f.fail_at = 0;
	lone_close(&l);
}

static void stop_the_hive(struct hive_timer *timer)
{
	(void)timer;
	fake_note(number(9));
	CHECK_OK(hive_stop(world->hive, HIVE_DRAIN, HIVE_FOREVER));
}

/* timers fall silent when stop is asked for, in the same step too. */
TEST(a_callback_that_stops_the_hive_silences_the_timers_after_it)
{
	struct lone l = { 0 };
	struct hive_timer first, second;

	open_alone(&l);
	hive_timer_init(&first, stop_the_hive, NULL);
	hive_timer_init(&second, note, number(1));
	CHECK_OK(hive_timer_start(&first, 1, 0));
	CHECK_OK(hive_timer_start(&second, 2, 0));
	l.f.now_ns += 10;
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "9");
	lone_close(&l);
}

/* ---- limits ---- */

static void again_at_once(struct hive_timer *timer)
{
	fired++;
	CHECK_OK(hive_timer_start(timer, 0, 0));
}

/* a timer that re-arms itself without delay uses up the budget of a step and then lets step 1 run. */
TEST(a_timer_without_delay_does_not_starve_the_first_step)
{
	struct lone l = { 0 };
	struct hive_timer timer;

	open_alone(&l);
	fired = 0;
	hive_timer_init(&timer, again_at_once, NULL);
	CHECK_OK(hive_timer_start(&timer, -5, 0)); /* a negative delay counts as none */
	for (int i = 1; i <= 10; i++) {
		lone_beat(&l, 0);
		CHECK_EQ(fired, i * TUNE_TIMER_BUDGET);
		CHECK_EQ(l.scripts[0].turns, i);
		CHECK_EQ(lone_timeout(&l, 0), 0);
	}
	CHECK_EQ(hive_timer_stop(&timer), 1);
	lone_close(&l);
}

/* delays beyond the end of the clock mean never, and do not wrap into the past. */
TEST(delays_beyond_the_clocks_end_mean_never)
{
	struct lone l = { 0 };
	struct hive_timer timers[3];
	static const int64_t delays[3] = { HIVE_FOREVER, HIVE_FOREVER - 1, HIVE_FOREVER - HIVE_S(1) };

	open_alone(&l);
	for (int i = 0; i < 3; i++) {
		hive_timer_init(&timers[i], note, number(i));
		CHECK_OK(hive_timer_start(&timers[i], delays[i], HIVE_FOREVER));
	}
	CHECK_OK(hive_post_self_after(HIVE_FOREVER, fake_note, number(4), NULL));
	lone_beat(&l, 0);
	lone_beat(&l, 0);
	CHECK_EQ(lone_timeout(&l, 0), HIVE_FOREVER);
	pass(HIVE_S(1000000000));
	CHECK_STR(fake_log(), "");
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hive_timer_stop(&timers[i]), 1);
	lone_close(&l);
}

/* a period so long that the next point lies beyond the clock's end fires once and never again. */
TEST(a_period_beyond_the_clocks_end_fires_once)
{
	for (int drift = HIVE_DRIFT_SKIP; drift <= HIVE_DRIFT_DELAY; drift++) {
		struct lone l = { 0 };
		struct hive_timer timer;

		open_alone(&l);
		hive_timer_init(&timer, note, number(1));
		timer.drift = (enum hive_drift)drift;
		CHECK_OK(hive_timer_start(&timer, 1, HIVE_FOREVER));
		pass(10);
		pass(HIVE_S(1000000000));
		CHECK_STR(fake_log(), "1");
		CHECK_EQ(hive_timer_stop(&timer), 1);
		lone_close(&l);
	}
}
