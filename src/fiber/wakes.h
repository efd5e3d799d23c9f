/* SPDX-License-Identifier: MIT */
#pragma once
/* Waits that were claimed under a latch, to be delivered after it: a system call is no business of a latch. Who is parked does not
 * run before it is delivered, so its node stays, and is the link of the list.
 *
 * Who was claimed while it was still on its way to park may run at once. It passes through the latch before it returns, so its
 * node and the buffer that its node points to stay as long as the latch is held.                                         */
#include "fiber/wait.h"

struct wakes {
	struct wait_node *first, **last;
};

static inline void wakes_init(struct wakes *w)
{
	w->first = NULL;
	w->last = &w->first;
}

/* Under the latch; the node is in no list. True: it is woken, by us. False: its wait had ended. */
static inline bool wakes_claim(struct wakes *w, struct wait_node *node)
{
	enum cell_claim claim = hive__wait_claim(node->wait);

	if (claim == CELL_OURS_PARKED) {
		node->next = NULL;
		*w->last = node;
		w->last = &node->next;
	}
	return claim != CELL_NOT_OURS;
}

/* After the latch. */
static inline void wakes_deliver(const struct wakes *w)
{
	for (struct wait_node *node = w->first, *next; node; node = next) {
		next = node->next;
		hive__wait_deliver(node->wait);
	}
}

/* In front of all others: one that had been there. */
static inline void node_add_first(struct wait_list *list, struct wait_node *node, struct wait wait)
{
	if (!list->first) {
		node_add(list, node, wait);
		return;
	}
	node->wait = wait;
	node->next = list->first;
	node->link = &list->first;
	list->first->link = &node->next;
	list->first = node;
}
