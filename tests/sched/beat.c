/* SPDX-License-Identifier: MIT */
/* The beat: which step comes when, what ends it early, and how long the first step may wait. */
#include "support/lone.h"

static struct lone *rig;
static struct hive_source event;

/* ---- the order of the steps ---- */

enum { EVENT = 1, PRIVATE = 2, TIMER = 4, LOCAL = 8, POOL = 16, ELSEWHERE = 32, EVERYTHING = 63 };

static void on_event(struct hive_source *source, uint32_t events)
{
	(void)source, (void)events;
	fake_note(number(1));
}

static void deliver_once(struct fake_core_script *script, int64_t timeout_ns)
{
	(void)timeout_ns;
	script->in_turn = NULL;
	hive_source_deliver(&event, HIVE_EVENT_IN);
}

/* Puts a task into each place that `places` names; the number of each is its step. */
static void plant(int places)
{
	lone_become(rig, 1);
	if (places & ELSEWHERE)
		CHECK_OK(hive_post_local(fake_note, number(6)));
	lone_become(rig, LONE_NOBODY);
	if (places & POOL)
		CHECK_OK(hive_post(rig->f.hive, fake_note, number(5)));
	lone_become(rig, 0);
	hive_source_init(&event, HIVE_SOURCE_FD, 0, HIVE_EVENT_IN, on_event, NULL);
	CHECK_OK(hive_source_start(&event));
	if (places & LOCAL)
		CHECK_OK(hive_post_local(fake_note, number(4)));
	if (places & TIMER)
		CHECK_OK(hive_post_self_after(0, fake_note, number(3), NULL));
	if (places & PRIVATE)
		CHECK_OK(hive_post_self(fake_note, number(2)));
	if (places & EVENT)
		rig->scripts[0].in_turn = deliver_once;
	lone_become(rig, LONE_NOBODY);
}

/* whatever is there, it runs in the order event, private, timer, local, pool, stolen. */
TEST(steps_run_in_order_in_all_combinations_of_non_empty_sources)
{
	for (int places = 0; places <= EVERYTHING; places++) {
		struct lone l = { 0 };
		char expected[32] = "";

		rig = &l;
		lone_open(&l, 2, (struct hive_worker_options){ 0 });
		plant(places);
		fake_log_clear();
		for (int i = 0; i < 8; i++)
			CHECK(lone_beat(&l, 0));
		for (int step = 0; step < 6; step++)
			if (places & 1 << step)
				snprintf(expected + strlen(expected), 8, "%s%d", *expected ? " " : "", step + 1);
		CHECK_STR(fake_log(), expected);
		lone_close(&l);
	}
}

/* a beat that ran local tasks leaves pool and victims alone, and the next turn does not block. */
TEST(a_beat_that_ran_local_tasks_visits_neither_pool_nor_victims)
{
	struct lone l = { 0 };

	rig = &l;
	lone_open(&l, 2, (struct hive_worker_options){ 0 });
	plant(LOCAL | POOL | ELSEWHERE);
	fake_log_clear();
	CHECK(lone_beat(&l, 0));
	CHECK_STR(fake_log(), "4");
	CHECK_EQ(pool_length(&l.f.hive->pool), 1);
	CHECK_EQ(local_size(&l.w[1]->local), 1);
	CHECK(lone_beat(&l, 0)); /* local is empty now: the pool's turn, and still not the victim's */
	CHECK_EQ(pool_length(&l.f.hive->pool), 0);
	CHECK_EQ(local_size(&l.w[1]->local), 1);
	lone_close(&l);
}

/* after a successful visit to the pool nobody is robbed, and the next turn has the time-out 0. */
TEST(a_beat_that_took_from_the_pool_does_not_steal_and_does_not_wait)
{
	struct lone l = { 0 };

	rig = &l;
	lone_open(&l, 2, (struct hive_worker_options){ 0 });
	plant(POOL | ELSEWHERE);
	fake_log_clear();
	CHECK(lone_beat(&l, 0));
	CHECK_STR(fake_log(), ""); /* taken into the local queue, so that the order of the beat holds */
	CHECK_EQ(local_size(&l.w[0]->local), 1);
	CHECK_EQ(local_size(&l.w[1]->local), 1);
	CHECK(lone_beat(&l, 0));
	CHECK_EQ(lone_timeout(&l, 0), 0);
	CHECK_STR(fake_log(), "5");
	lone_close(&l);
}

/* it steals only with local and pool empty, and waits only after stealing brought nothing. */
TEST(stealing_comes_after_the_pool_and_waiting_after_stealing)
{
	struct lone l = { 0 };

	rig = &l;
	lone_open(&l, 2, (struct hive_worker_options){ 0 });
	plant(ELSEWHERE);
	fake_log_clear();
	CHECK(lone_beat(&l, 0));
	CHECK_EQ(lone_timeout(&l, 0), 0);
	CHECK_STR(fake_log(), "6");
	CHECK(lone_beat(&l, 0));
	CHECK_EQ(lone_timeout(&l, 0), 0); /* it had stolen something; in this beat it finds nothing */
	CHECK(lone_beat(&l, 0));
	CHECK_EQ(lone_timeout(&l, 0), HIVE_FOREVER);
	lone_close(&l);
}

/* ---- the wait: one place, and its time-out ---- */

/* one beat makes one turn, always first, whether it waits or not. */
TEST(each_beat_turns_the_core_exactly_once)
{
	struct lone l = { 0 };

	rig = &l;
	lone_open(&l, 2, (struct hive_worker_options){ 0 });
	plant(EVERYTHING);
	for (int i = 1; i <= 10; i++) {
		CHECK(lone_beat(&l, 0));
		CHECK_EQ(l.scripts[0].turns, i);
	}
	CHECK_EQ(lone_timeout(&l, 0), HIVE_FOREVER);
	lone_close(&l);
}

/* nothing: without limit; a timer: until then; a timer that is due, or any work: 0. */
TEST(the_time_out_is_zero_with_work_the_time_to_the_next_timer_or_unlimited)
{
	struct lone l = { 0 };

	rig = &l;
	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	lone_beat(&l, 0);
	CHECK_EQ(lone_timeout(&l, 0), HIVE_FOREVER);
	lone_become(&l, 0);
	CHECK_OK(hive_post_self_after(HIVE_MS(5) + 1, fake_note, number(1), NULL));
	lone_beat(&l, 0);
	CHECK_EQ(lone_timeout(&l, 0), HIVE_MS(5) + 1);
	l.f.now_ns += HIVE_MS(5);
	lone_beat(&l, 0);
	CHECK_EQ(lone_timeout(&l, 0), 1);
	l.f.now_ns += 1;
	lone_beat(&l, 0);
	CHECK_EQ(lone_timeout(&l, 0), 0);

	CHECK_OK(hive_post_self(fake_note, number(1)));
	lone_beat(&l, 0);
	CHECK_EQ(lone_timeout(&l, 0), 0);
	CHECK_OK(hive_post_local(fake_note, number(1)));
	lone_beat(&l, 0);
	CHECK_EQ(lone_timeout(&l, 0), 0);
	lone_become(&l, LONE_NOBODY);
	CHECK_OK(hive_post_to(l.f.hive, l.ids[0], fake_note, number(1)));
	lone_beat(&l, 0);
	CHECK_EQ(lone_timeout(&l, 0), 0);
	CHECK_OK(hive_post_after(l.f.hive, HIVE_S(1), fake_note, number(1), NULL));
	lone_beat(&l, 0);
	CHECK_EQ(lone_timeout(&l, 0), 0); /* a letter is work until it was read */
	lone_beat(&l, 0);
	CHECK_EQ(lone_timeout(&l, 0), HIVE_S(1));
	CHECK_OK(hive_post(l.f.hive, fake_note, number(1)));
	lone_beat(&l, 0);
	CHECK_EQ(lone_timeout(&l, 0), 0);
	lone_close(&l);
}

/* ---- step 2 ---- */

/* others leave letters; only the owner, in step 2, touches queue and timers. */
TEST(letters_become_private_tasks_and_timers_in_step_2_and_not_before)
{
	struct lone l = { 0 };

	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	CHECK_OK(hive_post_to(l.f.hive, l.ids[0], fake_note, number(1)));
	CHECK_OK(hive_post_after(l.f.hive, HIVE_S(1), fake_note, number(2), NULL));
	CHECK(!l.w[0]->mail.first);
	CHECK_EQ(timers_count(&l.w[0]->timers), 0);
	CHECK(!inbox_is_empty(&l.w[0]->inbox));
	fake_log_clear();
	lone_beat(&l, 0);
	CHECK(inbox_is_empty(&l.w[0]->inbox));
	CHECK_EQ(timers_count(&l.w[0]->timers), 1);
	CHECK_STR(fake_log(), "1");
	lone_close(&l);
}

/* all letters that are there are taken at once, however many tasks of them the budget lets run. */
TEST(step_2_takes_all_letters_however_small_the_budget)
{
	struct lone l = { 0 };

	lone_open(&l, 1, (struct hive_worker_options){ .private_budget = 10 });
	for (int i = 0; i < 1000; i++)
		CHECK_OK(hive_post_to(l.f.hive, l.ids[0], fake_note, number(7)));
	fake_log_clear();
	lone_beat(&l, 0);
	CHECK(inbox_is_empty(&l.w[0]->inbox));
	CHECK_EQ(load_relaxed(&l.w[0]->stats.private_tasks), 990);
	CHECK_STR(fake_log(), "7 7 7 7 7 7 7 7 7 7");
	lone_close(&l);
}

/* tasks from letters and tasks that the worker posted to itself, in the order in which they arrived. */
TEST(step_2_runs_what_came_by_letter_and_what_the_worker_posted_to_itself)
{
	struct lone l = { 0 };

	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	lone_become(&l, 0);
	CHECK_OK(hive_post_self(fake_note, number(1)));
	CHECK_OK(hive_post_self(fake_note, number(2)));
	lone_become(&l, LONE_NOBODY);
	CHECK_OK(hive_post_to(l.f.hive, l.ids[0], fake_note, number(3)));
	CHECK_OK(hive_post_to(l.f.hive, l.ids[0], fake_note, number(4)));
	fake_log_clear();
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "1 2 3 4");
	lone_close(&l);
}

static int rounds;

static void post_self_again(void *arg)
{
	rounds++;
	CHECK_OK(hive_post_self(post_self_again, arg));
}

static void post_local_again(void *arg)
{
	rounds++;
	CHECK_OK(hive_post_local(post_local_again, arg));
}

static void start_again(struct hive_timer *timer)
{
	rounds++;
	CHECK_OK(hive_timer_start(timer, 0, 0));
}

static void count_event(struct hive_source *source, uint32_t events)
{
	(void)events;
	++*(int *)source->arg;
}

static void deliver_always(struct fake_core_script *script, int64_t timeout_ns)
{
	CHECK_EQ(timeout_ns, 0);
	hive_source_deliver(script->sources[0], HIVE_EVENT_IN);
}

/* private tasks, timers and local tasks that never end: every beat still begins with the events. */
TEST(endless_private_tasks_timers_and_local_tasks_do_not_keep_events_waiting)
{
	struct lone l = { 0 };
	struct hive_timer timer;
	struct hive_source source;
	int events = 0;

	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	lone_become(&l, 0);
	hive_source_init(&source, HIVE_SOURCE_FD, 0, HIVE_EVENT_IN, count_event, &events);
	CHECK_OK(hive_source_start(&source));
	l.scripts[0].in_turn = deliver_always;
	hive_timer_init(&timer, start_again, NULL);
	CHECK_OK(hive_timer_start(&timer, 0, 0));
	CHECK_OK(hive_post_self(post_self_again, NULL));
	CHECK_OK(hive_post_local(post_local_again, NULL));
	rounds = 0;
	for (int i = 1; i <= 100; i++) {
		lone_beat(&l, 0);
		CHECK_EQ(events, i);
		CHECK_EQ(rounds,
		         i * (TUNE_PRIVATE_BUDGET + TUNE_TIMER_BUDGET + tune_local_budget(TUNE_LOCAL_CAPACITY)));
	}
	lone_close(&l);
}

static void take_time(void *arg)
{
	rig->f.now_ns += (int64_t)(intptr_t)arg;
	rounds++;
}

/* long tasks end their step when its slice is over, so an event waits for a few tasks and not for a budget. */
TEST(a_step_ends_with_its_slice_when_tasks_are_long)
{
	struct lone l = { 0 };

	rig = &l;
	lone_open(&l, 1, (struct hive_worker_options){ .slice_ns = HIVE_MS(1) });
	lone_become(&l, 0);
	for (int i = 0; i < 60; i++)
		CHECK_OK(hive_post_self(take_time, number((int)HIVE_MS(2))));
	rounds = 0;
	lone_beat(&l, 0);
	CHECK_EQ(rounds, 1); /* a long task is noticed after the first */
	lone_beat(&l, 0);
	CHECK_EQ(rounds, 2);
	for (int i = 0; i < 58; i++)
		lone_beat(&l, 0);
	CHECK_EQ(rounds, 60);
	lone_close(&l);
}

/* ---- step 3 ---- */

/* the clock is read after step 2; what its tasks took makes timers due in the same beat. */
TEST(step_3_reads_the_clock_afresh)
{
	struct lone l = { 0 };

	rig = &l;
	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	lone_become(&l, 0);
	CHECK_OK(hive_post_self_after(HIVE_MS(3), fake_note, number(3), NULL));
	CHECK_OK(hive_post_self(take_time, number((int)HIVE_MS(3))));
	fake_log_clear();
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "3");
	lone_close(&l);
}

/* what becomes due while step 3 runs waits for the next beat. */
TEST(timers_that_become_due_during_step_3_wait_for_the_next_beat)
{
	struct lone l = { 0 };

	rig = &l;
	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	lone_become(&l, 0);
	CHECK_OK(hive_post_self_after(0, take_time, number((int)HIVE_US(100)), NULL));
	CHECK_OK(hive_post_self_after(HIVE_US(50), fake_note, number(3), NULL));
	fake_log_clear();
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "");
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "3");
	lone_close(&l);
}

/* ---- step 4 ---- */

/* at most N tasks, the newest first. */
TEST(step_4_runs_at_most_its_budget_and_the_newest_first)
{
	struct lone l = { 0 };

	lone_open(&l, 1, (struct hive_worker_options){ .local_budget = 3 });
	lone_become(&l, 0);
	for (int i = 1; i <= 5; i++)
		CHECK_OK(hive_post_local(fake_note, number(i)));
	fake_log_clear();
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "5 4 3");
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "5 4 3 2 1");
	lone_close(&l);
}

/* ---- step 5 ---- */

static void keep_busy(struct lone *l)
{
	lone_become(l, 0);
	CHECK_OK(hive_post_local(post_local_again, NULL));
	lone_become(l, LONE_NOBODY);
}

/* Beats until the pool has lost something. */
static int beats_until_probe(struct lone *l)
{
	uint64_t before = pool_length(&l->f.hive->pool);

	for (int i = 1; i < 1000; i++) {
		lone_beat(l, 0);
		if (pool_length(&l->f.hive->pool) < before)
			return i;
	}
	return -1;
}

/* of busy beats in a row the 47th looks at the pool; the count begins again each time. */
TEST(a_busy_worker_looks_at_the_pool_in_every_47th_beat)
{
	struct lone l = { 0 };

	lone_open_preset(&l, 1, (struct hive_worker_options){ .local_budget = 1 }, HIVE_PRESET_ROPHIVE);
	keep_busy(&l);
	for (int i = 0; i < 64; i++)
		CHECK_OK(hive_post(l.f.hive, fake_note, number(1)));
	CHECK_EQ(beats_until_probe(&l), 47);
	CHECK_EQ(pool_length(&l.f.hive->pool), 48);
	CHECK_EQ(beats_until_probe(&l), 47);
	CHECK_EQ(beats_until_probe(&l), 47);
	lone_close(&l);
}

/* a look at the pool that an empty local queue brought about restarts the count too. */
TEST(reaching_the_pool_in_any_way_restarts_the_count_of_busy_beats)
{
	struct lone l = { 0 };

	lone_open(&l, 1, (struct hive_worker_options){ .local_budget = 1, .pool_probe_interval = 10 });
	lone_become(&l, 0);
	for (int i = 0; i < 6; i++)
		CHECK_OK(hive_post_local(fake_note, number(1)));
	for (int i = 0; i < 7; i++)
		lone_beat(&l, 0); /* six busy ones, then one that finds nothing and reaches step 5 */
	keep_busy(&l);
	CHECK_OK(hive_post(l.f.hive, fake_note, number(1)));
	CHECK_EQ(beats_until_probe(&l), 10);
	lone_close(&l);
}

/* up to 16 tasks at once into the local queue; they run in the order of the pool. */
TEST(step_5_takes_up_to_16_tasks_in_the_order_of_the_pool)
{
	struct lone l = { 0 };

	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	for (int i = 1; i <= 20; i++)
		CHECK_OK(hive_post(l.f.hive, fake_note, number(i)));
	fake_log_clear();
	lone_beat(&l, 0);
	CHECK_EQ(local_size(&l.w[0]->local), 16);
	CHECK_EQ(pool_length(&l.f.hive->pool), 4);
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16");
	lone_beat(&l, 0);
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20");
	lone_close(&l);
}

/* what of a batch has no room in the local queue stays in the pool, and runs later. */
TEST(what_does_not_fit_into_the_local_queue_stays_in_the_pool)
{
	struct lone l = { 0 };

	lone_open(&l, 1,
	          (struct hive_worker_options){ .local_capacity = 4, .local_budget = 1, .pool_probe_interval = 2 });
	for (int i = 1; i <= 7; i++)
		CHECK_OK(hive_post(l.f.hive, fake_note, number(i)));
	fake_log_clear();
	lone_beat(&l, 0);
	CHECK_EQ(local_size(&l.w[0]->local), 4);
	CHECK_EQ(pool_length(&l.f.hive->pool), 3);
	lone_beat(&l, 0); /* busy */
	lone_beat(&l, 0); /* busy, and a probe: two have run, so there is room for two of the three */
	CHECK_EQ(local_size(&l.w[0]->local), 4);
	CHECK_EQ(pool_length(&l.f.hive->pool), 1);
	for (int i = 0; i < 12; i++)
		lone_beat(&l, 0);
	CHECK_STR(fake_log(), "1 2 5 6 7 3 4");
	lone_close(&l);
}

/* a full local queue overflows into the pool, and the pool comes before any theft. */
TEST(a_full_local_queue_overflows_into_the_pool_and_the_pool_goes_before_stealing)
{
	struct lone l = { 0 };

	lone_open(&l, 2, (struct hive_worker_options){ .local_capacity = 4 });
	lone_become(&l, 0);
	for (int i = 1; i <= 5; i++)
		CHECK_OK(hive_post_local(fake_note, number(i)));
	CHECK_EQ(local_size(&l.w[0]->local) + pool_length(&l.f.hive->pool), 5);
	CHECK_EQ(pool_length(&l.f.hive->pool), 2); /* the older half went, so the fifth found room */
	lone_beat(&l, 1);
	CHECK_EQ(pool_length(&l.f.hive->pool), 0);
	CHECK_EQ(local_size(&l.w[0]->local), 3);
	CHECK_EQ(load_relaxed(&l.w[1]->stats.stolen), 0);
	fake_log_clear();
	lone_beat(&l, 1);
	CHECK_STR(fake_log(), "1 2");
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "1 2 5 4 3");
	lone_close(&l);
}

/* ---- the end ---- */

/* asked to stop, the beat under way ends with its flush, and the loop with it. */
TEST(the_loop_ends_after_the_beat_in_which_stop_was_seen)
{
	struct lone l = { 0 };

	lone_open(&l, 2, (struct hive_worker_options){ 0 });
	CHECK(lone_beat(&l, 1));
	store_release(&l.w[1]->leave, 1u); /* as detach does */
	lone_become(&l, 1);
	CHECK_OK(hive_post(l.f.hive, fake_note, number(1)));
	CHECK(!lone_beat(&l, 1));
	CHECK_EQ(lone_timeout(&l, 1), 0);
	CHECK_EQ(pool_length(&l.f.hive->pool), 1);
	store_release(&l.w[1]->leave, 0u);
	lone_become(&l, LONE_NOBODY);
	CHECK_OK(hive_stop(l.f.hive, HIVE_NOW, HIVE_FOREVER));
	CHECK(!lone_beat(&l, 1));
	lone_close(&l);
}
