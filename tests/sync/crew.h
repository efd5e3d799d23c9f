/* SPDX-License-Identifier: MIT */
#pragma once
/* Runs a scenario's bodies as threads, as fibers on two workers, or mixed with compute tasks; and looks into the objects: who waits
 * is seen in their lists, so no test has to sleep.                                                                        */
#include <rophive/hive.h>

#include "base/thread.h"
#include "sync/inside.h"
#include "sync/words.h"
#include "test.h"

#define CREW_MAX 64
#define CREW_COMPUTE 4

enum crew_kind { CREW_THREADS, CREW_FIBERS, CREW_MIXED };

typedef void crew_fn(void *arg);

struct crew_member {
	crew_fn *body;
	void *arg;
	enum { MEMBER_THREAD, MEMBER_FIBER, MEMBER_COMPUTE } as;
	uint64_t thread;
	struct hive_fiber *fiber;
	ATOMIC(uint32_t) ended; /* compute */
};

struct crew {
	enum crew_kind kind;
	size_t count, computing;
	struct crew_member members[CREW_MAX];
};

static struct hive *crew_hive; /* of the test that runs; NULL: threads alone */

static inline void crew_open(enum crew_kind kind)
{
	struct hive_options options = { .io_workers = 2, .compute_workers = CREW_COMPUTE };

	crew_hive = NULL;
	if (kind == CREW_THREADS)
		return;
	CHECK_OK(hive_runtime_start(&options, &crew_hive));
}

static inline void crew_close(void)
{
	if (crew_hive)
		CHECK_OK(hive_runtime_stop(crew_hive, HIVE_DRAIN, HIVE_FOREVER));
}

static inline void crew_begin(struct crew *crew, enum crew_kind kind)
{
	memset(crew, 0, sizeof *crew);
	crew->kind = kind;
}

static inline int crew_fiber(void *arg)
{
	struct crew_member *m = arg;

	m->body(m->arg);
	return 0;
}

static inline void crew_compute(void *arg)
{
	struct crew_member *m = arg;

	m->body(m->arg);
	store_release(&m->ended, 1);
}

/* Mixed: fiber, thread, compute task in turn. They block, so there are not more compute tasks than compute workers. */
static inline void crew_add(struct crew *crew, crew_fn *body, void *arg)
{
	struct crew_member *m = &crew->members[crew->count];

	CHECK(crew->count < CREW_MAX);
	m->body = body;
	m->arg = arg;
	if (crew->kind == CREW_FIBERS || (crew->kind == CREW_MIXED && crew->count % 3 == 0))
		m->as = MEMBER_FIBER;
	else if (crew->kind == CREW_MIXED && crew->count % 3 == 2 && crew->computing++ < CREW_COMPUTE / 2)
		m->as = MEMBER_COMPUTE;
	crew->count++;
	if (m->as == MEMBER_FIBER)
		CHECK_OK(hive_spawn(crew_hive, crew_fiber, m, NULL, &m->fiber));
	else if (m->as == MEMBER_COMPUTE)
		CHECK_OK(hive_post_compute(crew_hive, crew_compute, m));
	else
		CHECK_OK(hive__thread_start(body, arg, &m->thread));
}

/* Waits for all. */
static inline void crew_end(struct crew *crew)
{
	for (struct crew_member *m = crew->members; m < crew->members + crew->count; m++)
		if (m->as == MEMBER_THREAD)
			hive__thread_join(m->thread);
		else if (m->as == MEMBER_FIBER)
			CHECK_OK(hive_fiber_join(m->fiber, HIVE_FOREVER, NULL));
		else
			while (!load_acquire(&m->ended))
				hive__thread_yield();
}

#define CREW_TEST_AS(NAME, KIND, HOW)   \
	TEST(NAME##_by_##HOW)           \
	{                               \
		crew_open(CREW_##KIND); \
		NAME(CREW_##KIND);      \
		crew_close();           \
	}
/* For each kind of crew a test of its own. */
#define CREW_TEST(NAME)                             \
	static void NAME(enum crew_kind crew_kind); \
	CREW_TEST_AS(NAME, THREADS, threads)        \
	CREW_TEST_AS(NAME, FIBERS, fibers)          \
	CREW_TEST_AS(NAME, MIXED, both)             \
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
			hive_yield();                                      \
	} while (0)

/* The same for waiters with a deadline: on a slow machine they may have come and gone. */
#define UNTIL_WAITING_OR(object, n, gone)                                                         \
	do {                                                                                      \
		while (waiting(&(object)->state, (object)->waiters) < (n) && !load_acquire(gone)) \
			hive_yield();                                                             \
	} while (0)

static inline void until(ATOMIC(uint32_t) *word, uint32_t value)
{
	while (load_acquire(word) != value)
		hive_yield();
}
