/* SPDX-License-Identifier: MIT */
#pragma once
/* What the objects share. */
#include <rophive/flow.h>

#include "base/memory.h"
#include "fiber/wait.h"

/* A word each, so that one object is not taken for another, nor for memory that was never initialised. */
#define MUTEX_MAGIC 0x6d757478u
#define COND_MAGIC 0x636f6e64u
#define SEMAPHORE_MAGIC 0x73656d61u
#define CHANNEL_MAGIC 0x6368616eu
#define BARRIER_MAGIC 0x62617272u
#define ONESHOT_MAGIC 0x6f6e6573u
#define WATCH_MAGIC 0x77617463u
#define BROADCAST_MAGIC 0x62726f61u
#define SUBSCRIPTION_MAGIC 0x73756273u
#define RATE_MAGIC 0x72617465u
#define LIMITER_MAGIC 0x6c696d69u

/* Objects that are created belong to no hive: their memory is the system's. */
static inline void *object_new(size_t bytes)
{
	struct memory memory = { hive__memory_system, NULL };

	return hive__memory_new(&memory, bytes);
}

static inline void object_free(void *object)
{
	struct memory memory = { hive__memory_system, NULL };

	hive__memory_free(&memory, object);
}

/* The room that the public structs have for a list. */
static inline struct wait_list *list_in(void **waiters)
{
	_Static_assert(sizeof(struct wait_list) == 2 * sizeof(void *), "the public structs have room for a list");
	return (struct wait_list *)(void *)waiters;
}

/* Would a wait be over before it began? Asked only where one would have to wait, as it may read the clock. */
static inline bool is_past(int64_t deadline_ns)
{
	return deadline_ns <= HIVE_NOWAIT || (deadline_ns != HIVE_FOREVER && deadline_ns <= hive_now(NULL));
}

/* Each call that may wait is one, so that two fibers that keep each other busy, or one that always finds what it asks for, do not
 * keep their worker.                                                                                                          */
static inline void checkpoint(int64_t deadline_ns)
{
	if (deadline_ns > HIVE_NOWAIT)
		hive__wait_checkpoint();
}

/* For the condition. The caller holds it, and has checked it; back without a limit, whatever happens. */
void hive__mutex_lock_again(struct hive_mutex *mutex, uint64_t self);
bool hive__mutex_is_held(struct hive_mutex *mutex, uint64_t self);
