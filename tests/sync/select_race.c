/* SPDX-License-Identifier: MIT */
/* Many who select against each other, and against plain calls: each item arrives once, nobody is forgotten. */
#include "base/rng.h"
#include "crew.h"
#include "sync/channel.h"

enum { CHANNELS = 3, ROUNDS = 2000 };

static struct hive_channel *channels[CHANNELS];
static ATOMIC(uint64_t) sent, received, sum_sent, sum_received, late;
static ATOMIC(uint32_t) numbers, over;

static void open_all(size_t capacity)
{
	for (int i = 0; i < CHANNELS; i++)
		CHECK_OK(hive_channel_create(sizeof(uint64_t), capacity, &channels[i]));
	store_relaxed(&sent, 0);
	store_relaxed(&received, 0);
	store_relaxed(&sum_sent, 0);
	store_relaxed(&sum_received, 0);
	store_relaxed(&late, 0);
	store_relaxed(&numbers, 0);
	store_relaxed(&over, 0);
}

static void close_all(void)
{
	for (int i = 0; i < CHANNELS; i++) {
		CHECK_EQ(load_relaxed(&channels[i]->word) & ~CHANNEL_CLOSED, 0);
		CHECK_OK(hive_channel_destroy(channels[i]));
	}
}

static void note_sent(uint64_t item)
{
	add_seq(&sent, UINT64_C(1));
	add_seq(&sum_sent, item);
}

static void note_received(uint64_t item)
{
	add_seq(&received, UINT64_C(1));
	add_seq(&sum_received, item);
}

static int rounds(void)
{
	return ROUNDS / test_slowness() + 10;
}

static void sender(void *arg)
{
	uint64_t item = 0;
	struct hive_select cases[CHANNELS];
	size_t index;

	(void)arg;
	for (int i = 0; i < CHANNELS; i++)
		cases[i] = (struct hive_select){ .channel = channels[i], .send = &item, .bytes = sizeof item };
	for (int n = rounds(); n > 0; n--) {
		item = add_seq(&numbers, 1u);
		CHECK_OK(hive_select(cases, CHANNELS, HIVE_FOREVER, &index));
		note_sent(item);
	}
}

static void receiver(void *arg)
{
	uint64_t items[CHANNELS];
	struct hive_select cases[CHANNELS];
	size_t index;

	(void)arg;
	for (int i = 0; i < CHANNELS; i++)
		cases[i] = (struct hive_select){ .channel = channels[i], .recv = &items[i], .bytes = sizeof *items };
	for (int n = rounds(); n > 0; n--) {
		CHECK_OK(hive_select(cases, CHANNELS, HIVE_FOREVER, &index));
		note_received(items[index]);
	}
}

static void check_books(void)
{
	CHECK_EQ(load_relaxed(&sent), load_relaxed(&received));
	CHECK_EQ(load_relaxed(&sum_sent), load_relaxed(&sum_received));
}

/* All select, from both sides, without a ring between them: two who give way to each other for ever would be a hang. */
CREW_TEST(who_selects_meets_who_selects)
{
	struct crew crew;

	for (size_t capacity = 0; capacity <= 2; capacity++) {
		open_all(capacity);
		crew_begin(&crew, crew_kind);
		for (int i = 0; i < 3; i++) {
			crew_add(&crew, sender, NULL);
			crew_add(&crew, receiver, NULL);
		}
		crew_end(&crew);
		check_books();
		close_all();
	}
}

/* Sends and receives on the same channels at once: who offers both sides, as long as there is one who has not enough. */
static void both(void *arg)
{
	uint64_t out = 0, in = 0;
	struct hive_select cases[2] = { { .channel = channels[0], .send = &out, .bytes = sizeof out },
		                        { .channel = channels[0], .recv = &in, .bytes = sizeof in } };
	size_t index;
	int r;

	(void)arg;
	while (!load_relaxed(&over)) {
		out = add_seq(&numbers, 1u);
		r = hive_select(cases, 2, hive_deadline(NULL, HIVE_US(300) * test_slowness()), &index);
		CHECK(r == 0 || r == -ETIMEDOUT);
		if (r == 0 && index == 0)
			note_sent(out);
		else if (r == 0)
			note_received(in);
		if (r == 0 && load_relaxed(&sent) >= (uint64_t)rounds())
			store_relaxed(&over, 1);
	}
}

CREW_TEST(who_offers_both_sides_meets_the_others)
{
	struct crew crew;

	open_all(0);
	crew_begin(&crew, crew_kind);
	for (int i = 0; i < 4; i++)
		crew_add(&crew, both, NULL);
	crew_end(&crew);
	check_books();
	close_all();
}

static void plain_sender(void *arg)
{
	uint64_t number = (uint64_t)(uintptr_t)arg;

	for (int n = rounds(); n > 0; n--) {
		uint64_t item = add_seq(&numbers, 1u);

		CHECK_OK(hive_channel_send(channels[(number + item) % CHANNELS], &item, sizeof item, HIVE_FOREVER));
		note_sent(item);
	}
}

static void hasty_receiver(void *arg)
{
	uint64_t items[CHANNELS], rng = (uint64_t)(uintptr_t)arg;
	struct hive_select cases[CHANNELS + 1];
	size_t index;
	int r;

	for (int i = 0; i < CHANNELS; i++)
		cases[i] = (struct hive_select){ .channel = channels[i], .recv = &items[i], .bytes = sizeof *items };
	do {
		cases[CHANNELS] = (struct hive_select){ .deadline_ns = hive_deadline(
								NULL, (int64_t)rng_below(rng_next(&rng), 20000)) };
		memset(items, 0, sizeof items);
		r = hive_select(cases, CHANNELS + 1, HIVE_FOREVER, &index);
		CHECK(r == 0 || r == -EPIPE);
		if (r == 0 && index < CHANNELS)
			note_received(items[index]);
		else if (r == 0)
			add_seq(&late, UINT64_C(1));
	} while (r == 0);
}

/* Times that pass while an item is handed over: it is received, or it stays. */
CREW_TEST(times_pass_while_items_come)
{
	struct crew crew, senders;

	open_all(1);
	crew_begin(&crew, crew_kind);
	crew_begin(&senders, crew_kind == CREW_MIXED ? CREW_THREADS : crew_kind);
	for (uintptr_t i = 1; i <= 3; i++) {
		crew_add(&crew, hasty_receiver, (void *)i);
		crew_add(&senders, plain_sender, (void *)i);
	}
	crew_end(&senders);
	for (int i = 0; i < CHANNELS; i++) /* what is inside is received by somebody before he sees the end */
		while (load_relaxed(&channels[i]->count) > 0)
			hive_yield();
	for (int i = 0; i < CHANNELS; i++)
		CHECK_OK(hive_channel_close(channels[i]));
	crew_end(&crew);
	check_books();
	close_all();
}
