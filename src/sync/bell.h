/* SPDX-License-Identifier: MIT */
#pragma once
/* What oneshot, watch and broadcast share: a word with a latch, and a list of those who wait until something has changed. All of them are woken, and
 * look again; so nobody is forgotten, whoever of them gets what there is.                                                */
#include "arm.h"
#include "words.h"

#define BELL_CLOSED UINT64_C(4) /* nothing will come any more */
#define BELL_BITS 3             /* further ones belong to the object */

struct bell {
	ATOMIC(uint64_t) word; /* A */
	struct wait_list list; /* L the word's latch */
};

/* Under the latch, which it gives back: all who wait look again. */
static inline void bell_ring(struct bell *bell, uint64_t word)
{
	struct wait_node *node;
	struct wakes wakes;

	wakes_init(&wakes);
	while ((node = node_take(&bell->list)))
		wakes_claim(&wakes, node);
	latch_give(&bell->word, word & ~WORD_WAITERS);
	wakes_deliver(&wakes);
}

/* -EALREADY: it is closed. */
static inline int bell_close(struct bell *bell)
{
	uint64_t word = latch_take(&bell->word);

	if (word & BELL_CLOSED) {
		latch_give(&bell->word, word);
		return -EALREADY;
	}
	bell_ring(bell, word | BELL_CLOSED);
	return 0;
}

/* Somebody waits there. */
static inline bool bell_is_used(struct bell *bell)
{
	uint64_t word = latch_take(&bell->word);

	latch_give(&bell->word, word);
	return word & WORD_WAITERS;
}

/* Whoever waits enters with what he has seen under the latch: ready, and then he need not. */
static inline bool bell_enlist(struct bell *bell, uint64_t word, bool ready, struct arm *arm, struct wait wait)
{
	if (!ready) {
		node_add(&bell->list, &arm->node.node, wait);
		word |= WORD_WAITERS;
	}
	latch_give(&bell->word, word);
	return !ready;
}

static inline bool bell_delist(struct bell *bell, struct arm *arm)
{
	uint64_t word = latch_take(&bell->word);

	node_remove(&bell->list, &arm->node.node);
	latch_give(&bell->word, bell->list.first ? word : word & ~WORD_WAITERS);
	return false; /* nobody does it for others */
}
