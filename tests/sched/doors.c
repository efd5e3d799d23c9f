/* SPDX-License-Identifier: MIT */
/* The doors: where each post goes, whom it wakes, what it refuses (R-76 … R-96). */
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

static struct fake *world;

static struct hive_stats stats_of(const struct fake *f)
{
	struct hive_stats stats;

	CHECK_OK(hive_stats_read(f->hive, &stats));
	return stats;
}

static void create_asleep(struct fake *f, struct hive_options options)
{
	world = f;
	fake_create(f, options);
	fake_start(f);
	fake_settle(f);
	fake_reset_wakes(f);
}

/* What the queues hold at the moment of a wake. */
static void (*plain_wake)(void *arg, uint32_t worker);
static uint64_t pool_at_wake, compute_pool_at_wake;
static bool letter_at_wake;

static void look_and_wake(void *arg, uint32_t worker)
{
	pool_at_wake = pool_length(&world->hive->pool);
	compute_pool_at_wake = levels_length(&world->hive->compute_pool);
	letter_at_wake = !inbox_is_empty(&hive__slot(&world->hive->io, 0)->inbox);
	plain_wake(arg, worker);
}

/* the task is where it belongs before anybody is woken for it; else the woken one might look, find
 * nothing and sleep again.                                                                                              */
TEST(a_task_is_in_its_queue_before_anybody_is_woken)
{
	for (int door = 0; door < 4; door++) {
		struct fake f = { 0 };

		create_asleep(&f, (struct hive_options){ .io_workers = 1, .compute_workers = 1 });
		plain_wake = f.hive->host.wake;
		f.hive->host.wake = look_and_wake;
		pool_at_wake = compute_pool_at_wake = 0;
		letter_at_wake = false;
		if (door == 0)
			CHECK_OK(hive_post(f.hive, count, NULL));
		if (door == 1)
			CHECK_OK(hive_post_compute(f.hive, count, NULL));
		if (door == 2)
			CHECK_OK(hive_post_to(f.hive, f.workers[0].id, count, NULL));
		if (door == 3)
			CHECK_OK(hive_post_after(f.hive, 0, count, NULL, NULL));
		CHECK_EQ(f.wakes, 1);
		CHECK_EQ(pool_at_wake, door == 0);
		CHECK_EQ(compute_pool_at_wake, door == 1);
		CHECK_EQ(letter_at_wake, door >= 2);
		f.hive->host.wake = plain_wake;
		fake_destroy(&f);
	}
}

static uint64_t splices(struct pool *pool)
{
	uint64_t lanes = 0;

	for (int i = 0; i < POOL_LANES; i++)
		lanes += lane_length(&pool->lanes[i]) > 0;
	return lanes;
}

/* all of them at once, in order, with one wake. */
TEST(many_tasks_go_in_as_one_and_wake_one)
{
	for (int compute = 0; compute < 2; compute++) {
		struct fake f = { 0 };
		struct hive_task tasks[200];
		char expected[1024] = "";

		create_asleep(&f, (struct hive_options){ .io_workers = 3, .compute_workers = 3 });
		for (int i = 0; i < 200; i++) {
			tasks[i] = (struct hive_task){ fake_note, n(i) };
			snprintf(expected + strlen(expected), 8, "%s%d", i ? " " : "", i);
		}
		if (compute)
			CHECK_OK(hive_post_compute_many(f.hive, tasks, 200));
		else
			CHECK_OK(hive_post_many(f.hive, tasks, 200));
		CHECK_EQ(f.wakes, 1);
		CHECK_EQ(compute ? stats_of(&f).compute_pool : stats_of(&f).pool, 200);
		CHECK_EQ(splices(compute ? &f.hive->compute_pool.pools[HIVE_PRIORITY_NORMAL] : &f.hive->pool), 1);
		fake_log_clear();
		for (int i = 0; i < 250; i++) /* one worker alone: first in, first out */
			fake_step(&f, f.workers[compute ? 3 : 0].id);
		CHECK_STR(fake_log(), expected);
		fake_destroy(&f);
	}
}

static void post_many_inside(void *arg)
{
	struct hive_task tasks[3] = { { count, NULL }, { count, NULL }, { count, NULL } };

	(void)arg;
	fake_reset_wakes(world);
	CHECK_OK(hive_post_many(world->hive, tasks, 3));
	CHECK_EQ(stats_of(world).pool, 3);
	CHECK_EQ(hive__current()->outbox_count, 0);
	CHECK_EQ(world->wakes, 1);
}

/* inside a worker a batch goes straight into the pool: it is its own outbox. */
TEST(a_batch_posted_inside_a_worker_goes_straight_to_the_pool)
{
	struct fake f = { 0 };

	create_asleep(&f, (struct hive_options){ .io_workers = 2 });
	CHECK_OK(hive_post_to(f.hive, f.workers[0].id, post_many_inside, NULL));
	ran = 0;
	fake_settle(&f);
	CHECK_EQ(ran, 3);
	fake_destroy(&f);
}

static uint32_t drawn_by[8];
static int draws;

static uint64_t note_draw(void *arg, uint32_t worker)
{
	(void)arg;
	drawn_by[draws++ % 8] = worker;
	return 0;
}

static void post_after_inside(void *arg)
{
	(void)arg;
	draws = 0;
	CHECK_OK(hive_post_after(world->hive, 0, count, NULL, NULL));
	CHECK_EQ(draws, 2);
	CHECK_EQ(drawn_by[0], hive_worker_current());
}

/* a worker draws from its own generator, a thread outside from none of theirs; two draws for two choices. */
TEST(each_worker_draws_from_its_own_generator)
{
	struct fake f = { 0 };

	create_asleep(&f, (struct hive_options){ .io_workers = 3 });
	f.hive->host.random = note_draw;
	draws = 0;
	CHECK_OK(hive_post_after(f.hive, 0, count, NULL, NULL));
	CHECK_EQ(draws, 2);
	CHECK_EQ(drawn_by[0], HIVE_WORKER_NONE);
	CHECK_EQ(drawn_by[1], HIVE_WORKER_NONE);
	CHECK_OK(hive_post_to(f.hive, f.workers[2].id, post_after_inside, NULL));
	draws = 0;
	fake_step(&f, f.workers[2].id);
	CHECK(draws >= 2);
	fake_settle(&f);
	fake_destroy(&f);
}

/* with the system's own generators too, no two workers draw alike, and no worker draws the same again and again. */
TEST(the_generators_of_two_workers_differ)
{
	struct hive *hive = real_create((struct hive_options){ .io_workers = 2 });
	struct worker *a = hive__slot(&hive->io, 0), *b = hive__slot(&hive->io, 1);

	CHECK(a->rng != b->rng);
	CHECK(hive__random(hive) != hive__random(hive));
	CHECK_OK(hive_destroy(hive));
}

/* they wake their target, at once, and nobody else; a target that is awake needs none. */
TEST(directed_and_delayed_posts_wake_their_target_at_once)
{
	struct fake f = { 0 };

	create_asleep(&f, (struct hive_options){ .io_workers = 4, .compute_workers = 1 });
	f.now_ns += HIVE_MS(7);
	CHECK_OK(hive_post_to(f.hive, f.workers[2].id, count, NULL));
	CHECK_EQ(f.wakes, 1);
	CHECK_EQ(f.workers[2].wakes, 1);
	CHECK_EQ(f.workers[2].last_wake_ns, f.now_ns);
	fake_push_random(&f, fake_random(3, 4));
	fake_push_random(&f, fake_random(0, 3));
	CHECK_OK(hive_post_after(f.hive, HIVE_S(1), count, NULL, NULL)); /* although there is a second left */
	CHECK_EQ(f.wakes, 2);
	CHECK_EQ(f.workers[3].wakes, 1);
	CHECK_EQ(f.workers[3].last_wake_ns, f.now_ns);
	CHECK_OK(hive_post_to(f.hive, f.workers[2].id, count, NULL));
	CHECK_EQ(f.wakes, 2);
	fake_step(&f, f.workers[3].id);
	CHECK_EQ(f.workers[3].wait_ns, HIVE_S(1));
	fake_destroy(&f);
}

static void post_self_inside(void *arg)
{
	(void)arg;
	fake_reset_wakes(world);
	for (int i = 0; i < 3; i++) {
		CHECK_OK(hive_post_self(count, NULL));
		CHECK_OK(hive_post_self_after(0, count, NULL, NULL));
	}
	CHECK_EQ(world->wakes, 0);
	CHECK_EQ(timers_count(&hive__current()->timers), 3);
	CHECK(inbox_is_empty(&hive__current()->inbox));
	CHECK(hive__current()->mail.first);
	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_post_local(count, NULL));
	CHECK_EQ(local_size(&hive__current()->local), 3);
	CHECK_EQ(stats_of(world).pool, 0);
	CHECK(world->wakes <= 1); /* a neighbour may help */
	CHECK_EQ(fake_worker(world, hive_worker_current())->wakes, 0);
}

/* R-87 … R-90: the three doors to oneself reach the own queues without a letter and wake neither oneself nor, but for
 * stealable work, anybody else.                                                                                       */
TEST(posts_to_oneself_reach_the_own_queues_and_wake_nobody)
{
	struct fake f = { 0 };

	create_asleep(&f, (struct hive_options){ .io_workers = 3, .compute_workers = 2 });
	CHECK_OK(hive_post_to(f.hive, f.workers[1].id, post_self_inside, NULL));
	ran = 0;
	fake_step(&f, f.workers[1].id);
	CHECK_EQ(ran, 9);
	CHECK_EQ(ran_on, f.workers[1].id);
	fake_destroy(&f);
}

static void post_local_with_sleepers(void *wakes)
{
	fake_reset_wakes(world);
	CHECK_OK(hive_post_local(count, NULL));
	CHECK_OK(hive_post_local(count, NULL));
	*(int *)wakes = world->wakes;
}

/* work that may be stolen wakes one idle neighbour; a worker nobody may steal from wakes nobody. */
TEST(stealable_work_wakes_one_neighbour)
{
	for (int closed = 0; closed < 2; closed++) {
		struct fake f = { 0 };
		struct hive_worker_options o = { .no_steal = closed };
		int wakes = -1;

		create_asleep(&f, (struct hive_options){ .io_workers = 3, .io = &o });
		CHECK_OK(hive_post_to(f.hive, f.workers[0].id, post_local_with_sleepers, &wakes));
		fake_step(&f, f.workers[0].id);
		CHECK_EQ(wakes, !closed);
		fake_settle(&f);
		fake_destroy(&f);
	}
}

static void heavy(void *arg)
{
	ran_on = hive_worker_current();
	world->now_ns += HIVE_S(10); /* it takes its time */
	ran += (int)(intptr_t)arg;
}

/* the same task, however heavy, at each door; where it runs is the call's affair. */
TEST(any_task_may_be_posted_anywhere_and_runs_where_the_call_says)
{
	struct fake f = { 0 };

	create_asleep(&f, (struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	ran = 0;
	for (int i = 0; i < 2; i++) {
		CHECK_OK(hive_post_to(f.hive, f.workers[i].id, heavy, n(1)));
		fake_step(&f, f.workers[i].id);
		CHECK_EQ(ran_on, f.workers[i].id);
	}
	CHECK_OK(hive_post_compute(f.hive, heavy, n(1)));
	fake_step(&f, f.workers[2].id);
	CHECK_EQ(ran_on, f.workers[2].id);
	CHECK_OK(hive_post(f.hive, heavy, n(1)));
	fake_settle(&f);
	CHECK_EQ(ran, 4);
	fake_destroy(&f);
}

static void use_every_door(void)
{
	struct hive *hive = world->hive;
	struct hive_task task = { count, NULL };
	uint64_t id;

	CHECK_OK(hive_post(hive, count, NULL));
	CHECK_OK(hive_post_many(hive, &task, 1));
	CHECK_OK(hive_post_to(hive, world->workers[0].id, count, NULL));
	CHECK_OK(hive_post_to(hive, world->workers[1].id, count, NULL));
	CHECK_OK(hive_post_after(hive, 0, count, NULL, NULL));
	CHECK_OK(hive_post_after(hive, 0, count, NULL, &id));
	CHECK_OK(hive_post_cancel(hive, id));
	CHECK_OK(hive_post_compute(hive, count, NULL));
	CHECK_OK(hive_post_compute_many(hive, &task, 1));
	CHECK_OK(hive_post_compute_then(hive, count, world->workers[0].id, count, NULL));
	CHECK_OK(hive_post_kind(hive, HIVE_COMPUTE, 0, count, NULL));
}

enum { RUNS_PER_USE = 10 };
static int uses;

static void use_doors_in_task(void *arg)
{
	(void)arg;
	use_every_door();
	uses++;
	if (hive_current() && hive__current()->kind == HIVE_WORKER_IO) {
		CHECK_OK(hive_post_self(count, NULL));
		CHECK_OK(hive_post_local(count, NULL));
		CHECK_OK(hive_post_self_after(0, count, NULL, NULL));
		ran -= 3;
	}
}

static struct hive_timer timer;
static struct hive_source source;

static void use_doors_in_timer(struct hive_timer *t)
{
	(void)t;
	use_doors_in_task(NULL);
}

static void use_doors_in_source(struct hive_source *s, uint32_t events)
{
	(void)events;
	use_doors_in_task(NULL);
	CHECK_EQ(hive_source_stop(s), 1);
}

static void use_doors_at_start(void *arg)
{
	use_doors_in_task(arg);
	hive_timer_init(&timer, use_doors_in_timer, NULL);
	CHECK_OK(hive_timer_start(&timer, 0, 0));
	hive_source_init(&source, HIVE_SOURCE_FD, 1, HIVE_EVENT_IN, use_doors_in_source, NULL);
	CHECK_OK(hive_source_start(&source));
}

static void deliver(struct fake_core_script *script, int64_t timeout_ns)
{
	(void)timeout_ns;
	if (script->sources[0])
		hive_source_deliver(script->sources[0], HIVE_EVENT_IN);
}

/* tasks, compute tasks, timers, sources and hooks send their work through all doors. */
TEST(every_door_is_open_inside_tasks_callbacks_and_hooks)
{
	struct fake f = { 0 };
	struct fake_core_script script = { .in_turn = deliver };
	struct hive_worker_options o = { .core_arg = &script, .on_start = use_doors_at_start }, plain = { 0 };
	struct hive_worker_options compute = { .kind = HIVE_WORKER_COMPUTE };

	world = &f;
	fake_create(&f, (struct hive_options){ 0 });
	CHECK_OK(hive_attach(f.hive, &o, NULL));
	CHECK_OK(hive_attach(f.hive, &plain, NULL));
	CHECK_OK(hive_attach(f.hive, &compute, NULL));
	fake_start(&f);
	uses = ran = 0;
	CHECK_OK(hive_post(f.hive, use_doors_in_task, NULL));
	CHECK_OK(hive_post_to(f.hive, f.workers[1].id, use_doors_in_task, NULL));
	CHECK_OK(hive_post_after(f.hive, 0, use_doors_in_task, NULL, NULL));
	CHECK_OK(hive_post_compute(f.hive, use_doors_in_task, NULL));
	fake_settle(&f);
	CHECK_EQ(uses, 7);
	CHECK_EQ(ran, uses * RUNS_PER_USE);
	fake_destroy(&f);
}

enum { POSTERS = 4, ROUNDS = 500 };
static struct hive *shared;
static uint64_t shared_ran;

static void tally(void *arg)
{
	(void)arg;
	__atomic_add_fetch(&shared_ran, 1, __ATOMIC_SEQ_CST);
}

static void *post_from_here(void *arg)
{
	struct hive_task two[2] = { { tally, NULL }, { tally, NULL } };
	uint32_t ids[2];

	(void)arg;
	hive_workers(shared, ids, 2);
	for (int i = 0; i < ROUNDS / test_slowness(); i++) {
		CHECK_OK(hive_post(shared, tally, NULL));
		CHECK_OK(hive_post_many(shared, two, 2));
		CHECK_OK(hive_post_to(shared, ids[i % 2], tally, NULL));
		CHECK_OK(hive_post_after(shared, HIVE_US(i % 7), tally, NULL, NULL));
		CHECK_OK(hive_post_compute(shared, tally, NULL));
		CHECK_OK(hive_post_compute_many(shared, two, 2));
		CHECK_OK(hive_post_compute_then(shared, tally, ids[1], tally, NULL));
	}
	return NULL;
}

/* R-95, real threads: any door, any thread, any time, also before the hive runs. */
TEST(any_thread_may_use_any_door_at_any_time)
{
	uint64_t expected = (uint64_t)(ROUNDS / test_slowness()) * POSTERS * 10;
	pthread_t threads[POSTERS];

	shared = real_create((struct hive_options){ .io_workers = 2, .compute_workers = 2 });
	shared_ran = 0;
	for (int i = 0; i < POSTERS; i++)
		CHECK_OK(pthread_create(&threads[i], NULL, post_from_here, NULL));
	CHECK_OK(hive_start(shared));
	for (int i = 0; i < POSTERS; i++)
		CHECK_OK(pthread_join(threads[i], NULL));
	WAIT_UNTIL(__atomic_load_n(&shared_ran, __ATOMIC_SEQ_CST) == expected);
	CHECK_EQ(real_end(shared, HIVE_DRAIN).ran, expected);
}

static void nonsense_inside(void *arg)
{
	(void)arg;
	CHECK_ERR(hive_post_local(NULL, NULL), -EINVAL);
	CHECK_ERR(hive_post_self(NULL, NULL), -EINVAL);
	CHECK_ERR(hive_post_self_after(0, NULL, NULL, NULL), -EINVAL);
}

/* nonsense is refused at every door, nothing is queued, no output is written. */
TEST(doors_refuse_nonsense)
{
	struct fake f = { 0 };
	struct hive_task good = { count, NULL }, bad[3] = { { count, NULL }, { NULL, NULL }, { count, NULL } };
	uint64_t id = 77;
	uint32_t io, compute;

	create_asleep(&f, (struct hive_options){ .io_workers = 1, .compute_workers = 1 });
	io = f.workers[0].id;
	compute = f.workers[1].id;
	CHECK_ERR(hive_post(NULL, count, NULL), -EINVAL);
	CHECK_ERR(hive_post(f.hive, NULL, NULL), -EINVAL);
	CHECK_ERR(hive_post_many(NULL, &good, 1), -EINVAL);
	CHECK_ERR(hive_post_many(f.hive, NULL, 1), -EINVAL);
	CHECK_ERR(hive_post_many(f.hive, bad, 3), -EINVAL);
	CHECK_ERR(hive_post_many(f.hive, NULL, SIZE_MAX), -EINVAL);
	CHECK_ERR(hive_post_many(f.hive, &good, SIZE_MAX), -EINVAL);
	CHECK_OK(hive_post_many(f.hive, NULL, 0));
	CHECK_ERR(hive_post_compute(NULL, count, NULL), -EINVAL);
	CHECK_ERR(hive_post_compute(f.hive, NULL, NULL), -EINVAL);
	CHECK_ERR(hive_post_compute_many(f.hive, bad, 3), -EINVAL);
	CHECK_ERR(hive_post_compute_many(NULL, &good, 1), -EINVAL);
	CHECK_OK(hive_post_compute_many(f.hive, NULL, 0));
	CHECK_ERR(hive_post_to(NULL, io, count, NULL), -EINVAL);
	CHECK_ERR(hive_post_to(f.hive, io, NULL, NULL), -EINVAL);
	CHECK_ERR(hive_post_to(f.hive, HIVE_WORKER_NONE, count, NULL), -EINVAL);
	CHECK_ERR(hive_post_to(f.hive, compute, count, NULL), -EINVAL);
	CHECK_ERR(hive_post_to(f.hive, io + 1, count, NULL), -ESRCH);
	CHECK_ERR(hive_post_to(f.hive, UINT32_MAX - 1, count, NULL), -ESRCH);
	CHECK_ERR(hive_post_after(NULL, 0, count, NULL, &id), -EINVAL);
	CHECK_ERR(hive_post_after(f.hive, 0, NULL, NULL, &id), -EINVAL);
	CHECK_ERR(hive_post_compute_then(NULL, count, io, count, NULL), -EINVAL);
	CHECK_ERR(hive_post_compute_then(f.hive, NULL, io, count, NULL), -EINVAL);
	CHECK_ERR(hive_post_compute_then(f.hive, count, io, NULL, NULL), -EINVAL);
	CHECK_ERR(hive_post_compute_then(f.hive, count, HIVE_WORKER_NONE, count, NULL), -EINVAL);
	CHECK_ERR(hive_post_compute_then(f.hive, count, io + 1, count, NULL), -ESRCH);
	CHECK_ERR(hive_post_kind(NULL, HIVE_MICRO, 0, count, NULL), -EINVAL);
	CHECK_ERR(hive_post_kind(f.hive, HIVE_MICRO, 1, NULL, NULL), -EINVAL);
	CHECK_EQ(id, 77);
	CHECK_EQ(f.wakes, 0);
	ran = 0;
	CHECK_OK(hive_post_to(f.hive, io, nonsense_inside, NULL));
	fake_settle(&f);
	CHECK_EQ(ran, 0);
	CHECK_EQ(stats_of(&f).posted, 1);
	CHECK_EQ(stats_of(&f).refused, 0);
	fake_destroy(&f);
}
