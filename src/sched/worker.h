/* SPDX-License-Identifier: MIT */
#pragma once
/* A worker: what it is made of, and who may touch what.
 *
 *   I  constant after attach (or create)      O  owner thread only      S  owner stores, anyone loads
 *   A  any thread, atomic                     L  under the lock named                                     */
#include "base/atomic.h"
#include "base/lock.h"
#include "base/parker.h"
#include "base/thread.h"
#include "base/scope.h"
#include "queue/inbox.h"
#include "queue/mesh.h"
#include "queue/slab.h"
#include "queue/tray.h"
#include "sched/guest.h"
#include "sched/local.h"
#include "sched/parcel.h"
#include "sched/parking.h"
#include "sched/timers.h"
#include "sched/trail.h"
#include "sched/tune.h"

#include <rophive/hive.h>

struct fork_stack; /* team.h */

struct worker_setup { /* the options of a worker, checked and with defaults filled in */
	int32_t local_budget, private_budget, timer_budget;
	enum hive_timers timers; /* HEAP or WHEEL */
	int32_t pool_probe_interval, pool_batch, pool_crowd, steal_attempts, newest_run, io_interval;
	enum hive_victim victim;
	bool pool_first; /* a look at the pool that is due comes before the local queue, and takes one task */
	bool last_now;   /* of a batch from the pool the last task runs at once */
	int64_t slice_ns, spin_ns;
	int64_t frame_ns; /* HIVE_OFF: none */
	bool ui;          /* others are asked first */
	bool keeps_out;   /* of the pool, while there are others for it */
	int32_t nice, realtime;
	bool adaptive;            /* local_budget is where it begins */
	bool realtime_if_allowed; /* and as it is where it is not */
	bool nice_by_default, batch, outbox, stealing, keep_signals;
	hive_fn *on_start, *on_stop, *on_park, *on_unpark;
	void *hook_arg;
	const struct hive_core_ops *core;
	void *core_arg;
	bool any_core; /* nobody named one: if it cannot be opened, another one does */
	uint32_t ring_entries;
	uint16_t *cpus;
	size_t cpu_count;
	const struct topology *topology; /* the hive's; NULL: unknown */
};

/* L registry_lock */
enum worker_life {
	WORKER_FREE,     /* the slot may be used again */
	WORKER_ATTACHED, /* no thread yet */
	WORKER_RUNNING,
	WORKER_LEAVING, /* detached, its thread has not ended or was not joined */
};

struct worker_counters { /* S */
	ATOMIC(uint64_t) beats, posted, ran, stolen, spilled, sleeps, spins, events, timers_fired;
	ATOMIC(uint64_t) steal_rounds, steal_failures, steal_pauses, stolen_far;
	ATOMIC(uint64_t) private_tasks, sources, timers; /* timers: embedded ones that are armed */
	ATOMIC(uint64_t) lane_letters, lane_falls;
	ATOMIC(uint64_t) forks; /* of others, that it ran */
	ATOMIC(uint64_t) frames_cut;
	ATOMIC(int64_t) asleep_ns;
	ATOMIC(uint32_t) budget; /* local tasks per beat, at this moment */
};

struct spares { /* O  free items of a slab, linked through their letters */
	struct parcel *first;
	uint32_t count;
};

struct private_queue { /* O  parcels in order, linked through their letters */
	struct letter *first, **last;
};

struct slice {         /* of the task under way: slice.c */
	uint64_t task; /* which one: how many had begun with it, and in which beat; 0: none yet */
	uint32_t beat;
	uint32_t left;   /* questions until the clock is read */
	uint32_t stride; /* questions between two looks at it */
	bool over;
	int64_t began_ns; /* 0: not looked yet */
	int64_t looked_ns;
};

struct watched { /* what the monitor saw when it looked last */
	uint64_t progress;
	int64_t since_ns;
	uint32_t thread;
	bool reported;
};

enum { WORKER_STEPPED = UINT32_MAX }; /* as system_thread: its host calls it */

struct worker {
	struct hive *hive;          /* I */
	uint32_t self_id;           /* I  as its own tasks see it */
	uint32_t index;             /* I  among the workers of its kind */
	enum hive_worker_kind kind; /* I */
	struct worker_setup setup;  /* I  but for its core: L registry_lock */
	char name[32];              /* I */
	uint64_t local_capacity;    /* I */
	struct hive_task *scratch;  /* O  room for half of the local queue */
	ATOMIC(uint32_t) cpu;       /* S  where it is, for those who look for the nearest */

	enum worker_life life;              /* L registry_lock */
	uint32_t generation;                /* L registry_lock */
	bool abandoned;                     /* L registry_lock  its detach did not wait for the end */
	bool has_thread;                    /* L registry_lock */
	sigset_t creator_signals;           /* I  mask of the thread that gave it its thread */
	bool is_realtime;                   /* O  main worker: the thread of hive_run() was given real-time priority */
	struct thread_policy policy_before; /* O  how its thread was scheduled */
	int64_t review_ns; /* O  when its real-time priority is questioned; HIVE_FOREVER: it has none that nobody asked for */
	int64_t slack_before;   /* O  likewise its timer slack */
	uint64_t thread;        /* L registry_lock */
	struct hive_core *core; /* O; others: L registry_lock, or between claim and wake */

	alignas(CACHE_LINE) struct private_queue mail; /* O */
	struct private_queue yielded;                  /* O  guests that let everybody else have a turn */
	struct timers timers;                          /* O */
	struct letter *unplaced;                       /* O  delayed posts that found no memory in the heap yet */
	uint64_t timer_sequence;                       /* O */
	struct hive_timer *firing;            /* O  periodic timer whose callback runs, if it was not stopped there */
	struct hive_source *sources;          /* O  started ones */
	struct spares spare_parcels;          /* O */
	struct spares spare_delayed;          /* O */
	uint32_t outbox_count;                /* O */
	struct hive_task outbox[TUNE_OUTBOX]; /* O */
	uint64_t rng;                         /* O */
	uint32_t take_lane;                   /* O  where the next look at the pool begins */
	uint32_t last_batch, thin_batches;    /* O  how much the last looks at the pool brought */
	bool tiny;                            /* O  tasks were, when their time was last looked at */
	bool patient;                         /* O  waits a moment before it looks at the pool */
	uint32_t busy_beats;                  /* O  in a row, without a look at the pool */
	uint32_t tick;                        /* O  beats, for the intervals */
	int32_t newest_run;                   /* O  newest-first tasks in a row */
	uint64_t events_seen;                 /* O  of its statistics, when the budget was looked at */
	int64_t oldest_turn_ns;               /* O  when the oldest had its turn for the sake of time */
	int64_t frame_ns;                     /* O  longest beat; 0: no limit */
	int64_t frame_end_ns;                 /* O  of the beat under way; 0: no limit */
	int64_t frame_limit_ns;               /* O  of the step of a guest; HIVE_FOREVER: it is none */
	uint32_t frame_part;                  /* O  with which a beat with a limit begins */
	int64_t down_ns;                      /* O  when a guest fell asleep */
	bool outside;                         /* O  it sleeps among those that keep out of the pool */
	bool busy;                            /* O  its last beat found local tasks, pool tasks or loot */
	bool announced, searching;            /* O  its marks in the idle set */
	bool found;                           /* O  its last look before sleeping found something */
	bool unshared; /* O  a turn has brought tasks of which nobody was told; asked with the two before, for each task */
	bool in_sight;            /* O  there was something to take when it last looked at all others */
	uint32_t thwarted;        /* O  rounds in a row that failed although something was in sight */
	uint32_t put_awaited;     /* O  looks into a tray, in a row, at a put that was under way */
	bool silenced;            /* O  stop was seen: no timers, no sources */
	bool closing;             /* O  it leaves a hive that ends: alarms ring now, or never */
	bool started;             /* O  on_start was called */
	bool core_failed;         /* O  a failing turn was reported */
	uint32_t claims;          /* O  how often it found itself claimed; equals `woken` once all wakes are in */
	int64_t timer_wake_ns;    /* O  last wake-up for timers */
	int64_t up_ns;            /* O  when it got up; 0: since then it has done something */
	int64_t wait_ewma_ns;     /* O  how long it usually waits for a post */
	int64_t no_spin_until_ns; /* O */
	int64_t spin_penalty_ns;  /* O */
	int64_t next_move_ns;     /* O */
	uint32_t same_cpu_wakes;  /* O */
	uint32_t far_wakes;       /* O  in a row, from other CPUs, on a full machine */
	uint32_t spare_holds;     /* O  counted in the hive's holds, and nobody's yet */
	bool told_guests;         /* O  that nothing may wait any more */
	struct guest_place place; /* O */
	struct slice slice;       /* O */
	void *task_slot;          /* O  of who wraps the task that runs: guest.h */
	struct step *step;        /* O  under way, whose tasks may follow each other: step.h */
	bool turning;             /* O  inside a turn of its core */
	bool still;               /* O  nothing has happened in there since it began, or was announced in there */
	bool foreign;             /* O  inside a callback of a core that is a loop of somebody else */
	uint32_t brought_count;   /* O */
	struct hive_task brought[TUNE_BROUGHT]; /* O  guests made ready by the turn under way, in no queue yet */
	struct worker_counters stats;           /* S */
	ATOMIC(hive_fn *) last_task;            /* S  that it began */
	ATOMIC(uint32_t) seeks;                 /* S  `searching`, for thieves that look for the busiest */
	struct trail trail;                     /* S */

	struct local local;                /* owner pushes and pops, others steal */
	ATOMIC(struct fork_stack *) forks; /* S  made by its first fork; likewise: team.h */
	char *stack_low;                   /* O  where the stack of its thread ends; NULL: not known */
	const ATOMIC(uint32_t) *state;     /* I  of the hive, for groups */
	enum hive_priority level;          /* O  of the compute task that it runs */
	uint32_t helps;                    /* O  tasks that it runs while others wait, inside each other */
	struct worker *next_helper;        /* whose task waits for the same group; under the latch of that */
	struct scope scope;                /* O  of the task that it runs */
	ATOMIC(uint32_t) dozes;            /* S  its task waits, and will not wait for ever */
	bool looked_twice;                 /* O  since it had something to do: see hive__fork_patience() */

	alignas(CACHE_LINE) struct inbox inbox; /* A */
	ATOMIC(uint32_t) id;                    /* A  by which it can be found; 0 when it cannot */
	ATOMIC(uint32_t) stealable;             /* A  others may steal from it */
	ATOMIC(uint32_t) shy;                   /* A  others are asked before it, and nothing is placed there */
	ATOMIC(uint32_t) leave;                 /* A  detached: leave after this beat */
	ATOMIC(uint32_t) opened;                /* A  0: not yet; 1: ready; else 1 + errno of the failure. A futex */
	ATOMIC(uint32_t) gone;                  /* A  its thread has done everything. A futex */
	ATOMIC(uint32_t) delayed_count;         /* A  delayed posts here and on the way here */
	ATOMIC(uint32_t) cancelled; /* A  about how many of these are dead: cancelled by others since the last sweep */
	ATOMIC(uint32_t) adopting;  /* A  its farewell parcel is under way */
	ATOMIC(uint32_t) parking;   /* A  enum parking: how far it is on its way to sleep */
	ATOMIC(uint32_t) woken;     /* A  wakes delivered by claimers */
	ATOMIC(uint32_t) waker_cpu; /* A  of the last claimer */
	ATOMIC(int64_t) wake_ns;    /* A  when the last claimer claimed */
	struct parker parker;       /* A  compute workers */
	struct mesh mesh;           /* A  lanes to here */
	/* S, each of the sender with this index: his lane to here, see mesh.c */
	ATOMIC(uint8_t) roads[HIVE_WORKERS_MAX];
	uint64_t loose;                  /* O  letters that it sent by the inbox because a lane could not be made */
	ATOMIC(uint64_t) loose_returned; /* A  of these: have arrived */
	struct tray placed;              /* A  what others have sent here, for anybody to run */
	struct slab parcels;             /* A */
	struct slab delayed;             /* A */
	struct parcel farewell;          /* O until pushed, then of the adopter */
	ATOMIC(uint32_t)
	system_thread;          /* S  the system's number of its thread, from its first hook to its last; else 0 */
	struct watched watched; /* of the monitor */
};

/* Any thread. Its timers, and delayed posts that are there or on the way there. */
static inline uint64_t worker_timers(struct worker *w)
{
	return load_relaxed(&w->delayed_count) + load_relaxed(&w->stats.timers);
}
