/* SPDX-License-Identifier: MIT */
/* The end of a hive with real threads: join, several who stop it, posts that race with it. */
#include <pthread.h>
#include <sched.h>

#include "support/real.h"
#include "test.h"

/* R-30, real threads: join waits for the last callback, and says so when it may not wait that long. */
TEST(join_waits_for_tasks_that_are_under_way)
{
	for (int compute = 0; compute < 2; compute++) {
		struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 1 });
		struct block block;

		block_init(&block);
		if (compute)
			CHECK_OK(hive_post_compute(hive, block_task, &block));
		else
			CHECK_OK(hive_post(hive, block_task, &block));
		gate_pass(&block.entered);
		CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
		CHECK_ERR(hive_join(hive, HIVE_NOWAIT), -ETIMEDOUT);
		CHECK_ERR(hive_join(hive, hive_deadline(hive, HIVE_MS(1))), -ETIMEDOUT);
		CHECK_ERR(hive_destroy(hive), -EBUSY);
		gate_open(&block.leave);
		CHECK_EQ(real_join(hive).ran, 1);
		block_destroy(&block);
	}
}

static int stopped_by_me;

static void *stop_too(void *hive)
{
	int r = hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER);

	CHECK(r == 0 || r == -EALREADY);
	__atomic_add_fetch(&stopped_by_me, r == 0, __ATOMIC_SEQ_CST);
	CHECK_OK(hive_join(hive, real_patience()));
	return NULL;
}

/* R-30, real threads: several stop and join at once; one of them was the first, all see the end. */
TEST(several_threads_may_stop_and_join_at_once)
{
	for (int i = 0; i < 50 / test_slowness(); i++) {
		struct hive *hive = real_start((struct hive_options){ .io_workers = 2, .compute_workers = 1 });
		pthread_t threads[3];

		stopped_by_me = 0;
		for (int k = 0; k < 3; k++)
			CHECK_OK(pthread_create(&threads[k], NULL, stop_too, hive));
		for (int k = 0; k < 3; k++)
			CHECK_OK(pthread_join(threads[k], NULL));
		CHECK_EQ(stopped_by_me, 1);
		real_join(hive);
	}
}

struct race {
	struct hive *hive;
	uint32_t worker;
	uint64_t accepted, dropped;
};

static void drop_one(void *arg, const struct hive_task *task)
{
	(void)task;
	((struct race *)arg)->dropped++; /* one call at a time, so no atomic is needed */
}

static void nothing(void *arg)
{
	(void)arg;
}

static void *post_until_refused(void *arg)
{
	struct race *race = arg;
	struct hive_task two[2] = { { nothing, NULL }, { nothing, NULL } };
	uint64_t accepted = 0;
	int r = 0;

	for (int i = 0; r == 0; i++) {
		switch (i % 6) {
		case 0:
			r = hive_post(race->hive, nothing, NULL);
			break;
		case 1:
			r = hive_post_many(race->hive, two, 2);
			accepted += r == 0;
			break;
		case 2:
			r = hive_post_to(race->hive, race->worker, nothing, NULL);
			break;
		case 3:
			r = hive_post_after(race->hive, HIVE_US(i % 100), nothing, NULL, NULL);
			break;
		case 4:
			r = hive_post_compute(race->hive, nothing, NULL);
			break;
		case 5:
			r = hive_post_compute_then(race->hive, nothing, race->worker, nothing, NULL);
			break;
		}
		accepted += r == 0;
		if (i % 100 == 0)
			sched_yield();
	}
	CHECK_EQ(r, -ESHUTDOWN);
	__atomic_add_fetch(&race->accepted, accepted, __ATOMIC_SEQ_CST);
	return NULL;
}

/* real threads: posts race with the stop. Accepted is a promise: each is run or dropped, and the report agrees
 * with what the hook has seen. (The second half of an answered computation is a post of its own when its work has run.)   */
TEST(a_post_that_races_with_stop_is_refused_run_or_dropped)
{
	for (int i = 0; i < 100 / test_slowness(); i++) {
		struct race race = { .accepted = 0 };
		struct hive_options o = {
			.io_workers = 2, .compute_workers = 1, .on_drop = drop_one, .hook_arg = &race
		};
		struct hive_report report;
		pthread_t threads[2];
		uint32_t ids[2];

		race.hive = real_start(o);
		hive_workers(race.hive, ids, 2);
		race.worker = ids[1];
		for (int k = 0; k < 2; k++)
			CHECK_OK(pthread_create(&threads[k], NULL, post_until_refused, &race));
		for (int k = 0; k < i % 20; k++)
			sched_yield();
		CHECK_OK(hive_stop(race.hive, i % 2 ? HIVE_NOW : HIVE_DRAIN, HIVE_FOREVER));
		CHECK_OK(hive_join(race.hive, real_patience()));
		for (int k = 0; k < 2; k++)
			CHECK_OK(pthread_join(threads[k], NULL));
		report = real_join(race.hive);
		CHECK_EQ(report.dropped, race.dropped);
		CHECK(report.posted >= race.accepted);
		CHECK_EQ(report.ran + report.dropped, report.posted);
	}
}
