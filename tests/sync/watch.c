/* SPDX-License-Identifier: MIT */
/* The watch: the latest value; who has seen it waits for another one. */
#include "crew.h"

#include "sync/bell.h"

enum { LAST = 3000 };

static struct hive_watch *watch;
static ATOMIC(uint32_t) ended;

static void create(uint64_t first)
{
	CHECK_OK(hive_watch_create(sizeof first, &first, &watch));
	store_relaxed(&ended, 0);
}

static void send(uint64_t value)
{
	CHECK_OK(hive_watch_send(watch, &value, sizeof value));
}

static int64_t wait(uint64_t *version, int64_t deadline_ns)
{
	uint64_t value = 0, before = *version;
	int r = hive_watch_wait(watch, version, &value, sizeof value, deadline_ns);

	CHECK(r == 0 ? *version > before : value == 0 && *version == before);
	return r < 0 ? r : (int64_t)value;
}

static void until_waits(void)
{
	while (!(load_acquire(&((struct bell *)(void *)watch)->word) & WORD_WAITERS))
		hive_yield();
}

TEST(the_latest_is_told_and_what_was_before_is_not)
{
	uint64_t version = 0, value;

	create(7);
	CHECK_EQ(wait(&version, HIVE_FOREVER), 7);
	CHECK_EQ(version, 1);
	CHECK_EQ(wait(&version, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_EQ(wait(&version, hive_deadline(NULL, HIVE_US(100))), -ETIMEDOUT);
	send(8);
	send(9);
	CHECK_EQ(wait(&version, HIVE_FOREVER), 9);
	CHECK_EQ(version, 3);
	CHECK_OK(hive_watch_read(watch, &value, sizeof value, &version));
	CHECK(value == 9 && version == 3);
	CHECK_OK(hive_watch_read(watch, &value, sizeof value, NULL));
	CHECK_OK(hive_watch_destroy(watch));
}

TEST(the_last_value_is_told_before_the_end)
{
	uint64_t version = 1, value = 0;

	create(1);
	send(2);
	CHECK_OK(hive_watch_close(watch));
	CHECK_ERR(hive_watch_close(watch), -EALREADY);
	CHECK_ERR(hive_watch_send(watch, &value, sizeof value), -EPIPE);
	CHECK_EQ(wait(&version, HIVE_FOREVER), 2);
	CHECK_EQ(wait(&version, HIVE_FOREVER), -EPIPE);
	CHECK_OK(hive_watch_read(watch, &value, sizeof value, &version));
	CHECK_EQ(value, 2);
	CHECK_OK(hive_watch_destroy(watch));
}

TEST(mistakes_are_told)
{
	uint64_t value = 0, version = 0, other[16] = { 0 };

	CHECK_ERR(hive_watch_create(8, &value, NULL), -EINVAL);
	CHECK_ERR(hive_watch_create(8, NULL, &watch), -EINVAL);
	CHECK_ERR(hive_watch_create(0, &value, &watch), -EINVAL);
	CHECK_ERR(hive_watch_create(SIZE_MAX, &value, &watch), -EINVAL);
	CHECK_ERR(hive_watch_create(SIZE_MAX / 2, &value, &watch), -ENOMEM);
	create(1);
	CHECK_ERR(hive_watch_send(NULL, &value, 8), -EINVAL);
	CHECK_ERR(hive_watch_send(watch, NULL, 8), -EINVAL);
	CHECK_ERR(hive_watch_send(watch, &value, 4), -EMSGSIZE);
	CHECK_ERR(hive_watch_read(watch, NULL, 8, NULL), -EINVAL);
	CHECK_ERR(hive_watch_read(watch, &value, 4, NULL), -EMSGSIZE);
	CHECK_ERR(hive_watch_wait(watch, NULL, &value, 8, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_watch_wait(watch, &version, &value, 4, HIVE_NOWAIT), -EMSGSIZE);
	CHECK_ERR(hive_watch_close(NULL), -EINVAL);
	CHECK_ERR(hive_watch_destroy((struct hive_watch *)(void *)other), -EINVAL);
	CHECK_OK(hive_watch_destroy(NULL));
	CHECK_OK(hive_watch_destroy(watch));
}

static void follow(void *arg)
{
	uint64_t version = 0;
	int64_t value = 0, next;

	(void)arg;
	while ((next = wait(&version, HIVE_FOREVER)) >= 0) {
		CHECK(next > value); /* never an old one, never the same twice */
		value = next;
	}
	CHECK_EQ(next, -EPIPE);
	CHECK_EQ(value, LAST);
	add_seq(&ended, 1u);
}

CREW_TEST(everybody_follows_to_the_last_value)
{
	struct crew crew;

	create(1);
	crew_begin(&crew, crew_kind);
	for (int i = 0; i < 5; i++)
		crew_add(&crew, follow, NULL);
	until_waits();
	CHECK_ERR(hive_watch_destroy(watch), -EBUSY);
	for (uint64_t value = 2; value <= LAST; value++) {
		send(value);
		if (value % 16 == 0)
			hive_yield();
	}
	CHECK_OK(hive_watch_close(watch));
	crew_end(&crew);
	CHECK_EQ(load_relaxed(&ended), 5);
	CHECK_OK(hive_watch_destroy(watch));
}

TEST(a_watch_is_a_case_of_select)
{
	uint64_t value = 0, version = 1;
	size_t index = 9;
	struct hive_select cases[2];

	create(1);
	cases[0] = (struct hive_select){ .deadline_ns = hive_deadline(NULL, HIVE_MS(1)) };
	cases[1] = (struct hive_select){ .watch = watch, .recv = &value, .bytes = sizeof value, .version = &version };
	CHECK_OK(hive_select(cases, 2, HIVE_FOREVER, &index));
	CHECK_EQ(index, 0);
	cases[0].deadline_ns = 0;
	send(5);
	CHECK_OK(hive_select(cases, 2, HIVE_FOREVER, &index));
	CHECK(index == 1 && value == 5 && version == 2);
	CHECK_ERR(hive_select(cases, 2, HIVE_NOWAIT, &index), -ETIMEDOUT);
	cases[1].version = NULL;
	CHECK_ERR(hive_select(cases, 2, HIVE_NOWAIT, &index), -EINVAL);
	CHECK_OK(hive_watch_destroy(watch));
}
