/* SPDX-License-Identifier: MIT */
/* Which worker am I: ids, the thread-local, several hives in one process, children after fork (R-33 … R-35). */
#include <sched.h>
#include <sys/wait.h>

#include "support/fake.h"
#include "support/real.h"
#include "support/wipe.h"
#include "test.h"

static uint32_t seen;
static struct hive *seen_hive;
static int ran;

static void look(void *arg)
{
	(void)arg;
	seen = hive_worker_current();
	seen_hive = hive_current();
	ran++;
}

static void look_from_timer(struct hive_timer *timer)
{
	look(timer->arg);
}

static void start_timer(void *timer)
{
	hive_timer_init(timer, look_from_timer, NULL);
	CHECK_OK(hive_timer_start(timer, 0, 0));
}

/* in tasks of every kind, in timers, on IO and on compute workers. */
TEST(a_task_can_ask_which_worker_it_runs_on)
{
	struct fake f = { 0 };
	struct hive_timer timer;
	uint32_t second, compute;

	fake_create(&f, (struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	fake_start(&f);
	second = f.workers[1].id;
	compute = f.workers[2].id;
	CHECK_OK(hive_post_to(f.hive, second, look, NULL));
	fake_step(&f, second);
	CHECK_EQ(seen, second);
	CHECK(seen_hive == f.hive);
	CHECK_OK(hive_post(f.hive, look, NULL));
	fake_step(&f, f.workers[0].id);
	fake_step(&f, f.workers[0].id);
	CHECK_EQ(seen, f.workers[0].id);
	CHECK_OK(hive_post_to(f.hive, second, start_timer, &timer));
	fake_step(&f, second);
	CHECK_EQ(seen, second);
	CHECK_OK(hive_post_compute(f.hive, look, NULL));
	fake_step(&f, compute);
	CHECK_EQ(seen, compute);
	CHECK_EQ(hive_worker_current(), HIVE_WORKER_NONE);
	fake_destroy(&f);
}

static void nothing(void *arg)
{
	(void)arg;
}

static void check_stale(struct fake *f, uint32_t stale)
{
	struct hive_worker_stats stats;

	CHECK_ERR(hive_post_to(f->hive, stale, nothing, NULL), -ESRCH);
	CHECK_ERR(hive_post_compute_then(f->hive, nothing, stale, nothing, NULL), -ESRCH);
	CHECK_ERR(hive_detach(f->hive, stale, HIVE_FOREVER), -ESRCH);
	CHECK_ERR(hive_worker_stats_read(f->hive, stale, &stats), -ESRCH);
}

/* an id is given at attach and names one life of a slot. The slot is used again; the old id reaches nobody. */
TEST(an_id_names_one_life_of_a_slot)
{
	for (int kind = HIVE_WORKER_IO; kind <= HIVE_WORKER_COMPUTE; kind++) {
		struct fake f = { 0 };
		struct hive_worker_options o = { .kind = (enum hive_worker_kind)kind };
		uint32_t ids[20];

		fake_create(&f, (struct hive_options){ .io_workers = 1, .compute_workers = 1 });
		fake_start(&f);
		for (int i = 0; i < 20; i++) {
			CHECK_OK(hive_attach(f.hive, &o, &ids[i]));
			CHECK(ids[i] != HIVE_WORKER_NONE && ids[i] != HIVE_WORKER_MAIN);
			for (int k = 0; k < i; k++) {
				CHECK(ids[k] != ids[i]);
				check_stale(&f, ids[k]);
			}
			CHECK_EQ(hive_workers(f.hive, NULL, 0), 3);
			CHECK_OK(hive_detach(f.hive, ids[i], HIVE_FOREVER));
			check_stale(&f, ids[i]);
		}
		CHECK_EQ(load_relaxed(&f.hive->io.limit) + load_relaxed(&f.hive->compute.limit), 3);
		fake_destroy(&f);
	}
}

/* as many lives as one likes, but at most so many at a time. */
TEST(a_hive_has_a_thousand_and_twenty_four_places_for_each_kind)
{
	struct hive_worker_options small = { .local_capacity = 4 }, compute = { .kind = HIVE_WORKER_COMPUTE };
	struct hive *hive = real_create((struct hive_options){ 0 });
	uint32_t id = 0;

	for (int i = 0; i < HIVE_WORKERS_MAX; i++)
		CHECK_OK(hive_attach(hive, &small, &id));
	CHECK_ERR(hive_attach(hive, &small, NULL), -ENOSPC);
	for (int i = 0; i < HIVE_WORKERS_MAX; i++)
		CHECK_OK(hive_attach(hive, &compute, NULL));
	CHECK_ERR(hive_attach(hive, &compute, NULL), -ENOSPC);
	CHECK_EQ(hive_workers(hive, NULL, 0), 2 * HIVE_WORKERS_MAX);
	CHECK_OK(hive_post_to(hive, id, nothing, NULL));
	CHECK_OK(hive_detach(hive, id, HIVE_NOWAIT));
	CHECK_OK(hive_attach(hive, &small, &id));
	CHECK_ERR(hive_attach(hive, &small, NULL), -ENOSPC);
	CHECK_OK(hive_destroy(hive));
}

struct presence {
	uint32_t at_start, at_stop;
	struct hive *hive;
};

static void at_start(void *arg)
{
	((struct presence *)arg)->at_start = hive_worker_current();
	((struct presence *)arg)->hive = hive_current();
}

static void at_stop(void *arg)
{
	((struct presence *)arg)->at_stop = hive_worker_current();
}

static void stop_hive(void *hive)
{
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
}

/* set when the loop is entered, before the first hook; cleared when it is left, after the last one. */
TEST(the_caller_of_run_is_a_worker_exactly_while_it_runs)
{
	struct presence p = { 0, 0, NULL };
	struct hive_worker_options o = { .on_start = at_start, .on_stop = at_stop, .hook_arg = &p };
	struct hive *hive = real_create((struct hive_options){ .io_workers = 1, .io = &o });
	uint32_t id;

	CHECK_EQ(hive_workers(hive, &id, 1), 1);
	CHECK_EQ(hive_worker_current(), HIVE_WORKER_NONE);
	CHECK_OK(hive_post(hive, stop_hive, hive));
	CHECK_OK(hive_run(hive));
	CHECK_EQ(p.at_start, id);
	CHECK_EQ(p.at_stop, id);
	CHECK(p.hive == hive);
	CHECK_EQ(hive_worker_current(), HIVE_WORKER_NONE);
	CHECK(!hive_current());
	CHECK_OK(hive_destroy(hive));
}

struct neighbours {
	struct fake a, b;
	uint64_t pool_at_once;
	int wakes_at_once;
	int64_t now;
};

static void post_next_door(void *arg)
{
	struct neighbours *two = arg;
	struct hive_stats stats;

	CHECK_OK(hive_post(two->b.hive, look, NULL));
	CHECK_OK(hive_stats_read(two->b.hive, &stats));
	two->pool_at_once = stats.pool;
	two->wakes_at_once = two->b.wakes;
	CHECK_OK(hive_post_after(two->b.hive, 0, look, NULL, NULL));
	CHECK_OK(hive_post_to(two->b.hive, HIVE_WORKER_MAIN, look, NULL));
	CHECK_ERR(hive_join(two->b.hive, HIVE_NOWAIT), -ETIMEDOUT); /* not -EDEADLK: this is not its worker */
	CHECK_ERR(hive_join(two->a.hive, HIVE_NOWAIT), -EDEADLK);
	two->now = hive_now(NULL);
	CHECK_OK(hive_post_local(look, NULL)); /* that is the own hive's */
}

/* a worker of another hive counts as outside. Its post does not wait in an outbox: it is in the pool, and the
 * sleeper woken, before the call returns.                                                                               */
TEST(a_worker_of_another_hive_counts_as_outside)
{
	struct neighbours two = { .pool_at_once = 77 };

	two.a.now_ns = HIVE_S(1);
	two.b.now_ns = HIVE_S(2);
	fake_create(&two.a, (struct hive_options){ .io_workers = 1 });
	fake_create(&two.b, (struct hive_options){ .io_workers = 1 });
	fake_start(&two.a);
	fake_start(&two.b);
	fake_settle(&two.a);
	fake_settle(&two.b);
	fake_reset_wakes(&two.b);
	CHECK_OK(hive_post(two.a.hive, post_next_door, &two));
	ran = 0;
	fake_settle(&two.a);
	CHECK_EQ(two.pool_at_once, 1);
	CHECK_EQ(two.wakes_at_once, 1);
	CHECK_EQ(two.now, HIVE_S(1));
	CHECK_EQ(ran, 1);
	CHECK(seen_hive == two.a.hive);
	fake_settle(&two.b);
	CHECK_EQ(ran, 4);
	CHECK(seen_hive == two.b.hive);
	fake_destroy(&two.a);
	fake_destroy(&two.b);
}

struct match {
	struct hive *hives[2];
	struct gate done;
	int left;
};

static void strike(void *arg)
{
	struct match *m = arg;

	if (m->left-- == 0)
		gate_open(&m->done);
	else
		CHECK_OK(hive_post(m->hives[m->left & 1], strike, m));
}

/* several hives in one process keep each other busy and never mix. */
TEST(two_hives_in_one_process_play_ball)
{
	struct match m = { .left = 10000 / test_slowness() };
	struct hive_report reports[2];
	int balls = m.left;

	gate_init(&m.done);
	for (int i = 0; i < 2; i++)
		m.hives[i] = real_start((struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	CHECK_OK(hive_post(m.hives[0], strike, &m));
	gate_pass(&m.done);
	for (int i = 0; i < 2;
	     i++) { /* the post of the last ball may not have returned: both end before one is destroyed */
		CHECK_OK(hive_stop(m.hives[i], HIVE_DRAIN, HIVE_FOREVER));
		CHECK_OK(hive_join(m.hives[i], real_patience()));
	}
	for (int i = 0; i < 2; i++)
		reports[i] = real_join(m.hives[i]);
	CHECK_EQ(reports[0].ran + reports[1].ran, balls + 1);
	CHECK(reports[0].ran >= (uint64_t)balls / 2 && reports[1].ran >= (uint64_t)balls / 2);
	gate_destroy(&m.done);
}

static void knock_on_every_door(struct hive *hive, uint32_t worker)
{
	struct hive_task task = { nothing, NULL };

	CHECK_ERR(hive_post(hive, nothing, NULL), -EOWNERDEAD);
	CHECK_ERR(hive_post_many(hive, &task, 1), -EOWNERDEAD);
	CHECK_ERR(hive_post_to(hive, worker, nothing, NULL), -EOWNERDEAD);
	CHECK_ERR(hive_post_after(hive, 0, nothing, NULL, NULL), -EOWNERDEAD);
	CHECK_ERR(hive_post_cancel(hive, (uint64_t)1 << 32), -EOWNERDEAD);
	CHECK_ERR(hive_post_compute(hive, nothing, NULL), -EOWNERDEAD);
	CHECK_ERR(hive_post_compute_many(hive, &task, 1), -EOWNERDEAD);
	CHECK_ERR(hive_post_compute_at(hive, HIVE_PRIORITY_HIGH, nothing, NULL), -EOWNERDEAD);
	CHECK_ERR(hive_post_compute_at_many(hive, HIVE_PRIORITY_LOW, &task, 1), -EOWNERDEAD);
	CHECK_ERR(hive_post_compute_then(hive, nothing, worker, nothing, NULL), -EOWNERDEAD);
	CHECK_ERR(hive_post_kind(hive, HIVE_MICRO, 0, nothing, NULL), -EOWNERDEAD);
	CHECK_ERR(hive_attach(hive, NULL, NULL), -EOWNERDEAD);
	CHECK_ERR(hive_detach(hive, worker, HIVE_NOWAIT), -EOWNERDEAD);
	CHECK_ERR(hive_run(hive), -EOWNERDEAD);
	CHECK_ERR(hive_start(hive), -EOWNERDEAD);
	CHECK_ERR(hive_stop(hive, HIVE_NOW, HIVE_NOWAIT), -EOWNERDEAD);
	CHECK_ERR(hive_join(hive, HIVE_NOWAIT), -EOWNERDEAD);
	CHECK_ERR(hive_destroy(hive), -EOWNERDEAD);
}

/* A worker's own doors, which know their hive from where they are: tried inside a task that forks. */
static void knock_as_a_worker(void *arg)
{
	struct hive_timer timer;
	struct hive_source source;
	int status = -1;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		hive_timer_init(&timer, look_from_timer, NULL);
		hive_source_init(&source, HIVE_SOURCE_USER, 1, HIVE_EVENT_IN, (hive_source_fn *)(void *)look, NULL);
		CHECK_ERR(hive_timer_start(&timer, 0, 0), -EOWNERDEAD);
		CHECK_ERR(hive_source_start(&source), -EOWNERDEAD);
		CHECK_ERR(hive_post_self(nothing, NULL), -EOWNERDEAD);
		CHECK_ERR(hive_post_local(nothing, NULL), -EOWNERDEAD);
		CHECK_ERR(hive_post_self_after(0, nothing, NULL, NULL), -EOWNERDEAD);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	++*(int *)arg;
}

/* the same for what only a worker may call. */
TEST(a_worker_that_finds_itself_in_a_child_is_refused_at_its_own_doors)
{
	struct fake f = { 0 };
	int done = 0;

	if (!kernel_wipes_pages()) {
		test_skip(NO_WIPING);
		return;
	}
	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	fake_start(&f);
	CHECK_OK(hive_post(f.hive, knock_as_a_worker, &done));
	fake_settle(&f);
	CHECK_EQ(done, 1);
	fake_destroy(&f);
}

static void in_a_child(struct hive *hive, uint32_t worker)
{
	int status = -1;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		knock_on_every_door(hive, worker);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

/* the threads did not come along, so a child of fork() is told by every door; the parent goes on. */
TEST(a_child_after_fork_is_refused_at_every_door)
{
	struct hive *hive;
	struct gate done;
	uint32_t ids[2];

	if (!kernel_wipes_pages()) {
		test_skip(NO_WIPING);
		return;
	}
	hive = real_create((struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	gate_init(&done);
	hive_workers(hive, ids, 2);
	in_a_child(hive, ids[1]);
	CHECK_OK(hive_start(hive));
	in_a_child(hive, ids[1]);
	CHECK_OK(hive_post(hive, gate_open_task, &done));
	gate_pass(&done);
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(hive, real_patience()));
	in_a_child(hive, ids[1]);
	CHECK_OK(hive_destroy(hive));
	gate_destroy(&done);
}
