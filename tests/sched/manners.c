/* SPDX-License-Identifier: MIT */
/* Manners of thieves: how often they look, how long they keep off, how often a task is moved. */
#include "sched/backoff.h"
#include "support/lone.h"

static void give_local(struct lone *l, int worker, int count)
{
	lone_become(l, worker);
	for (int i = 0; i < count; i++)
		CHECK_OK(hive_post_local(fake_note, number(i)));
	lone_become(l, LONE_NOBODY);
}

static uint64_t stolen(const struct lone *l, int worker)
{
	return load_relaxed(&l->w[worker]->stats.stolen);
}

/* V-25: the pause doubles with each failure in a row, as far as a limit; at least half of it is certain, the rest is drawn. */
TEST(pauses_double_up_to_a_limit_and_half_of_them_is_drawn)
{
	uint32_t most = TUNE_BACKOFF_LEAST;

	for (uint32_t failures = 1; failures < 40; failures++) {
		CHECK_EQ(backoff_pauses(failures, 0), most / 2);
		CHECK_EQ(backoff_pauses(failures, UINT64_MAX), most);
		if (most < TUNE_BACKOFF_MOST)
			most *= 2;
	}
	CHECK_EQ(most, TUNE_BACKOFF_MOST);
}

/* Worker 3 has something, and worker 0 looks at worker 1 alone. */
static void look_at_the_wrong_one(struct lone *l)
{
	fake_push_random(&l->f, fake_random(1, 6));
	lone_beat(l, 0);
}

/* V-25: a failure counts once something was in sight, each one in a row, and a success ends the row. */
TEST(rounds_that_fail_with_something_in_sight_are_counted_until_one_succeeds)
{
	struct lone l = { 0 };
	struct hive_worker_stats s;

	lone_open(&l, 6, (struct hive_worker_options){ .steal_attempts = 1 });
	give_local(&l, 3, 1);
	for (uint32_t i = 1; i <= 5; i++) {
		look_at_the_wrong_one(&l); /* before that it wanted to sleep, and saw what worker 3 has */
		CHECK_EQ(l.w[0]->thwarted, i);
	}
	fake_push_random(&l.f, fake_random(3, 6));
	lone_beat(&l, 0);
	CHECK_EQ(l.w[0]->thwarted, 0);
	CHECK_OK(hive_worker_stats_read(l.f.hive, l.ids[0], &s));
	CHECK_EQ(s.steal_rounds, 6);
	CHECK_EQ(s.steal_failures, 5);
	CHECK_EQ(s.steal_pauses, 0); /* this clock stands still meanwhile */
	CHECK_EQ(s.stolen, 1);
	lone_close(&l);
}

/* V-25: what comes from the pool is a success as well. */
TEST(a_task_of_the_pool_ends_the_row_of_failures)
{
	struct lone l = { 0 };

	lone_open(&l, 6, (struct hive_worker_options){ .steal_attempts = 1 });
	give_local(&l, 3, 1);
	for (int i = 0; i < 3; i++)
		look_at_the_wrong_one(&l);
	CHECK_EQ(l.w[0]->thwarted, 3);
	CHECK_OK(hive_post(l.f.hive, fake_note, number(1)));
	lone_beat(&l, 0);
	CHECK_EQ(l.w[0]->thwarted, 0);
	lone_close(&l);
}

/* One round of worker 0 as in a hive with threads and the system's clock. How often it paused. */
static uint64_t round_in_real_time(struct lone *l)
{
	uint64_t before = load_relaxed(&l->w[0]->stats.steal_pauses);

	lone_become(l, 0);
	l->f.hive->exact_clock = l->f.hive->stepped = false;
	hive__steal_some(l->w[0]);
	l->f.hive->exact_clock = l->f.hive->stepped = true;
	lone_become(l, LONE_NOBODY);
	return load_relaxed(&l->w[0]->stats.steal_pauses) - before;
}

/* V-25, V-27: where time goes on, a thief that came too late leaves the others alone for so long, unless there is something in
 * the pool; one that has not failed does not wait.                                                                         */
TEST(a_thief_that_failed_pauses_before_it_looks_again)
{
	struct lone l = { 0 };

	lone_open(&l, 6, (struct hive_worker_options){ .steal_attempts = 1 });
	give_local(&l, 3, 1);
	fake_push_random(&l.f, fake_random(1, 6));
	CHECK_EQ(round_in_real_time(&l), 0);
	CHECK_EQ(l.w[0]->thwarted, 0); /* it did not know of anything */
	for (uint32_t failures = 1; failures < 20; failures++) {
		l.w[0]->thwarted = failures;
		fake_push_random(&l.f, UINT64_MAX);
		fake_push_random(&l.f, fake_random(1, 6));
		CHECK_EQ(round_in_real_time(&l), backoff_pauses(failures, UINT64_MAX));
	}
	CHECK_OK(hive_post(l.f.hive, fake_note, number(1)));
	l.w[0]->thwarted = 20;
	CHECK_EQ(round_in_real_time(&l), 0);
	lone_close(&l);
}

/* Those who were woken, and nobody else, until they want to wait. */
static void step_the_woken(struct fake *f)
{
	for (int i = 0; i < f->worker_count; i++)
		for (int beats = 0; f->workers[i].wakes > 0; beats++) {
			CHECK(beats < 100);
			if (fake_step(f, f->workers[i].id) > 0)
				f->workers[i].wakes = 0;
		}
}

static void post_local_one(void *arg)
{
	CHECK_OK(hive_post_local(fake_note, arg));
}

/* V-27: whoever has looked around and found nothing sleeps, and looks at nobody until he is woken: once for each wake, however much the
 * busy one does by itself.                                                                                                 */
TEST(idle_workers_do_not_look_at_a_busy_one_again_and_again)
{
	struct fake f = { 0 };
	uint64_t rounds = 0, woken = 0;

	fake_create(&f, (struct hive_options){ .io_workers = 8 });
	fake_start(&f);
	fake_settle(&f);
	for (uint32_t i = 1; i < 8; i++)
		rounds -= load_relaxed(&hive__slot(&f.hive->io, i)->stats.steal_rounds);
	for (int i = 0; i < 100; i++) {
		fake_reset_wakes(&f);
		CHECK_OK(hive_post_to(f.hive, f.workers[0].id, post_local_one, number(1)));
		step_the_woken(&f);
	}
	for (uint32_t i = 1; i < 8; i++) {
		rounds += load_relaxed(&hive__slot(&f.hive->io, i)->stats.steal_rounds);
		woken += load_relaxed(&hive__slot(&f.hive->io, i)->woken);
	}
	CHECK_EQ(load_relaxed(&hive__slot(&f.hive->io, 0)->stats.ran), 200);
	CHECK(rounds <= woken);
	fake_destroy(&f);
}

/* V-26: a single task that is stolen runs at once: two idle thieves cannot take it from each other. */
TEST(one_task_is_moved_once_however_many_thieves_there_are)
{
	FOR_BOTH_ORDERS(order)
	{
		struct lone l = { 0 };
		uint64_t moves = 0;

		lone_open(&l, 8, (struct hive_worker_options){ .order = order });
		give_local(&l, 0, 1);
		for (int round = 0; round < 10; round++)
			for (int i = 1; i < 8; i++)
				lone_beat(&l, i);
		for (int i = 0; i < 8; i++)
			moves += stolen(&l, i);
		CHECK_EQ(moves, 1);
		lone_close(&l);
	}
}

/* Each thief robs the one before it, who has not had a beat since: no order of beats moves a task more often. How many thefts
 * there are until nothing is left of the first one's loot.                                                                 */
static int chain_of_thefts(enum hive_order order, int32_t capacity)
{
	struct lone l = { 0 };
	int thefts = 0;

	lone_open(&l, 8,
	          (struct hive_worker_options){ .order = order, .local_capacity = capacity, .steal_attempts = 1 });
	give_local(&l, 0, (int)capacity);
	for (int thief = 1; thief < 8; thief++) {
		uint64_t before = local_size(&l.w[thief - 1]->local);

		fake_push_random(&l.f, fake_random((uint32_t)thief - 1, 8));
		lone_become(&l, thief);
		thefts += hive__steal_some(l.w[thief]);
		lone_become(&l, LONE_NOBODY);
		CHECK(stolen(&l, thief) <= (before + 1) / 2);
	}
	lone_close(&l);
	return thefts;
}

/* V-26: what is stolen is at most half, and one of that runs at once. So a task is moved log2(capacity) + 1 times at most. */
TEST(a_task_is_moved_a_bounded_number_of_times)
{
	FOR_BOTH_ORDERS(order)
	{
		CHECK(chain_of_thefts(order, 4) <= 2 + 1);
		CHECK(chain_of_thefts(order, 16) <= 4 + 1);
		CHECK(chain_of_thefts(order, 32) <= 5 + 1);
	}
	CHECK_EQ(chain_of_thefts(HIVE_ORDER_NEWEST, 1024), 4 + 1); /* no more than 16 at a time: log2 of that */
}
