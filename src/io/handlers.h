/* SPDX-License-Identifier: MIT */
#pragma once
/* Handlers of signals against who changes what is watched.
 *
 * A handler runs on any thread at any time, and may come late: when its signal is not watched any more, or is again. It may ring the bell
 * only while there is one. It says that it is inside, then looks whether its signal is watched; who ends a watch wipes that off, then
 * looks whether anybody is inside. In one order of all four, so that one of them sees the other.
 *
 * Fields:   A  any thread, atomic   L  under the lock that is named                                                          */
#include "base/atomic.h"

typedef uint64_t signal_set; /* signal n is bit n - 1 */

struct handlers {
	ATOMIC(signal_set) watched; /* A  have our handler; stored under life */
	ATOMIC(uint32_t) inside;    /* A  that run */
};

static inline signal_set signal_bit(int number)
{
	return (signal_set)1 << (number - 1);
}

/* A handler, first of all. */
static inline void handlers_enter(struct handlers *h)
{
	add_seq(&h->inside, 1u); /* WATCH-1 (pairs with WATCH-6) */
}

/* A handler, and last. What it did with the bell is done. */
static inline void handlers_leave(struct handlers *h)
{
	sub_release(&h->inside, 1u); /* WATCH-2 (pairs with WATCH-6) */
}

/* A handler, inside. True: there is a bell, and it stays until the handler leaves. */
static inline bool handlers_watch(const struct handlers *h, int number)
{
	return load_seq(&h->watched) & signal_bit(number); /* WATCH-3 (pairs with WATCH-4 and WATCH-5) */
}

/* Life. There is a bell. */
static inline void handlers_begin(struct handlers *h, int number)
{
	or_release(&h->watched, signal_bit(number)); /* WATCH-4 (pairs with WATCH-3): the bell is seen */
}

/* Life. */
static inline void handlers_end(struct handlers *h, int number)
{
	and_seq(&h->watched, ~signal_bit(number)); /* WATCH-5 (pairs with WATCH-3) */
}

/* Life, when nothing is watched. True: the bell may go: those who come from here on do not ring it. A child after fork() may find fewer
 * than none: those that its parent had inside have left it.                                                                 */
static inline bool handlers_are_gone(const struct handlers *h)
{
	return (int32_t)load_seq(&h->inside) <= 0; /* WATCH-6 (pairs with WATCH-1 and WATCH-2) */
}
