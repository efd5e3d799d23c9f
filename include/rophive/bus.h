/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/task.h>
#include <rophive/time.h>

/* Typed messages by value in fixed memory. Producers submit; handlers run on worker threads. Overload is refused at the door, by priority,
 * and told. Accepted means handled: after that a message is lost only by what was asked for (a stop, HIVE_BUS_DROP_OLDER_LOWER), and
 * then it is counted and goes to on_drop.
 *
 *     submit --> ring of `depth` --> worker --> handler           workers take by themselves (default)
 *     submit --> ring of `depth` --> dispatcher --> ring of `worker_depth` for each worker --> handler          with `dispatcher`
 *     submit --> ring of `worker_depth` for each worker --> handler         HIVE_BUS_BY_KEY without dispatcher
 *
 * Stands alone: nothing of the library is needed but this header's own layer, unless the bus lives on a hive. Nothing here may be
 * called in a signal handler: a handler that interrupts a submit on its own thread would wait for it. What blocks, blocks the
 * thread, but on a bus that lives on a hive as hive.h says: a fiber parks, and on an IO worker outside a fiber it is -EDEADLK. */
HIVE_BEGIN
struct hive;
struct hive_bus;

#define HIVE_BUS_NAME 32              /* bytes of a name, with its end; longer ones are cut */
#define HIVE_BUS_SIZE_MAX 65536       /* bytes of a payload */
#define HIVE_BUS_DEPTH_MAX 16777216u  /* messages in a ring */
#define HIVE_BUS_WORKERS_MAX 63       /* of one bus */
#define HIVE_BUS_TYPES_MAX 4096       /* of one bus */
#define HIVE_BUS_REQUESTS_MAX 4096    /* under way at one time */
#define HIVE_BUS_SUBSCRIPTIONS_MAX 64 /* at one time */

enum hive_bus_priority {
	HIVE_BUS_DEFAULT = 0, /* taken as MEDIUM */
	HIVE_BUS_LOW = 1,
	HIVE_BUS_MEDIUM = 2,
	HIVE_BUS_HIGH = 3
};
/* By fill: from where LOW, MEDIUM, HIGH are refused. */
enum hive_bus_level { HIVE_BUS_NORMAL = 0, HIVE_BUS_WARNING = 1, HIVE_BUS_CRITICAL = 2, HIVE_BUS_FULL = 3 };
/* Who handles a message. ROUND_ROBIN: the next one; workers that take by themselves: whoever comes first. LEAST_LOADED: who has
 * fewest waiting; without dispatcher the same as before. BY_KEY: always the same one for the same key, in order.             */
enum hive_bus_route { HIVE_BUS_ROUND_ROBIN = 0, HIVE_BUS_LEAST_LOADED = 1, HIVE_BUS_BY_KEY = 2 };
/* What becomes of a message that would be refused by fill, and may not wait (any longer). REFUSE: -ENOBUFS or -ETIMEDOUT.
 * DROP_OLDER_LOWER: the oldest message of the lowest priority below its own that waits in the ring of submits goes to on_drop, and this one takes its place in
 * the queue; none there: as REFUSE. Not with BY_KEY. RUN_IN_CALLER: it is handled by the submitter, before submit returns; not
 * inside a handler of this bus, nor while it is paused: as REFUSE.                                                        */
enum hive_bus_on_full { HIVE_BUS_REFUSE = 0, HIVE_BUS_DROP_OLDER_LOWER = 1, HIVE_BUS_RUN_IN_CALLER = 2 };

/* What travels in front of the payload */
struct hive_bus_header {
	uint64_t id;     /* of this bus, never the same twice, never 0 */
	int64_t time_ns; /* of acceptance */
	uint64_t key;    /* the submitter's */
	uint32_t type;   /* your number */
	uint32_t sender; /* the submitter's */
	uint32_t priority;
	uint32_t size; /* of the payload */
};

/* On a worker of the bus, or where HIVE_BUS_RUN_IN_CALLER and hive_bus_call() say. 0: handled; negative: failed, counted, told to on_fail.
 * The payload is aligned to 16 bytes; header and payload are valid until return. It may submit to its own bus, but not wait there. */
typedef int hive_bus_fn(void *context, const struct hive_bus_header *header, const void *payload);

struct hive_bus_type {
	uint32_t type;       /* your number, unique in the table */
	uint32_t size;       /* of the payload, 1 ... HIVE_BUS_SIZE_MAX */
	const char *name;    /* cut at 31 bytes; may be NULL */
	hive_bus_fn *handle; /* NULL: only subscribers */
	void *context;
};

struct hive_bus_message {
	uint32_t type, size; /* size is compared with the table */
	const void *payload; /* copied before submit returns */
	enum hive_bus_priority priority;
	uint32_t sender;
	uint64_t key;         /* HIVE_BUS_BY_KEY: same key, same worker, in order */
	uint64_t reserved[2]; /* must be zero */
};

/* All zero but types: one worker of its own, 1024 messages, thresholds of 60, 80 and 99 percent */
struct hive_bus_options {
	const char *name;                  /* cut at 31 bytes; of the threads too, at 15 */
	const struct hive_bus_type *types; /* copied */
	uint32_t type_count;
	uint32_t depth;        /* messages in the ring of submits; 0: 1024 */
	uint32_t worker_depth; /* messages in the ring of each worker, where there are such; 0: 256 */
	int32_t workers;       /* 0: 1. Threads of its own; on a hive: so many handlers at one time */
	struct hive *hive;     /* set: run on its workers instead of own threads. It must outlive the bus */
	enum hive_kind kind;   /* with hive: HIVE_MICRO (0 too): on IO workers, HIVE_COMPUTE: on compute workers */
	enum hive_bus_route route;
	enum hive_bus_on_full on_full;
	uint8_t refuse_at[4]; /* percent by priority, [0] must be 0; 0: 60, 80, 99. Not falling, at most 100 */
	bool dispatcher;      /* a thread of its own deals; not on a hive */
	int32_t realtime; /* SCHED_FIFO priority 1-99 of own threads; 0: as the caller of start. What they start is ordinary */
	const uint16_t *cpus; /* own threads: worker i on cpus[i % cpu_count], the dispatcher on any of them; copied */
	uint32_t cpu_count;   /* at most 64 */
	uint32_t requests;    /* hive_bus_request() under way at one time; 0: 16 */
	uint32_t subscriptions; /* at one time; 0: 16 */
	void *hook_arg;
	/* On the thread that noticed, one call at a time, in order. Falling back is told an eighth of the depth below where rising is,
	 * so that a fill around a threshold does not call for each message.                                                  */
	void (*on_level)(void *hook_arg, enum hive_bus_level level);
	/* On any thread. Once for each accepted message that will not be handled. */
	void (*on_drop)(void *hook_arg, const struct hive_bus_header *header, const void *payload);
	/* Where the handler ran. The first error of those who handled the message. */
	void (*on_fail)(void *hook_arg, const struct hive_bus_header *header, int error);
	void *memory; /* static form: hive_bus_bytes() bytes, 64-aligned, yours again after destroy; then nothing is allocated */
	size_t memory_bytes;
	uint64_t reserved[8]; /* must be zero */
};

/* One moment's truth: submitted = accepted + all refused, accepted = handled + failed + dropped + queued (B1). */
struct hive_bus_stats {
	uint64_t submitted, accepted, handled, failed, dropped;
	uint64_t queued;                                     /* accepted, and not handled to the end yet */
	uint64_t dispatched;                                 /* taken out of the ring of submits */
	uint64_t refused[4];                                 /* by fill, by priority; [0] is 0 */
	uint64_t refused_type, refused_size, refused_closed; /* unknown type; wrong size; not started, or stopping */
	uint64_t called;                                     /* by hive_bus_call(): not among the others */
	uint64_t run_by_caller;                              /* of the accepted: by HIVE_BUS_RUN_IN_CALLER */
	uint32_t depth_now, depth_max; /* of the ring of submits; BY_KEY without dispatcher: of the fullest ring */
	uint32_t level, workers;
	uint64_t wait_p50_ns, wait_p99_ns,
		wait_max_ns; /* from acceptance to the beginning of the handler; p50, p99 to a quarter */
	uint64_t reserved[8];
};

struct hive_bus_worker_stats {
	uint64_t handled, failed;
	uint32_t depth_now, depth_max; /* of its own ring, if it has one */
	bool busy;                     /* in a handler, or about to be */
	uint64_t reserved[4];
};

/* Any thread. What `memory` must hold for these options; 0 if they are invalid. */
size_t hive_bus_bytes(const struct hive_bus_options *options);
/* Any thread. -EINVAL: options out of their domain, a type twice, a payload of no bytes or too many, memory too small or misaligned, a reserved
 * field that is not zero. -ENOMEM. -ENOTSUP: a hive, in a build without one.                                               */
HIVE_CHECKED int hive_bus_create(const struct hive_bus_options *options, struct hive_bus **ret_bus);
/* Any thread. Opens the door and begins to handle. -EALREADY: started. -ESHUTDOWN: stopped, for good. -EBUSY: somebody else is just starting or stopping it. What the system says if a thread,
 * its CPU or its class cannot be had (-EAGAIN, -EINVAL, -EPERM): then nothing runs, and it may be tried again.              */
HIVE_CHECKED int hive_bus_start(struct hive_bus *bus);
/* May wait. From here on submits are refused. HIVE_DRAIN: everything accepted is handled first (a pause ends); at the deadline as HIVE_NOW, and
 * the answer is -ETIMEDOUT. HIVE_NOW: handlers that run may return, what has not begun goes to on_drop. -EINPROGRESS: a handler was still
 * running at the deadline; stop again to wait for it. -EALREADY: stopped. -EDEADLK: inside a handler of this bus.             */
int hive_bus_stop(struct hive_bus *bus, enum hive_stop_mode mode, int64_t deadline_ns);
/* May wait. 0: no handler runs, and none begins until hive_bus_resume(); submits go on, as far as there is room. HIVE_DRAIN: everything accepted
 * before the call was handled (flush and pause); at the deadline -ETIMEDOUT, and the bus goes on as it was. HIVE_NOW: at the deadline
 * -ETIMEDOUT, paused, and one that had begun still runs. -ESHUTDOWN: does not run. -EDEADLK: inside a handler of this bus.   */
int hive_bus_pause(struct hive_bus *bus, enum hive_stop_mode mode, int64_t deadline_ns);
/* Any thread. What was queued meanwhile goes on. -EALREADY: not paused. -EBUSY: somebody is just pausing it. -ESHUTDOWN: does not run. */
int hive_bus_resume(struct hive_bus *bus);
/* Any thread. NULL is fine. -EBUSY: started and not stopped. Nobody may be inside another call on it. */
int hive_bus_destroy(struct hive_bus *bus);

/* May wait. 0: accepted. -ENOBUFS: this priority is refused now, or, BY_KEY, the worker of this key has no room; with a deadline in the future it
 * waits for room first, then -ETIMEDOUT. -ENOENT: unknown type. -EMSGSIZE: not the size in the table. -EINVAL: no payload, a priority
 * that does not exist. -ESHUTDOWN: not started, or stopping. Inside a handler of this bus it never waits: where it would have to,
 * -EDEADLK.                                                                                                               */
HIVE_CHECKED int hive_bus_submit(struct hive_bus *bus, const struct hive_bus_message *message, int64_t deadline_ns);
/* Any thread. The handler and the subscribers, here and now, past queue and admission; what they return. Errors of submit; -EBUSY: paused. */
int hive_bus_call(struct hive_bus *bus, const struct hive_bus_message *message);
/* May wait. Submits, and waits for hive_bus_reply(). The reply's size. -ENODATA: handled without a reply. -ECANCELED: dropped. -ETIMEDOUT: no
 * reply by the deadline; one that comes later goes nowhere. -EDEADLK: inside a handler of this bus. Errors of submit.        */
HIVE_CHECKED int hive_bus_request(struct hive_bus *bus, const struct hive_bus_message *message, void *ret_reply,
                                  size_t bytes, int64_t deadline_ns);
/* Any thread, while a handler has this very header (not a copy of it). Once for each request. -ENOENT: nobody asked, or not any more.
 * -EALREADY: replied. -EMSGSIZE: larger than the asker's buffer, who still waits.                                          */
int hive_bus_reply(const struct hive_bus_header *header, const void *reply, size_t bytes);
/* Any thread. A further handler of one type, for messages that are handled from now on. -ENOENT: unknown type. -ENOSPC: too many. */
HIVE_CHECKED int hive_bus_subscribe(struct hive_bus *bus, uint32_t type, hive_bus_fn *handle, void *context,
                                    uint32_t *ret_subscription);
/* May wait. No new call from here on; 0: none is under way, context may go. -ETIMEDOUT: one is; ask again. -ESRCH: no such subscription. Inside
 * a handler of this bus with another deadline than HIVE_NOWAIT: -EDEADLK.                                                  */
int hive_bus_unsubscribe(struct hive_bus *bus, uint32_t subscription, int64_t deadline_ns);

/* Any thread. Of this moment. */
enum hive_bus_level hive_bus_level(const struct hive_bus *bus);
/* Any thread. Its own copy of it; never NULL. */
const char *hive_bus_name(const struct hive_bus *bus);
/* Any thread. The name of a type; NULL: unknown. */
const char *hive_bus_type_name(const struct hive_bus *bus, uint32_t type);
/* Any thread. */
int hive_bus_stats_read(const struct hive_bus *bus, struct hive_bus_stats *ret_stats);
/* Any thread. -ESRCH: no such worker; they are 0, 1, ... */
int hive_bus_worker_stats_read(const struct hive_bus *bus, uint32_t worker, struct hive_bus_worker_stats *ret_stats);
HIVE_END

#if defined(__GNUC__)
#define HIVE_BUS_UNUSED __attribute__((unused)) /* nobody need call all of them */
#else
#define HIVE_BUS_UNUSED
#endif
/* Sugar, C and C++: HIVE_BUS_TYPED(reading, READING, struct reading) defines plain functions, with names that a debugger knows:
 *     int reading_submit(struct hive_bus *bus, const struct reading *message, enum hive_bus_priority priority, int64_t deadline_ns);
 *     int reading_submit_key(struct hive_bus *bus, const struct reading *message, enum hive_bus_priority priority, uint64_t key, int64_t deadline_ns);
 *     const struct reading *reading_of(const struct hive_bus_header *header, const void *payload);      in a handler; NULL: another type */
#define HIVE_BUS_TYPED(name, number, T)                                                                             \
	HIVE_BUS_UNUSED static inline int name##_submit_key(struct hive_bus *bus, const T *message,                 \
	                                                    enum hive_bus_priority priority, uint64_t key,          \
	                                                    int64_t deadline_ns)                                    \
	{                                                                                                           \
		const struct hive_bus_message m = {                                                                 \
			(number), (uint32_t)sizeof(T), message, priority, 0, key, { 0, 0 }                          \
		};                                                                                                  \
		return hive_bus_submit(bus, &m, deadline_ns);                                                       \
	}                                                                                                           \
	HIVE_BUS_UNUSED static inline int name##_submit(struct hive_bus *bus, const T *message,                     \
	                                                enum hive_bus_priority priority, int64_t deadline_ns)       \
	{                                                                                                           \
		return name##_submit_key(bus, message, priority, 0, deadline_ns);                                   \
	}                                                                                                           \
	HIVE_BUS_UNUSED static inline const T *name##_of(const struct hive_bus_header *header, const void *payload) \
	{                                                                                                           \
		return header->type == (number) && header->size == sizeof(T) ? (const T *)payload : NULL;           \
	}
