/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/cancel.h>
#include <rophive/time.h>

/* Mutex, condition, semaphore, lock for readers and writers, barrier, once, channel. The same object serves fibers (they park), compute tasks and foreign threads (they
 * block), at the same time. On an IO worker outside a fiber a call that would have to wait is refused: -EDEADLK; with
 * HIVE_NOWAIT every call is allowed everywhere and never waits.
 *
 * All waits: 0, -ETIMEDOUT, -ECANCELED (fibers: cancelled, or the hive stops now) or with what the cancel token of the fiber was fired, -ENOMEM (fibers: no memory for the timer of the
 * deadline). A call that did not get what it waited for has done nothing. -EINVAL: NULL, or an object never initialised.
 *
 * A wait that is due and a deadline that passes at the same time: one of them wins, and the answer says which. Who had to wait
 * is served in the order of arrival. There is nothing to destroy but channels; the memory of the others may go when nobody is inside
 * a call with them, and for the last one out that is when its call has returned.
 *
 * A wait group is a semaphore that begins with 0: each of n releases 1 when it is done, one acquires n.                      */

HIVE_BEGIN
/* All fields private. Zeroed memory is not an initialised object. */
struct hive_mutex {
	HIVE_ATOMIC(uint64_t) state;
	uint32_t magic, spare;
	void *waiters[2];
};
struct hive_cond {
	HIVE_ATOMIC(uint64_t) state;
	uint32_t magic, spare;
	void *waiters[2];
};
struct hive_semaphore {
	HIVE_ATOMIC(uint64_t) state;
	uint32_t magic, spare;
	void *waiters[2];
};

struct hive_rwlock {
	struct hive_semaphore room;
};
struct hive_barrier {
	HIVE_ATOMIC(uint64_t) state;
	uint32_t magic, parties;
	void *waiters[2];
};
struct hive_once {
	HIVE_ATOMIC(uint32_t) done;
	uint32_t spare;
	struct hive_mutex mutex;
};

/* Any thread. */
void hive_mutex_init(struct hive_mutex *mutex);
void hive_cond_init(struct hive_cond *cond);
void hive_semaphore_init(struct hive_semaphore *semaphore, uint32_t count);
void hive_rwlock_init(struct hive_rwlock *lock);
void hive_barrier_init(struct hive_barrier *barrier, uint32_t parties);
void hive_once_init(struct hive_once *once);

/* May wait. -EDEADLK also: held by the caller already; in debug builds also: without a deadline it would wait for itself, by way of whom the
 * holder waits for (docs/fibers.md), which is reported. The holder is a fiber or a thread; a fiber holds it wherever it goes on.
 * An unlocked mutex goes to whoever asks first, so that a lock that is needed often is not handed from sleeper to sleeper; but
 * who waits in front was passed over at most 4 times when it gets it from the next unlock.                              */
HIVE_CHECKED int hive_mutex_lock(struct hive_mutex *mutex, int64_t deadline_ns);
/* Any thread. -EPERM: not held by the caller. */
int hive_mutex_unlock(struct hive_mutex *mutex);

/* May wait. Unlocks, waits for a signal, locks again: the mutex is held on every return, whatever the result. A signal that
 * comes after the unlock is not missed. -EPERM: the mutex is not held by the caller. Use it in a loop over the condition. With
 * HIVE_NOWAIT it is -ETIMEDOUT at once, and the mutex was never unlocked.                                                  */
HIVE_CHECKED int hive_cond_wait(struct hive_cond *cond, struct hive_mutex *mutex, int64_t deadline_ns);
/* Any thread. One of those who wait now, the first; nothing if there is none. The mutex may be held, or not. */
void hive_cond_signal(struct hive_cond *cond);
/* Any thread. All who wait now. */
void hive_cond_broadcast(struct hive_cond *cond);

/* May wait. All n or none, in order of arrival: a large request is not overtaken by small ones. 0 is there at once. */
HIVE_CHECKED int hive_semaphore_acquire(struct hive_semaphore *semaphore, uint32_t n, int64_t deadline_ns);
/* Any thread. -EOVERFLOW: the count would pass UINT32_MAX; nothing was released. */
int hive_semaphore_release(struct hive_semaphore *semaphore, uint32_t n);

/* May wait. Many who read, or one who writes, in the order of arrival: neither starves the other, and who reads waits behind one who waits to
 * write. It has no holder that could be told from others: who holds it and asks for it again may wait for himself.       */
HIVE_CHECKED int hive_rwlock_lock_read(struct hive_rwlock *lock, int64_t deadline_ns);
HIVE_CHECKED int hive_rwlock_lock_write(struct hive_rwlock *lock, int64_t deadline_ns);
/* Any thread. -EPERM: nobody holds it like that. */
int hive_rwlock_unlock_read(struct hive_rwlock *lock);
int hive_rwlock_unlock_write(struct hive_rwlock *lock);
/* Any thread. Who writes goes on reading, and lets others read, and nobody has written in between. -EPERM as above. */
int hive_rwlock_downgrade(struct hive_rwlock *lock);

/* May wait. Until as many as there are parties have come; 1 for the one who came last, 0 for the others. Then it begins anew. Who gives up has
 * not come. -EINVAL also: of 0 parties.                                                                                  */
HIVE_CHECKED int hive_barrier_wait(struct hive_barrier *barrier, int64_t deadline_ns);

typedef int hive_once_fn(void *arg);
/* May wait. fn(arg) is called once: by the first who comes, while the others wait. 0: it was, and what it did is seen. A negative result of fn
 * is told to who called it, and the next one calls it again. -EDEADLK also: from inside fn.                              */
HIVE_CHECKED int hive_once_run(struct hive_once *once, hive_once_fn *fn, void *arg, int64_t deadline_ns);

/* Channel: bounded, by value, first in first out; any number of senders and receivers. Capacity 0 is a hand-over: a send waits
 * until somebody takes the item. */
struct hive_channel;
/* Any thread. -EINVAL: items of no bytes, or more bytes than an address space has. -ENOMEM. */
HIVE_CHECKED int hive_channel_create(size_t item_bytes, size_t capacity, struct hive_channel **ret_channel);
/* Any thread. -EBUSY while somebody waits in it. NULL is allowed. Nobody else may be in a call with it, or begin one. */
int hive_channel_destroy(struct hive_channel *channel);
/* May wait. -EPIPE: closed. bytes must be item_bytes (-EMSGSIZE): a wrong pointer does not pass silently. */
HIVE_CHECKED int hive_channel_send(struct hive_channel *channel, const void *item, size_t bytes, int64_t deadline_ns);
/* May wait. -EPIPE: closed and empty. -EMSGSIZE as above. */
HIVE_CHECKED int hive_channel_recv(struct hive_channel *channel, void *ret_item, size_t bytes, int64_t deadline_ns);
/* Any thread. Items inside are still received; who waits to send gets -EPIPE, its item was not sent. Twice: -EALREADY. */
int hive_channel_close(struct hive_channel *channel);

/* Select: several cases, of which exactly one happens. */
struct hive_oneshot;
struct hive_watch;
struct hive_subscription;
struct hive_cancel;
struct hive_group;

/* All zero, or with nothing but send, recv and bytes: this case never happens. Else exactly one of these is set: */
struct hive_select {
	struct hive_channel *channel; /* with one of these two: */
	const void *send;
	void *recv;
	size_t bytes;                           /* of what is sent or received */
	int64_t deadline_ns;                    /* it has come */
	struct hive_oneshot *oneshot;           /* its value is there: recv */
	struct hive_watch *watch;               /* its value is not that of *version: recv, and the new version */
	struct hive_subscription *subscription; /* a value was broadcast: recv, and missed if it is not NULL */
	struct hive_cancel *cancel;             /* it has fired; it must be there until select returns */
	struct hive_group *group;               /* nothing of it is pending; likewise */
	uint64_t *version;
	uint64_t *missed;
	uint64_t reserved[2]; /* must be zero */
};

/* May wait. 0: case *ret_index happened, and no other one. -EPIPE: its object is closed, and nothing will come any more; the index is written
 * too. Among those that can happen at once each has the same chance. With HIVE_NOWAIT, -ETIMEDOUT: none could. The same object may
 * stand in several cases; who sends and receives on one channel does not meet himself. Else as the calls themselves say: -EINVAL also
 * for more than one thing in a case, and reserved words; -EMSGSIZE; -ENOMEM also for more than 8 cases; -EPERM: a group that belongs to a worker. -EDEADLK also: nothing can
 * ever happen, and there is no deadline.                                                                                  */
HIVE_CHECKED int hive_select(const struct hive_select *cases, size_t count, int64_t deadline_ns, size_t *ret_index);
HIVE_END
