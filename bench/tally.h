/* SPDX-License-Identifier: MIT */
#pragma once
#include "sync.h"
#include <stddef.h>

/* What the body of a measured task does: one increment. Each thread has a cell of its own, so the counter is neither
 * contended nor a locked instruction, and yet the total is exact.                                                  */
struct tally_cell {
	_Alignas(SYNC_LINE) _Atomic uint64_t count;
};

extern _Thread_local struct tally_cell *tally_mine;
struct tally_cell *tally_claim(void);

static inline void tally_add(void)
{
	struct tally_cell *cell = tally_mine ? tally_mine : tally_claim();
	uint64_t count = atomic_load_explicit(&cell->count, memory_order_relaxed);
	/* Only this thread writes it. Release: who sees the total may read what the tasks wrote. */
	atomic_store_explicit(&cell->count, count + 1, memory_order_release);
}

uint64_t tally_total(void);
/* First error of a task or thread that has nobody to return it to; 0: none. Waits end early when there is one. */
void tally_fail(int error);
int tally_error(void);
/* Sleeps in steps until the total has grown to target; the bench's exit code. */
int tally_wait(uint64_t target, int64_t limit_ns, int64_t step_ns);

/* The one-increment task itself. */
void tally_task(void *unused);
