/* SPDX-License-Identifier: MIT */
#pragma once
/* Something that is done once, and one who waits for it. `done` is seen under the lock alone, and the lock is the last that once_finish()
 * touches: who has seen it may free the memory.                                                                          */
#include "base/lock.h"
#include "fiber/wait.h"

struct once {
	struct lock lock;
	struct wait_list waits; /* L lock */
	bool done;              /* L lock */
};

static inline void once_init(struct once *o)
{
	lock_init(&o->lock);
	o->waits.first = NULL;
	o->waits.last = NULL;
	o->done = false;
}

/* Any thread. What was written before is seen by who waited. */
static inline void once_finish(struct once *o)
{
	struct wait_node *node;

	lock_acquire(&o->lock);
	o->done = true;
	node = node_take(&o->waits);
	if (node)
		hive__wait_wake(node->wait);
	lock_release(&o->lock);
}

/* 0: done. Else as hive__wait_begin() and hive__wait_end() say, and it is not. */
static inline int once_wait(struct once *o, bool shielded, const char *why, int64_t deadline_ns)
{
	struct wait_node node = { .link = NULL };
	struct wait wait;
	int r = shielded ? hive__wait_begin_shielded(&wait, why) : hive__wait_begin(&wait, why);

	if (r < 0)
		return r;
	lock_acquire(&o->lock);
	if (o->done) {
		lock_release(&o->lock);
		hive__wait_give_up(wait);
		return 0;
	}
	node_add(&o->waits, &node, wait);
	lock_release(&o->lock);
	r = hive__wait_end(wait, deadline_ns);
	lock_acquire(&o->lock);
	node_remove(&o->waits, &node);
	if (o->done)
		r = 0;
	lock_release(&o->lock);
	return r;
}
