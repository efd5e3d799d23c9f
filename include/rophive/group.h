/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/task.h>
#include <rophive/time.h>

/* Fork and join. A group may stand on the stack: hive_group_wait() never returns while one of its tasks runs, or may still run.
 *
 * Tasks of a group are calls that somebody else may make. A task that waits for its group makes them itself, the newest first, unless others
 * have taken them over meanwhile, the oldest first; and while it waits for those, its worker runs other tasks. So a fork that nobody
 * takes costs no more than a few nanoseconds, and waits inside waits come to their end with any number of workers.
 *
 * A group that is initialised inside a compute task (or, with HIVE_MICRO, in a task of an IO worker outside a fiber) belongs to that worker: it
 * waits, and nobody else can (-EPERM); everybody may run tasks in it. HIVE_GROUP_SHARED makes it anybody's. Tasks of a group that will not
 * run, because it has failed or the hive stops, go to the drop hook, like all others.
 *
 * A task that waits runs others on top of itself, and goes on when those have ended. So a task shall wait only for groups that it has filled
 * itself; for one that others fill, wait in a fiber or on a thread: on top of one of its tasks that waits, the wait for it would not end. */
HIVE_BEGIN
struct hive;
struct hive_cancel;
struct hive_fiber_options;

struct hive_group {
	/* private */
	HIVE_ATOMIC(uint64_t) word; /* how many are counted, who waits; a latch */
	HIVE_ATOMIC(void *) owner;  /* the worker to which it belongs */
	int64_t local;              /* what that one counts for itself */
	HIVE_ATOMIC(int32_t) error;
	uint32_t magic;
	struct hive *hive;
	uint32_t kind;
	HIVE_ATOMIC(uint32_t) flags;
	struct hive_cancel *cancel;
	void *helper, *then;
	void *waiters[2], *queued;
	HIVE_ATOMIC(uint64_t) spare;
};

enum {
	HIVE_GROUP_SHARED = 1, /* belongs to no worker, wherever it is initialised */
	HIVE_GROUP_CANCEL = 2  /* the first error fires the token `cancel` with it */
};

struct hive_group_options {
	struct hive_cancel
		*cancel;   /* its fibers and tasks are under this token; when it fires, they end, and the group fails */
	uint32_t flags;    /* HIVE_GROUP_… */
	uint32_t priority; /* of its compute tasks: enum hive_priority */
	uint64_t reserved[6]; /* must be zero */
};

/* Any thread. */
void hive_group_init(struct hive_group *group, struct hive *hive, enum hive_kind kind);
/* Any thread. The same with options. -EINVAL. For the deadline of the token: -ENOMEM, -ESHUTDOWN, -ESRCH (no IO worker), -EOWNERDEAD. */
int hive_group_init_with(struct hive_group *group, struct hive *hive, enum hive_kind kind,
                         const struct hive_group_options *options);
/* Any thread. Queues it; if that cannot be done (memory, stop, no worker of its kind) runs it right here. So there is nothing to check. */
void hive_group_run(struct hive_group *group, hive_fn *fn, void *arg);
/* Any thread. The same for a task of either kind: a group of compute tasks may have some on IO workers, and the other way round. */
void hive_group_run_on(struct hive_group *group, enum hive_kind kind, hive_fn *fn, void *arg);
/* Any thread. A fiber in the group; a negative result fails it. Where there is no stack to be had, the group fails with the code that
 * hive_spawn() gives, which is the answer too: 0, or that.                                                              */
int hive_group_spawn(struct hive_group *group, int (*fn)(void *arg), void *arg,
                     const struct hive_fiber_options *options);
/* Any thread. Something more that the group waits for, and its end, by whoever: a callback, say. error negative: the group fails with it. -EINVAL:
 * nothing was entered, or it has ended.                                                                                  */
int hive_group_enter(struct hive_group *group);
int hive_group_leave(struct hive_group *group, int error);
/* Any thread. The first error wins, is what wait() returns, and drops the group's tasks that have not begun. -EINVAL: not negative. */
int hive_group_fail(struct hive_group *group, int error);
/* Any thread. 0, or the error: for loops inside tasks of the group. */
int hive_group_error(const struct hive_group *group);
/* May wait, also in a task of a worker of the group's kind. The error of the group, or 0: everything in it has ended, and what it did is seen. A
 * compute task runs others meanwhile, of any group and of the pool; a task of an IO worker those of groups, of others' until its slice (slice_ns) is over. At the deadline: hive_group_fail(-ETIMEDOUT); a
 * fiber that is cancelled: with the reason (-ECANCELED, or that of its token), and without memory for the deadline's timer: with -ENOMEM; and then the rest is waited for. -EDEADLK: on an IO worker outside a fiber, for compute tasks or
 * fibers. -EPERM: it belongs to another worker. In these two cases nothing is waited for, and the group stays as it is.                     */
int hive_group_wait(struct hive_group *group, int64_t deadline_ns);
/* Worker thread, or a compute task. Instead of waiting: fn(arg) when all that is in the group now has ended, on this worker or, from a compute task, on
 * a compute worker. The group must stay until then. -EINVAL, -ENOMEM, -EALREADY: there is one. -EPERM.                             */
HIVE_CHECKED int hive_group_then(struct hive_group *group, hive_fn *fn, void *arg);

/* Any thread. Those of its compute tasks that wait in the pool at a lower priority begin as if they had this one. A compute task of higher priority
 * that waits for a group does so by itself. -EINVAL.                                                                      */
int hive_group_raise(struct hive_group *group, enum hive_priority priority);

typedef void hive_range_fn(void *arg, int64_t begin, int64_t end);
/* May wait. fn over disjoint pieces of [begin, end) on the compute workers and, unless it is a fiber, on the caller; from a task of an IO worker:
 * -EDEADLK, see hive_parallel_for_on(). grain: smallest piece, 0: by measurement, so that a piece takes some 100 µs, on IO
 * workers some 10. At the deadline no new piece begins: -ETIMEDOUT. An empty range is 0.                                 */
int hive_parallel_for(struct hive *hive, int64_t begin, int64_t end, int64_t grain, hive_range_fn *fn, void *arg,
                      int64_t deadline_ns);
/* May wait. The same on workers of this kind; HIVE_MICRO: IO workers, also from their tasks. */
int hive_parallel_for_on(struct hive *hive, enum hive_kind kind, int64_t begin, int64_t end, int64_t grain,
                         hive_range_fn *fn, void *arg, int64_t deadline_ns);

struct hive_tile { /* of a table: rows and columns from, and up to but without */
	int64_t row, row_end, column, column_end;
};
typedef void hive_tile_fn(void *arg, const struct hive_tile *tile);
/* May wait. fn over tiles of a table of rows x columns, each at most tile_rows x tile_columns (0: 64), as hive_parallel_for(). */
int hive_parallel_for_2d(struct hive *hive, int64_t rows, int64_t columns, int64_t tile_rows, int64_t tile_columns,
                         hive_tile_fn *fn, void *arg, int64_t deadline_ns);

struct hive_reduction {
	size_t bytes;         /* of an accumulator */
	const void *identity; /* what each one begins with */
	/* Adds what is in the piece to it. */
	void (*fold)(void *arg, int64_t begin, int64_t end, void *accumulator);
	/* Adds one to the other; never two at a time. In no particular order: it had better be associative and commutative. */
	void (*combine)(void *arg, void *into, const void *from);
};
/* May wait. As hive_parallel_for(); the sum of all in *ret_result, which is written on success only. -ENOMEM. */
int hive_parallel_reduce(struct hive *hive, int64_t begin, int64_t end, int64_t grain, const struct hive_reduction *how,
                         void *arg, void *ret_result, int64_t deadline_ns);

/* May wait. All of these tasks, the first one here if here may be computed; as a group that is waited for. */
int hive_parallel_invoke(struct hive *hive, const struct hive_task *tasks, size_t count, int64_t deadline_ns);

typedef int hive_compare_fn(const void *a, const void *b);
/* May wait. Sorts as qsort() does, and keeps the order of equals; takes as much memory again. With one of the comparisons below, and items of
 * that very type, it is several times as fast. -ENOMEM: as it was. At the deadline -ETIMEDOUT: the same items, in some order.   */
int hive_parallel_sort(struct hive *hive, void *items, size_t count, size_t item_bytes, hive_compare_fn *compare,
                       int64_t deadline_ns);
/* Any thread. Two numbers; of doubles those that are none come last. */
int hive_compare_i32(const void *a, const void *b);
int hive_compare_u32(const void *a, const void *b);
int hive_compare_i64(const void *a, const void *b);
int hive_compare_u64(const void *a, const void *b);
int hive_compare_double(const void *a, const void *b);
HIVE_END
