/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/sync.h>

/* Ways for values from one to another, beside the channel: oneshot, watch, broadcast; and what keeps work within bounds: a rate, a limiter. All of
 * <rophive/sync.h> holds for them: fibers, compute tasks and foreign threads on the same object; deadlines; errors. Values are copied, and
 * their size is said with each call (-EMSGSIZE). oneshot, watch and subscription can be cases of hive_select().              */

HIVE_BEGIN
/* Oneshot: one value, from one sender to one receiver, who need not outlive each other. The sender's side ends with send or drop, the receiver's with
 * close; each of them once. The memory goes with the second.                                                              */
struct hive_oneshot;
/* Any thread. -EINVAL: a value of no bytes. -ENOMEM. */
HIVE_CHECKED int hive_oneshot_create(size_t item_bytes, struct hive_oneshot **ret_oneshot);
/* Any thread. Never waits. -EPIPE: the receiver is gone, and nobody will see the value. Unless it says -EINVAL or -EMSGSIZE, the sender's side
 * has ended.                                                                                                              */
int hive_oneshot_send(struct hive_oneshot *oneshot, const void *item, size_t bytes);
/* Any thread. The sender will not send. NULL is allowed. */
int hive_oneshot_drop(struct hive_oneshot *oneshot);
/* May wait. -EPIPE: the sender has dropped it, or the value was received already. */
HIVE_CHECKED int hive_oneshot_recv(struct hive_oneshot *oneshot, void *ret_item, size_t bytes, int64_t deadline_ns);
/* Any thread. The receiver will not receive (any more). -EBUSY while it waits. NULL is allowed. */
int hive_oneshot_close(struct hive_oneshot *oneshot);

/* Watch: the latest value, of any number of senders to any number of readers. Versions count from 1; 0 is none. */
struct hive_watch;
/* Any thread. item: the first value. -EINVAL, -ENOMEM as above. */
HIVE_CHECKED int hive_watch_create(size_t item_bytes, const void *item, struct hive_watch **ret_watch);
/* Any thread. -EBUSY while somebody waits. NULL is allowed. Nobody else may be in a call with it, or begin one. */
int hive_watch_destroy(struct hive_watch *watch);
/* Any thread. Never waits. -EPIPE: closed. */
int hive_watch_send(struct hive_watch *watch, const void *item, size_t bytes);
/* Any thread. The value as it is now, also of one that is closed. ret_version may be NULL. */
int hive_watch_read(struct hive_watch *watch, void *ret_item, size_t bytes, uint64_t *ret_version);
/* May wait. Until the version is another one than *version; the value, and *version is its own. What came in between is not told. -EPIPE: closed, and
 * no newer one.                                                                                                           */
HIVE_CHECKED int hive_watch_wait(struct hive_watch *watch, uint64_t *version, void *ret_item, size_t bytes,
                                 int64_t deadline_ns);
/* Any thread. Twice: -EALREADY. */
int hive_watch_close(struct hive_watch *watch);

/* Broadcast: each value to each subscription that was there before it. The last `capacity` of them are kept; who is further behind misses the oldest, and
 * is told how many. */
struct hive_broadcast;
/* Private but for its memory, which is the subscriber's. One call at a time. */
struct hive_subscription {
	struct hive_broadcast *broadcast;
	uint64_t next;
	uint32_t magic, spare;
};
/* Any thread. -EINVAL: values of no bytes, capacity 0, or more than an address space has. -ENOMEM. */
HIVE_CHECKED int hive_broadcast_create(size_t item_bytes, size_t capacity, struct hive_broadcast **ret_broadcast);
/* Any thread. -EBUSY while there are subscriptions. NULL is allowed. Nobody else may be in a call with it, or begin one. */
int hive_broadcast_destroy(struct hive_broadcast *broadcast);
/* Any thread. Never waits. -EPIPE: closed. */
int hive_broadcast_send(struct hive_broadcast *broadcast, const void *item, size_t bytes);
/* Any thread. What was sent before the end is still received. Twice: -EALREADY. */
int hive_broadcast_close(struct hive_broadcast *broadcast);
/* Any thread. From now on. */
int hive_broadcast_subscribe(struct hive_broadcast *broadcast, struct hive_subscription *ret_subscription);
/* Any thread. Nobody may wait with it. */
int hive_broadcast_unsubscribe(struct hive_subscription *subscription);
/* May wait. The next value; ret_missed, which may be NULL: how many before it were lost. -EPIPE: closed, and all was received. */
HIVE_CHECKED int hive_broadcast_recv(struct hive_subscription *subscription, void *ret_item, size_t bytes,
                                     uint64_t *ret_missed, int64_t deadline_ns);

/* Rate: a bucket of `burst` tokens, full at first, into which `rate` tokens fall in each per_ns, evenly. */
struct hive_rate_options {
	uint32_t rate, burst; /* not 0 */
	int64_t per_ns;       /* 0: a second */
	uint64_t reserved[2]; /* must be zero */
};
struct hive_rate { /* all fields private */
	HIVE_ATOMIC(uint64_t) state;
	uint32_t magic, rate, burst, spare;
	int64_t per_ns, full_ns;
	uint64_t taken;
	void *waiters[2];
};
/* Any thread. -EINVAL also: rate × per_ns passes INT64_MAX. */
HIVE_CHECKED int hive_rate_init(struct hive_rate *rate, const struct hive_rate_options *options);
/* May wait. n tokens, in the order of arrival, never before they have fallen, and none of those that fell is lost while somebody waits. Time is that of
 * hive_now(NULL): all who use it must have the same clock. -ETIMEDOUT at once if they cannot have fallen by the deadline, as
 * things are. -EINVAL also: more than the bucket holds. 0 are there at once.                                              */
HIVE_CHECKED int hive_rate_acquire(struct hive_rate *rate, uint32_t n, int64_t deadline_ns);

/* Limiter: at most so many at a time, of a class of work. */
struct hive_limiter { /* all fields private */
	HIVE_ATOMIC(uint64_t) state;
	uint32_t magic, limit, inside, waiting;
	void *waiters[2];
};
struct hive_limiter_counts {
	uint32_t limit, inside, waiting;
};
/* Any thread. limit 0: nobody, until it is resized. */
void hive_limiter_init(struct hive_limiter *limiter, uint32_t limit);
/* May wait. In the order of arrival. */
HIVE_CHECKED int hive_limiter_enter(struct hive_limiter *limiter, int64_t deadline_ns);
/* Any thread. Whoever entered, or another one in its place. -EPERM: nobody is inside. */
int hive_limiter_leave(struct hive_limiter *limiter);
/* Any thread. Who is inside stays; who waits enters if there is room now. */
int hive_limiter_resize(struct hive_limiter *limiter, uint32_t limit);
/* Any thread. All three of the same moment. */
int hive_limiter_read(struct hive_limiter *limiter, struct hive_limiter_counts *ret_counts);
HIVE_END
