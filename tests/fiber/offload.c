/* SPDX-License-Identifier: MIT */
/* hive_offload(): on a compute worker, the fiber parked; its deadline is one of the queue. */
#include "support/real.h"
#include "support/world.h"

static _Atomic int ran;
static uint32_t where;

static int compute(void *arg)
{
	struct hive_worker_stats s;

	CHECK(!hive_fiber_current());
	where = hive_worker_current();
	CHECK_OK(hive_worker_stats_read(hive_current(), where, &s));
	CHECK_EQ(s.kind, HIVE_WORKER_COMPUTE);
	ran++;
	return (int)(intptr_t)arg;
}

static int offload_it(void *arg)
{
	int result = 0, r = hive_offload(compute, arg, HIVE_FOREVER, &result);

	return r < 0 ? r : result;
}

TEST(an_offloaded_function_runs_on_a_compute_worker)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct world w = world_open(seed, 2, 2);
		struct hive_fiber *fibers[10];

		for (intptr_t i = 0; i < 10; i++)
			fibers[i] = world_spawn(&w, offload_it, (void *)(i - 5));
		for (int i = 0; i < 10; i++)
			CHECK_EQ(world_result(fibers[i]), i - 5);
		world_close(&w, HIVE_DRAIN);
	}
}

/* The worker is free meanwhile. */
static _Atomic bool may_return;

static int wait_for_permission(void *arg)
{
	(void)arg;
	while (!may_return)
		sched_yield();
	return 6;
}

static int offload_waiting(void *arg)
{
	int result = 0, r = hive_offload(wait_for_permission, arg, HIVE_FOREVER, &result);

	return r < 0 ? r : result;
}

static int permit(void *arg)
{
	(void)arg;
	may_return = true;
	return 0;
}

TEST(the_io_worker_goes_on_meanwhile)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 1 });
	struct hive_fiber *fiber;
	int result;

	may_return = false;
	CHECK_OK(hive_spawn(hive, offload_waiting, NULL, NULL, &fiber));
	CHECK_OK(hive_spawn(hive, permit, NULL, NULL, NULL));
	CHECK_OK(hive_fiber_join(fiber, real_patience(), &result));
	CHECK_EQ(result, 6);
	real_end(hive, HIVE_DRAIN);
}

/* ---- elsewhere ---- */

static int plain(void *arg)
{
	return (int)(intptr_t)arg;
}

static int answers[2];

static void offload_in_task(void *arg)
{
	int result = 77;

	answers[arg != NULL] = hive_offload(plain, (void *)5, HIVE_FOREVER, &result);
	CHECK_EQ(result, arg ? 5 : 77);
}

/* On a thread and in a compute task: called here. On an IO worker outside a fiber: refused. */
TEST(outside_of_fibers_it_is_a_call_or_refused)
{
	struct world w = world_open(1, 1, 1);
	int result = 0;

	CHECK_OK(hive_offload(plain, (void *)9, HIVE_NOWAIT, &result));
	CHECK_EQ(result, 9);
	CHECK_OK(hive_offload(plain, (void *)9, HIVE_FOREVER, NULL));
	answers[0] = answers[1] = 77;
	CHECK_OK(hive_post(w.hive, offload_in_task, NULL));
	CHECK_OK(hive_post_compute(w.hive, offload_in_task, &w));
	world_settle(&w);
	CHECK_EQ(answers[0], -EDEADLK);
	CHECK_EQ(answers[1], 0);
	world_close(&w, HIVE_DRAIN);
}

TEST(without_a_compute_worker_it_is_refused)
{
	struct world w = world_open(1, 1, 0);
	uint32_t id;

	CHECK_EQ(world_result(world_spawn(&w, offload_it, NULL)), -ENOTSUP);
	CHECK_OK(hive_attach(w.hive, &(struct hive_worker_options){ .kind = HIVE_WORKER_COMPUTE }, &id));
	CHECK_EQ(world_result(world_spawn(&w, offload_it, (void *)4)), 4);
	CHECK_OK(hive_detach(w.hive, id, HIVE_FOREVER));
	CHECK_EQ(world_result(world_spawn(&w, offload_it, NULL)), -ENOTSUP);
	world_close(&w, HIVE_DRAIN);
}

/* ---- the deadline, a cancel ---- */

struct late {
	int64_t delay_ns;
	int result;
};

static int offload_with_deadline(void *arg)
{
	struct late *l = arg;

	return hive_offload(compute, (void *)3, hive_deadline(NULL, l->delay_ns), &l->result);
}

/* Real threads: the only compute worker is busy, so it stays in the queue. */
TEST(a_deadline_limits_the_time_in_the_queue)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	struct late late[3] = { { HIVE_MS(1), 77 }, { 0, 77 }, { HIVE_S(1000), 77 } };
	struct hive_fiber *fibers[3];
	struct block block;
	int result;

	ran = 0;
	block_init(&block);
	CHECK_OK(hive_post_compute(hive, block_task, &block));
	gate_pass(&block.entered);
	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_spawn(hive, offload_with_deadline, &late[i], NULL, &fibers[i]));
	for (int i = 0; i < 2; i++) {
		CHECK_OK(hive_fiber_join(fibers[i], real_patience(), &result));
		CHECK_EQ(result, -ETIMEDOUT);
		CHECK_EQ(late[i].result, 77);
	}
	CHECK_EQ(ran, 0);
	gate_open(&block.leave);
	CHECK_OK(hive_fiber_join(fibers[2], real_patience(), &result));
	CHECK_EQ(result, 0);
	CHECK_EQ(late[2].result, 3);
	real_end(hive, HIVE_DRAIN);
	CHECK_EQ(ran, 1); /* what was given up never ran */
	block_destroy(&block);
}

static int block_compute(void *arg)
{
	block_task(arg);
	ran++;
	return 8;
}

struct given_up {
	struct block block;
	int64_t deadline_ns;
	int result;
};

static int offload_block(void *arg)
{
	struct given_up *g = arg;

	return hive_offload(block_compute, &g->block, g->deadline_ns, &g->result);
}

/* Begun is waited for: neither the deadline nor a cancel gives up what may use the caller's memory. */
TEST(what_has_begun_is_waited_for)
{
	for (int by_cancel = 0; by_cancel < 2; by_cancel++) {
		struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 1 });
		struct given_up g = { .result = 77 };
		struct hive_fiber *fiber;
		int result;

		ran = 0;
		block_init(&g.block);
		g.deadline_ns = by_cancel ? HIVE_FOREVER : hive_deadline(NULL, HIVE_MS(2));
		CHECK_OK(hive_spawn(hive, offload_block, &g, NULL, &fiber));
		if (!by_cancel) /* it may be given up before it begins, on a slow machine; then there is nothing to see */
			CHECK_OK(hive_fiber_detach(fiber));
		else
			gate_pass(&g.block.entered);
		if (by_cancel) {
			CHECK_OK(hive_fiber_cancel(fiber));
			CHECK_ERR(hive_fiber_join(fiber, hive_deadline(NULL, HIVE_MS(3)), &result), -ETIMEDOUT);
		}
		gate_open(&g.block.leave);
		if (by_cancel) {
			CHECK_OK(hive_fiber_join(fiber, real_patience(), &result));
			CHECK_EQ(result, 0);
			CHECK_EQ(g.result, 8);
			CHECK_EQ(ran, 1);
		}
		real_end(hive, HIVE_DRAIN);
		CHECK_EQ(g.result, ran ? 8 : 77);
		block_destroy(&g.block);
	}
}

TEST(a_cancel_ends_the_wait_in_the_queue)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 1 });
	struct hive_fiber *fibers[5];
	struct block block;
	int result;

	ran = 0;
	block_init(&block);
	CHECK_OK(hive_post_compute(hive, block_task, &block));
	gate_pass(&block.entered);
	for (int i = 0; i < 5; i++)
		CHECK_OK(hive_spawn(hive, offload_it, NULL, NULL, &fibers[i]));
	for (int i = 0; i < 5; i++) {
		CHECK_OK(hive_fiber_cancel(fibers[i]));
		CHECK_OK(hive_fiber_join(fibers[i], real_patience(), &result));
		CHECK_EQ(result, -ECANCELED);
	}
	gate_open(&block.leave);
	real_end(hive, HIVE_DRAIN);
	CHECK_EQ(ran, 0);
	block_destroy(&block);
}

/* ---- stop ---- */

/* A drain lets them finish, those in the queue and those that come to it later. */
static int offload_later(void *arg)
{
	int result = 0, r;

	CHECK_OK(hive_sleep(HIVE_MS(5)));
	for (int i = 0; i < 3; i++) {
		r = hive_offload(compute, arg, HIVE_FOREVER, &result);
		if (r < 0)
			return r;
		CHECK_OK(hive_sleep(HIVE_MS(1)));
	}
	return result;
}

TEST(a_drain_waits_for_offloads)
{
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct world w = world_open(seed, 1 + (int32_t)(seed % 3), 1 + (int32_t)(seed % 2));
		struct hive_fiber *fibers[6];

		ran = 0;
		for (intptr_t i = 0; i < 6; i++)
			fibers[i] = world_spawn(&w, i % 2 ? offload_later : offload_it, (void *)i);
		if (seed % 4)
			world_advance(&w, (int64_t)seed * 100);
		CHECK_OK(hive_stop(w.hive, HIVE_DRAIN, HIVE_FOREVER));
		for (int i = 0; i < 6; i++)
			CHECK_EQ(world_result(fibers[i]), i);
		CHECK_EQ(ran, 12);
		world_join(&w);
	}
}

/* HIVE_NOW: what had not begun is cancelled, what had is waited for. */
TEST(a_stop_cancels_offloads_in_the_queue)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	struct given_up g = { .result = 77, .deadline_ns = HIVE_FOREVER };
	struct hive_fiber *first, *fibers[5];
	int result;

	ran = 0;
	block_init(&g.block);
	CHECK_OK(hive_spawn(hive, offload_block, &g, NULL, &first));
	gate_pass(&g.block.entered);
	for (int i = 0; i < 5; i++)
		CHECK_OK(hive_spawn(hive, offload_it, NULL, NULL, &fibers[i]));
	CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
	for (int i = 0; i < 5; i++) {
		CHECK_OK(hive_fiber_join(fibers[i], real_patience(), &result));
		CHECK_EQ(result, -ECANCELED);
	}
	CHECK_ERR(hive_fiber_join(first, HIVE_NOWAIT, &result), -ETIMEDOUT);
	gate_open(&g.block.leave);
	CHECK_OK(hive_fiber_join(first, real_patience(), &result));
	CHECK_EQ(result, 0);
	CHECK_EQ(g.result, 8);
	CHECK_EQ(ran, 1);
	real_join(hive);
	block_destroy(&g.block);
}
