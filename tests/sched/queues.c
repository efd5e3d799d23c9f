/* SPDX-License-Identifier: MIT */
/* The queues as their users see them: private, local, timers, inbox, two pools (R-36 … R-46, and what R-47 … R-64 mean for
 * tasks). The containers by themselves: tests/unit.                                                                        */
#include <pthread.h>
#include <sched.h>

#include "support/fake.h"
#include "support/real.h"
#include "test.h"

static void *n(int number)
{
	return (void *)(intptr_t)number;
}

static int ran;
static uint32_t ran_on;

static void count(void *arg)
{
	(void)arg;
	ran++;
	ran_on = hive_worker_current();
}

static struct hive_worker_stats worker_stats(const struct fake *f, uint32_t id)
{
	struct hive_worker_stats stats;

	CHECK_OK(hive_worker_stats_read(f->hive, id, &stats));
	return stats;
}

static struct hive_stats stats_of(const struct fake *f)
{
	struct hive_stats stats;

	CHECK_OK(hive_stats_read(f->hive, &stats));
	return stats;
}

static struct worker *io_worker(struct fake *f, uint32_t index)
{
	return hive__slot(&f->hive->io, index);
}

static void on_fire(struct hive_timer *timer)
{
	(void)timer;
}

static void use_queues_of_io_workers(void *arg)
{
	struct hive_timer timer;

	(void)arg;
	hive_timer_init(&timer, on_fire, NULL);
	CHECK_MISUSE(hive_post_local(count, NULL), -EPERM);
	CHECK_MISUSE(hive_post_self(count, NULL), -EPERM);
	CHECK_MISUSE(hive_post_self_after(0, count, NULL, NULL), -EPERM);
	CHECK_MISUSE(hive_timer_start(&timer, 0, 0), -EPERM);
	ran++;
}

/* a compute worker has no private queue, local queue, timers or inbox, neither for others nor for itself. */
TEST(a_compute_worker_has_none_of_the_queues_of_an_io_worker)
{
	struct fake f = { 0 };
	struct hive_worker_stats compute;

	fake_create(&f, (struct hive_options){ .io_workers = 1, .compute_workers = 1 });
	fake_start(&f);
	CHECK_ERR(hive_post_to(f.hive, f.workers[1].id, count, NULL), -EINVAL);
	CHECK_ERR(hive_post_compute_then(f.hive, count, f.workers[1].id, count, NULL), -EINVAL);
	ran = 0;
	CHECK_OK(hive_post_compute(f.hive, use_queues_of_io_workers, NULL));
	fake_settle(&f);
	CHECK_EQ(ran, 1);
	compute = worker_stats(&f, f.workers[1].id);
	CHECK_EQ(compute.local + compute.private_tasks + compute.timers, 0);
	fake_destroy(&f);
}

/* whoever else is idle, a private task waits for its own worker; there they run in order. */
TEST(private_tasks_run_on_their_worker_alone_and_in_order)
{
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 3 });
	fake_start(&f);
	fake_log_clear();
	for (int i = 1; i <= 5; i++)
		CHECK_OK(hive_post_to(f.hive, f.workers[0].id, fake_note, n(i)));
	for (int i = 0; i < 10; i++) {
		fake_step(&f, f.workers[1].id);
		fake_step(&f, f.workers[2].id);
	}
	CHECK_STR(fake_log(), "");
	fake_step(&f, f.workers[0].id);
	CHECK_STR(fake_log(), "1 2 3 4 5");
	fake_destroy(&f);
}

static void post_self_and_after(void *arg)
{
	(void)arg;
	for (int i = 1; i <= 3; i++) {
		CHECK_OK(hive_post_self(fake_note, n(i)));
		CHECK_OK(hive_post_self_after(0, fake_note, n(5 + i), NULL));
	}
}

/* also not when they already lie in the private queue of a busy worker, nor its timers that are due. */
TEST(neither_private_tasks_nor_timers_are_ever_stolen)
{
	struct fake f = { 0 };
	struct hive_worker_options slow = { .private_budget = 1, .timer_budget = 1 };

	fake_create(&f, (struct hive_options){ .io_workers = 2, .io = &slow });
	fake_start(&f);
	fake_log_clear();
	CHECK_OK(hive_post_to(f.hive, f.workers[0].id, post_self_and_after, NULL));
	fake_step(&f, f.workers[0].id);
	for (int i = 0; i < 10; i++)
		fake_step(&f, f.workers[1].id);
	CHECK_STR(fake_log(), "6");
	CHECK_EQ(worker_stats(&f, f.workers[0].id).private_tasks, 3);
	CHECK_EQ(worker_stats(&f, f.workers[0].id).timers, 2);
	CHECK_EQ(worker_stats(&f, f.workers[1].id).stolen, 0);
	fake_settle(&f);
	CHECK_STR(fake_log(), "6 1 7 2 8 3");
	fake_destroy(&f);
}

static void post_local_three(void *arg)
{
	(void)arg;
	for (int i = 1; i <= 3; i++)
		CHECK_OK(hive_post_local(fake_note, n(i)));
}

/* the owner takes the newest, a thief the oldest. */
TEST(the_owner_takes_the_newest_local_task_and_a_thief_the_oldest)
{
	struct fake f = { 0 };
	struct hive_worker_options one = { .local_budget = 1 };

	fake_create(&f, (struct hive_options){ .io_workers = 2, .io = &one });
	fake_start(&f);
	fake_log_clear();
	CHECK_OK(hive_post_to(f.hive, f.workers[0].id, post_local_three, NULL));
	fake_step(&f, f.workers[0].id);
	CHECK_STR(fake_log(), "3");
	fake_step(&f, f.workers[1].id);
	CHECK_STR(fake_log(), "3 1");
	CHECK_EQ(worker_stats(&f, f.workers[1].id).stolen, 1);
	fake_step(&f, f.workers[0].id);
	CHECK_STR(fake_log(), "3 1 2");
	fake_destroy(&f);
}

enum { PLENTY = 5000 };

static void post_plenty_here(void *arg)
{
	(void)arg;
	for (int i = 0; i < PLENTY; i++) {
		CHECK_OK(hive_post_self(count, NULL));
		CHECK_OK(hive_post_self_after(0, count, NULL, NULL));
		CHECK_OK(hive_post_local(count, NULL));
		CHECK_OK(hive_post(hive_current(), count, NULL));
	}
	CHECK(local_size(&hive__current()->local) <= 4 + (uint64_t)hive__current()->local.oldest);
}

/* all but the local queue take what comes; even that loses nothing. */
TEST(only_the_local_queue_has_a_limit)
{
	FOR_BOTH_ORDERS(order)
	{
		struct fake f = { 0 };
		struct hive_worker_options small = { .local_capacity = 4, .order = order };

		fake_create(&f, (struct hive_options){ .io_workers = 1, .io = &small, .compute_workers = 1 });
		fake_start(&f);
		ran = 0;
		for (int i = 0; i < PLENTY; i++) {
			CHECK_OK(hive_post(f.hive, count, NULL));
			CHECK_OK(hive_post_to(f.hive, f.workers[0].id, count, NULL));
			CHECK_OK(hive_post_after(f.hive, 0, count, NULL, NULL));
			CHECK_OK(hive_post_compute(f.hive, count, NULL));
		}
		CHECK_OK(hive_post_to(f.hive, f.workers[0].id, post_plenty_here, NULL));
		fake_settle(&f);
		CHECK_EQ(ran, 8 * PLENTY);
		fake_destroy(&f);
	}
}

static uint64_t local_seen, pool_seen;

static void fill_local(void *tasks)
{
	for (int i = 0; i < (int)(intptr_t)tasks; i++)
		CHECK_OK(hive_post_local(fake_note, n(i)));
	local_seen = local_size(&hive__current()->local);
	pool_seen = pool_length(&hive__current()->hive->pool);
}

/* the limit is each worker's own. */
TEST(the_limit_of_the_local_queue_is_set_per_worker)
{
	FOR_BOTH_ORDERS(order)
	{
		static const int32_t capacities[] = { 4, 16, 64 };
		struct fake f = { 0 };

		fake_create(&f, (struct hive_options){ 0 });
		for (int i = 0; i < 3; i++) {
			struct hive_worker_options o = { .local_capacity = capacities[i],
				                         .no_steal = true,
				                         .order = order };

			CHECK_OK(hive_attach(f.hive, &o, NULL));
		}
		fake_start(&f);
		for (int i = 0; i < 3; i++) {
			int fits = capacities[i] + fake_beside(order);

			CHECK_OK(hive_post_to(f.hive, f.workers[i].id, fill_local, n(fits)));
			fake_step(&f, f.workers[i].id);
			CHECK_EQ(local_seen, fits);
			CHECK_EQ(pool_seen, 0);
			fake_settle(&f);
			CHECK_OK(hive_post_to(f.hive, f.workers[i].id, fill_local, n(fits + 1)));
			fake_log_clear();
			fake_step(&f, f.workers[i].id);
			CHECK(local_seen <= (uint64_t)fits);
			CHECK(pool_seen > 0);
			fake_settle(&f);
			fake_log_clear();
		}
		fake_destroy(&f);
	}
}

/* full: the older half goes to the pool, in one splice and with one wake; the new task stays here. The idle
 * neighbour is served by the pool, in order, and does not steal although there would be something.                      */
TEST(a_full_local_queue_spills_its_older_half_to_the_pool)
{
	FOR_BOTH_ORDERS(order)
	{
		struct fake f = { 0 };
		struct hive_worker_options eight = { .local_capacity = 8, .local_budget = 1, .order = order };
		uint32_t owner, other;

		fake_create(&f, (struct hive_options){ .io_workers = 2, .io = &eight });
		fake_start(&f);
		owner = f.workers[0].id;
		other = f.workers[1].id;
		fake_settle(&f);
		fake_reset_wakes(&f);
		fake_log_clear();
		CHECK_OK(hive_post_to(f.hive, owner, fill_local, n(9 + fake_beside(order))));
		fake_step(&f, owner);
		CHECK_EQ(local_seen, 5 + fake_beside(order));
		CHECK_EQ(pool_seen, 4);
		CHECK_EQ(worker_stats(&f, owner).spilled, 4);
		CHECK_EQ(stats_of(&f).spills, 4);
		CHECK_EQ(fake_worker(&f, other)->wakes, 1);
		CHECK_STR(fake_log(), order == HIVE_ORDER_OLDEST ? "9" : "8");
		fake_log_clear();
		for (int i = 0; i < 6; i++)
			fake_step(&f, other);
		CHECK_EQ(strncmp(fake_log(), "0 1 2 3", 7), 0);
		CHECK_EQ(stats_of(&f).pool, 0);
		for (int i = 0; i < 10; i++)
			fake_step(&f, owner);
		fake_step(&f, other);
		CHECK_EQ(stats_of(&f).ran, 10 + fake_beside(order));
		fake_destroy(&f);
	}
}

/* with spilled work in the pool nobody steals. */
TEST(the_pool_is_served_before_anybody_steals)
{
	FOR_BOTH_ORDERS(order)
	{
		struct fake f = { 0 };
		struct hive_worker_options four = {
			.local_capacity = 4, .local_budget = 1, .pool_batch = 1, .order = order
		};

		fake_create(&f, (struct hive_options){ .io_workers = 2, .io = &four });
		fake_start(&f);
		fake_log_clear();
		CHECK_OK(hive_post_to(f.hive, f.workers[0].id, fill_local, n(12)));
		fake_step(&f, f.workers[0].id);
		while (stats_of(&f).pool > 0) {
			fake_step(&f, f.workers[1].id);
			CHECK_EQ(worker_stats(&f, f.workers[1].id).stolen, 0);
		}
		fake_step(&f, f.workers[1].id);
		fake_step(&f, f.workers[1].id);
		fake_step(&f, f.workers[1].id);
		CHECK(worker_stats(&f, f.workers[1].id).stolen > 0);
		for (int i = 0; i < 8; i++)
			for (int k = 0; k < 2; k++)
				fake_step(&f, f.workers[k].id);
		CHECK_EQ(stats_of(&f).ran, 13);
		fake_destroy(&f);
	}
}

static struct fake *poor;

static void overfill_without_memory(void *arg)
{
	for (int i = 0; i < (int)(intptr_t)arg; i++)
		CHECK_OK(hive_post_local(fake_note, n(i)));
	poor->fail_at = poor->allocations + 1;
	poor->sticky = true;
	for (int i = 0; i < 3; i++)
		CHECK_ERR(hive_post_local(fake_note, n(98)), -ENOMEM);
	poor->fail_at = 0;
	CHECK_OK(hive_post_local(fake_note, n(99)));
}

/* without memory for the spill the post is refused, and what lies in the queue stays there. */
TEST(a_spill_without_memory_refuses_the_post_and_loses_nothing)
{
	FOR_BOTH_ORDERS(order)
	{
		struct fake f = { 0 };
		struct hive_worker_options eight = { .local_capacity = 8, .order = order };

		fake_create(&f, (struct hive_options){ .io_workers = 1, .io = &eight, .preset = HIVE_PRESET_ROPHIVE });
		poor = &f;
		fake_start(&f);
		fake_log_clear();
		CHECK_OK(hive_post_to(f.hive, f.workers[0].id, overfill_without_memory, n(8 + fake_beside(order))));
		fake_settle(&f);
		CHECK_EQ(strlen(fake_log()), strlen("0 1 2 3 4 5 6 7 99") + 2 * (size_t)fake_beside(order));
		for (int i = 0; i < 8 + fake_beside(order); i++)
			CHECK(strchr(fake_log(), '0' + i));
		CHECK(strstr(fake_log(), "99"));
		fake_destroy(&f);
	}
}

/* obtained work gets done. Two workers that beat in lock-step must not hand one task to and fro. */
TEST(one_task_is_not_stolen_back_and_forth)
{
	FOR_BOTH_ORDERS(order)
	{
		struct fake f = { 0 };
		struct hive_worker_options o = { .order = order };

		fake_create(&f, (struct hive_options){ .io_workers = 2, .io = &o });
		fake_start(&f);
		ran = 0;
		CHECK_OK(hive_post(f.hive, count, NULL));
		for (int i = 0; i < 20; i++)
			for (int k = 0; k < 2; k++)
				fake_step(&f, f.workers[k].id);
		CHECK_EQ(ran, 1);
		fake_destroy(&f);
	}
}

/* a post from outside leaves a letter and touches neither private queue nor timers; the owner
 * empties the inbox in its next beat, all of it, in posting order.                                                     */
TEST(others_change_a_worker_by_letters_alone)
{
	struct fake f = { 0 };
	struct worker *w;

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	fake_start(&f);
	fake_settle(&f);
	w = io_worker(&f, 0);
	fake_log_clear();
	CHECK_OK(hive_post_to(f.hive, f.workers[0].id, fake_note, n(1)));
	CHECK_OK(hive_post_after(f.hive, HIVE_MS(1), fake_note, n(3), NULL));
	CHECK_OK(hive_post_to(f.hive, f.workers[0].id, fake_note, n(2)));
	CHECK(!w->mail.first);
	CHECK_EQ(timers_count(&w->timers), 0);
	CHECK(!inbox_is_empty(&w->inbox));
	fake_step(&f, f.workers[0].id);
	CHECK_STR(fake_log(), "1 2");
	CHECK_EQ(timers_count(&w->timers), 1);
	CHECK(inbox_is_empty(&w->inbox));
	fake_advance(&f, HIVE_MS(1));
	CHECK_STR(fake_log(), "1 2 3");
	fake_destroy(&f);
}

/* a wake without a reason ends the wait and changes nothing else, as often as it comes. */
TEST(a_wake_without_a_reason_has_no_other_effect)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 1 });
	struct hive_worker_stats before, after = { 0 };
	uint32_t ids[2];

	CHECK_EQ(hive_workers(hive, ids, 2), 2);
	for (int i = 0; i < 2; i++) {
		real_wait_asleep(hive, 2);
		CHECK_OK(hive_worker_stats_read(hive, ids[i], &before));
		lock_acquire(&hive->registry_lock);
		hive__kick(hive__slot(i == 0 ? &hive->io : &hive->compute, 0));
		lock_release(&hive->registry_lock);
		WAIT_UNTIL(hive_worker_stats_read(hive, ids[i], &after) == 0 && after.beats > before.beats);
		real_wait_asleep(hive, 2);
		CHECK_EQ(after.ran, before.ran);
		CHECK_EQ(after.events, before.events);
		CHECK_EQ(after.woken, before.woken);
	}
	CHECK_EQ(real_end(hive, HIVE_DRAIN).posted, 0);
}

enum { CROWD = 20000 };
static unsigned char times[CROWD];
static int left_to_run;
static struct gate all_done;

static void run_once(void *arg)
{
	__atomic_add_fetch(&times[(intptr_t)arg], 1, __ATOMIC_RELAXED);
	if (__atomic_sub_fetch(&left_to_run, 1, __ATOMIC_SEQ_CST) == 0)
		gate_open(&all_done);
}

static void post_crowd_locally(void *arg)
{
	for (int i = 0; i < (int)(intptr_t)arg; i++)
		CHECK_OK(hive_post_local(run_once, n(i)));
}

/* one owner that pushes and pops, others that steal: each task comes out exactly once. */
TEST(tasks_of_a_robbed_worker_run_exactly_once)
{
	FOR_BOTH_ORDERS(order)
	{
		struct hive_worker_options o = { .local_capacity = 64, .local_budget = 3, .order = order };
		struct hive *hive = real_start((struct hive_options){ .io_workers = 4, .io = &o });
		int crowd = CROWD / test_slowness();

		memset(times, 0, sizeof times);
		left_to_run = crowd;
		gate_init(&all_done);
		CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, post_crowd_locally, n(crowd)));
		gate_pass(&all_done);
		CHECK_EQ(real_end(hive, HIVE_DRAIN).ran, crowd + 1);
		for (int i = 0; i < crowd; i++)
			CHECK_EQ(times[i], 1);
		gate_destroy(&all_done);
	}
}

enum { WRITERS = 4 };
static struct hive *letter_hive;
static int last_of[WRITERS];

static void in_order_of_its_writer(void *arg)
{
	int writer = (int)((intptr_t)arg % WRITERS), number = (int)((intptr_t)arg / WRITERS);

	CHECK_EQ(number, last_of[writer] + 1);
	last_of[writer] = number;
	if (--left_to_run == 0)
		gate_open(&all_done);
}

static void *write_letters(void *arg)
{
	for (int i = 1; i <= CROWD / 4 / test_slowness(); i++)
		CHECK_OK(hive_post_to(letter_hive, HIVE_WORKER_MAIN, in_order_of_its_writer,
		                      n(i * WRITERS + (int)(intptr_t)arg)));
	return NULL;
}

/* many write at the same time, one reads; nothing is lost or doubled, and each writer's letters keep their
 * order.                                                                                                                   */
TEST(letters_of_many_writers_arrive_once_and_in_order)
{
	pthread_t threads[WRITERS];

	letter_hive = real_start((struct hive_options){ .io_workers = 2 });
	gate_init(&all_done);
	memset(last_of, 0, sizeof last_of);
	left_to_run = WRITERS * (CROWD / 4 / test_slowness());
	for (int i = 0; i < WRITERS; i++)
		CHECK_OK(pthread_create(&threads[i], NULL, write_letters, n(i)));
	gate_pass(&all_done);
	for (int i = 0; i < WRITERS; i++)
		CHECK_OK(pthread_join(threads[i], NULL));
	real_end(letter_hive, HIVE_DRAIN);
	gate_destroy(&all_done);
}

/* many are given in one splice (all there at once, one wake) and taken up to a batch at a time. */
TEST(the_pool_gives_at_most_a_batch_at_a_time)
{
	struct fake f = { 0 };
	struct hive_worker_options five = { .pool_batch = 5 };
	struct hive_task tasks[12];

	for (int i = 0; i < 12; i++)
		tasks[i] = (struct hive_task){ count, NULL };
	fake_create(&f, (struct hive_options){ .io_workers = 1, .io = &five });
	fake_start(&f);
	fake_settle(&f);
	fake_reset_wakes(&f);
	CHECK_OK(hive_post_many(f.hive, tasks, 12));
	CHECK_EQ(stats_of(&f).pool, 12);
	CHECK_EQ(f.wakes, 1);
	fake_step(&f, f.workers[0].id);
	CHECK_EQ(stats_of(&f).pool, 7);
	ran = 0;
	fake_settle(&f);
	CHECK_EQ(stats_of(&f).pool, 0);
	CHECK_EQ(stats_of(&f).ran, 12);
	fake_destroy(&f);
}
