/* SPDX-License-Identifier: MIT */
#pragma once
/* The last things that a worker did, for hive_dump(). One store for each, and none for a single task: a batch is one thing. */
#include "base/atomic.h"

enum { TRAIL_LENGTH = 16 }; /* power of two */

enum trail_event {
	TRAIL_NOTHING,
	TRAIL_SLEEP, /* announced and looked: it may block now */
	TRAIL_UP,
	TRAIL_CLAIMED, /* up, because somebody claimed it */
	TRAIL_RECEIVED,
	TRAIL_TIMER,
	TRAIL_TOOK, /* from the pool */
	TRAIL_STOLE,
	TRAIL_SPILLED,
	TRAIL_FLUSHED, /* its outbox */
	TRAIL_EVENT,   /* the first of a turn */
	TRAIL_SILENCED,
	TRAIL_LEAVES,
	TRAIL_EVENTS
};

struct trail {
	ATOMIC(uint64_t) things[TRAIL_LENGTH]; /* S  event << 56 | how many << 40 | beat */
	ATOMIC(uint32_t) next;                 /* S */
};

#define TRAIL_BEAT (((uint64_t)1 << 40) - 1)

/* Owner thread only. */
static inline void trail_add(struct trail *t, enum trail_event event, uint64_t many, uint64_t beat)
{
	uint32_t next = load_relaxed(&t->next);

	store_relaxed(&t->things[next % TRAIL_LENGTH],
	              (uint64_t)event << 56 | (many < UINT16_MAX ? many : UINT16_MAX) << 40 | (beat & TRAIL_BEAT));
	store_relaxed(&t->next, next + 1);
}
