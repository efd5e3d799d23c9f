/* SPDX-License-Identifier: MIT */
/* Falling asleep, being woken, and what must not get lost in between. The fake core's in_turn is the time while a
 * worker sleeps; on_park is the moment between its decision to sleep and the announcement.                        */
#include "support/lone.h"

static struct lone *rig;
static int ran;

static void count(void *arg)
{
	(void)arg;
	ran++;
}

static struct hive_stats stats(void)
{
	struct hive_stats s;

	CHECK_OK(hive_stats_read(rig->f.hive, &s));
	return s;
}

/* ---- while it sleeps ---- */

static void look_at_sleepers(struct fake_core_script *script, int64_t timeout_ns)
{
	(void)script;
	CHECK_EQ(stats().sleeping, timeout_ns != 0);
}

/* "sleeping" is said during a turn that may block, and at no other time. */
TEST(a_worker_counts_as_sleeping_exactly_while_its_turn_may_block)
{
	struct lone l = { 0 };

	rig = &l;
	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	l.scripts[0].in_turn = look_at_sleepers;
	lone_become(&l, 0);
	lone_beat(&l, 0);
	CHECK_EQ(lone_timeout(&l, 0), HIVE_FOREVER);
	CHECK_EQ(stats().sleeping, 0);
	CHECK_OK(hive_post_self(count, NULL));
	lone_beat(&l, 0);
	CHECK_EQ(lone_timeout(&l, 0), 0);
	CHECK_OK(hive_post_self_after(HIVE_MS(1), count, NULL, NULL));
	lone_beat(&l, 0);
	CHECK_EQ(lone_timeout(&l, 0), HIVE_MS(1));
	CHECK_EQ(stats().sleeping, 0);
	lone_close(&l);
}

enum door { POST, POST_MANY, POST_TO, POST_AFTER, DOORS };

static void post_from_outside(enum door door)
{
	struct worker *w = hive__current();
	struct hive_task tasks[3] = { { count, NULL }, { count, NULL }, { count, NULL } };

	lone_become(rig, LONE_NOBODY);
	if (door == POST)
		CHECK_OK(hive_post(rig->f.hive, count, NULL));
	else if (door == POST_MANY)
		CHECK_OK(hive_post_many(rig->f.hive, tasks, 3));
	else if (door == POST_TO)
		CHECK_OK(hive_post_to(rig->f.hive, rig->ids[0], count, NULL));
	else
		CHECK_OK(hive_post_after(rig->f.hive, 0, count, NULL, NULL));
	hive__set_current(w);
}

static enum door door_in_turn;

static void post_while_it_sleeps(struct fake_core_script *script, int64_t timeout_ns)
{
	script->in_turn = NULL;
	CHECK_EQ(timeout_ns, HIVE_FOREVER);
	post_from_outside(door_in_turn);
	CHECK_EQ(rig->f.wakes, 1);
	post_from_outside(door_in_turn); /* it is awake already, whether it knows or not */
	CHECK_EQ(rig->f.wakes, 1);
}

/* a sleeper is woken by the first post, once, and starts at step 1 with what came. */
TEST(a_post_to_a_sleeper_wakes_it_once_and_is_found_in_the_same_beat)
{
	for (door_in_turn = POST; door_in_turn < DOORS; door_in_turn++) {
		struct lone l = { 0 };

		rig = &l;
		ran = 0;
		lone_open(&l, 1, (struct hive_worker_options){ 0 });
		l.scripts[0].in_turn = post_while_it_sleeps;
		lone_beat(&l, 0);
		CHECK_EQ(l.scripts[0].turns, 1);
		if (door_in_turn == POST_TO || door_in_turn == POST_AFTER)
			CHECK_EQ(ran, 2);
		else
			CHECK(local_size(&l.w[0]->local) > 0);
		if (ran == 0) {
			lone_beat(&l, 0);
			CHECK_EQ(lone_timeout(&l, 0), 0);
		}
		CHECK_EQ(ran, door_in_turn == POST_MANY ? 6 : 2);
		lone_close(&l);
	}
}

static void post_while_it_looks(struct fake_core_script *script, int64_t timeout_ns)
{
	script->in_turn = NULL;
	CHECK_EQ(timeout_ns, 0);
	post_from_outside(door_in_turn);
}

/* nobody is woken when the worker is awake; it will come by. */
TEST(a_post_to_an_awake_worker_wakes_nobody)
{
	for (door_in_turn = POST; door_in_turn < DOORS; door_in_turn++) {
		struct lone l = { 0 };

		rig = &l;
		lone_open(&l, 1, (struct hive_worker_options){ 0 });
		l.scripts[0].in_turn = post_while_it_looks;
		lone_become(&l, 0);
		CHECK_OK(hive_post_self(count, NULL));
		lone_beat(&l, 0);
		CHECK_EQ(l.f.wakes, 0);
		lone_close(&l);
	}
}

/* the wait ends with the timer's deadline, and the timer runs in that beat. */
static void sleep_to_the_end(struct fake_core_script *script, int64_t timeout_ns)
{
	(void)script;
	if (timeout_ns != HIVE_FOREVER)
		rig->f.now_ns += timeout_ns;
}

TEST(a_sleep_until_the_next_timer_ends_with_the_timer)
{
	struct lone l = { 0 };

	rig = &l;
	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	l.scripts[0].in_turn = sleep_to_the_end;
	lone_become(&l, 0);
	ran = 0;
	CHECK_OK(hive_post_self_after(HIVE_MS(7), count, NULL, NULL));
	lone_beat(&l, 0);
	CHECK_EQ(lone_timeout(&l, 0), HIVE_MS(7));
	CHECK_EQ(ran, 1);
	CHECK_EQ(load_relaxed(&l.w[0]->stats.asleep_ns), HIVE_MS(7));
	lone_close(&l);
}

static void see_that_nobody_sleeps(struct hive_source *source, uint32_t events)
{
	(void)source, (void)events;
	ran++;
	CHECK_EQ(stats().sleeping, 0);
	CHECK_OK(hive_post(rig->f.hive, count, NULL));
}

static void deliver_first(struct fake_core_script *script, int64_t timeout_ns)
{
	CHECK_EQ(timeout_ns, HIVE_FOREVER);
	hive_source_deliver(script->sources[0], HIVE_EVENT_IN);
	hive_source_deliver(script->sources[0], HIVE_EVENT_IN);
}

/* the first event of a turn ends the sleep before the user's code runs. */
TEST(an_event_ends_the_sleep_before_its_callback_runs)
{
	struct lone l = { 0 };
	struct hive_source source;

	rig = &l;
	ran = 0;
	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	lone_become(&l, 0);
	hive_source_init(&source, HIVE_SOURCE_FD, 0, HIVE_EVENT_IN, see_that_nobody_sleeps, NULL);
	CHECK_OK(hive_source_start(&source));
	l.scripts[0].in_turn = deliver_first;
	lone_beat(&l, 0);
	CHECK_EQ(ran, 2);
	CHECK_EQ(l.f.wakes, 0);
	l.scripts[0].in_turn = NULL;
	lone_close(&l);
}

/* ---- between the decision and the block ---- */

static int parked, unparked;
static void (*in_park)(void);

static void on_park(void *arg)
{
	(void)arg;
	CHECK_EQ(hive__current() != NULL, 1);
	CHECK_EQ(parked, unparked);
	parked++;
	if (in_park)
		in_park();
	in_park = NULL;
}

static void on_unpark(void *arg)
{
	(void)arg;
	unparked++;
	CHECK_EQ(parked, unparked);
}

static void park_from_outside(void)
{
	post_from_outside(door_in_turn);
}

/* a post after the decision to sleep is seen by the second look; nobody needs to wake anybody. */
TEST(a_post_between_decision_and_block_keeps_the_worker_awake)
{
	for (door_in_turn = POST; door_in_turn < DOORS; door_in_turn++) {
		struct lone l = { 0 };

		rig = &l;
		ran = parked = unparked = 0;
		in_park = park_from_outside;
		lone_open(&l, 1, (struct hive_worker_options){ .on_park = on_park, .on_unpark = on_unpark });
		lone_beat(&l, 0);
		CHECK_EQ(parked, 1);
		CHECK_EQ(unparked, 1);
		CHECK_EQ(lone_timeout(&l, 0), 0); /* it did not block with the task lying there */
		CHECK_EQ(l.f.wakes, 0);
		lone_beat(&l, 0);
		CHECK_EQ(ran, door_in_turn == POST_MANY ? 3 : 1);
		lone_close(&l);
	}
}

/* The clock is asked once more after the worker has looked at its queues and before it announces itself; whoever
 * asks it there finds the narrowest gap that there is.                                                           */
static int64_t (*real_now)(void *arg);
static bool gap_open;

static int64_t now_with_a_post(void *arg)
{
	if (gap_open) {
		gap_open = false;
		post_from_outside(door_in_turn);
	}
	return real_now(arg);
}

/* a post between the last look and the announcement is seen by the look that follows it. */
TEST(a_post_between_the_last_look_and_the_announcement_keeps_the_worker_awake)
{
	for (door_in_turn = POST; door_in_turn < DOORS; door_in_turn++) {
		struct lone l = { 0 };

		rig = &l;
		ran = 0;
		lone_open(&l, 1, (struct hive_worker_options){ 0 });
		CHECK_OK(hive_post_after(l.f.hive, HIVE_S(100), count, NULL,
		                         NULL)); /* a timer: it asks how long to sleep */
		lone_beat(&l, 0);
		real_now = l.f.hive->host.now;
		l.f.hive->host.now = now_with_a_post;
		gap_open = true;
		lone_beat(&l, 0);
		CHECK(!gap_open);
		CHECK_EQ(lone_timeout(&l, 0), 0);
		CHECK_EQ(l.f.wakes, 0);
		lone_beat(&l, 0);
		CHECK_EQ(ran, door_in_turn == POST_MANY ? 3 : 1);
		lone_close(&l);
	}
}

static void park_private(void)
{
	CHECK_OK(hive_post_self(count, NULL));
}

static void park_local(void)
{
	CHECK_OK(hive_post_local(count, NULL));
}

static void park_outbox(void)
{
	CHECK_OK(hive_post(rig->f.hive, count, NULL));
}

/* the hook itself may post, by each of the worker's own doors. */
TEST(what_on_park_posts_keeps_the_worker_awake)
{
	void (*const doors[])(void) = { park_private, park_local, park_outbox };

	for (int i = 0; i < 3; i++) {
		struct lone l = { 0 };

		rig = &l;
		ran = parked = unparked = 0;
		in_park = doors[i];
		lone_open(&l, 1, (struct hive_worker_options){ .on_park = on_park, .on_unpark = on_unpark });
		for (int beat = 0; beat < 3; beat++) {
			lone_beat(&l, 0);
			CHECK(ran || lone_timeout(&l, 0) == 0);
		}
		CHECK_EQ(ran, 1);
		lone_close(&l);
	}
}

static struct hive_timer park_timer;

static void count_fire(struct hive_timer *timer)
{
	(void)timer;
	ran++;
}

static void park_delayed(void)
{
	CHECK_OK(hive_post_self_after(HIVE_MS(2), count, NULL, NULL));
}

static void park_arm(void)
{
	hive_timer_init(&park_timer, count_fire, NULL);
	CHECK_OK(hive_timer_start(&park_timer, HIVE_MS(2), 0));
}

/* a timer that on_park starts shortens the very sleep that follows, else it would fire too late or
 * never.                                                                                                        */
TEST(a_timer_that_on_park_starts_limits_the_sleep_that_follows)
{
	void (*const doors[])(void) = { park_delayed, park_arm };

	for (int i = 0; i < 2; i++) {
		struct lone l = { 0 };

		rig = &l;
		ran = parked = unparked = 0;
		in_park = doors[i];
		lone_open(&l, 1, (struct hive_worker_options){ .on_park = on_park, .on_unpark = on_unpark });
		l.scripts[0].in_turn = sleep_to_the_end;
		lone_beat(&l, 0);
		CHECK(lone_timeout(&l, 0) <= HIVE_MS(2));
		if (lone_timeout(&l, 0) == 0)
			lone_beat(&l, 0);
		CHECK_EQ(ran, 1);
		lone_close(&l);
	}
}

static void park_neighbour(void)
{
	lone_become(rig, 1);
	CHECK_OK(hive_post_local(count, NULL));
	lone_become(rig, 0);
}

/* the second look includes the victims. */
TEST(the_second_look_sees_what_could_be_stolen)
{
	struct lone l = { 0 };

	rig = &l;
	ran = parked = unparked = 0;
	in_park = park_neighbour;
	lone_open(&l, 2, (struct hive_worker_options){ .on_park = on_park, .on_unpark = on_unpark });
	lone_beat(&l, 0);
	CHECK_EQ(lone_timeout(&l, 0), 0);
	lone_beat(&l, 0);
	CHECK_EQ(ran, 1);
	lone_close(&l);
}

static void park_stop(void)
{
	lone_become(rig, LONE_NOBODY);
	CHECK_OK(hive_stop(rig->f.hive, HIVE_DRAIN, HIVE_FOREVER));
	lone_become(rig, 0);
}

/* a stop after the decision to sleep is not slept through. */
TEST(a_stop_between_decision_and_block_is_not_slept_through)
{
	struct lone l = { 0 };

	rig = &l;
	parked = unparked = 0;
	in_park = park_stop;
	lone_open(&l, 1, (struct hive_worker_options){ .on_park = on_park, .on_unpark = on_unpark });
	CHECK(!lone_beat(&l, 0));
	CHECK_EQ(lone_timeout(&l, 0), 0);
	lone_close(&l);
}

/* ---- who is woken ---- */

static void put_to_sleep(struct fake *f, int workers)
{
	fake_create(f, (struct hive_options){ .io_workers = workers });
	fake_start(f);
	fake_settle(f);
	fake_reset_wakes(f);
}

/* several sleepers, one batch: exactly one wake, and its time is recorded. */
TEST(one_batch_wakes_exactly_one_of_several_sleepers)
{
	struct fake f = { 0 };
	struct hive_task tasks[100];
	struct hive_stats s;
	int woken = 0;

	put_to_sleep(&f, 5);
	CHECK_OK(hive_stats_read(f.hive, &s));
	CHECK_EQ(s.sleeping, 5);
	for (int i = 0; i < 100; i++)
		tasks[i] = (struct hive_task){ count, NULL };
	f.now_ns += 77;
	ran = 0;
	CHECK_OK(hive_post_many(f.hive, tasks, 100));
	CHECK_EQ(f.wakes, 1);
	for (int i = 0; i < 5; i++) {
		woken += f.workers[i].wakes;
		CHECK_EQ(f.workers[i].last_wake_ns, f.workers[i].wakes ? f.now_ns : 0);
	}
	CHECK_EQ(woken, 1);
	CHECK_OK(hive_stats_read(f.hive, &s));
	CHECK_EQ(s.wakes, 1);
	CHECK_EQ(s.sleeping, 4);
	fake_settle(&f);
	CHECK_EQ(ran, 100);
	fake_destroy(&f);
}

/* whoever takes and leaves more wakes the next: the others follow one by one. */
TEST(the_woken_one_wakes_the_next_when_there_is_more)
{
	struct fake f = { 0 };
	struct hive_task tasks[64];
	struct fake_worker *first = NULL;

	put_to_sleep(&f, 4);
	for (int i = 0; i < 64; i++)
		tasks[i] = (struct hive_task){ count, NULL };
	CHECK_OK(hive_post_many(f.hive, tasks, 64));
	for (int i = 0; i < 4; i++)
		first = f.workers[i].wakes ? &f.workers[i] : first;
	CHECK_EQ(f.wakes, 1);
	fake_step(&f, first->id);
	CHECK_EQ(f.wakes, 2);
	CHECK_EQ(first->wakes, 1);
	fake_settle(&f);
	fake_destroy(&f);
}

/* while a woken worker has not yet looked, further posts wake nobody else. */
TEST(posts_wake_nobody_while_somebody_searches)
{
	struct fake f = { 0 };

	put_to_sleep(&f, 4);
	for (int i = 0; i < 50; i++)
		CHECK_OK(hive_post(f.hive, count, NULL));
	CHECK_EQ(f.wakes, 1);
	fake_settle(&f);
	fake_destroy(&f);
}

/* a directed post wakes its target, whoever else sleeps, and once however many there are. */
TEST(directed_posts_wake_their_target_and_only_once)
{
	struct fake f = { 0 };

	put_to_sleep(&f, 4);
	for (int i = 0; i < 50; i++)
		CHECK_OK(hive_post_to(f.hive, f.workers[2].id, count, NULL));
	CHECK_EQ(f.wakes, 1);
	CHECK_EQ(f.workers[2].wakes, 1);
	fake_settle(&f);
	fake_destroy(&f);
}

/* a wake without reason is harmless: the worker looks, finds nothing and sleeps again. */
TEST(a_wake_without_reason_is_harmless)
{
	struct fake f = { 0 };
	struct hive_stats s;

	put_to_sleep(&f, 3);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(fake_step(&f, f.workers[i % 3].id), HIVE_FOREVER);
	CHECK_EQ(f.wakes, 0);
	CHECK_OK(hive_stats_read(f.hive, &s));
	CHECK_EQ(s.sleeping, 3);
	CHECK_EQ(s.searching, 0);
	fake_destroy(&f);
}
