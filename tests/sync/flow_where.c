/* SPDX-License-Identifier: MIT */
/* Where one may wait for what <rophive/flow.h> has: as for all the others, which are in where.c. */
#include "crew.h"
#include "sync/bell.h"

#define WAIT_PLACES 6
#include "places.h"

static struct hive_oneshot *oneshot;
static struct hive_watch *watch;
static struct hive_broadcast *broadcast;
static struct hive_subscription subscription;
static struct hive_rate rate;
static struct hive_limiter limiter;

static int recv_oneshot(int64_t deadline_ns)
{
	int item;

	return hive_oneshot_recv(oneshot, &item, sizeof item, deadline_ns);
}

static int wait_watch(int64_t deadline_ns)
{
	uint64_t version = 1;
	int item;

	return hive_watch_wait(watch, &version, &item, sizeof item, deadline_ns);
}

static int recv_broadcast(int64_t deadline_ns)
{
	int item;

	return hive_broadcast_recv(&subscription, &item, sizeof item, NULL, deadline_ns);
}

static int acquire_rate(int64_t deadline_ns)
{
	return hive_rate_acquire(&rate, 1, deadline_ns);
}

static int enter_limiter(int64_t deadline_ns)
{
	return hive_limiter_enter(&limiter, deadline_ns);
}

static int select_all(int64_t deadline_ns)
{
	uint64_t version = 1;
	size_t index;
	int item;
	struct hive_select cases[] = {
		{ .oneshot = oneshot, .recv = &item, .bytes = sizeof item },
		{ .watch = watch, .recv = &item, .bytes = sizeof item, .version = &version },
		{ .subscription = &subscription, .recv = &item, .bytes = sizeof item },
	};

	return hive_select(cases, 3, deadline_ns, &index);
}

static int (*const ways[])(int64_t deadline_ns) = {
	recv_oneshot, wait_watch, recv_broadcast, acquire_rate, enter_limiter, select_all,
};
_Static_assert(sizeof ways / sizeof *ways == PLACES, "all of them");

static bool somebody_waits(int way)
{
	switch (way) {
	case 0:
		return bell_is_used((struct bell *)(void *)oneshot);
	case 1:
		return bell_is_used((struct bell *)(void *)watch);
	case 2:
		return bell_is_used((struct bell *)(void *)broadcast);
	case 3:
		return waiting(&rate.state, rate.waiters) > 0;
	case 4:
		return waiting(&limiter.state, limiter.waiters) > 0;
	default:
		return somebody_waits(0) && somebody_waits(1) && somebody_waits(2);
	}
}

static void init(void)
{
	int item = 0;

	CHECK_OK(hive_oneshot_create(sizeof item, &oneshot));
	CHECK_OK(hive_watch_create(sizeof item, &item, &watch));
	CHECK_OK(hive_broadcast_create(sizeof item, 1, &broadcast));
	CHECK_OK(hive_broadcast_subscribe(broadcast, &subscription));
	CHECK_OK(hive_rate_init(&rate, &(struct hive_rate_options){ .rate = 1, .burst = 1, .per_ns = HIVE_S(600) }));
	CHECK_OK(hive_rate_acquire(&rate, 1, HIVE_NOWAIT));
	hive_limiter_init(&limiter, 0);
	crew_open(CREW_MIXED);
}

static void finish(void)
{
	crew_close();
	for (int way = 0; way < PLACES; way++)
		CHECK(!somebody_waits(way));
	CHECK_EQ(limiter.waiting, 0);
	CHECK_EQ(rate.taken, 1); /* who gave up has given them back */
	CHECK_OK(hive_oneshot_drop(oneshot));
	CHECK_OK(hive_oneshot_close(oneshot));
	CHECK_OK(hive_watch_destroy(watch));
	CHECK_OK(hive_broadcast_unsubscribe(&subscription));
	CHECK_OK(hive_broadcast_destroy(broadcast));
}

static void wait_everywhere(int64_t deadline_ns, int expected)
{
	for (int way = 0; way < PLACES; way++)
		CHECK_ERR(ways[way](deadline_ns), expected);
}

static void wait_until_cancelled(int place)
{
	CHECK_ERR(ways[place](HIVE_FOREVER), -ECANCELED);
}
