/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/bus.h>
#include <rophive/cancel.h>
#include <rophive/core.h>
#include <rophive/fiber.h>
#include <rophive/group.h>
#include <rophive/flow.h>
#include <rophive/graph.h>
#include <rophive/io.h>
#include <rophive/op.h>
#include <rophive/post.h>
#include <rophive/process.h>
#include <rophive/source.h>
#include <rophive/stats.h>
#include <rophive/strand.h>
#include <rophive/sync.h>
#include <rophive/trace.h>
#include <rophive/timer.h>
#include <rophive/tune.h>
#include <rophive/ui.h>
#include <rophive/worker.h>

/* The hive itself; and, as everything is included above, the one header that a program needs.
 *
 * The first words of each comment are its thread rule:
 *   Any thread.      no restriction, never waits
 *   May wait.        any thread; a fiber parks, a compute task and a foreign thread block; on an IO worker outside a fiber only
 *                    HIVE_NOWAIT, else -EDEADLK
 *   Worker thread.   inside a task or callback of an IO worker, else -EPERM
 *   Owner thread.    the worker on which the object was started
 *   Foreign thread.  not on a worker of any hive
 *   Fiber.           inside a fiber; elsewhere as the comment says
 */
#define HIVE_VERSION_MAJOR 0
#define HIVE_VERSION_MINOR 1
#define HIVE_VERSION_PATCH 0

HIVE_BEGIN
struct hive;
struct hive_host;

enum hive_preset {
	HIVE_PRESET_DEFAULT = 0, /* what the benches of this library chose */
	HIVE_PRESET_ROPHIVE = 1, /* the parameters of the founding design to the letter, no further policy */
	HIVE_PRESET_FAIO =
		2, /* oldest first, one task a beat, the system and the pool at intervals, the busiest is robbed */
	HIVE_PRESET_VELOQ = 3 /* placed by load, 64 tasks a beat, the nearest is robbed, letters go by the mesh */
};

/* Where single posts and spawns that name no worker go, from whatever thread. POOL: to all, and whoever has nothing to do takes them.
 * TWO_CHOICES: of two IO workers drawn at random to the one with less to do, or, if that sleeps, to the pool; others may steal them from
 * there at once. DEFAULT: pool, but with HIVE_PRESET_VELOQ two choices. docs/scheduling.md says when to take which.                                        */
enum hive_placement { HIVE_PLACE_DEFAULT = 0, HIVE_PLACE_POOL = 1, HIVE_PLACE_TWO_CHOICES = 2 };

/* How letters travel from one IO worker to another: hive_post_to(), fibers that are spawned or woken there. OFF: by the inbox, where all senders
 * meet. ON: by a lane for each pair, made when it is first used (also with reserve_tasks); what finds no room there goes by the inbox. In both
 * cases letters from one worker to one other arrive in the order in which they were sent; with the mesh, letters of different workers have no
 * order, even if one was sent because of the other. DEFAULT: off, but with HIVE_PRESET_VELOQ on. docs/scheduling.md has the figures. */
enum hive_mesh { HIVE_MESH_DEFAULT = 0, HIVE_MESH_OFF = 1, HIVE_MESH_ON = 2 };

/* On any thread, one call at a time, once for each accepted task that will not run. Must not post or wait. */
typedef void hive_drop_fn(void *hook_arg, const struct hive_task *task);
/* On any thread; one line without newline. Default: stderr. */
typedef void hive_warn_fn(void *hook_arg, const char *text);

/* All zero: an empty hive, attach workers yourself */
struct hive_options {
	int32_t io_workers, compute_workers; /* attached by create; HIVE_AUTO */
	enum hive_preset preset;
	enum hive_placement placement;
	const struct hive_worker_options *io, *compute; /* template for those; NULL: zeros */
	const struct hive_host *host; /* clock, random, memory, threads; NULL: the system. Must outlive the hive */
	void *hook_arg;
	hive_drop_fn *on_drop; /* NULL: they are only counted */
	hive_warn_fn *on_warn;
	size_t reserve_tasks; /* preallocate, so that up to that many waiting posts of each kind (compute: of all priorities) allocate nothing */
	/* A worker that is in one task for so long is reported, once, with its stack, to on_warn; and what waits there and may run elsewhere is
	 * offered to the others. 0: off, in debug builds 100 ms; HIVE_OFF: off. The stack is had by a real-time signal (SIGRTMAX - 3) to that
	 * thread: a system call that it is in may return -EINTR. Also reported, once: that all fibers wait for each other while a drain or a
	 * thread waits for their end (docs/fibers.md).                                                                       */
	int64_t stall_ns;
	/* Each worker whose options name no CPUs gets one of the caller's: IO workers first, one for each core before the second of any,
	 * and round again when there are more workers than CPUs. Its memory is made there. Without effect in a host without threads. */
	bool pin;
	enum hive_mesh mesh;
	uint64_t reserved[6]; /* must be zero */
};

struct hive_report {
	uint64_t posted, ran, cancelled, dropped, refused; /* posted = ran + cancelled + dropped */
	uint64_t dropped_timers;                           /* of the dropped: delayed posts that were not due */
	uint64_t open_sources;                             /* sources that were still started */
	int64_t stop_ns;                                   /* from hive_stop() until the last worker had left */
	bool deadline_missed;
	uint64_t reserved[8];
};

/* Any thread. -EINVAL also for a reserved field that is not zero: built against a newer header. */
HIVE_CHECKED int hive_create(const struct hive_options *options, struct hive **ret_hive);
/* Foreign thread. 0: gone (NULL is fine). -EBUSY: still running. What was posted and never ran goes to on_drop. Nobody may be
 * inside another call on this hive: a task may have run and the post that brought it not yet have returned, on a thread or on a
 * worker of another hive. Join those first.                                                                                */
int hive_destroy(struct hive *hive);

/* Three ways to give it threads. Each returns -EINVAL without an IO worker, -EALREADY the second time, -ESHUTDOWN after
 * stop, -EDEADLK on a worker, and the system's code if a thread or a core could not be had: then nothing runs and it may be tried again.   */
/* Foreign thread. The caller becomes the main worker until stop is complete. */
int hive_run(struct hive *hive);
/* Foreign thread. Every worker, the main one too, gets a thread; all are running on return. */
int hive_start(struct hive *hive);
/* Foreign thread. Guest: the caller's own loop drives the main worker, step by step; all others get threads. *ret_fd polls readable when
 * hive_guest_step() has something to do; it belongs to the hive, and stays the same until that returns -ESHUTDOWN, which closes it. Call
 * hive_guest_step() once after this. -ENOTSUP: the core of the main worker has no descriptor that can be polled ("poll"), or the host has no
 * threads; then nothing runs, and it may be tried otherwise.                                                             */
int hive_guest_start(struct hive *hive, int *ret_fd);
/* Foreign thread: the one that called hive_guest_start(). Beats of the main worker, without blocking, until there is nothing to do or its frame
 * (frame_ns of its options; 4 ms if they name none) is used up. Then, in the first case, its sleep is announced, so that any later post makes the descriptor
 * readable. Call it again when it is, or after *ret_wait_ns (0: at once; HIVE_FOREVER: only the descriptor). Between two steps that thread is a foreign one: what it
 * waits for there must not need the main worker; hive_join() is refused with -EDEADLK.
 * -ESHUTDOWN: stopped, do not call it again. -EPERM: another thread. -EINVAL: not started as a guest. -EDEADLK: inside a task of this very
 * worker, that is in a nested loop of the host: nothing is run, and *ret_wait_ns is HIVE_FOREVER; the descriptor may stay readable until the
 * outer step has returned, so a nested loop leaves it out.                                                              */
int hive_guest_step(struct hive *hive, int64_t *ret_wait_ns);

/* Any thread. A request, at once: posts are refused; timers, delayed posts not yet due and sources are silent from
 * here, as they alone would never end. HIVE_DRAIN: what is queued runs; at the deadline as HIVE_NOW. HIVE_NOW: what has
 * not begun is dropped. A second call may only hurry: an earlier deadline, or HIVE_NOW after HIVE_DRAIN (-EALREADY when
 * there is nothing to hurry).                                                                                         */
int hive_stop(struct hive *hive, enum hive_stop_mode mode, int64_t deadline_ns);
/* May wait. Until stopped; no callback runs after 0. -EDEADLK on its own workers. -EINVAL: never started. -ETIMEDOUT. */
int hive_join(struct hive *hive, int64_t deadline_ns);
/* Any thread. Final after stop, else -EBUSY. */
int hive_report_read(const struct hive *hive, struct hive_report *ret_report);

/* Foreign thread. Just a runtime: hive_create() with HIVE_AUTO for counts that are zero (HIVE_NONE: no compute workers) and, unless the
 * options or a preset say otherwise, HIVE_TIMERS_WHEEL; hive_start(); and stop, join, destroy. The handle is gone after runtime_stop.
 * -ETIMEDOUT: it is gone, and what had not begun by the deadline was dropped. -EDEADLK: on a worker.                     */
HIVE_CHECKED int hive_runtime_start(const struct hive_options *options, struct hive **ret_hive);
int hive_runtime_stop(struct hive *hive, enum hive_stop_mode mode, int64_t deadline_ns);

/* Any thread. How many workers the affinity mask and the cgroup's CPU quota suggest; at least 1. */
int32_t hive_cpus(void);
/* Any thread. "0.1.0"; and sizes by struct name for bindings, e.g. "hive_timer"; 0: unknown. */
const char *hive_version(void);
size_t hive_sizeof(const char *struct_name);
HIVE_END
