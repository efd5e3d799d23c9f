/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/task.h>
#include <rophive/time.h>

/* The doors. Each returns 0, or -EINVAL -ENOMEM -ESHUTDOWN -EOWNERDEAD and what its comment adds.
 * Accepted is a promise: the task runs exactly once, or stop hands it to the drop hook. Refused: arg is
 * still yours. The _many forms take all or none.
 *
 *   call                    goes to                                          may be stolen   wakes
 *   hive_post               shared pool (inside a worker: by its outbox)     yes             one idle IO worker
 *   hive_post_placed        the lighter of two random IO workers             yes             it, or one idle IO worker
 *   hive_post_to            private queue of one worker                      no              that worker
 *   hive_post_keyed         private queue of the worker of a key             no              that worker
 *   hive_post_after         timers of the lighter of two random IO workers   no              that worker
 *   hive_post_compute(_at)  compute pool, at a priority                      shared          one idle compute worker
 *   hive_post_local         own local queue, half of it spills when full     yes             one idle neighbour
 *   hive_post_self          own private queue                                no              nobody
 *   hive_post_self_after    own timers                                       no              nobody
 */
HIVE_BEGIN
struct hive;
/* Any thread. To the shared pool (inside a worker: its outbox, given to the pool at the end of the beat). */
HIVE_CHECKED int hive_post(struct hive *hive, hive_fn *fn, void *arg);
/* Any thread. To the one with less to do of two IO workers drawn at random, where others may steal it, whatever the placement of the
 * hive. If that one sleeps, or may not be robbed: to the pool, from which somebody idle takes it.                          */
HIVE_CHECKED int hive_post_placed(struct hive *hive, hive_fn *fn, void *arg);
/* Any thread. As hive_post(), one splice and at most one wake for all of them. count 0 does nothing. */
HIVE_CHECKED int hive_post_many(struct hive *hive, const struct hive_task *tasks, size_t count);
/* Any thread. To one IO worker, and only there, before its timers and stealable tasks; what one thread posts to it runs in the order of
 * its posts. -ESRCH: not there any more. -EINVAL: a compute worker. What is still queued there when it is detached runs there, before it
 * leaves.                                                                                               */
HIVE_CHECKED int hive_post_to(struct hive *hive, uint32_t worker, hive_fn *fn, void *arg);
/* Any thread. As hive_post_to(), to the IO worker of this key: as long as the set of IO workers stays, all tasks of a key run on one worker, one
 * at a time, and what one thread posts in the order of its posts. When a worker comes, the keys that it takes over move there; when one leaves,
 * its keys move, and no others. Nothing is lost meanwhile, but tasks that were posted before a key moved may run after, and at the same time as,
 * those that were posted later: who needs more has a strand for each key. -ESRCH: no IO worker attached yet.               */
HIVE_CHECKED int hive_post_keyed(struct hive *hive, uint64_t key, hive_fn *fn, void *arg);
/* Any thread. Which worker that is at the moment; HIVE_WORKER_NONE: there is none, or it is just leaving. */
uint32_t hive_keyed_worker(const struct hive *hive, uint64_t key);
/* Any thread. Micro task, never before delay_ns has passed. ret_post may be NULL; else an id for
 * hive_post_cancel(). Delays beyond the clock's end mean never. -ESRCH: no IO worker attached yet.         */
HIVE_CHECKED int hive_post_after(struct hive *hive, int64_t delay_ns, hive_fn *fn, void *arg, uint64_t *ret_post);
/* Any thread. 0: it will not run, arg is yours again. -ESRCH: it ran, runs now, was dropped, is due while the hive drains, or never was.
 * Exactly one of the two.                                                                                */
int hive_post_cancel(struct hive *hive, uint64_t post);
/* Any thread. To the compute pool. There is no delayed form: start it from a delayed micro task. */
HIVE_CHECKED int hive_post_compute(struct hive *hive, hive_fn *fn, void *arg);
HIVE_CHECKED int hive_post_compute_many(struct hive *hive, const struct hive_task *tasks, size_t count);
/* Any thread. The same, with a priority; the two above are HIVE_PRIORITY_NORMAL. What one thread posts at one priority begins in the order of
 * its posts. -EINVAL also: no such priority.                                                                              */
HIVE_CHECKED int hive_post_compute_at(struct hive *hive, enum hive_priority priority, hive_fn *fn, void *arg);
HIVE_CHECKED int hive_post_compute_at_many(struct hive *hive, enum hive_priority priority,
                                           const struct hive_task *tasks, size_t count);
/* Any thread. work(arg) on a compute worker, then done(arg) on `reply_to`, as by hive_post_to(). Both places
 * are reserved now, so that once this returned 0 the answer cannot fail to arrive (if `reply_to` was detached
 * meanwhile: on the main worker). A drop hook sees the part that did not run: work, or done.              */
HIVE_CHECKED int hive_post_compute_then(struct hive *hive, hive_fn *work, uint32_t reply_to, hive_fn *done, void *arg);
/* Any thread. For code that carries the kind as data: hive_post(), hive_post_after() or hive_post_compute().
 * A delayed compute task does not exist: -EINVAL, and an assertion in debug builds.                        */
HIVE_CHECKED int hive_post_kind(struct hive *hive, enum hive_kind kind, int64_t delay_ns, hive_fn *fn, void *arg);
/* Worker thread. Own local queue: newest first, may be stolen. -EPERM elsewhere. */
HIVE_CHECKED int hive_post_local(hive_fn *fn, void *arg);
/* Worker thread. Own private queue: stays here, in order. -EPERM elsewhere. */
HIVE_CHECKED int hive_post_self(hive_fn *fn, void *arg);
/* Worker thread. Own timers. -EPERM elsewhere. */
HIVE_CHECKED int hive_post_self_after(int64_t delay_ns, hive_fn *fn, void *arg, uint64_t *ret_post);
HIVE_END
