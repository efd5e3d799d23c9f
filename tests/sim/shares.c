/* SPDX-License-Identifier: MIT */
/* Priorities under random load, in the simulator: posts come at random moments and levels, tasks take random times, on any number of
 * workers. Whatever happens, a level that has something is not passed over for a round, over rounds in which all have something the shares
 * are as promised, and nobody idles while something waits.
 *   ROPHIVE_SIM_SEEDS=n   how many programs (300)
 *   ROPHIVE_SIM_SEED=n    only this one: a failure prints its number                                                                */
#include <stdio.h>

#include "base/rng.h"
#include "test.h"

#include <rophive/hive.h>
#include <rophive/sim.h>

enum { LEVELS = 3, ROUND = 21, SEEDS = 300, BURSTS = 60, TASKS_MAX = 20000 };

static const int shares[LEVELS] = { [HIVE_PRIORITY_NORMAL] = 4, [HIVE_PRIORITY_HIGH] = 16, [HIVE_PRIORITY_LOW] = 1 };

static struct program {
	struct hive_sim *sim;
	struct hive *hive;
	uint64_t seed, rng;
	uint64_t waiting[LEVELS]; /* posted, not begun */
	uint64_t passed[LEVELS];  /* tasks of others that began since it had something and last began one */
	uint64_t row[LEVELS];     /* tasks that began since one of the levels was empty, and how many of each */
	uint64_t rows;
	uint64_t posted, began, full_rounds;
	int64_t longest_ns;
} p;

#define EXPECT(condition)                                                                              \
	do {                                                                                           \
		if (!(condition))                                                                      \
			test_fail(__FILE__, __LINE__, "EXPECT(%s), ROPHIVE_SIM_SEED=%llu", #condition, \
			          (unsigned long long)p.seed);                                         \
	} while (0)

static uint32_t draw(uint32_t below)
{
	return rng_below(rng_next(&p.rng), below);
}

/* All levels had something when each of these began: every ROUND of them has the shares. */
static void count_in_row(int level)
{
	bool all = p.waiting[0] && p.waiting[1] && p.waiting[2];

	if (!all || p.rows == ROUND) {
		p.rows = 0;
		for (int i = 0; i < LEVELS; i++)
			p.row[i] = 0;
	}
	p.row[level] += all;
	p.rows += all;
	for (int i = 0; i < LEVELS && p.rows == ROUND; i++)
		EXPECT(p.row[i] == (uint64_t)shares[i]);
	p.full_rounds += p.rows == ROUND;
}

/* A beat takes and runs in one piece, so the order of these calls is that of the takes. */
static void run(void *arg)
{
	int level = (int)(intptr_t)arg;

	EXPECT(p.waiting[level] > 0);
	p.began++;
	count_in_row(level);
	p.waiting[level]--;
	for (int i = 0; i < LEVELS; i++) {
		p.passed[i] = i == level || p.waiting[i] == 0 ? 0 : p.passed[i] + 1;
		EXPECT(p.passed[i] < ROUND);
	}
	CHECK_OK(hive_sim_spend(p.sim, 1 + draw(p.longest_ns > 1 ? (uint32_t)p.longest_ns : 1)));
}

static void post_burst(void)
{
	uint32_t favourite = draw(LEVELS), count = draw(4) ? draw(30) : 200;

	while (count-- > 0 && p.posted < TASKS_MAX) {
		uint32_t level = draw(3) ? draw(LEVELS) : favourite;

		CHECK_OK(hive_post_compute_at(p.hive, (enum hive_priority)level, run, (void *)(intptr_t)level));
		p.waiting[level]++;
		p.posted++;
	}
}

static uint64_t run_program(uint64_t seed)
{
	struct hive_sim_options how = { .seed = seed, .beat_ns = 10 };
	struct hive_options options = { .io_workers = 1 };

	p = (struct program){ .seed = seed, .rng = seed };
	p.longest_ns = 1 + draw(5000);
	options.compute_workers = 1 + (int32_t)draw(12);
	CHECK_OK(hive_sim_create(&how, &p.sim));
	options.host = hive_sim_host(p.sim);
	CHECK_OK(hive_create(&options, &p.hive));
	CHECK_OK(hive_start(p.hive));
	for (int i = 0; i < BURSTS; i++) {
		post_burst();
		hive_sim_advance(p.sim, draw(20000));
	}
	CHECK_OK(hive_stop(p.hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(p.hive, HIVE_FOREVER));
	EXPECT(p.began == p.posted);
	CHECK_OK(hive_destroy(p.hive));
	CHECK_OK(hive_sim_destroy(p.sim));
	return p.full_rounds;
}

TEST(shares_hold_under_random_load)
{
	long only = test_env("ROPHIVE_SIM_SEED", -1);
	uint64_t rounds = 0, n = (uint64_t)test_env("ROPHIVE_SIM_SEEDS", SEEDS / test_slowness());

	if (only >= 0) {
		run_program((uint64_t)only);
		return;
	}
	for (uint64_t i = 0; i < n; i++)
		rounds += run_program(i);
	printf("%llu rounds in which all levels had something\n", (unsigned long long)rounds);
	CHECK(rounds > n);
}

static int64_t ended_ns;

static void stay(void *arg)
{
	(void)arg;
	CHECK_OK(hive_sim_spend(p.sim, 1000));
	if (ended_ns < hive_now(p.hive) + 1000)
		ended_ns = hive_now(p.hive) + 1000;
}

/* The same work takes the same time, whatever its levels: turns of others cost nothing, and nobody waits for his own. */
TEST(levels_keep_all_workers_busy)
{
	int64_t took[2];

	for (int mixed = 0; mixed < 2; mixed++) {
		struct hive_sim_options how = { .seed = 1, .beat_ns = 10 };
		struct hive_options options = { .io_workers = 1, .compute_workers = 4 };

		ended_ns = 0;
		CHECK_OK(hive_sim_create(&how, &p.sim));
		options.host = hive_sim_host(p.sim);
		CHECK_OK(hive_create(&options, &p.hive));
		CHECK_OK(hive_start(p.hive));
		hive_sim_advance(p.sim, 1000);
		took[mixed] = hive_now(p.hive);
		for (int i = 0; i < 4000; i++)
			CHECK_OK(hive_post_compute_at(p.hive, (enum hive_priority)(mixed ? i % 3 : 0), stay, NULL));
		CHECK_OK(hive_stop(p.hive, HIVE_DRAIN, HIVE_FOREVER));
		CHECK_OK(hive_join(p.hive, HIVE_FOREVER));
		took[mixed] = ended_ns - took[mixed];
		CHECK_OK(hive_destroy(p.hive));
		CHECK_OK(hive_sim_destroy(p.sim));
	}
	CHECK(took[0] >= 1000 * 1000);
	CHECK(took[1] <= took[0] + took[0] / 100);
}
