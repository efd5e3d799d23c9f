/* SPDX-License-Identifier: MIT */
/* Memory: every allocation may fail, nothing leaks, and what was reserved is there (R-9, R-39, R-95; practices of R-29). */
#include "support/fake.h"
#include "test.h"

static int ran;

static void count(void *arg)
{
	(void)arg;
	ran++;
}

/* Lets the n-th allocation from now fail, once or from there on. */
static void fail_from(struct fake *f, int nth, bool sticky)
{
	f->allocations = 0;
	f->fail_at = nth;
	f->sticky = sticky;
}

static void fail_none(struct fake *f)
{
	f->fail_at = 0;
}

static int create_another(struct fake *f)
{
	struct hive_options o = { .host = &f->host, .io_workers = 2, .compute_workers = 2, .reserve_tasks = 2000 };
	struct hive *hive;
	int r = hive_create(&o, &hive);

	if (r == 0)
		CHECK_OK(hive_destroy(hive));
	return r;
}

static int attach_another(struct fake *f)
{
	uint16_t cpu = 0;
	struct hive_worker_options o = { .local_capacity = 8, .cpus = &cpu, .cpu_count = 1 };

	return hive_attach(f->hive, &o, NULL);
}

static int attach_compute(struct fake *f)
{
	return hive_attach(f->hive, &(struct hive_worker_options){ .kind = HIVE_WORKER_COMPUTE }, NULL);
}

static int post(struct fake *f)
{
	return hive_post(f->hive, count, NULL);
}

static int post_many(struct fake *f)
{
	static struct hive_task tasks[5000];

	for (int i = 0; i < 5000; i++)
		tasks[i].fn = count;
	return hive_post_many(f->hive, tasks, 5000);
}

static int post_to(struct fake *f)
{
	return hive_post_to(f->hive, f->workers[0].id, count, NULL);
}

static int post_after(struct fake *f)
{
	return hive_post_after(f->hive, 0, count, NULL, NULL);
}

static int post_compute(struct fake *f)
{
	return hive_post_compute(f->hive, count, NULL);
}

static int post_then(struct fake *f)
{
	return hive_post_compute_then(f->hive, count, f->workers[0].id, count, NULL);
}

static int (*inside_call)(struct fake *);
static struct fake *world;
static int inside_result;

static void call_inside(void *arg)
{
	(void)arg;
	inside_result = inside_call(world);
}

static int in_a_task(struct fake *f, int (*call)(struct fake *))
{
	int failing = f->fail_at;

	fail_none(f);
	inside_call = call;
	world = f;
	CHECK_OK(hive_post_to(f->hive, f->workers[0].id, call_inside, NULL));
	ran--; /* is not counted by anybody */
	f->fail_at = failing;
	fake_step(f, f->workers[0].id);
	ran++;
	return inside_result;
}

/* The first 64 places come in one block: only then does a post need memory again. */
static int self(struct fake *f)
{
	int failing = f->fail_at;

	fail_none(f);
	for (int i = 0; i < 64; i++, ran--)
		CHECK_OK(hive_post_self(count, NULL));
	f->fail_at = failing;
	return hive_post_self(count, NULL);
}

static int self_after(struct fake *f)
{
	(void)f;
	return hive_post_self_after(0, count, NULL, NULL);
}

static struct hive_timer timer;

static void fire(struct hive_timer *t)
{
	(void)t;
	ran++;
}

static int start_timer(struct fake *f)
{
	(void)f;
	hive_timer_init(&timer, fire, NULL);
	return hive_timer_start(&timer, 0, 0);
}

static int post_self(struct fake *f)
{
	return in_a_task(f, self);
}

static int post_self_after(struct fake *f)
{
	return in_a_task(f, self_after);
}

static int timer_start(struct fake *f)
{
	return in_a_task(f, start_timer);
}

/* What each call adds to the number of runs when it succeeds. */
static const struct {
	int (*call)(struct fake *);
	int runs;
} calls[] = {
	{ create_another, 0 }, { attach_another, 0 }, { attach_compute, 0 },  { post, 1 },
	{ post_many, 5000 },   { post_to, 1 },        { post_after, 1 },      { post_compute, 1 },
	{ post_then, 2 },      { post_self, 1 },      { post_self_after, 1 }, { timer_start, 1 },
};

/* One call, with its first, second, … allocation failing, until it needs no more than it gets. How often it failed. */
static int torment(size_t which, bool running, bool sticky)
{
	int failures = 0;

	for (int nth = 1;; nth++) {
		struct fake f = { 0 };
		int64_t balance;
		int r;

		fake_create(&f, (struct hive_options){ .io_workers = 1, .compute_workers = 1 });
		if (running)
			fake_start(&f);
		else
			f.workers[0].id = 0;
		if (!running)
			hive_workers(f.hive, &f.workers[0].id, 1);
		balance = f.balance;
		ran = 0;
		fail_from(&f, nth, sticky);
		r = calls[which].call(&f);
		fail_none(&f);
		CHECK(r == 0 || r == -ENOMEM);
		failures += r < 0;
		if (r < 0 && which == 0)
			CHECK_EQ(f.balance, balance);
		if (!running)
			fake_start(&f);
		CHECK_OK(hive_post(f.hive, count, NULL)); /* the hive works as before */
		fake_settle(&f);
		CHECK_EQ(ran, (r == 0 ? calls[which].runs : 0) + 1);
		fake_destroy(&f);
		if (r == 0)
			return failures;
		CHECK(nth < 1000);
	}
}

/* Wherever the allocator says no, the call says -ENOMEM, nothing was done, nothing is lost, and nothing leaks. */
TEST(every_call_survives_every_failing_allocation)
{
	for (size_t which = 0; which < sizeof calls / sizeof *calls; which++) {
		int failures = 0;

		for (int sticky = 0; sticky < 2; sticky++) {
			failures += torment(which, true, sticky);
			if (which < 9) /* the others need a task to be in */
				failures += torment(which, false, sticky);
		}
		CHECK(failures > 0);
	}
}

static int allocations_of(struct fake *f)
{
	return f->allocations;
}

static void post_self_many(void *arg)
{
	for (int i = 0; i < *(int *)arg; i++)
		CHECK_OK(hive_post_self(count, NULL));
}

static void post_self_after_many(void *arg)
{
	for (int i = 0; i < *(int *)arg; i++)
		CHECK_OK(hive_post_self_after(0, count, NULL, NULL));
}

static void post_outbox_many(void *arg)
{
	for (int i = 0; i < *(int *)arg; i++)
		CHECK_OK(hive_post(world->hive, count, NULL));
}

static void post_local_many(void *arg)
{
	for (int i = 0; i < *(int *)arg; i++)
		CHECK_OK(hive_post_local(count, NULL));
}

/* with places reserved, so many waiting posts of each kind allocate nothing, round after round. */
TEST(reserved_places_make_posts_allocate_nothing)
{
	enum { PLACES = 50000 }; /* more than the pools keep by themselves */
	static hive_fn *const inside[] = { post_self_many, post_self_after_many, post_outbox_many, post_local_many };

	for (int way = 0; way < 10; way++) {
		struct fake f = { 0 };
		int places = PLACES;

		fake_create(&f,
		            (struct hive_options){ .io_workers = 1, .compute_workers = 1, .reserve_tasks = PLACES });
		world = &f;
		fake_start(&f);
		for (int round = 0; round < 2; round++) {
			fail_from(&f, INT32_MAX, false); /* counts */
			ran = 0;
			if (way >= 5 && way < 9)
				places = PLACES - 1;
			for (int i = 0; way == 9 && i < PLACES; i++)
				CHECK_OK(hive_post_compute_at(f.hive, (enum hive_priority)(i % LEVELS), count, NULL));
			for (int i = 0; way < 5 && i < PLACES; i++)
				CHECK_OK(way == 0   ? hive_post(f.hive, count, NULL)
				         : way == 1 ? hive_post_to(f.hive, f.workers[0].id, count, NULL)
				         : way == 2 ? hive_post_after(f.hive, 0, count, NULL, NULL)
				         : way == 3
				                 ? hive_post_compute(f.hive, count, NULL)
				                 : hive_post_compute_then(f.hive, count, f.workers[0].id, count, NULL));
			if (way >= 5 && way < 9)
				CHECK_OK(hive_post_to(f.hive, f.workers[0].id, inside[way - 5], &places));
			fake_settle(&f);
			CHECK_EQ(ran, way == 4 ? 2 * PLACES : places);
			CHECK_EQ(allocations_of(&f), 0);
			fail_none(&f);
		}
		fake_destroy(&f);
	}
}

/* Without a reserve the same posts do allocate: the count above counts something. */
TEST(unreserved_posts_allocate)
{
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 1, .compute_workers = 1 });
	fake_start(&f);
	fail_from(&f, INT32_MAX, false);
	for (int i = 0; i < 5000; i++)
		CHECK_OK(hive_post(f.hive, count, NULL));
	CHECK(allocations_of(&f) > 0);
	fail_none(&f);
	fake_destroy(&f);
}

static void stop_now(void *hive)
{
	CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
}

/* Without any memory at all, from the first task on: what was accepted is run or dropped, detach moves what there is, and the
 * end comes.                                                                                                                */
TEST(a_hive_without_memory_keeps_its_promises)
{
	struct fake f = { 0 };
	struct hive_worker_options small = { .local_capacity = 4, .local_budget = 1 };
	int accepted = 0;
	uint32_t second;

	fake_create(&f, (struct hive_options){ .io_workers = 1, .io = &small, .compute_workers = 1 });
	CHECK_OK(hive_attach(f.hive, &small, &second));
	world = &f;
	fake_start(&f);
	fail_from(&f, 8, true);
	ran = 0;
	for (int i = 0; i < 3000; i++) {
		accepted += hive_post_to(f.hive, second, count, NULL) == 0;
		accepted += hive_post_after(f.hive, HIVE_MS(1), count, NULL, NULL) == 0;
		accepted += hive_post(f.hive, count, NULL) == 0;
		accepted += hive_post_compute(f.hive, count, NULL) == 0;
	}
	CHECK(accepted > 100 && accepted < 12000);
	fake_step(&f, second);
	CHECK_OK(hive_detach(f.hive, second, HIVE_FOREVER));
	fake_advance(&f, HIVE_MS(1));
	CHECK_EQ(ran, accepted);
	fail_none(&f);
	CHECK_OK(hive_post(f.hive, stop_now, f.hive));
	fake_settle(&f);
	fake_destroy(&f);
}
