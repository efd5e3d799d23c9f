/* SPDX-License-Identifier: MIT */
#pragma once
/* How many a node waits for, and how many of them have not ended in this run. Whoever ends last has the node, and sees what the others did. */
#include "base/refs.h"

struct countdown {
	ATOMIC(uint32_t) left; /* A */
	uint32_t needs;        /* I while it is counted */
};

/* Who builds, and in each run who has the node, before anything behind it is counted: from then on the next run may count this one. */
static inline void countdown_begin(struct countdown *c)
{
	store_relaxed(&c->left, c->needs);
}

/* One that it waits for has ended. True: that was the last, and the node is the caller's. */
static inline bool countdown_is_last(struct countdown *c)
{
	return refs_drop(&c->left);
}
