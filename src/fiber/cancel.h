/* SPDX-License-Identifier: MIT */
#pragma once
/* A cancel token, and what the library's own files ask of it.
 *
 * Its word is a latch (base/latch.h), and counts what is under it: children, fibers, tasks, watches, waits, and who fires it. All lists of it
 * are under that latch. The reason is written under it, once: who comes later finds it, and is refused; so who fires has to go through
 * the lists once, and nobody is forgotten. Giving the latch back is the last that is done with a token by what leaves it, so
 * hive_cancel_join() may return as soon as the count is 0.
 *
 *   Fibers    are told under the latch (a fiber needs it to leave the list, so it is there), and made to run after it.
 *   Watches   are called one by one, without the latch: watch.h.
 *   Children  leave the list of their parent, marked and counted by who fires, who comes to them when he is through with the parent. So
 *             the tree may be as deep as it likes. Latches are taken downwards: the parent's, then the child's.
 *   Waits     are claimed under the latch, and delivered after it: wakes.h.
 *
 * The deadline is an alarm of a hive (deadline.c). Who enters first starts it, and counts under the token meanwhile.           */
#include <rophive/cancel.h>

#include "base/latch.h"
#include "fiber/wait.h"

#define CANCEL_MAGIC 0x63616e63u

#define CANCEL_JOINING UINT64_C(2)
#define CANCEL_ARMING UINT64_C(4) /* somebody starts the alarm; others wait for how that ends */
#define CANCEL_ARMED UINT64_C(8)  /* and it has not rung */
#define CANCEL_RUNG UINT64_C(16)  /* it has, while it was ARMING */
#define CANCEL_ONE UINT64_C(256)  /* of what is under it */

static inline bool cancel_is_valid(const struct hive_cancel *cancel)
{
	return cancel && cancel->magic == CANCEL_MAGIC;
}

/* Under the latch of the list. */
static inline void link_add(struct hive_cancel_link **list, struct hive_cancel_link *link)
{
	link->next = *list;
	link->back = list;
	if (*list)
		(*list)->back = &link->next;
	*list = link;
}

/* Nothing happens if it is in no list. */
static inline void link_remove(struct hive_cancel_link *link)
{
	if (!link->back)
		return;
	*link->back = link->next;
	if (link->next)
		link->next->back = link->back;
	link->back = NULL;
}

/* cancel.c */
/* Any thread. 0: it has not fired. */
static inline int hive__cancel_reason(const struct hive_cancel *cancel)
{
	return load_acquire(&cancel->reason); /* CANCEL-2 (pairs with CANCEL-1) */
}

/* Any thread. The same; who fires after this sees what the caller wrote before. */
int hive__cancel_look(struct hive_cancel *cancel);
/* Any thread. 0; -EALREADY: it had fired. */
int hive__cancel_fire(struct hive_cancel *cancel, int reason);
/* Any thread. Something is under it, until hive__cancel_leave(): 0, or the reason. */
int hive__cancel_enter(struct hive_cancel *cancel);
/* Who is under it already, for something that stays longer: whether it has fired or not. */
void hive__cancel_enter_anyway(struct hive_cancel *cancel);
/* Any thread. The same for a fiber, which is told when it fires. */
int hive__cancel_enter_fiber(struct hive_cancel *cancel, struct hive_cancel_link *fiber);
/* Who entered, as the last that he does with it. link: that of a fiber, or NULL. */
void hive__cancel_leave(struct hive_cancel *cancel, struct hive_cancel_link *link);
/* Any thread. A watch that was initialised, and is not started. 0, or the reason. Nobody asks about the deadline. */
int hive__cancel_watch(struct hive_cancel *cancel, struct hive_cancel_watch *watch);

/* For who waits for several things at once, in the manner of other lists of waits: woken when it fires. False: it has fired. After true
 * hive__cancel_delist() has to follow, however the wait ends; until then the token stays.                                   */
bool hive__cancel_enlist(struct hive_cancel *cancel, struct wait_node *node, struct wait wait);
void hive__cancel_delist(struct hive_cancel *cancel, struct wait_node *node);

/* deadline.c */
/* Any thread, who has entered. The hive's timers watch the deadline, if there is one and nobody does. 0, -ENOMEM, -ESHUTDOWN, -ESRCH, -EOWNERDEAD; the
 * reason: the deadline has passed.                                                                                       */
int hive__cancel_arm(struct hive_cancel *cancel, struct hive *hive);
/* Who joins it, when nothing is under it any more. It will not ring. */
void hive__cancel_disarm(struct hive_cancel *cancel);

/* under.c */
/* Any thread. That of the fiber or task that runs here; NULL: none. */
struct hive_cancel *hive__cancel_here(void);

/* fiber.c */
/* Who fires, under the latch. Its present and later waits end. True: it has to be made to run, by hive__fiber_go_on(). */
bool hive__fiber_tell(struct hive_cancel_link *link, int reason);
void hive__fiber_go_on(struct hive_cancel_link *link);
