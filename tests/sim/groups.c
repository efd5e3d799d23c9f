/* SPDX-License-Identifier: MIT */
/* Groups in virtual time, without threads: a wait inside a task makes the others go on. The same seed, the same run. */
#include <rophive/hive.h>
#include <rophive/sim.h>

#include "test.h"

struct world {
	struct hive_sim *sim;
	struct hive *hive;
	long sum;
	int done;
	int64_t last_ns; /* when the last task ended that takes time */
};

static struct world make(uint64_t seed, int32_t io, int32_t compute, int64_t beat_ns)
{
	struct world w = { 0 };
	struct hive_options options = { .io_workers = io, .compute_workers = compute };

	CHECK_OK(hive_sim_create(&(struct hive_sim_options){ .seed = seed, .beat_ns = beat_ns }, &w.sim));
	options.host = hive_sim_host(w.sim);
	CHECK_OK(hive_create(&options, &w.hive));
	CHECK_OK(hive_start(w.hive));
	return w;
}

static uint64_t end(struct world *w)
{
	struct hive_report report;
	uint64_t hash;

	CHECK_OK(hive_stop(w->hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(w->hive, HIVE_FOREVER));
	CHECK_OK(hive_report_read(w->hive, &report));
	CHECK_EQ(report.posted, report.ran + report.cancelled + report.dropped);
	CHECK_OK(hive_destroy(w->hive));
	hash = hive_sim_hash(w->sim);
	CHECK_OK(hive_sim_destroy(w->sim));
	return hash;
}

struct call {
	struct hive *hive;
	int n;
	long result;
};

static void fib(void *arg)
{
	struct call *c = arg, left = { c->hive, c->n - 1, 0 }, right = { c->hive, c->n - 2, 0 };
	struct hive_group group;

	if (c->n < 2) {
		c->result = c->n;
		return;
	}
	hive_group_init(&group, c->hive, HIVE_COMPUTE);
	hive_group_run(&group, fib, &left);
	fib(&right);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	c->result = left.result + right.result;
}

static void add_range(void *arg, int64_t begin, int64_t end_of_range)
{
	struct world *w = arg;

	for (int64_t i = begin; i < end_of_range; i++)
		w->sum += i;
}

static void count(void *arg)
{
	((struct world *)arg)->done++;
}

/* Its group is filled by a fiber, which comes later, and by the compute pool. */
static int fill_later(void *arg)
{
	struct world *w = arg;
	struct hive_group group;

	CHECK_OK(hive_sleep(HIVE_MS(3)));
	hive_group_init(&group, w->hive, HIVE_COMPUTE);
	for (int i = 0; i < 5; i++)
		hive_group_run(&group, count, w);
	return hive_group_wait(&group, HIVE_FOREVER);
}

static void wait_in_compute_task(void *arg)
{
	struct world *w = arg;
	int64_t began = hive_now(w->hive);
	struct hive_group group;

	hive_group_init(&group, w->hive, HIVE_COMPUTE);
	CHECK_OK(hive_group_spawn(&group, fill_later, w, NULL));
	hive_group_run(&group, count, w);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	CHECK(hive_now(w->hive) >= began + HIVE_MS(3));
	CHECK_EQ(w->done, 6);
}

static uint64_t run_program(uint64_t seed)
{
	struct world w = make(seed, 1 + (int32_t)(seed % 2), 1 + (int32_t)(seed % 3), 0);
	struct call root = { w.hive, 10, 0 };
	struct hive_group group;

	hive_group_init(&group, w.hive, HIVE_COMPUTE);
	hive_group_run(&group, fib, &root);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	CHECK_EQ(root.result, 55);
	CHECK_OK(hive_parallel_for(w.hive, 0, 100, 7, add_range, &w, HIVE_FOREVER));
	CHECK_EQ(w.sum, 4950);
	hive_group_run(&group, wait_in_compute_task, &w);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	CHECK_EQ(w.done, 6);
	return end(&w);
}

TEST(the_same_seed_is_the_same_run)
{
	for (uint64_t seed = 0; seed < (uint64_t)test_env("ROPHIVE_SIM_SEEDS", 200) / 2; seed++)
		CHECK_EQ(run_program(seed), run_program(seed));
}

/* ---- deadlines ---- */

static int never(void *arg)
{
	(void)arg;
	return hive_sleep(HIVE_S(5));
}

static void be_late(void *arg)
{
	struct world *w = arg;
	int64_t began = hive_now(w->hive);
	struct hive_group group;

	hive_group_init(&group, w->hive, HIVE_COMPUTE);
	CHECK_OK(hive_group_spawn(&group, never, NULL, NULL));
	CHECK_ERR(hive_group_wait(&group, began + HIVE_MS(20)), -ETIMEDOUT);
	CHECK(hive_now(w->hive) >= began + HIVE_S(5)); /* it is waited for all the same */
	w->done++;
}

TEST(at_the_deadline_the_rest_is_waited_for)
{
	struct world w = make(1, 1, 1, 0);

	CHECK_OK(hive_post_compute(w.hive, be_late, &w));
	hive_sim_advance(w.sim, HIVE_S(10));
	CHECK_EQ(w.done, 1);
	end(&w);
}

/* ---- time that tasks take ---- */

struct leaf {
	struct world *world;
	int64_t takes_ns;
};

static void spend(void *arg)
{
	struct leaf *leaf = arg;

	CHECK_OK(hive_sim_spend(leaf->world->sim, leaf->takes_ns));
	leaf->world->done++;
	if (hive_now(leaf->world->hive) > leaf->world->last_ns)
		leaf->world->last_ns = hive_now(leaf->world->hive);
}

/* Tasks of the pool are spread over the workers in virtual time; forks of one task are not, for its beat is one step. */
TEST(tasks_of_a_thread_take_their_time_side_by_side)
{
	struct world w = make(1, 1, 2, HIVE_US(1));
	struct leaf leaves[16];
	struct hive_group group;
	int64_t began;

	hive_sim_advance(w.sim, HIVE_MS(1));
	began = hive_now(w.hive);
	hive_group_init(&group, w.hive, HIVE_COMPUTE);
	for (int i = 0; i < 16; i++) {
		leaves[i] = (struct leaf){ &w, i % 2 ? HIVE_MS(10) : HIVE_MS(3) };
		hive_group_run(&group, spend, &leaves[i]);
	}
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	CHECK_EQ(w.done, 16);
	CHECK(w.last_ns >= began + HIVE_MS(52)); /* half of all */
	CHECK(w.last_ns <= began + HIVE_MS(52 + 10));
	end(&w);
}
