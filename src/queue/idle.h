/* SPDX-License-Identifier: MIT */
#pragma once
/* Who sleeps, and how many search. One bit per worker says who; one word counts both.
 *
 * Race: a poster puts a task and sees nobody asleep, while a worker has looked for the last time and falls asleep. So
 *   the sleeper announces itself (SLEEP-1, a seq_cst write), then looks at the queues (seq_cst loads);
 *   the poster puts (a seq_cst write), then looks at the count (WAKE-1, a seq_cst load).
 * In the one order of all seq_cst operations one of the two writes is first, and the other side's load sees it.
 *
 * A poster wakes nobody while somebody searches: a searcher ends its search by a seq_cst write and then looks again if
 * it was the last, so what it did not see was put after that, by a poster that saw no searcher.
 *
 *   S1  A bit is set before the count rises: who sees a sleeper in the count finds its bit, unless somebody else has
 *       claimed it. (The other way round, the last searcher could see a sleeper, find no bit, and leave; and the sleeper,
 *       who saw a searcher, would not look.)
 *   W2  Who clears a bit owns the wake: the worker itself (it retracts), or a claimer, who must wake it exactly once.
 *       A claimed worker counts as a searcher from that moment on.
 *   S2  The number of searchers is never too large. It may be too small, even negative, for a moment: a claimed worker
 *       can end its search before its claimer has entered it. Likewise sleepers may be too many, never too few. These
 *       errors cost a wake or a look; the opposite ones would lose a task. So only what makes sleepers more or searchers
 *       fewer is seq_cst; the other changes of the count may be seen late.
 *   S3  A worker that announced itself, looked and found something is no searcher any more: after taking its share it must
 *       look whether there is more, for posters woke nobody while it searched.                                           */
#include "base/atomic.h"

#if !defined(IDLE_WORKERS)
#define IDLE_WORKERS 1024
#endif
#define IDLE_WORDS ((IDLE_WORKERS + 63) / 64)

#define IDLE_SLEEPER ((uint64_t)1)
#define IDLE_SEARCHER ((uint64_t)1 << 32)
#define IDLE_NOBODY UINT32_MAX
#define IDLE_LAST UINT16_MAX /* as the CPU of one that shall be claimed after all others of its word */

struct idle {
	alignas(CACHE_LINE) ATOMIC(uint64_t) count;              /* A  sleepers + searchers << 32 */
	alignas(CACHE_LINE) ATOMIC(uint64_t) asleep[IDLE_WORDS]; /* A */
	ATOMIC(uint16_t) cpu[IDLE_WORKERS];                      /* S  where each ran when it fell asleep */
};

static inline void idle_init(struct idle *s)
{
	store_relaxed(&s->count, (uint64_t)0);
	for (int i = 0; i < IDLE_WORDS; i++)
		store_relaxed(&s->asleep[i], (uint64_t)0);
	for (int i = 0; i < IDLE_WORKERS; i++)
		store_relaxed(&s->cpu[i], (uint16_t)0); /* a claimer may see the bit first */
}

static inline uint32_t idle_sleepers(uint64_t count)
{
	return (uint32_t)count;
}

/* Negative for a moment now and then: see S2. */
static inline int32_t idle_searchers(uint64_t count)
{
	return (int32_t)(uint32_t)(count >> 32);
}

static inline uint64_t idle_bit(uint32_t worker)
{
	return (uint64_t)1 << (worker % 64);
}

/* Worker `worker` only. From here on others may claim it. Returns how many others search: if any, they will look at the
 * shared queues after this moment, so the sleeper need only look at its own.                                          */
static inline uint32_t idle_announce(struct idle *s, uint32_t worker, bool was_searching, uint32_t cpu)
{
	uint64_t before;
	int32_t others;

	store_relaxed(&s->cpu[worker], (uint16_t)cpu);
	or_seq(&s->asleep[worker / 64], idle_bit(worker)); /* SLEEP-3 (pairs with WAKE-2 and WAKE-3) */
	/* SLEEP-1 (pairs with WAKE-1) */
	before = add_seq(&s->count, IDLE_SLEEPER - (was_searching ? IDLE_SEARCHER : 0));
	others = idle_searchers(before) - (was_searching ? 1 : 0);
	return others > 0 ? (uint32_t)others : 0;
}

/* Worker `worker` only. True: somebody claimed it, so it counts as a searcher and a wake is on its way or there. Needs no
 * order: a worker that is up announces itself and looks before it sleeps again.                                        */
static inline bool idle_retract(struct idle *s, uint32_t worker)
{
	if (!(and_relaxed(&s->asleep[worker / 64], ~idle_bit(worker)) & idle_bit(worker)))
		return true;
	sub_relaxed(&s->count, IDLE_SLEEPER);
	return false;
}

/* Any thread. Is it worth looking for a sleeper? Call after the task was put. */
static inline bool idle_needs_wake(struct idle *s)
{
	uint64_t count = load_seq(&s->count); /* WAKE-1 (pairs with SLEEP-1 and SLEEP-2) */

	return idle_sleepers(count) > 0 && idle_searchers(count) <= 0;
}

/* Any thread. True: the caller has claimed this very worker, sees what that wrote before it fell asleep, and must wake it. */
static inline bool idle_claim(struct idle *s, uint32_t worker)
{
	uint64_t bit = idle_bit(worker);

	if (!(load_seq(&s->asleep[worker / 64]) & bit)) /* WAKE-2 (pairs with SLEEP-3) */
		return false;
	if (!(and_acquire(&s->asleep[worker / 64], ~bit) & bit)) /* WAKE-3 (pairs with SLEEP-3) */
		return false;
	add_relaxed(&s->count, IDLE_SEARCHER - IDLE_SLEEPER);
	return true;
}

/* Any thread. A hint, and no more: it may just fall asleep or get up. */
static inline bool idle_is_asleep(struct idle *s, uint32_t worker)
{
	return load_relaxed(&s->asleep[worker / 64]) & idle_bit(worker);
}

/* The sleeper of one word that is cheapest to reach: one that last ran on the caller's CPU, else any, else one that wants to be the last. */
static inline uint32_t idle_choose(struct idle *s, uint32_t word, uint64_t bits, uint32_t cpu)
{
	uint32_t any = IDLE_NOBODY;

	for (uint64_t rest = bits; rest; rest &= rest - 1) {
		uint32_t worker = word * 64 + (uint32_t)__builtin_ctzll(rest), its = load_relaxed(&s->cpu[worker]);

		if (its == cpu)
			return worker;
		if (any == IDLE_NOBODY && its != IDLE_LAST)
			any = worker;
	}
	return any != IDLE_NOBODY ? any : word * 64 + (uint32_t)__builtin_ctzll(bits);
}

/* Any thread that saw one in the count (S1). Claims one sleeper; workers from `limit` on, rounded up to 64, are not looked at. IDLE_NOBODY: there is none.
 * The claimer must wake it.                                                                                             */
static inline uint32_t idle_claim_one(struct idle *s, uint32_t limit, uint32_t cpu)
{
	for (uint32_t word = 0; word * 64 < limit; word++) {
		uint64_t bits;

		while ((bits = load_relaxed(&s->asleep[word])) != 0) {
			uint32_t worker = idle_choose(s, word, bits, cpu);

			if (idle_claim(s, worker))
				return worker;
		}
	}
	return IDLE_NOBODY;
}

/* A worker that is awake. True: it may search now. At most half of the workers do, rounded up, by exact count. */
static inline bool idle_search_begin(struct idle *s, uint32_t workers)
{
	uint64_t count = load_relaxed(&s->count);

	do {
		if (2 * idle_searchers(count) >= (int32_t)workers)
			return false;
	} while (!cas_relaxed(&s->count, &count, count + IDLE_SEARCHER));
	return true;
}

/* The claimer, after the wake was delivered; `woken` counts them for the worker. */
static inline void idle_wake_delivered(ATOMIC(uint32_t) *woken)
{
	add_release(woken, 1u); /* CLAIM-1 (pairs with CLAIM-2) */
}

/* The worker. False: a claimer is still at it, and may be using what the worker is about to close. */
static inline bool idle_wakes_delivered(ATOMIC(uint32_t) *woken, uint32_t claims)
{
	return load_acquire(woken) == claims; /* CLAIM-2 (pairs with CLAIM-1) */
}

/* The searcher. True: it was the last one and somebody sleeps, so it must look whether there is more to do. */
static inline bool idle_search_end(struct idle *s)
{
	uint64_t before = sub_seq(&s->count, IDLE_SEARCHER); /* SLEEP-2 (pairs with WAKE-1) */

	return idle_searchers(before) <= 1 && idle_sleepers(before) > 0;
}
