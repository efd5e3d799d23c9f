/* SPDX-License-Identifier: MIT */
/* Where fibers run and where they come from: pinned ones, those that move, and all the places to spawn from. */
#include "support/cores.h"
#include "support/real.h"
#include "support/world.h"

static size_t workers_of(struct hive *hive, uint32_t *ids)
{
	size_t n = hive_workers(hive, ids, 8);

	CHECK(n <= 8);
	return n;
}

/* ---- pinned ---- */

struct pinned {
	uint32_t worker;
	int rounds, away;
	struct hive_fiber *other;
};

static int do_nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* Through every kind of wait it comes back to its worker. */
static int stay(void *arg)
{
	struct pinned *p = arg;
	struct hive_fiber *child;

	for (; p->rounds > 0; p->rounds--) {
		CHECK_OK(hive_spawn(hive_current(), do_nothing, NULL, NULL, &child));
		CHECK_OK(hive_fiber_join(child, HIVE_FOREVER, NULL));
		p->away += hive_worker_current() != p->worker;
		CHECK_OK(hive_yield());
		p->away += hive_worker_current() != p->worker;
		CHECK_OK(hive_sleep(p->rounds));
		p->away += hive_worker_current() != p->worker;
		CHECK_ERR(hive_wait_all(&p->other, 1, hive_deadline(NULL, 1)), -ETIMEDOUT);
	}
	return hive_sleep(HIVE_MS(1));
}

static int sleep_for_ever(void *arg)
{
	(void)arg;
	return hive_sleep(HIVE_FOREVER);
}

TEST(a_pinned_fiber_stays_with_its_worker)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct world w = world_open(seed, 4, 0);
		struct hive_fiber *fibers[8], *other = world_spawn(&w, sleep_for_ever, NULL);
		struct pinned p[8];
		uint32_t ids[8];

		CHECK_EQ(workers_of(w.hive, ids), 4);
		for (int i = 0; i < 8; i++) {
			struct hive_fiber_options o = { .worker = ids[i % 4] };

			p[i] = (struct pinned){ ids[i % 4], 20, 0, other };
			CHECK_OK(hive_spawn(w.hive, stay, &p[i], &o, &fibers[i]));
		}
		for (int i = 0; i < 8; i++) {
			CHECK_EQ(world_result(fibers[i]), 0);
			CHECK_EQ(p[i].away, 0);
		}
		CHECK_OK(hive_fiber_cancel(other));
		CHECK_EQ(world_result(other), -ECANCELED);
		world_close(&w, HIVE_DRAIN);
	}
}

/* ---- whose turn it is ---- */

static char turns[8];

static void note(char who)
{
	turns[strlen(turns)] = who;
}

static void note_task(void *arg)
{
	(void)arg;
	note('t');
}

static int note_child(void *arg)
{
	(void)arg;
	note('c');
	return 0;
}

static int join_before_others(void *arg)
{
	struct hive *hive = hive_current();
	struct hive_fiber *child;

	CHECK_OK(hive_post_local(note_task, arg));
	CHECK_OK(hive_spawn(hive, note_child, NULL, NULL, &child));
	CHECK_OK(hive_fiber_join(child, HIVE_FOREVER, NULL));
	note('j');
	return 0;
}

/* Who joins goes on when its turn comes by the order of the worker, whether or not it went through the queue. */
TEST(a_joiner_has_its_turn_by_the_order_of_its_worker)
{
	const enum hive_order orders[] = { HIVE_ORDER_NEWEST, HIVE_ORDER_OLDEST };
	const char *expected[] = { "cjt", "tcj" };

	for (int i = 0; i < 2; i++) {
		struct hive_worker_options io = { .order = orders[i] };
		struct hive_options o = { .io_workers = 1, .io = &io };
		struct world w = world_with((struct hive_sim_options){ .seed = 3 }, o);

		memset(turns, 0, sizeof turns);
		CHECK_EQ(world_result(world_spawn(&w, join_before_others, NULL)), 0);
		world_settle(&w);
		CHECK_STR(turns, expected[i]);
		world_close(&w, HIVE_DRAIN);
	}
}

static int spawn_pinned(void *arg)
{
	struct pinned *p = arg;
	struct hive_fiber_options o = { .worker = p->worker };
	struct hive_fiber *child;

	CHECK_OK(hive_spawn(hive_current(), stay, p, &o, &child));
	CHECK_OK(hive_fiber_join(child, HIVE_FOREVER, NULL));
	return 0;
}

TEST(fibers_may_be_pinned_from_inside_and_to_the_main_worker)
{
	struct world w = world_open(4, 3, 0);
	struct hive_fiber *other = world_spawn(&w, sleep_for_ever, NULL), *fiber;
	uint32_t ids[8];

	workers_of(w.hive, ids);
	for (int i = 0; i < 3; i++) {
		struct pinned p = { ids[i], 10, 0, other };

		CHECK_EQ(world_result(world_spawn(&w, spawn_pinned, &p)), 0);
		CHECK_EQ(p.away, 0);
	}
	struct pinned p = { ids[0], 10, 0, other };
	CHECK_OK(hive_spawn(w.hive, stay, &p, &(struct hive_fiber_options){ .worker = HIVE_WORKER_MAIN }, &fiber));
	CHECK_EQ(world_result(fiber), 0);
	CHECK_EQ(p.away, 0);
	CHECK_OK(hive_fiber_cancel(other));
	CHECK_EQ(world_result(other), -ECANCELED);
	world_close(&w, HIVE_DRAIN);
}

/* Its worker leaves: it goes on elsewhere, whatever it was doing; nothing is lost and nothing is early. */
TEST(a_pinned_fiber_goes_on_when_its_worker_leaves)
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct world w = world_open(seed, 3, 0);
		struct hive_fiber *fibers[4], *other = world_spawn(&w, sleep_for_ever, NULL);
		struct pinned p[4];
		uint32_t ids[8];

		workers_of(w.hive, ids);
		for (int i = 0; i < 4; i++) {
			p[i] = (struct pinned){ ids[2], 10, 0, other };
			CHECK_OK(hive_spawn(w.hive, stay, &p[i], &(struct hive_fiber_options){ .worker = ids[2] },
			                    &fibers[i]));
		}
		world_advance(&w, (int64_t)seed);
		CHECK_OK(hive_detach(w.hive, ids[2], HIVE_FOREVER));
		CHECK_ERR(hive_spawn(w.hive, stay, &p, &(struct hive_fiber_options){ .worker = ids[2] }, NULL), -ESRCH);
		for (int i = 0; i < 4; i++) {
			CHECK_EQ(world_result(fibers[i]), 0);
			CHECK(p[i].away > 0);
		}
		CHECK_OK(hive_fiber_cancel(other));
		CHECK_EQ(world_result(other), -ECANCELED);
		world_close(&w, HIVE_DRAIN);
	}
}

TEST(only_io_workers_can_be_pinned_to)
{
	struct world w = world_open(4, 1, 1);
	uint32_t ids[8];

	CHECK_EQ(workers_of(w.hive, ids), 2);
	CHECK_ERR(hive_spawn(w.hive, stay, NULL, &(struct hive_fiber_options){ .worker = ids[1] }, NULL), -EINVAL);
	world_close(&w, HIVE_DRAIN);
}

/* ---- those that move ---- */

static _Atomic int moves;
static _Atomic bool enough;

static int wander(void *arg)
{
	uint32_t last = hive_worker_current();

	(void)arg;
	for (unsigned turn = 0; !enough; turn++) {
		/* Who only yields stays as long as everybody has something to do. */
		CHECK_OK(turn % 16 == 0 ? hive_sleep(HIVE_US(20)) : hive_yield());
		moves += last != hive_worker_current();
		last = hive_worker_current();
	}
	return 0;
}

/* F-6: it may continue on another worker. */
TEST(fibers_move_between_workers)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 2 });
	struct hive_fiber *fibers[8];

	moves = 0;
	enough = false;
	for (int i = 0; i < 8; i++)
		CHECK_OK(hive_spawn(hive, wander, NULL, NULL, &fibers[i]));
	WAIT_UNTIL(moves > 10);
	enough = true;
	for (int i = 0; i < 8; i++)
		CHECK_OK(hive_fiber_join(fibers[i], real_patience(), NULL));
	real_end(hive, HIVE_DRAIN);
}

/* F-7, F-8: inside, the own queue; outside, the pool. */
static int spawn_two(void *arg)
{
	struct hive_worker_stats s;

	for (int i = 0; i < 2; i++)
		CHECK_OK(hive_spawn(hive_current(), sleep_for_ever, NULL, NULL, &((struct hive_fiber **)arg)[i]));
	CHECK_OK(hive_worker_stats_read(hive_current(), hive_worker_current(), &s));
	CHECK_EQ(s.local, 2);
	return 0;
}

TEST(a_spawn_inside_goes_to_the_own_queue_and_outside_to_the_pool)
{
	struct world w = world_open(4, 1, 0);
	struct hive_stats stats;
	struct hive_fiber *children[2], *fiber;

	world_settle(&w);
	fiber = world_spawn(&w, spawn_two, children);
	CHECK_OK(hive_stats_read(w.hive, &stats));
	CHECK_EQ(stats.pool, 1);
	CHECK_EQ(world_result(fiber), 0);
	world_close(&w, HIVE_NOW);
}

/* ---- where spawns come from ---- */

static int came;

static int arrive(void *arg)
{
	CHECK(hive_fiber_current());
	CHECK_OK(hive_sleep(1));
	came += (int)(intptr_t)arg;
	return 0;
}

static void spawn_in_task(void *arg)
{
	CHECK(!hive_fiber_current());
	CHECK_OK(hive_spawn(hive_current(), arrive, arg, NULL, NULL));
}

static void spawn_in_timer(struct hive_timer *timer)
{
	spawn_in_task(timer->arg);
}

static void spawn_in_source(struct hive_source *source, uint32_t events)
{
	(void)events;
	take_byte((int)source->handle);
	spawn_in_task(source->arg);
}

static struct hive_timer timer;
static struct hive_source source;

static void start_both(void *arg)
{
	(void)arg;
	CHECK_OK(hive_timer_start(&timer, 5, 0));
	CHECK_OK(hive_source_start(&source));
}

static int spawn_in_offload(void *arg)
{
	spawn_in_task(arg);
	return 0;
}

static int spawn_in_fiber(void *arg)
{
	CHECK_OK(hive_spawn(hive_current(), arrive, arg, NULL, NULL));
	CHECK_OK(hive_offload(spawn_in_offload, number(100000), HIVE_FOREVER, NULL));
	return 0;
}

TEST(fibers_may_be_spawned_everywhere)
{
	struct world w = world_open(4, 2, 1);
	int fds[2];

	came = 0;
	make_pipe(fds);
	hive_timer_init(&timer, spawn_in_timer, number(1));
	hive_source_init(&source, HIVE_SOURCE_FD, fds[0], HIVE_EVENT_IN, spawn_in_source, number(10));
	CHECK_OK(hive_post(w.hive, start_both, NULL));
	world_settle(&w);
	put_byte(fds[1]);
	CHECK_OK(hive_post(w.hive, spawn_in_task, number(100)));
	CHECK_OK(hive_post_compute(w.hive, spawn_in_task, number(1000)));
	CHECK_OK(hive_spawn(w.hive, spawn_in_fiber, number(10000), NULL, NULL));
	CHECK_OK(hive_spawn(w.hive, arrive, number(1000000), NULL, NULL));
	world_advance(&w, 100);
	CHECK_EQ(came, 1111111);
	world_close(&w, HIVE_DRAIN);
	close_both(fds);
}

/* From the workers of one hive into another, and joined from there. */
static int arrive_softly(void *arg)
{
	int r = hive_sleep(1);

	(void)arg;
	return r;
}

static int spawn_across(void *arg)
{
	struct hive_fiber *child;
	int result = 0;

	for (int i = 0; i < 40; i++) {
		CHECK_OK(hive_spawn(arg, arrive_softly, NULL, NULL, &child));
		if (i % 2)
			CHECK_OK(hive_fiber_cancel(child));
		CHECK_OK(hive_fiber_join(child, HIVE_FOREVER, &result));
		CHECK(result == 0 || (i % 2 && result == -ECANCELED));
	}
	return 3;
}

TEST(fibers_of_two_hives_wait_for_each_other)
{
	struct world w = world_open(4, 2, 0);
	struct hive_options o = { .io_workers = 2, .host = hive_sim_host(w.sim) };
	struct hive_fiber *there, *here;
	struct hive *other;

	CHECK_OK(hive_create(&o, &other));
	CHECK_OK(hive_start(other));
	here = world_spawn(&w, spawn_across, other);
	CHECK_OK(hive_spawn(other, spawn_across, w.hive, NULL, &there));
	CHECK_EQ(world_result(here), 3);
	CHECK_EQ(world_result(there), 3);
	CHECK_OK(hive_stop(other, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(other, HIVE_FOREVER));
	CHECK_OK(hive_destroy(other));
	world_close(&w, HIVE_DRAIN);
}

/* The thread that started both can still wait for the first when the second is gone. */
TEST(a_world_survives_the_end_of_a_later_one)
{
	struct world w = world_open(4, 1, 0), second = world_open(5, 1, 0);

	world_close(&second, HIVE_DRAIN);
	CHECK_OK(hive_block_on(w.hive, arrive_softly, NULL, HIVE_FOREVER, NULL));
	world_close(&w, HIVE_DRAIN);
}

static void join_in_compute(void *arg)
{
	struct hive_fiber *fiber;
	int result = 77;

	CHECK_OK(hive_spawn(hive_current(), arrive_softly, NULL, NULL, &fiber));
	CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, &result));
	CHECK_EQ(result, 0);
	CHECK_OK(hive_spawn(hive_current(), sleep_for_ever, NULL, NULL, &fiber));
	CHECK_ERR(hive_fiber_join(fiber, hive_deadline(NULL, HIVE_US(10)), &result), -ETIMEDOUT);
	CHECK_OK(hive_fiber_cancel(fiber));
	CHECK_OK(hive_wait_all(&fiber, 1, HIVE_FOREVER));
	CHECK_OK(hive_fiber_join(fiber, HIVE_NOWAIT, &result));
	CHECK_EQ(result, -ECANCELED);
	++*(_Atomic int *)arg;
}

/* A compute task blocks its thread, in the simulator as in the real world. */
TEST(compute_tasks_wait_for_fibers)
{
	struct world w = world_open(4, 2, 2);
	struct hive *hive = real_start((struct hive_options){ .io_workers = 2, .compute_workers = 2 });
	_Atomic int done = 0;

	for (int i = 0; i < 5; i++)
		CHECK_OK(hive_post_compute(hive, join_in_compute, &done));
	WAIT_UNTIL(done == 5);
	real_end(hive, HIVE_DRAIN);
	for (int i = 0; i < 5; i++)
		CHECK_OK(hive_post_compute(w.hive, join_in_compute, &done));
	world_advance(&w, HIVE_S(1));
	CHECK_EQ(done, 10);
	world_close(&w, HIVE_DRAIN);
}

static void join_in_task(void *arg)
{
	struct hive_fiber *fiber = arg;
	size_t index;

	CHECK_ERR(hive_fiber_join(fiber, HIVE_FOREVER, NULL), -EDEADLK);
	CHECK_ERR(hive_fiber_join(fiber, hive_deadline(NULL, 5), NULL), -EDEADLK);
	CHECK_ERR(hive_wait_all(&fiber, 1, HIVE_FOREVER), -EDEADLK);
	CHECK_ERR(hive_wait_any(&fiber, 1, HIVE_FOREVER, &index), -EDEADLK);
	CHECK_ERR(hive_fiber_join(fiber, HIVE_NOWAIT, NULL), -ETIMEDOUT);
	CHECK_ERR(hive_wait_all(&fiber, 1, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(hive_wait_any(&fiber, 1, HIVE_NOWAIT, &index), -ETIMEDOUT);
	CHECK_OK(hive_fiber_cancel(fiber));
	came++;
}

/* May wait: on an IO worker outside a fiber only HIVE_NOWAIT, and the handle stays as it was. */
TEST(tasks_of_io_workers_may_ask_but_not_wait)
{
	struct world w = world_open(4, 2, 0);
	struct hive_fiber *fiber = world_spawn(&w, sleep_for_ever, NULL);

	came = 0;
	CHECK_OK(hive_post(w.hive, join_in_task, fiber));
	world_settle(&w);
	CHECK_EQ(world_result(fiber), -ECANCELED);
	CHECK_EQ(came, 1);
	world_close(&w, HIVE_DRAIN);
}
