/* SPDX-License-Identifier: MIT */
/* Placement by load: two are drawn, the lighter one gets it; others may have it from there. */
#include "support/lone.h"
#include "support/real.h"

static struct lone l;

static void open_world(int count, struct hive_worker_options options)
{
	memset(&l, 0, sizeof l);
	lone_open(&l, count, options);
	fake_log_clear();
}

static void give_local(int worker, int n)
{
	lone_become(&l, worker);
	for (int i = 0; i < n; i++)
		CHECK_OK(hive_post_local(fake_note, number(100 * worker + i)));
	lone_become(&l, LONE_NOBODY);
}

/* The next placement draws a, then b, out of count. */
static void let_draw(uint32_t a, uint32_t b, uint32_t count)
{
	fake_push_random(&l.f, fake_random(a, count));
	fake_push_random(&l.f, fake_random(b > a ? b - 1 : b, count - 1));
}

static uint64_t placed_at(int worker)
{
	return tray_length(&l.w[worker]->placed);
}

/* V-2, V-4, V-5: of two different ones, whatever the draw, the one with less to do. */
TEST(the_lighter_of_two_different_workers_gets_it)
{
	for (uint32_t a = 0; a < 3; a++)
		for (uint32_t b = 0; b < 3; b++) {
			int lighter = (int)(a < b ? a : b); /* worker i has i tasks */

			if (a == b)
				continue;
			open_world(3, (struct hive_worker_options){ 0 });
			for (int i = 0; i < 3; i++)
				give_local(i, i);
			let_draw(a, b, 3);
			CHECK_OK(hive_post_placed(l.f.hive, fake_note, number(7)));
			for (int i = 0; i < 3; i++)
				CHECK_EQ(placed_at(i), i == lighter);
			for (int i = 0; i < 3; i++)
				while (placed_at(i) + local_size(&l.w[i]->local) > 0)
					lone_beat(&l, i);
			lone_close(&l);
		}
}

/* V-6: what was sent there and not yet taken counts as load. */
TEST(what_is_on_its_way_counts)
{
	open_world(2, (struct hive_worker_options){ 0 });
	for (int i = 0; i < 6; i++) {
		let_draw(0, 1, 2);
		CHECK_OK(hive_post_placed(l.f.hive, fake_note, number(i)));
	}
	CHECK_EQ(placed_at(0), 3);
	CHECK_EQ(placed_at(1), 3);
	for (int i = 0; i < 2; i++)
		while (placed_at(i) + local_size(&l.w[i]->local) > 0)
			lone_beat(&l, i);
	lone_close(&l);
}

/* V-4: one worker is chosen directly, none is the pool's business. */
TEST(one_worker_gets_all_and_without_one_the_pool_keeps_them)
{
	struct fake f = { 0 };

	open_world(1, (struct hive_worker_options){ 0 });
	CHECK_OK(hive_post_placed(l.f.hive, fake_note, number(1)));
	CHECK_EQ(placed_at(0), 1);
	lone_beat(&l, 0);
	CHECK_EQ(atoi(fake_log()), 1);
	lone_close(&l);

	fake_create(&f, (struct hive_options){ .placement = HIVE_PLACE_TWO_CHOICES });
	CHECK_OK(hive_post_placed(f.hive, fake_note, number(1)));
	CHECK_OK(hive_post(f.hive, fake_note, number(2)));
	CHECK_EQ(pool_length(&f.hive->pool), 2);
	fake_destroy(&f);
}

/* V-1, V-7: stealing is what remains; from the first moment on, also from one who never gets round to looking. */
TEST(others_steal_what_was_placed)
{
	open_world(2, (struct hive_worker_options){ 0 });
	for (int i = 0; i < 5; i++) {
		give_local(1, 1); /* so that the other one is lighter */
		let_draw(0, 1, 2);
		CHECK_OK(hive_post_placed(l.f.hive, fake_note, number(i)));
	}
	CHECK_EQ(placed_at(0), 5);
	for (int i = 0; i < 40 && placed_at(0) > 0; i++)
		lone_beat(&l, 1); /* worker 0 never has a beat */
	CHECK_EQ(placed_at(0), 0);
	CHECK(load_relaxed(&l.w[1]->stats.stolen) >= 5);
	while (local_size(&l.w[1]->local) > 0)
		lone_beat(&l, 1);
	lone_close(&l);
}

#if !defined(HIVE_LOCKED_QUEUES)
/* A ring from which a thief copies is empty, and has no room. */
TEST(who_is_being_robbed_runs_what_is_placed_all_the_same)
{
	uint32_t from;

	open_world(1, (struct hive_worker_options){ .order = HIVE_ORDER_OLDEST, .local_capacity = 4 });
	lone_become(&l, 0);
	for (int i = 0; i < 5; i++)
		CHECK_OK(hive_post_local(fake_note, number(i)));
	CHECK_EQ(runq_claim(&l.w[0]->local.ring, 4, &from), 2);
	for (int i = 0; i < 3; i++)
		lone_beat(&l, 0);
	CHECK_EQ(local_size(&l.w[0]->local) + runq_room(&l.w[0]->local.ring), 0);
	CHECK_OK(hive_post_placed(l.f.hive, fake_note, number(50)));
	CHECK_EQ(placed_at(0), 1);
	fake_log_clear();
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "50");
	runq_finish(&l.w[0]->local.ring);
	lone_become(&l, 0);
	for (int i = 0; i < 2; i++) /* as if the thief had brought them back */
		CHECK_OK(hive_post_local(fake_note, number(i)));
	store_relaxed(&l.w[0]->stats.posted, load_relaxed(&l.w[0]->stats.posted) - 2);
	while (local_size(&l.w[0]->local) > 0)
		lone_beat(&l, 0);
	lone_close(&l);
}
#endif

/* Where nobody may steal nothing is placed: it would wait for one worker only. */
TEST(nothing_is_placed_where_nobody_may_steal)
{
	open_world(2, (struct hive_worker_options){ .no_steal = true });
	CHECK_OK(hive_post_placed(l.f.hive, fake_note, number(1)));
	CHECK_EQ(placed_at(0) + placed_at(1), 0);
	CHECK_EQ(pool_length(&l.f.hive->pool), 1);
	lone_beat(&l, 0);
	lone_beat(&l, 0);
	lone_close(&l);
}

/* A tray is bounded, and the pool is not. */
TEST(what_finds_no_room_goes_to_the_pool)
{
	open_world(1, (struct hive_worker_options){ 0 });
	for (int i = 0; i < TUNE_TRAY + 10; i++)
		CHECK_OK(hive_post_placed(l.f.hive, fake_note, number(i % 1000)));
	CHECK_EQ(placed_at(0), TUNE_TRAY);
	CHECK_EQ(pool_length(&l.f.hive->pool), 10);
	while (placed_at(0) + local_size(&l.w[0]->local) + pool_length(&l.f.hive->pool) > 0)
		lone_beat(&l, 0);
	lone_close(&l);
}

/* V-15: a sleeper is woken, and he alone; if the one who gets it is awake, somebody idle is. */
TEST(who_gets_it_is_woken_or_somebody_idle)
{
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 2 });
	fake_start(&f);
	fake_settle(&f);
	fake_reset_wakes(&f);
	CHECK_OK(hive_post_placed(f.hive, fake_note, number(1)));
	CHECK_EQ(f.wakes, 1);
	fake_settle(&f);
	fake_destroy(&f);
}

/* Per hive, for posts and spawns, from outside and from inside. */
static void post_from_inside(void *arg)
{
	CHECK_OK(hive_post(arg, fake_note, number(1)));
	CHECK_EQ(hive__current()->outbox_count, 1); /* until the end of the beat, as with the pool */
}

TEST(the_placement_of_a_hive_holds_for_its_posts)
{
	struct hive_task two[2] = { { fake_note, number(8) }, { fake_note, number(9) } };
	struct fake f = { 0 };
	struct hive_stats stats;

	for (int preset = 0; preset < 2; preset++) {
		fake_create(&f,
		            (struct hive_options){ .io_workers = 2,
		                                   .placement = preset ? HIVE_PLACE_DEFAULT : HIVE_PLACE_TWO_CHOICES,
		                                   .preset = preset ? HIVE_PRESET_VELOQ : HIVE_PRESET_DEFAULT });
		fake_start(&f);
		CHECK_OK(hive_post(f.hive, fake_note, number(1)));
		CHECK_OK(hive_post_many(f.hive, two, 2)); /* one splice: that is the pool's business */
		CHECK_OK(hive_stats_read(f.hive, &stats));
		CHECK_EQ(stats.placed, 1);
		CHECK_EQ(stats.pool, 2);
		CHECK_OK(hive_post_to(f.hive, HIVE_WORKER_MAIN, post_from_inside, f.hive));
		fake_settle(&f);
		CHECK_OK(hive_stats_read(f.hive, &stats));
		CHECK_EQ(stats.ran, 5);
		CHECK_EQ(stats.placed, 0);
		fake_destroy(&f);
	}
	fake_create(&f, (struct hive_options){
				.io_workers = 1, .placement = HIVE_PLACE_POOL, .preset = HIVE_PRESET_VELOQ });
	CHECK(!f.hive->two_choices);
	fake_destroy(&f);
}

static uint32_t main_of(const struct fake *f)
{
	uint32_t id;

	CHECK(hive_workers(f->hive, &id, 1) >= 1);
	return id;
}

static void post_a_burst(void *arg)
{
	for (int i = 0; i < 20; i++)
		CHECK_OK(hive_post(arg, fake_note, number(i)));
}

/* Posts of one beat are placed at its end. */
TEST(a_burst_from_inside_is_placed_among_those_that_are_awake)
{
	struct hive_stats stats;

	open_world(4, (struct hive_worker_options){ .steal_attempts = HIVE_OFF });
	l.f.hive->two_choices = true;
	CHECK_OK(hive_post_to(l.f.hive, l.ids[0], post_a_burst, l.f.hive));
	for (uint32_t i = 0; i < 20; i++)
		let_draw(i % 4, (i + 1) % 4, 4);
	lone_beat(&l, 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(placed_at(i), 5);
	CHECK_OK(hive_stats_read(l.f.hive, &stats));
	CHECK_EQ(stats.posted, 21);
	CHECK_EQ(stats.pool, 0);
	for (int i = 0; i < 4; i++)
		while (placed_at(i) + local_size(&l.w[i]->local) > 0)
			lone_beat(&l, i);
	lone_close(&l);
}

/* Who is asleep is not sent anything: it is for whoever is idle, one is woken at most, and wakes the next. */
TEST(what_would_go_to_a_sleeper_goes_to_the_pool)
{
	struct fake f = { 0 };
	struct hive_stats stats;

	fake_create(&f, (struct hive_options){ .io_workers = 4, .placement = HIVE_PLACE_TWO_CHOICES });
	fake_start(&f);
	fake_settle(&f);
	fake_reset_wakes(&f);
	CHECK_OK(hive_post(f.hive, fake_note, number(1)));
	CHECK_EQ(f.wakes, 1); /* that of 0, whose turn it is to be awake */
	for (uint32_t i = 0; i < 9; i++) {
		fake_push_random(&f, fake_random(1 + i % 3, 4));
		fake_push_random(&f, fake_random(1 + (i + 1) % 3 - ((i + 1) % 3 > i % 3), 3));
		CHECK_OK(hive_post_placed(f.hive, fake_note, number(2)));
	}
	CHECK_EQ(f.wakes, 1);
	CHECK_OK(hive_stats_read(f.hive, &stats));
	CHECK_EQ(stats.placed, 0);
	CHECK_EQ(stats.pool, 10);
	CHECK_OK(hive_post_to(f.hive, main_of(&f), post_a_burst, f.hive));
	fake_settle(&f);
	CHECK_OK(hive_stats_read(f.hive, &stats));
	CHECK_EQ(stats.ran, 31);
	fake_destroy(&f);
}

/* What finds no room there goes to the pool, and counts once. */
static void post_too_much(void *arg)
{
	for (int i = 0; i < 3 * TUNE_TRAY; i++)
		CHECK_OK(hive_post(arg, fake_note, number(i % 1000)));
}

TEST(a_burst_from_inside_that_finds_no_room_goes_to_the_pool)
{
	struct fake f = { 0 };
	struct hive_stats stats;

	fake_create(&f, (struct hive_options){ .io_workers = 1, .placement = HIVE_PLACE_TWO_CHOICES });
	fake_start(&f);
	CHECK_OK(hive_post_to(f.hive, HIVE_WORKER_MAIN, post_too_much, f.hive));
	fake_step(&f, main_of(&f));
	CHECK_OK(hive_stats_read(f.hive, &stats));
	CHECK_EQ(stats.posted, 3 * TUNE_TRAY + 1);
	CHECK_EQ(stats.ran + stats.placed + stats.pool, 3 * TUNE_TRAY + 1);
	CHECK(stats.pool >= TUNE_TRAY);
	fake_settle(&f);
	fake_destroy(&f); /* and checks the books */
}

/* ---- with threads: nothing is lost, whoever comes and goes ---- */

enum { POSTS = 20000 };
static ATOMIC(uint32_t) ran;

static void count(void *arg)
{
	(void)arg;
	add_relaxed(&ran, 1u);
}

static int count_in_fiber(void *arg)
{
	count(arg);
	return 0;
}

TEST(nothing_is_lost_while_workers_come_and_go)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 2, .placement = HIVE_PLACE_TWO_CHOICES });
	uint32_t extra = 0;

	store_relaxed(&ran, 0u);
	for (int i = 0; i < POSTS; i++) {
		if (i % 500 == 0)
			CHECK_OK(hive_attach(hive, NULL, &extra));
		if (i % 500 == 250)
			CHECK_OK(hive_detach(hive, extra, HIVE_FOREVER));
		if (i % 2)
			CHECK_OK(hive_post(hive, count, NULL));
		else
			CHECK_OK(hive_spawn(hive, count_in_fiber, NULL, NULL, NULL));
	}
	real_end(hive, HIVE_DRAIN);
	CHECK_EQ(load_relaxed(&ran), POSTS);
}

/* Posts that race with a stop: each is refused, or has run, or was dropped. */
static ATOMIC(uint32_t) dropped;

static void on_drop(void *hook_arg, const struct hive_task *task)
{
	(void)hook_arg;
	if (task->fn == count)
		add_relaxed(&dropped, 1u);
}

TEST(a_stop_accounts_for_what_was_placed)
{
	for (int round = 0; round < 40; round++) {
		struct hive *hive = real_start((struct hive_options){
			.io_workers = 3, .placement = HIVE_PLACE_TWO_CHOICES, .on_drop = on_drop });
		uint32_t accepted = 0;
		int r = 0;

		store_relaxed(&ran, 0u);
		store_relaxed(&dropped, 0u);
		for (int i = 0; i < 1000 && r == 0; i++) {
			if (i == 20 * round)
				CHECK_OK(hive_stop(hive, round % 2 ? HIVE_NOW : HIVE_DRAIN, HIVE_FOREVER));
			r = hive_post(hive, count, NULL);
			accepted += r == 0;
		}
		CHECK(r == 0 || r == -ESHUTDOWN);
		CHECK_OK(hive_join(hive, HIVE_FOREVER));
		CHECK_EQ(load_relaxed(&ran) + load_relaxed(&dropped), accepted);
		CHECK(round % 2 || load_relaxed(&dropped) == 0);
		CHECK_OK(hive_destroy(hive));
	}
}
