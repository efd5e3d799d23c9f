/* SPDX-License-Identifier: MIT */
#pragma once
/* The cell in which one waits: a word that says which of its waits is under way, and how far.
 *
 *   AWAKE --begin--> WAITING --park--> PARKED          one of WOKEN, LATE, CANCELLED; then AWAKE again
 *                       |                 |                 ^
 *                       +----- claim -----+-----------------+
 *
 * Many may claim, one does: the one whose compare-and-swap ends the wait. It wakes the owner if that one was PARKED; else the
 * owner sees the claim when it tries to park. So the owner goes on exactly once for each wait, and whoever claims touches the
 * cell for the last time with that compare-and-swap, or owns what it has to wake.
 *
 * A turn is the number of a wait. Who was told (cell, turn) and comes too late finds another turn, and does nothing; cells are
 * in memory that stays (stacks of fibers, or thread-locals of a thread that waits for its token).
 *
 * Race: cancelling against parking.
 *   the canceller writes what says so, then looks at the cell (CELL-4, a seq_cst load);
 *   who parks changes the cell (CELL-2, seq_cst), then looks for what says so.
 * One of them sees the other. A shielded wait is not cancelled.                                                              */
#include "base/atomic.h"

enum cell_phase { CELL_AWAKE, CELL_WAITING, CELL_PARKED, CELL_WOKEN, CELL_LATE, CELL_CANCELLED };

#define CELL_PHASE 7u  /* mask */
#define CELL_SHIELD 8u /* this wait is not cancelled */
#define CELL_TURN_SHIFT 4

struct cell {
	ATOMIC(uint64_t) word; /* turn << 4 | shield | phase */
};

static inline enum cell_phase cell_phase_of(uint64_t word)
{
	return (enum cell_phase)(word & CELL_PHASE);
}

/* Owner. The number of the wait that begins. */
static inline uint64_t cell_begin(struct cell *c, bool shielded)
{
	uint64_t turn = (load_relaxed(&c->word) >> CELL_TURN_SHIFT) + 1;

	/* CELL-1: who learns of this wait learns it from a list, with the list's own order. */
	store_relaxed(&c->word, turn << CELL_TURN_SHIFT | (shielded ? CELL_SHIELD : 0u) | CELL_WAITING);
	return turn;
}

/* Whoever runs the owner, once its context is saved. False: it was claimed meanwhile, and goes on. */
static inline bool cell_park(struct cell *c)
{
	uint64_t word = load_relaxed(&c->word);

	return cell_phase_of(word) == CELL_WAITING &&
	       cas_seq(&c->word, &word,
	               (word & ~(uint64_t)CELL_PHASE) | CELL_PARKED); /* CELL-2 (pairs with CELL-3 and CELL-4) */
}

enum cell_claim { CELL_NOT_OURS, CELL_OURS, CELL_OURS_PARKED };

static inline enum cell_claim cell_claim_word(struct cell *c, uint64_t word, uint64_t turn, enum cell_phase as)
{
	while (word >> CELL_TURN_SHIFT == turn) {
		enum cell_phase phase = cell_phase_of(word);

		if (phase != CELL_WAITING && phase != CELL_PARKED)
			return CELL_NOT_OURS;
		if (as == CELL_CANCELLED && (word & CELL_SHIELD))
			return CELL_NOT_OURS;
		/* CELL-3 (pairs with CELL-2 and CELL-5): sees the saved context, shows what was done before the wake */
		if (cas_acq_rel(&c->word, &word, (word & ~(uint64_t)CELL_PHASE) | as))
			return phase == CELL_PARKED ? CELL_OURS_PARKED : CELL_OURS;
	}
	return CELL_NOT_OURS;
}

/* Any thread. OURS_PARKED: the caller has to make the owner run. */
static inline enum cell_claim cell_claim(struct cell *c, uint64_t turn, enum cell_phase as)
{
	return cell_claim_word(c, load_relaxed(&c->word), turn, as);
}

/* Any thread. This wait has not ended. */
static inline bool cell_waits(const struct cell *c, uint64_t turn)
{
	uint64_t word = load_relaxed(&c->word);

	return word >> CELL_TURN_SHIFT == turn &&
	       (cell_phase_of(word) == CELL_WAITING || cell_phase_of(word) == CELL_PARKED);
}

/* Any thread, after it has written down that waits shall end. Whatever wait is under way. */
static inline enum cell_claim cell_cancel(struct cell *c)
{
	uint64_t word = load_seq(&c->word); /* CELL-4 (pairs with CELL-2) */

	return cell_claim_word(c, word, word >> CELL_TURN_SHIFT, CELL_CANCELLED);
}

/* Owner, when it goes on. How the wait ended. */
static inline enum cell_phase cell_end(struct cell *c)
{
	uint64_t word = load_acquire(&c->word); /* CELL-5 (pairs with CELL-3) */

	store_relaxed(&c->word, word & ~(uint64_t)(CELL_PHASE | CELL_SHIELD));
	return cell_phase_of(word);
}
