/* SPDX-License-Identifier: MIT */
/* The rate, in simulated time: tokens come when they have fallen, to the nanosecond, in the order of arrival, and none is lost. */
#include "crew.h"

#include <rophive/sim.h>

enum { FIBERS = 40 };

static struct hive_sim *sim;
static struct hive *hive;
static struct hive_rate rate;
static struct hive_fiber *fibers[FIBERS];
static int64_t begin_ns, at[FIBERS]; /* when each was served, since it began; or an error */
static uint32_t wants[FIBERS];
static int64_t deadlines[FIBERS]; /* since it began */
static int served[FIBERS], served_count;

static void open_world(uint32_t tokens, uint32_t burst, int64_t per_ns)
{
	struct hive_options options = { .io_workers = 2 };

	CHECK_OK(hive_sim_create(NULL, &sim));
	options.host = hive_sim_host(sim);
	CHECK_OK(hive_create(&options, &hive));
	CHECK_OK(hive_start(hive));
	CHECK_OK(
		hive_rate_init(&rate, &(struct hive_rate_options){ .rate = tokens, .burst = burst, .per_ns = per_ns }));
	hive_sim_advance(sim, 12345);
	begin_ns = hive_now(hive);
	served_count = 0;
	for (int i = 0; i < FIBERS; i++) {
		wants[i] = 1;
		deadlines[i] = HIVE_FOREVER;
		at[i] = 0;
	}
}

static void close_world(void)
{
	hive_sim_advance(sim, HIVE_FOREVER);
	CHECK_EQ(load_relaxed(&rate.state), 0);
	CHECK(!rate.waiters[0]);
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(hive, HIVE_FOREVER));
	CHECK_OK(hive_destroy(hive));
	CHECK_OK(hive_sim_destroy(sim));
}

static int acquirer(void *arg)
{
	int i = (int)(uintptr_t)arg;
	int r = hive_rate_acquire(&rate, wants[i],
	                          deadlines[i] == HIVE_FOREVER ? HIVE_FOREVER : begin_ns + deadlines[i]);

	at[i] = r < 0 ? r : hive_now(NULL) - begin_ns;
	if (r == 0)
		served[served_count++] = i;
	return 0;
}

/* One after the other: each has come before the next. */
static void come(int from, int count)
{
	for (int i = from; i < from + count; i++) {
		CHECK_OK(hive_spawn(hive, acquirer, (void *)(uintptr_t)i, NULL, &fibers[i]));
		hive_sim_advance(sim, 0);
	}
}

static void go(int from, int count)
{
	for (int i = from; i < from + count; i++)
		CHECK_OK(hive_fiber_detach(fibers[i]));
}

TEST(a_burst_at_once_and_then_evenly)
{
	open_world(3, 5, HIVE_S(1)); /* a third of a second is no whole number of nanoseconds */
	come(0, FIBERS);
	hive_sim_advance(sim, HIVE_S(100));
	for (int i = 0; i < FIBERS; i++) {
		int64_t n = i < 5 ? 0 : i - 4; /* the n-th that falls */

		CHECK_EQ(at[i], (n * HIVE_S(1) + 2) / 3); /* rounded up, and not added up */
		CHECK_EQ(served[i], i);
	}
	go(0, FIBERS);
	close_world();
}

TEST(a_large_request_is_not_overtaken)
{
	open_world(10, 10, HIVE_S(1));
	wants[0] = 10, wants[1] = 8, wants[2] = 1, wants[3] = 10;
	come(0, 4);
	hive_sim_advance(sim, HIVE_S(10));
	CHECK_EQ(at[0], 0);
	CHECK_EQ(at[1], HIVE_MS(800));
	CHECK_EQ(at[2], HIVE_MS(900));
	CHECK_EQ(at[3], HIVE_MS(1900));
	go(0, 4);
	close_world();
}

/* It is full again, and holds no more than that. */
TEST(an_idle_bucket_is_full_and_no_more)
{
	open_world(10, 2, HIVE_S(1));
	come(0, 2);
	hive_sim_advance(sim, HIVE_S(3600));
	begin_ns = hive_now(hive);
	come(2, 4);
	hive_sim_advance(sim, HIVE_S(1));
	CHECK_EQ(at[3], 0);
	CHECK_EQ(at[4], HIVE_MS(100));
	CHECK_EQ(at[5], HIVE_MS(200));
	go(0, 6);
	close_world();
}

/* Asked for at odd times: what has fallen of a token counts for the next one. */
TEST(parts_of_tokens_are_not_lost)
{
	static const int64_t comes[] = { 0, 7, 14, 30, 35, 36 }, goes[] = { 0, 10, 20, 30, 40, 50 };

	open_world(1, 1, HIVE_MS(10));
	for (int i = 0; i < 6; i++) {
		hive_sim_advance(sim, begin_ns + HIVE_MS(comes[i]) - hive_now(hive));
		come(i, 1);
	}
	hive_sim_advance(sim, HIVE_S(1));
	for (int i = 0; i < 6; i++)
		CHECK_EQ(at[i], HIVE_MS(goes[i]));
	go(0, 6);
	close_world();
}

TEST(who_would_be_late_is_told_at_once)
{
	open_world(1, 1, HIVE_S(1));
	deadlines[1] = HIVE_S(1) - 1;
	deadlines[2] = HIVE_S(1);
	deadlines[3] = HIVE_NOWAIT - begin_ns;
	deadlines[4] = HIVE_S(2) - 1; /* one is in front of it */
	deadlines[5] = HIVE_S(2);
	come(0, 6);
	CHECK_EQ(at[1], -ETIMEDOUT);
	CHECK_EQ(at[3], -ETIMEDOUT);
	CHECK_EQ(at[4], -ETIMEDOUT);
	CHECK_EQ(hive_now(hive), begin_ns);
	hive_sim_advance(sim, HIVE_S(10));
	CHECK_EQ(at[2], HIVE_S(1));
	CHECK_EQ(at[5], HIVE_S(2));
	go(0, 6);
	close_world();
}

/* What a cancelled one would have got goes to those behind it, who come earlier then; and those in front do not notice. */
TEST(who_gives_up_lets_others_move_up)
{
	open_world(1, 4, HIVE_S(1));
	wants[0] = 4, wants[2] = 3;
	come(0, 5);
	hive_sim_advance(sim, HIVE_MS(500));
	CHECK_OK(hive_fiber_cancel(fibers[2]));
	hive_sim_advance(sim, 0);
	CHECK_EQ(at[2], -ECANCELED);
	come(5, 1);
	hive_sim_advance(sim, HIVE_S(20));
	CHECK_EQ(at[1], HIVE_S(1));
	CHECK_EQ(at[3], HIVE_S(2));
	CHECK_EQ(at[4], HIVE_S(3));
	CHECK_EQ(at[5], HIVE_S(4));
	go(0, 6);
	close_world();
}

/* Cancelled at the moment at which it is served: it was served. */
TEST(a_cancel_against_the_grant)
{
	open_world(1, 1, HIVE_S(1));
	come(0, 3);
	hive_sim_advance(sim, HIVE_S(1));
	CHECK_OK(hive_fiber_cancel(fibers[1]));
	CHECK_OK(hive_fiber_cancel(fibers[2]));
	hive_sim_advance(sim, HIVE_S(5));
	CHECK_EQ(at[1], HIVE_S(1));
	CHECK_EQ(at[2], -ECANCELED);
	go(0, 3);
	close_world();
}

TEST(mistakes_are_told)
{
	struct hive_rate never = { .burst = 1 };
	struct hive_rate_options good = { .rate = 1, .burst = 2, .per_ns = HIVE_S(3600) }, bad;

#define REFUSED(change)                                          \
	do {                                                     \
		bad = good;                                      \
		change;                                          \
		CHECK_ERR(hive_rate_init(&rate, &bad), -EINVAL); \
	} while (0)
	REFUSED(bad.rate = 0);
	REFUSED(bad.burst = 0);
	REFUSED(bad.per_ns = -1);
	REFUSED(bad.reserved[1] = 1);
	REFUSED((bad.rate = UINT32_MAX, bad.per_ns = INT64_MAX / UINT32_MAX + 1));
	CHECK_ERR(hive_rate_init(NULL, &good), -EINVAL);
	CHECK_ERR(hive_rate_init(&rate, NULL), -EINVAL);
	CHECK_ERR(hive_rate_acquire(NULL, 1, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_rate_acquire(&never, 1, HIVE_NOWAIT), -EINVAL);
	CHECK_OK(hive_rate_init(&rate, &good));
	CHECK_ERR(hive_rate_acquire(&rate, 3, HIVE_FOREVER), -EINVAL);
	CHECK_OK(hive_rate_acquire(&rate, 0, HIVE_NOWAIT));
	CHECK_OK(hive_rate_acquire(&rate, 2, HIVE_NOWAIT));
	CHECK_OK(hive_rate_acquire(&rate, 0, HIVE_NOWAIT));
	CHECK_ERR(hive_rate_acquire(&rate, 1, HIVE_NOWAIT), -ETIMEDOUT);
}

/* At the limits of the numbers: a deadline is never passed by one that wrapped. */
TEST(far_away_is_not_now)
{
	CHECK_OK(hive_rate_init(&rate,
	                        &(struct hive_rate_options){ .rate = 1, .burst = UINT32_MAX, .per_ns = INT64_MAX }));
	CHECK_OK(hive_rate_acquire(&rate, UINT32_MAX, HIVE_NOWAIT));
	CHECK_ERR(hive_rate_acquire(&rate, UINT32_MAX, HIVE_FOREVER - 1), -ETIMEDOUT);
	CHECK_OK(hive_rate_init(
		&rate, &(struct hive_rate_options){ .rate = UINT32_MAX, .burst = UINT32_MAX, .per_ns = HIVE_S(2) }));
	CHECK_OK(hive_rate_acquire(&rate, UINT32_MAX, HIVE_NOWAIT));
	CHECK_OK(hive_rate_acquire(&rate, UINT32_MAX / 1000, hive_deadline(NULL, HIVE_S(100))));
}

/* ---- on the system's clock, for everybody ---- */

static ATOMIC(uint32_t) granted;
static int64_t started_ns;

static void take_some(void *arg)
{
	(void)arg;
	for (int n = 0; n < 50; n++) {
		uint32_t before;

		CHECK_OK(hive_rate_acquire(&rate, 1, HIVE_FOREVER));
		before = add_seq(&granted, 1u);
		/* the (before + 1)-th: at least so many have fallen */
		CHECK(before < 10 || (hive_now(NULL) - started_ns) / HIVE_US(50) >= before + 1 - 10);
	}
}

CREW_TEST(never_more_than_have_fallen)
{
	struct crew crew;

	CHECK_OK(hive_rate_init(&rate, &(struct hive_rate_options){ .rate = 20000, .burst = 10 }));
	store_relaxed(&granted, 0);
	started_ns = hive_now(NULL);
	crew_begin(&crew, crew_kind);
	for (int i = 0; i < 6; i++)
		crew_add(&crew, take_some, NULL);
	crew_end(&crew);
	CHECK_EQ(load_relaxed(&granted), 300);
	CHECK(hive_now(NULL) - started_ns >= HIVE_US(50) * 290);
	CHECK(!rate.waiters[0]);
}
