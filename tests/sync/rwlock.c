/* SPDX-License-Identifier: MIT */
/* The lock for readers and writers. */
#include "crew.h"

static struct hive_rwlock lock;

TEST(many_read_or_one_writes)
{
	hive_rwlock_init(&lock);
	CHECK_OK(hive_rwlock_lock_read(&lock, HIVE_NOWAIT));
	CHECK_OK(hive_rwlock_lock_read(&lock, HIVE_NOWAIT));
	CHECK_ERR(hive_rwlock_lock_write(&lock, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_OK(hive_rwlock_unlock_read(&lock));
	CHECK_ERR(hive_rwlock_lock_write(&lock, hive_deadline(NULL, HIVE_US(100))), -ETIMEDOUT);
	CHECK_OK(hive_rwlock_unlock_read(&lock));
	CHECK_OK(hive_rwlock_lock_write(&lock, HIVE_NOWAIT));
	CHECK_ERR(hive_rwlock_lock_read(&lock, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(hive_rwlock_lock_write(&lock, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_OK(hive_rwlock_unlock_write(&lock));
	CHECK_OK(hive_rwlock_lock_read(&lock, HIVE_NOWAIT));
	CHECK_OK(hive_rwlock_unlock_read(&lock));
}

TEST(mistakes_are_told)
{
	struct hive_rwlock never = { 0 };

	hive_rwlock_init(&lock);
	hive_rwlock_init(NULL);
	CHECK_ERR(hive_rwlock_unlock_read(&lock), -EPERM);
	CHECK_ERR(hive_rwlock_unlock_write(&lock), -EPERM);
	CHECK_ERR(hive_rwlock_downgrade(&lock), -EPERM);
	CHECK_OK(hive_rwlock_lock_read(&lock, HIVE_NOWAIT));
	CHECK_ERR(hive_rwlock_unlock_write(&lock), -EPERM);
	CHECK_ERR(hive_rwlock_downgrade(&lock), -EPERM);
	CHECK_OK(hive_rwlock_unlock_read(&lock));
	CHECK_OK(hive_rwlock_lock_write(&lock, HIVE_NOWAIT));
	CHECK_ERR(hive_rwlock_unlock_read(&lock), -EPERM);
	CHECK_OK(hive_rwlock_unlock_write(&lock));
	CHECK_ERR(hive_rwlock_lock_read(NULL, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_rwlock_lock_write(NULL, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_rwlock_lock_read(&never, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_rwlock_lock_write(&never, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_rwlock_unlock_read(&never), -EINVAL);
	CHECK_ERR(hive_rwlock_unlock_write(&never), -EINVAL);
	CHECK_ERR(hive_rwlock_downgrade(&never), -EINVAL);
}

enum { NOT_YET = 9 };

static ATOMIC(uint32_t) turn, reader_at, writer_at;

static void begin(void)
{
	hive_rwlock_init(&lock);
	store_relaxed(&turn, 0);
	store_relaxed(&reader_at, NOT_YET);
	store_relaxed(&writer_at, NOT_YET);
}

static void write_once(void *arg)
{
	(void)arg;
	CHECK_OK(hive_rwlock_lock_write(&lock, HIVE_FOREVER));
	store_release(&writer_at, add_seq(&turn, 1u));
	CHECK_OK(hive_rwlock_unlock_write(&lock));
}

static void read_once(void *arg)
{
	(void)arg;
	CHECK_OK(hive_rwlock_lock_read(&lock, HIVE_FOREVER));
	store_release(&reader_at, add_seq(&turn, 1u));
	CHECK_OK(hive_rwlock_unlock_read(&lock));
}

/* A stream of readers does not keep a writer out: who comes after it waits behind it. */
CREW_TEST(a_writer_is_not_starved)
{
	struct crew crew;

	begin();
	CHECK_OK(hive_rwlock_lock_read(&lock, HIVE_NOWAIT));
	crew_begin(&crew, crew_kind);
	crew_add(&crew, write_once, NULL);
	UNTIL_WAITING(&lock.room, 1);
	CHECK_ERR(hive_rwlock_lock_read(&lock, HIVE_NOWAIT), -ETIMEDOUT);
	crew_add(&crew, read_once, NULL);
	UNTIL_WAITING(&lock.room, 2);
	CHECK_OK(hive_rwlock_unlock_read(&lock));
	crew_end(&crew);
	CHECK_EQ(load_relaxed(&writer_at), 0);
	CHECK_EQ(load_relaxed(&reader_at), 1);
}

/* Who wrote goes on reading, with those who waited to read, and before the next who writes. */
CREW_TEST(who_writes_may_go_on_reading)
{
	struct crew crew;

	begin();
	CHECK_OK(hive_rwlock_lock_write(&lock, HIVE_NOWAIT));
	crew_begin(&crew, crew_kind);
	crew_add(&crew, read_once, NULL);
	UNTIL_WAITING(&lock.room, 1);
	crew_add(&crew, write_once, NULL);
	UNTIL_WAITING(&lock.room, 2);
	CHECK_OK(hive_rwlock_downgrade(&lock));
	until(&reader_at, 0);
	CHECK_ERR(hive_rwlock_lock_write(&lock, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_OK(hive_rwlock_unlock_read(&lock));
	crew_end(&crew);
	CHECK_EQ(load_relaxed(&writer_at), 1);
}

enum { PAIRS = 6 };

static struct {
	uint64_t a, b;
} pair;

static int rounds_each(void)
{
	return 2000 / (test_slowness() * test_slowness());
}

static void change_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < rounds_each(); i++) {
		CHECK_OK(hive_rwlock_lock_write(&lock, HIVE_FOREVER));
		pair.a++;
		pair.b += 2;
		CHECK_OK(hive_rwlock_unlock_write(&lock));
	}
}

static void look_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < rounds_each(); i++) {
		CHECK_OK(hive_rwlock_lock_read(&lock, HIVE_FOREVER));
		CHECK_EQ(pair.b, 2 * pair.a);
		CHECK_OK(hive_rwlock_unlock_read(&lock));
	}
}

CREW_TEST(nobody_reads_what_is_half_written)
{
	struct crew crew;

	hive_rwlock_init(&lock);
	pair.a = pair.b = 0;
	crew_begin(&crew, crew_kind);
	for (int i = 0; i < PAIRS; i++)
		crew_add(&crew, i % 3 == 0 ? change_often : look_often, NULL);
	crew_end(&crew);
	CHECK_EQ(pair.a, (uint64_t)(PAIRS / 3 * rounds_each()));
}
