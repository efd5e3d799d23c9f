/* SPDX-License-Identifier: MIT */
#pragma once
/* Select, and what <rophive/flow.h> has: what is created allocates once, and nothing else does, waits of a thread included. */
#include <rophive/flow.h>

#include "calls.h"

static struct {
	struct hive_oneshot *oneshot;
	struct hive_watch *watch;
	struct hive_broadcast *broadcast;
} flowing;

/* What is not there is no case, and so many of them are waited for all the same. */
static int select_some(size_t count)
{
	struct hive_select cases[9] = { { 0 } };
	size_t index = 99;
	int r;

	cases[count - 1].deadline_ns = hive_deadline(NULL, HIVE_US(10));
	r = hive_select(cases, count, HIVE_FOREVER, &index);
	CHECK(r == 0 ? index == count - 1 : index == 99);
	return r;
}
static int select_few(struct world *w)
{
	(void)w;
	return select_some(8);
}
static int select_many(struct world *w)
{
	(void)w;
	return select_some(9);
}

static int oneshot_create(struct world *w)
{
	int r = hive_oneshot_create(24, &flowing.oneshot);

	(void)w;
	if (r == 0) {
		CHECK_OK(hive_oneshot_drop(flowing.oneshot));
		CHECK_OK(hive_oneshot_close(flowing.oneshot));
	}
	return r;
}
static int watch_create(struct world *w)
{
	int item = 1, r = hive_watch_create(sizeof item, &item, &flowing.watch);

	(void)w;
	return r < 0 ? r : hive_watch_destroy(flowing.watch);
}
static int broadcast_create(struct world *w)
{
	int r = hive_broadcast_create(24, 100, &flowing.broadcast);

	(void)w;
	return r < 0 ? r : hive_broadcast_destroy(flowing.broadcast);
}

static void make_flow(struct world *w)
{
	int item = 1;

	(void)w;
	CHECK_OK(hive_oneshot_create(sizeof item, &flowing.oneshot));
	CHECK_OK(hive_watch_create(sizeof item, &item, &flowing.watch));
	CHECK_OK(hive_broadcast_create(sizeof item, 2, &flowing.broadcast));
}
static int flow_all(struct world *w)
{
	struct hive_subscription subscription;
	int item = 2;
	uint64_t version = 1;

	(void)w;
	CHECK_ERR(hive_oneshot_recv(flowing.oneshot, &item, sizeof item, hive_deadline(NULL, HIVE_US(10))), -ETIMEDOUT);
	CHECK_OK(hive_oneshot_send(flowing.oneshot, &item, sizeof item));
	CHECK_ERR(hive_oneshot_drop(flowing.oneshot), -EALREADY);
	CHECK_OK(hive_oneshot_recv(flowing.oneshot, &item, sizeof item, HIVE_FOREVER));
	CHECK_OK(hive_oneshot_close(flowing.oneshot));
	CHECK_ERR(hive_watch_wait(flowing.watch, &version, &item, sizeof item, hive_deadline(NULL, HIVE_US(10))),
	          -ETIMEDOUT);
	CHECK_OK(hive_watch_send(flowing.watch, &item, sizeof item));
	CHECK_OK(hive_watch_wait(flowing.watch, &version, &item, sizeof item, HIVE_FOREVER));
	CHECK_OK(hive_watch_read(flowing.watch, &item, sizeof item, NULL));
	CHECK_OK(hive_watch_close(flowing.watch));
	CHECK_OK(hive_watch_destroy(flowing.watch));
	CHECK_OK(hive_broadcast_subscribe(flowing.broadcast, &subscription));
	CHECK_ERR(hive_broadcast_recv(&subscription, &item, sizeof item, NULL, hive_deadline(NULL, HIVE_US(10))),
	          -ETIMEDOUT);
	CHECK_OK(hive_broadcast_send(flowing.broadcast, &item, sizeof item));
	CHECK_OK(hive_broadcast_recv(&subscription, &item, sizeof item, NULL, HIVE_FOREVER));
	CHECK_OK(hive_broadcast_close(flowing.broadcast));
	CHECK_OK(hive_broadcast_unsubscribe(&subscription));
	return hive_broadcast_destroy(flowing.broadcast);
}

static int limit_all(struct world *w)
{
	struct hive_rate_options options = { .rate = 1000, .burst = 1 };
	struct hive_limiter_counts counts;
	struct hive_limiter limiter;
	struct hive_rate rate;

	(void)w;
	CHECK_OK(hive_rate_init(&rate, &options));
	CHECK_OK(hive_rate_acquire(&rate, 1, HIVE_NOWAIT));
	CHECK_OK(hive_rate_acquire(&rate, 1, HIVE_FOREVER));
	hive_limiter_init(&limiter, 1);
	CHECK_OK(hive_limiter_enter(&limiter, HIVE_FOREVER));
	CHECK_ERR(hive_limiter_enter(&limiter, hive_deadline(NULL, HIVE_US(10))), -ETIMEDOUT);
	CHECK_OK(hive_limiter_resize(&limiter, 2));
	CHECK_OK(hive_limiter_read(&limiter, &counts));
	return hive_limiter_leave(&limiter);
}
