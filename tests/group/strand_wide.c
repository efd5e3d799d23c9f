/* SPDX-License-Identifier: MIT */
/* Wide strands: so many at a time, and barriers among them. With real threads. */
#include "base/atomic.h"
#include "support/real.h"
#include "test.h"

enum { WIDTH = 3 };

static ATOMIC(uint32_t) inside, most, ran, alone;

static void begin(void)
{
	store_relaxed(&inside, 0u);
	store_relaxed(&most, 0u);
	store_relaxed(&ran, 0u);
	store_relaxed(&alone, 0u);
}

static struct hive_strand *new_strand(struct hive *hive, enum hive_kind kind, uint32_t width)
{
	struct hive_strand_options options = { .kind = kind, .width = width };
	struct hive_strand *strand;

	CHECK_OK(hive_strand_create(hive, &options, &strand));
	return strand;
}

static struct gate entered, leave;

static void enter_and_wait(void *arg)
{
	(void)arg;
	add_seq(&inside, 1u);
	gate_open(&entered);
	gate_pass(&leave);
	sub_seq(&inside, 1u);
	add_seq(&ran, 1u);
}

/* Of four workers three are in its tasks, and no more. */
TEST(as_many_at_a_time_as_it_is_wide)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 4 });
	struct hive_strand *strand = new_strand(hive, HIVE_MICRO, WIDTH);
	struct gate other;

	begin();
	gate_init(&entered);
	gate_init(&leave);
	gate_init(&other);
	for (int i = 0; i < 2 * WIDTH; i++)
		CHECK_OK(hive_strand_post(strand, enter_and_wait, NULL));
	for (int i = 0; i < WIDTH; i++)
		gate_pass(&entered);
	CHECK_OK(hive_post(hive, gate_open_task, &other)); /* the fourth has nothing else to do */
	gate_pass(&other);
	CHECK_EQ(load_seq(&inside), WIDTH);
	for (int i = 0; i < 2 * WIDTH; i++)
		gate_open(&leave);
	CHECK_OK(hive_strand_join(strand, real_patience()));
	CHECK_EQ(load_relaxed(&ran), 2 * WIDTH);
	CHECK_OK(hive_strand_destroy(strand));
	gate_destroy(&entered);
	gate_destroy(&leave);
	gate_destroy(&other);
	real_end(hive, HIVE_DRAIN);
}

static void visit(void *arg)
{
	uint32_t now = add_seq(&inside, 1u) + 1, seen = load_relaxed(&most);

	(void)arg;
	CHECK_EQ(load_seq(&alone), 0);
	while (now > seen && !cas_relaxed(&most, &seen, now))
		;
	sched_yield();
	sub_seq(&inside, 1u);
	add_seq(&ran, 1u);
}

/* So many visits come before it, and none is under way. */
static void visit_alone(void *before)
{
	CHECK_EQ(load_seq(&inside), 0);
	store_seq(&alone, 1u);
	CHECK_EQ(load_seq(&ran), (uint32_t)(uintptr_t)before);
	sched_yield();
	CHECK_EQ(load_seq(&inside), 0);
	CHECK_EQ(load_seq(&ran), (uint32_t)(uintptr_t)before);
	store_seq(&alone, 0u);
}

static void with_barriers(enum hive_kind kind, uint32_t width)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 3, .compute_workers = 3 });
	struct hive_strand *strand = new_strand(hive, kind, width);
	uintptr_t posted = 0, rounds = 400 / (uintptr_t)test_slowness() + 20;

	begin();
	for (uintptr_t round = 0; round < rounds; round++) {
		for (uintptr_t i = round % 7; i > 0; i--, posted++)
			CHECK_OK(hive_strand_post(strand, visit, NULL));
		CHECK_OK(hive_strand_barrier(strand, visit_alone, (void *)posted));
	}
	CHECK_OK(hive_strand_join(strand, real_patience()));
	CHECK_EQ(load_relaxed(&ran), posted);
	CHECK(load_relaxed(&most) <= width);
	CHECK_OK(hive_strand_destroy(strand));
	real_end(hive, HIVE_DRAIN);
}

TEST(a_barrier_runs_alone_and_in_its_place)
{
	with_barriers(HIVE_MICRO, WIDTH);
	with_barriers(HIVE_COMPUTE, WIDTH);
	with_barriers(HIVE_MICRO, HIVE_STRAND_WIDTH_MAX);
	with_barriers(HIVE_COMPUTE, 1);
}

static struct gate first_runs, first_may_end;

static void run_long(void *arg)
{
	(void)arg;
	gate_open(&first_runs);
	gate_pass(&first_may_end);
}

static void count(void *arg)
{
	(void)arg;
	add_seq(&ran, 1u);
}

/* A join waits for what was posted before, however late it ends, and not for what came later. */
TEST(a_join_waits_for_the_slowest_before_it_and_for_nobody_after)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 2 });
	struct hive_strand *strand = new_strand(hive, HIVE_MICRO, 2);

	begin();
	gate_init(&first_runs);
	gate_init(&first_may_end);
	CHECK_OK(hive_strand_post(strand, count, NULL));
	CHECK_OK(hive_strand_join(strand, real_patience()));
	CHECK_OK(hive_strand_post(strand, run_long, NULL));
	gate_pass(&first_runs);
	for (int i = 0; i < 5; i++)
		CHECK_OK(hive_strand_post(strand, count, NULL));
	WAIT_UNTIL(load_seq(&ran) == 6); /* they pass it by */
	CHECK_ERR(hive_strand_join(strand, hive_deadline(hive, HIVE_US(200))), -ETIMEDOUT);
	CHECK_ERR(hive_strand_destroy(strand), -EBUSY);
	gate_open(&first_may_end);
	CHECK_OK(hive_strand_join(strand, real_patience()));
	CHECK_OK(hive_strand_destroy(strand));
	gate_destroy(&first_runs);
	gate_destroy(&first_may_end);
	real_end(hive, HIVE_DRAIN);
}

static int join_and_let_go(void *strand)
{
	CHECK_OK(hive_strand_join(strand, HIVE_FOREVER));
	CHECK_EQ(load_relaxed(&ran), 1);
	gate_open(&first_may_end); /* lets the one after it end */
	return 0;
}

/* What was posted after the join waits for who joined: he must be told before. */
TEST(who_joins_is_told_at_once)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	struct hive_strand *strand = new_strand(hive, HIVE_COMPUTE, 1);
	struct gate hold;

	begin();
	gate_init(&hold);
	gate_init(&first_runs);
	gate_init(&first_may_end);
	CHECK_OK(hive_strand_post(strand, gate_pass_task, &hold));
	CHECK_OK(hive_strand_post(strand, count, NULL));
	CHECK_OK(hive_spawn(hive, join_and_let_go, strand, NULL, NULL));
	real_wait_asleep(hive, 2); /* all but the one that is held up: the fiber waits */
	CHECK_OK(hive_strand_post(strand, run_long, NULL));
	gate_open(&hold);
	gate_pass(&first_runs);
	CHECK_OK(hive_strand_join(strand, real_patience()));
	CHECK_OK(hive_strand_destroy(strand));
	gate_destroy(&hold);
	gate_destroy(&first_runs);
	gate_destroy(&first_may_end);
	real_end(hive, HIVE_DRAIN);
}
