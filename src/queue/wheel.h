/* SPDX-License-Identifier: MIT */
#pragma once
/* Timers of one worker: a hierarchical timing wheel. Owner thread only. Insert and remove are O(1) and need no memory; what
 * is due comes out in the order of (due_ns, sequence), exactly as from the heap, and never early.
 *
 * Level k is a ring of 64 slots, each 8^k ns wide; 20 levels reach the end of the clock, so there is no far list and no delay
 * is too long. A timer goes to the lowest level on which it is at most 63 slots ahead of the cursor, so its slot is at most
 * 1/8 of its delay wide. A slot with several timers is dealt out to lower levels when its time has come; from a slot with one
 * timer that timer fires where it is. On level 0 all timers of a slot have the same due time. A timer is dealt at most 19
 * times; about three times when 100,000 fire within a second. A crowd in one slot is dealt out ahead, a few at a time.
 *
 *   W1  The cursor is no later than any timer in the rings, and no later than the clock; a timer that arrives with a due time
 *       before it (its letter took long, the clock went back) goes to `fresh`, and from there in order into `late`.
 *   W2  The timers of a slot on level 0 are in the order of their sequence, or the slot is marked as mixed. (Those of one due
 *       time may lie on several levels, and come together on level 0 in any order.)
 *   W3  least_ns is no later than any timer of its slot, and exact with one timer, on level 0, or if none was removed.
 *
 * So wheel_next_due() is exact, unless the earliest timer of a slot with several was removed. Then the worker wakes at the time
 * of the removed one, deals the slot out and knows better: at most one early wake-up a level for any timer, and none at all
 * without a removal.                                                                                                      */
#include <string.h>

#include "base/memory.h"

#include <rophive/timer.h>

/* Slots are the bits of a word. Each level is 2^WHEEL_SHIFT times as coarse as the one below: a smaller step gives finer slots
 * for far timers, so fewer to deal out at once, and more levels to look at.                                                 */
enum { WHEEL_SLOTS = 64, WHEEL_BITS = 6, WHEEL_SHIFT = 3, WHEEL_LEVELS = (63 - WHEEL_BITS) / WHEEL_SHIFT + 1 };

/* A slot that was filled with more than a crowd is dealt out ahead of its time, a few timers with each look for what is due:
 * all at once would take longer than a timer may be late. [timers], [timers]                                               */
enum { WHEEL_CROWD = 32, WHEEL_AHEAD = 8 };

struct wheel_slot {
	struct hive_timer *first, *last;
	int64_t least_ns;
	uint32_t filled; /* timers put into it since it was empty */
};

/* 41 KiB, whatever the number of timers. */
struct wheel {
	struct wheel_slot slots[WHEEL_LEVELS * WHEEL_SLOTS]; /* level by level */
	uint64_t used[WHEEL_LEVELS];                         /* which slots of a level hold something */
	uint64_t mixed;                                      /* which slots of level 0 are out of order */
	uint32_t used_levels;
	uint32_t count;
	int64_t cursor_ns;
	struct wheel_slot late, fresh; /* before the cursor: in order; as they came */
};

static inline void wheel_init(struct wheel *w)
{
	memset(w, 0, sizeof *w);
}

static inline bool wheel_before(const struct hive_timer *a, const struct hive_timer *b)
{
	return a->due_ns < b->due_ns || (a->due_ns == b->due_ns && a->sequence < b->sequence);
}

/* ---- slots: the ends of a list point to their slot, with this bit, so that a timer can be removed by itself ---- */

#define WHEEL_END ((uintptr_t)1)

static inline void *wheel_end(struct wheel_slot *slot)
{
	return (void *)((uintptr_t)slot | WHEEL_END);
}

static inline bool wheel_is_end(const void *link)
{
	return (uintptr_t)link & WHEEL_END;
}

static inline struct wheel_slot *wheel_slot_of(const void *end)
{
	return (struct wheel_slot *)((uintptr_t)end & ~WHEEL_END);
}

static inline struct hive_timer *wheel_after(const struct hive_timer *timer)
{
	return wheel_is_end(timer->next) ? NULL : (struct hive_timer *)timer->next;
}

static inline void wheel_note(struct wheel_slot *slot, int64_t due_ns)
{
	if (!slot->first || due_ns < slot->least_ns)
		slot->least_ns = due_ns;
	slot->filled = slot->first ? slot->filled + 1 : 1;
}

static inline void wheel_append(struct wheel_slot *slot, struct hive_timer *timer)
{
	wheel_note(slot, timer->due_ns);
	timer->next = wheel_end(slot);
	timer->previous = slot->first ? (void *)slot->last : wheel_end(slot);
	if (slot->first)
		slot->last->next = timer;
	else
		slot->first = timer;
	slot->last = timer;
}

/* The slot, if it holds nothing now; else NULL. */
static inline struct wheel_slot *wheel_unlink(struct hive_timer *timer)
{
	void *previous = timer->previous, *next = timer->next;
	struct wheel_slot *slot = NULL;

	timer->previous = timer->next = NULL;
	if (wheel_is_end(previous) && wheel_is_end(next)) {
		slot = wheel_slot_of(next);
		slot->first = slot->last = NULL;
		return slot;
	}
	if (wheel_is_end(previous)) {
		slot = wheel_slot_of(previous);
		slot->first = (struct hive_timer *)next;
		slot->first->previous = previous;
	} else if (wheel_is_end(next)) {
		slot = wheel_slot_of(next);
		slot->last = (struct hive_timer *)previous;
		slot->last->next = next;
	} else {
		((struct hive_timer *)previous)->next = next;
		((struct hive_timer *)next)->previous = previous;
	}
	if (slot && slot->first == slot->last) /* W3 */
		slot->least_ns = slot->first->due_ns;
	return NULL;
}

/* ---- the rings ---- */

static inline uint32_t wheel_lowest_bit(uint64_t bits)
{
	return (uint32_t)__builtin_ctzll(bits);
}

static inline uint64_t wheel_digits(int64_t ns, uint32_t level)
{
	return (uint64_t)ns >> (level * WHEEL_SHIFT);
}

/* The lowest level whose slots reach it: the distance has six digits there at most; one level more if, counted in slots, it is
 * 64 all the same.                                                                                                          */
static inline uint32_t wheel_level(int64_t cursor_ns, int64_t due_ns)
{
	uint64_t distance = (uint64_t)due_ns - (uint64_t)cursor_ns;
	uint32_t level;

	if (distance < WHEEL_SLOTS)
		return 0;
	level = (63 - (uint32_t)__builtin_clzll(distance) - WHEEL_BITS) / WHEEL_SHIFT + 1;
	return level + (wheel_digits(due_ns, level) - wheel_digits(cursor_ns, level) >= WHEEL_SLOTS);
}

/* Not before the cursor. */
static inline void wheel_place(struct wheel *w, struct hive_timer *timer)
{
	uint32_t level = wheel_level(w->cursor_ns, timer->due_ns);
	uint32_t digit = (uint32_t)wheel_digits(timer->due_ns, level) % WHEEL_SLOTS;
	struct wheel_slot *slot = &w->slots[level * WHEEL_SLOTS + digit];

	if (level == 0 && slot->first && slot->last->sequence > timer->sequence)
		w->mixed |= UINT64_C(1) << digit;
	w->used[level] |= UINT64_C(1) << digit;
	w->used_levels |= 1u << level;
	wheel_append(slot, timer);
}

static inline void wheel_mark_empty(struct wheel *w, const struct wheel_slot *slot)
{
	size_t number = (size_t)(slot - w->slots), level = number / WHEEL_SLOTS;

	if (slot == &w->late || slot == &w->fresh)
		return;
	w->used[level] &= ~(UINT64_C(1) << number % WHEEL_SLOTS);
	if (level == 0)
		w->mixed &= ~(UINT64_C(1) << number);
	if (w->used[level] == 0)
		w->used_levels &= ~(1u << level);
}

/* The first slot of a level that holds something, counted from the cursor. */
static inline struct wheel_slot *wheel_first_slot(struct wheel *w, uint32_t level)
{
	uint32_t from = (uint32_t)wheel_digits(w->cursor_ns, level) % WHEEL_SLOTS;
	uint64_t ahead = w->used[level] >> from;
	uint32_t digit = ahead ? from + wheel_lowest_bit(ahead) : wheel_lowest_bit(w->used[level]);

	return &w->slots[level * WHEEL_SLOTS + digit];
}

/* Its first timer is its earliest. */
static inline bool wheel_is_ready(const struct wheel *w, const struct wheel_slot *slot)
{
	size_t number = (size_t)(slot - w->slots);

	return slot->first == slot->last || (number < WHEEL_SLOTS && !(w->mixed >> number & 1));
}

static inline bool wheel_slot_before(const struct wheel *w, const struct wheel_slot *a, const struct wheel_slot *b)
{
	if (a->least_ns != b->least_ns)
		return a->least_ns < b->least_ns;
	if (!wheel_is_ready(w, a) || !wheel_is_ready(w, b)) /* which of them comes first is not known yet */
		return !wheel_is_ready(w, a);
	return a->first->sequence < b->first->sequence;
}

/* The slot with the earliest least_ns; NULL: the rings are empty. */
static inline struct wheel_slot *wheel_earliest(struct wheel *w)
{
	struct wheel_slot *earliest = NULL;

	for (uint32_t levels = w->used_levels; levels; levels &= levels - 1) {
		struct wheel_slot *slot = wheel_first_slot(w, wheel_lowest_bit(levels));

		if (!earliest || wheel_slot_before(w, slot, earliest))
			earliest = slot;
	}
	return earliest;
}

/* ---- order: what came too late for the rings is sorted in batches, for it comes in batches ---- */

/* Two chains through next, in order, NULL at their ends, become one. */
static inline struct hive_timer *wheel_merge(struct hive_timer *a, struct hive_timer *b)
{
	struct hive_timer *first = NULL;
	void *none = NULL, **last = &none;

	while (a && b) {
		struct hive_timer **from = wheel_before(b, a) ? &b : &a, *taken = *from;

		*from = (struct hive_timer *)taken->next;
		if (!first)
			first = taken;
		*last = taken;
		last = &taken->next;
	}
	*last = a ? a : b;
	return first ? first : a ? a : b;
}

/* A chain through next in any order is put in order: runs of 1, 2, 4, … timers wait in a row until there are two of a length. */
static inline struct hive_timer *wheel_sort(struct hive_timer *chain)
{
	struct hive_timer *runs[32] = { NULL }, *all = NULL;

	while (chain) {
		struct hive_timer *run = chain;
		int i = 0;

		chain = (struct hive_timer *)chain->next;
		run->next = NULL;
		for (; runs[i]; i++) {
			run = wheel_merge(runs[i], run);
			runs[i] = NULL;
		}
		runs[i] = run;
	}
	for (int i = 0; i < 32; i++)
		all = wheel_merge(runs[i], all);
	return all;
}

/* All of a slot as a chain through next; the slot is empty. */
static inline struct hive_timer *wheel_chain(struct wheel_slot *slot)
{
	struct hive_timer *chain = slot->first;

	if (chain)
		slot->last->next = NULL;
	slot->first = slot->last = NULL;
	return chain;
}

static inline void wheel_append_chain(struct wheel_slot *slot, struct hive_timer *chain)
{
	while (chain) {
		struct hive_timer *next = (struct hive_timer *)chain->next;

		wheel_append(slot, chain);
		chain = next;
	}
}

static inline void wheel_settle_late(struct wheel *w)
{
	struct hive_timer *chain = wheel_sort(wheel_chain(&w->fresh));

	if (w->late.first && wheel_before(chain, w->late.last))
		chain = wheel_merge(wheel_chain(&w->late), chain);
	wheel_append_chain(&w->late, chain);
}

/* A slot whose time has come, with several timers: to lower levels, or in order if there is none. */
static inline void wheel_deal_out(struct wheel *w, struct wheel_slot *slot)
{
	struct hive_timer *chain = wheel_chain(slot);

	if (slot < w->slots + WHEEL_SLOTS) {
		w->mixed &= ~(UINT64_C(1) << (slot - w->slots));
		wheel_append_chain(slot, wheel_sort(chain));
		return;
	}
	wheel_mark_empty(w, slot);
	while (chain) {
		struct hive_timer *next = (struct hive_timer *)chain->next;

		wheel_place(w, chain);
		chain = next;
	}
}

/* A few timers of the lowest level's first crowd that is a slot ahead at most, to lower levels. */
static inline void wheel_deal_ahead(struct wheel *w)
{
	for (uint32_t levels = w->used_levels & ~1u; levels; levels &= levels - 1) {
		uint32_t level = wheel_lowest_bit(levels);
		struct wheel_slot *slot = wheel_first_slot(w, level);

		if (slot->filled <= WHEEL_CROWD ||
		    wheel_digits(slot->least_ns, level) - wheel_digits(w->cursor_ns, level) > 1)
			continue;
		for (int n = 0; n < WHEEL_AHEAD && slot->first; n++) {
			struct hive_timer *timer = slot->first;

			if (wheel_unlink(timer))
				wheel_mark_empty(w, slot);
			wheel_place(w, timer);
		}
		return;
	}
}

/* ---- the wheel ---- */

/* While it is empty the clock may have gone on for long: what comes next is spread from here. */
static inline void wheel_begin(struct wheel *w, int64_t now_ns)
{
	if (w->count == 0 && now_ns > w->cursor_ns)
		w->cursor_ns = now_ns;
}

/* The timer's due_ns and sequence say where it belongs. Cannot fail. */
static inline void wheel_insert(struct wheel *w, struct hive_timer *timer)
{
	if (timer->due_ns < w->cursor_ns)
		wheel_append(&w->fresh, timer);
	else
		wheel_place(w, timer);
	w->count++;
}

/* The timer is inside. */
static inline void wheel_remove(struct wheel *w, struct hive_timer *timer)
{
	struct wheel_slot *slot = wheel_unlink(timer);

	if (slot)
		wheel_mark_empty(w, slot);
	w->count--;
}

/* The earliest timer, if its time has come; else NULL. */
static inline struct hive_timer *wheel_first_due(struct wheel *w, int64_t now_ns)
{
	struct hive_timer *due = NULL;
	struct wheel_slot *slot;

	if (w->fresh.first)
		wheel_settle_late(w);
	if (w->late.first)
		return w->late.first->due_ns <= now_ns ? w->late.first : NULL;
	while ((slot = wheel_earliest(w)) != NULL && slot->least_ns <= now_ns) {
		w->cursor_ns = slot->least_ns;
		if (wheel_is_ready(w, slot)) {
			due = slot->first;
			break;
		}
		wheel_deal_out(w, slot);
	}
	if (!due && slot && now_ns > w->cursor_ns)
		w->cursor_ns = now_ns;
	wheel_deal_ahead(w);
	return due;
}

/* No later than the earliest timer; mostly exact (see above). HIVE_FOREVER when empty. */
static inline int64_t wheel_next_due(struct wheel *w)
{
	const struct wheel_slot *slot = w->late.first || w->fresh.first ? NULL : wheel_earliest(w);
	int64_t due = slot ? slot->least_ns : HIVE_FOREVER;

	if (w->late.first)
		due = w->late.first->due_ns;
	if (w->fresh.first && w->fresh.least_ns < due)
		due = w->fresh.least_ns;
	return due;
}

/* The timers in no order, each once: the one after `timer`, or with NULL the first. The one before may be gone by then if it
 * was asked for its successor before. NULL: no more.                                                                        */
static inline struct hive_timer *wheel_each(const struct wheel *w, const struct hive_timer *timer)
{
	const struct wheel_slot *slots = w->slots;
	size_t number = 0;

	if (timer && !wheel_is_end(timer->next))
		return (struct hive_timer *)timer->next;
	if (timer) {
		const struct wheel_slot *slot = wheel_slot_of(timer->next);

		if (slot == &w->fresh)
			return NULL;
		if (slot == &w->late)
			return w->fresh.first;
		number = (size_t)(slot - slots) + 1;
	}
	for (; number < WHEEL_LEVELS * WHEEL_SLOTS; number++)
		if (slots[number].first)
			return slots[number].first;
	return w->late.first ? w->late.first : w->fresh.first;
}

static inline bool wheel_slot_valid(const struct wheel *w, const struct wheel_slot *slot, uint32_t level,
                                    uint32_t digit)
{
	const void *before = (const void *)((uintptr_t)slot | WHEEL_END);
	uint32_t n = 0;

	for (const struct hive_timer *t = slot->first; t; n++, before = t, t = wheel_after(t)) {
		uint64_t slots_ahead = wheel_digits(t->due_ns, level) - wheel_digits(w->cursor_ns, level);

		if (t->previous != before || t->due_ns < w->cursor_ns || t->due_ns < slot->least_ns ||
		    wheel_digits(t->due_ns, level) % WHEEL_SLOTS != digit || slots_ahead >= WHEEL_SLOTS)
			return false;
		if (level == 0 && n > 0 && !(w->mixed >> digit & 1) &&
		    ((const struct hive_timer *)before)->sequence > t->sequence)
			return false;
	}
	return n != 1 || slot->least_ns == slot->first->due_ns;
}

/* W1 to W3, lists, bits and count. For tests. */
static inline bool wheel_valid(const struct wheel *w)
{
	uint32_t inside = 0;

	for (uint32_t i = 0; i < WHEEL_LEVELS * WHEEL_SLOTS; i++) {
		uint32_t level = i / WHEEL_SLOTS, digit = i % WHEEL_SLOTS;

		if (!w->slots[i].first != !(w->used[level] >> digit & 1) ||
		    !w->used[level] != !(w->used_levels >> level & 1))
			return false;
		if (w->slots[i].first && !wheel_slot_valid(w, &w->slots[i], level, digit))
			return false;
	}
	for (const struct hive_timer *t = w->late.first; t; t = wheel_after(t))
		if (t->due_ns >= w->cursor_ns || (wheel_after(t) && wheel_before(wheel_after(t), t)))
			return false;
	for (const struct hive_timer *t = wheel_each(w, NULL); t; t = wheel_each(w, t))
		inside++;
	return inside == w->count;
}
