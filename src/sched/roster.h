/* SPDX-License-Identifier: MIT */
#pragma once
/* Who takes part, as a list: an immutable snapshot, for whoever draws one of many.
 *
 * There are several sheets. Whoever changes the list, under registry_lock, fills the sheet that has not been used for the longest time and turns
 * to it. A reader looks at the current sheet, takes from it what he wants, and asks whether the sheet still is the one; if it is not, he
 * begins anew. So readers write nothing and wait for nobody; nobody waits for a reader, however long he is held up; and there is
 * nothing to free. What they get are indices of slots, whose memory stays (slots.h, R1).
 *
 *   ROSTER-1  Who turned the page has filled it: its version is the page's number.
 *   ROSTER-3  Who sees one word of a later filling sees that the version is gone.                                          */
#include "base/atomic.h"

#if !defined(SLOTS_MAX)
#include <rophive/worker.h>
#define SLOTS_MAX HIVE_WORKERS_MAX
#endif
#if !defined(ROSTER_SHEETS)
#define ROSTER_SHEETS 4
#endif

struct roster_sheet {
	ATOMIC(uint32_t) version; /* A  number of the page; 0: being filled */
	ATOMIC(uint32_t) count;   /* A */
	ATOMIC(uint16_t) slots[SLOTS_MAX];
};

struct roster {
	ATOMIC(uint32_t) page; /* A  whose sheet is current; 0: nobody was ever there */
	struct roster_sheet sheets[ROSTER_SHEETS];
};

struct roster_view { /* what a reader has seen */
	struct roster_sheet *sheet;
	uint32_t version, count;
};

/* Any thread. */
static inline struct roster_view roster_look(struct roster *r)
{
	struct roster_view view;

	view.version = load_acquire(&r->page); /* ROSTER-1 (pairs with ROSTER-2) */
	view.sheet = &r->sheets[view.version % ROSTER_SHEETS];
	view.count = view.version == 0 ? 0 : load_acquire(&view.sheet->count); /* ROSTER-3 (pairs with ROSTER-4) */
	return view;
}

/* The slot that stands at place i, below count. Nothing counts before roster_holds() has said so, but it is a slot in any case. */
static inline uint32_t roster_at(const struct roster_view *view, uint32_t i)
{
	return load_acquire(&view->sheet->slots[i]); /* ROSTER-3 (pairs with ROSTER-4) */
}

/* True: all that was read belongs together. */
static inline bool roster_holds(const struct roster_view *view)
{
	return view->version == 0 || load_relaxed(&view->sheet->version) == view->version;
}

/* Under registry_lock. The list is this from now on. */
static inline void roster_write(struct roster *r, const uint16_t *slots, uint32_t count)
{
	uint32_t page = load_relaxed(&r->page) + 1;
	struct roster_sheet *sheet;

	if (page == 0)
		page = ROSTER_SHEETS; /* after a wrap: the same sheet, and no number of old that somebody may remember */
	sheet = &r->sheets[page % ROSTER_SHEETS];
	store_relaxed(&sheet->version, 0u);
	store_release(&sheet->count, count); /* ROSTER-4 (pairs with ROSTER-3) */
	for (uint32_t i = 0; i < count; i++)
		store_release(&sheet->slots[i], slots[i]); /* ROSTER-4 (pairs with ROSTER-3) */
	store_relaxed(&sheet->version, page);
	store_release(&r->page, page); /* ROSTER-2 (pairs with ROSTER-1) */
}
