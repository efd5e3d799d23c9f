/* SPDX-License-Identifier: MIT */
/* Where one may wait: not on an IO worker outside a fiber; and not any more in a fiber that is cancelled. */
#include "crew.h"
#include "sync/channel.h"

#define WAIT_PLACES 7
#include "places.h"

static struct hive_mutex mutex, taken;
static struct hive_cond cond;
static struct hive_semaphore semaphore;
static struct hive_rwlock written;
static struct hive_barrier two;
static struct hive_channel *empty, *full;
static uint64_t item;

static void init(void)
{
	hive_mutex_init(&mutex);
	hive_mutex_init(&taken);
	hive_cond_init(&cond);
	hive_semaphore_init(&semaphore, 1);
	hive_rwlock_init(&written);
	CHECK_OK(hive_rwlock_lock_write(&written, HIVE_NOWAIT));
	hive_barrier_init(&two, 2);
	CHECK_OK(hive_channel_create(sizeof item, 1, &empty));
	CHECK_OK(hive_channel_create(sizeof item, 1, &full));
	CHECK_OK(hive_channel_send(full, &item, sizeof item, HIVE_NOWAIT));
	CHECK_OK(hive_mutex_lock(&taken, HIVE_NOWAIT));
	crew_open(CREW_MIXED);
}

static void finish(void)
{
	crew_close();
	CHECK_OK(hive_mutex_unlock(&taken));
	CHECK_EQ(load_relaxed(&mutex.state) | load_relaxed(&taken.state) | load_relaxed(&cond.state), 0);
	CHECK_EQ(load_relaxed(&semaphore.state), 1 << SEMAPHORE_SHIFT);
	CHECK_OK(hive_rwlock_unlock_write(&written));
	CHECK_EQ(load_relaxed(&two.state), 0);
	CHECK_OK(hive_channel_destroy(empty));
	CHECK_OK(hive_channel_destroy(full));
}

/* What would have to wait says so, whatever the deadline; what need not wait works. */
static void wait_everywhere(int64_t deadline_ns, int expected)
{
	CHECK_ERR(hive_mutex_lock(&taken, deadline_ns), expected);
	CHECK_OK(hive_mutex_lock(&mutex, deadline_ns));
	CHECK_ERR(hive_cond_wait(&cond, &mutex, deadline_ns), expected);
	CHECK_OK(hive_mutex_unlock(&mutex)); /* still held */
	CHECK_ERR(hive_semaphore_acquire(&semaphore, 2, deadline_ns), expected);
	CHECK_OK(hive_semaphore_acquire(&semaphore, 1, deadline_ns));
	CHECK_OK(hive_semaphore_release(&semaphore, 1));
	CHECK_ERR(hive_rwlock_lock_read(&written, deadline_ns), expected);
	CHECK_ERR(hive_rwlock_lock_write(&written, deadline_ns), expected);
	CHECK_ERR(hive_barrier_wait(&two, deadline_ns), expected);
	CHECK_ERR(hive_channel_recv(empty, &item, sizeof item, deadline_ns), expected);
	CHECK_ERR(hive_channel_send(full, &item, sizeof item, deadline_ns), expected);
	CHECK_OK(hive_channel_send(empty, &item, sizeof item, deadline_ns));
	CHECK_OK(hive_channel_recv(empty, &item, sizeof item, deadline_ns));
}

static void wait_until_cancelled(int place)
{
	CHECK_OK(hive_mutex_lock(&mutex, HIVE_FOREVER));
	switch (place) {
	case 0:
		CHECK_ERR(hive_mutex_lock(&taken, HIVE_FOREVER), -ECANCELED);
		break;
	case 1:
		CHECK_ERR(hive_cond_wait(&cond, &mutex, HIVE_FOREVER), -ECANCELED);
		break;
	case 2:
		CHECK_ERR(hive_semaphore_acquire(&semaphore, 2, HIVE_FOREVER), -ECANCELED);
		break;
	case 3:
		CHECK_ERR(hive_channel_recv(empty, &item, sizeof item, HIVE_FOREVER), -ECANCELED);
		break;
	case 4:
		CHECK_ERR(hive_rwlock_lock_read(&written, HIVE_FOREVER), -ECANCELED);
		break;
	case 5:
		CHECK_ERR(hive_barrier_wait(&two, HIVE_FOREVER), -ECANCELED);
		break;
	default:
		CHECK_ERR(hive_channel_send(full, &item, sizeof item, hive_deadline(NULL, HIVE_S(100))), -ECANCELED);
	}
	CHECK_OK(hive_mutex_unlock(&mutex)); /* held, whatever happened */
}

static bool somebody_waits(int place)
{
	switch (place) {
	case 0:
		return waiting(&taken.state, taken.waiters) > 0;
	case 1:
		return waiting(&cond.state, cond.waiters) > 0;
	case 2:
		return waiting(&semaphore.state, semaphore.waiters) > 0;
	case 3:
		return load_acquire(&empty->word) & CHANNEL_RECEIVERS;
	case 4:
		return waiting(&written.room.state, written.room.waiters) > 0;
	case 5:
		return waiting(&two.state, two.waiters) > 0;
	default:
		return load_acquire(&full->word) & CHANNEL_SENDERS;
	}
}

/* Cancelled in a condition while another one has the mutex: the way back is not cancelled. */
static int comes_back(void *arg)
{
	(void)arg;
	CHECK_OK(hive_mutex_lock(&mutex, HIVE_FOREVER));
	CHECK_ERR(hive_cond_wait(&cond, &mutex, HIVE_FOREVER), -ECANCELED);
	CHECK_EQ(load_acquire(&ended), 1);
	CHECK_OK(hive_mutex_unlock(&mutex));
	return 0;
}

TEST(a_cancelled_fiber_waits_for_the_mutex_of_its_condition)
{
	struct hive_fiber *fiber;

	store_relaxed(&ended, 0);
	init();
	CHECK_OK(hive_spawn(crew_hive, comes_back, NULL, NULL, &fiber));
	UNTIL_WAITING(&cond, 1);
	CHECK_OK(hive_mutex_lock(&mutex, HIVE_FOREVER));
	CHECK_OK(hive_fiber_cancel(fiber));
	UNTIL_WAITING(&mutex, 1);
	store_release(&ended, 1);
	CHECK_OK(hive_mutex_unlock(&mutex));
	CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, NULL));
	finish();
}

/* Debug builds say so and stop; others let it pass: nobody can unlock that mutex any more. */
static int keeps_it(void *arg)
{
	(void)arg;
	return hive_mutex_lock(&mutex, HIVE_NOWAIT);
}

static int end_with_a_mutex(void)
{
	struct hive_fiber *fiber;
	int r = -EINVAL;

	init();
	CHECK_OK(hive_spawn(crew_hive, keeps_it, NULL, NULL, &fiber));
	CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, &r));
	hive_mutex_init(&mutex);
	finish();
	return r;
}

TEST(a_fiber_that_ends_with_a_mutex_is_told)
{
	CHECK_MISUSE(end_with_a_mutex(), 0);
}
