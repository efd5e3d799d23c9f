/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/core.h>
#include <rophive/fiber.h>
#include <rophive/post.h>
#include <rophive/source.h>
#include <rophive/stats.h>
#include <rophive/sync.h>
#include <rophive/trace.h>
#include <rophive/timer.h>
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
		2 /* oldest first, one task a beat, the system and the pool at intervals, the busiest is robbed */
};

/* On any thread, one call at a time, once for each accepted task that will not run. Must not post or wait. */
typedef void hive_drop_fn(void *hook_arg, const struct hive_task *task);
/* On any thread; one line without newline. Default: stderr. */
typedef void hive_warn_fn(void *hook_arg, const char *text);

/* All zero: an empty hive, attach workers yourself */
struct hive_options {
	int32_t io_workers, compute_workers; /* attached by create; HIVE_AUTO */
	enum hive_preset preset;
	const struct hive_worker_options *io, *compute; /* template for those; NULL: zeros */
	const struct hive_host *host; /* clock, random, memory, threads; NULL: the system. Must outlive the hive */
	void *hook_arg;
	hive_drop_fn *on_drop; /* NULL: they are only counted */
	hive_warn_fn *on_warn;
	size_t reserve_tasks; /* preallocate, so that up to that many waiting posts of each kind allocate nothing */
	uint64_t reserved[8]; /* must be zero */
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

/* Two ways to give it threads. Each returns -EINVAL without an IO worker, -EALREADY the second time, -ESHUTDOWN after
 * stop, -EDEADLK on a worker, and the system's code if a thread or a core could not be had: then nothing runs and it may be tried again.   */
/* Foreign thread. The caller becomes the main worker until stop is complete. */
int hive_run(struct hive *hive);
/* Foreign thread. Every worker, the main one too, gets a thread; all are running on return. */
int hive_start(struct hive *hive);

/* Any thread. A request, at once: posts are refused; timers, delayed posts not yet due and sources are silent from
 * here, as they alone would never end. HIVE_DRAIN: what is queued runs; at the deadline as HIVE_NOW. HIVE_NOW: what has
 * not begun is dropped. A second call may only hurry: an earlier deadline, or HIVE_NOW after HIVE_DRAIN (-EALREADY when
 * there is nothing to hurry).                                                                                         */
int hive_stop(struct hive *hive, enum hive_stop_mode mode, int64_t deadline_ns);
/* May wait. Until stopped; no callback runs after 0. -EDEADLK on its own workers. -EINVAL: never started. -ETIMEDOUT. */
int hive_join(struct hive *hive, int64_t deadline_ns);
/* Any thread. Final after stop, else -EBUSY. */
int hive_report_read(const struct hive *hive, struct hive_report *ret_report);

/* Foreign thread. Just a runtime: hive_create() with HIVE_AUTO for counts that are zero and, unless the options or a preset say
 * otherwise, HIVE_TIMERS_WHEEL; hive_start(); and stop, join, destroy. The handle is gone after runtime_stop.
 * -ETIMEDOUT: it is gone, and what had not begun by the deadline was dropped. -EDEADLK: on a worker.                     */
HIVE_CHECKED int hive_runtime_start(const struct hive_options *options, struct hive **ret_hive);
int hive_runtime_stop(struct hive *hive, enum hive_stop_mode mode, int64_t deadline_ns);

/* Any thread. How many workers the affinity mask and the cgroup's CPU quota suggest; at least 1. */
int32_t hive_cpus(void);
/* Any thread. "0.1.0"; and sizes by struct name for bindings, e.g. "hive_timer"; 0: unknown. */
const char *hive_version(void);
size_t hive_sizeof(const char *struct_name);
HIVE_END
