/* SPDX-License-Identifier: MIT */
#pragma once
/* What the tests of the bus share: a type of 8 bytes and one of 64, handlers that note what came, and gates in place of time. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "test.h"

#include <rophive/bus.h>
#include <rophive/hive.h>

enum { SMALL = 1, LARGE = 7 };

struct small {
	uint64_t number;
};
struct large {
	uint64_t number, rest[7];
};
HIVE_BUS_TYPED(small, SMALL, struct small)
HIVE_BUS_TYPED(large, LARGE, struct large)

enum { NOTES = 4096 };

/* What the handlers saw. `gate` closed: they wait inside. */
struct notes {
	_Atomic(uint64_t) count, sum, inside, most_inside, failed, dropped, drop_sum, levels;
	_Atomic(int) gate; /* 1: closed */
	_Atomic(int) answer;
	uint64_t seen[NOTES]; /* in order, where there is one worker */
	_Atomic(uint32_t) level[64];
	struct hive_bus *bus;
};

static inline void notes_pass(struct notes *n)
{
	uint64_t now = atomic_fetch_add(&n->inside, 1) + 1, most = atomic_load(&n->most_inside);

	while (now > most && !atomic_compare_exchange_weak(&n->most_inside, &most, now))
		;
	while (atomic_load(&n->gate))
		sched_yield();
	atomic_fetch_sub(&n->inside, 1);
}

static inline int notes_small(void *context, const struct hive_bus_header *header, const void *payload)
{
	struct notes *n = context;
	const struct small *message = small_of(header, payload);
	uint64_t at;

	CHECK(message && header->id != 0 && header->time_ns > 0);
	notes_pass(n);
	at = atomic_fetch_add(&n->count, 1);
	if (at < NOTES)
		n->seen[at] = message->number;
	atomic_fetch_add(&n->sum, message->number);
	return atomic_load(&n->answer);
}

static inline int notes_large(void *context, const struct hive_bus_header *header, const void *payload)
{
	struct notes *n = context;
	const struct large *message = large_of(header, payload);

	CHECK(message && (uintptr_t)payload % 16 == 0);
	for (int i = 0; i < 7; i++)
		CHECK_EQ(message->rest[i], message->number + (uint64_t)i); /* else it is torn */
	notes_pass(n);
	atomic_fetch_add(&n->count, 1);
	atomic_fetch_add(&n->sum, message->number);
	return atomic_load(&n->answer);
}

static inline void notes_level(void *arg, enum hive_bus_level level)
{
	struct notes *n = arg;

	atomic_store(&n->level[atomic_fetch_add(&n->levels, 1) % 64], (uint32_t)level);
}

static inline void notes_drop(void *arg, const struct hive_bus_header *header, const void *payload)
{
	struct notes *n = arg;
	uint64_t number;

	CHECK(header->size >= sizeof number);
	memcpy(&number, payload, sizeof number);
	atomic_fetch_add(&n->dropped, 1);
	atomic_fetch_add(&n->drop_sum, number);
}

static inline void notes_fail(void *arg, const struct hive_bus_header *header, int error)
{
	struct notes *n = arg;

	CHECK(header->id != 0 && error < 0);
	atomic_fetch_add(&n->failed, 1);
}

/* A bus with both types and all hooks, started. */
static inline struct hive_bus *bus_make(struct hive_bus_options options, struct notes *n)
{
	const struct hive_bus_type types[] = { { LARGE, sizeof(struct large), "large", notes_large, n },
		                               { SMALL, sizeof(struct small), "small", notes_small, n } };
	struct hive_bus *bus;

	options.types = types;
	options.type_count = 2;
	options.hook_arg = n;
	options.on_level = notes_level;
	options.on_drop = notes_drop;
	options.on_fail = notes_fail;
	CHECK_OK(hive_bus_create(&options, &bus));
	n->bus = bus;
	return bus;
}

static inline struct hive_bus *bus_begin(struct hive_bus_options options, struct notes *n)
{
	struct hive_bus *bus = bus_make(options, n);

	CHECK_OK(hive_bus_start(bus));
	return bus;
}

static inline void check_books(struct hive_bus *bus, struct hive_bus_stats *ret_stats)
{
	struct hive_bus_stats s;

	CHECK_OK(hive_bus_stats_read(bus, &s));
	CHECK_EQ(s.accepted, s.handled + s.failed + s.dropped + s.queued);
	CHECK_EQ(s.submitted, s.accepted + s.refused[1] + s.refused[2] + s.refused[3] + s.refused_type +
	                              s.refused_size + s.refused_closed);
	CHECK_EQ(s.refused[0], 0);
	*ret_stats = s;
}

static inline void bus_end(struct hive_bus *bus)
{
	struct hive_bus_stats s;

	CHECK_OK(hive_bus_stop(bus, HIVE_DRAIN, HIVE_FOREVER));
	check_books(bus, &s);
	CHECK_EQ(s.queued, 0);
	CHECK_OK(hive_bus_destroy(bus));
}

static inline int put_small(struct hive_bus *bus, uint64_t number, enum hive_bus_priority priority)
{
	return small_submit(bus, &(struct small){ number }, priority, HIVE_NOWAIT);
}

static inline struct large large_make(uint64_t number)
{
	struct large message = { .number = number };

	for (int i = 0; i < 7; i++)
		message.rest[i] = number + (uint64_t)i;
	return message;
}

/* The first message is in the handler, which waits at the gate: what comes now stays in the ring. */
static inline void notes_hold_one(struct notes *n, uint64_t number)
{
	atomic_store(&n->gate, 1);
	CHECK_OK(put_small(n->bus, number, HIVE_BUS_HIGH));
	while (atomic_load(&n->inside) == 0)
		sched_yield();
}

static inline void notes_open(struct notes *n)
{
	atomic_store(&n->gate, 0);
}
