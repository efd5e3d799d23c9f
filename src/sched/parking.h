/* SPDX-License-Identifier: MIT */
#pragma once
/* How far a worker is on its way to sleep, so that nobody makes a system call to wake one who is not there yet.
 *
 *   RUNNING --begin--> PARKING --commit--> PARKED --wake, event, timer--> RUNNING
 *                         |                   |
 *                         +------ notify -----+--> NOTIFIED
 *
 * The worker says PARKING before it announces itself (idle.h), and PARKED when it has looked again, right before it blocks. Who has claimed
 * it says NOTIFIED: if it was PARKED he wakes it by a system call; else it is going to notice, for it cannot commit any more.
 *
 * Both steps are read-modify-writes of one word, so one of them is first, and that is all they need: what was posted is found by the
 * look that follows, in the order of idle.h. A late notify, of a claim whose worker got up by itself, finds it RUNNING and leaves it so, or hits a
 * later sleep, and costs a look around.                                                                                                      */
#include "base/atomic.h"

enum parking { PARKING_RUNNING, PARKING_PARKING, PARKING_PARKED, PARKING_NOTIFIED };

/* The worker, before it announces itself, which publishes it. */
static inline void parking_begin(ATOMIC(uint32_t) *parking)
{
	store_relaxed(parking, (uint32_t)PARKING_PARKING);
}

/* The worker, after its last look. False: somebody has claimed it meanwhile; it must not block. */
static inline bool parking_commit(ATOMIC(uint32_t) *parking)
{
	uint32_t state = PARKING_PARKING;

	return cas_relaxed(parking, &state, (uint32_t)PARKING_PARKED);
}

/* The worker is up. */
static inline void parking_end(ATOMIC(uint32_t) *parking)
{
	store_relaxed(parking, (uint32_t)PARKING_RUNNING);
}

/* Who has claimed it. True: it blocks, or is about to, and has to be woken. One that is up stays so: the watchdog asks for it. */
static inline bool parking_notify(ATOMIC(uint32_t) *parking)
{
	uint32_t state = load_relaxed(parking);

	while (state == PARKING_PARKING || state == PARKING_PARKED)
		if (cas_relaxed(parking, &state, (uint32_t)PARKING_NOTIFIED))
			return state == PARKING_PARKED;
	return false;
}
