/* SPDX-License-Identifier: MIT */
/* A program with all of <rophive/flow.h>: values of a broadcast and a watch, answers by oneshot, a limiter and a rate. */
#include <errno.h>
#include <string.h>

#include "crew.h"
#include "programs.h"

enum { VALUES = 12, CAPACITY = 3, BURST = 2, PER_NS = 1000, LIMIT = 2, ASKED = 32 };

static struct {
	struct hive_broadcast *broadcast;
	struct hive_watch *watch;
	struct hive_rate rate;
	struct hive_limiter limiter;
	uint32_t inside; /* of the limiter, as those inside count */
	uint32_t granted;
	int64_t begin_ns; /* of the first who takes: it is full then */
	struct hive_oneshot *asked[ASKED];
	uint32_t asked_count;
	bool over; /* the last values were sent */
} river;

static void check_result(int self, int r, int64_t deadline)
{
	if (r == -EPIPE)
		EXPECT(river.over);
	else
		crew_check_wait(self, r, deadline);
}

/* In order, with what is missing counted, and to the end if nobody cancels. */
static void listen(int self)
{
	struct hive_subscription mine;
	uint32_t value, before = 0;
	bool first = true;
	uint64_t missed;
	int r;

	EXPECT(hive_broadcast_subscribe(river.broadcast, &mine) == 0);
	while ((r = hive_broadcast_recv(&mine, &value, sizeof value, &missed, HIVE_FOREVER)) == 0) {
		EXPECT(value >= 1 && value <= VALUES);
		EXPECT(first ? missed == 0 || value > missed : value == before + 1 + missed);
		before = value;
		first = false;
	}
	check_result(self, r, HIVE_FOREVER);
	EXPECT(r != -EPIPE || first || before == VALUES);
	EXPECT(hive_broadcast_unsubscribe(&mine) == 0);
}

/* By select, with a time beside it. */
static void follow(int self)
{
	uint64_t version = 0, before = 0;
	uint32_t value = 0;
	int r = 0;

	while (r == 0) {
		struct hive_select cases[2] = {
			{ .watch = river.watch, .recv = &value, .bytes = sizeof value, .version = &version },
			{ .deadline_ns = hive_deadline(ledger.hive, 1 + (int64_t)explore_draw(2000)) },
		};
		size_t index;

		r = hive_select(cases, 2, HIVE_FOREVER, &index);
		check_result(self, r, cases[1].deadline_ns); /* its timer may find no memory */
		if (r == 0 && index == 0) {
			EXPECT(version > before && version == value + 1);
			before = version;
		}
	}
	EXPECT(r != -EPIPE || value == VALUES);
}

static void work(int self)
{
	for (uint32_t n = 1 + explore_draw(3); n > 0; n--) {
		int64_t deadline = crew_deadline();
		int r = hive_limiter_enter(&river.limiter, deadline);

		crew_check_wait(self, r, deadline);
		if (r < 0)
			continue;
		river.inside++;
		EXPECT(river.inside <= LIMIT);
		explore_yield();
		river.inside--;
		EXPECT(hive_limiter_leave(&river.limiter) == 0);
	}
}

/* Never more than have fallen. Who would be late is told before: so that says nothing about the time. */
static void take(int self)
{
	for (uint32_t n = 1 + explore_draw(3); n > 0; n--) {
		uint32_t want = 1 + explore_draw(BURST);
		int64_t deadline = crew_deadline();
		int r;

		if (river.begin_ns == 0)
			river.begin_ns = explore_now();
		r = hive_rate_acquire(&river.rate, want, deadline);

		if (r == -ETIMEDOUT)
			EXPECT(deadline != HIVE_FOREVER);
		else
			crew_check_wait(self, r == -ENOMEM ? 0 : r,
			                deadline); /* it has a timer without a deadline, too */
		if (r == 0)
			river.granted += want;
		EXPECT(river.granted <= BURST + (explore_now() - river.begin_ns) / PER_NS);
	}
}

static void answer(struct hive_oneshot *oneshot)
{
	uint32_t value = 42;
	int r = explore_draw(3) ? hive_oneshot_send(oneshot, &value, sizeof value) : hive_oneshot_drop(oneshot);

	EXPECT(r == 0 || r == -EPIPE);
}

/* Somebody answers, or it does so itself when nobody does any more. */
static void ask(int self)
{
	struct hive_oneshot *oneshot;
	uint32_t value = 0;
	int64_t deadline;
	int r;

	if (hive_oneshot_create(sizeof value, &oneshot) < 0)
		return;
	if (river.over || river.asked_count == ASKED)
		answer(oneshot);
	else
		river.asked[river.asked_count++] = oneshot;
	deadline = crew_deadline();
	r = hive_oneshot_recv(oneshot, &value, sizeof value, deadline);
	EXPECT((r == 0) == (value == 42));
	if (r != -EPIPE)
		crew_check_wait(self, r, deadline);
	EXPECT(hive_oneshot_close(oneshot) == 0);
}

static void swim(int self)
{
	switch (explore_draw(6)) {
	case 0:
		listen(self);
		break;
	case 1:
		follow(self);
		break;
	case 2:
		work(self);
		break;
	case 3:
	case 4:
		take(self);
		break;
	default:
		ask(self);
	}
}

static int swim_as_fiber(void *one)
{
	swim(crew_enter(one));
	return crew_leave(one);
}

static void swim_as_thread(void *arg)
{
	(void)arg;
	swim(-1);
}

/* Sends all there is to be sent, answers who has asked by then, and leaves room for whoever waits. */
static void send_all(void *arg)
{
	(void)arg;
	for (uint32_t value = 1; value <= VALUES; value++) {
		EXPECT(hive_broadcast_send(river.broadcast, &value, sizeof value) == 0);
		EXPECT(hive_watch_send(river.watch, &value, sizeof value) == 0);
		EXPECT(hive_limiter_resize(&river.limiter, explore_draw(LIMIT + 1)) == 0);
		if (explore_draw(2))
			explore_yield();
	}
	river.over = true;
	EXPECT(hive_broadcast_close(river.broadcast) == 0);
	EXPECT(hive_watch_close(river.watch) == 0);
	EXPECT(hive_limiter_resize(&river.limiter, LIMIT) == 0);
	while (river.asked_count > 0)
		answer(river.asked[--river.asked_count]);
}

static void dry_up(void)
{
	EXPECT(hive_broadcast_destroy(river.broadcast) == 0);
	EXPECT(hive_watch_destroy(river.watch) == 0);
}

static bool spring(void)
{
	struct hive_rate_options options = { .rate = 1, .burst = BURST, .per_ns = PER_NS };
	uint32_t value = 0;

	crew_clear();
	memset(&river, 0, sizeof river);
	hive_limiter_init(&river.limiter, 1);
	EXPECT(hive_rate_init(&river.rate, &options) == 0);
	if (hive_broadcast_create(sizeof value, CAPACITY, &river.broadcast) < 0)
		return false;
	if (hive_watch_create(sizeof value, &value, &river.watch) < 0) {
		EXPECT(hive_broadcast_destroy(river.broadcast) == 0);
		return false;
	}
	if (!open_hive((struct range){ 1, 3 }, (struct range){ 0, 0 }, CORE_EMPTY)) {
		dry_up();
		return false;
	}
	return true;
}

void values_flow_and_limits_hold(void *arg)
{
	int threads[4], n = 0;

	(void)arg;
	if (!spring())
		return;
	for (uint32_t i = 1 + explore_draw(4); i > 0; i--)
		crew_hire(swim_as_fiber, (int)explore_draw(4));
	for (uint32_t i = 1 + explore_draw(2); i > 0; i--)
		threads[n++] = explore_spawn("swimmer", swim_as_thread, NULL);
	threads[n++] = explore_spawn("sender", send_all, NULL);
	crew_see_it_through(threads, n);
	EXPECT(river.limiter.inside == 0 && river.limiter.waiting == 0 && !river.limiter.waiters[0]);
	EXPECT(!river.rate.waiters[0]);
	dry_up();
}
