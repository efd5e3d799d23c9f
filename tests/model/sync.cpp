/* SPDX-License-Identifier: MIT */
/* Mutex, condition, semaphore and channel as they are: the files of src/sync, on modelled atomics and waits. What an object orders
 * is what its user wrote before: `news` are plain variables, and a race on one of them shows a missing order. An object that
 * may go is poisoned as soon as its user's call has returned: the poison must stay.                                       */
#include "base/atomic.h"
#define HIVE_ATOMIC(T) ATOMIC(T)
#define _Static_assert static_assert
#include "model_wait.h"

#include "model.h"
#define PASSED_LIMIT 1
#define CHECK(x) RL_ASSERT(x)
/* Copies of items are plain memory, which the checker does not watch. A scenario may have it watch this in their place. */
static rl::var<int> *model_copies;
static void *model_copy(void *to, const void *from, size_t bytes)
{
	if (model_copies)
		(*model_copies)($) = 1;
	return memmove(to, from, bytes);
}
#define memcpy model_copy
#include "sync/channel.c"
#undef memcpy
#define give give_cond
#define wake wake_cond
#include "sync/cond.c"
#include "sync/mutex.c"
#include "sync/semaphore.c"

void *hive__memory_system(void *, void *, size_t)
{
	return NULL;
}

#define SOON 2 /* a deadline that is not past, and may pass at any time */
#define POISON UINT64_C(0xdead0)

template <typename T, int THREADS> struct sync_suite : rl::test_suite<T, THREADS> {
	struct waiter waiters[MODEL_WAITERS];
	struct hive_mutex mutex;
	struct hive_cond cond;
	struct hive_semaphore semaphore;
	rl::var<int> news[3];
	int total;

	void before()
	{
		model_waiters = waiters;
		model_copies = NULL;
		for (int i = 0; i < MODEL_WAITERS; i++) {
			waiters[i].cell.word.store(0, rl::mo_relaxed, $);
			parker_init(&waiters[i].parker);
			waiters[i].is_thread = i % 2 == 1;
		}
		hive_mutex_init(&mutex);
		hive_cond_init(&cond);
		hive_semaphore_init(&semaphore, 0);
		for (rl::var<int> &n : news)
			n($) = 0;
		total = 0;
	}

	void lock()
	{
		RL_ASSERT(hive_mutex_lock(&mutex, HIVE_FOREVER) == 0);
	}

	void unlock()
	{
		RL_ASSERT(hive_mutex_unlock(&mutex) == 0);
	}

	void visit()
	{
		lock();
		news[0]($) = news[0]($) + 1;
		total++;
		unlock();
	}

	void after()
	{
		RL_ASSERT(news[0]($) == total);
		RL_ASSERT(mutex.state.load(rl::mo_relaxed, $) == 0);
	}
};

struct mutex_two_threads_one_inside : sync_suite<mutex_two_threads_one_inside, 2> {
	void thread(unsigned)
	{
		visit();
		visit();
	}
};
SCENARIO(mutex_two_threads_one_inside, 20000, 2);

struct mutex_three_threads_nobody_is_forgotten : sync_suite<mutex_three_threads_nobody_is_forgotten, 3> {
	void thread(unsigned)
	{
		visit();
	}
};
SCENARIO(mutex_three_threads_nobody_is_forgotten, 20000, 1);

/* Its deadline passes while it is woken, or handed the mutex: it has it then, or another one is woken. */
struct mutex_deadline_against_unlock : sync_suite<mutex_deadline_against_unlock, 3> {
	void thread(unsigned i)
	{
		if (i > 0) {
			visit();
		} else if (hive_mutex_lock(&mutex, SOON) == 0) {
			news[0]($) = news[0]($) + 1;
			total++;
			unlock();
		}
	}

	void after()
	{
		RL_ASSERT(total >= 2);
		sync_suite::after();
	}
};
SCENARIO(mutex_deadline_against_unlock, 20000, 1);

/* The limit is 1 here: passed over once, it is handed over; and the mutex goes with the last one inside. */
struct mutex_goes_with_the_last_one : sync_suite<mutex_goes_with_the_last_one, 3> {
	void thread(unsigned)
	{
		lock();
		news[0]($) = news[0]($) + 1;
		bool last = ++total == 3;
		unlock();
		if (last)
			mutex.state.store(POISON, rl::mo_relaxed, $);
	}

	void after()
	{
		RL_ASSERT(mutex.state.load(rl::mo_relaxed, $) == POISON);
	}
};
SCENARIO(mutex_goes_with_the_last_one, 20000, 1);

/* One of the three takes it again and again: who was passed over gets it. */
struct mutex_is_handed_over : sync_suite<mutex_is_handed_over, 2> {
	void thread(unsigned i)
	{
		for (unsigned n = 0; n < (i == 0 ? 4 : 1); n++)
			visit();
	}
};
SCENARIO(mutex_is_handed_over, 20000, 2);

struct cond_signal_after_the_unlock_is_not_lost : sync_suite<cond_signal_after_the_unlock_is_not_lost, 2> {
	void thread(unsigned i)
	{
		lock();
		if (i == 0) {
			while (news[1]($) == 0)
				RL_ASSERT(hive_cond_wait(&cond, &mutex, HIVE_FOREVER) == 0);
			unlock();
		} else {
			news[1]($) = 1;
			unlock();
			hive_cond_signal(&cond);
		}
	}
};
SCENARIO(cond_signal_after_the_unlock_is_not_lost, 20000, 2);

/* Two wait, one of them not for long; one signal, for whoever takes the permit. If the signal went to the late one, the other
 * would wait for ever. */
struct cond_signal_is_not_spent_on_a_late_one : sync_suite<cond_signal_is_not_spent_on_a_late_one, 3> {
	int r;

	void thread(unsigned i)
	{
		lock();
		if (i == 0) {
			r = news[1]($) ? 0 : hive_cond_wait(&cond, &mutex, SOON);
			if (r == 0) { /* it has the signal, and hands it on */
				unlock();
				hive_cond_signal(&cond);
				return;
			}
		} else if (i == 1) {
			while (news[1]($) == 0)
				RL_ASSERT(hive_cond_wait(&cond, &mutex, HIVE_FOREVER) == 0);
		} else {
			news[1]($) = 1;
			hive_cond_signal(&cond);
		}
		unlock();
	}
};
SCENARIO(cond_signal_is_not_spent_on_a_late_one, 20000, 0);

struct cond_broadcast_reaches_both : sync_suite<cond_broadcast_reaches_both, 3> {
	void thread(unsigned i)
	{
		lock();
		if (i < 2) {
			while (news[1]($) == 0)
				RL_ASSERT(hive_cond_wait(&cond, &mutex, HIVE_FOREVER) == 0);
		} else {
			news[1]($) = 1;
			hive_cond_broadcast(&cond);
		}
		unlock();
	}
};
SCENARIO(cond_broadcast_reaches_both, 20000, 1);

/* The condition goes with the one who waited, though the signaller has hardly returned. */
struct cond_goes_with_who_waited : sync_suite<cond_goes_with_who_waited, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			lock();
			while (news[1]($) == 0)
				RL_ASSERT(hive_cond_wait(&cond, &mutex, HIVE_FOREVER) == 0);
			unlock();
			if (total == 1)
				cond.state.store(POISON, rl::mo_relaxed, $);
		} else {
			lock();
			total = cond.state.load(rl::mo_relaxed, $) != 0; /* it waits */
			news[1]($) = 1;
			unlock();
			if (total)
				hive_cond_signal(&cond);
		}
	}

	void after()
	{
		RL_ASSERT(cond.state.load(rl::mo_relaxed, $) == (total ? POISON : 0));
	}
};
SCENARIO(cond_goes_with_who_waited, 20000, 2);

/* A wait group on the stack of who waits. */
struct semaphore_wait_group_goes : sync_suite<semaphore_wait_group_goes, 3> {
	void thread(unsigned i)
	{
		if (i > 0) {
			news[i]($) = 1;
			RL_ASSERT(hive_semaphore_release(&semaphore, 1) == 0);
			return;
		}
		RL_ASSERT(hive_semaphore_acquire(&semaphore, 2, HIVE_FOREVER) == 0);
		RL_ASSERT(news[1]($) + news[2]($) == 2);
		semaphore.state.store(POISON, rl::mo_relaxed, $);
	}

	void after()
	{
		RL_ASSERT(semaphore.state.load(rl::mo_relaxed, $) == POISON);
	}
};
SCENARIO(semaphore_wait_group_goes, 20000, 3);

/* As a lock: one inside, by fast paths and slow ones. */
struct semaphore_of_one_is_a_lock : sync_suite<semaphore_of_one_is_a_lock, 3> {
	void before()
	{
		sync_suite::before();
		hive_semaphore_init(&semaphore, 1);
	}

	void thread(unsigned)
	{
		RL_ASSERT(hive_semaphore_acquire(&semaphore, 1, HIVE_FOREVER) == 0);
		news[0]($) = news[0]($) + 1;
		total++;
		RL_ASSERT(hive_semaphore_release(&semaphore, 1) == 0);
	}
};
SCENARIO(semaphore_of_one_is_a_lock, 20000, 1);

/* One permit, two who want it, one of them late: if it was spent on the late one the other would wait for ever. */
struct semaphore_permit_is_not_spent_on_a_late_one : sync_suite<semaphore_permit_is_not_spent_on_a_late_one, 3> {
	void thread(unsigned i)
	{
		if (i == 1)
			RL_ASSERT(hive_semaphore_acquire(&semaphore, 1, HIVE_FOREVER) == 0);
		else if (i == 2 || hive_semaphore_acquire(&semaphore, 1, SOON) == 0)
			RL_ASSERT(hive_semaphore_release(&semaphore, 1) == 0);
	}

	void after()
	{
		RL_ASSERT(semaphore.state.load(rl::mo_relaxed, $) == 0);
	}
};
SCENARIO(semaphore_permit_is_not_spent_on_a_late_one, 20000, 0);

/* A large request whose deadline passes, a small one behind it: it gets what there is. */
struct semaphore_late_one_lets_others_through : sync_suite<semaphore_late_one_lets_others_through, 3> {
	void before()
	{
		sync_suite::before();
		hive_semaphore_init(&semaphore, 0);
	}

	void thread(unsigned i)
	{
		if (i == 0)
			RL_ASSERT(hive_semaphore_acquire(&semaphore, 2, SOON) == -ETIMEDOUT);
		else if (i == 1)
			RL_ASSERT(hive_semaphore_acquire(&semaphore, 1, HIVE_FOREVER) == 0);
		else
			RL_ASSERT(hive_semaphore_release(&semaphore, 1) == 0);
	}

	void after()
	{
		RL_ASSERT(semaphore.state.load(rl::mo_relaxed, $) == 0);
	}
};
SCENARIO(semaphore_late_one_lets_others_through, 20000, 0);

template <typename T, int THREADS, size_t CAPACITY> struct channel_suite : sync_suite<T, THREADS> {
	struct hive_channel channel;
	char ring[16];
	bool given[3];

	void before()
	{
		sync_suite<T, THREADS>::before();
		channel.word.store(0, rl::mo_relaxed, $);
		channel.count.store(0, rl::mo_relaxed, $);
		channel.head = channel.tail = 0;
		channel.capacity = CAPACITY;
		channel.bytes = 8;
		channel.ring = ring;
		channel.magic = CHANNEL_MAGIC;
		memset(&channel.senders, 0, sizeof channel.senders);
		memset(&channel.receivers, 0, sizeof channel.receivers);
		given[0] = given[1] = given[2] = false;
	}

	int send(uint64_t i, int64_t deadline_ns = HIVE_FOREVER)
	{
		this->news[i]($) = (int)i + 1;
		return hive_channel_send(&channel, &i, 8, deadline_ns);
	}

	/* What was received was sent, once, and everything before the send is seen. */
	int recv(int64_t deadline_ns = HIVE_FOREVER)
	{
		uint64_t i = 99;
		int r = hive_channel_recv(&channel, &i, 8, deadline_ns);

		RL_ASSERT((r == 0) == (i != 99));
		if (r < 0)
			return r;
		RL_ASSERT(i < 3 && !given[i] && this->news[i]($) == (int)i + 1);
		given[i] = true;
		return (int)i;
	}

	void after()
	{
		RL_ASSERT(!(channel.word.load(rl::mo_relaxed, $) & ~CHANNEL_CLOSED));
		RL_ASSERT(!channel.senders.first && !channel.receivers.first);
	}
};

/* Nothing is copied between the return of one receive and the call of the next: so what was copied may be looked at. */
struct channel_hand_over : channel_suite<channel_hand_over, 2, 0> {
	rl::var<int> copies;

	void before()
	{
		channel_suite::before();
		copies($) = 0;
		model_copies = &copies;
	}

	void thread(unsigned i)
	{
		if (i == 1) {
			RL_ASSERT(send(0) == 0 && send(1) == 0);
			return;
		}
		for (int n = 0; n < 2; n++) {
			RL_ASSERT(recv() == n);
			RL_ASSERT(copies($) == 1);
			copies($) = 0;
		}
	}
};
SCENARIO(channel_hand_over, 20000, 2);

struct channel_ring_of_one_keeps_the_order : channel_suite<channel_ring_of_one_keeps_the_order, 2, 1> {
	void thread(unsigned i)
	{
		for (int n = 0; n < 3; n++)
			RL_ASSERT(i == 0 ? send((uint64_t)n) == 0 : recv() == n);
	}
};
SCENARIO(channel_ring_of_one_keeps_the_order, 20000, 2);

struct channel_two_senders : channel_suite<channel_two_senders, 3, 1> {
	void thread(unsigned i)
	{
		if (i < 2)
			RL_ASSERT(send(i) == 0);
		else
			RL_ASSERT(recv() + recv() == 1);
	}
};
SCENARIO(channel_two_senders, 20000, 1);

struct channel_two_receivers : channel_suite<channel_two_receivers, 3, 1> {
	void thread(unsigned i)
	{
		if (i == 0)
			RL_ASSERT(send(0) == 0 && send(1) == 0);
		else
			RL_ASSERT(recv() >= 0);
	}
};
SCENARIO(channel_two_receivers, 20000, 1);

/* Late or served, never both: a late receiver has nothing in its buffer, and the item is there for the next. */
struct channel_late_receiver_leaves_the_item : channel_suite<channel_late_receiver_leaves_the_item, 2, 1> {
	void thread(unsigned i)
	{
		if (i == 0) {
			RL_ASSERT(send(0) == 0);
		} else if (recv(SOON) < 0) {
			RL_ASSERT(recv() == 0);
		}
	}
};
SCENARIO(channel_late_receiver_leaves_the_item, 20000, 3);

struct channel_late_sender_keeps_its_item : channel_suite<channel_late_sender_keeps_its_item, 2, 0> {
	bool sent;

	void thread(unsigned i)
	{
		if (i == 0)
			sent = send(0, SOON) == 0;
		else
			total = recv(SOON) == 0;
	}

	void after()
	{
		RL_ASSERT(sent == (total == 1));
		channel_suite::after();
	}
};
SCENARIO(channel_late_sender_keeps_its_item, 20000, 2);

struct channel_close_tells_everybody : channel_suite<channel_close_tells_everybody, 3, 1> {
	int r[2];

	void thread(unsigned i)
	{
		if (i == 0) {
			r[0] = send(0);
			r[1] = send(1);
			RL_ASSERT(r[0] == 0 || r[1] == -EPIPE);
		} else if (i == 1) {
			while (recv() >= 0)
				total++;
		} else {
			RL_ASSERT(hive_channel_close(&channel) == 0);
			RL_ASSERT(hive_channel_close(&channel) == -EALREADY);
		}
	}

	void after()
	{
		RL_ASSERT(total == (r[0] == 0) + (r[1] == 0));
		channel_suite::after();
	}
};
SCENARIO(channel_close_tells_everybody, 20000, 1);

/* Without a receiver: the one that waits for room is told. */
struct channel_close_wakes_a_sender : channel_suite<channel_close_wakes_a_sender, 2, 1> {
	void thread(unsigned i)
	{
		if (i == 0) {
			int first = send(0);

			RL_ASSERT(first == 0 || first == -EPIPE);
			RL_ASSERT(send(1) == -EPIPE || first == 0);
		} else {
			RL_ASSERT(hive_channel_close(&channel) == 0);
		}
	}
};
SCENARIO(channel_close_wakes_a_sender, 20000, 4);

/* Who received the last item may let the channel go, though the sender has hardly returned. */
struct channel_goes_with_the_last_item : channel_suite<channel_goes_with_the_last_item, 2, 0> {
	bool gone;

	void before()
	{
		channel_suite::before();
		gone = false;
	}

	void thread(unsigned i)
	{
		if (i == 1) {
			RL_ASSERT(send(0) == 0);
		} else {
			RL_ASSERT(recv() == 0);
			gone = waiters[0].cell.word.load(rl::mo_relaxed, $) != 0; /* it waited: the sender does not */
			if (gone)
				channel.word.store(POISON, rl::mo_relaxed, $);
		}
	}

	void after()
	{
		RL_ASSERT(channel.word.load(rl::mo_relaxed, $) == (gone ? POISON : 0));
	}
};
SCENARIO(channel_goes_with_the_last_item, 20000, 3);
