/* SPDX-License-Identifier: MIT */
/* The outbox: posts made inside a worker (R-78, R-97 … R-100). */
#include "support/fake.h"
#include "support/real.h"
#include "test.h"

static int ran;

static void count(void *arg)
{
	(void)arg;
	ran++;
}

static struct fake *world;

static uint64_t pool_of(const struct fake *f)
{
	struct hive_stats stats;

	CHECK_OK(hive_stats_read(f->hive, &stats));
	return stats.pool;
}

static void create_asleep(struct fake *f, struct hive_options options)
{
	world = f;
	fake_create(f, options);
	fake_start(f);
	fake_settle(f);
	fake_reset_wakes(f);
}

static uint64_t pool_inside;
static int wakes_inside;

static void post_ten(void *arg)
{
	(void)arg;
	fake_reset_wakes(world);
	for (int i = 0; i < 10; i++)
		CHECK_OK(hive_post(world->hive, count, NULL));
	pool_inside = pool_of(world);
	wakes_inside = world->wakes;
}

/* Holds the locks of all lanes, so that whoever wants one waits for ever. */
static void hold_pool(struct fake *f, bool hold)
{
	for (int i = 0; i < POOL_LANES; i++) {
		if (hold)
			lock_acquire(&f->hive->pool.lanes[i].lock);
		else
			lock_release(&f->hive->pool.lanes[i].lock);
	}
}

static void post_while_the_pool_is_locked(void *arg)
{
	(void)arg;
	hold_pool(world, true);
	for (int i = 0; i < 10; i++)
		CHECK_OK(hive_post(world->hive, count, NULL));
	hold_pool(world, false);
	pool_inside = pool_of(world);
	wakes_inside = world->wakes;
}

/* inside, a post touches neither pool nor sleepers; the end of the beat gives all of them to the pool at
 * once; one idle worker is woken to help.                                                                                 */
TEST(posts_inside_a_worker_wait_for_the_end_of_the_beat)
{
	static hive_fn *const tasks[] = { post_ten, post_while_the_pool_is_locked };

	for (int i = 0; i < 2; i++) {
		struct fake f = { 0 };

		create_asleep(&f, (struct hive_options){ .io_workers = 3 });
		CHECK_OK(hive_post_to(f.hive, f.workers[0].id, tasks[i], NULL));
		fake_reset_wakes(&f);
		fake_step(&f, f.workers[0].id);
		CHECK_EQ(pool_inside, 0);
		CHECK_EQ(wakes_inside, 0);
		CHECK_EQ(pool_of(&f), 10);
		CHECK(f.wakes <= 1);
		CHECK_EQ(hive__slot(&f.hive->io, 0)->outbox_count, 0);
		fake_step(
			&f,
			f.workers[0].id); /* if it looked for work itself just then, its next beat passes the wake on */
		CHECK_EQ(f.wakes, 1);
		ran = 0;
		fake_settle(&f);
		CHECK_EQ(ran, 10);
		fake_destroy(&f);
	}
}

static struct hive_timer timer;
static struct hive_source source;

static void post_in_timer(struct hive_timer *t)
{
	(void)t;
	post_ten(NULL);
}

static void post_in_source(struct hive_source *s, uint32_t events)
{
	(void)events;
	CHECK_EQ(hive_source_stop(s), 1);
	post_ten(NULL);
}

static void arm_timer(void *arg)
{
	(void)arg;
	hive_timer_init(&timer, post_in_timer, NULL);
	CHECK_OK(hive_timer_start(&timer, 0, 0));
}

static void start_source(void *arg)
{
	(void)arg;
	hive_source_init(&source, HIVE_SOURCE_FD, 1, HIVE_EVENT_IN, post_in_source, NULL);
	CHECK_OK(hive_source_start(&source));
}

static void post_ten_locally(void *arg)
{
	CHECK_OK(hive_post_local(post_ten, arg));
}

static void deliver(struct fake_core_script *script, int64_t timeout_ns)
{
	(void)timeout_ns;
	if (script->sources[0])
		hive_source_deliver(script->sources[0], HIVE_EVENT_IN);
}

/* whichever way the beat took: event, private task, timer, local task, pool task, stolen task. */
TEST(every_kind_of_beat_ends_with_the_outbox_empty)
{
	for (int way = 0; way < 6; way++) {
		struct fake f = { 0 };
		struct fake_core_script script = { .in_turn = deliver };
		struct hive_worker_options o = { .core_arg = &script, .on_start = way == 0 ? start_source : NULL };
		struct hive_worker_options other = { .local_budget = 1 };
		struct worker *w;

		fake_create(&f, (struct hive_options){ 0 });
		CHECK_OK(hive_attach(f.hive, &o, NULL));
		CHECK_OK(hive_attach(f.hive, &other, NULL));
		world = &f;
		fake_start(&f);
		ran = 0;
		if (way == 1)
			CHECK_OK(hive_post_to(f.hive, f.workers[0].id, post_ten, NULL));
		if (way == 2)
			CHECK_OK(hive_post_to(f.hive, f.workers[0].id, arm_timer, NULL));
		if (way == 3)
			CHECK_OK(hive_post_to(f.hive, f.workers[0].id, post_ten_locally, NULL));
		if (way == 4)
			CHECK_OK(hive_post(f.hive, post_ten, NULL));
		if (way == 5) {
			CHECK_OK(hive_post_to(f.hive, f.workers[1].id, post_ten_locally, NULL));
			CHECK_OK(hive_post_to(f.hive, f.workers[1].id, post_ten_locally, NULL));
			fake_step(&f, f.workers[1].id);
			while (pool_of(&f) > 0) { /* what the first of them posted */
				fake_step(&f, f.workers[0].id);
				fake_step(&f, f.workers[0].id);
			}
		}
		w = hive__slot(&f.hive->io, 0);
		for (int i = 0; i < 40; i++) {
			fake_step(&f, f.workers[0].id);
			CHECK_EQ(w->outbox_count, 0);
		}
		CHECK_EQ(ran, way == 5 ? 20 : 10);
		fake_destroy(&f);
	}
}

static void post_a_thousand(void *arg)
{
	(void)arg;
	for (int i = 0; i < 1000; i++)
		CHECK_OK(hive_post(world->hive, count, NULL));
}

/* the outbox is finite, the posts are not: a full one is given to the pool early. */
TEST(a_full_outbox_is_emptied_before_the_end_of_the_beat)
{
	struct fake f = { 0 };

	create_asleep(&f, (struct hive_options){ .io_workers = 1 });
	CHECK_OK(hive_post(f.hive, post_a_thousand, NULL));
	ran = 0;
	fake_settle(&f);
	CHECK_EQ(ran, 1000);
	fake_destroy(&f);
}

static void post_a_few_thousand_poor(void *arg)
{
	int accepted = 0;

	world->allocations = 0;
	world->fail_at = 1;
	world->sticky = true;
	for (int i = 0; i < 5000; i++) {
		int r = hive_post(world->hive, count, NULL);

		CHECK(r == 0 || r == -ENOMEM);
		accepted += r == 0;
	}
	*(int *)arg = accepted;
}

/* a pool without memory refuses new posts and loses none of those that were accepted. */
TEST(an_outbox_that_cannot_be_emptied_loses_nothing)
{
	struct fake f = { 0 };
	int accepted = 0;

	create_asleep(&f, (struct hive_options){ .io_workers = 1 });
	CHECK_OK(hive_post_to(f.hive, f.workers[0].id, post_a_few_thousand_poor, &accepted));
	ran = 0;
	fake_settle(&f);
	CHECK(accepted > 0 && accepted < 5000);
	CHECK_EQ(ran, accepted);
	f.fail_at = 0;
	fake_destroy(&f);
}

/* switched off for a worker, its posts are in the pool, and a sleeper woken, before the call returns. */
TEST(without_an_outbox_posts_go_straight_to_the_pool)
{
	struct fake f = { 0 };
	struct hive_worker_options off = { .no_outbox = true };

	fake_create(&f, (struct hive_options){ .io_workers = 1, .io = &off });
	CHECK_OK(hive_attach(f.hive, NULL, NULL)); /* this one has it: the switch is per worker */
	world = &f;
	fake_start(&f);
	fake_settle(&f);
	CHECK_OK(hive_post_to(f.hive, f.workers[0].id, post_ten, NULL));
	fake_step(&f, f.workers[0].id);
	CHECK_EQ(pool_inside, 10);
	CHECK_EQ(wakes_inside, 1);
	fake_settle(&f);
	CHECK_OK(hive_post_to(f.hive, f.workers[1].id, post_ten, NULL));
	fake_step(&f, f.workers[1].id);
	CHECK_EQ(pool_inside, 0);
	fake_settle(&f);
	fake_destroy(&f);
}

static uint32_t leaver;

static void post_ten_and_leave(void *arg)
{
	post_ten(arg);
	CHECK_ERR(hive_detach(world->hive, leaver, HIVE_NOWAIT), -EINPROGRESS);
}

/* the last beat of a worker that leaves flushes like any other. */
TEST(a_worker_that_leaves_has_emptied_its_outbox)
{
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	CHECK_OK(hive_attach(f.hive, NULL, &leaver));
	world = &f;
	fake_start(&f);
	fake_settle(&f);
	CHECK_OK(hive_post_to(f.hive, leaver, post_ten_and_leave, NULL));
	CHECK_EQ(fake_step(&f, leaver), -ESHUTDOWN);
	CHECK_EQ(pool_of(&f), 10);
	ran = 0;
	fake_settle(&f);
	CHECK_EQ(ran, 10);
	fake_destroy(&f);
}

static enum hive_stop_mode how;

static void post_ten_and_stop(void *arg)
{
	post_ten(arg);
	CHECK_OK(hive_stop(world->hive, how, HIVE_FOREVER));
}

/* the same when the hive stops: draining, they run; now, they are dropped, none forgotten. */
TEST(a_stopping_hive_leaves_nothing_in_an_outbox)
{
	static const enum hive_stop_mode modes[] = { HIVE_DRAIN, HIVE_NOW };

	for (int i = 0; i < 2; i++) {
		struct fake f = { 0 };

		create_asleep(&f, (struct hive_options){ .io_workers = 2 });
		how = modes[i];
		ran = 0;
		CHECK_OK(hive_post_to(f.hive, f.workers[1].id, post_ten_and_stop, NULL));
		CHECK_OK(hive_join(f.hive, HIVE_FOREVER));
		CHECK_EQ(ran, how == HIVE_DRAIN ? 10 : 0);
		CHECK_EQ(f.drops, how == HIVE_DRAIN ? 0 : 10);
		fake_destroy(&f);
	}
}

/* a compute worker has no outbox; its micro posts go to the pool at once. */
TEST(posts_of_a_compute_worker_go_straight_to_the_pool)
{
	struct fake f = { 0 };

	create_asleep(&f, (struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	CHECK_OK(hive_post_compute(f.hive, post_ten, NULL));
	fake_step(&f, f.workers[2].id);
	CHECK_EQ(pool_inside, 10);
	CHECK_EQ(wakes_inside, 1);
	fake_destroy(&f);
}
