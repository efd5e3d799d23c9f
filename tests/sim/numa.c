/* SPDX-License-Identifier: MIT */
/* A machine with four sockets that is not there: how many thefts cross from one to another, and how often tasks are moved. */
#include "test.h"

#include <rophive/hive.h>
#include <rophive/sim.h>

enum { WORKERS = 16, NODE = 4, TASKS = 400, SEEDS = 20 };

struct moves {
	uint64_t ran, stolen, far;
	uint64_t most_ran; /* by one worker */
};

/* Four CPUs a node; pairs share an L2. */
static int four_sockets(void *arg, uint32_t a, uint32_t b)
{
	(void)arg;
	return a == b ? 0 : a / 2 == b / 2 ? 1 : a / NODE == b / NODE ? 3 : 4;
}

static void nothing(void *arg)
{
	(void)arg;
}

static void burst(void *arg)
{
	(void)arg;
	for (int i = 0; i < TASKS; i++)
		CHECK_OK(hive_post_local(nothing, NULL));
}

static struct moves count(const struct hive *hive)
{
	uint32_t ids[WORKERS];
	struct moves m = { 0 };

	CHECK_EQ(hive_workers(hive, ids, WORKERS), WORKERS);
	for (int i = 0; i < WORKERS; i++) {
		struct hive_worker_stats s;

		CHECK_OK(hive_worker_stats_read(hive, ids[i], &s));
		m.ran += s.ran;
		m.stolen += s.stolen;
		m.far += s.stolen_far;
		if (s.ran > m.most_ran)
			m.most_ran = s.ran;
	}
	return m;
}

/* Every `step`th worker gets a burst, and all run one task a beat. */
static struct moves run(uint64_t seed, enum hive_victim victim, int step)
{
	struct hive_sim_options how = { .seed = seed, .cpu_distance = four_sockets };
	struct hive_worker_options io = { .victim = victim, .local_budget = 1 };
	struct hive_options options = { .io_workers = WORKERS, .io = &io };
	uint32_t ids[WORKERS];
	struct hive_sim *sim;
	struct hive *hive;
	struct moves m;

	CHECK_OK(hive_sim_create(&how, &sim));
	options.host = hive_sim_host(sim);
	CHECK_OK(hive_create(&options, &hive));
	CHECK_OK(hive_start(hive));
	CHECK_EQ(hive_workers(hive, ids, WORKERS), WORKERS);
	for (int i = 0; i < WORKERS; i += step)
		CHECK_OK(hive_post_to(hive, ids[i], burst, NULL));
	hive_sim_advance(sim, HIVE_FOREVER);
	m = count(hive);
	CHECK_EQ(m.ran, WORKERS / step * (TASKS + 1));
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(hive, HIVE_FOREVER));
	CHECK_OK(hive_destroy(hive));
	CHECK_OK(hive_sim_destroy(sim));
	return m;
}

static struct moves run_all(enum hive_victim victim, int step)
{
	struct moves sum = { 0 };

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct moves m = run(seed, victim, step);

		sum.ran += m.ran;
		sum.stolen += m.stolen;
		sum.far += m.far;
		sum.most_ran += m.most_ran;
	}
	return sum;
}

/* V-28: one loaded worker on each node. At random most thefts cross; with the nearest first only those at the end do, when a node has
 * nothing left.                                                                                                            */
TEST(with_the_nearest_first_few_thefts_cross_a_node)
{
	struct moves random = run_all(HIVE_VICTIM_RANDOM, NODE), near = run_all(HIVE_VICTIM_NEAR, NODE);

	printf("random: %llu stolen, %llu far; near: %llu stolen, %llu far\n", (unsigned long long)random.stolen,
	       (unsigned long long)random.far, (unsigned long long)near.stolen, (unsigned long long)near.far);
	CHECK(random.far * 2 > random.stolen);
	CHECK(near.far * 5 < near.stolen);
	CHECK(near.far * 4 < random.far);
}

/* V-28: when only one node has work, the others come and get it: nearness is an order, not a border. */
TEST(work_of_one_node_spreads_to_all)
{
	struct moves near = run_all(HIVE_VICTIM_NEAR, WORKERS);

	CHECK(near.far > 0);
	CHECK(near.most_ran * 3 < near.ran); /* nobody did a third of it */
}

/* V-26: whatever the policy, a task is moved a few times at most: log2 of 16 tasks a theft, and one. */
TEST(under_skewed_load_moves_per_task_are_bounded)
{
	for (enum hive_victim victim = HIVE_VICTIM_RANDOM; victim <= HIVE_VICTIM_NEAR; victim++) {
		CHECK(run_all(victim, WORKERS).stolen <= 5u * SEEDS * TASKS);
		CHECK(run_all(victim, NODE).stolen <= 5u * SEEDS * TASKS * WORKERS / NODE);
	}
}
