/* SPDX-License-Identifier: MIT */
#pragma once
/* The name of a fiber that waits at a seat, and the place on its stack where it wants the result.
 *
 * The desk's thread alone writes a name and calls by it. The wait may end without it, on any thread; then the name is an old one, which
 * calls nobody, and the place is not the fiber's any more: so it is written to between the claim and making the fiber ready only,
 * while it can go on by nobody else.                                                                                        */
#include "fiber/wait.h"

#if !defined(HIVE_MODEL) /* which looks at each access */
typedef int sitter_result;
#endif

struct sitter {
	struct wait wait;      /* who NULL: nobody */
	sitter_result *result; /* on its stack */
};

/* By the name that is there; the cell is its own. OURS_PARKED: the caller makes the fiber ready. */
static inline enum cell_claim sitter_claim(struct sitter *sitter, struct cell *cell, int result)
{
	enum cell_claim claim = cell_claim(cell, sitter->wait.turn, CELL_WOKEN);

	sitter->wait.who = NULL;
	if (claim != CELL_NOT_OURS)
		*sitter->result = result; /* it has parked, or is about to, on this very thread */
	return claim;
}
