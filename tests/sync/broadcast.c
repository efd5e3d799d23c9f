/* SPDX-License-Identifier: MIT */
/* The broadcast: every value to everybody who was there; who is slow is told what he missed. */
#include "crew.h"

#include "sync/bell.h"

enum { CAPACITY = 4, LAST = 3000 };

static struct hive_broadcast *broadcast;
static ATOMIC(uint32_t) listening;

static void create(void)
{
	CHECK_OK(hive_broadcast_create(sizeof(uint64_t), CAPACITY, &broadcast));
	store_relaxed(&listening, 0);
}

static void send(uint64_t value)
{
	CHECK_OK(hive_broadcast_send(broadcast, &value, sizeof value));
}

static int64_t recv(struct hive_subscription *subscription, uint64_t *ret_missed, int64_t deadline_ns)
{
	uint64_t value = 0;
	int r = hive_broadcast_recv(subscription, &value, sizeof value, ret_missed, deadline_ns);

	CHECK(r == 0 || value == 0);
	return r < 0 ? r : (int64_t)value;
}

TEST(each_gets_what_was_sent_after_it_came)
{
	struct hive_subscription a, b;
	uint64_t missed = 9;

	create();
	send(1); /* to nobody */
	CHECK_OK(hive_broadcast_subscribe(broadcast, &a));
	CHECK_EQ(recv(&a, &missed, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_EQ(recv(&a, &missed, hive_deadline(NULL, HIVE_US(100))), -ETIMEDOUT);
	CHECK_EQ(missed, 9);
	send(2);
	CHECK_OK(hive_broadcast_subscribe(broadcast, &b));
	send(3);
	CHECK_EQ(recv(&a, &missed, HIVE_FOREVER), 2);
	CHECK_EQ(missed, 0);
	CHECK_EQ(recv(&a, NULL, HIVE_FOREVER), 3);
	CHECK_EQ(recv(&b, NULL, HIVE_FOREVER), 3);
	CHECK_EQ(recv(&b, NULL, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(hive_broadcast_destroy(broadcast), -EBUSY);
	CHECK_OK(hive_broadcast_unsubscribe(&a));
	CHECK_ERR(hive_broadcast_unsubscribe(&a), -EINVAL);
	CHECK_OK(hive_broadcast_unsubscribe(&b));
	CHECK_OK(hive_broadcast_destroy(broadcast));
}

/* The oldest that is left, and how many are not; around the ring, and at its edges. */
TEST(who_is_slow_is_told_what_he_missed)
{
	struct hive_subscription slow;
	uint64_t missed = 9, value = 0;

	create();
	CHECK_OK(hive_broadcast_subscribe(broadcast, &slow));
	for (uint64_t sent = 1; sent <= 3 * CAPACITY; sent++) {
		for (uint64_t i = 0; i < sent; i++)
			send(++value);
		missed = 9;
		CHECK_EQ(recv(&slow, &missed, HIVE_NOWAIT), sent > CAPACITY ? value - CAPACITY + 1 : value - sent + 1);
		CHECK_EQ(missed, sent > CAPACITY ? sent - CAPACITY : 0);
		for (uint64_t left = (sent > CAPACITY ? CAPACITY : sent) - 1; left > 0; left--) {
			CHECK_EQ(recv(&slow, &missed, HIVE_NOWAIT), value - left + 1);
			CHECK_EQ(missed, 0);
		}
		CHECK_EQ(recv(&slow, &missed, HIVE_NOWAIT), -ETIMEDOUT);
	}
	CHECK_OK(hive_broadcast_unsubscribe(&slow));
	CHECK_OK(hive_broadcast_destroy(broadcast));
}

TEST(what_was_sent_before_the_end_is_received)
{
	struct hive_subscription a;
	uint64_t value = 0;

	create();
	CHECK_OK(hive_broadcast_subscribe(broadcast, &a));
	send(1);
	CHECK_OK(hive_broadcast_close(broadcast));
	CHECK_ERR(hive_broadcast_close(broadcast), -EALREADY);
	CHECK_ERR(hive_broadcast_send(broadcast, &value, sizeof value), -EPIPE);
	CHECK_EQ(recv(&a, NULL, HIVE_FOREVER), 1);
	CHECK_EQ(recv(&a, NULL, HIVE_FOREVER), -EPIPE);
	CHECK_OK(hive_broadcast_unsubscribe(&a));
	CHECK_OK(hive_broadcast_destroy(broadcast));
}

TEST(mistakes_are_told)
{
	struct hive_subscription a, none = { 0 };
	uint64_t value = 0, other[16] = { 0 };

	CHECK_ERR(hive_broadcast_create(8, 1, NULL), -EINVAL);
	CHECK_ERR(hive_broadcast_create(0, 1, &broadcast), -EINVAL);
	CHECK_ERR(hive_broadcast_create(8, 0, &broadcast), -EINVAL);
	CHECK_ERR(hive_broadcast_create(8, SIZE_MAX / 8, &broadcast), -EINVAL);
	CHECK_ERR(hive_broadcast_create(SIZE_MAX / 2, 1, &broadcast), -ENOMEM);
	create();
	CHECK_ERR(hive_broadcast_send(NULL, &value, 8), -EINVAL);
	CHECK_ERR(hive_broadcast_send(broadcast, NULL, 8), -EINVAL);
	CHECK_ERR(hive_broadcast_send(broadcast, &value, 4), -EMSGSIZE);
	CHECK_ERR(hive_broadcast_subscribe(broadcast, NULL), -EINVAL);
	CHECK_ERR(hive_broadcast_subscribe((struct hive_broadcast *)(void *)other, &a), -EINVAL);
	CHECK_ERR(hive_broadcast_recv(&none, &value, 8, NULL, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_broadcast_unsubscribe(&none), -EINVAL);
	CHECK_OK(hive_broadcast_subscribe(broadcast, &a));
	CHECK_ERR(hive_broadcast_recv(&a, NULL, 8, NULL, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_broadcast_recv(&a, &value, 4, NULL, HIVE_NOWAIT), -EMSGSIZE);
	CHECK_OK(hive_broadcast_unsubscribe(&a));
	CHECK_ERR(hive_broadcast_close(NULL), -EINVAL);
	CHECK_ERR(hive_broadcast_destroy((struct hive_broadcast *)(void *)other), -EINVAL);
	CHECK_OK(hive_broadcast_destroy(NULL));
	CHECK_OK(hive_broadcast_destroy(broadcast));
}

static void listen(void *arg)
{
	struct hive_subscription mine;
	uint64_t heard = 0, lost = 0, missed;
	int64_t before = 0, value;

	(void)arg;
	CHECK_OK(hive_broadcast_subscribe(broadcast, &mine));
	add_seq(&listening, 1u);
	while ((value = recv(&mine, &missed, HIVE_FOREVER)) >= 0) {
		CHECK_EQ(value, before + 1 + (int64_t)missed); /* in order, and what is not there is counted */
		before = value;
		heard++;
		lost += missed;
	}
	CHECK_EQ(value, -EPIPE);
	CHECK_EQ(heard + lost, LAST);
	CHECK_OK(hive_broadcast_unsubscribe(&mine));
}

CREW_TEST(each_counts_to_the_last)
{
	struct crew crew;

	create();
	crew_begin(&crew, crew_kind);
	for (int i = 0; i < 5; i++)
		crew_add(&crew, listen, NULL);
	until(&listening, 5);
	for (uint64_t value = 1; value <= LAST; value++) {
		send(value);
		if (value % 8 == 0)
			hive_yield();
	}
	CHECK_OK(hive_broadcast_close(broadcast));
	crew_end(&crew);
	CHECK_OK(hive_broadcast_destroy(broadcast));
}

TEST(a_subscription_is_a_case_of_select)
{
	struct hive_subscription a;
	uint64_t value = 0, missed = 9;
	size_t index = 9;
	struct hive_select cases[2];

	create();
	CHECK_OK(hive_broadcast_subscribe(broadcast, &a));
	cases[0] = (struct hive_select){ .deadline_ns = hive_deadline(NULL, HIVE_MS(1)) };
	cases[1] = (struct hive_select){ .subscription = &a, .recv = &value, .bytes = sizeof value, .missed = &missed };
	CHECK_OK(hive_select(cases, 2, HIVE_FOREVER, &index));
	CHECK_EQ(index, 0);
	cases[0].deadline_ns = 0;
	for (uint64_t i = 1; i <= CAPACITY + 2; i++)
		send(i);
	CHECK_OK(hive_select(cases, 2, HIVE_FOREVER, &index));
	CHECK(index == 1 && value == 3 && missed == 2);
	cases[1].missed = NULL;
	CHECK_OK(hive_select(cases, 2, HIVE_FOREVER, &index));
	CHECK_EQ(value, 4);
	CHECK_OK(hive_broadcast_close(broadcast));
	CHECK_OK(hive_broadcast_unsubscribe(&a));
	CHECK_OK(hive_broadcast_destroy(broadcast));
}
