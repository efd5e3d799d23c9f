/* SPDX-License-Identifier: MIT */
/* Victims by distance: the nearest first, level by level, at random among equals. */
#include <stdatomic.h>
#include <sched.h>

#include "support/lone.h"

enum { THIEF = 3 };

static void give_local(struct lone *l, int worker, int first, int last)
{
	lone_become(l, worker);
	for (int i = first; i <= last; i++)
		CHECK_OK(hive_post_local(fake_note, number(i)));
	lone_become(l, LONE_NOBODY);
}

/* CPUs 0 to 7: pairs share a core, fours a node. */
static int by_fours(void *arg, uint32_t a, uint32_t b)
{
	(void)arg;
	return a / 2 == b / 2 ? TOPOLOGY_CORE : a / 4 == b / 4 ? TOPOLOGY_NODE : TOPOLOGY_FAR;
}

static int out_of_range(void *arg, uint32_t a, uint32_t b)
{
	(void)arg;
	return a / 2 == b / 2 ? INT32_MIN : INT32_MAX;
}

static void open_near(struct lone *l, int (*distance)(void *arg, uint32_t a, uint32_t b), enum hive_victim victim)
{
	lone_open(l, 8, (struct hive_worker_options){ .victim = victim, .steal_attempts = 8 });
	l->f.hive->host.cpu_distance = distance;
}

static uint64_t stolen_far(struct lone *l, int worker)
{
	struct hive_worker_stats s;

	CHECK_OK(hive_worker_stats_read(l->f.hive, l->ids[worker], &s));
	return s.stolen_far;
}

/* V-28: the core, then the node, then the rest, whatever is drawn. */
TEST(the_nearest_workers_are_robbed_first)
{
	for (uint32_t drawn = 0; drawn < 8; drawn++) {
		struct lone l = { 0 };

		open_near(&l, by_fours, HIVE_VICTIM_NEAR);
		give_local(&l, 6, 6, 6);
		give_local(&l, 1, 1, 1);
		give_local(&l, 2, 2, 2);
		fake_log_clear();
		for (int i = 0; i < 3; i++) {
			fake_push_random(&l.f, fake_random(drawn, 8));
			lone_beat(&l, THIEF);
		}
		CHECK_STR(fake_log(), "2 1 6");
		CHECK_EQ(load_relaxed(&l.w[THIEF]->stats.stolen), 3);
		CHECK_EQ(stolen_far(&l, THIEF), 1);
		lone_close(&l);
	}
}

/* V-8, V-28: the random number leads to each of those that are equally far. */
TEST(among_equals_the_victim_is_drawn)
{
	for (uint32_t victim = 4; victim < 8; victim++) {
		struct lone l = { 0 };

		open_near(&l, by_fours, HIVE_VICTIM_NEAR);
		for (int i = 4; i < 8; i++)
			give_local(&l, i, i, i);
		fake_push_random(&l.f, fake_random(victim, 8));
		fake_log_clear();
		lone_beat(&l, THIEF);
		CHECK_EQ(atoi(fake_log()), victim);
		lone_close(&l);
	}
}

/* Without a distance, in a world of its own, all are on one node: each one can be drawn, and nobody is far. */
TEST(where_nothing_is_known_all_are_equally_far)
{
	for (uint32_t victim = 0; victim < 8; victim++) {
		struct lone l = { 0 };

		if (victim == THIEF)
			continue;
		open_near(&l, NULL, HIVE_VICTIM_NEAR);
		for (int i = 0; i < 8; i++)
			if (i != THIEF)
				give_local(&l, i, i, i);
		fake_push_random(&l.f, fake_random(victim, 8));
		fake_log_clear();
		lone_beat(&l, THIEF);
		CHECK_EQ(atoi(fake_log()), victim);
		CHECK_EQ(stolen_far(&l, THIEF), 0);
		CHECK(!l.f.hive->topology);
		lone_close(&l);
	}
}

TEST(distances_beyond_the_scale_are_its_ends)
{
	struct lone l = { 0 };

	open_near(&l, out_of_range, HIVE_VICTIM_NEAR);
	CHECK_EQ(hive__distance(l.w[THIEF], l.w[2]), TOPOLOGY_CORE);
	CHECK_EQ(hive__distance(l.w[THIEF], l.w[4]), TOPOLOGY_FAR);
	lone_close(&l);
}

/* Who is drawn at random, or has most, may be far as well, and that is counted: tasks, not thefts. */
TEST(thefts_from_another_node_are_counted_for_each_policy)
{
	for (enum hive_victim policy = HIVE_VICTIM_RANDOM; policy <= HIVE_VICTIM_NEAR; policy++) {
		struct lone l = { 0 };

		open_near(&l, by_fours, policy);
		give_local(&l, 7, 1, 6);
		lone_beat(&l, THIEF);
		CHECK_EQ(load_relaxed(&l.w[THIEF]->stats.stolen), 3);
		CHECK_EQ(stolen_far(&l, THIEF), 3);
		lone_close(&l);
	}
}

/* Where a worker is: on the first of its CPUs, and without any, in a world without threads, on that of its number. */
TEST(a_worker_is_where_it_is_pinned)
{
	static const uint16_t cpus[] = { 700, 1 };
	struct hive_worker_options pinned = { .cpus = cpus, .cpu_count = 2 };
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 2 });
	CHECK_OK(hive_attach(f.hive, &pinned, NULL));
	fake_start(&f);
	fake_settle(&f);
	CHECK_EQ(load_relaxed(&hive__slot(&f.hive->io, 0)->cpu), 0);
	CHECK_EQ(load_relaxed(&hive__slot(&f.hive->io, 1)->cpu), 1);
	CHECK_EQ(load_relaxed(&hive__slot(&f.hive->io, 2)->cpu), 700);
	fake_destroy(&f);
}

/* ---- with threads ---- */

static _Atomic(int) left;

static void breed(void *arg)
{
	intptr_t depth = (intptr_t)arg;

	for (int i = 0; i < 2 && depth > 0; i++) {
		atomic_fetch_add(&left, 1);
		CHECK_OK(hive_post_local(breed, (void *)(depth - 1)));
	}
	atomic_fetch_sub(&left, 1);
}

/* The system's own topology is read for those who ask for it, and a tree of tasks gets done. */
TEST(near_victims_of_the_systems_topology)
{
	for (enum hive_victim policy = HIVE_VICTIM_RANDOM; policy <= HIVE_VICTIM_NEAR; policy++) {
		struct hive_worker_options io = { .victim = policy, .local_capacity = 16 };
		struct hive_options options = { .io_workers = 3, .io = &io };
		struct hive *hive;

		CHECK_OK(hive_create(&options, &hive));
		CHECK_EQ(hive->topology != NULL, policy == HIVE_VICTIM_NEAR);
		CHECK_OK(hive_start(hive));
		for (int round = 0; round < 5; round++) {
			atomic_store(&left, 1);
			CHECK_OK(hive_post(hive, breed, number(10)));
			while (atomic_load(&left) > 0)
				sched_yield();
		}
		CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
		CHECK_OK(hive_join(hive, HIVE_FOREVER));
		for (uint32_t i = 0; i < 3; i++)
			CHECK(load_relaxed(&hive__slot(&hive->io, i)->cpu) < CPU_SETSIZE);
		CHECK_OK(hive_destroy(hive));
	}
}

/* ---- pinned ---- */

static cpu_set_t seen[64];
static uint32_t ids[64];
static _Atomic(int) seen_count;

static void look(void *arg)
{
	CHECK_EQ(sched_getaffinity(0, sizeof *seen, arg), 0);
	atomic_fetch_add(&seen_count, 1);
}

static struct hive *open_pinned(int32_t io, int32_t compute, const struct hive_worker_options *options)
{
	struct hive *hive;

	CHECK_OK(hive_create(
		&(struct hive_options){ .io_workers = io, .compute_workers = compute, .io = options, .pin = true },
		&hive));
	CHECK_OK(hive_start(hive));
	CHECK_EQ(hive_workers(hive, ids, 64), io + compute);
	return hive;
}

static void close_pinned(struct hive *hive)
{
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(hive, HIVE_FOREVER));
	CHECK_OK(hive_destroy(hive));
}

static void look_at_io(struct hive *hive, int count)
{
	atomic_store(&seen_count, 0);
	for (int i = 0; i < count; i++)
		CHECK_OK(hive_post_to(hive, ids[i], look, &seen[i]));
	while (atomic_load(&seen_count) < count)
		sched_yield();
}

/* One CPU each, of those that the caller has, no two on the same one while there are others; then round again. */
TEST(the_hive_pins_each_worker_to_one_cpu)
{
	struct hive *hive;
	cpu_set_t all, used;
	int cpus;

	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	cpus = CPU_COUNT(&all) < 15 ? CPU_COUNT(&all) : 15;
	CPU_ZERO(&used);
	hive = open_pinned(cpus + 1, 1, NULL);
	look_at_io(hive, cpus + 1);
	for (int i = 0; i <= cpus; i++) {
		struct worker *w = hive__slot(&hive->io, (uint32_t)i);

		CHECK_EQ(CPU_COUNT(&seen[i]), 1);
		CHECK(CPU_ISSET(load_relaxed(&w->cpu), &seen[i]));
		CPU_AND(&seen[i], &seen[i], &all);
		CHECK_EQ(CPU_COUNT(&seen[i]), 1);
		CPU_OR(&used, &used, &seen[i]);
	}
	CHECK_EQ(CPU_COUNT(&used), cpus + (CPU_COUNT(&all) > cpus));
	CHECK_EQ(load_relaxed(&hive__slot(&hive->compute, 0)->cpu),
	         hive->pin_cpus[(uint32_t)(cpus + 1) % hive->pin_count]);
	CHECK_EQ(sched_getaffinity(0, sizeof used, &used), 0);
	CHECK(CPU_EQUAL(&used, &all)); /* the caller's own are as they were */
	close_pinned(hive);
}

/* Who says where is taken at his word; who comes later is pinned as well. */
TEST(named_cpus_come_before_the_pins_of_the_hive)
{
	struct hive_worker_options named = { 0 };
	uint16_t both[TOPOLOGY_CPUS];
	struct hive *hive;
	cpu_set_t all;

	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	for (uint16_t cpu = 0; cpu < TOPOLOGY_CPUS; cpu++)
		if (CPU_ISSET(cpu, &all))
			both[named.cpu_count++] = cpu;
	named.cpus = both;
	hive = open_pinned(1, 0, &named);
	CHECK_OK(hive_attach(hive, NULL, NULL));
	CHECK_EQ(hive_workers(hive, ids, 64), 2);
	look_at_io(hive, 2);
	CHECK(CPU_EQUAL(&seen[0], &all));
	CHECK_EQ(CPU_COUNT(&seen[1]), 1);
	close_pinned(hive);
}

TEST(in_a_host_without_threads_nobody_is_pinned)
{
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 2, .pin = true });
	fake_start(&f);
	CHECK(!f.hive->pin_cpus);
	CHECK_EQ(hive__slot(&f.hive->io, 1)->setup.cpu_count, 0);
	fake_destroy(&f);
}

static int fail_at, allocations, balance;

static void *allocate(void *arg, void *old, size_t bytes)
{
	void *block;

	(void)arg;
	if (bytes > 0 && ++allocations == fail_at)
		return NULL;
	balance += (bytes > 0) - (old != NULL);
	block = bytes > 0 ? realloc(old, bytes) : NULL;
	if (bytes == 0)
		free(old);
	return block;
}

/* Whichever allocation fails: there is no hive, and nothing is left. */
TEST(a_pinned_hive_without_memory_is_refused)
{
	struct hive_host host = { .allocate = allocate };
	struct hive_worker_options io = { .victim = HIVE_VICTIM_NEAR };
	struct hive_options options = { .io_workers = 2, .compute_workers = 1, .io = &io, .pin = true, .host = &host };
	struct hive *hive = NULL;

	for (fail_at = 1; fail_at < 1000; fail_at++) {
		int r;

		allocations = 0;
		r = hive_create(&options, &hive);
		if (r == 0)
			break;
		CHECK_ERR(r, -ENOMEM);
		CHECK_EQ(balance, 0);
	}
	CHECK(fail_at > 8 && fail_at < 1000);
	CHECK_OK(hive_destroy(hive));
	CHECK_EQ(balance, 0);
}
