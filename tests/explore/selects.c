/* SPDX-License-Identifier: MIT */
/* Programs in which fibers and threads select, among channels and times: exactly one case happens, and nothing is lost. */
#include <errno.h>
#include <string.h>

#include "crew.h"
#include "programs.h"
#include "support/invariants.h"

enum { ITEMS = 64, CHANNELS = 2, CASES = 4 };

static struct {
	struct hive_channel *channels[CHANNELS];
	uint32_t used;
	bool sent[ITEMS], refused[ITEMS], received[ITEMS];
	bool closing; /* somebody has begun to close them */
} market;

static const char *check_market(void)
{
	const char *wrong = NULL;

	for (int i = 0; i < CHANNELS && !wrong; i++)
		wrong = invariants_channel(market.channels[i]);
	return wrong;
}

static void note_received(uint32_t item)
{
	EXPECT(item < market.used && !market.received[item] && !market.refused[item]);
	market.received[item] = true;
}

static void note_sent(uint32_t item, bool sent)
{
	market.sent[item] = sent;
	market.refused[item] = !sent;
	EXPECT(sent || !market.received[item]);
}

static void check_result(int self, int r, int64_t deadline)
{
	if (r == -EPIPE)
		EXPECT(market.closing);
	else if (r != -EDEADLK)
		crew_check_wait(self, r, deadline);
}

/* What a case came to: items that it did not receive are not there. */
static void check_cases(const struct hive_select *cases, const uint32_t *in, uint32_t count, int r, size_t index)
{
	for (uint32_t i = 0; i < count; i++) {
		bool happened = r == 0 && i == index;

		EXPECT((in[i] != UINT32_MAX) == (happened && cases[i].recv));
		if (happened && cases[i].recv)
			note_received(in[i]);
		if (happened && cases[i].deadline_ns)
			EXPECT(explore_now() >= cases[i].deadline_ns);
	}
}

/* A few cases at random: to send this one item, to receive, for a time, for nothing; some channels more than once. */
static void choose(int self)
{
	uint32_t count = 1 + explore_draw(CASES), in[CASES], item = market.used;
	int64_t deadline = crew_deadline(), first = deadline; /* that needs an alarm */
	struct hive_select cases[CASES];
	size_t index = CASES;
	bool sends = false;
	int r;

	if (market.used == ITEMS)
		return;
	market.used++;
	memset(cases, 0, sizeof cases);
	memset(in, 0xff, sizeof in);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t how = explore_draw(8);

		if (how == 0)
			continue;
		if (how == 1) {
			cases[i].deadline_ns = hive_deadline(ledger.hive, (int64_t)explore_draw(3000));
			first = cases[i].deadline_ns < first ? cases[i].deadline_ns : first;
			continue;
		}
		cases[i].channel = market.channels[explore_draw(CHANNELS)];
		cases[i].bytes = sizeof item;
		if (how < 5)
			cases[i].send = &item, sends = true;
		else
			cases[i].recv = &in[i];
	}
	r = hive_select(cases, count, deadline, &index);
	check_result(self, r, r == -ENOMEM ? first : deadline);
	EXPECT((r == 0 || r == -EPIPE) == (index < count));
	note_sent(item, sends && r == 0 && cases[index].send);
	check_cases(cases, in, count, r, index);
}

static void call(int self)
{
	struct hive_channel *channel = market.channels[explore_draw(CHANNELS)];
	uint32_t item = market.used, in = UINT32_MAX;
	int64_t deadline = crew_deadline();
	int r;

	if (market.used == ITEMS)
		return;
	if (explore_draw(2)) {
		market.used++;
		r = hive_channel_send(channel, &item, sizeof item, deadline);
		note_sent(item, r == 0);
	} else {
		r = hive_channel_recv(channel, &in, sizeof in, deadline);
		if (r == 0)
			note_received(in);
	}
	check_result(self, r, deadline);
}

static void trade(int self)
{
	for (uint32_t n = 1 + explore_draw(4); n > 0; n--)
		if (explore_draw(3))
			choose(self);
		else
			call(self);
}

static int trade_as_fiber(void *one)
{
	trade(crew_enter(one));
	return crew_leave(one);
}

static void trade_as_thread(void *arg)
{
	(void)arg;
	trade(-1);
}

static void close_market(void *arg)
{
	(void)arg;
	for (uint32_t n = explore_draw(8); n > 0; n--)
		explore_yield();
	market.closing = true;
	for (int i = 0; i < CHANNELS; i++)
		EXPECT(hive_channel_close(market.channels[i]) == 0);
}

static bool open_market(void)
{
	int made = 0;

	crew_clear();
	memset(&market, 0, sizeof market);
	while (made < CHANNELS &&
	       hive_channel_create(sizeof(uint32_t), explore_draw(3) / 2, &market.channels[made]) == 0)
		made++;
	if (made == CHANNELS && open_hive((struct range){ 1, 3 }, (struct range){ 0, 0 }, CORE_EMPTY)) {
		watched = check_market;
		return true;
	}
	for (int i = 0; i < made; i++)
		EXPECT(hive_channel_destroy(market.channels[i]) == 0);
	return false;
}

/* What is still inside comes out, and then everything is where it belongs. */
static void empty_market(void)
{
	for (int i = 0; i < CHANNELS; i++) {
		uint32_t in;

		while (hive_channel_recv(market.channels[i], &in, sizeof in, HIVE_NOWAIT) == 0)
			note_received(in);
		EXPECT(hive_channel_destroy(market.channels[i]) == 0);
	}
	for (uint32_t i = 0; i < market.used; i++)
		EXPECT(market.sent[i] == market.received[i]);
}

void selects_let_one_case_happen(void *arg)
{
	int threads[4], n = 0;

	(void)arg;
	if (!open_market())
		return;
	for (uint32_t i = 1 + explore_draw(3); i > 0; i--)
		crew_hire(trade_as_fiber, (int)explore_draw(4));
	for (uint32_t i = 1 + explore_draw(2); i > 0; i--)
		threads[n++] = explore_spawn("trader", trade_as_thread, NULL);
	threads[n++] = explore_spawn("closer", close_market, NULL);
	crew_see_it_through(threads, n);
	empty_market();
}
