/* SPDX-License-Identifier: MIT */
/* The lock for readers and writers is a semaphore: who reads takes one of very many units, who writes all of them. Large requests are not
 * overtaken by small ones there, so neither of the two starves.                                                            */
#include "inside.h"
#include "words.h"

#define ALL UINT32_MAX

static bool is_one(const struct hive_rwlock *lock)
{
	return lock && lock->room.magic == SEMAPHORE_MAGIC;
}

static uint64_t left(struct hive_rwlock *lock)
{
	return semaphore_count(load_relaxed(&lock->room.state));
}

void hive_rwlock_init(struct hive_rwlock *lock)
{
	if (lock)
		hive_semaphore_init(&lock->room, ALL);
}

int hive_rwlock_lock_read(struct hive_rwlock *lock, int64_t deadline_ns)
{
	return lock ? hive_semaphore_acquire(&lock->room, 1, deadline_ns) : -EINVAL;
}

int hive_rwlock_lock_write(struct hive_rwlock *lock, int64_t deadline_ns)
{
	return lock ? hive_semaphore_acquire(&lock->room, ALL, deadline_ns) : -EINVAL;
}

/* Whoever holds it keeps `left` on the side on which it is looked for. */
int hive_rwlock_unlock_read(struct hive_rwlock *lock)
{
	if (!is_one(lock))
		return -EINVAL;
	return left(lock) == 0 || left(lock) == ALL ? -EPERM : hive_semaphore_release(&lock->room, 1);
}

int hive_rwlock_unlock_write(struct hive_rwlock *lock)
{
	if (!is_one(lock))
		return -EINVAL;
	return left(lock) != 0 ? -EPERM : hive_semaphore_release(&lock->room, ALL);
}

int hive_rwlock_downgrade(struct hive_rwlock *lock)
{
	if (!is_one(lock))
		return -EINVAL;
	return left(lock) != 0 ? -EPERM : hive_semaphore_release(&lock->room, ALL - 1);
}
