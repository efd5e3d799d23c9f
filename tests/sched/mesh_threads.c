/* SPDX-License-Identifier: MIT */
/* The mesh with real threads: order, and workers that come and go (V-14). */
#include <string.h>

#include "sched/internal.h"
#include "support/real.h"
#include "test.h"

enum { CREW = 4, ROUNDS = 4000 };

static struct hive *hive;
static uint32_t crew[CREW];
static uint32_t seen[CREW][CREW]; /* by receiver, whose it is, and sender */
static ATOMIC(uint32_t) arrived;

static uint32_t index_of(uint32_t id)
{
	uint32_t i = 0;

	while (i < CREW && crew[i] != id)
		i++;
	return i;
}

static void arrive(void *arg)
{
	uint64_t word = (uint64_t)(uintptr_t)arg;
	uint32_t me = index_of(hive_worker_current()), from = (uint32_t)(word >> 32);

	CHECK(me < CREW);
	CHECK_EQ((uint32_t)word, seen[me][from]++);
	add_relaxed(&arrived, 1u);
}

/* Bursts that overflow the lanes, to all others in turn. */
static void talk(void *arg)
{
	static uint32_t sent[CREW][CREW]; /* by sender, whose it is */
	uint32_t me = index_of(hive_worker_current()), rounds_left = (uint32_t)(uintptr_t)arg;

	for (uint32_t to = 0; to < CREW; to++)
		for (uint32_t i = 0; to != me && i < 1 + rounds_left % 150; i++) {
			uint64_t word = (uint64_t)me << 32 | sent[me][to]++;

			CHECK_OK(hive_post_to(hive, crew[to], arrive, (void *)(uintptr_t)word));
		}
	if (rounds_left > 1)
		CHECK_OK(hive_post_self(talk, (void *)(uintptr_t)(rounds_left - 1)));
}

TEST(workers_that_flood_each_other_keep_the_order)
{
	uint32_t rounds = (uint32_t)(ROUNDS / (test_slowness() * test_slowness())), all = 0;
	struct hive_worker_stats stats;
	uint64_t by_lane = 0;

	memset(seen, 0, sizeof seen);
	hive = real_start((struct hive_options){ .io_workers = CREW, .mesh = HIVE_MESH_ON });
	CHECK_EQ(hive_workers(hive, crew, CREW), CREW);
	for (uint32_t left = rounds; left > 0; left--)
		all += CREW * (CREW - 1) * (1 + left % 150);
	for (int i = 0; i < CREW; i++)
		CHECK_OK(hive_post_to(hive, crew[i], talk, (void *)(uintptr_t)rounds));
	WAIT_UNTIL(load_relaxed(&arrived) == all);
	for (int i = 0; i < CREW; i++) {
		CHECK_OK(hive_worker_stats_read(hive, crew[i], &stats));
		by_lane += stats.lane_letters;
	}
	CHECK(by_lane > 0);
	real_end(hive, HIVE_DRAIN);
}

/* 300 lives of a worker to whom others write all the time: each letter was refused, or ran once, or was dropped. */
static ATOMIC(uint32_t) target, accepted, ran, over, talkers;

static void count(void *arg)
{
	(void)arg;
	add_relaxed(&ran, 1u);
}

static void pester(void *arg)
{
	for (int i = 0; i < 20; i++) {
		int r = hive_post_to(hive, load_relaxed(&target), count, NULL);

		CHECK(r == 0 || r == -ESRCH);
		if (r == 0)
			add_relaxed(&accepted, 1u);
	}
	if (!load_relaxed(&over))
		CHECK_OK(hive_post_self(pester, arg));
	else
		sub_relaxed(&talkers, 1u);
}

TEST(workers_that_come_and_go_lose_no_letter)
{
	struct hive_report report;
	uint32_t id, lives = (uint32_t)(300 / test_slowness());
	uint64_t lanes;

	hive = real_start((struct hive_options){ .io_workers = 3, .mesh = HIVE_MESH_ON });
	CHECK_EQ(hive_workers(hive, crew, CREW), 3);
	CHECK_OK(hive_attach(hive, NULL, &id));
	store_relaxed(&target, id);
	store_relaxed(&talkers, 3u);
	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_post_to(hive, crew[i], pester, NULL));
	for (uint32_t life = 0; life < lives; life++) {
		CHECK_OK(hive_detach(hive, id, HIVE_FOREVER));
		CHECK_OK(hive_attach(hive, NULL, &id));
		store_relaxed(&target, id);
	}
	store_relaxed(&over, 1u);
	WAIT_UNTIL(load_relaxed(&talkers) == 0);
	lanes = load_relaxed(&hive->lanes);
	report = real_end(hive, HIVE_DRAIN);
	CHECK_EQ(load_relaxed(&ran), load_relaxed(&accepted));
	CHECK_EQ(report.dropped, 0);
	CHECK(lanes <= 3 * 3); /* they belong to slots: lives do not make more of them */
}
