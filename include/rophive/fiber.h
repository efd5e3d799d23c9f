/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/time.h>

/* Straight-line code that never blocks a worker. A fiber may continue on another thread after any wait: keep no pointer to a
 * thread-local across one (errno included; calls return -errno). Signal masks belong to threads, not to fibers.
 *
 * Waits of a fiber end with -ECANCELED once it was cancelled, or when its hive stops with HIVE_NOW, and with the reason of its cancel token
 * (<rophive/cancel.h>) when that has fired: then it has to come to its end. -ETIMEDOUT may be such a reason: who tries again after it asks
 * hive_cancelled() first.
 * HIVE_DRAIN waits for fibers. A deadline of a fiber is a timer, which needs memory: each wait that has one may answer -ENOMEM,
 * and hive_sleep() too.
 *
 * Who runs out of its stack ends the process by SIGSEGV. A line on stderr names the fiber, unless the program has a handler for
 * that signal: then we stay away from it.                                                                                */
HIVE_BEGIN
struct hive;
struct hive_cancel;
struct hive_fiber; /* a handle, not an address: a stale one is refused (-ESRCH), as long as its hive exists */

typedef int hive_fiber_fn(void *arg); /* result: 0, a value, or -errno; data travels in arg */

struct hive_fiber_options {
	const char *name;   /* copied, 31 bytes; NULL: none */
	size_t stack_bytes; /* 0: 64 KiB reserved; touched pages are paid. At most 1 GiB, guard and all */
	uint32_t worker;    /* HIVE_WORKER_NONE: anywhere; else it stays there while that worker is there */
	uint32_t flags;     /* 0 */
	/* NULL: that of the spawning fiber. Once it has fired, its reason (-ECANCELED, -ETIMEDOUT, or what it was fired with) is the answer of the
	 * fiber's present and later waits.                                                                              */
	struct hive_cancel *cancel;
	uint64_t reserved[4]; /* must be zero */
};

/* Any thread. ret_fiber NULL: detached. Else exactly one join or detach must follow. -ENOMEM: no stack; the hive goes on.
 * -ESHUTDOWN: stop has begun. -EINVAL: stack too big. -ESRCH: no such worker. The reason of its token, if that has fired. When the hive stops with HIVE_NOW before it
 * has begun, it never does, and its result is -ECANCELED.                                                             */
HIVE_CHECKED int hive_spawn(struct hive *hive, hive_fiber_fn *fn, void *arg, const struct hive_fiber_options *options,
                            struct hive_fiber **ret_fiber);
/* May wait. 0: ended, *ret_result (may be NULL) is what fn returned, the handle is gone. -ETIMEDOUT: handle still valid.
 * -EDEADLK: oneself; in debug builds also by way of others, as hive_mutex_lock(). -EALREADY: somebody else joins it now. -ESRCH: joined
 * or detached before.                                                                                                 */
int hive_fiber_join(struct hive_fiber *fiber, int64_t deadline_ns, int *ret_result);
/* Any thread. It goes on, and nobody asks for its result; the handle is gone. */
int hive_fiber_detach(struct hive_fiber *fiber);
/* Any thread. Its present and later waits return -ECANCELED; join it as usual. */
int hive_fiber_cancel(struct hive_fiber *fiber);
/* May wait. All of them ended, or one of them: *ret_index says which (the first in the array if several have). Handles stay, join
 * does not wait any more. wait_any of none is -EINVAL. -ESRCH: one of them is gone, or goes while we wait, joined by others. -EDEADLK: one
 * of them is oneself; wait_all in debug builds also as join.                                                              */
int hive_wait_all(struct hive_fiber *const *fibers, size_t count, int64_t deadline_ns);
int hive_wait_any(struct hive_fiber *const *fibers, size_t count, int64_t deadline_ns, size_t *ret_index);
/* Foreign thread. Runs fn as a fiber and waits for it and all its descendants. Deadline: they are cancelled, then waited for,
 * -ETIMEDOUT. On a worker: -EDEADLK. ret_result may be NULL.                                                               */
int hive_block_on(struct hive *hive, hive_fiber_fn *fn, void *arg, int64_t deadline_ns, int *ret_result);
/* Fiber. fn on a compute worker, this fiber parked. Begun is waited for: the deadline (or a cancel) limits the queueing. -ENOTSUP: the
 * hive has no compute worker. On a compute worker or a foreign thread: fn is called here. On an IO worker outside a fiber: -EDEADLK. */
int hive_offload(hive_fiber_fn *fn, void *arg, int64_t deadline_ns, int *ret_result);
/* May wait. 0, or -ECANCELED, or the reason of its token; delays below 1 are a yield. */
int hive_sleep(int64_t delay_ns);
/* Any thread. A fiber lets everybody else have a turn; elsewhere the thread does. 0, or as hive_sleep(). */
int hive_yield(void);
/* Any thread. hive_yield() if hive_should_yield() (<rophive/worker.h>), else nothing and 0. */
int hive_yield_if_due(void);
/* Any thread. NULL outside a fiber. Borrowed: do not join. */
struct hive_fiber *hive_fiber_current(void);
/* Any thread. Its name, or ""; of the current one with NULL. -ESRCH. At most bytes - 1 characters are written. */
int hive_fiber_name(struct hive_fiber *fiber, char *ret_name, size_t bytes);
/* Fiber, else -EPERM. Values by key (any unique address); children inherit them at spawn. */
HIVE_CHECKED int hive_fiber_set(const void *key, void *value);
/* Any thread. NULL when unset, and outside a fiber. */
void *hive_fiber_get(const void *key);
HIVE_END
