/* SPDX-License-Identifier: MIT */
/* Local tasks oldest first, the newest beside them, and whom a thief chooses: F-29 … F-32, F-44 … F-49. */
#include "support/lone.h"

static const struct hive_worker_options oldest = { .order = HIVE_ORDER_OLDEST };

static void give_local(struct lone *l, int worker, int first, int last)
{
	lone_become(l, worker);
	for (int i = first; i <= last; i++)
		CHECK_OK(hive_post_local(fake_note, number(i)));
	lone_become(l, LONE_NOBODY);
}

static uint64_t stolen_by(struct lone *l, int worker)
{
	return load_relaxed(&l->w[worker]->stats.stolen);
}

/* F-29, F-30: the latest runs first, each push moves the one before behind the others, and those run oldest first. */
TEST(the_newest_task_runs_first_and_then_the_oldest)
{
	struct lone l = { 0 };

	lone_open(&l, 1, oldest);
	give_local(&l, 0, 1, 5);
	CHECK_EQ(newest_size(&l.w[0]->local.newest), 1);
	CHECK_EQ(runq_size(&l.w[0]->local.ring), 4);
	fake_log_clear();
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "5 1 2 3 4");
	lone_close(&l);
}

static int again;

static void post_itself_again(void *arg)
{
	fake_note(arg);
	if (--again > 0)
		CHECK_OK(hive_post_local(post_itself_again, arg));
}

/* F-29: a task that keeps posting itself has the place for the newest for itself; after three turns the ring has one. */
TEST(the_newest_task_cannot_starve_the_others)
{
	struct lone l = { 0 };

	lone_open(&l, 1, oldest);
	again = 9;
	give_local(&l, 0, 1, 4);
	lone_become(&l, 0);
	CHECK_OK(hive_post_local(post_itself_again, number(77)));
	fake_log_clear();
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "77 77 77 1 77 77 77 2 77 77 77 3 4");
	lone_close(&l);
}

/* F-29: nor can the others starve it: it waits for one of them at most. */
TEST(the_newest_task_is_not_starved)
{
	struct lone l = { 0 };
	struct hive_worker_options one = { .order = HIVE_ORDER_OLDEST, .local_budget = 1 };

	lone_open(&l, 1, one);
	give_local(&l, 0, 1, 9);
	for (int i = 10; i < 14; i++) {
		fake_log_clear();
		lone_beat(&l, 0);
		give_local(&l, 0, i, i);
	}
	CHECK_STR(fake_log(), "1"); /* the fourth turn, after 9, 10 and 11 */
	fake_log_clear();
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "13");
	lone_close(&l);
}

/* F-29, F-40: behind a long task the newest can be taken by others, if there is nothing else. */
TEST(the_newest_task_is_stolen_last)
{
	struct lone l = { 0 };

	lone_open(&l, 2, oldest);
	give_local(&l, 1, 1, 3);
	fake_log_clear();
	lone_beat(&l, 0);
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "1 2");
	CHECK_EQ(newest_size(&l.w[1]->local.newest), 1);
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "1 2 3");
	CHECK_EQ(local_size(&l.w[1]->local), 0);
	CHECK_EQ(stolen_by(&l, 0), 3);
	lone_close(&l);
}

/* F-40, F-45: half of the ring, by one theft; the last of them runs at once, the others after it, in order. */
TEST(half_of_the_ring_is_stolen_and_the_last_of_it_runs_at_once)
{
	struct lone l = { 0 };

	lone_open(&l, 2, oldest);
	give_local(&l, 1, 1, 100);
	fake_log_clear();
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "50");
	CHECK_EQ(stolen_by(&l, 0), 50);
	CHECK_EQ(local_size(&l.w[0]->local), 49);
	CHECK_EQ(local_size(&l.w[1]->local), 50);
	lone_beat(&l, 0);
	CHECK_EQ(strncmp(fake_log(), "50 1 2 3 4 5 6 7 8 9 ", 21), 0);
	lone_close(&l);
}

static void open_two(struct lone *l, enum hive_order first, enum hive_order second)
{
	struct hive_worker_options options[2] = { { .order = first }, { .order = second } };

	memset(l, 0, sizeof *l);
	fake_create(&l->f, (struct hive_options){ 0 });
	l->count = 2;
	for (int i = 0; i < 2; i++) {
		options[i].core = &fake_core;
		options[i].core_arg = &l->scripts[i];
		CHECK_OK(hive_attach(l->f.hive, &options[i], &l->ids[i]));
	}
	fake_start(&l->f);
	for (int i = 0; i < 2; i++) {
		l->w[i] = hive__slot(&l->f.hive->io, (uint32_t)i);
		l->w[i]->started = true;
	}
}

/* Workers of both orders in one hive rob each other. What is stolen runs oldest first. */
TEST(workers_of_different_orders_rob_each_other)
{
	static struct lone l;

	open_two(&l, HIVE_ORDER_NEWEST, HIVE_ORDER_OLDEST);
	give_local(&l, 1, 1, 9);
	fake_log_clear();
	lone_beat(&l, 0);
	CHECK_EQ(stolen_by(&l, 0), 4);
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "1 2 3 4");
	lone_beat(&l, 1);
	CHECK_STR(fake_log(), "1 2 3 4 9 5 6 7 8");
	give_local(&l, 1, 1, 1);
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "1 2 3 4 9 5 6 7 8 1");
	lone_close(&l);

	open_two(&l, HIVE_ORDER_OLDEST, HIVE_ORDER_NEWEST);
	give_local(&l, 1, 1, 9);
	fake_log_clear();
	lone_beat(&l, 0);
	CHECK_EQ(stolen_by(&l, 0), 5);
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "1 2 3 4 5");
	lone_close(&l);
}

#if !defined(HIVE_LOCKED_QUEUES)
/* F-32, F-43: a full ring that is being robbed can neither take nor give; the task goes to the pool by itself, and the post
 * does not wait for the thief.                                                                                            */
TEST(a_post_to_a_full_ring_that_is_being_robbed_goes_to_the_pool)
{
	struct hive_worker_options four = { .order = HIVE_ORDER_OLDEST, .local_capacity = 4 };
	struct lone l = { 0 };
	uint32_t from;

	lone_open(&l, 2, four);
	give_local(&l, 0, 1, 5);
	CHECK_EQ(runq_claim(&l.w[0]->local.ring, 4, &from), 2);
	l.f.fail_at = l.f.allocations + 1;
	l.f.sticky = true;
	lone_become(&l, 0);
	CHECK_ERR(hive_post_local(fake_note, number(6)), -ENOMEM); /* the first task of the pool needs memory */
	l.f.fail_at = 0;
	CHECK_EQ(local_size(&l.w[0]->local), 3);
	give_local(&l, 0, 6, 6);
	CHECK_EQ(pool_length(&l.f.hive->pool), 1);
	CHECK_EQ(load_relaxed(&l.w[0]->stats.spilled), 1);
	give_local(&l, 1, 1, 2); /* the thief has copied */
	store_relaxed(&l.w[1]->stats.posted, (uint64_t)0);
	runq_finish(&l.w[0]->local.ring);
	CHECK_EQ(runq_room(&l.w[0]->local.ring), 2);
	fake_log_clear();
	lone_close(&l);
}

/* A ring from which a thief copies has no room, though it may be empty: a task of the pool runs at once, and does not wait for the thief. */
TEST(who_is_being_robbed_does_not_leave_the_pool_alone)
{
	struct hive_worker_options four = { .order = HIVE_ORDER_OLDEST, .local_capacity = 4 };
	struct lone l = { 0 };
	uint32_t from;

	lone_open(&l, 2, four);
	give_local(&l, 0, 1, 5);
	CHECK_EQ(runq_claim(&l.w[0]->local.ring, 4, &from), 2);
	for (int i = 0; i < 3; i++)
		lone_beat(&l, 0);
	CHECK_EQ(local_size(&l.w[0]->local), 0);
	CHECK_EQ(runq_room(&l.w[0]->local.ring), 0);
	CHECK_OK(hive_post(l.f.hive, fake_note, number(50)));
	fake_log_clear();
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "50");
	give_local(&l, 1, 1, 2); /* the thief has copied */
	store_relaxed(&l.w[1]->stats.posted, (uint64_t)0);
	runq_finish(&l.w[0]->local.ring);
	lone_close(&l);
}

/* F-39, F-48: who chose a victim that is just being robbed gets nothing there, and asks the pool. */
TEST(a_theft_that_fails_is_followed_by_a_look_at_the_pool)
{
	struct hive_worker_options o = { .order = HIVE_ORDER_OLDEST, .victim = HIVE_VICTIM_BUSIEST };
	struct lone l = { 0 };
	uint32_t from;

	lone_open(&l, 3, o);
	give_local(&l, 1, 1, 9);
	CHECK_EQ(runq_claim(&l.w[1]->local.ring, 8, &from), 4);
	CHECK_OK(hive_post(l.f.hive, fake_note, number(50)));
	fake_log_clear();
	lone_become(&l, 0);
	CHECK(hive__steal_some(l.w[0]));
	CHECK_STR(fake_log(), "50");
	CHECK_EQ(stolen_by(&l, 0), 0);
	CHECK(!hive__steal_some(l.w[0]));
	CHECK(l.w[0]->searching); /* it found nothing: it goes on searching, until it sleeps */
	for (int i = 1; i <= 4; i++)
		CHECK_OK(hive_post_local(fake_note, number(i)));
	store_relaxed(&l.w[0]->stats.posted, load_relaxed(&l.w[0]->stats.posted) - 4);
	runq_finish(&l.w[1]->local.ring);
	lone_close(&l);
}
#endif

/* F-48: nobody has anything: one task of the pool, at once. F-49: then it searches no more. */
TEST(who_finds_nobody_to_rob_takes_one_task_of_the_pool)
{
	struct hive_worker_options o = { .order = HIVE_ORDER_OLDEST, .victim = HIVE_VICTIM_BUSIEST };
	struct lone l = { 0 };

	lone_open(&l, 2, o);
	CHECK_OK(hive_post(l.f.hive, fake_note, number(1)));
	CHECK_OK(hive_post(l.f.hive, fake_note, number(2)));
	fake_log_clear();
	lone_become(&l, 0);
	CHECK(hive__steal_some(l.w[0]));
	CHECK_STR(fake_log(), "1");
	CHECK_EQ(pool_length(&l.f.hive->pool), 1);
	CHECK(!l.w[0]->searching && !load_relaxed(&l.w[0]->seeks));
	CHECK_EQ(idle_searchers(load_relaxed(&l.f.hive->io.idle.count)), 0);
	lone_close(&l);
}

static bool goes_round;

static void go_round(void *arg)
{
	if (goes_round)
		CHECK_OK(hive_post_local(go_round, arg));
}

/* Tasks that post themselves again keep the local queue full: there is never room for a batch of the pool. */
TEST(a_local_queue_that_is_always_full_does_not_starve_the_pool)
{
	FOR_BOTH_ORDERS(order)
	{
		struct hive_worker_options o = { .order = order, .local_capacity = 4, .pool_probe_interval = 3 };
		int tasks = order == HIVE_ORDER_OLDEST ? 5 : 4; /* a ring, and the newest beside it */
		struct lone l = { 0 };

		lone_open(&l, 1, o);
		goes_round = true;
		lone_become(&l, 0);
		for (int i = 0; i < tasks; i++)
			CHECK_OK(hive_post_local(go_round, NULL));
		CHECK_EQ(local_room(&l.w[0]->local), 0);
		lone_become(&l, LONE_NOBODY);
		CHECK_OK(hive_post(l.f.hive, fake_note, number(50)));
		fake_log_clear();
		for (int i = 0; i < 4; i++)
			lone_beat(&l, 0);
		CHECK_EQ(local_room(&l.w[0]->local), 0);
		CHECK_STR(fake_log(), "50");
		goes_round = false;
		lone_close(&l);
	}
}

/* F-47: the longest local queue of the others, never the own. */
TEST(the_busiest_worker_is_robbed)
{
	FOR_BOTH_ORDERS(order)
	{
		struct hive_worker_options o = { .order = order, .victim = HIVE_VICTIM_BUSIEST };

		for (int busiest = 1; busiest < 5; busiest++) {
			struct lone l = { 0 };

			lone_open(&l, 5, o);
			for (int i = 1; i < 5; i++)
				give_local(&l, i, 1, i == busiest ? 4 : 3);
			lone_beat(&l, 0);
			for (int i = 1; i < 5; i++)
				CHECK_EQ(local_size(&l.w[i]->local), i == busiest ? 2 : 3);
			lone_close(&l);
		}
	}
}

/* F-47: who searches is left alone as long as anybody else has something; who may not be stolen from, always. */
TEST(who_searches_is_not_robbed_as_the_busiest)
{
	struct hive_worker_options o = { .order = HIVE_ORDER_OLDEST, .victim = HIVE_VICTIM_BUSIEST };
	struct lone l = { 0 };

	lone_open(&l, 4, o);
	give_local(&l, 1, 1, 9);
	give_local(&l, 2, 1, 2);
	give_local(&l, 3, 1, 9);
	store_relaxed(&l.w[1]->seeks, 1u);
	store_relaxed(&l.w[3]->stealable, 0u);
	lone_beat(&l, 0);
	CHECK_EQ(local_size(&l.w[1]->local), 9);
	CHECK_EQ(local_size(&l.w[2]->local), 1);
	CHECK_EQ(local_size(&l.w[3]->local), 9);
	lone_beat(&l, 0);
	CHECK_EQ(local_size(&l.w[1]->local), 9);
	CHECK_EQ(local_size(&l.w[2]->local), 0);
	lone_beat(&l, 0);
	CHECK_EQ(local_size(&l.w[1]->local), 5);
	CHECK_EQ(local_size(&l.w[3]->local), 9);
	lone_close(&l);
}

/* F-49: what thieves see of a worker's searching is what it does: from the first look until it has found something, or sleeps. */
TEST(searching_is_shown_from_its_beginning_to_its_end)
{
	struct lone l = { 0 };

	lone_open(&l, 2, (struct hive_worker_options){ .victim = HIVE_VICTIM_BUSIEST });
	lone_become(&l, 0);
	CHECK(!hive__steal_some(l.w[0]));
	CHECK(l.w[0]->searching && load_relaxed(&l.w[0]->seeks));
	CHECK(hive__fall_asleep(l.w[0]));
	CHECK(!l.w[0]->searching && !load_relaxed(&l.w[0]->seeks));
	lone_become(&l, LONE_NOBODY);
	CHECK_OK(hive_post(l.f.hive, fake_note, number(1))); /* claims it */
	lone_become(&l, 0);
	hive__get_up(l.w[0]);
	CHECK(l.w[0]->searching && load_relaxed(&l.w[0]->seeks));
	lone_beat(&l, 0);
	CHECK(!l.w[0]->searching && !load_relaxed(&l.w[0]->seeks));
	lone_close(&l);
}

/* A late thief may still be at the queue of a worker that left: its place is used again for the same order only. */
TEST(a_place_is_used_again_for_the_same_order_only)
{
	struct hive_worker_options newest_first = { .order = HIVE_ORDER_NEWEST };
	struct fake f = { 0 };
	uint32_t a, b;

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	CHECK_OK(hive_attach(f.hive, &oldest, &a));
	CHECK_OK(hive_detach(f.hive, a, HIVE_FOREVER));
	CHECK_OK(hive_attach(f.hive, &newest_first, &b));
	CHECK(!hive__slot(&f.hive->io, 2)->local.oldest);
	CHECK_OK(hive_attach(f.hive, &oldest, &a));
	CHECK_EQ(hive__limit(&f.hive->io), 3);
	CHECK(hive__slot(&f.hive->io, 1)->local.oldest);
	fake_destroy(&f);
}
