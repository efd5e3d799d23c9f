/* SPDX-License-Identifier: MIT */
/* The end of a hive: drain, now, deadline, drop hook, report (R-30 …; R-128). Real threads: ending.c. */
#include "support/fake.h"
#include "test.h"

static void *n(int number)
{
	return (void *)(intptr_t)number;
}

static int ran;

static void count(void *arg)
{
	(void)arg;
	ran++;
}

static struct fake *world;

static struct hive_report report_of(struct fake *f)
{
	struct hive_report report;

	CHECK_OK(hive_join(f->hive, HIVE_FOREVER));
	CHECK_OK(hive_report_read(f->hive, &report));
	return report;
}

static void plant_inside(void *arg)
{
	(void)arg;
	CHECK_OK(hive_post_local(fake_note, n(1)));
	CHECK_OK(hive_post_self(fake_note, n(2)));
	CHECK_OK(hive_post(world->hive, fake_note, n(3)));
	CHECK_OK(hive_post_self_after(0, fake_note, n(4), NULL));
	CHECK_OK(hive_post_self_after(HIVE_MS(1), fake_note, n(98), NULL));
}

/* One task in each queue there is: 1 to 9 can run, 98 and 99 are not due. */
static void fill_all_queues(struct fake *f, enum hive_order order)
{
	struct hive_worker_options one = { .private_budget = 1, .local_budget = 1, .timer_budget = 1, .order = order };

	world = f;
	fake_create(f, (struct hive_options){ .io_workers = 2, .io = &one, .compute_workers = 1 });
	fake_start(f);
	fake_log_clear();
	CHECK_OK(hive_post_after(f->hive, 0, fake_note, n(5), NULL));
	CHECK_OK(hive_post_after(f->hive, HIVE_MS(1), fake_note, n(99), NULL));
	CHECK_OK(hive_post_to(f->hive, f->workers[0].id, plant_inside, NULL));
	CHECK_OK(hive_post_to(f->hive, f->workers[0].id, fake_note, n(6)));
	CHECK_OK(hive_post_to(f->hive, f->workers[1].id, fake_note, n(7)));
	CHECK_OK(hive_post_compute(f->hive, fake_note, n(8)));
	CHECK_OK(hive_post(f->hive, fake_note, n(9)));
}

static bool logged(int number)
{
	char text[16], log[512];

	snprintf(text, sizeof text, " %d ", number);
	snprintf(log, sizeof log, " %s ", fake_log());
	return strstr(log, text) != NULL;
}

static bool dropped(const struct fake *f, int number)
{
	int times = 0;

	for (int i = 0; i < f->drops; i++)
		times += f->dropped[i].fn == fake_note && f->dropped[i].arg == n(number);
	CHECK(times <= 1);
	return times == 1;
}

/* draining runs what is queued, wherever it lies; delayed posts that were due count as queued, others do not. At any
 * number of beats before the stop, each task is run or dropped, never both, never neither.                               */
TEST(draining_runs_what_is_queued_and_drops_what_is_not_due)
{
	FOR_BOTH_ORDERS(order)
	{
		for (int beats = 1; beats < 12; beats++) {
			struct fake f = { 0 };
			struct hive_report report;

			fill_all_queues(&f, order);
			for (int i = 0; i < beats; i++)
				fake_step(&f, f.workers[i % 2].id);
			CHECK_OK(hive_stop(f.hive, HIVE_DRAIN, HIVE_FOREVER));
			report = report_of(&f);
			for (int i = 1; i <= 9; i++)
				CHECK(logged(i) && !dropped(&f, i));
			CHECK(dropped(&f, 98) && dropped(&f, 99) && !logged(98) && !logged(99));
			CHECK_EQ(report.posted, 12);
			CHECK_EQ(report.ran, 10);
			CHECK_EQ(report.dropped, 2);
			CHECK_EQ(report.dropped_timers, 2);
			CHECK(!report.deadline_missed);
			fake_destroy(&f);
		}
	}
}

/* now means now: what has not begun goes to the hook, each once. */
TEST(stopping_now_hands_exactly_the_rest_to_the_drop_hook)
{
	FOR_BOTH_ORDERS(order)
	{
		for (int beats = 0; beats < 12; beats++) {
			struct fake f = { 0 };
			struct hive_report report;
			uint64_t ran_before;

			fill_all_queues(&f, order);
			for (int i = 0; i < beats; i++)
				fake_step(&f, f.workers[i % 2].id);
			ran_before = load_relaxed(&hive__slot(&f.hive->io, 0)->stats.ran) +
			             load_relaxed(&hive__slot(&f.hive->io, 1)->stats.ran);
			CHECK_OK(hive_stop(f.hive, HIVE_NOW, HIVE_FOREVER));
			report = report_of(&f);
			CHECK_EQ(report.ran, ran_before);
			CHECK_EQ(report.dropped, report.posted - ran_before);
			CHECK_EQ(report.dropped, f.drops);
			for (int i = 1; i <= 9; i++)
				CHECK_EQ(logged(i), beats > 0 || i > 4 ? !dropped(&f, i) : false);
			CHECK(!logged(98) && !logged(99) && dropped(&f, 99));
			fake_destroy(&f);
		}
	}
}

static void stop_now_from_inside(void *hive)
{
	ran++;
	CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
	CHECK_ERR(hive_stop(hive, HIVE_NOW, HIVE_FOREVER), -EALREADY);
	CHECK_ERR(hive_stop(hive, HIVE_DRAIN, HIVE_NOWAIT), -EALREADY);
}

/* What a poster has done when it is interrupted halfway: the task lies in its lane, the takers have not been told. */
static void post_halfway(struct pool *pool, int number)
{
	struct hive_task task = { fake_note, n(number) };

	CHECK_OK(lane_give(&pool->lanes[1], &task, 1, true, pool->store));
	or_seq(&pool->used, 1u << 1);
}

/* such a task was accepted. Drained it runs, else it is dropped; it is never forgotten. */
TEST(a_post_interrupted_halfway_is_not_forgotten)
{
	for (int mode = 0; mode < 2; mode++) {
		struct fake f = { 0 };
		struct hive_report report;

		fake_create(&f, (struct hive_options){ .io_workers = 1, .compute_workers = 1 });
		fake_start(&f);
		fake_settle(&f);
		fake_log_clear();
		post_halfway(&f.hive->pool, 1);
		post_halfway(&f.hive->compute_pool.pools[HIVE_PRIORITY_NORMAL], 2);
		CHECK_OK(hive_stop(f.hive, mode ? HIVE_NOW : HIVE_DRAIN, HIVE_FOREVER));
		report = report_of(&f);
		CHECK_EQ(report.posted, 2);
		CHECK_EQ(report.ran, mode ? 0 : 2);
		CHECK_EQ(report.dropped, mode ? 2 : 0);
		fake_destroy(&f);
	}
}

/* from inside a task: this one is finished, the next one of the same step does not begin. */
TEST(a_task_that_stops_the_hive_now_is_the_last)
{
	for (int queue = 0; queue < 3; queue++) {
		struct fake f = { 0 };

		fake_create(&f, (struct hive_options){ .io_workers = 1 });
		fake_start(&f);
		ran = 0;
		for (int i = 0; i < 5; i++) {
			hive_fn *fn = i == 2 ? stop_now_from_inside : count;

			if (queue == 0)
				CHECK_OK(hive_post(f.hive, fn, f.hive));
			if (queue == 1)
				CHECK_OK(hive_post_to(f.hive, f.workers[0].id, fn, f.hive));
			if (queue == 2)
				CHECK_OK(hive_post_after(f.hive, 0, fn, f.hive, NULL));
		}
		CHECK_EQ(report_of(&f).ran, 3);
		CHECK_EQ(ran, 3);
		CHECK_EQ(f.drops, 2);
		fake_destroy(&f);
	}
}

/* stop wakes everybody, IO and compute; each loop ends with its next beat. */
TEST(stop_wakes_every_worker_and_each_leaves_with_its_beat)
{
	static const enum hive_stop_mode modes[] = { HIVE_DRAIN, HIVE_NOW };

	for (int m = 0; m < 2; m++) {
		struct fake f = { 0 };

		fake_create(&f, (struct hive_options){ .io_workers = 3, .compute_workers = 2 });
		fake_start(&f);
		fake_settle(&f);
		fake_reset_wakes(&f);
		CHECK_OK(hive_stop(f.hive, modes[m], HIVE_FOREVER));
		for (int i = 4; i >= 0; i--) { /* the main worker is the last to leave */
			CHECK(f.workers[i].wakes >= 1);
			CHECK_EQ(fake_step(&f, f.workers[i].id), -ESHUTDOWN);
		}
		fake_destroy(&f);
	}
}

/* at the deadline draining ends as if it had been "now"; the report says so. */
TEST(draining_ends_at_its_deadline)
{
	struct fake f = { 0 };
	struct hive_worker_options one = { .local_budget = 1, .pool_batch = 1 };
	struct hive_report report;

	fake_create(&f, (struct hive_options){ .io_workers = 1, .io = &one });
	fake_start(&f);
	for (int i = 0; i < 100; i++)
		CHECK_OK(hive_post(f.hive, count, NULL));
	ran = 0;
	CHECK_OK(hive_stop(f.hive, HIVE_DRAIN, f.now_ns + HIVE_MS(5)));
	for (int i = 0; i < 20; i++)
		fake_step(&f, f.workers[0].id);
	CHECK(ran >= 8 && ran < 30);
	f.now_ns += HIVE_MS(5);
	report = report_of(&f);
	CHECK_EQ(report.ran, ran);
	CHECK(ran < 32);
	CHECK_EQ(report.dropped, 100 - ran);
	CHECK(report.deadline_missed);
	CHECK_EQ(report.stop_ns, HIVE_MS(5));
	fake_destroy(&f);
}

/* a deadline that has passed already is no time at all. */
TEST(draining_without_time_drops_everything)
{
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	fake_start(&f);
	for (int i = 0; i < 10; i++)
		CHECK_OK(hive_post(f.hive, count, NULL));
	CHECK_OK(hive_stop(f.hive, HIVE_DRAIN, HIVE_NOWAIT));
	CHECK(report_of(&f).dropped > 0);
	fake_destroy(&f);
}

/* the second call may only hurry. */
TEST(a_second_stop_may_only_hurry)
{
	struct fake f = { 0 };
	struct hive_worker_options one = { .local_budget = 1, .pool_batch = 1 };
	int64_t now;

	fake_create(&f, (struct hive_options){ .io_workers = 1, .io = &one });
	fake_start(&f);
	for (int i = 0; i < 50; i++)
		CHECK_OK(hive_post(f.hive, count, NULL));
	now = f.now_ns;
	CHECK_OK(hive_stop(f.hive, HIVE_DRAIN, now + HIVE_S(10)));
	CHECK_ERR(hive_stop(f.hive, HIVE_DRAIN, now + HIVE_S(10)), -EALREADY);
	CHECK_ERR(hive_stop(f.hive, HIVE_DRAIN, now + HIVE_S(20)), -EALREADY);
	CHECK_ERR(hive_stop(f.hive, HIVE_DRAIN, HIVE_FOREVER), -EALREADY);
	CHECK_OK(hive_stop(f.hive, HIVE_DRAIN, now + HIVE_S(1)));
	ran = 0;
	for (int i = 0; i < 6; i++)
		fake_step(&f, f.workers[0].id);
	CHECK(ran >= 2);
	CHECK_OK(hive_stop(f.hive, HIVE_NOW, HIVE_FOREVER));
	CHECK_ERR(hive_stop(f.hive, HIVE_NOW, HIVE_NOWAIT), -EALREADY);
	CHECK_ERR(hive_stop(f.hive, HIVE_DRAIN, HIVE_NOWAIT), -EALREADY);
	CHECK_EQ(report_of(&f).ran, ran);
	CHECK(ran < 10);
	CHECK_ERR(hive_stop(f.hive, HIVE_NOW, HIVE_NOWAIT), -EALREADY);
	fake_destroy(&f);
}

/* the earlier deadline is the one that counts. */
TEST(an_earlier_deadline_replaces_the_first)
{
	struct fake f = { 0 };
	struct hive_worker_options one = { .local_budget = 1, .pool_batch = 1 };
	struct hive_report report;

	fake_create(&f, (struct hive_options){ .io_workers = 1, .io = &one });
	fake_start(&f);
	for (int i = 0; i < 50; i++)
		CHECK_OK(hive_post(f.hive, count, NULL));
	CHECK_OK(hive_stop(f.hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_stop(f.hive, HIVE_DRAIN, f.now_ns + HIVE_S(1)));
	fake_step(&f, f.workers[0].id);
	f.now_ns += HIVE_S(1);
	report = report_of(&f);
	CHECK(report.deadline_missed);
	CHECK(report.dropped > 40);
	fake_destroy(&f);
}

/* modes are said, never guessed. */
TEST(stop_without_a_mode_is_refused)
{
	struct fake f = { 0 };

	CHECK_ERR(hive_stop(NULL, HIVE_NOW, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_join(NULL, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_report_read(NULL, &(struct hive_report){ 0 }), -EINVAL);
	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	fake_start(&f);
	CHECK_ERR(hive_stop(f.hive, 0, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_stop(f.hive, 3, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_report_read(f.hive, NULL), -EINVAL);
	CHECK_OK(hive_post(f.hive, count, NULL)); /* nothing was stopped */
	fake_destroy(&f);
}

/* never started: nothing will run, everything goes to the hook, by stop or by destroy. */
TEST(a_hive_that_never_ran_drops_what_was_posted)
{
	for (int how = 0; how < 3; how++) {
		struct fake f = { 0 };
		struct hive_report report;
		uint32_t id;

		fake_create(&f, (struct hive_options){ .io_workers = 1, .compute_workers = 1 });
		CHECK_OK(hive_attach(f.hive, NULL, &id));
		CHECK_OK(hive_post(f.hive, fake_note, n(1)));
		CHECK_OK(hive_post_to(f.hive, id, fake_note, n(2)));
		CHECK_OK(hive_post_after(f.hive, 0, fake_note, n(3), NULL));
		CHECK_OK(hive_post_compute(f.hive, fake_note, n(4)));
		CHECK_OK(hive_post_compute_then(f.hive, fake_note, id, count, n(5)));
		if (how < 2) {
			CHECK_OK(hive_stop(f.hive, how == 0 ? HIVE_DRAIN : HIVE_NOW, HIVE_FOREVER));
			CHECK_ERR(hive_run(f.hive), -ESHUTDOWN);
			CHECK_ERR(hive_start(f.hive), -ESHUTDOWN);
			CHECK_ERR(hive_post(f.hive, count, NULL), -ESHUTDOWN);
			CHECK_OK(hive_report_read(f.hive, &report));
			CHECK_EQ(report.posted, 5);
			CHECK_EQ(report.dropped, 5);
			CHECK_EQ(report.refused, 1);
		}
		CHECK_OK(hive_destroy(f.hive));
		for (int i = 1; i <= 5; i++)
			CHECK(dropped(&f, i));
		CHECK_EQ(f.balance, 0);
	}
}

static int refused_inside;

static void try_all_doors(void *worker)
{
	struct hive *hive = world->hive;
	struct hive_task task = { count, NULL };
	uint32_t id = *(uint32_t *)worker;
	uint64_t post = 77;

	CHECK_ERR(hive_post(hive, count, NULL), -ESHUTDOWN);
	CHECK_ERR(hive_post_many(hive, &task, 1), -ESHUTDOWN);
	CHECK_ERR(hive_post_to(hive, id, count, NULL), -ESHUTDOWN);
	CHECK_ERR(hive_post_after(hive, 0, count, NULL, &post), -ESHUTDOWN);
	CHECK_ERR(hive_post_compute(hive, count, NULL), -ESHUTDOWN);
	CHECK_ERR(hive_post_compute_many(hive, &task, 1), -ESHUTDOWN);
	CHECK_ERR(hive_post_compute_then(hive, count, id, count, NULL), -ESHUTDOWN);
	CHECK_ERR(hive_post_kind(hive, HIVE_MICRO, 0, count, NULL), -ESHUTDOWN);
	CHECK_ERR(hive_attach(hive, NULL, NULL), -ESHUTDOWN);
	CHECK_EQ(post, 77);
	refused_inside += 8;
}

static void on_fire(struct hive_timer *timer)
{
	(void)timer;
}

static void on_ready(struct hive_source *source, uint32_t events)
{
	(void)source, (void)events;
}

static void try_own_doors(void *worker)
{
	struct hive_timer timer;
	struct hive_source source;

	try_all_doors(worker);
	hive_timer_init(&timer, on_fire, NULL);
	hive_source_init(&source, HIVE_SOURCE_USER, 0, HIVE_EVENT_IN, on_ready, NULL);
	CHECK_ERR(hive_post_local(count, NULL), -ESHUTDOWN);
	CHECK_ERR(hive_post_self(count, NULL), -ESHUTDOWN);
	CHECK_ERR(hive_post_self_after(0, count, NULL, NULL), -ESHUTDOWN);
	CHECK_ERR(hive_timer_start(&timer, 0, 0), -ESHUTDOWN);
	CHECK_ERR(hive_source_start(&source), -ESHUTDOWN);
	refused_inside += 3;
}

/* from the moment of the stop every door is closed, outside, inside a draining task, and after the end; each refusal
 * is counted.                                                                                                            */
TEST(every_door_is_closed_after_stop)
{
	struct fake f = { 0 };
	uint32_t id;

	world = &f;
	refused_inside = 0;
	fake_create(&f, (struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	fake_start(&f);
	id = f.workers[1].id;
	CHECK_OK(hive_post(f.hive, try_own_doors, &id));
	CHECK_OK(hive_post_compute(f.hive, try_all_doors, &id));
	CHECK_OK(hive_stop(f.hive, HIVE_DRAIN, HIVE_FOREVER));
	try_all_doors(&id);
	CHECK_EQ(report_of(&f).ran, 2);
	CHECK_EQ(refused_inside, 27);
	try_all_doors(&id);
	CHECK_EQ(report_of(&f).refused, refused_inside);
	fake_destroy(&f);
}

struct noise {
	struct fake_core_script script;
	struct hive_timer timer;
	struct hive_source source;
	int fired, events, stops;
};

static void noise_fires(struct hive_timer *timer)
{
	((struct noise *)timer->arg)->fired++;
}

static void noise_is_ready(struct hive_source *source, uint32_t events)
{
	(void)events;
	((struct noise *)source->arg)->events++;
}

static void make_noise(void *arg)
{
	struct noise *noise = arg;

	hive_timer_init(&noise->timer, noise_fires, noise);
	hive_source_init(&noise->source, HIVE_SOURCE_USER, 1, HIVE_EVENT_IN, noise_is_ready, noise);
	CHECK_OK(hive_timer_start(&noise->timer, 0, 1));
	CHECK_OK(hive_source_start(&noise->source));
}

static void no_more_posts(void *arg)
{
	((struct noise *)arg)->stops++;
	CHECK_ERR(hive_post_self(count, NULL), -ESHUTDOWN);
}

static void deliver(struct fake_core_script *script, int64_t timeout_ns)
{
	(void)timeout_ns;
	if (script->sources[0])
		hive_source_deliver(script->sources[0], HIVE_EVENT_IN);
}

/* timers and sources alone would never end: they fall silent at once, although draining goes on. */
TEST(timers_and_sources_are_silent_after_stop)
{
	struct fake f = { 0 };
	struct noise noise = { .script = { .in_turn = deliver } };
	struct hive_worker_options o = { .core_arg = &noise.script,
		                         .on_start = make_noise,
		                         .on_stop = no_more_posts,
		                         .hook_arg = &noise,
		                         .local_budget = 1,
		                         .pool_batch = 1 };

	fake_create(&f, (struct hive_options){ .io_workers = 1, .io = &o });
	fake_start(&f);
	for (int i = 0; i < 5; i++)
		fake_advance(&f, 1);
	CHECK(noise.fired >= 5 && noise.events >= 5);
	for (int i = 0; i < 10; i++)
		CHECK_OK(hive_post(f.hive, count, NULL));
	CHECK_OK(hive_stop(f.hive, HIVE_DRAIN, HIVE_FOREVER));
	noise.fired = noise.events = ran = 0;
	f.now_ns += 100;
	CHECK_EQ(report_of(&f).open_sources, 1);
	CHECK_EQ(ran, 10);
	CHECK_EQ(noise.fired, 0);
	CHECK_EQ(noise.events, 0);
	CHECK_EQ(noise.stops, 1);
	fake_destroy(&f);
}
