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
	guest_fn *run;        /* on an IO worker. Begins a cache line, in a guest that does */
	guest_fn *drop;       /* on any thread, in place of run, when nothing may begin any more; NULL: it has begun */
};

/* What the scheduler keeps for its guests, of each sort: something for the hive, and for each worker a cache. */
enum guests { GUESTS_FIBERS, GUESTS_IO, GUESTS_BUS, GUESTS_SORTS };

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
/* Any thread. On this very worker: `worker` as in hive_post_to(). 0, -ESRCH, -EINVAL; when it has left meanwhile, anywhere. */
int hive__guest_check_worker(struct hive *hive, uint32_t worker);
void hive__guest_ready_at(struct hive *hive, struct guest *guest, uint32_t worker);
/* Any thread. Holds for what begins with this, and posts its first run, on this very worker or, HIVE_WORKER_NONE, anywhere: 0, or
 * -ENOMEM, -ESHUTDOWN, and then it does not begin.                                                                          */
int hive__guest_launch(struct hive *hive, struct guest *guest, uint32_t worker);
/* Any thread; the caller holds. To the compute workers: 0, -ENOMEM; -ENOTSUP: there are none. */
int hive__guest_compute(struct hive *hive, struct guest *guest);
bool hive__guest_has_compute(struct hive *hive);

/* IO worker. fn(arg) on whatever IO worker keeps it then. 0, -ENOMEM. */
int hive__alarm_start(int64_t due_ns, hive_fn *fn, void *arg, uint64_t *ret_alarm);
/* The same; but if that worker is stuck in something else when it is due, any thread may call it. */
int hive__alarm_start_free(int64_t due_ns, hive_fn *fn, void *arg, uint64_t *ret_alarm);
/* Any thread. True: it will not ring. False: it has rung, or is about to, on another thread, with nothing before it. */
bool hive__alarm_stop(struct hive *hive, uint64_t alarm);

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
