/* SPDX-License-Identifier: MIT */
#pragma once
#include "bench.h"
#include "sync.h"

/* One question at a time: submit, wait until somebody answers, idle, again. The same loop for the hive and for the
 * raw wake beneath it, so that the two can be compared.                                                           */
#define PING_IDLE_NS HIVE_US(100)

struct ping_slot {
	_Alignas(SYNC_LINE) _Atomic int64_t started_ns; /* 0: not yet */
};

static inline void ping_answer(struct ping_slot *slot)
{
	atomic_store_explicit(&slot->started_ns, sync_now(), memory_order_release);
}

struct ping_target {
	int (*submit)(void *arg, struct ping_slot *slot); /* 0 or -errno */
	void *arg;
};

/* stats NULL: warm-up. The bench's exit code. */
int ping_measure(const struct ping_target *target, int64_t count, int64_t idle_ns, struct stats *stats);
