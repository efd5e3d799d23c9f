/* SPDX-License-Identifier: MIT */
#pragma once
/* The inside of a bus. All its memory is one block (layout.c): this struct, tables, workers, and the slots of its rings.
 *
 *   B1  What is accepted has a number in a ring, or is counted in replaced or run_by_caller, before anything else is counted for it. Who wants
 *       to know adds up the ends first and the accepted afterwards: nothing ends that was not accepted.
 *   B2  A worker says that it is busy before it looks whether it may begin, and that it is not when it has stopped taking. Who forbids to
 *       begin looks for busy ones afterwards.                                                                             */
#define IDLE_WORKERS 64 /* HIVE_BUS_WORKERS_MAX and the dispatcher */

#include <rophive/bus.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/parker.h"
#include "base/thread.h"
#include "bus/event.h"
#include "queue/idle.h"
#include "queue/ring.h"

enum bus_shape {
	BUS_SHARED, /* workers take from the ring of submits */
	BUS_DEALT,  /* the dispatcher takes from it, and workers from rings of their own */
	BUS_BOXES   /* submits go to the workers' own rings, by key */
};

enum bus_state { BUS_CREATED, BUS_RUNNING, BUS_STOPPING, BUS_STOPPED };

struct bus_event {
	struct event event;
	struct lock lock; /* of list: who waits, in a bus on a hive */
	void *list[2];    /* L */
};

/* What lies in a slot behind the turn; the payload follows. */
struct bus_envelope {
	struct hive_bus_header header;
	uint32_t type;    /* where it is in the table */
	uint32_t request; /* 1 + the cell of who waits for the reply; 0: nobody does */
	uint64_t asked;   /* the turn of that cell */
};

/* A message that is being handled: as in a slot, with the bus in place of the turn. */
struct bus_hand {
	union {
		struct hive_bus *bus;
		uint64_t turn;
	} of;
	struct bus_envelope envelope;
};

struct bus_type {
	uint32_t number, size;          /* I */
	hive_bus_fn *handle;            /* I */
	void *context;                  /* I */
	ATOMIC(uint64_t) subscriptions; /* A  a bit for each */
	char name[HIVE_BUS_NAME];       /* I */
};

struct bus_subscription {
	ATOMIC(uint32_t) state; /* A  life << 1 | is on */
	ATOMIC(uint32_t) calls; /* A  under way, or about to look at state */
	uint32_t type;          /* L  tables; constant while it is on */
	hive_bus_fn *handle;    /* L  likewise */
	void *context;          /* L  likewise */
	bool taken;             /* L */
};

enum bus_reply { REPLY_NONE, REPLY_AWAITED, REPLY_WRITING, REPLY_GIVEN, REPLY_MISSING, REPLY_DROPPED };

struct bus_request {            /* a cell for one who waits for a reply */
	ATOMIC(uint32_t) state; /* A  turn << 3 | enum bus_reply */
	struct bus_event event;
	void *reply;   /* I  while it is awaited */
	size_t bytes;  /* I  likewise */
	size_t given;  /* who replies, while writing */
	uint32_t next; /* L  1 + the next free one */
};

enum { BUS_WAIT_BUCKETS = 160 };

struct bus_worker {                                    /* also the dispatcher, behind the last one */
	struct hive_bus *bus;                          /* I */
	uint32_t index;                                /* I */
	struct bus_hand *hand;                         /* O  the message that is being handled */
	bool searching;                                /* O  counted as one who searches, see queue/idle.h */
	bool fresh;                                    /* O  has not taken anything since it was up */
	bool announced;                                /* O  rests, or is being woken from that */
	int64_t rest_ns;                               /* O  when it had nothing to do any more */
	int64_t wait_ns;                               /* O  how long that lasts, of late */
	uint32_t vain, pass;                           /* O  looks in vain in a row; rests without one until the next */
	uint32_t taken;                                /* O  since it looked at the level */
	int64_t now_ns;                                /* O  when it looked at the clock last */
	uint32_t clock_left;                           /* O  messages until it does so again */
	uint32_t clock_every;                          /* O */
	uint32_t tries;                                /* O  how often it found a put under way */
	alignas(CACHE_LINE) ATOMIC(uint32_t) busy;     /* S  B2 */
	ATOMIC(uint64_t) handled, failed, wait_max_ns; /* S */
	ATOMIC(uint64_t) waits[BUS_WAIT_BUCKETS];      /* S */
	ATOMIC(uint32_t) depth_max;                    /* S  who puts into its ring */
	ATOMIC(uint32_t) pending; /* A  BY_KEY with dispatcher: accepted for it, and not taken by it */
	ATOMIC(uint64_t) end;     /* A  BUS_BOXES: where it stops */
	struct spsc ring;         /* BUS_DEALT */
	struct mpsc box;          /* BUS_BOXES */
	struct parker parker;
	ATOMIC(int32_t) setup; /* A  1: not known yet; else 0 or -errno */
	uint64_t thread;       /* L  control */
	struct thread_start start;
	uint64_t guest[28]; /* of home_hive.c */
};

struct bus_caller { /* one who handles a message himself; on his stack */
	uint64_t self;
	struct bus_caller *next;
};

/* Whose threads they are. */
struct bus_home {
	/* Under control. 0, or nothing runs. */
	int (*start)(struct hive_bus *bus);
	/* Under control; nobody has anything to do, or may begin. 0: no worker runs any more, nor will. */
	int (*end)(struct hive_bus *bus, int64_t deadline_ns);
	/* Any thread that has claimed it. */
	void (*wake)(struct bus_worker *worker);
	/* Until the sequence is another one: 0, maybe for nothing, or -ETIMEDOUT, -EDEADLK, -ECANCELED. */
	int (*wait)(struct hive_bus *bus, struct bus_event *event, uint32_t seen, int64_t deadline_ns);
	void (*wake_all)(struct bus_event *event);
	int (*may_wait)(void); /* 0, -EDEADLK, -ECANCELED */
	int64_t (*now)(const struct hive_bus *bus);
	uint64_t (*self)(void); /* who runs here */
};

struct hive_bus {
	/* I */
	const struct bus_home *home;
	struct hive *hive;
	enum hive_kind kind;
	enum bus_shape shape;
	enum hive_bus_route route;
	enum hive_bus_on_full on_full;
	uint32_t depth, worker_depth, workers, types, subscriptions, requests;
	uint32_t refill;       /* who waits for room is told from here on down, or looks himself after a while */
	uint32_t room[4];      /* by priority: so many may be in the ring when one comes */
	uint32_t back[4];      /* by level: from so few on it is left */
	size_t stride;         /* of slots */
	struct bus_type *type; /* sorted by number */
	struct bus_subscription *subscription;
	struct bus_request *request;
	struct bus_worker *worker;
	struct bus_hand *spare; /* L  drop */
	int32_t realtime;
	uint16_t cpus[64];
	uint32_t cpu_count;
	void *hook_arg;
	void (*on_level)(void *hook_arg, enum hive_bus_level level);
	void (*on_drop)(void *hook_arg, const struct hive_bus_header *header, const void *payload);
	void (*on_fail)(void *hook_arg, const struct hive_bus_header *header, int error);
	bool allocated;
	char name[HIVE_BUS_NAME];

	struct mpsc ring; /* BUS_SHARED, BUS_DEALT */
	/* Read for each message, seldom written */
	alignas(CACHE_LINE) ATOMIC(uint32_t) hold; /* A  no handler may begin */
	ATOMIC(uint32_t) ending;                   /* A  threads shall end */
	ATOMIC(uint32_t) starved;                  /* A  the dispatcher waits for room */
	ATOMIC(uint64_t) end;                      /* A  where those stop who take from the ring of submits */
	ATOMIC(uint32_t) level;                    /* A  as it was told */
	ATOMIC(uint32_t) depth_max;                /* A */
	struct idle idle;
	/* Written by who waits for room, read for each message that is taken */
	alignas(CACHE_LINE) struct bus_event room_event;
	ATOMIC(uint32_t) room_spins; /* A  how long one looks for room before one sleeps */
	/* Control */
	alignas(CACHE_LINE) ATOMIC(uint32_t) control; /* A  who starts, pauses, stops: one at a time */
	ATOMIC(uint32_t) state;                       /* A  enum bus_state; written under control */
	ATOMIC(uint32_t) callers;                     /* A  who handle messages themselves */
	ATOMIC(uint32_t) level_role, level_news;      /* A */
	struct bus_event settled;                     /* somebody waits for quiet */
	struct lock resting;                          /* home_hive.c */
	uint64_t claimed;                             /* L  control; home_hive.c */
	struct lock drop;                             /* who takes, and who replaces, with DROP_OLDER_LOWER */
	struct lock spare_lock;                       /* of spare: who replaces */
	ATOMIC(uint64_t) dropper;                     /* A  who is in on_drop with it */
	struct lock tables;                           /* subscriptions, free requests */
	uint32_t free_request;                        /* L  1 + the first */
	struct lock callers_lock;
	struct bus_caller *caller; /* L */
	/* Counts of what is rare */
	alignas(CACHE_LINE) ATOMIC(uint64_t) replaced, run_by_caller, caller_handled,
		caller_failed, dropped, called;                                  /* A */
	ATOMIC(uint64_t) other_ids;                                              /* A */
	ATOMIC(uint64_t) refused[4], refused_type, refused_size, refused_closed; /* A */
	uint32_t cursor;                                                         /* O  dispatcher */
};

extern const struct bus_home hive__bus_threads;
extern const struct bus_home hive__bus_on_hive;

/* event.c */
/* Until somebody tells: 0, maybe for nothing; -ETIMEDOUT and what the home says. */
int hive__bus_event_wait(struct hive_bus *bus, struct bus_event *event, uint32_t seen, int64_t deadline_ns);
/* Any thread, after the seq_cst write of what others may wait for. */
void hive__bus_tell(const struct hive_bus *bus, struct bus_event *event);

/* admission.c */
void hive__bus_thresholds(struct hive_bus *bus, const uint8_t refuse_at[4]);
/* Who was admitted, with the number of his message. */
void hive__bus_filled(struct hive_bus *bus, struct mpsc *ring, ATOMIC(uint32_t) *depth_max, uint64_t number);
/* Who took one, of which so many are left. */
void hive__bus_emptied(struct hive_bus *bus, struct mpsc *ring);
/* Who takes, now and then, and when there is nothing more: has the level fallen? */
void hive__bus_calmer(struct hive_bus *bus);
uint32_t hive__bus_fill(const struct hive_bus *bus);

/* type.c */
/* -1: there is none. */
int32_t hive__bus_find(const struct hive_bus *bus, uint32_t number);
/* Everybody who handles this type; the first error. */
int hive__bus_run(struct hive_bus *bus, struct bus_hand *hand, const void *payload);

/* worker.c */
/* Any thread: is the caller in a handler of this bus? */
bool hive__bus_inside(struct hive_bus *bus);
void hive__bus_caller_enter(struct hive_bus *bus, struct bus_caller *caller);
void hive__bus_caller_leave(struct hive_bus *bus, struct bus_caller *caller);
/* The worker. Takes and handles, so many at most. False: there is nothing (that may begin). */
bool hive__bus_work(struct bus_worker *worker, uint32_t budget);
/* Any thread. There is something that this worker may begin with, or soon will be. */
bool hive__bus_has_work(struct bus_worker *worker);
/* Any thread. Wakes this very one if it sleeps; or one of those who take from the same ring. */
void hive__bus_wake(struct hive_bus *bus, uint32_t worker);
void hive__bus_wake_one(struct hive_bus *bus);
void hive__bus_wake_each(struct hive_bus *bus);
/* Nobody else takes any more. What is left goes to on_drop. */
void hive__bus_drop_rest(struct hive_bus *bus);
void hive__bus_dropped(struct hive_bus *bus, struct bus_hand *hand, const void *payload);
size_t hive__bus_body(const struct hive_bus *bus, const struct bus_envelope *envelope);

/* rest.c */
/* The worker, when there is nothing. True: it may sleep until it is woken. False: go on. */
bool hive__bus_rest(struct bus_worker *worker);
/* The worker, when it was woken. */
void hive__bus_up(struct bus_worker *worker);
/* The worker, which was fresh and has taken something; since when that was there. */
void hive__bus_found(struct bus_worker *worker, int64_t since_ns);

/* dispatcher.c */
bool hive__bus_deal(struct bus_worker *dispatcher);
bool hive__bus_deal_has_work(struct bus_worker *dispatcher);
void hive__bus_took(struct bus_worker *worker);

/* submit.c */
int hive__bus_check(struct hive_bus *bus, const struct hive_bus_message *message, uint32_t *ret_type);
void hive__bus_refused(struct hive_bus *bus, int error);
/* request: 1 + the cell of who asks, 0: nobody. */
int hive__bus_put(struct hive_bus *bus, const struct hive_bus_message *message, uint32_t type, uint32_t request,
                  uint64_t asked, int64_t deadline_ns);

/* request.c */
/* The message was handled, or dropped: who still waits for a reply does so in vain. */
void hive__bus_unanswered(struct hive_bus *bus, const struct bus_envelope *envelope, enum bus_reply how);

static inline unsigned char *bus_payload(struct bus_hand *hand)
{
	return (unsigned char *)(hand + 1);
}

static inline uint32_t bus_box_of(const struct hive_bus *bus, uint64_t key)
{
	/* Neighbours go to different workers, and so do keys that differ in high bits only. */
	return (uint32_t)(((key * 0x9e3779b97f4a7c15uLL) >> 32) % bus->workers);
}
