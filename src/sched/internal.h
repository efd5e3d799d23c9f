/* SPDX-License-Identifier: MIT */
#pragma once
/* The hive, and what the files of the scheduler offer each other. ARCHITECTURE.md has the map; worker.h says who may touch a field. */
#include "base/atomic.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/forkmark.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/topology.h"
#include "queue/idle.h"
#include "queue/pool.h"
#include "sched/levels.h"
#include "sched/slots.h"
#include "sched/state.h"
#include "sched/team.h"
#include "sched/worker.h"

#include <rophive/hive.h>

struct worker_template { /* what hive_resize() makes workers of one kind from */
	struct hive_worker_options options;
	char name[32];
	uint16_t *cpus;
};

struct monitor {               /* the thread that looks after the hive: monitor.c */
	ATOMIC(uint32_t) word; /* A  enum monitor_word; a futex */
	bool has_thread;       /* L registry_lock */
	int64_t follow_ns;     /* O  when the CPUs are counted again */
	uint64_t thread;       /* L registry_lock */
};

struct standstill { /* O of the monitor */
	uint64_t progress;
	int64_t since_ns;
	bool looked, told;
};

struct watchdog {              /* O of the monitor */
	struct hive_task kept; /* rescued, and not yet in the pool */
	bool has_kept;
};

struct hive {
	struct hive_host host;             /* I  complete: no NULL but for what is optional */
	struct memory memory;              /* I */
	bool stepped;                      /* I  no threads: the host calls steps */
	struct hive *outer_world;          /* O  of the thread that started it: started there before */
	bool exact_clock;                  /* I  the clock is the host's own: no gap between timers, no spin */
	uint32_t cpus;                     /* I */
	enum hive_preset preset;           /* I */
	bool two_choices;                  /* I  posts and spawns are placed by load */
	bool mesh;                         /* I  letters between IO workers go by lanes */
	ATOMIC(uint32_t) lanes;            /* A  how many there are */
	size_t reserve_tasks;              /* I */
	void *hook_arg;                    /* I */
	hive_drop_fn *on_drop;             /* I */
	hive_warn_fn *on_warn;             /* I */
	ATOMIC(uint32_t) core_noticed;     /* A  that the core that was wished for is not to be had */
	forkmark *mark;                    /* I */
	ATOMIC(struct hive *) next_of_all; /* A  see dump.c */
	ATOMIC(struct worker *) main;      /* A  first IO worker, once attached */

	alignas(CACHE_LINE) ATOMIC(uint32_t) state; /* A  enum hive_state; a futex */

	alignas(CACHE_LINE) struct pool pool;
	struct levels compute_pool;
	struct workers io, compute;

	alignas(CACHE_LINE) struct lock registry_lock;
	ATOMIC(uint32_t) alive;              /* A  workers whose thread has work to do or to clear up */
	bool main_has_thread, main_joined;   /* L registry_lock */
	ATOMIC(uint32_t) compute_alive;      /* A  of these: compute workers */
	ATOMIC(uint32_t) in_run;             /* A  a thread is inside hive_run(), or calls steps */
	ATOMIC(uint64_t) guest_thread;       /* A  the number of the thread that calls steps; 0: none does */
	bool stepping;                       /* O of that thread  it is inside one */
	ATOMIC(uint32_t) shows;              /* A  it has, or had, a worker with the manners of a UI thread */
	ATOMIC(uint32_t) takers;             /* A  live IO workers that do not keep out of the pool */
	struct idle outside;                 /* A  those that do, asleep: no post to the pool counts on them */
	ATOMIC(uint32_t) holds;              /* A  answers under way, fibers: while there are any, a drain goes on */
	ATOMIC(uint64_t) readied;            /* A  guests made ready by threads that are not IO workers */
	ATOMIC(void *) guests[GUESTS_SORTS]; /* A  what the upper layer keeps for this hive */
	const struct guest_ops *guest_ops[GUESTS_SORTS]; /* I once guests is set */
	ATOMIC(int64_t) stop_ns;                         /* A  when stop was asked for */
	ATOMIC(int64_t) stop_deadline_ns;                /* A */
	ATOMIC(uint64_t) refused, cancelled, wakes, lost_replies;
	uint16_t *pin_cpus; /* I  of the option `pin`, in the order in which workers get them; NULL: they get none */
	uint32_t pin_count, pin_io;          /* I  how many; the first of a compute worker */
	struct topology *topology;           /* L registry_lock; NULL: nobody asked for it yet */
	struct worker_template templates[2]; /* I  by kind */
	int32_t (*count_cpus)(void);         /* I  hive__cpus_allowed(), but for tests */
	ATOMIC(uint32_t) resizing;           /* A  somebody is about the number of workers. A futex */
	ATOMIC(uint32_t) follows[2];         /* A  by kind: as many as there are CPUs; written by who resizes */
	struct monitor monitor;
	int64_t stall_ns; /* I  0: nobody watches */
	bool asks_stacks; /* I  while it runs: workers answer a signal with their stack */
	struct watchdog watchdog;
	struct standstill standstill;
	ATOMIC(uint32_t) awaited;         /* A  threads that wait for the end of fibers, without a deadline */
	ATOMIC(uint64_t) stalls, rescued; /* A  written by the monitor */
	struct lock drop_lock;            /* one drop hook at a time */
	ATOMIC(uint64_t) dropped, dropped_timers, open_sources; /* L drop_lock for writers */
	int64_t stopped_ns;                                     /* I once STOPPED */
	bool deadline_missed;                                   /* L registry_lock, I once STOPPED */
};

static inline struct workers *hive__set_of(struct worker *w)
{
	return w->kind == HIVE_WORKER_COMPUTE ? &w->hive->compute : &w->hive->io;
}

/* It leaves the pool to others, as long as there are any and nothing is to be ended. */
static inline bool hive__is_outside(const struct worker *w)
{
	return w->setup.keeps_out && load_relaxed(&w->hive->takers) > 0 &&
	       load_relaxed(&w->hive->state) < HIVE_DRAINING;
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
/* Any thread. Warns, once, that another core is used than the one that was wished for. */
void hive__notice_core(struct hive *hive, const char *wish, int why, const char *other);
/* To on_warn, or to stderr; also without a hive. */
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
int hive__send_away(struct hive *hive, uint32_t worker, struct worker **ret_leaving);
int hive__see_off(struct hive *hive, struct worker *w, int64_t deadline_ns);

/* resize.c */
int hive__keep_templates(struct hive *hive, const struct hive_options *options);
void hive__free_templates(struct hive *hive);
int hive__attach_some(struct hive *hive, enum hive_worker_kind kind, int32_t n);
bool hive__follows(struct hive *hive);
void hive__follow_cpus(struct hive *hive);

/* monitor.c: one thread more, where something needs it */
int hive__monitor_start(struct hive *hive);
void hive__monitor_stop(struct hive *hive);
/* watchdog.c */
void hive__watchdog_open(struct hive *hive);
void hive__watchdog_close(struct hive *hive);
void hive__watchdog_dress(struct hive *hive);
void hive__watchdog_look(struct hive *hive);
void hive__watchdog_end(struct hive *hive);
uint64_t hive__progress_of(struct worker *w);
/* standstill.c */
void hive__standstill_look(struct hive *hive);

/* The monitor's thread; in a world without threads, who plays it. What is due now is done. */
void hive__monitor_look(struct hive *hive);

/* worker.c: the beat */
bool hive__beat(struct worker *w);
/* The beat of a worker whose host calls it: the same, but the wait is the host's. */
bool hive__beat_stepped(struct worker *w, int64_t *ret_wait_ns);
/* A beat inside a turn of its core, without one. */
bool hive__beat_nested(struct worker *w, int64_t *ret_wait_ns);
/* The beats of a guest: as many as there is something to do for, and time. False: it leaves. */
bool hive__beat_foreign(struct worker *w, int64_t *ret_wait_ns);
void hive__run_task(struct worker *w, struct hive_task task);
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

/* There is one. The first if it is that of a guest of this sort; NULL: it is not. It counts as run. */
static inline struct guest *hive__mail_take_guest(struct worker *w, guest_fn *run)
{
	struct parcel *p = parcel_of_letter(w->mail.first);
	struct guest *guest = (struct guest *)p->task.arg;

	if (p->kind != PARCEL_GUEST || guest->run != run)
		return NULL;
	hive__mail_take(w);
	bump(&w->stats.ran, 1);
	return guest;
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

void hive__receive_one(struct worker *w, struct parcel *p);
void hive__receive(struct worker *w, struct letter *letters);

/* mesh.c: lanes between workers, and the inbox beside them */
bool hive__send_by_lane(struct worker *to, uint32_t target, struct hive_task task);
bool hive__send_parcel(struct worker *to, struct parcel *p);
void hive__take_letters(struct worker *w);
void hive__close_letters(struct worker *w);
uint64_t hive__letters_in_lanes(struct worker *w, uint32_t *ret_lanes);
void hive__mesh_destroy(struct worker *w);

/* Any thread. Nobody has sent it anything. */
static inline bool hive__no_letters(struct worker *w)
{
	return inbox_is_empty(&w->inbox) && mesh_is_empty(&w->mesh);
}

/* sleep.c */
bool hive__own_work(struct worker *w);
bool hive__work_elsewhere(struct worker *w);
int64_t hive__time_to_wait(struct worker *w);
bool hive__fall_asleep(struct worker *w);
bool hive__fall_asleep_in_task(struct worker *w);
void hive__get_up(struct worker *w);
bool hive__spin(struct worker *w);
void hive__note_wait(struct worker *w, int64_t began_ns);
void hive__follow_waker(struct worker *w);

/* wake.c */
void hive__wake_one(struct hive *hive, struct workers *set);
/* True: it slept, and was claimed and woken by this call. */
bool hive__wake_if_asleep(struct worker *w);
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
	if (w->searching || w->found || w->unshared)
		hive__end_search_now(w);
}

/* place.c */
bool hive__draw_two(struct hive *hive, struct worker **ret_first, struct worker **ret_second);
bool hive__place_task(struct hive *hive, struct hive_task task);
uint32_t hive__place_outbox(struct worker *w);
bool hive__take_placed(struct worker *w);
uint32_t hive__rob_placed(struct worker *w, struct worker *victim, struct hive_task *ret_first);
bool hive__take_one_placed(struct worker *w, struct hive_task *ret_task);

/* Any thread. There is something that others may take. */
static inline bool hive__has_loot(struct worker *w)
{
	return local_size(&w->local) > 0 || tray_length(&w->placed) > 0;
}

/* near.c: who is near whom */
int hive__learn_topology(struct hive *hive);
int hive__distance(struct worker *w, struct worker *other);
void hive__settle_place(struct worker *w);
int hive__plan_pins(struct hive *hive, uint32_t io_workers);
/* The CPU of the option `pin` for a worker of this kind and index. */
static inline uint16_t hive__pin_of(const struct hive *hive, enum hive_worker_kind kind, uint32_t index)
{
	return hive->pin_cpus[(kind == HIVE_WORKER_IO ? index : hive->pin_io + index) % hive->pin_count];
}

/* Owner thread. It runs here now. */
static inline void hive__note_place(struct worker *w, uint32_t cpu)
{
	if (!w->hive->stepped && w->setup.cpu_count == 0 && load_relaxed(&w->cpu) != cpu)
		store_relaxed(&w->cpu, cpu);
}

/* steal.c */
bool hive__take_from_pool(struct worker *w);
bool hive__run_from_pool(struct worker *w);
bool hive__steal_some(struct worker *w);
int hive__spill(struct worker *w);
int hive__post_to_full(struct worker *w, struct hive_task task, bool soon);
void hive__flush_outbox(struct worker *w);

/* timer.c and after.c */
bool hive__run_first_timer(struct worker *w, int64_t now_ns);
int hive__insert_timer(struct worker *w, struct hive_timer *timer);
int64_t hive__next_due(const struct worker *w);
void hive__place_delayed(struct worker *w, struct delayed *d);
bool hive__run_first_unplaced(struct worker *w, int64_t now_ns);
void hive__move_timers(struct hive_timer *chain, struct worker *to, bool moving);
void hive__end_timers(struct hive_timer *chain);
void hive__adopt_timers(struct worker *w, struct hive_timer *chain);
void hive__unhook_timers(struct worker *w, struct hive_timer **ret_timers, struct letter **ret_delayed);
void hive__fire_delayed(struct hive_timer *timer);
int hive__send_delayed(struct hive *hive, struct delayed *d);
uint64_t hive__random(struct hive *hive);
bool hive__timer_is_delayed(const struct hive_timer *timer);
void hive__sweep_cancelled(struct worker *w);
bool hive__rescue_delayed(struct worker *stuck, int64_t now_ns, uint64_t *place, struct hive_task *ret_task,
                          bool *ret_alarm);

/* source.c */
uint32_t hive__stop_sources(struct worker *w);

/* compute.c */
/* One task of the compute pool. True: there was one, and it was run. */
bool hive__run_compute_task(struct worker *w);
bool hive__compute_beat(struct worker *w, int64_t *ret_wait_ns);
void hive__let_end(struct hive *hive, uint32_t holds);
/* Any thread. Takes apart a task of hive_post_compute_then() that will not run: what its user posted. */
struct hive_task hive__cancel_then(void *arg);

/* thread.c: the life of a worker on its thread */
void hive__ask_short_slices(const struct worker *w);
/* Its own thread. 1: it has real-time priority now, 0: it is as it was. -EPERM. */
int hive__ask_realtime(struct worker *w);
/* Likewise, now and then: what it was given unasked it gives back where that has become dangerous. */
void hive__review_realtime(struct worker *w);
int hive__worker_open(struct worker *w);
void hive__worker_close(struct worker *w);
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
void hive__drop_compute(struct hive *hive);
void hive__drop_queues(struct worker *w, bool leaves);
void hive__silence(struct worker *w);

/* run.c */
/* As hive_run() and hive_guest_start() begin: the caller is about to be the main worker, and all others have threads, but do not beat yet. With
 * ret_fd: the descriptor of its core. 0, or -errno and nothing was done.                                                */
int hive__start_around(struct hive *hive, int *ret_fd);
/* foreign.c: any thread. The caller calls the steps of this hive: nobody else would, while it waits. */
bool hive__steps_here(const struct hive *hive);
/* run.c */
void hive__now_running(struct hive *hive);
void hive__finish(struct hive *hive);
void hive__stop_unstarted(struct hive *hive);
void hive__join_main(struct hive *hive);

/* post.c */
/* Puts, then looks for a sleeper. 0, -ENOMEM; -ESHUTDOWN, and they are counted as refused. */
int hive__post_to_pool(struct hive *hive, const struct hive_task *tasks, size_t n);
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
struct parcel *hive__guest_parcel(struct guest *guest, uint32_t target);
void hive__share_brought(struct worker *w);
void hive__drop_guest(struct hive *hive, struct guest *guest);
void hive__stop_guests(struct worker *w);
void hive__move_guests(struct worker *w);

static inline struct worker *hive__worker_of_place(struct guest_place *place)
{
	return (struct worker *)(void *)((char *)place - offsetof(struct worker, place));
}

void hive__return_holds(struct worker *w);
void hive__place_leave(struct worker *w);
void hive__ring_alarms(struct worker *w);
/* Guests are there, and have not all ended. */
static inline bool hive__guests_hold(struct hive *hive)
{
	bool any = false;

	for (int sort = 0; sort < GUESTS_SORTS && !any; sort++)
		any = load_relaxed(&hive->guests[sort]);
	return any && holds_left(&hive->holds) > 0;
}
