/* SPDX-License-Identifier: MIT */
#pragma once
/* Arms: several things of which one shall happen, and a wait that ends with whichever comes first.
 *
 * First each is attempted, in an order that is drawn: who finds one is done. Else one wait is begun, and enters the lists of all; whoever
 * claims it has won, as there is one cell. Then all lists are left, each under its latch: so nobody who took a node out of one still looks at it.
 *
 * While the wait is in some of the lists nothing may be attempted: something might happen twice. So who finds on the way into
 * the lists that one need not wait gives the wait up, leaves them, and attempts again. Lists are entered in the order of their
 * addresses. So of those who select and give up because they see each other one does not: somebody gets on.
 *
 * A wake means one of two things. A channel has claimed the arm, copied the item, and said so in the node: that has happened. Everything
 * else (a time, a bell, or what others bring) says by it that it is worth while to look again.                           */
#include "channel.h"

struct arm;

struct arm_ops {
	/* Does it, if it can be done at once. Its result; -EAGAIN: it cannot, and nothing happened. */
	int (*attempt)(struct arm *arm);
	/* Under the object's lock: false, if it could be done at once by now; else node.node is in the object's list with this wait. NULL: there is
	 * no list, the wait's deadline is all.                                                                       */
	bool (*enlist)(struct arm *arm, struct wait wait);
	/* Under the object's lock: node.node is in no list any more. True: who woke us has done it for us, with this result. */
	bool (*delist)(struct arm *arm, int *ret_result);
};

struct arm {
	const struct arm_ops *ops; /* I  NULL: it never happens */
	void *object;              /* I */
	struct channel_node node;  /* L the object's; its buffer is for all kinds */
	uint64_t *number;          /* I  a version, or how many were missed */
	int64_t deadline_ns;       /* I  of a time */
	bool enlisted;             /* O */
};

struct arms {
	struct arm *all;
	uint32_t *order; /* room for a number for each */
	uint32_t count;
	const char *why;
};

/* May wait. 0, or what the arm's attempt says: ret_index is written. -ETIMEDOUT, -ECANCELED, -EDEADLK, -ENOMEM: none of them happened, and it
 * is not.                                                                                                                */
int hive__arms_wait(struct arms *arms, int64_t deadline_ns, size_t *ret_index);

/* The same with one that is valid. */
static inline int arm_wait(struct arm *arm, const char *why, int64_t deadline_ns)
{
	uint32_t order = 0;
	struct arms arms = { arm, &order, 1, why };
	size_t index;

	checkpoint(deadline_ns);
	return hive__arms_wait(&arms, deadline_ns, &index);
}

extern const struct arm_ops hive__arm_time; /* arm.c */

/* What a call or a case of a select wants, as an arm. 0; -EINVAL, -EMSGSIZE: it cannot be meant. */
int hive__channel_arm(struct hive_channel *channel, const void *item, void *ret_item, size_t bytes,
                      struct arm *ret_arm);
int hive__oneshot_arm(struct hive_oneshot *oneshot, void *ret_item, size_t bytes, struct arm *ret_arm);
int hive__watch_arm(struct hive_watch *watch, uint64_t *version, void *ret_item, size_t bytes, struct arm *ret_arm);
int hive__subscription_arm(struct hive_subscription *subscription, void *ret_item, size_t bytes, uint64_t *ret_missed,
                           struct arm *ret_arm);
