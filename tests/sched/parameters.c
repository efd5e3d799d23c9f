/* SPDX-License-Identifier: MIT */
/* The parameters: what they are by default, and that each option does what it says. */
#include <limits.h>
#include <sys/resource.h>

#include "support/lone.h"
#include "support/real.h"

static const struct worker_setup *setup_of(struct fake *f, uint32_t index)
{
	return &hive__slot(&f->hive->io, index)->setup;
}

/* … R-149: what the founding texts ask for is the default, from one header, under both presets. */
TEST(defaults_are_the_numbers_that_were_asked_for)
{
	for (int preset = HIVE_PRESET_DEFAULT; preset <= HIVE_PRESET_ROPHIVE; preset++) {
		struct fake f = { 0 };
		const struct worker_setup *s;

		fake_create(&f, (struct hive_options){
					.io_workers = 1, .compute_workers = 1, .preset = (enum hive_preset)preset });
		s = setup_of(&f, 0);
		CHECK_EQ(s->pool_probe_interval, 47);
		CHECK_EQ(s->pool_batch, 16);
		CHECK(s->steal_attempts >= 2 && s->steal_attempts <= 4);
		CHECK_EQ(s->outbox, true);
		CHECK_EQ(s->stealing, true);
		CHECK_EQ(hive__slot(&f.hive->io, 0)->local_capacity, TUNE_LOCAL_CAPACITY);
		CHECK_EQ(s->local_budget, tune_local_budget(TUNE_LOCAL_CAPACITY));
		CHECK_EQ(s->private_budget, TUNE_PRIVATE_BUDGET);
		CHECK_EQ(s->timer_budget, TUNE_TIMER_BUDGET);
		CHECK_EQ(s->slice_ns, TUNE_SLICE_NS);
		CHECK_EQ(s->nice, HIVE_OFF);
		CHECK_EQ(TUNE_POOL_PROBE_INTERVAL, 47);
		CHECK_EQ(TUNE_POOL_BATCH, 16);
		fake_destroy(&f);
	}
}

/* the founding preset has no further policy: no turn for the oldest task, and nothing else differs. */
TEST(the_founding_preset_has_no_policy_of_its_own)
{
	struct fake f = { 0 }, g = { 0 };
	struct worker_setup a, b;

	fake_create(&f, (struct hive_options){ .io_workers = 1, .preset = HIVE_PRESET_ROPHIVE });
	fake_create(&g, (struct hive_options){ .io_workers = 1 });
	a = *setup_of(&f, 0);
	b = *setup_of(&g, 0);
	CHECK_EQ(a.newest_run, 0);
	CHECK_EQ(b.newest_run, TUNE_NEWEST_RUN);
	b.newest_run = 0;
	CHECK_EQ(a.local_budget, b.local_budget);
	CHECK_EQ(a.pool_probe_interval, b.pool_probe_interval);
	CHECK_EQ(a.pool_batch, b.pool_batch);
	CHECK_EQ(a.steal_attempts, b.steal_attempts);
	CHECK_EQ(a.outbox, b.outbox);
	fake_destroy(&f);
	fake_destroy(&g);
}

/* the local budget is a function of the queue's capacity, in steps. */
TEST(the_local_budget_follows_from_the_queues_capacity)
{
	int32_t last = 0;

	for (int32_t capacity = 4; capacity <= 65536; capacity *= 2) {
		struct lone l = { 0 };
		int32_t budget;

		lone_open(&l, 1, (struct hive_worker_options){ .local_capacity = capacity });
		budget = l.w[0]->setup.local_budget;
		CHECK_EQ(l.w[0]->local_capacity, capacity);
		CHECK_EQ(budget, tune_local_budget(capacity));
		CHECK(budget >= last && budget > 0 &&
		      budget <= capacity); /* never falls, never more than there can be */
		last = budget;
		lone_close(&l);
	}
}

/* each worker can have its own; the options of the hive are a template for those that it makes itself. */
TEST(options_override_each_parameter_for_each_worker)
{
	struct fake f = { 0 };
	struct hive_worker_options io = { .local_capacity = 8,
		                          .local_budget = 1,
		                          .private_budget = 2,
		                          .timer_budget = 3,
		                          .pool_probe_interval = 4,
		                          .pool_batch = 5,
		                          .steal_attempts = 6,
		                          .slice_ns = 7,
		                          .no_outbox = true,
		                          .no_steal = false };
	struct hive_worker_options other = { .steal_attempts = HIVE_OFF };
	const struct worker_setup *s;

	fake_create(&f, (struct hive_options){ .io_workers = 2, .io = &io });
	CHECK_OK(hive_attach(f.hive, &other, NULL));
	for (uint32_t i = 0; i < 2; i++) {
		s = setup_of(&f, i);
		CHECK_EQ(hive__slot(&f.hive->io, i)->local_capacity, 8);
		CHECK_EQ(s->local_budget, 1);
		CHECK_EQ(s->private_budget, 2);
		CHECK_EQ(s->timer_budget, 3);
		CHECK_EQ(s->pool_probe_interval, 4);
		CHECK_EQ(s->pool_batch, 5);
		CHECK_EQ(s->steal_attempts, 6);
		CHECK_EQ(s->slice_ns, 7);
		CHECK_EQ(s->outbox, false);
	}
	s = setup_of(&f, 2);
	CHECK_EQ(s->steal_attempts, HIVE_OFF);
	CHECK_EQ(s->pool_batch, TUNE_POOL_BATCH);
	fake_destroy(&f);
}

/* what makes no sense is refused, and nothing is attached. */
TEST(parameters_out_of_their_domain_are_refused)
{
	static const struct hive_worker_options bad[] = {
		{ .local_capacity = 3 },
		{ .local_capacity = 2 },
		{ .local_capacity = 131072 },
		{ .local_capacity = -4 },
		{ .local_capacity = 48 },
		{ .local_budget = -2 },
		{ .private_budget = -1 },
		{ .timer_budget = -1 },
		{ .pool_probe_interval = -1 },
		{ .pool_batch = -1 },
		{ .pool_batch = 257 },
		{ .steal_attempts = -2 },
		{ .io_interval = -1 },
		{ .order = (enum hive_order)3 },
		{ .order = (enum hive_order) - 1 },
		{ .victim = (enum hive_victim)4 },
		{ .slice_ns = -1 },
		{ .spin_ns = -2 },
		{ .nice = 20 },
		{ .nice = -21 },
		{ .realtime = 100 },
		{ .realtime = -2 },
		{ .cpu_count = 1 },
		{ .kind = (enum hive_worker_kind)2 },
		{ .reserved = { 0, 1 } },
		{ .local_budget = INT_MIN },
	};
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK_ERR(hive_attach(f.hive, &bad[i], NULL), -EINVAL);
	CHECK_EQ(hive_workers(f.hive, NULL, 0), 1);
	fake_destroy(&f);
}

static struct hive *the_hive;

static void post_ten(void *arg)
{
	(void)arg;
	for (int i = 1; i <= 10; i++)
		CHECK_OK(hive_post(the_hive, fake_note, number(i)));
	fake_note(number((int)pool_length(&the_hive->pool)));
}

/* with the outbox posts from inside wait for the end of the beat, without it they do not. */
TEST(the_outbox_can_be_switched_off_per_worker)
{
	for (int off = 0; off < 2; off++) {
		struct lone l = { 0 };

		lone_open(&l, 1, (struct hive_worker_options){ .no_outbox = off });
		the_hive = l.f.hive;
		fake_log_clear();
		lone_become(&l, 0);
		CHECK_OK(hive_post_self(post_ten, NULL));
		lone_beat(&l, 0);
		CHECK_EQ(atoi(fake_log()), off ? 10 : 0);
		lone_beat(&l, 0);
		lone_beat(&l, 0);
		CHECK_EQ(strlen(fake_log()), strlen(off ? "10 1 2 3 4 5 6 7 8 9 10" : "0 1 2 3 4 5 6 7 8 9 10"));
		lone_close(&l);
	}
}

/* the capacity is that of the worker: so many fit, and the next one spills half. */
TEST(the_local_capacity_is_kept_to_the_task)
{
	FOR_BOTH_ORDERS(order)
	{
		for (int32_t capacity = 4; capacity <= 64; capacity *= 2) {
			struct lone l = { 0 };

			lone_open(&l, 1, (struct hive_worker_options){ .local_capacity = capacity, .order = order });
			lone_become(&l, 0);
			for (int i = 0; i < capacity + fake_beside(order); i++)
				CHECK_OK(hive_post_local(fake_note, number(1)));
			CHECK_EQ(local_size(&l.w[0]->local), capacity + fake_beside(order));
			CHECK_EQ(pool_length(&l.f.hive->pool), 0);
			CHECK_OK(hive_post_local(fake_note, number(1)));
			CHECK_EQ(local_size(&l.w[0]->local), capacity / 2 + 1 + fake_beside(order));
			CHECK_EQ(pool_length(&l.f.hive->pool), capacity / 2);
			lone_close(&l);
		}
	}
}

/* the batch is the worker's own. */
TEST(the_pool_batch_is_kept_to_the_task)
{
	FOR_BOTH_ORDERS(order)
	{
		static const int32_t batches[] = { 1, 2, 16, 100, 256 };

		for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
			struct lone l = { 0 };

			lone_open(&l, 1, (struct hive_worker_options){ .pool_batch = batches[i], .order = order });
			for (int j = 0; j < 300; j++)
				CHECK_OK(hive_post(l.f.hive, fake_note, number(1)));
			lone_beat(&l, 0);
			CHECK_EQ(local_size(&l.w[0]->local), batches[i]);
			fake_log_clear();
			lone_close(&l);
		}
	}
}

static int budget_ran;

static void count(void *arg)
{
	(void)arg;
	budget_ran++;
}

/* the budgets of steps 2, 3 and 4 are kept to the task. */
TEST(budgets_are_kept_to_the_task)
{
	struct lone l = { 0 };

	lone_open(&l, 1, (struct hive_worker_options){ .private_budget = 3, .timer_budget = 5, .local_budget = 7 });
	lone_become(&l, 0);
	for (int i = 0; i < 20; i++)
		CHECK_OK(hive_post_self(count, NULL));
	budget_ran = 0;
	lone_beat(&l, 0);
	CHECK_EQ(budget_ran, 3);
	for (int i = 0; i < 20; i++)
		CHECK_OK(hive_post_self_after(0, count, NULL, NULL));
	budget_ran = 0;
	lone_beat(&l, 0);
	CHECK_EQ(budget_ran, 3 + 5);
	for (int i = 0; i < 20; i++)
		CHECK_OK(hive_post_local(count, NULL));
	budget_ran = 0;
	lone_beat(&l, 0);
	CHECK_EQ(budget_ran, 3 + 5 + 7);
	lone_close(&l);
}

static int nice_seen[2];

static void see_nice(void *arg)
{
	errno = 0;
	nice_seen[(intptr_t)arg] = getpriority(PRIO_PROCESS, 0); /* of this thread, on Linux */
	CHECK_EQ(errno, 0);
}

/* compute workers give way to IO workers: they are at least so nice, and IO workers as nice as we are. */
TEST(compute_workers_are_nicer_than_io_workers)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 1 });
	int own = getpriority(PRIO_PROCESS, 0);

	CHECK_OK(hive_post(hive, see_nice, number(0)));
	CHECK_OK(hive_post_compute(hive, see_nice, number(1)));
	real_end(hive, HIVE_DRAIN);
	CHECK_EQ(nice_seen[0], own);
	CHECK(nice_seen[1] >= TUNE_COMPUTE_NICE && nice_seen[1] >= own);
}

static int next_of_crowd;

static void in_order(void *arg)
{
	CHECK_EQ((intptr_t)arg, next_of_crowd);
	next_of_crowd++;
}

/* Tiny tasks come in larger batches, and two of them run in a beat: the batch is gone before the pool is looked at the next time. */
TEST(a_crowd_of_tiny_tasks_keeps_its_order)
{
	struct hive_worker_options two = { .local_budget = 2 };
	struct fake f = { 0 };
	struct hive_task tasks[1000];

	next_of_crowd = 0;
	for (int i = 0; i < 1000; i++)
		tasks[i] = (struct hive_task){ in_order, number(i) };
	fake_create(&f, (struct hive_options){ .io_workers = 1, .io = &two });
	fake_start(&f);
	CHECK_OK(hive_post_many(f.hive, tasks, 1000));
	fake_settle(&f);
	CHECK_EQ(next_of_crowd, 1000);
	fake_destroy(&f);
}
