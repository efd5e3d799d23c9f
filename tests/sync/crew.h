/* SPDX-License-Identifier: MIT */
#pragma once
/* Runs a scenario's bodies as threads, and looks into the objects: who waits is seen in their lists, so no test has to sleep. */
#include <pthread.h>

#include "base/thread.h"
#include "sync/inside.h"
#include "sync/words.h"
#include "test.h"

#define CREW_MAX 64

enum crew_kind { CREW_THREADS };

struct crew {
	enum crew_kind kind;
	size_t count;
	uint64_t threads[CREW_MAX];
};

typedef void crew_fn(void *arg);

static inline void crew_begin(struct crew *crew, enum crew_kind kind)
{
	*crew = (struct crew){ .kind = kind };
}

static inline void crew_add(struct crew *crew, crew_fn *body, void *arg)
{
	CHECK(crew->count < CREW_MAX);
	CHECK_OK(hive__thread_start(body, arg, &crew->threads[crew->count++]));
}

/* Waits for all. */
static inline void crew_end(struct crew *crew)
{
	for (size_t i = 0; i < crew->count; i++)
		hive__thread_join(crew->threads[i]);
}

/* For each kind of crew a test of its own. */
#define CREW_TEST(NAME)                             \
	static void NAME(enum crew_kind crew_kind); \
	TEST(NAME##_by_threads)                     \
	{                                           \
		NAME(CREW_THREADS);                 \
	}                                           \
	static void NAME(enum crew_kind crew_kind)

static inline size_t waiting(ATOMIC(uint64_t) *state, void **waiters)
{
	uint64_t word = latch_take(state);
	size_t n = 0;

	for (struct wait_node *node = list_in(waiters)->first; node; node = node->next)
		n++;
	latch_give(state, word);
	return n;
}

/* Until so many are in the list; the watchdog ends a test in which they never come. */
#define UNTIL_WAITING(object, n)                                           \
	do {                                                               \
		while (waiting(&(object)->state, (object)->waiters) < (n)) \
			hive__thread_yield();                              \
	} while (0)

/* The same for waiters with a deadline: on a slow machine they may have come and gone. */
#define UNTIL_WAITING_OR(object, n, gone)                                                         \
	do {                                                                                      \
		while (waiting(&(object)->state, (object)->waiters) < (n) && !load_acquire(gone)) \
			hive__thread_yield();                                                     \
	} while (0)

static inline void until(ATOMIC(uint32_t) *word, uint32_t value)
{
	while (load_acquire(word) != value)
		hive__thread_yield();
}
