/* SPDX-License-Identifier: MIT */
/* Programs with a channel: what was sent is received once, whoever closes, is late or gives up meanwhile. */
#include <errno.h>
#include <string.h>

#include "crew.h"
#include "programs.h"
#include "support/invariants.h"

enum { ITEMS = 64, SENDERS = 32 };

struct item {
	uint32_t number;
	uint32_t sender;
};

static struct {
	struct hive_channel *channel;
	uint32_t used, senders;
	bool sent[ITEMS], refused[ITEMS], received[ITEMS];
	uint32_t last[SENDERS]; /* of each sender: one more than the number that came last */
	bool closing;           /* somebody has begun to close it */
	bool ordered;           /* there is one receiver: it sees the order */
} flow;

static const char *check_flow(void)
{
	return invariants_channel(flow.channel);
}

static void check_result(int self, int r, int64_t deadline)
{
	if (r == -EPIPE)
		EXPECT(flow.closing);
	else
		crew_check_wait(self, r, deadline);
}

static void send_one(int self, uint32_t sender)
{
	struct item item = { flow.used, sender };
	int64_t deadline;
	int r;

	if (flow.used == ITEMS)
		return;
	flow.used++;
	deadline = crew_deadline();
	r = hive_channel_send(flow.channel, &item, sizeof item, deadline);
	check_result(self, r, deadline);
	flow.sent[item.number] = r == 0;
	flow.refused[item.number] = r < 0;
	EXPECT(r == 0 || !flow.received[item.number]);
}

static void note_item(struct item item)
{
	EXPECT(item.number < flow.used && item.sender < flow.senders);
	EXPECT(!flow.received[item.number] && !flow.refused[item.number]);
	flow.received[item.number] = true;
	EXPECT(!flow.ordered || item.number >= flow.last[item.sender]);
	flow.last[item.sender] = item.number + 1;
}

/* False: it is at its end. */
static bool receive_one(int self, int64_t deadline)
{
	struct item item = { UINT32_MAX, UINT32_MAX };
	int r = hive_channel_recv(flow.channel, &item, sizeof item, deadline);

	check_result(self, r, deadline);
	if (r == 0)
		note_item(item);
	else
		EXPECT(item.number == UINT32_MAX && item.sender == UINT32_MAX);
	return r == 0;
}

static void send_some(int self)
{
	uint32_t sender = flow.senders++;

	for (uint32_t n = 1 + explore_draw(4); n > 0; n--)
		send_one(self, sender);
}

static void receive_some(int self)
{
	for (uint32_t n = 1 + explore_draw(5); n > 0; n--)
		receive_one(self, crew_deadline());
}

static int send_as_fiber(void *one)
{
	send_some(crew_enter(one));
	return crew_leave(one);
}

static int receive_as_fiber(void *one)
{
	receive_some(crew_enter(one));
	return crew_leave(one);
}

static void send_as_thread(void *arg)
{
	(void)arg;
	send_some(-1);
}

static void receive_as_thread(void *arg)
{
	(void)arg;
	receive_some(-1);
}

static void close_flow(void *arg)
{
	int r;

	for (uint32_t n = arg ? explore_draw(8) : 0; n > 0; n--)
		explore_yield();
	flow.closing = true;
	r = hive_channel_close(flow.channel);
	EXPECT(r == 0 || r == -EALREADY);
}

static bool open_flow(void)
{
	crew_clear();
	memset(&flow, 0, sizeof flow);
	if (hive_channel_create(sizeof(struct item), explore_draw(4), &flow.channel) < 0)
		return false;
	if (!open_hive((struct range){ 1, 3 }, (struct range){ 0, 0 }, CORE_EMPTY)) {
		EXPECT(hive_channel_destroy(flow.channel) == 0);
		return false;
	}
	watched = check_flow;
	return true;
}

/* What is still inside comes out, and then everything is where it belongs. */
static void empty_flow(void)
{
	while (receive_one(-1, HIVE_NOWAIT))
		;
	for (uint32_t i = 0; i < flow.used; i++)
		EXPECT(flow.sent[i] == flow.received[i]);
	EXPECT(hive_channel_destroy(flow.channel) == 0);
}

static void hire_some(void)
{
	uint32_t receivers = explore_draw(3), senders = explore_draw(3);

	for (uint32_t i = 0; i < receivers; i++)
		crew_hire(receive_as_fiber, (int)explore_draw(4));
	for (uint32_t i = 0; i < senders; i++)
		crew_hire(send_as_fiber, (int)explore_draw(4));
	flow.ordered = receivers == 0;
}

/* Senders and receivers, some with deadlines, while somebody closes, cancels or stops. */
void channels_lose_nothing(void *arg)
{
	int threads[4], n = 0;

	(void)arg;
	if (!open_flow())
		return;
	hire_some();
	threads[n++] = explore_spawn("receiver", receive_as_thread, NULL);
	threads[n++] = explore_spawn("sender", send_as_thread, NULL);
	threads[n++] = explore_spawn("closer", close_flow, &flow);
	if (explore_draw(2))
		threads[n++] = explore_draw(2) ? explore_spawn("canceller", crew_canceller, number(3))
		                               : explore_spawn("stopper", crew_stop, explore_draw(2) ? &crew : NULL);
	crew_join_threads(threads, n);
	if (!crew.stopping) {
		crew_check_still();
		crew_stop(explore_draw(2) ? &crew : NULL);
	}
	crew_close();
	empty_flow();
}
