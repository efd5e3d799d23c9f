/* SPDX-License-Identifier: MIT */
#pragma once
/* What the component tests share: tasks that are numbers, threads that start together, and memory that can run out. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "test.h"

#include <rophive/task.h>

static inline void unit_nop(void *arg)
{
	(void)arg;
}

static inline struct hive_task task_of(uint64_t number)
{
	return (struct hive_task){ unit_nop, (void *)(uintptr_t)number };
}

static inline uint64_t number_of(struct hive_task task)
{
	CHECK(task.fn == unit_nop); /* else it is torn */
	return (uint64_t)(uintptr_t)task.arg;
}

/* Fewer rounds where everything is slow. */
static inline int rounds(int count)
{
	return count / (test_slowness() * test_slowness());
}

/* For loops that wait for another thread: it may need this CPU. */
static inline void breathe(void)
{
	static _Thread_local unsigned turns;

	if (++turns % 32 == 0)
		sched_yield();
}

struct unit_memory {
	struct memory memory;
	_Atomic(long) made, live; /* blocks ever handed out, blocks not yet given back */
	long fails_from;          /* 0: never; n: the n-th request and, unless `once`, all after it */
	bool once;
};

static inline void *unit_allocate(void *arg, void *old, size_t bytes)
{
	struct unit_memory *m = arg;
	long number;

	if (bytes == 0) {
		if (old)
			atomic_fetch_sub(&m->live, 1);
		free(old);
		return NULL;
	}
	number = atomic_fetch_add(&m->made, 1) + 1;
	if (m->fails_from > 0 && (m->once ? number == m->fails_from : number >= m->fails_from))
		return NULL;
	atomic_fetch_add(&m->live, 1);
	return malloc(bytes);
}

static inline void unit_memory_init(struct unit_memory *m)
{
	*m = (struct unit_memory){ .memory = { unit_allocate, m } };
}

/* From now on the n-th request fails. */
static inline void unit_memory_fail(struct unit_memory *m, long n)
{
	atomic_store(&m->made, 0);
	m->fails_from = n;
}

typedef void crew_fn(int index, void *arg);

struct crew_member {
	crew_fn *work;
	void *arg;
	int index;
	pthread_barrier_t *start;
	pthread_t thread;
};

static inline void *crew_main(void *arg)
{
	struct crew_member *m = arg;

	pthread_barrier_wait(m->start);
	m->work(m->index, m->arg);
	return NULL;
}

/* work(0 … count - 1) on as many threads that start at the same moment; returns when all are done. */
static inline void crew_run(int count, crew_fn *work, void *arg)
{
	struct crew_member members[16];
	pthread_barrier_t start;

	CHECK(count <= 16);
	pthread_barrier_init(&start, NULL, (unsigned)count);
	for (int i = 0; i < count; i++) {
		members[i] = (struct crew_member){ work, arg, i, &start, 0 };
		CHECK_EQ(pthread_create(&members[i].thread, NULL, crew_main, &members[i]), 0);
	}
	for (int i = 0; i < count; i++)
		pthread_join(members[i].thread, NULL);
	pthread_barrier_destroy(&start);
}

/* Each number below count comes exactly once. */
struct tally {
	_Atomic(uint32_t) total;
	uint32_t count;
	_Atomic(uint8_t) *seen;
};

static inline void tally_init(struct tally *t, uint32_t count)
{
	atomic_init(&t->total, 0);
	t->count = count;
	t->seen = calloc(count, sizeof *t->seen);
	CHECK(t->seen);
}

static inline void tally_mark(struct tally *t, uint64_t number)
{
	CHECK(number < t->count);
	CHECK_EQ(atomic_fetch_add(&t->seen[number], 1), 0);
	atomic_fetch_add(&t->total, 1);
}

static inline bool tally_complete(struct tally *t)
{
	return atomic_load(&t->total) == t->count;
}

static inline void tally_await(struct tally *t)
{
	while (!tally_complete(t))
		breathe();
}

static inline void tally_end(struct tally *t)
{
	CHECK_EQ(atomic_load(&t->total), t->count);
	free((void *)(uintptr_t)t->seen);
}
