/* SPDX-License-Identifier: MIT */
#pragma once
/* Two rings of messages of one size, by value, first in, first out. No lock, no memory of their own: who makes one brings the slots.
 * Capacities are powers of two; where a message lies is its number modulo the capacity.
 *
 * spsc: one puts, one takes (Lamport). Who puts writes at the tail as many as he likes and shows them by one store; who takes reads
 * at the head and gives the slot back by another.
 *
 *   R1  Only who puts moves tail, only who takes moves head. A slot between them belongs to who takes, the others to who puts.
 *
 * mpsc: many put, and one takes, or several. Each slot has a turn that says what it waits for: slot i is free for the message number i,
 * i + capacity, ..., and full for the take of number i when its turn is i + 1.
 *
 *   R2  Who moves tail past a number has its slot to write to, alone; who moves head past it has the message.
 *   R3  There are never more than `room` messages between head and tail, `room` being what the put that came last was allowed: tail is
 *       moved by a compare-and-swap from the very value that was compared with head, and head only grows. So nobody overshoots.
 *   R4  Between moving tail and showing the message a put is under way: the ring has a length, and nothing can be taken. Who relies on
 *       its being empty waits for that.
 *   R5  A closed ring takes nothing in, not even from who looked a moment before: closing changes tail.                     */
#include <errno.h>

#include "base/atomic.h"

#if !defined(RING_START)
#define RING_START 0 /* where the numbers begin; tests start near the wrap */
#endif

/* ---- one puts, one takes ---- */

struct spsc {
	unsigned char *slots;                      /* I */
	uint64_t capacity;                         /* I  a power of two */
	size_t stride;                             /* I  bytes from slot to slot */
	alignas(CACHE_LINE) ATOMIC(uint64_t) tail; /* S  who puts */
	uint64_t head_seen;                        /* O  who puts: not more than head */
	uint64_t written;                          /* O  who puts: tail, and what he has not shown yet */
	alignas(CACHE_LINE) ATOMIC(uint64_t) head; /* S  who takes */
	uint64_t tail_seen;                        /* O  who takes: not more than tail */
};

/* Before anybody uses it. */
static inline void spsc_init(struct spsc *s, unsigned char *slots, uint64_t capacity, size_t stride)
{
	s->slots = slots;
	s->capacity = capacity;
	s->stride = stride;
	s->head_seen = (uint64_t)RING_START;
	s->written = (uint64_t)RING_START;
	s->tail_seen = (uint64_t)RING_START;
	store_relaxed(&s->tail, (uint64_t)RING_START);
	store_relaxed(&s->head, (uint64_t)RING_START);
}

static inline unsigned char *spsc_slot(struct spsc *s, uint64_t number)
{
	return &s->slots[(size_t)(number & (s->capacity - 1u)) * s->stride];
}

/* Who puts. Where the next message goes; NULL: full. */
static inline unsigned char *spsc_room(struct spsc *s)
{
	if ((s->written - s->head_seen) >= s->capacity) {
		s->head_seen = load_seq(&s->head); /* SPSC-1 (pairs with SPSC-4) */
	}
	return ((s->written - s->head_seen) >= s->capacity) ? NULL : spsc_slot(s, s->written);
}

/* Who puts, after spsc_room(): the message is written, and not shown yet. */
static inline void spsc_wrote(struct spsc *s)
{
	s->written++;
}

/* Who puts. Shows all that was written; false: there was nothing to show. seq_cst, because he looks for a sleeper next. */
static inline bool spsc_show(struct spsc *s)
{
	bool some = load_relaxed(&s->tail) != s->written;

	if (some) {
		store_seq(&s->tail, s->written); /* SPSC-2 (pairs with SPSC-3 and SPSC-5) */
	}
	return some;
}

/* Who takes. The oldest message; NULL: there is none. */
static inline unsigned char *spsc_front(struct spsc *s)
{
	uint64_t head = load_relaxed(&s->head);

	if (head == s->tail_seen) {
		s->tail_seen = load_acquire(&s->tail); /* SPSC-3 (pairs with SPSC-2) */
	}
	return (head == s->tail_seen) ? NULL : spsc_slot(s, head);
}

/* Who takes, after spsc_front(): the slot may be used again. seq_cst, because he looks next whether somebody waits for room. */
static inline void spsc_pop(struct spsc *s)
{
	store_seq(&s->head, load_relaxed(&s->head) + 1u); /* SPSC-4 (pairs with SPSC-1 and SPSC-6) */
}

/* Any thread. Approximate while others work on it, never more than the capacity; exact for who takes when he is about to sleep, of
 * what was shown before somebody looked for sleepers.                                                                     */
static inline uint64_t spsc_length(struct spsc *s)
{
	uint64_t head, tail = load_seq(&s->tail); /* SPSC-5 (pairs with SPSC-2) */

	head = load_seq(&s->head); /* SPSC-6 (pairs with SPSC-4) */
	return ((int64_t)(tail - head) > 0) ? tail - head : 0u;
}

/* ---- many put ---- */

/* Numbers have 63 bits; the highest bit of tail says closed. */
#define MPSC_CLOSED ((uint64_t)1 << 63)
#define MPSC_NUMBER(x) ((x) & ~MPSC_CLOSED)

struct mpsc_slot { /* a message follows, in the same stride */
	ATOMIC(uint64_t) turn;
};

struct mpsc {
	unsigned char *slots; /* I */
	uint64_t
		capacity; /* I  a power of two, at least 2: in a ring of one, full and free again would be the same turn */
	size_t stride;    /* I  bytes from slot to slot */
	bool alone; /* I  one takes at a time: head tells that a slot is free, and who takes need not write to it */
	alignas(CACHE_LINE) ATOMIC(uint64_t) tail; /* A */
	ATOMIC(uint64_t) head_seen; /* A  some head of the past, beside tail: who puts seldom needs the other line */
	alignas(CACHE_LINE) ATOMIC(uint64_t) head; /* A  S if one takes */
};

static inline uint64_t mpsc_distance(uint64_t from, uint64_t to)
{
	return MPSC_NUMBER(to - from);
}

static inline struct mpsc_slot *mpsc_slot(struct mpsc *m, uint64_t number)
{
	/* The slots are aligned for their turn: who made the ring saw to that. */
	return (struct mpsc_slot *)(void *)&m->slots[(size_t)(number & (m->capacity - 1u)) * m->stride];
}

/* Before anybody uses it. Closed, until it is opened. */
static inline void mpsc_init(struct mpsc *m, unsigned char *slots, uint64_t capacity, size_t stride)
{
	uint64_t start = MPSC_NUMBER((uint64_t)RING_START);

	m->slots = slots;
	m->capacity = capacity;
	m->stride = stride;
	m->alone = false;
	store_relaxed(&m->tail, start | MPSC_CLOSED);
	store_relaxed(&m->head_seen, start);
	store_relaxed(&m->head, start);
	for (uint64_t i = 0; i < capacity; i++) {
		uint64_t number = MPSC_NUMBER(start + i);

		store_relaxed(&mpsc_slot(m, number)->turn, number);
	}
}

/* Before anybody uses it. One takes at a time, by mpsc_front() and mpsc_pop(), for ever: less is written. */
static inline void mpsc_set_alone(struct mpsc *m)
{
	m->alone = true;
}

/* Any thread. After a close, or before anything came in. */
static inline void mpsc_open(struct mpsc *m)
{
	and_relaxed(&m->tail, ~MPSC_CLOSED);
}

/* Any thread. Nothing comes in any more; what is inside, or under way, can be taken. The number of the first that did not come in. */
static inline uint64_t mpsc_close(struct mpsc *m)
{
	return MPSC_NUMBER(or_relaxed(&m->tail, MPSC_CLOSED));
}

/* Any thread. How many are inside, as far as `tail` goes, which was read a moment ago. UINT64_MAX: tail is older than that. */
static inline uint64_t mpsc_fill(struct mpsc *m, uint64_t tail)
{
	uint64_t head = load_seq(&m->head); /* MPSC-2 (pairs with MPSC-7 and MPSC-8) */
	uint64_t fill = mpsc_distance(head, tail);

	store_release(&m->head_seen, head); /* MPSC-11 (pairs with MPSC-12) */
	return (fill > m->capacity) ? UINT64_MAX : fill;
}

/* Any thread. A place for one message, if fewer than `room` (at most the capacity) are inside: 0, and its number. -ENOBUFS, -ESHUTDOWN.
 * Moving tail is seq_cst, because who puts looks for sleepers next.                                                        */
static inline int mpsc_reserve(struct mpsc *m, uint64_t room, uint64_t *ret_number)
{
	uint64_t tail = load_relaxed(&m->tail);
	int r = -EAGAIN;

	while (r == -EAGAIN) {
		if ((tail & MPSC_CLOSED) != 0u) {
			r = -ESHUTDOWN;
		} else if ((mpsc_distance(load_acquire(&m->head_seen), tail) >= room) && (mpsc_fill(m, tail) >= room)) {
			/* MPSC-12 (pairs with MPSC-11): what was taken before that head has been read */
			uint64_t again = load_relaxed(&m->tail);

			r = (again == tail) ? -ENOBUFS : -EAGAIN;
			tail = again;
		} else if (cas_seq(&m->tail, &tail, MPSC_NUMBER(tail + 1u))) { /* MPSC-1 (pairs with MPSC-10) */
			*ret_number = tail;
			r = 0;
		} else {
			/* somebody else was first: tail is what he left */
		}
	}
	return r;
}

/* Who reserved the number. Its slot; NULL: who took the message of a round ago is still reading it, ask again. */
static inline struct mpsc_slot *mpsc_reserved(struct mpsc *m, uint64_t number)
{
	struct mpsc_slot *slot = mpsc_slot(m, number);

	if (m->alone) {
		return slot;
	}
	return (load_acquire(&slot->turn) == number) ? slot : NULL; /* MPSC-3 (pairs with MPSC-6) */
}

/* Who puts, with the number that he got. The slots of those that come soon are brought here: the next compare-and-swap waits for all that
 * was written before it, and so for lines that are still on their way.                                                     */
#define MPSC_AHEAD 6u
static inline void mpsc_fetch_ahead(struct mpsc *m, uint64_t number)
{
	unsigned char *ahead = (unsigned char *)mpsc_slot(m, number + MPSC_AHEAD);

	prefetch_alone(ahead);
	prefetch_alone(&ahead[CACHE_LINE]);
}

/* Who reserved the number, when the message is written. */
static inline void mpsc_show(struct mpsc_slot *slot, uint64_t number)
{
	store_release(&slot->turn, MPSC_NUMBER(number + 1u)); /* MPSC-4 (pairs with MPSC-5) */
}

/* Any thread. Is this the oldest message, and is it there? NULL: no, or its put is under way (R4). */
static inline struct mpsc_slot *mpsc_shown(struct mpsc *m, uint64_t number)
{
	struct mpsc_slot *slot = mpsc_slot(m, number);

	return (load_acquire(&slot->turn) == MPSC_NUMBER(number + 1u)) ? slot : NULL; /* MPSC-5 (pairs with MPSC-4) */
}

/* Who took the message, when it was read: the slot is free for the next round. */
static inline void mpsc_free(struct mpsc *m, struct mpsc_slot *slot, uint64_t number)
{
	store_release(&slot->turn, MPSC_NUMBER(number + m->capacity)); /* MPSC-6 (pairs with MPSC-3) */
}

/* The only one who takes. The oldest message and its number; NULL: there is none. It counts until mpsc_pop(). */
static inline struct mpsc_slot *mpsc_front(struct mpsc *m, uint64_t *ret_number)
{
	*ret_number = load_relaxed(&m->head);
	return mpsc_shown(m, *ret_number);
}

/* The only one who takes, after mpsc_front(). seq_cst, because he looks next whether somebody waits for room. */
static inline void mpsc_pop(struct mpsc *m, struct mpsc_slot *slot, uint64_t number)
{
	if (!m->alone) {
		mpsc_free(m, slot, number);
	}
	store_seq(&m->head, MPSC_NUMBER(number + 1u)); /* MPSC-7 (pairs with MPSC-2 and MPSC-9) */
}

/* Where takers stop: MPSC_NOWHERE, or the number of the first message that must stay. Who looked before it was set may pass it. */
#define MPSC_NOWHERE UINT64_MAX

static inline bool mpsc_reached(uint64_t end, uint64_t head)
{
	return (end != MPSC_NOWHERE) && (mpsc_distance(end, head) < (MPSC_CLOSED >> 1));
}

/* One of several who take. The oldest message, unless `end` is reached, counted out; then mpsc_free(). NULL: there is none. */
static inline struct mpsc_slot *mpsc_claim(struct mpsc *m, uint64_t end, uint64_t *ret_number)
{
	uint64_t head = load_relaxed(&m->head);
	struct mpsc_slot *slot = NULL;
	bool looking = true;

	while (looking) {
		slot = mpsc_reached(end, head) ? NULL : mpsc_shown(m, head);
		if (slot == NULL) {
			uint64_t again = load_relaxed(&m->head);

			looking = again != head;
			head = again;
		} else if (cas_seq(&m->head, &head, MPSC_NUMBER(head + 1u))) {
			/* MPSC-8 (pairs with MPSC-2 and MPSC-9) */
			*ret_number = head;
			looking = false;
		} else {
			/* somebody else was first: head is what he left */
		}
	}
	return slot;
}

/* Any thread. The number that the next message gets. */
static inline uint64_t mpsc_next(struct mpsc *m)
{
	return MPSC_NUMBER(load_seq(&m->tail)); /* MPSC-10 (pairs with MPSC-1) */
}

/* Any thread. The number of the oldest message, or of the next one. */
static inline uint64_t mpsc_oldest(struct mpsc *m)
{
	return load_seq(&m->head); /* MPSC-9 (pairs with MPSC-7 and MPSC-8) */
}

/* Any thread. How many are inside, puts under way too; approximate while others work on it. Sees everything whose poster has already
 * looked for sleepers.                                                                                                    */
static inline uint64_t mpsc_length(struct mpsc *m)
{
	uint64_t head = mpsc_oldest(m);

	return mpsc_distance(head, mpsc_next(m));
}
