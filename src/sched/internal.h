/* SPDX-License-Identifier: MIT */
#pragma once
/* The two structs of the scheduler and what its files offer each other. ARCHITECTURE.md has the map.
 *
 * Who may touch a field:
 *   I  constant after attach (or create)      O  owner thread only      S  owner stores, anyone loads
 *   A  any thread, atomic                     L  under the lock named                                     */
#include "base/atomic.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/forkmark.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/parker.h"
#include "base/thread.h"
#include "queue/idle.h"
#include "queue/inbox.h"
#include "queue/pool.h"
#include "queue/slab.h"
#include "sched/guest.h"
#include "sched/local.h"
#include "sched/parcel.h"
#include "sched/slots.h"
#include "sched/state.h"
#include "sched/timers.h"
#include "sched/trail.h"
#include "sched/tune.h"

#include <rophive/hive.h>

/* In hive_core_ops.flags: with core_arg NULL, open() gets a struct memory (core/cores.h says the same). */
#define CORE_TAKES_MEMORY 1u

struct worker_setup { /* the options of a worker, checked and with defaults filled in */
	int32_t local_budget, private_budget, timer_budget;
	enum hive_timers timers; /* HEAP or WHEEL */
	int32_t pool_probe_interval, pool_batch, steal_attempts, newest_run, io_interval;
	enum hive_victim victim;
	bool pool_first; /* a look at the pool that is due comes before the local queue, and takes one task */
	bool last_now;   /* of a batch from the pool the last task runs at once */
	int64_t slice_ns, spin_ns;
	int32_t nice, realtime;
	bool nice_by_default, batch, outbox, stealing, keep_signals;
	hive_fn *on_start, *on_stop, *on_park, *on_unpark;
	void *hook_arg;
	const struct hive_core_ops *core;
	void *core_arg;
	uint16_t *cpus;
	size_t cpu_count;
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
	ATOMIC(uint64_t) private_tasks, sources;
	ATOMIC(int64_t) asleep_ns;
};

struct spares { /* O  free items of a slab, linked through their letters */
	struct parcel *first;
	uint32_t count;
};

struct private_queue { /* O  parcels in order, linked through their letters */
	struct letter *first, **last;
};

struct worker {
	struct hive *hive;          /* I */
	uint32_t self_id;           /* I  as its own tasks see it */
	uint32_t index;             /* I  among the workers of its kind */
	enum hive_worker_kind kind; /* I */
	struct worker_setup setup;  /* I */
	char name[32];              /* I */
	uint64_t local_capacity;    /* I */
	struct hive_task *scratch;  /* O  room for half of the local queue */

	enum worker_life life;    /* L registry_lock */
	uint32_t generation;      /* L registry_lock */
	bool abandoned;           /* L registry_lock  its detach did not wait for the end */
	bool has_thread;          /* L registry_lock */
	sigset_t creator_signals; /* I  mask of the thread that gave it its thread */
	uint64_t thread;          /* L registry_lock */
	struct hive_core *core;   /* O; others: L registry_lock, or between claim and wake */

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
	bool patient;                         /* O  waits a moment before it looks at the pool */
	uint32_t busy_beats;                  /* O  in a row, without a look at the pool */
	uint32_t tick;                        /* O  beats, for the intervals */
	int32_t newest_run;                   /* O  newest-first tasks in a row */
	int64_t oldest_turn_ns;               /* O  when the oldest had its turn for the sake of time */
	bool announced, searching;            /* O  its marks in the idle set */
	bool busy;                            /* O  its last beat found local tasks, pool tasks or loot */
	bool found;                           /* O  its last look before sleeping found something */
	bool silenced;                        /* O  stop was seen: no timers, no sources */
	bool started;                         /* O  on_start was called */
	bool core_failed;                     /* O  a failing turn was reported */
	uint32_t claims;              /* O  how often it found itself claimed; equals `woken` once all wakes are in */
	int64_t timer_wake_ns;        /* O  last wake-up for timers */
	int64_t wait_ewma_ns;         /* O  how long it usually waits for a post */
	int64_t no_spin_until_ns;     /* O */
	int64_t spin_penalty_ns;      /* O */
	int64_t next_move_ns;         /* O */
	uint32_t same_cpu_wakes;      /* O */
	uint32_t far_wakes;           /* O  in a row, from other CPUs, on a full machine */
	uint32_t spare_holds;         /* O  counted in the hive's holds, and nobody's yet */
	bool told_guests;             /* O  that nothing may wait any more */
	struct guest_place place;     /* O */
	struct step *step;            /* O  under way, whose tasks may follow each other: worker.c */
	struct worker_counters stats; /* S */
	ATOMIC(hive_fn *) last_task;  /* S  that it began */
	ATOMIC(uint32_t) seeks;       /* S  `searching`, for thieves that look for the busiest */
	struct trail trail;           /* S */

	struct local local; /* owner pushes and pops, others steal */

	alignas(CACHE_LINE) struct inbox inbox; /* A */
	ATOMIC(uint32_t) id;                    /* A  by which it can be found; 0 when it cannot */
	ATOMIC(uint32_t) stealable;             /* A  others may steal from it */
	ATOMIC(uint32_t) leave;                 /* A  detached: leave after this beat */
	ATOMIC(uint32_t) opened;                /* A  0: not yet; 1: ready; else 1 + errno of the failure. A futex */
	ATOMIC(uint32_t) gone;                  /* A  its thread has done everything. A futex */
	ATOMIC(uint32_t) timer_count;           /* A  timers here and on the way here */
	ATOMIC(uint32_t) cancelled; /* A  about how many of these are dead: cancelled by others since the last sweep */
	ATOMIC(uint32_t) adopting;  /* A  its farewell parcel is under way */
	ATOMIC(uint32_t) woken;     /* A  wakes delivered by claimers */
	ATOMIC(uint32_t) waker_cpu; /* A  of the last claimer */
	ATOMIC(int64_t) wake_ns;    /* A  when the last claimer claimed */
	struct parker parker;       /* A  compute workers */
	struct slab parcels;        /* A */
	struct slab delayed;        /* A */
	struct parcel farewell;     /* O until pushed, then of the adopter */
};

struct hive {
	struct hive_host host;             /* I  complete: no NULL but for what is optional */
	struct memory memory;              /* I */
	bool stepped;                      /* I  no threads: the host calls steps */
	struct hive *outer_world;          /* O  of the thread that started it: started there before */
	bool exact_clock;                  /* I  the clock is the host's own: no gap between timers, no spin */
	uint32_t cpus;                     /* I */
	enum hive_preset preset;           /* I */
	size_t reserve_tasks;              /* I */
	void *hook_arg;                    /* I */
	hive_drop_fn *on_drop;             /* I */
	hive_warn_fn *on_warn;             /* I */
	forkmark *mark;                    /* I */
	ATOMIC(struct hive *) next_of_all; /* A  see dump.c */
	ATOMIC(struct worker *) main;      /* A  first IO worker, once attached */

	alignas(CACHE_LINE) ATOMIC(uint32_t) state; /* A  enum hive_state; a futex */

	alignas(CACHE_LINE) struct pool pool;
	struct pool compute_pool;
	struct workers io, compute;

	alignas(CACHE_LINE) struct lock registry_lock;
	ATOMIC(uint32_t) alive;            /* A  workers whose thread has work to do or to clear up */
	bool main_has_thread, main_joined; /* L registry_lock */
	ATOMIC(uint32_t) compute_alive;    /* A  of these: compute workers */
	ATOMIC(uint32_t) in_run;           /* A  a thread is inside hive_run() */
	ATOMIC(uint32_t) holds;            /* A  answers under way, fibers: while there are any, a drain goes on */
	ATOMIC(uint64_t) readied;          /* A  guests made ready by threads that are not IO workers */
	ATOMIC(void *) guests;             /* A  what the upper layer keeps for this hive */
	const struct guest_ops *guest_ops; /* I once guests is set */
	ATOMIC(int64_t) stop_ns;           /* A  when stop was asked for */
	ATOMIC(int64_t) stop_deadline_ns;  /* A */
	ATOMIC(uint64_t) refused, cancelled, wakes, lost_replies;
	struct lock drop_lock;                                  /* one drop hook at a time */
	ATOMIC(uint64_t) dropped, dropped_timers, open_sources; /* L drop_lock for writers */
	int64_t stopped_ns;                                     /* I once STOPPED */
	bool deadline_missed;                                   /* L registry_lock, I once STOPPED */
};

static inline struct workers *hive__set_of(struct worker *w)
{
	return w->kind == HIVE_WORKER_COMPUTE ? &w->hive->compute : &w->hive->io;
}

/* Where the caller runs; in a world without threads everybody runs in one place, or the seed would not decide everything. */
static inline uint32_t hive__cpu(const struct hive *hive)
{
	return hive->stepped ? 0 : hive__thread_cpu();
}

static inline uint32_t hive__state(const struct hive *hive)
{
	return state_read(&hive->state);
}

/* The main worker; NULL before the first IO worker was attached. */
static inline struct worker *hive__main(struct hive *hive)
{
	return slots_main(&hive->main);
}

/* current.c */
extern _Thread_local struct worker *hive__current_worker
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Inline here, where nothing changes stacks between two looks. Who may go on on another thread asks hive__place(). */
static inline struct worker *hive__current(void)
{
	return hive__current_worker;
}

void hive__set_current(struct worker *w);
void hive__enter_world(struct hive *hive);
void hive__leave_world(struct hive *hive);
/* The worker of this very hive that the caller runs on, or NULL. */
static inline struct worker *hive__current_in(const struct hive *hive)
{
	struct worker *w = hive__current();

	return w && w->hive == hive ? w : NULL;
}

/* hive.c */
int64_t hive__now(const struct hive *hive);
void hive__warn(const struct hive *hive, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* dump.c: all hives of the process, from create to destroy */
void hive__remember(struct hive *hive);
void hive__forget(struct hive *hive);
void hive__dump_all(int fd);

static inline void hive__trail(struct worker *w, enum trail_event event, uint64_t many)
{
	trail_add(&w->trail, event, many, load_relaxed(&w->stats.beats));
}

/* setup.c */
bool hive__core_is_complete(const struct hive_core_ops *core);
int hive__setup_check(const struct hive_worker_options *options);
bool hive__oldest_first(const struct hive *hive, const struct hive_worker_options *options);
int hive__setup_fill(struct hive *hive, struct worker *w, const struct hive_worker_options *options);

/* registry.c */
struct worker *hive__find_io(struct hive *hive, uint32_t id);
bool hive__names_compute(struct hive *hive, uint32_t id);
void hive__worker_free(struct worker *w);
void hive__lock_settled(struct hive *hive);

/* worker.c: the beat */
bool hive__beat(struct worker *w);
/* The beat of a worker whose host calls it: the same, but the wait is the host's. */
bool hive__beat_stepped(struct worker *w, int64_t *ret_wait_ns);
void hive__run_task(struct worker *w, struct hive_task task);
bool hive__step_next(struct worker *w, struct hive_task *ret_task);
bool hive__step_would_take(struct worker *w);
struct guest *hive__step_next_guest(struct worker *w, guest_fn *run);
void hive__call_hook(struct worker *w, hive_fn *hook);

/* private.c: parcels and the private queue */
struct parcel *hive__parcel_new(struct worker *home);
struct delayed *hive__delayed_new(struct worker *home);
void hive__parcel_free(struct parcel *p);

static inline void hive__mail_append(struct worker *w, struct parcel *p)
{
	p->letter.next = NULL;
	*w->mail.last = &p->letter;
	w->mail.last = &p->letter.next;
	bump(&w->stats.private_tasks, 1);
}

static inline struct parcel *hive__mail_take(struct worker *w)
{
	struct letter *first = w->mail.first;

	if (!first)
		return NULL;
	w->mail.first = first->next;
	if (!w->mail.first)
		w->mail.last = &w->mail.first;
	bump(&w->stats.private_tasks, (uint64_t)-1);
	return parcel_of_letter(first);
}

/* Who has yielded comes behind what is there by now. */
static inline void hive__mail_take_back(struct worker *w)
{
	if (!w->yielded.first)
		return;
	*w->mail.last = w->yielded.first;
	w->mail.last = w->yielded.last;
	w->yielded.first = NULL;
	w->yielded.last = &w->yielded.first;
}

void hive__receive(struct worker *w, struct letter *letters);

/* sleep.c */
bool hive__own_work(struct worker *w);
bool hive__work_elsewhere(struct worker *w);
int64_t hive__time_to_wait(struct worker *w);
bool hive__fall_asleep(struct worker *w);
void hive__get_up(struct worker *w);
bool hive__spin(struct worker *w);
void hive__note_wait(struct worker *w, int64_t began_ns);
void hive__follow_waker(struct worker *w);

/* wake.c */
void hive__wake_one(struct hive *hive, struct workers *set);
void hive__wake_if_asleep(struct worker *w);
void hive__kick(struct worker *w);
void hive__kick_all(struct hive *hive);
void hive__end_search_now(struct worker *w);

/* Owner thread. It has begun to search, or has ended. The count of searchers is the caller's business. */
static inline void hive__mark_searching(struct worker *w, bool searching)
{
	w->searching = searching;
	store_relaxed(&w->seeks, (uint32_t)searching);
}

/* After something was put: at most one sleeper is woken, none while somebody searches. */
static inline void hive__wake_if_needed(struct hive *hive, struct workers *set)
{
	if (idle_needs_wake(&set->idle))
		hive__wake_one(hive, set);
}

/* Before user code runs, and when something was taken: others must not rely on this worker any more. */
static inline void hive__end_search(struct worker *w)
{
	if (w->searching || w->found)
		hive__end_search_now(w);
}

/* steal.c */
bool hive__take_from_pool(struct worker *w);
bool hive__run_from_pool(struct worker *w);
bool hive__steal_some(struct worker *w);
int hive__spill(struct worker *w);
int hive__post_to_full(struct worker *w, struct hive_task task);
void hive__flush_outbox(struct worker *w);

/* timer.c and after.c */
bool hive__run_first_timer(struct worker *w, int64_t now_ns);
int hive__insert_timer(struct worker *w, struct hive_timer *timer);
int64_t hive__next_due(const struct worker *w);
void hive__place_delayed(struct worker *w, struct delayed *d);
bool hive__run_first_unplaced(struct worker *w, int64_t now_ns);
void hive__move_timers(struct hive_timer *chain, struct worker *to, bool moving);
void hive__adopt_timers(struct worker *w, struct hive_timer *chain);
void hive__unhook_timers(struct worker *w, struct hive_timer **ret_timers, struct letter **ret_delayed);
void hive__fire_delayed(struct hive_timer *timer);
int hive__send_delayed(struct hive *hive, struct delayed *d);
uint64_t hive__random(struct hive *hive);
bool hive__timer_is_delayed(const struct hive_timer *timer);
void hive__sweep_cancelled(struct worker *w);

/* source.c */
uint32_t hive__stop_sources(struct worker *w);

/* compute.c */
bool hive__compute_beat(struct worker *w, int64_t *ret_wait_ns);
void hive__let_end(struct hive *hive, uint32_t holds);
/* Any thread. Takes apart a task of hive_post_compute_then() that will not run: what its user posted. */
struct hive_task hive__cancel_then(void *arg);

/* thread.c: the life of a worker on its thread */
int hive__worker_open(struct worker *w);
void hive__worker_start(struct worker *w);
void hive__worker_end(struct worker *w);
int hive__launch(struct worker *w);
int hive__wait_word(struct hive *hive, ATOMIC(uint32_t) *word, uint32_t while_value, int64_t deadline_ns);
void hive__reap(struct worker *w);
void hive__reap_locked(struct worker *w);
void hive__unlaunch(struct worker *w);

/* Stop was asked for: sources and timers are silent. */
static inline bool hive__is_stopping(const struct worker *w)
{
	return load_relaxed(&w->hive->state) >= HIVE_DRAINING;
}

/* Stop was asked for, and nothing new may begin. */
static inline bool hive__is_halted(const struct worker *w)
{
	return load_relaxed(&w->hive->state) >= HIVE_LEAVING;
}

/* leave.c: the end of a worker, of the hive */
enum parting {
	PARTING_NONE,  /* nobody wants it to leave */
	PARTING_BUSY,  /* it has to leave, and there is work to do before */
	PARTING_WAIT,  /* it has to leave, and will be woken when it may */
	PARTING_LEAVE, /* now */
};
enum parting hive__parting(struct worker *w);
void hive__hand_over(struct worker *w);
void hive__hand_over_unstarted(struct worker *w);
void hive__drop(struct hive *hive, struct hive_task task);
void hive__drop_pool(struct hive *hive, struct pool *pool);
void hive__drop_queues(struct worker *w, bool leaves);
void hive__silence(struct worker *w);

/* run.c */
void hive__finish(struct hive *hive);
void hive__stop_unstarted(struct hive *hive);
void hive__join_main(struct hive *hive);

/* post.c */
int hive__refuse(struct hive *hive, uint64_t tasks);
int hive__own_door(hive_fn *fn, struct worker **ret_worker);
/* What every door asks first. The answer may be old when the task arrives; the queues themselves are closed when the hive
 * stops, so a task is either refused or accounted for.                                                                  */
static inline int hive__door(struct hive *hive, hive_fn *fn)
{
	if (!hive || !fn)
		return -EINVAL;
	if (forkmark_is_child(hive->mark))
		return -EOWNERDEAD;
	return hive__state(hive) >= HIVE_DRAINING ? hive__refuse(hive, 1) : 0;
}

void hive__run_then(void *arg);

/* guest.c */
void hive__run_guest(void *arg);
void hive__drop_guest(struct hive *hive, struct guest *guest);
void hive__stop_guests(struct worker *w);
void hive__return_holds(struct worker *w);
void hive__place_leave(struct worker *w);
void hive__ring_alarms(struct worker *w);
/* Guests are there, and have not all ended. */
static inline bool hive__guests_hold(struct hive *hive)
{
	return load_relaxed(&hive->guests) && holds_left(&hive->holds) > 0;
}
