/* SPDX-License-Identifier: MIT */
/* The oneshot: one value, or the news that none will come; and its memory goes with the second side. */
#include "crew.h"

#include "sync/bell.h"

static struct hive_oneshot *oneshot;
static ATOMIC(uint32_t) ended;
static int64_t got;

static void create(void)
{
	CHECK_OK(hive_oneshot_create(sizeof(uint64_t), &oneshot));
	store_relaxed(&ended, 0);
	got = -1;
}

static int send(uint64_t value)
{
	return hive_oneshot_send(oneshot, &value, sizeof value);
}

static int64_t recv(int64_t deadline_ns)
{
	uint64_t value = 0;
	int r = hive_oneshot_recv(oneshot, &value, sizeof value, deadline_ns);

	CHECK(r == 0 || value == 0);
	return r < 0 ? r : (int64_t)value;
}

static struct bell *bell(void)
{
	return (struct bell *)(void *)oneshot;
}

static void until_waits(void)
{
	while (!(load_acquire(&bell()->word) & WORD_WAITERS))
		hive_yield();
}

TEST(a_value_is_received_once)
{
	create();
	CHECK_EQ(recv(HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_EQ(recv(hive_deadline(NULL, HIVE_US(100))), -ETIMEDOUT);
	CHECK_OK(send(5));
	CHECK_ERR(send(6), -EALREADY);
	CHECK_ERR(hive_oneshot_drop(oneshot), -EALREADY);
	CHECK_EQ(recv(HIVE_FOREVER), 5);
	CHECK_EQ(recv(HIVE_FOREVER), -EPIPE);
	CHECK_OK(hive_oneshot_close(oneshot));
}

TEST(who_drops_it_says_so)
{
	create();
	CHECK_OK(hive_oneshot_drop(oneshot));
	CHECK_EQ(recv(HIVE_FOREVER), -EPIPE);
	CHECK_OK(hive_oneshot_close(oneshot));
	CHECK_OK(hive_oneshot_drop(NULL));
	CHECK_OK(hive_oneshot_close(NULL));
}

/* Whoever is second frees it: the leak checker knows whether it was. */
TEST(a_receiver_may_go_first)
{
	create();
	CHECK_OK(hive_oneshot_close(oneshot));
	CHECK_ERR(hive_oneshot_close(oneshot), -EALREADY);
	CHECK_ERR(send(1), -EPIPE);
	create();
	CHECK_OK(hive_oneshot_close(oneshot));
	CHECK_OK(hive_oneshot_drop(oneshot));
	create();
	CHECK_OK(send(1)); /* and nobody asks for it */
	CHECK_OK(hive_oneshot_close(oneshot));
}

TEST(mistakes_are_told)
{
	uint64_t other[16] = { 0 };

	CHECK_ERR(hive_oneshot_create(8, NULL), -EINVAL);
	CHECK_ERR(hive_oneshot_create(0, &oneshot), -EINVAL);
	CHECK_ERR(hive_oneshot_create(SIZE_MAX, &oneshot), -EINVAL);
	CHECK_ERR(hive_oneshot_create(SIZE_MAX / 2, &oneshot), -ENOMEM);
	create();
	CHECK_ERR(hive_oneshot_send(NULL, other, 8), -EINVAL);
	CHECK_ERR(hive_oneshot_send(oneshot, NULL, 8), -EINVAL);
	CHECK_ERR(hive_oneshot_send(oneshot, other, 4), -EMSGSIZE);
	CHECK_ERR(hive_oneshot_recv(NULL, other, 8, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_oneshot_recv(oneshot, NULL, 8, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_oneshot_recv(oneshot, other, 4, HIVE_NOWAIT), -EMSGSIZE);
	CHECK_ERR(hive_oneshot_drop((struct hive_oneshot *)(void *)other), -EINVAL);
	CHECK_ERR(hive_oneshot_close((struct hive_oneshot *)(void *)other), -EINVAL);
	CHECK_OK(send(1)); /* none of these was the sender's end */
	CHECK_OK(hive_oneshot_close(oneshot));
}

static void receiver(void *arg)
{
	(void)arg;
	got = recv(HIVE_FOREVER);
	CHECK_OK(hive_oneshot_close(oneshot));
}

CREW_TEST(who_waits_is_told)
{
	struct crew crew;

	for (int drops = 0; drops <= 1; drops++) {
		create();
		crew_begin(&crew, crew_kind);
		crew_add(&crew, receiver, NULL);
		until_waits();
		CHECK_ERR(hive_oneshot_close(oneshot), -EBUSY);
		CHECK_OK(drops ? hive_oneshot_drop(oneshot) : send(3));
		crew_end(&crew);
		CHECK_EQ(got, drops ? -EPIPE : 3);
	}
}

static struct hive_channel *questions;
static ATOMIC(uint64_t) answered;

static void asker(void *arg)
{
	(void)arg;
	for (int n = 500 / test_slowness() + 10; n > 0; n--) {
		struct hive_oneshot *mine;
		uintptr_t value = 0;
		int r;

		CHECK_OK(hive_oneshot_create(sizeof value, &mine));
		CHECK_OK(hive_channel_send(questions, &mine, sizeof mine, HIVE_FOREVER));
		r = hive_oneshot_recv(mine, &value, sizeof value,
		                      n % 3 ? HIVE_FOREVER : hive_deadline(NULL, HIVE_US(5)));
		CHECK(r == -EPIPE || r == -ETIMEDOUT || (r == 0 && value == (uintptr_t)mine));
		CHECK_OK(hive_oneshot_close(mine)); /* and does not care what becomes of it */
		add_seq(&answered, (uint64_t)(r == 0));
	}
}

static void answerer(void *arg)
{
	struct hive_oneshot *theirs;

	(void)arg;
	for (int n = 0; hive_channel_recv(questions, &theirs, sizeof theirs, HIVE_FOREVER) == 0; n++) {
		uintptr_t value = (uintptr_t)theirs;
		int r = n % 5 ? hive_oneshot_send(theirs, &value, sizeof value) : hive_oneshot_drop(theirs);

		CHECK(r == 0 || r == -EPIPE);
	}
}

/* Memory that is freed by whoever is second, with deadlines that pass meanwhile: the sanitizers watch. */
CREW_TEST(both_sides_end_at_the_same_time)
{
	struct crew askers, answerers;

	store_relaxed(&answered, 0);
	CHECK_OK(hive_channel_create(sizeof(struct hive_oneshot *), 1, &questions));
	crew_begin(&askers, crew_kind);
	crew_begin(&answerers, crew_kind);
	for (int i = 0; i < 3; i++) {
		crew_add(&askers, asker, NULL);
		crew_add(&answerers, answerer, NULL);
	}
	crew_end(&askers);
	CHECK_OK(hive_channel_close(questions));
	crew_end(&answerers);
	CHECK(load_relaxed(&answered) > 0);
	CHECK_OK(hive_channel_destroy(questions));
}

TEST(a_oneshot_is_a_case_of_select)
{
	uint64_t value = 0;
	size_t index = 9;
	struct hive_select cases[2];

	create();
	cases[0] = (struct hive_select){ .deadline_ns = hive_deadline(NULL, HIVE_MS(1)) };
	cases[1] = (struct hive_select){ .oneshot = oneshot, .recv = &value, .bytes = sizeof value };
	CHECK_OK(hive_select(cases, 2, HIVE_FOREVER, &index));
	CHECK_EQ(index, 0);
	CHECK_EQ(load_relaxed(&bell()->word), 0);
	cases[0].deadline_ns = 0;
	CHECK_OK(send(8));
	CHECK_OK(hive_select(cases, 2, HIVE_FOREVER, &index));
	CHECK_EQ(index, 1);
	CHECK_EQ(value, 8);
	index = 9;
	CHECK_ERR(hive_select(cases, 2, HIVE_FOREVER, &index), -EPIPE);
	CHECK_EQ(index, 1);
	cases[1].bytes = 1;
	CHECK_ERR(hive_select(cases, 2, HIVE_FOREVER, &index), -EMSGSIZE);
	CHECK_OK(hive_oneshot_close(oneshot));
}
