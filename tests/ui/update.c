/* SPDX-License-Identifier: MIT */
/* Coalescing posts: ten thousand, and one run. */
#include <pthread.h>
#include <stdatomic.h>

#include "support/host.h"
#include "support/lone.h"

#include <rophive/sim.h>

struct model {
	struct hive_update update;
	struct hive *hive;
	int value;       /* written by who posts, under no lock: one thread, or joined before */
	atomic_int runs; /* of fn */
	int shown;
};

static void show(void *arg)
{
	struct model *m = arg;

	m->shown = m->value;
	atomic_fetch_add(&m->runs, 1);
}

static struct hive *open_fake(struct fake *f, struct model *m)
{
	fake_create(f, (struct hive_options){ .io_workers = 1 });
	fake_start(f);
	fake_settle(f);
	*m = (struct model){ .hive = f->hive };
	hive_update_init(&m->update, f->hive, HIVE_WORKER_MAIN, show, m);
	return f->hive;
}

TEST(ten_thousand_posts_are_one_run)
{
	struct fake f = { 0 };
	struct model m;

	open_fake(&f, &m);
	for (int round = 1; round <= 3; round++) {
		for (int i = 0; i < 10000; i++) {
			m.value = i;
			CHECK_EQ(hive_update_post(&m.update), i > 0);
		}
		fake_settle(&f);
		CHECK_EQ(atomic_load(&m.runs), round);
		CHECK_EQ(m.shown, 9999);
	}
	fake_destroy(&f);
}

/* A post that comes while fn runs may be too late for it: there is one run more. */
static void post_inside(void *arg)
{
	struct model *m = arg;

	if (atomic_fetch_add(&m->runs, 1) == 0)
		CHECK_EQ(hive_update_post(&m->update), 0);
}

TEST(a_post_from_inside_is_one_more_run)
{
	struct fake f = { 0 };
	struct model m;

	open_fake(&f, &m);
	hive_update_init(&m.update, f.hive, HIVE_WORKER_MAIN, post_inside, &m);
	CHECK_EQ(hive_update_post(&m.update), 0);
	fake_settle(&f);
	CHECK_EQ(atomic_load(&m.runs), 2);
	fake_destroy(&f);
}

/* ---- stop ---- */

static void stop_it(void *arg)
{
	struct model *m = arg;

	CHECK_EQ(hive_update_stop(&m->update), 1);
	CHECK_EQ(hive_update_stop(&m->update), 0);
	memset(&m->update, 0xa5, sizeof m->update); /* its memory is ours */
}

static void stop_and_post(void *arg)
{
	struct model *m = arg;

	CHECK_EQ(hive_update_stop(&m->update), 1);
	CHECK_EQ(hive_update_post(&m->update), 0);
}

TEST(after_stop_nothing_runs_for_what_was_posted_before)
{
	struct fake f = { 0 };
	struct model m;

	open_fake(&f, &m);
	CHECK_OK(hive_post_to(f.hive, HIVE_WORKER_MAIN, stop_it, &m));
	CHECK_EQ(hive_update_post(&m.update), 0);
	fake_settle(&f);
	CHECK_EQ(atomic_load(&m.runs), 0);
	hive_update_init(&m.update, f.hive, HIVE_WORKER_MAIN, show, &m);
	CHECK_OK(hive_post_to(f.hive, HIVE_WORKER_MAIN, stop_and_post, &m));
	CHECK_EQ(hive_update_post(&m.update), 0);
	fake_settle(&f);
	CHECK_EQ(atomic_load(&m.runs), 1); /* for the second */
	fake_destroy(&f);
}

TEST(only_the_owner_stops_it)
{
	struct fake f = { 0 };
	struct model m;

	open_fake(&f, &m);
	CHECK_MISUSE(hive_update_stop(&m.update), -EPERM);
	fake_destroy(&f);
}

/* When the hive stops, what was accepted goes to the drop hook as what its user posted; and the update may be used no more, or stopped. */
TEST(a_stop_of_the_hive_drops_it)
{
	struct fake f = { 0 };
	struct model m;

	open_fake(&f, &m);
	CHECK_EQ(hive_update_post(&m.update), 0);
	CHECK_OK(hive_stop(f.hive, HIVE_NOW, HIVE_NOWAIT));
	for (int i = 0; i < 10 && fake_step(&f, f.workers[0].id) != -ESHUTDOWN; i++)
		;
	CHECK_EQ(atomic_load(&m.runs), 0);
	CHECK_EQ(f.drops, 1);
	CHECK(f.dropped[0].fn == show && f.dropped[0].arg == &m);
	CHECK_ERR(hive_update_post(&m.update), -ESHUTDOWN);
	CHECK_EQ(hive_update_stop(&m.update), 0);
	fake_destroy(&f);
}

/* ---- refused ---- */

TEST(a_refused_post_may_be_tried_again)
{
	struct fake f = { 0 };
	struct model m;
	int refused = 0;

	open_fake(&f, &m);
	for (int at = 1; at < 20; at++) {
		int r;

		f.allocations = 0;
		f.fail_at = at;
		r = hive_update_post(&m.update);
		f.fail_at = 0;
		if (r == 0)
			break;
		CHECK_ERR(r, -ENOMEM);
		refused++;
		CHECK_EQ(hive_update_post(&m.update), 0);
		fake_settle(&f);
		CHECK_EQ(atomic_load(&m.runs), refused);
	}
	CHECK(refused > 0);
	fake_destroy(&f);
}

TEST(what_makes_no_sense_is_refused)
{
	struct fake f = { 0 };
	struct model m;
	struct hive_update none = { 0 };

	open_fake(&f, &m);
	CHECK_ERR(hive_update_post(NULL), -EINVAL);
	CHECK_ERR(hive_update_post(&none), -EINVAL);
	CHECK_ERR(hive_update_stop(NULL), -EINVAL);
	CHECK_ERR(hive_update_stop(&none), -EINVAL);
	hive_update_init(NULL, f.hive, HIVE_WORKER_MAIN, show, &m);
	hive_update_init(&none, f.hive, HIVE_WORKER_MAIN, NULL, &m);
	CHECK_ERR(hive_update_post(&none), -EINVAL);
	hive_update_init(&none, NULL, HIVE_WORKER_MAIN, show, &m);
	CHECK_ERR(hive_update_post(&none), -EINVAL);
	hive_update_init(&none, f.hive, HIVE_WORKER_NONE, show, &m);
	CHECK_ERR(hive_update_post(&none), -EINVAL);
	hive_update_init(&none, f.hive, 12345 << 11, show, &m);
	CHECK_ERR(hive_update_post(&none), -ESRCH);
	CHECK_ERR(hive_update_post(&none), -ESRCH);
	fake_destroy(&f);
}

/* ---- threads ---- */

enum { THREADS = 4 };

struct writer {
	struct model *m;
	atomic_int written; /* its last number, written before the post */
	int posts, fresh;   /* fresh: those that were posted, and did not join one that was on its way */
};

static struct writer writers[THREADS];
static atomic_int seen_of[THREADS];

static void look_at_writers(void *arg)
{
	struct model *m = arg;

	for (int i = 0; i < THREADS; i++)
		atomic_store(&seen_of[i], atomic_load_explicit(&writers[i].written, memory_order_relaxed));
	atomic_fetch_add(&m->runs, 1);
}

static void *write_and_post(void *arg)
{
	struct writer *w = arg;

	for (int i = 1; i <= w->posts; i++) {
		int r;

		atomic_store_explicit(&w->written, i, memory_order_relaxed);
		r = hive_update_post(&w->m->update);
		CHECK(r == 0 || r == 1);
		w->fresh += r == 0;
	}
	return NULL;
}

/* How many of all posts were fresh. */
static int post_from_four_threads(struct model *m, int posts)
{
	pthread_t threads[THREADS];
	int fresh = 0;

	for (int i = 0; i < THREADS; i++) { /* all, before one of them posts */
		writers[i] = (struct writer){ .m = m, .posts = posts };
		atomic_store(&seen_of[i], 0);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, write_and_post, &writers[i]), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < THREADS; i++)
		fresh += writers[i].fresh;
	return fresh;
}

/* After the last post fn sees what each wrote last, and ran as often as a post was told that it would. */
TEST(four_threads_post_and_the_last_of_each_is_seen)
{
	struct model m = { .hive = real_start((struct hive_options){ .io_workers = 2 }) };
	int posts = 20000 / test_slowness() + 100, fresh;

	hive_update_init(&m.update, m.hive, HIVE_WORKER_MAIN, look_at_writers, &m);
	fresh = post_from_four_threads(&m, posts);
	for (int i = 0; i < THREADS; i++)
		WAIT_UNTIL(atomic_load(&seen_of[i]) == posts);
	real_end(m.hive, HIVE_DRAIN);
	CHECK(fresh > 0);
	CHECK_EQ(atomic_load(&m.runs), fresh);
}

/* Its worker is busy meanwhile: whoever is first posts it, all others join. */
TEST(what_four_threads_post_while_its_worker_is_busy_is_one_run)
{
	struct model m = { .hive = real_start((struct hive_options){ .io_workers = 2 }) };
	struct block block;
	int posts = 20000 / test_slowness() + 100;

	hive_update_init(&m.update, m.hive, HIVE_WORKER_MAIN, look_at_writers, &m);
	block_init(&block);
	CHECK_OK(hive_post_to(m.hive, HIVE_WORKER_MAIN, block_task, &block));
	gate_pass(&block.entered);
	CHECK_EQ(post_from_four_threads(&m, posts), 1);
	CHECK_EQ(atomic_load(&m.runs), 0);
	gate_open(&block.leave);
	for (int i = 0; i < THREADS; i++)
		WAIT_UNTIL(atomic_load(&seen_of[i]) == posts);
	real_end(m.hive, HIVE_DRAIN);
	CHECK_EQ(atomic_load(&m.runs), 1);
	block_destroy(&block);
}

/* Between two steps the thread of a guest may stop it. */
TEST(the_host_of_a_guest_stops_it_between_steps)
{
	struct host h;
	struct model m = { 0 };

	host_begin(&h, host_create("epoll", (struct hive_worker_options){ 0 }, (struct hive_options){ 0 }));
	hive_update_init(&m.update, h.hive, HIVE_WORKER_MAIN, show, &m);
	CHECK_EQ(hive_update_post(&m.update), 0);
	CHECK_EQ(hive_update_stop(&m.update), 1);
	host_settle(&h);
	CHECK_EQ(atomic_load(&m.runs), 0);
	CHECK_EQ(hive_update_post(&m.update), 0);
	STEP_UNTIL(atomic_load(&m.runs) == 1, host_turn(&h));
	host_end(&h);
}
