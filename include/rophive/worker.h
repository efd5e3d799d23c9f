/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/task.h>

/* Workers are named by id: index + generation. A stale id is refused (-ESRCH); a stale pointer could not be. */
HIVE_BEGIN
struct hive;
struct hive_core_ops;

#define HIVE_WORKERS_MAX 1024 /* of each kind, at one time, in one hive */

enum hive_worker_kind { HIVE_WORKER_IO = 0, HIVE_WORKER_COMPUTE = 1 };
/* Which local task runs next. Oldest first: the latest hive_post_local() waits in a place of its own and runs before the
 * others, three times in a row at most.                                                                               */
enum hive_order { HIVE_ORDER_DEFAULT = 0, HIVE_ORDER_NEWEST = 1, HIVE_ORDER_OLDEST = 2 };
/* Whom an idle worker robs: anybody; who has most (and does not search itself), and then the pool is asked once more; the
 * nearest that has something: on the same core, L2, L3, node, and others only when these gave nothing; at random among equals. */
enum hive_victim { HIVE_VICTIM_DEFAULT = 0, HIVE_VICTIM_RANDOM = 1, HIVE_VICTIM_BUSIEST = 2, HIVE_VICTIM_NEAR = 3 };

/* How an IO worker keeps its timers. Both fire in the same order, never early. HEAP: O(log n), memory as needed, so that starting
 * one may fail; knows the next deadline exactly. WHEEL: starting and stopping in O(1), cannot fail, 41 KiB from the start; for
 * thousands of timers, most of which are stopped before they fire. DEFAULT: heap.                                            */
enum hive_timers { HIVE_TIMERS_DEFAULT = 0, HIVE_TIMERS_HEAP = 1, HIVE_TIMERS_WHEEL = 2 };

/* All zero: an IO worker on the best core */
struct hive_worker_options {
	enum hive_worker_kind kind;
	enum hive_order order;
	enum hive_timers timers;
	enum hive_victim victim;
	const char *name;                 /* copied, 31 bytes; NULL: "io-3", "compute-0" */
	const struct hive_core_ops *core; /* NULL: the host's, else hive_core_find("best"). IO workers only */
	void *core_arg;
	/* On the worker's thread: before its first and after its last beat (the place to start and stop sources and
	 * timers), before it blocks and after it blocked (not around a spin; of a guest, at the end of a step after which its host
	 * waits, and in the next one). All may post.                                                              */
	hive_fn *on_start, *on_stop, *on_park, *on_unpark;
	void *hook_arg;
	/* Parameters, 0: the default of src/sched/tune.h, which says what each is good for. */
	int32_t local_capacity; /* tasks, a power of two, 4 … 65536 */
	int32_t local_budget; /* local tasks per beat; HIVE_OFF: adaptive, fewer while events or private tasks wait, else more */
	int32_t private_budget;      /* private tasks per beat */
	int32_t timer_budget;        /* timers per beat */
	int32_t pool_probe_interval; /* busy beats between two looks at the pool */
	int32_t pool_batch;          /* tasks taken from the pool at once, at most 256 */
	int32_t steal_attempts;      /* victims per theft, if they are drawn at random; HIVE_OFF: never steals */
	int32_t io_interval;         /* busy beats between two looks at events, letters and timers */
	int64_t slice_ns;            /* longest time per step, beyond the task that is running */
	int64_t spin_ns;             /* longest spin before sleep; HIVE_OFF: none */
	/* How the system shall treat the thread. Of these only cpus and realtime apply to the thread that calls hive_run(), the latter while
	 * it runs the hive; its timer slack and time slice are shortened meanwhile. A guest's host keeps its thread as it is, but for cpus. */
	int32_t nice; /* default: compute workers at least 5, beside a worker with `ui` that was attached before 19, and slices of 10 ms; IO workers as they are; HIVE_OFF: leave it */
	/* SCHED_FIFO, priority 1–99; -EPERM from run, start or attach if not allowed. For who does little, and at once: a thread that computes for long
	 * keeps its CPU from everybody else. Threads and processes that it starts are ordinary ones. 0: none; ui: 1 where the system allows it and
	 * hive_cpus() are two or more, unless nice (HIVE_OFF too) or batch are set here, the thread is nice or not SCHED_OTHER already, or RLIMIT_RTTIME
	 * is set (set later: given back within 0.1 s, when it sleeps). HIVE_OFF: none for a ui either.                                  */
	int32_t realtime;
	bool batch;           /* SCHED_BATCH; not with realtime */
	const uint16_t *cpus; /* pin to these; copied */
	size_t cpu_count;
	bool no_outbox;       /* posts from inside go straight to the pool */
	bool no_steal;        /* nobody steals from it, and it steals from nobody */
	bool keep_signals;    /* keep the mask of the thread that starts it; default: block all but what faults raise */
	int32_t ring_entries; /* of a core with a ring ("uring"): what it sends at once, 4 … 32768; 0: 256 */
	/* The manners of a UI thread: frame_ns 4 ms, a small share of the pool, which others are asked to serve first; it does not steal
	 * (others may steal from it), and looks at events in each beat whatever the preset says. IO workers only. docs/scheduling.md   */
	bool ui;
	/* Tasks taken from the shared pool in a beat, at most 256; 0: pool_batch, ui: 1. HIVE_OFF: none, as long as there is an IO worker
	 * without this and the hive does not stop.                                                                         */
	int32_t pool_share;
	/* Longest beat, beyond the task that is running: then events come again, and what had no turn is the first of the next beat. 0: no
	 * limit but those of its steps, ui: 4 ms; HIVE_OFF: none for a ui either. A guest's step is as long.                */
	int64_t frame_ns;
	uint64_t reserved[6]; /* must be zero */
};

/* Any thread. Before run: registered, no thread yet. While running: its thread starts, and the call returns when
 * its core is open. The first IO worker attached is the main worker. ret_worker may be NULL. -ENOSPC: too many. */
HIVE_CHECKED int hive_attach(struct hive *hive, const struct hive_worker_options *options, uint32_t *ret_worker);
/* May wait. Takes it out of the hive; queued tasks and timers move to others (timers started with
 * hive_timer_start() to the main worker), private tasks already there run before it leaves. Sources still started
 * on it are stopped and warned about. -EINPROGRESS: out of the hive, thread still in its last task at the
 * deadline. -EBUSY: main worker, or the last compute worker with work left. -EDEADLK: called on a worker of this
 * hive with a deadline other than HIVE_NOWAIT.                                                                */
int hive_detach(struct hive *hive, uint32_t worker, int64_t deadline_ns);
/* May wait. Attaches or detaches until there are so many of each kind; the main worker counts as one and stays. Who comes has the options
 * that hive_create() was given for its kind; who goes is the latest slot, and leaves as with hive_detach(). HIVE_AUTO: as many as hive_cpus()
 * says, and from now on as the affinity mask and the quota change, until a count is given. Calls come one after the other: -ETIMEDOUT,
 * another one was under way until the deadline. -EINPROGRESS: the counts hold, and somebody is still in his last task.
 * -EBUSY: no compute workers, with work left for them. -EDEADLK: on a worker of this hive, unless HIVE_NOWAIT. What attach cannot have
 * (-ENOMEM, -EAGAIN, …) ends the call, and the counts are as far as it got.                                            */
int hive_resize(struct hive *hive, int32_t io_workers, int32_t compute_workers, int64_t deadline_ns);
/* Any thread. Ids of the moment, IO workers first; returns how many there are, writes at most `capacity`. */
size_t hive_workers(const struct hive *hive, uint32_t *ret_workers, size_t capacity);
/* Any thread. Own worker's id, or HIVE_WORKER_NONE on a foreign thread. */
uint32_t hive_worker_current(void);
/* Any thread. Own hive, or NULL on a foreign thread. */
struct hive *hive_current(void);
/* Any thread. True: the task or the fiber that runs has used up its slice (slice_ns), others are due; a fiber has a new one whenever it
 * goes on. On a foreign thread false. Cheap enough for inner loops.                                                          */
bool hive_should_yield(void);
HIVE_END
