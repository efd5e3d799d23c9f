/* SPDX-License-Identifier: MIT */
#pragma once
/* struct lock for the model checker: its own mutex, so that a deadlock shows. lock.h itself is modelled in lock.cpp. */
struct lock {
	rl::mutex mutex;
};

static inline void lock_init(struct lock *l)
{
	(void)l; /* constructed */
}

static inline bool lock_try(struct lock *l)
{
	return l->mutex.try_lock($);
}

static inline void lock_acquire(struct lock *l)
{
	l->mutex.lock($);
}

static inline void lock_release(struct lock *l)
{
	l->mutex.unlock($);
}
