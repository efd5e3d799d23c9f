/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/task.h>
#include <rophive/time.h>

/* A queue of tasks with an order of its own, on the workers of a hive; it has no thread. Of width 1, a strand: its tasks never run at the
 * same time, and run in the order of their posts, so that what they share needs no lock. Wider, a queue: they begin in the order of their
 * posts, and up to so many run at a time.
 *
 * Accepted is a promise: the task runs exactly once, or a stop hands it to the drop hook. After a few tasks, or when its slice is over, a
 * strand lets others have a turn. A hive that drains runs what its strands have.
 *
 * Tasks of HIVE_COMPUTE run on compute workers; on IO workers if those have all left, or if there is no memory for the way.            */
HIVE_BEGIN
struct hive;
struct hive_strand;

#define HIVE_STRAND_WIDTH_MAX 64

struct hive_strand_options {
	enum hive_kind kind;  /* 0: HIVE_MICRO */
	uint32_t width;       /* how many of its tasks may run at a time, at most HIVE_STRAND_WIDTH_MAX; 0: 1 */
	uint64_t reserved[4]; /* must be zero */
};

/* Any thread. options NULL: zeros. -ESRCH: the hive has no IO worker. -ENOTSUP: HIVE_COMPUTE, and it has no compute worker. -ESHUTDOWN. */
HIVE_CHECKED int hive_strand_create(struct hive *hive, const struct hive_strand_options *options,
                                    struct hive_strand **ret_strand);
/* Any thread. 0: gone (NULL is fine). -EBUSY: something is queued or runs, or somebody joins; join it first. Nobody may be inside another call
 * on it. Before its hive is destroyed, or after.                                                                           */
int hive_strand_destroy(struct hive_strand *strand);

/* Any thread, also from its own tasks. 0, or -EINVAL, -ENOMEM, -ESHUTDOWN, -EOWNERDEAD, and it is not queued. Once it is queued nothing more is
 * needed for it to run.                                                                                                   */
HIVE_CHECKED int hive_strand_post(struct hive_strand *strand, hive_fn *fn, void *arg);
/* Any thread. The same for a task that runs alone: after all that were posted before have ended, and before any that is posted later begins. */
HIVE_CHECKED int hive_strand_barrier(struct hive_strand *strand, hive_fn *fn, void *arg);
/* May wait. Until all that were posted before have ended, or were dropped. -EDEADLK also in one of its own tasks, unless nothing is
 * there to wait for. -ETIMEDOUT, -ECANCELED, -ENOMEM: as other waits.                                                     */
int hive_strand_join(struct hive_strand *strand, int64_t deadline_ns);
HIVE_END
