/* SPDX-License-Identifier: MIT */
#pragma once
/* How workers become visible to threads that hold no lock: posters, thieves, wakers.
 *
 *   FREE SLOT --slots_publish--> the memory can be looked at, for ever (R1)
 *   --slots_name--> this life can be found by its id (R2)    --slots_set_live--> it takes part (R3)
 *   --slots_unname, slots_set_live(false)--> late visitors may still be at it; the memory stays
 *
 *   R1  Slots below the limit exist and never go away. So does every slot whose live bit was seen.
 *   R2  Who finds an id finds what was renewed for that life: an open inbox.
 *   R3  Who sees the live bit sees the id, unless it was taken away again meanwhile.
 * Changes are made under registry_lock; only the looking is free.                                                     */
#include "queue/idle.h"
#include "sched/roster.h"

#include <rophive/worker.h>

#if !defined(SLOTS_MAX)
#define SLOTS_MAX HIVE_WORKERS_MAX
#endif
#define SLOTS_WORDS ((SLOTS_MAX + 63) / 64)

struct worker;

struct workers {                                  /* of one kind */
	ATOMIC(struct worker *) slots[SLOTS_MAX]; /* A  made under registry_lock, never unmade before destroy */
	ATOMIC(uint64_t) live[SLOTS_WORDS];       /* A  bit: takes part */
	ATOMIC(uint32_t) limit;                   /* A  slots[limit …] were never used */
	ATOMIC(uint32_t) count;                   /* A  live ones */
	struct idle idle;                         /* A */
	struct roster roster;                     /* A  the live ones */
};

/* Slots below it exist. */
static inline uint32_t hive__limit(struct workers *set)
{
	return load_acquire(&set->limit); /* SLOT-1 (pairs with SLOT-2) */
}

static inline struct worker *hive__slot(const struct workers *set, uint32_t index)
{
	return load_relaxed(&set->slots[index]);
}

/* Under registry_lock. The next slot, with a worker that is complete. */
static inline void slots_publish(struct workers *set, uint32_t index, struct worker *w)
{
	store_relaxed(&set->slots[index], w);
	store_release(&set->limit, index + 1); /* SLOT-2 (pairs with SLOT-1) */
}

static inline bool hive__is_live(struct workers *set, uint32_t index)
{
	/* LIVE-2 (pairs with LIVE-1) */
	return load_acquire(&set->live[index / 64]) & (uint64_t)1 << (index % 64);
}

/* Under registry_lock. */
static inline void slots_list(struct workers *set)
{
	uint16_t live[SLOTS_MAX];
	uint32_t n = 0;

	for (uint32_t i = 0; i < load_relaxed(&set->limit); i++)
		if (load_relaxed(&set->live[i / 64]) & (uint64_t)1 << (i % 64))
			live[n++] = (uint16_t)i;
	roster_write(&set->roster, live, n);
}

/* Under registry_lock. From here on it takes part; false: not any more. */
static inline void slots_set_live(struct workers *set, uint32_t index, bool live)
{
	uint64_t bit = (uint64_t)1 << (index % 64);

	if (live) {
		or_release(&set->live[index / 64], bit); /* LIVE-1 (pairs with LIVE-2) */
		add_relaxed(&set->count, 1u);
	} else {
		and_relaxed(&set->live[index / 64], ~bit);
		sub_relaxed(&set->count, 1u);
	}
	slots_list(set);
}

/* Under registry_lock. Everything is renewed and the inbox is open: this life has a name. */
static inline void slots_name(ATOMIC(uint32_t) *id, uint32_t name)
{
	store_release(id, name); /* NAME-1 (pairs with NAME-2) */
}

static inline void slots_unname(ATOMIC(uint32_t) *id)
{
	store_relaxed(id, HIVE_WORKER_NONE);
}

static inline uint32_t slots_name_of(ATOMIC(uint32_t) *id)
{
	return load_acquire(id); /* NAME-2 (pairs with NAME-1) */
}

/* The first IO worker, once attached; it stays. */
static inline void slots_publish_main(ATOMIC(struct worker *) *main, struct worker *w)
{
	store_release(main, w); /* MAIN-1 (pairs with MAIN-2) */
}

static inline struct worker *slots_main(ATOMIC(struct worker *) *main)
{
	return load_acquire(main); /* MAIN-2 (pairs with MAIN-1) */
}
