/* SPDX-License-Identifier: MIT */
#pragma once
/* The timers of one worker in the structure that its option `timers` names: heap or wheel. Owner thread only. Both give them
 * out in the order of (due_ns, sequence). The heap may need memory for an insertion, the wheel has all of it from the start. */
#include "queue/heap.h"
#include "queue/wheel.h"

struct timers {
	struct heap heap;
	struct wheel *wheel; /* NULL: the heap is used */
};

static inline void timers_init(struct timers *t, const struct memory *memory)
{
	heap_init(&t->heap, memory);
	t->wheel = NULL;
}

static inline void timers_destroy(struct timers *t)
{
	hive__memory_free(&t->heap.memory, t->wheel);
	t->wheel = NULL;
	heap_destroy(&t->heap);
}

static inline uint32_t timers_count(const struct timers *t)
{
	return t->wheel ? t->wheel->count : t->heap.count;
}

/* While empty: which structure from now on, with room for so many. 0, or -ENOMEM and everything as before. */
static inline int timers_choose(struct timers *t, bool wheel, size_t reserve)
{
	if (!wheel) {
		int r = heap_reserve(&t->heap, reserve);

		if (r < 0)
			return r;
		hive__memory_free(&t->heap.memory, t->wheel);
		t->wheel = NULL;
		return 0;
	}
	if (!t->wheel)
		t->wheel = (struct wheel *)hive__memory_new(&t->heap.memory, sizeof *t->wheel);
	if (!t->wheel)
		return -ENOMEM;
	wheel_init(t->wheel);
	return 0;
}

/* An empty wheel wants to know the time before something is inserted; without it that is right too, but not spread as well. */
static inline bool timers_want_clock(const struct timers *t)
{
	return t->wheel && t->wheel->count == 0;
}

static inline void timers_tell_clock(struct timers *t, int64_t now_ns)
{
	wheel_begin(t->wheel, now_ns);
}

/* 0, or -ENOMEM from the heap. */
static inline int timers_insert(struct timers *t, struct hive_timer *timer)
{
	if (!t->wheel)
		return heap_insert(&t->heap, timer);
	wheel_insert(t->wheel, timer);
	return 0;
}

/* The timer is inside. */
static inline void timers_remove(struct timers *t, struct hive_timer *timer)
{
	if (t->wheel)
		wheel_remove(t->wheel, timer);
	else
		heap_remove(&t->heap, timer);
}

/* The timer is inside, and gets another time and place in the row. Cannot fail. */
static inline void timers_update(struct timers *t, struct hive_timer *timer, int64_t due_ns, uint64_t sequence)
{
	if (t->wheel)
		wheel_remove(t->wheel, timer);
	timer->due_ns = due_ns;
	timer->sequence = sequence;
	if (t->wheel)
		wheel_insert(t->wheel, timer);
	else
		heap_update(&t->heap, timer);
}

/* The earliest timer if it is due, else NULL. */
static inline struct hive_timer *timers_first_due(struct timers *t, int64_t now_ns)
{
	struct hive_timer *first;

	if (t->wheel)
		return wheel_first_due(t->wheel, now_ns);
	first = heap_first(&t->heap);
	return first && first->due_ns <= now_ns ? first : NULL;
}

/* No later than the earliest one: the wheel may be early (wheel.h says when). HIVE_FOREVER when empty. */
static inline int64_t timers_next_due(const struct timers *t)
{
	return t->wheel ? wheel_next_due(t->wheel) : heap_next_due(&t->heap);
}

/* Of a timer that is here or in no container: is it here? */
static inline bool timers_contain(const struct timers *t, const struct hive_timer *timer)
{
	if (t->wheel)
		return timer->previous != NULL;
	return timer->index < t->heap.count && t->heap.entries[timer->index].timer == timer;
}

/* Throws out those that are dead, and tells so: then nothing here refers to them any more. */
static inline void timers_sweep(struct timers *t, bool (*is_dead)(struct hive_timer *timer),
                                void (*thrown_out)(struct hive_timer *timer, void *arg), void *arg)
{
	struct heap *h = &t->heap;
	uint32_t kept = 0;

	for (struct hive_timer *timer = t->wheel ? wheel_each(t->wheel, NULL) : NULL, *next; timer; timer = next) {
		next = wheel_each(t->wheel, timer);
		if (is_dead(timer)) {
			wheel_remove(t->wheel, timer);
			thrown_out(timer, arg);
		}
	}
	for (uint32_t i = 0; i < h->count; i++) {
		struct hive_timer *timer = h->entries[i].timer;

		if (is_dead(timer))
			thrown_out(timer, arg);
		else
			h->entries[kept++] = h->entries[i];
	}
	heap_rebuild(h, kept);
}

/* For tests. */
static inline bool timers_valid(const struct timers *t)
{
	return t->wheel ? wheel_valid(t->wheel) && t->heap.count == 0 : heap_valid(&t->heap);
}
