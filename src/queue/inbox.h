/* SPDX-License-Identifier: MIT */
#pragma once
/* Many threads leave letters, one owner takes them all. Letters are linked through themselves, so delivering one
 * cannot fail for want of memory; it fails only when the inbox was closed because its owner leaves.
 *
 *   OPEN --inbox_close--> CLOSED (every later push is refused) --inbox_open--> OPEN                                 */
#include "base/atomic.h"

struct letter {
	struct letter *next; /* of the inbox until taken, then of whoever took it */
};

/* Owner thread only. A chain as it was pushed, newest first, turned into posting order. */
static inline struct letter *letters_in_order(struct letter *chain)
{
	struct letter *ordered = NULL;

	while (chain) {
		struct letter *next = chain->next;

		chain->next = ordered;
		ordered = chain;
		chain = next;
	}
	return ordered;
}

#if defined(HIVE_LOCKED_QUEUES)
#include "queue/inbox_locked.h"
#else

struct inbox {
	ATOMIC(struct letter *) newest; /* A  INBOX_CLOSED when closed */
};

#define INBOX_CLOSED ((struct letter *)1)

/* Before anybody uses it. It is open. */
static inline void inbox_init(struct inbox *b)
{
	store_relaxed(&b->newest, (struct letter *)NULL);
}

/* The next owner, after a close. Late posters may still be at it; they read nothing of his, so this needs no order. */
static inline void inbox_open(struct inbox *b)
{
	store_relaxed(&b->newest, (struct letter *)NULL);
}

/* Any thread. False when closed: the letter is still yours. seq_cst, because the caller looks next whether the owner
 * sleeps (see idle.h).                                                                                              */
static inline bool inbox_push(struct inbox *b, struct letter *letter)
{
	struct letter *newest = load_relaxed(&b->newest);

	do {
		if (newest == INBOX_CLOSED)
			return false;
		letter->next = newest;
	} while (!cas_seq(&b->newest, &newest, letter)); /* INBOX-1 (pairs with INBOX-2, INBOX-3 and INBOX-4) */
	return true;
}

/* Any thread. */
static inline bool inbox_is_empty(struct inbox *b)
{
	struct letter *newest = load_seq(&b->newest); /* INBOX-4 (pairs with INBOX-1) */

	return newest == NULL || newest == INBOX_CLOSED;
}

/* Any thread, also a signal handler. The letter that came last; NULL: none. Somebody may have taken it by now. */
static inline const struct letter *inbox_newest(struct inbox *b)
{
	const struct letter *newest = load_relaxed(&b->newest);

	return newest == INBOX_CLOSED ? NULL : newest;
}

/* Owner thread only. All letters of the moment in posting order; NULL: none. Not on a closed inbox. */
static inline struct letter *inbox_take(struct inbox *b)
{
	if (load_relaxed(&b->newest) == NULL)
		return NULL;
	return letters_in_order(exchange_acquire(&b->newest, (struct letter *)NULL)); /* INBOX-2 (pairs with INBOX-1) */
}

/* Owner thread only. The last letters; none can follow. */
static inline struct letter *inbox_close(struct inbox *b)
{
	struct letter *rest = exchange_acquire(&b->newest, INBOX_CLOSED); /* INBOX-3 (pairs with INBOX-1) */

	return rest == INBOX_CLOSED ? NULL : letters_in_order(rest);
}
#endif
