/* SPDX-License-Identifier: MIT */
/* HIVE_PRESET_FAIO and the intervals that it is made of: F-16 … F-28, F-31. */
#include "support/lone.h"

/* Each beat of worker i, one after the other. */
static void beats(struct lone *l, int i, int count)
{
	while (count-- > 0)
		CHECK(lone_beat(l, i));
}

static void give_local(struct lone *l, int worker, int first, int last)
{
	lone_become(l, worker);
	for (int i = first; i <= last; i++)
		CHECK_OK(hive_post_local(fake_note, number(i)));
	lone_become(l, LONE_NOBODY);
}

static void open_faio(struct lone *l, int count, struct hive_worker_options options)
{
	lone_open_preset(l, count, options, HIVE_PRESET_FAIO);
}

/* F-2, F-16, F-19, F-22: the preset is a set of parameters, and each option goes before it. */
TEST(the_preset_is_a_set_of_parameters)
{
	struct hive_worker_options o = { .order = HIVE_ORDER_NEWEST,
		                         .victim = HIVE_VICTIM_RANDOM,
		                         .io_interval = 2,
		                         .pool_probe_interval = 3,
		                         .pool_batch = 4,
		                         .local_budget = 5,
		                         .spin_ns = 6 };
	struct lone l = { 0 };
	const struct worker_setup *s;

	open_faio(&l, 1, (struct hive_worker_options){ .local_capacity = 128 });
	s = &l.w[0]->setup;
	CHECK(l.w[0]->local.oldest);
	CHECK_EQ(s->victim, HIVE_VICTIM_BUSIEST);
	CHECK_EQ(s->io_interval, TUNE_FAIO_IO_INTERVAL);
	CHECK_EQ(s->pool_probe_interval, TUNE_FAIO_POOL_INTERVAL);
	CHECK_EQ(s->pool_batch, 64);
	CHECK_EQ(s->local_budget, 1);
	CHECK_EQ(s->spin_ns, HIVE_OFF);
	CHECK(s->pool_first && s->last_now);
	lone_close(&l);
	memset(&l, 0, sizeof l);
	open_faio(&l, 1, o);
	s = &l.w[0]->setup;
	CHECK(!l.w[0]->local.oldest);
	CHECK_EQ(s->victim, HIVE_VICTIM_RANDOM);
	CHECK_EQ(s->io_interval, 2);
	CHECK_EQ(s->pool_probe_interval, 3);
	CHECK_EQ(s->pool_batch, 4);
	CHECK_EQ(s->local_budget, 5);
	CHECK_EQ(s->spin_ns, l.f.hive->cpus < 2 ? HIVE_OFF : 6);
	lone_close(&l);
}

/* F-19: whether the tasks are its own, the pool's or stolen. */
TEST(each_beat_executes_one_task)
{
	struct lone l = { 0 };

	open_faio(&l, 2, (struct hive_worker_options){ 0 });
	give_local(&l, 0, 1, 3);
	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_post(l.f.hive, fake_note, number(10 + i)));
	for (uint64_t i = 1; i <= 6; i++) {
		beats(&l, 0, 1);
		CHECK_EQ(load_relaxed(&l.w[0]->stats.ran), i);
	}
	give_local(&l, 1, 20, 24);
	for (uint64_t i = 7; i <= 11; i++) {
		beats(&l, 0, 1);
		CHECK_EQ(load_relaxed(&l.w[0]->stats.ran), i);
	}
	CHECK_EQ(load_relaxed(&l.w[0]->stats.stolen), 5);
	lone_close(&l);
}

/* F-17, F-18: while tasks never run out the core is turned every so many beats, and not in between. */
TEST(a_busy_worker_turns_its_core_every_io_interval_ticks)
{
	static const int32_t intervals[] = { 1, 2, 7 };

	for (size_t k = 0; k < 3; k++) {
		struct lone l = { 0 };
		struct hive_worker_options o = { .io_interval = intervals[k], .local_budget = 1 };

		lone_open(&l, 1, o);
		give_local(&l, 0, 1, 100);
		beats(&l, 0, 1); /* it was not busy before */
		l.scripts[0].turns = 0;
		beats(&l, 0, 70);
		CHECK_EQ(l.scripts[0].turns, 70 / intervals[k]);
		for (int i = 0; i < l.scripts[0].turns; i++)
			CHECK_EQ(l.scripts[0].timeouts[i], 0); /* there is work: no sleep */
		fake_log_clear();
		lone_close(&l);
	}
}

/* F-18: letters, timers and the end of the hive come with the same tick; nothing waits longer. */
TEST(letters_and_timers_wait_for_an_io_interval_at_most)
{
	struct lone l = { 0 };
	struct hive_worker_options o = { .io_interval = 10, .local_budget = 1, .order = HIVE_ORDER_OLDEST };
	int waited;

	lone_open(&l, 1, o);
	give_local(&l, 0, 1, 100);
	beats(&l, 0, 11);
	CHECK_OK(hive_post_to(l.f.hive, l.ids[0], fake_note, number(500)));
	CHECK_OK(hive_post_after(l.f.hive, 0, fake_note, number(501), NULL));
	fake_log_clear();
	for (waited = 0; !strstr(fake_log(), "500 501"); waited++) {
		CHECK(waited < 10);
		beats(&l, 0, 1);
	}
	CHECK(waited > 1);
	lone_close(&l);
}

/* A host that steps the worker waits in its place: what is ready by then has been looked for. */
TEST(a_stepped_worker_looks_outside_before_it_sleeps)
{
	struct lone l = { 0 };
	struct hive_worker_options o = { .io_interval = 10, .local_budget = 1 };
	int64_t wait_ns;

	lone_open(&l, 1, o);
	give_local(&l, 0, 1, 1);
	lone_become(&l, 0);
	CHECK(hive__beat_stepped(l.w[0], &wait_ns)); /* the task */
	l.scripts[0].turns = 0;
	CHECK(hive__beat_stepped(l.w[0], &wait_ns)); /* it was busy: no look outside, so no sleep */
	CHECK_EQ(wait_ns, 0);
	CHECK_EQ(l.scripts[0].turns, 0);
	CHECK(hive__beat_stepped(l.w[0], &wait_ns));
	CHECK(wait_ns > 0);
	CHECK_EQ(l.scripts[0].turns, 1);
	lone_close(&l);
}

/* F-16, F-20, F-21: with nothing to do each beat drives the core, and sleeps there. */
TEST(an_idle_worker_turns_its_core_in_each_beat)
{
	struct lone l = { 0 };

	open_faio(&l, 2, (struct hive_worker_options){ 0 });
	beats(&l, 0, 5);
	CHECK_EQ(l.scripts[0].turns, 5);
	CHECK(lone_timeout(&l, 0) > 0);
	give_local(&l, 0, 1, 1);
	beats(&l, 0, 1);
	CHECK_EQ(l.scripts[0].turns, 6);
	CHECK_EQ(lone_timeout(&l, 0), 0);
	beats(&l, 0, 1); /* busy before: no look outside */
	CHECK_EQ(l.scripts[0].turns, 6);
	beats(&l, 0, 1);
	CHECK_EQ(l.scripts[0].turns, 7);
	CHECK(lone_timeout(&l, 0) > 0);
	lone_close(&l);
}

/* F-25, F-26: on a pool tick the pool comes first and gives one task; on the others the local queue, the newest included. */
TEST(on_a_pool_tick_the_pool_comes_first)
{
	struct lone l = { 0 };

	open_faio(&l, 1, (struct hive_worker_options){ .pool_probe_interval = 4 });
	give_local(&l, 0, 1, 6);
	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_post(l.f.hive, fake_note, number(100 + i)));
	fake_log_clear();
	beats(&l, 0, 9);
	CHECK_STR(fake_log(), "6 1 2 100 3 4 5 101 102");
	lone_close(&l);
}

/* F-25: nothing in the pool: the local queue all the same. */
TEST(on_a_pool_tick_without_pool_tasks_the_local_queue_is_served)
{
	struct lone l = { 0 };

	open_faio(&l, 1, (struct hive_worker_options){ .pool_probe_interval = 1 });
	give_local(&l, 0, 1, 3);
	fake_log_clear();
	beats(&l, 0, 3);
	CHECK_STR(fake_log(), "3 1 2");
	lone_close(&l);
}

/* F-27, F-28: as much as fits, at most half of the capacity; the last runs now, the others wait in order. */
TEST(a_batch_is_half_of_the_capacity_and_its_last_task_runs_now)
{
	for (int32_t capacity = 4; capacity <= 1024; capacity *= 4) {
		struct lone l = { 0 };
		int half = capacity / 2 < TUNE_POOL_BATCH_MAX ? capacity / 2 : TUNE_POOL_BATCH_MAX;
		char first[32], *log = first;

		open_faio(&l, 1, (struct hive_worker_options){ .local_capacity = capacity });
		for (int i = 1; i <= 600; i++)
			CHECK_OK(hive_post(l.f.hive, fake_note, number(i)));
		fake_log_clear();
		beats(&l, 0, 1);
		CHECK_EQ(pool_length(&l.f.hive->pool), 600 - half);
		CHECK_EQ(local_size(&l.w[0]->local), half - 1);
		beats(&l, 0, 1);
		log += snprintf(log, 32, "%d 1", half);
		CHECK_STR(fake_log(), first);
		fake_log_clear();
		lone_close(&l);
	}
}

/* F-27: what does not fit stays where it is; but one that needs no room runs, or a queue that is always full would starve the pool. */
TEST(a_batch_is_not_larger_than_the_room)
{
	struct lone l = { 0 };

	lone_open(&l, 1,
	          (struct hive_worker_options){ .order = HIVE_ORDER_OLDEST, .local_capacity = 8, .pool_batch = 8 });
	give_local(&l, 0, 1, 6);
	for (int i = 1; i <= 20; i++)
		CHECK_OK(hive_post(l.f.hive, fake_note, number(i)));
	lone_become(&l, 0);
	CHECK(hive__take_from_pool(l.w[0]));
	CHECK_EQ(pool_length(&l.f.hive->pool), 20 - 3);
	CHECK_EQ(local_room(&l.w[0]->local), 0);
	fake_log_clear();
	CHECK(hive__take_from_pool(l.w[0]));
	CHECK_STR(fake_log(), "4");
	CHECK_EQ(pool_length(&l.f.hive->pool), 20 - 4);
	CHECK_EQ(local_room(&l.w[0]->local), 0);
	lone_close(&l);
}

static struct hive *the_hive;
static int streams;

static void local_stream(void *arg)
{
	(void)arg;
	streams++;
	CHECK_OK(hive_post_local(local_stream, NULL));
}

static void pool_stream(void *arg)
{
	(void)arg;
	streams++;
	CHECK_OK(hive_post(the_hive, pool_stream, NULL));
}

/* F-31: neither a stream of local tasks starves the pool nor the reverse. */
TEST(no_stream_starves_the_other)
{
	struct lone l = { 0 };

	open_faio(&l, 1, (struct hive_worker_options){ 0 });
	the_hive = l.f.hive;
	lone_become(&l, 0);
	CHECK_OK(hive_post_local(local_stream, NULL));
	CHECK_OK(hive_post_local(local_stream, NULL));
	lone_become(&l, LONE_NOBODY);
	CHECK_OK(hive_post(l.f.hive, fake_note, number(1)));
	fake_log_clear();
	beats(&l, 0, TUNE_FAIO_POOL_INTERVAL);
	CHECK_STR(fake_log(), "1");
	lone_close(&l);

	memset(&l, 0, sizeof l);
	open_faio(&l, 1, (struct hive_worker_options){ .pool_probe_interval = 2 });
	the_hive = l.f.hive;
	for (int i = 0; i < 5; i++)
		CHECK_OK(hive_post(l.f.hive, pool_stream, NULL));
	beats(&l, 0, 10);
	give_local(&l, 0, 2, 2);
	fake_log_clear();
	beats(&l, 0, 2);
	CHECK_STR(fake_log(), "2");
	lone_close(&l);
}

static void stop_now(void *arg)
{
	(void)arg;
	CHECK_OK(hive_stop(the_hive, HIVE_NOW, HIVE_FOREVER));
}

/* F-24, and now means now: a task of the pool or of a batch does not begin after it. */
TEST(nothing_of_the_pool_begins_after_the_end)
{
	struct lone l = { 0 };
	struct hive_task batch = { fake_note, number(1) };

	open_faio(&l, 2, (struct hive_worker_options){ .pool_probe_interval = 1 });
	the_hive = l.f.hive;
	CHECK_OK(hive_post_many(l.f.hive, &batch, 1));
	CHECK_OK(hive_post_to(l.f.hive, l.ids[0], stop_now, NULL));
	fake_log_clear();
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "");
	lone_close(&l);
}

/* The preset with all that a hive can do: nothing is lost, everybody sleeps in the end. */
TEST(a_hive_of_the_preset_does_everything_and_sleeps)
{
	struct fake f = { 0 };
	struct hive_stats stats;

	fake_create(&f, (struct hive_options){ .io_workers = 3, .compute_workers = 1, .preset = HIVE_PRESET_FAIO });
	fake_start(&f);
	fake_log_clear();
	for (int i = 0; i < 200; i++) {
		CHECK_OK(hive_post(f.hive, fake_note, number(1)));
		CHECK_OK(hive_post_to(f.hive, f.workers[i % 3].id, fake_note, number(2)));
		CHECK_OK(hive_post_after(f.hive, HIVE_MS(i % 5), fake_note, number(3), NULL));
		CHECK_OK(hive_post_compute(f.hive, fake_note, number(4)));
	}
	fake_settle(&f);
	for (int i = 0; i < 5; i++)
		fake_advance(&f, HIVE_MS(1));
	CHECK_OK(hive_stats_read(f.hive, &stats));
	CHECK_EQ(stats.ran, 800);
	CHECK_EQ(stats.searching, 0);
	fake_destroy(&f);
}
