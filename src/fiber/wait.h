/* SPDX-License-Identifier: MIT */
#pragma once
/* One kind of wait for everybody: a fiber parks, a compute task or a foreign thread blocks, on an IO worker outside a fiber it is
 * refused. Locks, channels, joins are lists of such waits:
 *
 *     struct wait wait;
 *     struct wait_node node;
 *     r = hive__wait_begin(&wait, "channel");          refused: -EDEADLK, or a reason
 *     lock; look again; nothing there: node_add(&list, &node, wait); unlock
 *     r = hive__wait_end(wait, deadline_ns);           0: woken by hive__wait_wake(); -ETIMEDOUT, a reason
 *     if (r < 0) { lock; node_remove(&list, &node); unlock }
 *
 * and the other side, under the same lock: node = node_take(&list); if (hive__wait_wake(node->wait)) it is his, else the next one.
 *
 * Exactly one caller of hive__wait_wake(), the deadline and the canceller ends a wait. Who ended it must not touch the node afterwards: it
 * lies on the stack of somebody who runs again.                                                                               */
#include "base/atomic.h"
#include "fiber/cell.h"

struct waiter; /* a fiber, or a thread */

struct wait {
	struct waiter *who;
	uint64_t turn;
};

/* Any thread. 0: a wait has begun, and hive__wait_end() or hive__wait_give_up() has to follow on this very fiber or thread. `why` is for dumps,
 * a literal. -EDEADLK: on an IO worker outside a fiber. Reason: -ECANCELED, the fiber is cancelled or its hive stops now; or that of its token. */
int hive__wait_begin(struct wait *ret_wait, const char *why);
/* The same for waits that must not be cancelled, as that for a mutex one has promised to hold again. */
int hive__wait_begin_shielded(struct wait *ret_wait, const char *why);
/* Whom one waits for, where that can be said: a waiter, as hive__wait_self() calls it; or the one that a word names, apart from its three
 * lowest bits, which may be another one by the time somebody looks.                                                          */
static inline uintptr_t whom_is(const void *waiter)
{
	return (uintptr_t)waiter | 1;
}

static inline uintptr_t whom_holds(const ATOMIC(uint64_t) *word)
{
	return (uintptr_t)word;
}

/* The owner, before it waits: this one, or this one's holder. Only with these two reasons, and always with them. */
#define WAIT_MUTEX "mutex"
#define WAIT_JOIN "join"
void hive__wait_whom(struct wait wait, uintptr_t whom);
/* The owner, between these. What it waits for is one of several, as a descriptor: the number of it, if `why` ends with a blank. */
void hive__wait_number(struct wait wait, int32_t number);
/* Any thread. True: this call ended the wait, its owner goes on. False: it had ended. */
bool hive__wait_wake(struct wait wait);
/* The owner. Waits. 0, -ETIMEDOUT, a reason as above; -ENOMEM: no memory for the deadline's timer, nobody had woken it. */
int hive__wait_end(struct wait wait, int64_t deadline_ns);
/* The owner, in place of hive__wait_end(), when it has said whom it waits for. In debug builds -EDEADLK: without a deadline it would wait for
 * itself, by way of whom it waits for (circle.c); that is reported. A shielded wait is reported, and goes on.              */
#if defined(HIVE_DEBUG)
int hive__wait_end_whom(struct wait wait, int64_t deadline_ns, bool shielded);
#else
static inline int hive__wait_end_whom(struct wait wait, int64_t deadline_ns, bool shielded)
{
	(void)shielded;
	return hive__wait_end(wait, deadline_ns);
}
#endif
/* Any thread, for one that is a fiber's, or is known to be in its wait. It has not ended. */
bool hive__wait_is_on(struct wait wait);
/* The owner, in place of hive__wait_end(). True: nobody had woken it. False: somebody has, and what he did counts. */
bool hive__wait_give_up(struct wait wait);

/* hive__wait_wake() in two steps, for who holds the lock of an object and does not want to make a system call under it. Between the two the
 * owner may run already unless CELL_OURS_PARKED was answered: only then deliver, once, and until then its node stays.       */
enum cell_claim hive__wait_claim(struct wait wait);
void hive__wait_deliver(struct wait wait);

/* Any thread. Why the fiber that runs here may not wait; 0: it may, or there is none. What a wait answers when it was cancelled may be any
 * error: who has to tell that from others asks.                                                                             */
int hive__wait_reason(void);

/* Any thread. Where one might have had to wait and need not: a fiber that never has to lets others have a turn all the same when its
 * slice is over.                                                                                                             */
void hive__wait_checkpoint(void);

/* Any thread. A number for a choice among equals, from the generator of the hive, if this is one of its workers. */
uint64_t hive__wait_random(void);

/* Any thread. Who runs here, as a waiter: the fiber, or a thread-local of the thread. Never NULL, and a multiple of 8. A fiber
 * stays the same wherever it goes on.                                                                                       */
void *hive__wait_self(void);
/* Any thread. The caller holds so many mutexes more, or fewer. Counted for one who ends with a mutex held. */
void hive__wait_held(int32_t n);
/* A fiber. Its groups, for debug builds. */
struct scope *hive__wait_scope(void);

/* First come, first served. Under the lock of the object that it belongs to. */
struct wait_node {
	struct wait_node *next, **link; /* link NULL: not in a list */
	struct wait wait;
};

struct wait_list {
	struct wait_node *first, **last; /* last NULL: empty, never used; so zeroed memory is an empty list */
};

static inline void node_add(struct wait_list *list, struct wait_node *node, struct wait wait)
{
	if (!list->first)
		list->last = &list->first;
	node->wait = wait;
	node->next = NULL;
	node->link = list->last;
	*list->last = node;
	list->last = &node->next;
}

/* Nothing happens if it is in no list. */
static inline void node_remove(struct wait_list *list, struct wait_node *node)
{
	if (!node->link)
		return;
	*node->link = node->next;
	if (node->next)
		node->next->link = node->link;
	else
		list->last = node->link;
	node->link = NULL;
}

/* The first one, out of the list; NULL: nobody waits. */
static inline struct wait_node *node_take(struct wait_list *list)
{
	struct wait_node *node = list->first;

	if (node)
		node_remove(list, node);
	return node;
}
