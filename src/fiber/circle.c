/* SPDX-License-Identifier: MIT */
/* Waits that lead back to who waits, in debug builds: "a waits for a mutex that b holds, who waits for the end of a".
 *
 * Who waits without a deadline for somebody who can be named (the holder of a mutex, a fiber that is joined) is entered here first, and goes
 * from there to whom that one waits for, and so on. If that leads back to himself, none of them goes on unless somebody cancels one: he
 * reports it and does not wait. The last one to enter sees all others, for there is one lock; so each circle is found once.
 *
 * Nobody touches who does not wait: he is found by his address among those who do. Who has been entered stays in his wait until he has been
 * struck off, under the same lock; and so does the mutex that he waits for. One whose wait has ended and who has not been struck off yet, as he has
 * been woken, cancelled or handed the mutex, ends the way.                                                                 */
#include "fiber/fiber.h"

#if defined(HIVE_DEBUG)
#include <stdio.h>

#include <rophive/hive.h>

enum { BUCKETS = 1024, STEPS_TOLD = 8, STEP_BYTES = 160 };

struct edge { /* on the stack of who waits */
	struct edge *next;
	struct wait wait;
	uintptr_t whom;
};

static struct lock lock;
static struct edge *edges[BUCKETS]; /* L lock  by who waits */
static uint64_t edge_count;         /* L lock */

static struct edge **bucket_of(const struct waiter *who)
{
	return &edges[(uint64_t)(uintptr_t)who * UINT64_C(0x9e3779b97f4a7c15) >> 54];
}

static void enter(struct edge *edge)
{
	struct edge **bucket = bucket_of(edge->wait.who);

	edge->next = *bucket;
	*bucket = edge;
	edge_count++;
}

static void strike_off(struct edge *edge)
{
	struct edge **at = bucket_of(edge->wait.who);

	lock_acquire(&lock);
	while (*at != edge)
		at = &(*at)->next;
	*at = edge->next;
	edge_count--;
	lock_release(&lock);
}

static struct edge *find(const struct waiter *who)
{
	struct edge *edge = *bucket_of(who);

	while (edge && edge->wait.who != who)
		edge = edge->next;
	return edge;
}

static const struct waiter *whom_of(const struct edge *edge)
{
	uintptr_t whom = edge->whom;

	if (!(whom & 1))
		return (const struct waiter *)((uintptr_t)load_relaxed((const ATOMIC(uint64_t) *)whom) & ~(uintptr_t)7);
	return (const struct waiter *)(whom & ~(uintptr_t)1);
}

/* Under the lock. How many waits lead from it back to it; 0: they do not. */
static uint64_t measure(const struct edge *first)
{
	const struct edge *at = first;

	for (uint64_t n = 1; n <= edge_count && hive__wait_is_on(at->wait); n++) {
		const struct waiter *whom = whom_of(at);

		if (whom == first->wait.who)
			return n;
		at = find(whom);
		if (!at)
			return 0;
	}
	return 0;
}

/* Of one who is known to wait, or who calls. */
static void spell(const struct waiter *who, char ret_text[WHOM_BYTES])
{
	struct whom whom = { .waiter = (uintptr_t)who, .thread = who->thread };

	if (!who->thread)
		fiber_name_read(fiber_of_waiter((uintptr_t)who), whom.name);
	hive__spell_whom(&whom, ret_text);
}

static void describe(const struct edge *edge, char ret_text[STEP_BYTES])
{
	char self[WHOM_BYTES], other[WHOM_BYTES];

	spell(edge->wait.who, self);
	spell(whom_of(edge), other);
	if (edge->whom & 1)
		snprintf(ret_text, STEP_BYTES, "  %s waits for the end of %s", self, other);
	else
		snprintf(ret_text, STEP_BYTES, "  %s waits for mutex 0x%zx, held by %s", self, (size_t)edge->whom,
		         other);
}

/* With the lock, which it gives back. The first steps are written down while all stand still; told is it when others may go on. True: it
 * was so, and the wait has been given up, unless it is shielded. */
static __attribute__((noinline)) bool report(const struct edge *first, uint64_t length, bool shielded)
{
	struct hive *hive = first->wait.who->thread ? hive_current()
	                                            : fiber_of_waiter((uintptr_t)first->wait.who)->hive;
	char steps[STEPS_TOLD][STEP_BYTES], self[WHOM_BYTES], line[STEP_BYTES];
	const struct edge *at = first;
	uint64_t told = length < STEPS_TOLD ? length : STEPS_TOLD;

	for (uint64_t i = 0; i < told; i++, at = find(whom_of(at)))
		describe(at, steps[i]);
	spell(first->wait.who, self);
	lock_release(&lock);
	if (!shielded) {
		if (cell_claim(&first->wait.who->cell, first->wait.turn, CELL_LATE) == CELL_NOT_OURS)
			return false;
		waiter_result(first->wait.who);
	}
	snprintf(line, sizeof line, "deadlock: %s would wait for ever, %llu in a circle:", self,
	         (unsigned long long)length);
	hive__guest_warn(hive, line);
	for (uint64_t i = 0; i < told; i++)
		hive__guest_warn(hive, steps[i]);
	if (told < length)
		hive__guest_warn(hive, "  and so on");
	return true;
}

int hive__wait_end_whom(struct wait wait, int64_t deadline_ns, bool shielded)
{
	struct edge edge = { NULL, wait, load_relaxed(&wait.who->detail) };
	uint64_t length;
	int r;

	if (deadline_ns != HIVE_FOREVER)
		return hive__wait_end(wait, deadline_ns);
	lock_acquire(&lock);
	enter(&edge);
	length = measure(&edge);
	if (length == 0) {
		lock_release(&lock);
		r = hive__wait_end(wait, HIVE_FOREVER);
	} else if (!report(&edge, length, shielded)) {
		r = hive__wait_end(wait, HIVE_FOREVER); /* it has ended meanwhile: woken, or cancelled */
	} else {
		r = shielded ? hive__wait_end(wait, HIVE_FOREVER) : -EDEADLK;
	}
	strike_off(&edge);
	return r;
}
#endif
