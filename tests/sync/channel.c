/* SPDX-License-Identifier: MIT */
/* The channel: what went in comes out once, in order; closing tells everybody. */
#include "crew.h"
#include "sync/channel.h"

static struct hive_channel *channel;

static int send(uint64_t value, int64_t deadline_ns)
{
	return hive_channel_send(channel, &value, sizeof value, deadline_ns);
}

/* The value, or an error. */
static int64_t recv(int64_t deadline_ns)
{
	uint64_t value = 0;
	int r = hive_channel_recv(channel, &value, sizeof value, deadline_ns);

	CHECK(r == 0 || value == 0);
	return r < 0 ? r : (int64_t)value;
}

static void create(size_t capacity)
{
	CHECK_OK(hive_channel_create(sizeof(uint64_t), capacity, &channel));
}

static void until_waits(uint64_t bit)
{
	while (!(load_acquire(&channel->word) & bit))
		hive_yield();
}

TEST(first_in_first_out)
{
	create(3);
	for (int round = 0; round < 5; round++) { /* around the ring */
		CHECK_OK(send(1, HIVE_NOWAIT));
		CHECK_OK(send(2, HIVE_NOWAIT));
		CHECK_EQ(recv(HIVE_NOWAIT), 1);
		CHECK_OK(send(3, HIVE_NOWAIT));
		CHECK_OK(send(4, HIVE_NOWAIT));
		CHECK_ERR(send(5, HIVE_NOWAIT), -ETIMEDOUT);
		CHECK_ERR(send(5, 1), -ETIMEDOUT);
		for (int i = 2; i <= 4; i++)
			CHECK_EQ(recv(HIVE_NOWAIT), i);
		CHECK_EQ(recv(HIVE_NOWAIT), -ETIMEDOUT);
		CHECK_EQ(recv(1), -ETIMEDOUT);
	}
	CHECK_OK(hive_channel_destroy(channel));
}

TEST(deadline_passes)
{
	create(1);
	CHECK_EQ(recv(hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT);
	CHECK_OK(send(1, HIVE_NOWAIT));
	CHECK_ERR(send(2, hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT);
	CHECK_EQ(recv(HIVE_NOWAIT), 1);
	CHECK_EQ(recv(HIVE_NOWAIT), -ETIMEDOUT); /* what was not sent is not there */
	CHECK_OK(hive_channel_destroy(channel));
}

TEST(closed_gives_what_is_inside_and_takes_nothing)
{
	create(4);
	CHECK_OK(send(1, HIVE_NOWAIT));
	CHECK_OK(send(2, HIVE_NOWAIT));
	CHECK_OK(hive_channel_close(channel));
	CHECK_ERR(hive_channel_close(channel), -EALREADY);
	CHECK_ERR(send(3, HIVE_FOREVER), -EPIPE);
	CHECK_EQ(recv(HIVE_FOREVER), 1);
	CHECK_EQ(recv(HIVE_NOWAIT), 2);
	CHECK_EQ(recv(HIVE_FOREVER), -EPIPE);
	CHECK_EQ(recv(HIVE_NOWAIT), -EPIPE);
	CHECK_OK(hive_channel_destroy(channel));
}

TEST(items_of_any_size)
{
	static const size_t sizes[] = { 1, 3, 4, 7, 8, 9, 16, 64, 100, 4096 };
	unsigned char in[4096], out[4096];

	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		CHECK_OK(hive_channel_create(sizes[s], 2, &channel));
		for (unsigned round = 0; round < 5; round++) {
			for (size_t i = 0; i < sizes[s]; i++)
				in[i] = (unsigned char)(i * 7 + round);
			memset(out, 0xee, sizeof out);
			CHECK_OK(hive_channel_send(channel, in, sizes[s], HIVE_NOWAIT));
			CHECK_OK(hive_channel_recv(channel, out, sizes[s], HIVE_NOWAIT));
			CHECK(memcmp(in, out, sizes[s]) == 0);
			CHECK(sizes[s] == sizeof out || out[sizes[s]] == 0xee);
		}
		CHECK_OK(hive_channel_destroy(channel));
	}
}

TEST(wrong_use_is_told)
{
	uint64_t value = 0;
	alignas(64) uint64_t other[64] = { 0 }; /* memory that is no channel */

	CHECK_ERR(hive_channel_create(8, 1, NULL), -EINVAL);
	CHECK_ERR(hive_channel_create(0, 1, &channel), -EINVAL);
	CHECK_ERR(hive_channel_create(8, SIZE_MAX / 8, &channel), -EINVAL);
	CHECK_ERR(hive_channel_create(SIZE_MAX, 2, &channel), -EINVAL);
	CHECK_ERR(hive_channel_create(SIZE_MAX / 2, 1, &channel), -ENOMEM);
	create(1);
	CHECK_ERR(hive_channel_send(NULL, &value, 8, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_channel_send(channel, NULL, 8, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_channel_send(channel, &value, 4, HIVE_NOWAIT), -EMSGSIZE);
	CHECK_ERR(hive_channel_recv(NULL, &value, 8, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_channel_recv(channel, NULL, 8, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_channel_recv(channel, &value, 16, HIVE_NOWAIT), -EMSGSIZE);
	CHECK_ERR(hive_channel_close(NULL), -EINVAL);
	CHECK_ERR(hive_channel_close((struct hive_channel *)(void *)other), -EINVAL);
	CHECK_ERR(hive_channel_destroy((struct hive_channel *)(void *)other), -EINVAL);
	CHECK_OK(hive_channel_destroy(NULL));
	CHECK_OK(hive_channel_destroy(channel));
}

static ATOMIC(uint32_t) ended;

static void receiver_until_closed(void *arg)
{
	uint64_t *sum = arg;
	int64_t value;

	while ((value = recv(HIVE_FOREVER)) >= 0)
		*sum += (uint64_t)value;
	CHECK_EQ(value, -EPIPE);
	add_seq(&ended, 1u);
}

static void sender_until_closed(void *arg)
{
	uint64_t *sum = arg;
	int r;

	while ((r = send(1, HIVE_FOREVER)) == 0)
		*sum += 1;
	CHECK_EQ(r, -EPIPE);
	add_seq(&ended, 1u);
}

/* Whether they wait already or are about to: all of them are told. */
CREW_TEST(close_wakes_all_receivers)
{
	for (int round = 0; round < 20; round++) {
		uint64_t sums[4] = { 0 };
		struct crew crew;

		create((size_t)round % 3);
		store_relaxed(&ended, 0);
		crew_begin(&crew, crew_kind);
		for (int i = 0; i < 4; i++)
			crew_add(&crew, receiver_until_closed, &sums[i]);
		CHECK_OK(send(5, HIVE_FOREVER));
		CHECK_OK(hive_channel_close(channel));
		crew_end(&crew);
		CHECK_EQ(load_relaxed(&ended), 4);
		CHECK_EQ(sums[0] + sums[1] + sums[2] + sums[3], 5);
		CHECK_OK(hive_channel_destroy(channel));
	}
}

CREW_TEST(close_wakes_all_senders_and_their_items_stay_out)
{
	for (int round = 0; round < 20; round++) {
		uint64_t sums[3] = { 0 }, received = 0;
		struct crew crew;
		int64_t value;

		create((size_t)round % 3);
		store_relaxed(&ended, 0);
		crew_begin(&crew, crew_kind);
		for (int i = 0; i < 3; i++)
			crew_add(&crew, sender_until_closed, &sums[i]);
		for (int i = 0; i < 10; i++)
			received += recv(HIVE_FOREVER) == 1;
		CHECK_OK(hive_channel_close(channel));
		while ((value = recv(HIVE_NOWAIT)) >= 0)
			received += value == 1;
		CHECK_EQ(value, -EPIPE);
		crew_end(&crew);
		CHECK_EQ(sums[0] + sums[1] + sums[2], received);
		CHECK_OK(hive_channel_destroy(channel));
	}
}

/* Capacity 0: the send is over when somebody has taken it. */
static ATOMIC(uint32_t) taking;

static void hands_over(void *arg)
{
	for (uint64_t i = 1; i <= *(uint64_t *)arg; i++) {
		CHECK_OK(send(i, HIVE_FOREVER));
		CHECK(load_acquire(&taking) >= i);
	}
}

CREW_TEST(hand_over_waits_for_a_taker)
{
	uint64_t rounds = 300;
	struct crew crew;

	create(0);
	CHECK_ERR(send(1, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_EQ(recv(HIVE_NOWAIT), -ETIMEDOUT);
	store_relaxed(&taking, 0);
	crew_begin(&crew, crew_kind);
	crew_add(&crew, hands_over, &rounds);
	for (uint64_t i = 1; i <= rounds; i++) {
		store_release(&taking, (uint32_t)i);
		CHECK_EQ(recv(HIVE_FOREVER), (int64_t)i);
	}
	crew_end(&crew);
	CHECK_OK(hive_channel_destroy(channel));
}

static void one_receiver(void *arg)
{
	*(int64_t *)arg = recv(HIVE_FOREVER);
}

static void one_sender(void *arg)
{
	CHECK_OK(send(*(uint64_t *)arg, HIVE_FOREVER));
}

CREW_TEST(busy_while_somebody_waits)
{
	uint64_t out = 8;
	int64_t got = 0;
	struct crew crew;

	create(0);
	crew_begin(&crew, crew_kind);
	crew_add(&crew, one_receiver, &got);
	until_waits(CHANNEL_RECEIVERS);
	CHECK_ERR(hive_channel_destroy(channel), -EBUSY);
	CHECK_OK(send(7, HIVE_NOWAIT));
	crew_add(&crew, one_sender, &out);
	until_waits(CHANNEL_SENDERS);
	CHECK_ERR(hive_channel_destroy(channel), -EBUSY);
	CHECK_EQ(recv(HIVE_NOWAIT), 8);
	crew_end(&crew);
	CHECK_EQ(got, 7);
	CHECK_OK(hive_channel_destroy(channel));
}

/* A sender that waits for room keeps its place behind what is inside. */
CREW_TEST(room_is_given_to_who_waits_for_it)
{
	uint64_t third = 3;
	struct crew crew;

	create(2);
	CHECK_OK(send(1, HIVE_NOWAIT));
	CHECK_OK(send(2, HIVE_NOWAIT));
	crew_begin(&crew, crew_kind);
	crew_add(&crew, one_sender, &third);
	until_waits(CHANNEL_SENDERS);
	CHECK_EQ(recv(HIVE_NOWAIT), 1);
	CHECK_ERR(send(4, HIVE_NOWAIT), -ETIMEDOUT); /* the room was given away */
	CHECK_EQ(recv(HIVE_NOWAIT), 2);
	CHECK_EQ(recv(HIVE_NOWAIT), 3);
	crew_end(&crew);
	CHECK_OK(hive_channel_destroy(channel));
}

/* n senders, m receivers, several capacities: every item once, each sender's items in order at each receiver. */
#define SENDERS 4
#define RECEIVERS 3
static uint64_t items;
static unsigned char seen[SENDERS][20000];

static void numbered_sender(void *arg)
{
	uint64_t me = (uint64_t)(uintptr_t)arg;

	for (uint64_t i = 0; i < items; i++)
		CHECK_OK(send(me << 32 | (i + 1), HIVE_FOREVER));
}

static void checking_receiver(void *arg)
{
	uint64_t last[SENDERS] = { 0 };
	int64_t value;

	(void)arg;
	while ((value = recv(HIVE_FOREVER)) >= 0) {
		uint64_t from = (uint64_t)value >> 32, number = (uint64_t)value & UINT32_MAX;

		CHECK(from < SENDERS && number > last[from] && number <= items);
		last[from] = number;
		CHECK_EQ(seen[from][number - 1]++, 0);
	}
	CHECK_EQ(value, -EPIPE);
}

CREW_TEST(every_item_once_and_each_sender_in_order)
{
	static const size_t capacities[] = { 0, 1, 2, 7, 1024 };

	items = 2000 / (uint64_t)test_slowness();
	for (size_t c = 0; c < sizeof capacities / sizeof *capacities; c++) {
		struct crew senders, receivers;

		memset(seen, 0, sizeof seen);
		create(capacities[c]);
		crew_begin(&senders, crew_kind);
		crew_begin(&receivers, crew_kind);
		for (int i = 0; i < RECEIVERS; i++)
			crew_add(&receivers, checking_receiver, NULL);
		for (uintptr_t i = 0; i < SENDERS; i++)
			crew_add(&senders, numbered_sender, (void *)i);
		crew_end(&senders);
		CHECK_OK(hive_channel_close(channel));
		crew_end(&receivers);
		for (int s = 0; s < SENDERS; s++)
			for (uint64_t i = 0; i < items; i++)
				CHECK_EQ(seen[s][i], 1);
		CHECK_OK(hive_channel_destroy(channel));
	}
}

/* Deadlines on both sides: sent is received, and what failed was not sent. */
static ATOMIC(uint32_t) sent, received;

static void impatient_sender(void *arg)
{
	int rounds = *(int *)arg;

	for (int i = 0; i < rounds; i++) {
		int r = send(1, hive_deadline(NULL, HIVE_US(i % 30)));

		CHECK(r == 0 || r == -ETIMEDOUT);
		if (r == 0)
			add_seq(&sent, 1u);
	}
}

static void impatient_receiver(void *arg)
{
	(void)arg;
	for (int i = 0;; i++) {
		int64_t r = recv(hive_deadline(NULL, HIVE_US(i % 30)));

		if (r == -EPIPE)
			return;
		CHECK(r == 1 || r == -ETIMEDOUT);
		if (r == 1)
			add_seq(&received, 1u);
	}
}

CREW_TEST(deadlines_on_both_sides)
{
	int rounds = 2000 / test_slowness();

	for (size_t capacity = 0; capacity < 3; capacity++) {
		struct crew senders, receivers;

		create(capacity);
		store_relaxed(&sent, 0);
		store_relaxed(&received, 0);
		crew_begin(&senders, crew_kind);
		crew_begin(&receivers, crew_kind);
		for (int i = 0; i < 2; i++) {
			crew_add(&senders, impatient_sender, &rounds);
			crew_add(&receivers, impatient_receiver, NULL);
		}
		crew_end(&senders);
		CHECK_OK(hive_channel_close(channel));
		crew_end(&receivers);
		CHECK_EQ(load_relaxed(&sent), load_relaxed(&received));
		CHECK_OK(hive_channel_destroy(channel));
	}
}
