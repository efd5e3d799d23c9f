/* SPDX-License-Identifier: MIT */
/* The manners of a UI worker: how long a beat lasts, what it takes from the pool, whom the others ask first. */
#include "support/lone.h"

static struct lone l;
static int64_t task_ns; /* what each task takes */
static int done[4];     /* private, delayed, local, pool */

static void open_world(int count, struct hive_worker_options options, enum hive_preset preset)
{
	memset(&l, 0, sizeof l);
	lone_open_preset(&l, count, options, preset);
	l.f.now_ns = HIVE_S(1);
	memset(done, 0, sizeof done);
}

static void work(void *arg)
{
	done[(intptr_t)arg]++;
	l.f.now_ns += task_ns;
}

/* ---- what the option means ---- */

static const struct worker_setup *setup_with(struct fake *f, struct hive_worker_options o)
{
	uint32_t id;

	CHECK_OK(hive_attach(f->hive, &o, &id));
	return &hive__find_io(f->hive, id)->setup;
}

TEST(ui_is_a_set_of_parameters_whatever_the_preset)
{
	for (enum hive_preset preset = HIVE_PRESET_DEFAULT; preset <= HIVE_PRESET_VELOQ; preset++) {
		struct fake f = { 0 };
		const struct worker_setup *s;

		fake_create(&f, (struct hive_options){ .preset = preset });
		s = setup_with(&f, (struct hive_worker_options){ .ui = true });
		CHECK_EQ(s->frame_ns, HIVE_MS(4));
		CHECK_EQ(s->pool_batch, TUNE_UI_POOL_SHARE);
		CHECK_EQ(s->steal_attempts, HIVE_OFF);
		CHECK_EQ(s->io_interval, 1);
		CHECK(s->stealing && !s->pool_first && !s->last_now && !s->keeps_out);
		s = setup_with(&f, (struct hive_worker_options){ .ui = true,
		                                                 .frame_ns = HIVE_OFF,
		                                                 .pool_share = 5,
		                                                 .steal_attempts = 2,
		                                                 .io_interval = 3,
		                                                 .pool_batch = 200 });
		CHECK_EQ(s->frame_ns, HIVE_OFF);
		CHECK_EQ(s->pool_batch, 5);
		CHECK_EQ(s->steal_attempts, 2);
		CHECK_EQ(s->io_interval, 3);
		s = setup_with(&f, (struct hive_worker_options){ 0 });
		CHECK_EQ(s->frame_ns, HIVE_OFF);
		CHECK(!s->ui && !s->keeps_out);
		s = setup_with(&f, (struct hive_worker_options){ .pool_share = 3, .pool_batch = 2 });
		CHECK_EQ(s->pool_batch, 2);
		fake_destroy(&f);
	}
}

/* It asks for real-time priority by itself, but has no last word in how its thread is treated, and takes nobody's only CPU. */
TEST(a_ui_may_be_real_time_unless_anything_else_was_asked_for)
{
	static const struct hive_worker_options decline[] = {
		{ .ui = true, .realtime = HIVE_OFF },
		{ .ui = true, .batch = true },
		{ .ui = true, .nice = 3 },
		{ .ui = true, .nice = HIVE_OFF },
		{ .ui = true, .realtime = 7 }, /* which is no question but a demand */
		{ .ui = false },
		{ .realtime = HIVE_OFF },
	};
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ 0 });
	f.hive->cpus = 2;
	CHECK(setup_with(&f, (struct hive_worker_options){ .ui = true })->realtime_if_allowed);
	for (size_t i = 0; i < sizeof decline / sizeof *decline; i++) {
		const struct worker_setup *s = setup_with(&f, decline[i]);

		CHECK(!s->realtime_if_allowed);
		CHECK_EQ(s->realtime, decline[i].realtime == 7 ? 7 : 0);
	}
	f.hive->cpus = 1;
	CHECK(!setup_with(&f, (struct hive_worker_options){ .ui = true })->realtime_if_allowed);
	fake_destroy(&f);
}

/* ---- the frame: how long events wait ---- */

static int64_t last_turn_ns, longest_ns;

static void look_at_clock(struct fake_core_script *script, int64_t timeout_ns)
{
	(void)script, (void)timeout_ns;
	if (last_turn_ns != 0 && l.f.now_ns - last_turn_ns > longest_ns)
		longest_ns = l.f.now_ns - last_turn_ns;
	last_turn_ns = l.f.now_ns;
}

static void again_privately(void *arg)
{
	work(arg);
	CHECK_OK(hive_post_self(again_privately, arg));
}

static void again_later(void *arg)
{
	work(arg);
	CHECK_OK(hive_post_self_after(0, again_later, arg, NULL));
}

static void again_locally(void *arg)
{
	work(arg);
	CHECK_OK(hive_post_local(again_locally, arg));
}

static void again_by_the_pool(void *arg)
{
	work(arg);
	CHECK_OK(hive_post(l.f.hive, again_by_the_pool, arg));
}

static void flood(void)
{
	lone_become(&l, 0);
	for (int i = 0; i < 100; i++) {
		CHECK_OK(hive_post_self(again_privately, number(0)));
		CHECK_OK(hive_post_self_after(0, again_later, number(1), NULL));
		CHECK_OK(hive_post_local(again_locally, number(2)));
		CHECK_OK(hive_post(l.f.hive, again_by_the_pool, number(3)));
	}
	lone_become(&l, LONE_NOBODY);
	last_turn_ns = longest_ns = 0;
	l.scripts[0].in_turn = look_at_clock;
}

/* Tasks of all sorts, more than can ever be run: events wait for one frame and one task at most, however long these are; and no sort starves. */
static void check_flood(int64_t each_ns, struct hive_worker_options options, enum hive_preset preset)
{
	struct hive_worker_stats stats;

	task_ns = each_ns;
	open_world(1, options, preset);
	flood();
	for (int i = 0; i < 3000; i++)
		CHECK(lone_beat(&l, 0));
	CHECK(longest_ns <= HIVE_MS(4) + each_ns);
	for (int i = 0; i < 4; i++)
		CHECK(done[i] > 0);
	CHECK_OK(hive_worker_stats_read(l.f.hive, l.ids[0], &stats));
	CHECK_EQ(stats.frames_cut > 0, each_ns > HIVE_MS(1));
	lone_close(&l);
}

TEST(under_any_flood_events_wait_for_a_frame_and_a_task_at_most)
{
	static const int64_t each_ns[] = { 100,           HIVE_US(1), HIVE_US(40), HIVE_US(700),
		                           HIVE_US(1700), HIVE_MS(5), HIVE_MS(50) };

	for (enum hive_preset preset = HIVE_PRESET_DEFAULT; preset <= HIVE_PRESET_VELOQ; preset++)
		for (size_t i = 0; i < sizeof each_ns / sizeof *each_ns; i++)
			check_flood(each_ns[i], (struct hive_worker_options){ .ui = true }, preset);
}

/* Tiny tasks, whose time is looked at seldom elsewhere, and which turn out to be long. */
static int turn_long_after;

static void tiny_then_long(void *arg)
{
	(void)arg;
	l.f.now_ns += turn_long_after-- > 0 ? 10 : HIVE_MS(3);
	CHECK_OK(hive_post_self(tiny_then_long, NULL));
}

TEST(tasks_that_turn_long_are_noticed_at_once)
{
	for (int after = 0; after < 40; after++) {
		open_world(1, (struct hive_worker_options){ .ui = true }, HIVE_PRESET_DEFAULT);
		turn_long_after = after;
		lone_become(&l, 0);
		for (int i = 0; i < 100; i++)
			CHECK_OK(hive_post_self(tiny_then_long, NULL));
		lone_become(&l, LONE_NOBODY);
		last_turn_ns = longest_ns = 0;
		l.scripts[0].in_turn = look_at_clock;
		for (int i = 0; i < 4; i++)
			CHECK(lone_beat(&l, 0));
		CHECK(longest_ns <= HIVE_MS(4) + HIVE_MS(3));
		lone_close(&l);
	}
}

/* Without a flood the order of a beat is that of all workers. */
TEST(the_order_of_the_steps_stays)
{
	open_world(1, (struct hive_worker_options){ .ui = true }, HIVE_PRESET_DEFAULT);
	fake_log_clear();
	lone_become(&l, 0);
	CHECK_OK(hive_post(l.f.hive, fake_note, number(4)));
	hive__flush_outbox(l.w[0]);
	CHECK_OK(hive_post_local(fake_note, number(3)));
	CHECK_OK(hive_post_self_after(0, fake_note, number(2), NULL));
	CHECK_OK(hive_post_self(fake_note, number(1)));
	lone_become(&l, LONE_NOBODY);
	for (int i = 0; i < 4; i++)
		CHECK(lone_beat(&l, 0));
	CHECK_STR(fake_log(), "1 2 3 4");
	lone_close(&l);
}

static void fork_nothing(void *arg)
{
	work(arg);
}

static void open_group(void *arg)
{
	struct hive_group *group = arg;

	hive_group_init(group, l.f.hive, HIVE_MICRO);
	for (int i = 0; i < 50; i++)
		hive_group_run(group, fork_nothing, number(2));
	CHECK_OK(hive_group_then(group, fake_note, number(7)));
}

/* Forks count as well. */
TEST(forks_end_with_the_frame_too)
{
	struct hive_group group;

	task_ns = HIVE_MS(3);
	open_world(1, (struct hive_worker_options){ .ui = true }, HIVE_PRESET_DEFAULT);
	fake_log_clear();
	last_turn_ns = longest_ns = 0;
	l.scripts[0].in_turn = look_at_clock;
	CHECK_OK(hive_post_to(l.f.hive, l.ids[0], open_group, &group));
	for (int i = 0; i < 200 && strcmp(fake_log(), "7") != 0; i++)
		CHECK(lone_beat(&l, 0));
	CHECK_STR(fake_log(), "7");
	CHECK_EQ(done[2], 50);
	CHECK(longest_ns <= HIVE_MS(4) + HIVE_MS(3));
	lone_close(&l);
}

/* ---- the pool ---- */

static void post_many(int n)
{
	for (int i = 0; i < n; i++)
		CHECK_OK(hive_post(l.f.hive, work, number(3)));
}

TEST(a_beat_takes_its_share_and_no_more)
{
	static const int32_t shares[] = { 1, 3, 200 };

	for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
		int64_t before;

		task_ns = 0;
		open_world(1, (struct hive_worker_options){ .pool_share = shares[i], .pool_batch = 256 },
		           HIVE_PRESET_DEFAULT);
		post_many(256);
		CHECK(lone_beat(&l, 0));
		before = (int64_t)pool_length(&l.f.hive->pool);
		CHECK_EQ(before, 256 - shares[i]);
		for (int beats = 0; beats < 1000; beats++)
			CHECK(lone_beat(&l, 0));
		CHECK_EQ(done[3], 256);
		lone_close(&l);
	}
}

static bool is_asleep(int i)
{
	return l.w[i]->announced;
}

/* All workers of the fake world sleep after their steps; there the wakes are counted. */
static uint32_t attach_one(struct fake *f, struct hive_worker_options options)
{
	uint32_t id;

	CHECK_OK(hive_attach(f->hive, &options, &id));
	return id;
}

TEST(others_are_woken_before_a_ui_worker)
{
	struct fake f = { 0 };
	uint32_t ui, other;

	fake_create(&f, (struct hive_options){ 0 });
	ui = attach_one(&f, (struct hive_worker_options){ .ui = true });
	other = attach_one(&f, (struct hive_worker_options){ 0 });
	fake_start(&f);
	fake_settle(&f);
	fake_reset_wakes(&f);
	fake_log_clear();
	CHECK_OK(hive_post(f.hive, fake_note, number(1)));
	CHECK_EQ(fake_worker(&f, ui)->wakes, 0);
	CHECK_EQ(fake_worker(&f, other)->wakes, 1);
	fake_settle(&f);
	CHECK_STR(fake_log(), "1");
	/* What is sent to it wakes it, of course. */
	CHECK_OK(hive_post_to(f.hive, ui, fake_note, number(2)));
	CHECK_EQ(fake_worker(&f, ui)->wakes, 1);
	fake_settle(&f);
	CHECK_STR(fake_log(), "1 2");
	fake_destroy(&f);
}

/* HIVE_OFF: it is not even claimed, though it is the only one that sleeps; and it counts as nobody who searches. */
TEST(who_keeps_out_of_the_pool_leaves_it_to_others)
{
	struct fake f = { 0 };
	struct hive_stats stats;
	uint32_t out, other;

	fake_create(&f, (struct hive_options){ 0 });
	out = attach_one(&f, (struct hive_worker_options){ .pool_share = HIVE_OFF });
	other = attach_one(&f, (struct hive_worker_options){ 0 });
	fake_start(&f);
	fake_settle(&f);
	CHECK_OK(hive_stats_read(f.hive, &stats));
	CHECK_EQ(stats.sleeping, 2);
	fake_reset_wakes(&f);
	fake_log_clear();
	CHECK_OK(hive_post_to(f.hive, out, fake_note, number(1)));
	CHECK_EQ(fake_worker(&f, out)->wakes, 1);
	CHECK_OK(hive_post(f.hive, fake_note, number(2))); /* it was claimed, and others are woken all the same */
	CHECK_EQ(fake_worker(&f, other)->wakes, 1);
	CHECK_OK(hive_post(f.hive, fake_note, number(2))); /* now somebody searches */
	CHECK_EQ(f.wakes, 2);
	for (int i = 0; i < 5; i++)
		fake_step(&f, out);
	CHECK_STR(fake_log(), "1");
	CHECK_EQ(fake_step(&f, out), HIVE_FOREVER); /* it sleeps, and does not wait awake for what it does not take */
	fake_settle(&f);
	CHECK_STR(fake_log(), "1 2 2");
	fake_destroy(&f);
}

/* ... but when there are no others, it has it all, also when they go later. */
TEST(who_keeps_out_takes_over_when_nobody_else_is_left)
{
	struct fake f = { 0 };
	uint32_t out, other;

	fake_create(&f, (struct hive_options){ 0 });
	out = attach_one(&f, (struct hive_worker_options){ .pool_share = HIVE_OFF });
	other = attach_one(&f, (struct hive_worker_options){ 0 });
	fake_start(&f);
	fake_settle(&f);
	fake_log_clear();
	CHECK_OK(hive_detach(f.hive, other, HIVE_NOWAIT) == -EINPROGRESS ? 0 : -1);
	CHECK_OK(hive_post(f.hive, fake_note, number(1)));
	CHECK_EQ(fake_step(&f, other), -ESHUTDOWN);
	CHECK(fake_worker(&f, out)->wakes > 0);
	for (int i = 0; i < 5; i++)
		fake_step(&f, out);
	CHECK_STR(fake_log(), "1");
	fake_reset_wakes(&f);
	CHECK_OK(hive_post(f.hive, fake_note, number(2)));
	CHECK_EQ(fake_worker(&f, out)->wakes, 1);
	fake_settle(&f);
	CHECK_STR(fake_log(), "1 2");
	fake_destroy(&f);
}

/* A drain is everybody's business. */
TEST(who_keeps_out_helps_to_drain)
{
	struct fake f = { 0 };
	uint32_t out;

	fake_create(&f, (struct hive_options){ 0 });
	out = attach_one(&f, (struct hive_worker_options){ .pool_share = HIVE_OFF });
	attach_one(&f, (struct hive_worker_options){ 0 });
	fake_start(&f);
	fake_settle(&f);
	fake_log_clear();
	CHECK_OK(hive_post(f.hive, fake_note, number(1)));
	CHECK_OK(hive_stop(f.hive, HIVE_DRAIN, HIVE_FOREVER));
	for (int i = 0; i < 5; i++)
		fake_step(&f, out);
	CHECK_STR(fake_log(), "1");
	fake_destroy(&f);
}

/* Nothing is placed there by load. */
TEST(nothing_is_placed_at_a_ui_worker)
{
	struct fake f = { 0 };
	uint32_t ui;

	fake_create(&f, (struct hive_options){ .placement = HIVE_PLACE_TWO_CHOICES });
	ui = attach_one(&f, (struct hive_worker_options){ .ui = true });
	fake_start(&f);
	fake_step(&f, ui); /* awake, with something to do */
	CHECK_OK(hive_post_to(f.hive, ui, fake_note, number(1)));
	for (int i = 0; i < 10; i++)
		CHECK_OK(hive_post(f.hive, fake_note, number(2)));
	CHECK_EQ(tray_length(&hive__find_io(f.hive, ui)->placed), 0);
	fake_settle(&f);
	fake_destroy(&f);
}

/* It does not steal; others may steal from it. */
TEST(a_ui_worker_does_not_steal_and_may_be_robbed)
{
	task_ns = 0;
	open_world(2, (struct hive_worker_options){ .ui = true }, HIVE_PRESET_DEFAULT);
	l.w[1]->setup.steal_attempts = 4; /* an ordinary one */
	lone_become(&l, 1);
	for (int i = 0; i < 5; i++)
		CHECK_OK(hive_post_local(work, number(2)));
	lone_become(&l, LONE_NOBODY);
	CHECK(lone_beat(&l, 0));
	CHECK_EQ(done[2], 0);
	CHECK(is_asleep(0) || l.scripts[0].turns > 0);
	while (local_size(&l.w[1]->local) > 0)
		lone_beat(&l, 1);
	CHECK_EQ(done[2], 5);
	lone_become(&l, 0);
	for (int i = 0; i < 5; i++)
		CHECK_OK(hive_post_local(work, number(2)));
	lone_become(&l, LONE_NOBODY);
	fake_push_random(&l.f, fake_random(0, 2));
	lone_beat(&l, 1);
	CHECK(load_relaxed(&l.w[1]->stats.stolen) > 0);
	while (local_size(&l.w[0]->local) + local_size(&l.w[1]->local) > 0) {
		lone_beat(&l, 0);
		lone_beat(&l, 1);
	}
	lone_close(&l);
}
