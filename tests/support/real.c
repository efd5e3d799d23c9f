/* SPDX-License-Identifier: MIT */
#include "support/real.h"

#include <sched.h>
#include <time.h>

#include "support/kind.h"
#include "test.h"

/* Shorter than the watchdog of the harness, so that it is the test that says what it waited for. */
static int64_t patience_s(void)
{
	return (int64_t)test_env("ROPHIVE_TEST_TIMEOUT", 60) * test_slowness() * 5 / 6;
}

void gate_init(struct gate *g)
{
	CHECK_OK(sem_init(&g->sem, 0, 0));
}

void gate_destroy(struct gate *g)
{
	sem_destroy(&g->sem);
}

void gate_open(struct gate *g)
{
	CHECK_OK(sem_post(&g->sem));
}

void gate_pass(struct gate *g)
{
	struct timespec limit;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += patience_s();
	while (sem_timedwait(&g->sem, &limit) < 0)
		if (errno != EINTR)
			test_fail(__FILE__, __LINE__, "gate_pass: %s", strerrorname_np(errno));
}

void gate_open_task(void *gate)
{
	gate_open(gate);
}

void gate_pass_task(void *gate)
{
	gate_pass(gate);
}

void block_init(struct block *b)
{
	gate_init(&b->entered);
	gate_init(&b->leave);
	b->worker = HIVE_WORKER_NONE;
}

void block_destroy(struct block *b)
{
	gate_destroy(&b->entered);
	gate_destroy(&b->leave);
}

void block_task(void *block)
{
	struct block *b = block;

	b->worker = hive_worker_current();
	gate_open(&b->entered);
	gate_pass(&b->leave);
}

int64_t real_patience(void)
{
	return hive_deadline(NULL, HIVE_S(patience_s()));
}

struct hive *real_create(struct hive_options options)
{
	struct hive_worker_options io = options.io ? *options.io : (struct hive_worker_options){ 0 };
	struct hive *hive;

	if (!io.timers)
		io.timers = test_timers;
	options.io = &io;
	CHECK_OK(hive_create(&options, &hive));
	return hive;
}

struct hive *real_start(struct hive_options options)
{
	struct hive *hive = real_create(options);

	CHECK_OK(hive_start(hive));
	return hive;
}

struct hive_report real_join(struct hive *hive)
{
	struct hive_report report;

	CHECK_OK(hive_join(hive, real_patience()));
	CHECK_OK(hive_report_read(hive, &report));
	CHECK_EQ(report.posted, report.ran + report.cancelled + report.dropped);
	CHECK_OK(hive_destroy(hive));
	return report;
}

struct hive_report real_end(struct hive *hive, enum hive_stop_mode mode)
{
	int r = hive_stop(hive, mode, HIVE_FOREVER);

	CHECK(r == 0 || r == -EALREADY);
	return real_join(hive);
}

void real_wait_asleep(struct hive *hive, uint32_t workers)
{
	struct hive_stats stats = { 0 };

	WAIT_UNTIL((hive_stats_read(hive, &stats), stats.sleeping == workers));
}
