/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/op.h>
#include <rophive/source.h>
#include <rophive/task.h>

/* What a worker waits in. Write one to make a foreign event loop a worker; most programs never include this file.
 * A core knows sources; it never sees a worker, a task or a timer.                                               */
HIVE_BEGIN
/* Each core's own struct begins with this */
struct hive_core {
	const struct hive_core_ops *ops;
};

struct hive_core_ops {
	const char *name; /* "epoll" */
	uint32_t kinds;   /* bit (1u << kind) for each source kind that add() takes */
	uint32_t flags;   /* 0 */
	/* Owner thread. Called on the thread that will turn it. arg comes from the worker's options. 0 or -errno. */
	int (*open)(void *arg, struct hive_core **ret_core);
	void (*close)(struct hive_core *core);
	/* Owner thread. Deliver what is ready with hive_source_deliver(); block at most timeout_ns (0: not at all,
	 * HIVE_FOREVER: until woken). May return early. 0 or -errno (reported once, the worker goes on).          */
	int (*turn)(struct hive_core *core, int64_t timeout_ns);
	/* Any thread. Makes a blocked or the next turn() return. Never blocks, allocates or fails. */
	void (*wake)(struct hive_core *core);
	/* Owner thread. source->handle and source->events say what; index is yours. After remove() nothing is
	 * delivered for it, also not later in the batch under way.                                             */
	int (*add)(struct hive_core *core, struct hive_source *source);
	int (*modify)(struct hive_core *core, struct hive_source *source);
	void (*remove)(struct hive_core *core, struct hive_source *source);
	/* Optional: operations that it does by itself, bit (1u << code) for each. submit(): 0, and hive_op_deliver() once, in a later
	 * turn(), or -errno; -ENOTSUP: not this one, it is done by readiness. cancel() is a request; it is delivered once all the
	 * same.                                                                                                             */
	uint32_t native_ops;
	int (*submit)(struct hive_core *core, struct hive_op *op);
	void (*cancel)(struct hive_core *core, struct hive_op *op);
	/* Owner thread. Optional (NULL): a descriptor that polls readable while turn(0) would deliver something, or was told to return; it stays the
	 * same. From the first call on somebody else waits for it (hive_guest_start()), and a turn(0) also takes back what a wake has left there.
	 * A descriptor, or -errno.                                                                                         */
	int (*fd)(struct hive_core *core);
	void *reserved[2];
};

/* Any thread. "epoll", "poll", "uring", or "best": what HIVE_CORE in the environment names, if it can be had, else epoll. What is named
 * otherwise the environment does not change. -ENOTSUP: not in this build or kernel.                                      */
int hive_core_find(const char *name, const struct hive_core_ops **ret_core);
/* Owner thread, inside turn(). The only way in which a core calls a source's user. */
void hive_source_deliver(struct hive_source *source, uint32_t events);

/* Owner thread, inside turn(). An operation that was submitted is complete; `more`: this is one of several results. -EAGAIN, for what is
 * about sockets, pipes and terminals: nothing has happened, and it is done by readiness from here on.                        */
void hive_op_deliver(struct hive_op *op, int64_t result, bool more);

/* For a core that is the loop of somebody else, whose callbacks come by no source: all around those that it calls in one turn(). Worker and
 * callbacks are as if in a source's: it counts as awake. Without effect where it is not inside turn().                         */
/* Owner thread, inside turn(). Before them; also in each round of a loop that one of them runs inside (a modal dialog), after its wait. */
void hive_core_enter(struct hive_core *core);
/* Owner thread, inside turn(). After them; also before sources are delivered in a loop inside: enter again afterwards. */
void hive_core_leave(struct hive_core *core);
/* Owner thread. A loop inside makes one beat, without a turn: 0, and *ret_wait_ns as hive_step_fn has it; the core's wake() is to end the
 * wait of that loop. -EDEADLK: not between enter and leave, so a task, a timer or a source runs that loop; what it has posted goes out,
 * and *ret_wait_ns is HIVE_FOREVER. -ESHUTDOWN: the worker is to leave as soon as that loop has ended. -EPERM: not this worker's thread.  */
int hive_core_beat(struct hive_core *core, int64_t *ret_wait_ns);

/* One beat of a worker without blocking. 0: call again when woken or after *ret_wait_ns (0: at once, HIVE_FOREVER:
 * only when woken). -ESHUTDOWN: it has left, do not call again.                                               */
typedef int hive_step_fn(void *step_arg, int64_t *ret_wait_ns);

/* The world as the hive sees it. Zero fields keep the system's; everything in a test can be replaced. */
struct hive_host {
	void *arg; /* handed to all of these */
	int64_t (*now)(void *arg);
	uint64_t (*random)(void *arg, uint32_t worker);        /* worker: HIVE_WORKER_NONE for foreign threads */
	void *(*allocate)(void *arg, void *old, size_t bytes); /* as realloc; bytes 0 frees */
	int (*thread_start)(void *arg, hive_fn *main, void *main_arg, uint64_t *ret_thread);
	void (*thread_join)(void *arg, uint64_t thread);
	const struct hive_core_ops *core;         /* for workers whose options name none */
	void (*wake)(void *arg, uint32_t worker); /* instead of the core's wake and the parker's */
	/* A host without threads: workers are steps that it calls, all on one thread. step_start takes the place of
	 * thread_start; step_stop takes a step back that was started and will not be called (a start that failed
	 * half-way); step_wait is called where a thread outside would block: let something happen, 0; -EDEADLK when
	 * nothing can, -ETIMEDOUT when the deadline came first. All three or none.                               */
	int (*step_start)(void *arg, uint32_t worker, hive_step_fn *step, void *step_arg);
	void (*step_stop)(void *arg, void *step_arg);
	int (*step_wait)(void *arg, int64_t deadline_ns);
	/* How far one CPU is from another: 0 same core, 1 same L2, 2 same L3, 3 same node, 4 anything else. A worker is on its first
	 * pinned CPU, else where it last ran; in a host without threads on the one with the number of its place among IO workers.
	 * On any thread, often. NULL: what sysfs says; with `now` or steps of the host's own all are on one node.             */
	int (*cpu_distance)(void *arg, uint32_t a, uint32_t b);
	void *reserved[4];
};
HIVE_END
