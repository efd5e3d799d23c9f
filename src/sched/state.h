/* SPDX-License-Identifier: MIT */
#pragma once
/* The state of a hive, and the count of what holds up its end: answers under way, fibers.
 *
 * Stop closes the pools first and moves the state then: who sees DRAINING sees every task that was accepted, and the answer
 * that goes with it was counted before the task was put.
 *
 * Race: workers that drain sleep while answers are under way; the last answer wakes them, but only if stop was asked for.
 *   the stopper writes the state, then wakes everybody: a worker looks at the count after that;
 *   the receiver of an answer lowers the count (DRAIN-1, a seq_cst write), then looks at the state (DRAIN-2, a seq_cst load).
 * Either the worker sees that none is left, or the receiver sees the state and wakes it.
 *
 * Race: somebody begins what is not put into a pool, while the hive stops.
 *   he raises the count (DRAIN-4, a seq_cst write), then looks at the state (DRAIN-5, a seq_cst load);
 *   the stopper writes the state (STOP-2); a worker that sees it looks at the count then.
 * Either he sees the state, and does not begin, or no worker leaves before he has ended.                                  */
#include "base/atomic.h"

/* Only ever grows, but a start that fails falls back to CREATED. */
enum hive_state {
	HIVE_CREATED,
	HIVE_STARTING,
	HIVE_UNDOING, /* the start has failed: threads that were made end again */
	HIVE_RUNNING,
	HIVE_DRAINING, /* hive_stop(HIVE_DRAIN) */
	HIVE_LEAVING,  /* hive_stop(HIVE_NOW), or the deadline passed */
	HIVE_STOPPED
};

static inline uint32_t state_read(const ATOMIC(uint32_t) *state)
{
	return load_acquire(state); /* STOP-1 (pairs with STOP-2 and STOP-3) */
}

static inline void state_write(ATOMIC(uint32_t) *state, uint32_t value)
{
	store_seq(state, value); /* STOP-2 (pairs with STOP-1, DRAIN-2, DRAIN-5 and GUEST-3) */
}

/* Start, and hurry: no worker's sleep depends on these, but fibers must see that nothing may wait any more. False: it was not `from`, and *from says what it is. */
static inline bool state_move(ATOMIC(uint32_t) *state, uint32_t *from, uint32_t to)
{
	return cas_seq(state, from, to); /* STOP-3 (pairs with STOP-1 and GUEST-3) */
}

/* Who has just parked something: nothing may wait any more. In one order with who ends waits: he writes the state, then looks for
 * what is parked.                                                                                                           */
static inline bool state_ends_waits(const ATOMIC(uint32_t) *state)
{
	return load_seq(state) >= HIVE_LEAVING; /* GUEST-3 (pairs with STOP-2 and STOP-3) */
}

/* Before the task that it is about is put. */
static inline void holds_begin(ATOMIC(uint32_t) *holds, uint32_t n)
{
	add_relaxed(holds, n);
}

/* The same for what is put elsewhere. False: stop was asked for, and it must not begin; it counts all the same. */
static inline bool holds_begin_open(ATOMIC(uint32_t) *holds, const ATOMIC(uint32_t) *state, uint32_t n)
{
	add_seq(holds, n);                      /* DRAIN-4 (pairs with DRAIN-3) */
	return load_seq(state) < HIVE_DRAINING; /* DRAIN-5 (pairs with STOP-2) */
}

/* True: that was the last one, and workers that drain may wait for it. */
static inline bool holds_end(ATOMIC(uint32_t) *holds, ATOMIC(uint32_t) *state, uint32_t n)
{
	return sub_seq(holds, n) == n &&         /* DRAIN-1 (pairs with DRAIN-3) */
	       load_seq(state) >= HIVE_DRAINING; /* DRAIN-2 (pairs with STOP-2) */
}

/* A worker that saw the hive drain. */
static inline uint32_t holds_left(ATOMIC(uint32_t) *holds)
{
	return load_seq(holds); /* DRAIN-3 (pairs with DRAIN-1 and DRAIN-4) */
}
