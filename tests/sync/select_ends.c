/* SPDX-License-Identifier: MIT */
/* Select: cases that are the end of something, a cancel token or a group. */
#include "crew.h"
#include "support/real.h"
#include "sync/channel.h"

static int choose(struct hive_select *cases, size_t count, int64_t deadline_ns)
{
	size_t index = 77;
	int r = hive_select(cases, count, deadline_ns, &index);

	return r < 0 ? r : (int)index;
}

static void nothing(void *arg)
{
	(void)arg;
}

TEST(what_has_ended_is_there_at_once)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 1 });
	struct hive_select cases[2] = { { 0 } };
	struct hive_cancel token;
	struct hive_group group;

	hive_cancel_init(&token, NULL, HIVE_FOREVER);
	hive_group_init(&group, hive, HIVE_COMPUTE);
	cases[0].cancel = &token;
	CHECK_ERR(choose(cases, 1, HIVE_NOWAIT), -ETIMEDOUT);
	cases[1].group = &group;
	CHECK_EQ(choose(cases, 2, HIVE_FOREVER), 1); /* nothing is in it */
	CHECK_OK(hive_group_enter(&group));
	CHECK_ERR(choose(cases, 2, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(choose(cases, 2, hive_deadline(NULL, HIVE_US(100))), -ETIMEDOUT);
	hive_cancel_fire(&token);
	CHECK_EQ(choose(cases, 2, HIVE_FOREVER), 0);
	CHECK_OK(hive_group_leave(&group, 0));
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	CHECK_OK(hive_cancel_join(&token, HIVE_FOREVER));
	real_end(hive, HIVE_DRAIN);
}

static void own_a_group(void *arg)
{
	struct hive_group group, *never = arg;
	struct hive_select c = { .group = &group };

	hive_group_init(&group, hive_current(), HIVE_COMPUTE);
	CHECK_ERR(choose(&c, 1, HIVE_NOWAIT), -EPERM);
	hive_group_run(&group, nothing, NULL);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	c.group = never;
	CHECK_ERR(choose(&c, 1, HIVE_NOWAIT), -EINVAL);
}

TEST(mistakes_are_told)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 1 });
	struct hive_cancel no_token = { .magic = 1 };
	struct hive_group no_group = { .magic = 1 }, group;
	struct hive_select c = { .cancel = &no_token };

	CHECK_ERR(choose(&c, 1, HIVE_NOWAIT), -EINVAL);
	c.group = &no_group; /* two things */
	CHECK_ERR(choose(&c, 1, HIVE_NOWAIT), -EINVAL);
	hive_group_init(&group, hive, HIVE_COMPUTE);
	hive_group_run(&group, own_a_group, &no_group);
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	real_end(hive, HIVE_DRAIN);
}

/* ---- while somebody waits ---- */

static struct hive_cancel token;
static struct hive_group group;
static struct hive_channel *channel;
static ATOMIC(uint32_t) by_token, by_group, by_item;

static void wait_for_an_end(void *arg)
{
	uint64_t item;
	struct hive_select cases[3] = { { .cancel = &token },
		                        { .group = &group },
		                        { .channel = channel, .recv = &item, .bytes = sizeof item } };
	int which = choose(cases, 3, HIVE_FOREVER);

	(void)arg;
	CHECK(which >= 0 && which < 3);
	add_relaxed(which == 0 ? &by_token : which == 1 ? &by_group : &by_item, 1u);
}

static void begin(struct crew *crew, enum crew_kind kind)
{
	store_relaxed(&by_token, 0);
	store_relaxed(&by_group, 0);
	store_relaxed(&by_item, 0);
	CHECK_OK(hive_channel_create(sizeof(uint64_t), 0, &channel));
	hive_cancel_init(&token, NULL, HIVE_FOREVER);
	group = (struct hive_group){ .magic = 0 };
	crew_begin(crew, kind);
}

static void end(void)
{
	CHECK_OK(hive_cancel_join(&token, HIVE_FOREVER));
	CHECK_OK(hive_channel_destroy(channel));
}

/* In the channel they are seen to wait. */
static size_t receivers(void)
{
	size_t n = 0;
	uint64_t word = latch_take(&channel->word);

	for (struct wait_node *node = channel->receivers.first; node; node = node->next)
		n++;
	latch_give(&channel->word, word);
	return n;
}

static void check_ends(enum crew_kind kind, bool fires)
{
	struct hive *hive = crew_hive ? crew_hive : real_start((struct hive_options){ .io_workers = 1 });
	struct crew crew;
	uint64_t item = 1;

	begin(&crew, kind);
	hive_group_init(&group, hive, HIVE_MICRO);
	CHECK_OK(hive_group_enter(&group));
	for (int i = 0; i < 4; i++)
		crew_add(&crew, wait_for_an_end, NULL);
	WAIT_UNTIL(receivers() == 4);
	CHECK_OK(hive_channel_send(channel, &item, sizeof item, HIVE_FOREVER)); /* one of them */
	WAIT_UNTIL(receivers() == 3);
	if (fires)
		hive_cancel_fire(&token);
	else
		CHECK_OK(hive_group_leave(&group, 0));
	crew_end(&crew);
	CHECK_EQ(load_relaxed(&by_item), 1);
	CHECK_EQ(load_relaxed(fires ? &by_token : &by_group), 3);
	if (fires)
		CHECK_OK(hive_group_leave(&group, 0));
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	end();
	if (!crew_hive)
		real_end(hive, HIVE_DRAIN);
}

CREW_TEST(a_token_that_fires_ends_all_selects)
{
	check_ends(crew_kind, true);
}

CREW_TEST(a_group_that_ends_ends_all_selects)
{
	check_ends(crew_kind, false);
}

/* The end, an item and the token race: each select has one of them. */
CREW_TEST(ends_race_with_items)
{
	struct hive *hive = crew_hive ? crew_hive : real_start((struct hive_options){ .io_workers = 1 });

	for (int round = 0; round < 200 / test_slowness() + 5; round++) {
		struct crew crew;
		uint64_t item = 1;

		begin(&crew, crew_kind);
		hive_group_init(&group, hive, HIVE_MICRO);
		CHECK_OK(hive_group_enter(&group));
		for (int i = 0; i < 3; i++)
			crew_add(&crew, wait_for_an_end, NULL);
		(void)!hive_channel_send(channel, &item, sizeof item, HIVE_NOWAIT);
		CHECK_OK(hive_group_leave(&group, 0));
		hive_cancel_fire(&token);
		crew_end(&crew);
		CHECK_EQ(load_relaxed(&by_item) + load_relaxed(&by_group) + load_relaxed(&by_token), 3);
		CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
		end();
	}
	if (!crew_hive)
		real_end(hive, HIVE_DRAIN);
}

/* ---- tokens of who selects ---- */

static int select_under_a_token(void *arg)
{
	uint64_t item;
	struct hive_select cases[2] = { { .channel = channel, .recv = &item, .bytes = sizeof item },
		                        { .deadline_ns = hive_deadline(NULL, HIVE_S(3600)) } };
	size_t index = 7;
	int r;

	gate_open(arg);
	r = hive_select(cases, 2, HIVE_FOREVER, &index);
	CHECK_EQ(index, 7); /* no case has happened, the time least of all */
	return r;
}

TEST(who_is_cancelled_has_no_case_whatever_the_reason)
{
	static const int reasons[] = { -ETIMEDOUT, -EAGAIN, -ECANCELED, -EDEADLK };
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1 });
	struct gate gate;

	gate_init(&gate);
	CHECK_OK(hive_channel_create(sizeof(uint64_t), 0, &channel));
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
		struct hive_fiber_options under = { .cancel = &token };
		struct hive_fiber *fiber;
		int result = 0;

		hive_cancel_init(&token, NULL, HIVE_FOREVER);
		CHECK_OK(hive_spawn(hive, select_under_a_token, &gate, &under, &fiber));
		gate_pass(&gate);
		WAIT_UNTIL(receivers() == 1);
		CHECK_OK(hive_cancel_fire_with(&token, reasons[i]));
		CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, &result));
		CHECK_ERR(result, reasons[i]);
		CHECK_OK(hive_cancel_join(&token, HIVE_FOREVER));
	}
	CHECK_OK(hive_channel_destroy(channel));
	real_end(hive, HIVE_DRAIN);
	gate_destroy(&gate);
}

static int wait_for_its_deadline(void *arg)
{
	struct hive_select c = { .cancel = arg };

	return choose(&c, 1, HIVE_FOREVER);
}

/* Nobody else is under it. */
TEST(the_deadline_of_a_token_that_is_a_case_comes)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1 });
	int result = -1;

	hive_cancel_init(&token, NULL, hive_deadline(hive, HIVE_MS(2)));
	CHECK_OK(hive_block_on(hive, wait_for_its_deadline, &token, HIVE_FOREVER, &result));
	CHECK_EQ(result, 0);
	CHECK_OK(hive_cancel_join(&token, HIVE_FOREVER));
	real_end(hive, HIVE_DRAIN);
}
