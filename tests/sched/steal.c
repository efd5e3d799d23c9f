/* SPDX-License-Identifier: MIT */
/* Step 6: from whom, how often, how much, and who is left alone. */
#include <pthread.h>
#include <stdatomic.h>

#include "support/lone.h"

static void give_local(struct lone *l, int worker, int first, int last)
{
	lone_become(l, worker);
	for (int i = first; i <= last; i++)
		CHECK_OK(hive_post_local(fake_note, number(i)));
	lone_become(l, LONE_NOBODY);
}

/* the victim is the one that the random number names; a script leads to each of the others. */
TEST(the_victim_is_drawn_by_the_injected_random_numbers)
{
	FOR_BOTH_ORDERS(order)
	{
		for (uint32_t victim = 1; victim < 5; victim++) {
			struct lone l = { 0 };

			lone_open(&l, 5, (struct hive_worker_options){ .order = order });
			for (int i = 1; i < 5; i++)
				give_local(&l, i, i, i);
			fake_push_random(&l.f, fake_random(victim, 5));
			fake_log_clear();
			lone_beat(&l, 0);
			for (uint32_t i = 1; i < 5; i++)
				CHECK_EQ(local_size(&l.w[i]->local), i != victim);
			CHECK_EQ(atoi(fake_log()), victim);
			lone_close(&l);
		}
	}
}

/* who draws itself goes on to another; nobody robs himself. */
TEST(a_worker_that_draws_itself_takes_another_victim)
{
	FOR_BOTH_ORDERS(order)
	{
		struct lone l = { 0 };

		lone_open(&l, 3, (struct hive_worker_options){ .order = order });
		give_local(&l, 1, 1, 1);
		fake_push_random(&l.f, fake_random(0, 3));
		lone_beat(&l, 0);
		CHECK_EQ(local_size(&l.w[1]->local), 0);
		CHECK_EQ(load_relaxed(&l.w[0]->stats.stolen), 1);
		lone_close(&l);
	}
}

/* it looks at so many victims and no more; the first success ends the search. */
TEST(a_theft_tries_a_few_victims_and_ends_at_the_first_success)
{
	FOR_BOTH_ORDERS(order)
	{
		struct lone l = { 0 };

		lone_open(&l, 6, (struct hive_worker_options){ .steal_attempts = 2, .order = order });
		give_local(&l, 3, 1, 1);
		fake_push_random(&l.f, fake_random(1, 6)); /* 1 and 2 have nothing, and 3 would be the third */
		lone_beat(&l, 0);
		CHECK_EQ(load_relaxed(&l.w[0]->stats.stolen), 0);
		give_local(&l, 2, 2, 2);
		fake_push_random(&l.f, fake_random(1, 6)); /* 2 has something now, so nobody looks at 3 */
		lone_beat(&l, 0);
		CHECK_EQ(load_relaxed(&l.w[0]->stats.stolen), 1);
		CHECK_EQ(local_size(&l.w[2]->local), 0);
		CHECK_EQ(local_size(&l.w[3]->local), 1);
		lone_close(&l);
	}
}

/* half of the victim's tasks, the oldest first: one runs at once, the others go into the thief's queue. */
TEST(half_of_the_victims_tasks_the_oldest_are_stolen)
{
	struct lone l = { 0 };

	lone_open(&l, 2, (struct hive_worker_options){ 0 });
	give_local(&l, 1, 1, 9);
	fake_log_clear();
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "1");
	CHECK_EQ(local_size(&l.w[0]->local), 4);
	CHECK_EQ(load_relaxed(&l.w[0]->stats.stolen), 5);
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "1 5 4 3 2");
	lone_beat(&l, 1);
	CHECK_STR(fake_log(), "1 5 4 3 2 9 8 7 6");
	lone_close(&l);
}

/* never more than fits into the thief's queue, nor more than 16 at a time. */
TEST(a_theft_takes_no_more_than_fits_and_no_more_than_sixteen)
{
	struct lone l = { 0 };

	lone_open(&l, 2, (struct hive_worker_options){ 0 });
	give_local(&l, 1, 1, 100);
	lone_beat(&l, 0);
	CHECK_EQ(load_relaxed(&l.w[0]->stats.stolen), 16);
	CHECK_EQ(local_size(&l.w[0]->local), 15); /* one has run */
	CHECK_EQ(local_size(&l.w[1]->local), 84);
	lone_close(&l);
	memset(&l, 0, sizeof l);
	lone_open(&l, 2, (struct hive_worker_options){ .local_capacity = 4 });
	give_local(&l, 1, 1, 4);
	lone_beat(&l, 0);
	CHECK_EQ(load_relaxed(&l.w[0]->stats.stolen), 2);
	CHECK_EQ(local_size(&l.w[0]->local), 1);
	lone_close(&l);
}

/* a single task can be stolen too: it must not wait behind a long one. */
TEST(the_last_task_of_a_busy_worker_can_be_stolen)
{
	FOR_BOTH_ORDERS(order)
	{
		struct lone l = { 0 };

		lone_open(&l, 2, (struct hive_worker_options){ .order = order });
		give_local(&l, 1, 1, 1);
		fake_log_clear();
		lone_beat(&l, 0);
		CHECK_EQ(local_size(&l.w[1]->local), 0);
		CHECK_STR(fake_log(), "1");
		lone_close(&l);
	}
}

/* private tasks, letters and timers are nobody else's. */
TEST(private_tasks_letters_and_timers_are_never_stolen)
{
	FOR_BOTH_ORDERS(order)
	{
		struct lone l = { 0 };

		lone_open(&l, 2, (struct hive_worker_options){ .order = order });
		CHECK_OK(hive_post_to(l.f.hive, l.ids[1], fake_note, number(1)));
		lone_become(&l, 1);
		CHECK_OK(hive_post_self(fake_note, number(2)));
		CHECK_OK(hive_post_self_after(0, fake_note, number(3), NULL));
		lone_become(&l, LONE_NOBODY);
		fake_log_clear();
		for (int i = 0; i < 5; i++)
			lone_beat(&l, 0);
		CHECK_STR(fake_log(), "");
		CHECK_EQ(load_relaxed(&l.w[0]->stats.stolen), 0);
		lone_beat(&l, 1);
		CHECK_STR(fake_log(), "2 1 3");
		lone_close(&l);
	}
}

static struct lone mixed;
static uint32_t mixed_ids[3];

/* Worker 0 ordinary, worker 1 with no_steal, worker 2 with stealing switched off for itself alone. */
static void open_mixed(enum hive_order order)
{
	struct hive_worker_options options[3] = { { 0 }, { .no_steal = true }, { .steal_attempts = HIVE_OFF } };

	memset(&mixed, 0, sizeof mixed);
	fake_create(&mixed.f, (struct hive_options){ 0 });
	for (int i = 0; i < 3; i++) {
		options[i].order = order;
		options[i].core = &fake_core;
		options[i].core_arg = &mixed.scripts[i];
		CHECK_OK(hive_attach(mixed.f.hive, &options[i], &mixed_ids[i]));
	}
	fake_start(&mixed.f);
	for (int i = 0; i < 3; i++) {
		mixed.w[i] = hive__slot(&mixed.f.hive->io, (uint32_t)i);
		mixed.w[i]->started = true;
	}
}

/* no_steal protects both ways; HIVE_OFF keeps a worker from stealing, not from being robbed. */
TEST(stealing_can_be_switched_off_per_worker)
{
	FOR_BOTH_ORDERS(order)
	{
		open_mixed(order);
		give_local(&mixed, 0, 1, 1);
		lone_beat(&mixed, 1);
		lone_beat(&mixed, 2);
		CHECK_EQ(local_size(&mixed.w[0]->local), 1);
		lone_close(&mixed);

		open_mixed(order);
		give_local(&mixed, 1, 1, 1);
		lone_beat(&mixed, 0);
		lone_beat(&mixed, 2);
		CHECK_EQ(local_size(&mixed.w[1]->local), 1);
		lone_close(&mixed);

		open_mixed(order);
		give_local(&mixed, 2, 1, 1);
		lone_beat(&mixed, 0);
		CHECK_EQ(local_size(&mixed.w[2]->local), 0);
		lone_close(&mixed);
	}
}

/* a worker that was taken out of the hive may be busy with its last task for long; what waits behind it is taken
 * by the others meanwhile, and nothing is lost.                                                                            */
TEST(a_worker_that_leaves_can_still_be_stolen_from)
{
	FOR_BOTH_ORDERS(order)
	{
		struct lone l = { 0 };

		lone_open(&l, 3, (struct hive_worker_options){ .order = order });
		give_local(&l, 1, 1, 3);
		CHECK_ERR(hive_detach(l.f.hive, l.ids[1], HIVE_NOWAIT),
		          -EINPROGRESS); /* it has not made its last beat */
		fake_push_random(&l.f, fake_random(1, 3));
		fake_log_clear();
		lone_beat(&l, 0);
		/* Two are its loot, of which it runs one at once; of the ring, without the newest, one is half. */
		CHECK_EQ(local_size(&l.w[0]->local), 1 - fake_beside(order));
		CHECK_EQ(local_size(&l.w[1]->local), 1 + fake_beside(order));
		fake_settle(&l.f);
		CHECK_EQ(strlen(fake_log()), strlen("1 2 3"));
		lone_close(&l);
	}
}

/* ---- with threads ---- */

static _Atomic(int64_t) left;
static _Atomic(bool) over;
static _Atomic(int) stirrings;

static void breed(void *arg)
{
	intptr_t depth = (intptr_t)arg;

	for (int i = 0; i < 2 && depth > 0; i++) {
		atomic_fetch_add(&left, 1);
		CHECK_OK(hive_post_local(breed, (void *)(depth - 1)));
	}
	atomic_fetch_sub(&left, 1); /* last: while anybody is at it, the count is not zero */
}

/* two workers that rob each other hold at most one lock at a time (of queues that have locks), so nothing
 * jams.                                                                                                          */
TEST(workers_that_rob_each_other_without_end_never_lock_up)
{
	FOR_BOTH_ORDERS(order)
	{
		struct hive_worker_options io = { .local_capacity = 16, .spin_ns = HIVE_OFF, .order = order };
		struct hive_options options = { .io_workers = 2, .io = &io };
		struct hive *hive;

		CHECK_OK(hive_create(&options, &hive));
		CHECK_OK(hive_start(hive));
		for (int round = 0; round < 10; round++) {
			atomic_store(&left, 1);
			CHECK_OK(hive_post(hive, breed, number(test_slowness() > 1 ? 8 : 12)));
			while (atomic_load(&left) > 0)
				sched_yield();
		}
		CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
		CHECK_OK(hive_join(hive, HIVE_FOREVER));
		CHECK_OK(hive_destroy(hive));
	}
}

static enum hive_order stirred_order;

static void *stir(void *arg)
{
	struct hive *hive = arg;

	while (!atomic_load(&over)) {
		struct hive_worker_options options = { .local_capacity = 16, .order = stirred_order };
		uint32_t worker;

		CHECK_OK(hive_attach(hive, &options, &worker));
		CHECK_OK(hive_detach(hive, worker, HIVE_FOREVER));
		atomic_fetch_add(&stirrings, 1);
	}
	return NULL;
}

/* the list of workers is read by thieves while others come and go; nothing is lost. */
TEST(stealing_goes_on_while_workers_are_attached_and_detached)
{
	FOR_BOTH_ORDERS(order)
	{
		struct hive_worker_options io = { .local_capacity = 16, .order = order };
		struct hive_options options = { .io_workers = 2, .io = &io };
		struct hive_report report;
		struct hive *hive;
		pthread_t thread;

		stirred_order = order;
		atomic_store(&over, false);
		atomic_store(&stirrings, 0);
		CHECK_OK(hive_create(&options, &hive));
		CHECK_OK(hive_start(hive));
		CHECK_EQ(pthread_create(&thread, NULL, stir, hive), 0);
		for (int round = 0; round < 10 || atomic_load(&stirrings) < 20; round++) {
			atomic_store(&left, 1);
			CHECK_OK(hive_post(hive, breed, number(8)));
			while (atomic_load(&left) > 0)
				sched_yield();
		}
		atomic_store(&over, true);
		pthread_join(thread, NULL);
		CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
		CHECK_OK(hive_join(hive, HIVE_FOREVER));
		CHECK_OK(hive_report_read(hive, &report));
		CHECK_EQ(report.posted, report.ran);
		CHECK_OK(hive_destroy(hive));
	}
}

/* The owner found its queue full, and thieves emptied it before it could spill. */
TEST(a_spill_of_nothing_is_no_error_and_counts_nothing)
{
	FOR_BOTH_ORDERS(order)
	{
		struct lone l = { 0 };

		lone_open(&l, 1, (struct hive_worker_options){ .order = order });
		lone_become(&l, 0);
		CHECK_OK(hive__spill(l.w[0]));
		CHECK_EQ(load_relaxed(&l.w[0]->stats.spilled), 0);
		CHECK(pool_is_empty(&l.f.hive->pool));
		lone_close(&l);
	}
}
