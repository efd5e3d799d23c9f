/* SPDX-License-Identifier: MIT */
#pragma once
/* The door for what lives on top of the scheduler and has begun what it must end: fibers, operations, buses.
 *
 *   A guest is a task that is neither refused nor lost: hive__guest_ready() cannot fail, for its own memory takes the place of
 *   what the queues may not get; and while a hive stops, guests still run when nothing else may begin.
 *   A hold keeps the hive from ending. Whoever has begun something holds, until it has ended.
 *   An alarm is a delayed post of a guest: not silenced by a drain, and rung at once when nothing may wait any more.
 *
 * Only this header connects the upper layer with the scheduler; everything else goes through the public calls.            */
#include <rophive/task.h>

#include "sched/parcel.h"

struct hive;
struct hive_core;
struct hive_source;
struct memory;
struct guest;

typedef void guest_fn(struct guest *guest);

struct guest {
	struct parcel parcel; /* its way to a worker when nothing else has room */
	guest_fn *run;        /* on an IO worker, or where it was sent. Begins a cache line, in a guest that does */
	guest_fn *drop;       /* on any thread, in place of run, when nothing may begin any more; NULL: it has begun */
};

/* What the scheduler keeps for its guests, of each sort: something for the hive, and for each worker a cache. */
enum guests { GUESTS_FIBERS, GUESTS_IO, GUESTS_BUS, GUESTS_GROUPS, GUESTS_STRANDS, GUESTS_SORTS };

struct guest_ops {
	void (*stop)(void *guests,
	             void *cache); /* nothing may wait any more; on each worker. cache: its own, or NULL */
	void (*end)(void *guests); /* the hive is destroyed */
	void (*move)(void *guests,
	             void *cache); /* optional: a worker leaves, others stay: what waits there goes on elsewhere */
	void (*leave)(void *guests, void *cache); /* a worker ends: its cache goes */
	void (*dump)(void *guests, void *to, void (*say)(void *to, const char *words)); /* optional */
	/* Fibers: who `now` is, asked on its own thread, in a signal handler. */
	void (*who)(void *now, void **ret_fn, char ret_name[32]);
	/* Fibers, optional: how many there are, if all of them wait, parked, for what only somebody who runs can bring; else 0. With `say` some of them are
	 * told, a line each. Asked when nobody runs, but not promised.                                                      */
	uint64_t (*standstill)(void *guests, void *to, void (*say)(void *to, const char *line));
};

struct guest_place { /* of an IO worker; O */
	struct hive *hive;
	void *now;                  /* who runs */
	void *cache[GUESTS_SORTS];  /* what its guests keep there */
	struct guest *handed;       /* who runs next */
	ATOMIC(uint32_t) under_way; /* S  operations, for who looks */
	bool gentle;                /* in a turn of the core: who becomes ready now is ready in turn */
};

/* Any thread. The caller's place; NULL: it is not on an IO worker. Ask again after each switch of stacks. */
struct guest_place *hive__place(void);
/* Any thread. True: on a worker of any kind, of any hive. */
bool hive__on_worker(void);

/* Any thread. The guests of a hive; the first caller's are kept and returned to all. NULL: there are none yet. */
void *hive__guests(struct hive *hive, enum guests sort);
void *hive__guests_set(struct hive *hive, enum guests sort, void *guests, const struct guest_ops *ops);
const struct memory *hive__guest_memory(struct hive *hive);

/* Any thread. 0, or -EINVAL, -EOWNERDEAD, -ESHUTDOWN: something new may not begin. */
int hive__guest_door(struct hive *hive);
/* Any thread. The state of a hive, for whoever asks often: from HIVE_LEAVING on nothing may wait any more. */
const ATOMIC(uint32_t) *hive__guest_state(struct hive *hive);

/* Any thread. Not when the hive may have ended: who begins something asked the door first, or holds already. */
void hive__hold(struct hive *hive);
void hive__unhold(struct hive *hive);
/* Any thread. Holds for what begins with this: 0, or -ESHUTDOWN. */
int hive__guest_begin(struct hive *hive);

/* Worker thread, in a guest that keeps tasks. So many of them have run here, and are in no other books; in their place the guest is not in
 * them, if it was called by the scheduler (`called`) and not because it was dropped.                                      */
void hive__guest_ran(uint32_t tasks, bool called);
/* Any thread; the caller holds. A task that a guest kept will not run: to the drop hook. */
void hive__guest_drop_task(struct hive *hive, struct hive_task task);
/* Any thread, in a guest's drop. What it kept is in the books, or nobody's task: it is not in them itself. */
void hive__guest_not_dropped(struct hive *hive);
/* Any thread. The IO worker whose place has the highest rank for this key; HIVE_WORKER_NONE: there is none, or it is just leaving. */
uint32_t hive__guest_choose(const struct hive *hive, uint64_t (*rank)(uint64_t key, uint32_t place), uint64_t key);

/* Any thread; the caller holds. */
void hive__guest_ready(struct hive *hive, struct guest *guest);
/* IO worker; the caller holds. As hive__guest_ready(); inside a turn of the core no other worker is woken: this one goes on with it
 * soon, and tells others when it does something else before.                                                             */
void hive__guest_ready_in_turn(struct guest_place *place, struct guest *guest);
/* IO worker, where a guest has come to rest: the next one of the step under way, when it is a guest's turn; others are run on
 * the way. NULL: the step is over. It counts as run.                                                                    */
struct guest *hive__guest_next(struct guest_place *place);
/* IO worker, where a guest has come to rest and hive__guest_next() is asked next; the caller holds. As hive__guest_ready(). */
void hive__guest_hand(struct guest_place *place, struct guest *guest);
/* IO worker. Behind everybody else, on this worker; nobody else takes it from there. The next one, maybe itself, if it runs by
 * the same function; NULL: who is next is for the loop to find out.                                                      */
struct guest *hive__guest_yield(struct guest_place *place, struct guest *guest);
/* IO worker. Somebody is idle, and this worker has enough to do without the guest that runs. */
bool hive__guest_is_wanted_elsewhere(struct guest_place *place);
/* IO worker. The guest that runs has used up its slice; cheap, and now and then it reads the clock. */
bool hive__guest_is_due(struct guest_place *place);
/* IO worker, which has left it; the caller holds. To whoever is idle. */
void hive__guest_move(struct hive *hive, struct guest *guest);
/* IO worker, whose place it is; the caller holds. On this worker, by its private queue. */
void hive__guest_ready_here(struct guest_place *place, struct guest *guest);
/* IO worker, whose place it is. Nothing is in that queue. */
bool hive__guest_is_caught_up(struct guest_place *place);
/* Who is first in it, if it runs by this function; NULL: nobody. The caller runs it now, and nothing else before. */
struct guest *hive__guest_take(struct guest_place *place, guest_fn *run);
/* Any thread. On this very worker: `worker` as in hive_post_to(). 0, -ESRCH, -EINVAL; when it has left meanwhile, anywhere. */
int hive__guest_check_worker(struct hive *hive, uint32_t worker);
void hive__guest_ready_at(struct hive *hive, struct guest *guest, uint32_t worker);
/* Any thread. Holds for what begins with this, and posts its first run, on this very worker or, HIVE_WORKER_NONE, anywhere: 0, or
 * -ENOMEM, -ESHUTDOWN, and then it does not begin.                                                                          */
int hive__guest_launch(struct hive *hive, struct guest *guest, uint32_t worker);
/* Any thread; the caller holds. To the compute workers: 0, -ENOMEM; -ENOTSUP: there are none. */
int hive__guest_compute(struct hive *hive, struct guest *guest);
/* The same at this priority. A guest that waits at one level already may be given to a higher one too, if its run and drop see to it that the
 * second of the two finds nothing to do: that is how what has become urgent is raised. The queue keeps the pointer until then.       */
int hive__guest_compute_at(struct hive *hive, struct guest *guest, enum hive_priority level);
bool hive__guest_has_compute(struct hive *hive);

/* Any thread. So many threads more, or fewer, wait for the end of guests without a deadline. */
void hive__guest_await(struct hive *hive, int32_t threads);
/* Any thread. A line for on_warn; hive NULL: for stderr. */
void hive__guest_warn(const struct hive *hive, const char *line);

/* IO worker. fn(arg) on whatever IO worker keeps it then. 0, -ENOMEM. */
int hive__alarm_start(int64_t due_ns, hive_fn *fn, void *arg, uint64_t *ret_alarm);
/* The same; but if that worker is stuck in something else when it is due, any thread may call it. */
int hive__alarm_start_free(int64_t due_ns, hive_fn *fn, void *arg, uint64_t *ret_alarm);
/* Any thread; the hive has not ended. As hive__alarm_start_free(), kept by whoever has few; when the hive ends it is rung before its time. -ESHUTDOWN: nobody
 * takes it any more. -ESRCH: no IO worker attached yet. -EOWNERDEAD.                                                     */
int hive__alarm_send(struct hive *hive, int64_t due_ns, hive_fn *fn, void *arg, uint64_t *ret_alarm);
/* Any thread. True: it will not ring. False: it has rung, or is about to, on another thread, with nothing before it. */
bool hive__alarm_stop(struct hive *hive, uint64_t alarm);

/* A task that the upper layer has wrapped: { hive__run_wrapped, it }, by the public calls. If it may not run, the drop hook gets what its user
 * has posted, and then `dropped` is called, on whatever thread.                                                           */
struct wrapped {
	void (*run)(struct wrapped *wrapped);
	void (*dropped)(struct wrapped *wrapped);
	struct hive_task task; /* its user's */
};
void hive__run_wrapped(void *wrapped);
/* Inside its run(). It does not run after all: it goes to the drop hook, and counts as dropped. */
void hive__drop_instead(struct hive *hive, const struct wrapped *wrapped);
/* Any thread, who has cancelled the delayed post that it was. The same. */
void hive__drop_cancelled(struct hive *hive, const struct wrapped *wrapped);
/* Any thread. Where a wrapper keeps what belongs to the task that runs here; nobody else writes it. NULL: this is no worker. */
void **hive__task_slot(void);
/* Any thread. From the host's generator, or one of this thread's. */
uint64_t hive__guest_random(struct hive *hive);

/* What ends an embedded timer from afar: of the upper layer, and known to the timer as long as it is armed. */
struct timer_tie {
	ATOMIC(uint32_t) worker;             /* S  of the timer's owner: where it is */
	ATOMIC(uint32_t) ended;              /* A  the timer must not call its function any more */
	bool (*halt)(struct timer_tie *tie); /* its owner: it is not armed any more, whyever. False: it had ended */
	void (*part)(struct timer_tie *tie); /* and then: nothing of it runs, either */
};
/* Owner thread. 0: the timer may be tied; -EINVAL: it was never initialised; -EALREADY: it is. */
int hive__timer_may_tie(const struct hive_timer *timer);
/* Owner thread, of an armed timer; the tie names this worker. */
void hive__timer_tie(struct hive_timer *timer, struct timer_tie *tie);
/* IO worker. The timer is this one's: nobody else ends it. */
bool hive__tie_is_here(const struct timer_tie *tie);
/* Owner thread. It is not on its way here, or is here now. NULL is. */
bool hive__timer_has_arrived(struct hive_timer *timer);

/* Owner thread. hive_timer_start(), for a point of the clock. */
int hive__timer_start_at(struct hive_timer *timer, int64_t due_ns, int64_t period_ns);
/* Any thread. The caller is this worker, or the one who calls its steps; or it has left, and there is nobody who is. */
bool hive__acts_for(struct hive *hive, uint32_t worker);

/* Any thread. The hive without threads that this thread makes go on; NULL: there is none. */
struct hive *hive__guest_world(void);
/* A thread that is not a worker waits until the word is another one. 0 or -ETIMEDOUT. */
int hive__guest_wait_word(struct hive *hive, ATOMIC(uint32_t) *word, uint32_t value, int64_t deadline_ns);

/* IO worker, inside a turn of its core: something has happened. */
void hive__place_stirs(struct guest_place *place, bool user_code);
/* IO worker, inside a turn of its core. What runs now is user code: others must not count on this worker meanwhile. */
void hive__place_busy(struct guest_place *place);
/* IO worker. Its core, its id. */
struct hive_core *hive__place_core(struct guest_place *place);
uint32_t hive__place_worker(struct guest_place *place);
/* IO worker. Sources of guests: in no list, told to nobody, and delivered until nothing may wait any more. Who added one removes it
 * before its place is left. As the core's calls of these names; -ENOTSUP: the core takes no such source.                       */
int hive__place_add(struct guest_place *place, struct hive_source *source);
int hive__place_modify(struct guest_place *place, struct hive_source *source, uint32_t events);
void hive__place_remove(struct guest_place *place, struct hive_source *source);
