/* SPDX-License-Identifier: MIT */
#pragma once
/* A small lock: spins for a moment, then sleeps in the kernel, so that a preempted holder costs a wait and not a
 * time slice, and a real-time thread cannot spin against the thread it waits for.
 *
 *   FREE --lock--> HELD --unlock--> FREE
 *   HELD --lock_slowly--> CONTENDED (somebody may sleep) --unlock--> FREE + wake one                             */
#include "base/atomic.h"

#if defined(HIVE_MODEL)
#include "model_lock.h"
#else
#include "base/futex.h"

struct lock {
	ATOMIC(uint32_t) state;
};

#if !defined(LOCK_SPINS)
#define LOCK_SPINS 100 /* the explorer spins once */
#endif
enum { LOCK_FREE = 0, LOCK_HELD = 1, LOCK_CONTENDED = 2 };

static inline void lock_init(struct lock *l)
{
	store_relaxed(&l->state, LOCK_FREE);
}

static inline bool lock_try(struct lock *l)
{
	uint32_t free_state = LOCK_FREE;

	return cas_acquire(&l->state, &free_state, LOCK_HELD); /* LOCK-1 (pairs with LOCK-2) */
}

static inline void lock_slowly(struct lock *l)
{
	for (int i = 0; i < LOCK_SPINS; i++) {
		if (load_relaxed(&l->state) == LOCK_FREE && lock_try(l))
			return;
		cpu_pause();
	}
	while (exchange_acquire(&l->state, LOCK_CONTENDED) != LOCK_FREE) /* LOCK-1 (pairs with LOCK-2) */
		hive__futex_wait(&l->state, LOCK_CONTENDED, INT64_MAX);
}

static inline void lock_acquire(struct lock *l)
{
	if (!lock_try(l))
		lock_slowly(l);
}

static inline void lock_release(struct lock *l)
{
	if (exchange_release(&l->state, LOCK_FREE) == LOCK_CONTENDED) /* LOCK-2 (pairs with LOCK-1) */
		hive__futex_wake(&l->state, 1);
}
#endif
