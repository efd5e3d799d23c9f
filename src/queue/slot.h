/* SPDX-License-Identifier: MIT */
#pragma once
/* A task inside a ring that several threads may read while one writes: two relaxed words. A reader that raced with the
 * writer gets a torn pair, but then the index it is about to claim has moved, its claim fails and the pair is thrown
 * away. The same words as the public task, so a batch can be copied in and out.                                     */
#include "base/atomic.h"

#include <rophive/task.h>

struct slot {
	ATOMIC(hive_fn *) fn;
	ATOMIC(void *) arg;
};

static inline void slot_write(struct slot *s, struct hive_task task)
{
	store_relaxed(&s->fn, task.fn);
	store_relaxed(&s->arg, task.arg);
}

static inline struct hive_task slot_read(struct slot *s)
{
	struct hive_task task;

	task.fn = load_relaxed(&s->fn);
	task.arg = load_relaxed(&s->arg);
	return task;
}
