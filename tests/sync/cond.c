/* SPDX-License-Identifier: MIT */
/* The condition: a signal after the unlock is not missed, and never spent on somebody who has given up. */
#include "crew.h"

static struct hive_mutex mutex;
static struct hive_cond cond;
static int permits, woken, late;

static void init(void)
{
	hive_mutex_init(&mutex);
	hive_cond_init(&cond);
	permits = woken = late = 0;
}

static void wait_for_permit(void *arg)
{
	(void)arg;
	CHECK_OK(hive_mutex_lock(&mutex, HIVE_FOREVER));
	while (permits == 0)
		CHECK_OK(hive_cond_wait(&cond, &mutex, HIVE_FOREVER));
	permits--;
	woken++;
	CHECK_OK(hive_mutex_unlock(&mutex));
}

static void permit(int n, bool all)
{
	CHECK_OK(hive_mutex_lock(&mutex, HIVE_FOREVER));
	permits += n;
	if (all)
		hive_cond_broadcast(&cond);
	else
		hive_cond_signal(&cond);
	CHECK_OK(hive_mutex_unlock(&mutex));
}

CREW_TEST(signal_wakes_one)
{
	struct crew crew;

	init();
	crew_begin(&crew, crew_kind);
	for (size_t i = 0; i < 3; i++) {
		crew_add(&crew, wait_for_permit, NULL);
		UNTIL_WAITING(&cond, i + 1);
	}
	for (size_t left = 3; left-- > 0;) {
		permit(1, false);
		CHECK_EQ(waiting(&cond.state, cond.waiters), left);
	}
	crew_end(&crew);
	CHECK_EQ(woken, 3);
	CHECK_EQ(load_relaxed(&cond.state), 0);
}

CREW_TEST(broadcast_wakes_all_who_wait)
{
	struct crew crew;

	init();
	crew_begin(&crew, crew_kind);
	for (size_t i = 0; i < 12; i++) {
		crew_add(&crew, wait_for_permit, NULL);
		UNTIL_WAITING(&cond, i + 1);
	}
	permit(12, true);
	crew_end(&crew);
	CHECK_EQ(woken, 12);
	CHECK_EQ(load_relaxed(&mutex.state), 0);
}

TEST(nobody_waits_nothing_happens)
{
	init();
	hive_cond_signal(&cond);
	hive_cond_broadcast(&cond);
	CHECK_OK(hive_mutex_lock(&mutex, HIVE_NOWAIT));
	CHECK_ERR(hive_cond_wait(&cond, &mutex, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(hive_cond_wait(&cond, &mutex, hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT);
	CHECK_ERR(hive_mutex_lock(&mutex, HIVE_NOWAIT), -EDEADLK); /* held again */
	CHECK_OK(hive_mutex_unlock(&mutex));
	CHECK_EQ(load_relaxed(&cond.state), 0);
}

/* The deadline passes while another one has the mutex: it comes back with the mutex all the same. */
static ATOMIC(uint32_t) gone;
static int inside;

static void times_out(void *arg)
{
	(void)arg;
	CHECK_OK(hive_mutex_lock(&mutex, HIVE_FOREVER));
	UNTIL_WAITING(&mutex, 1);
	CHECK_ERR(hive_cond_wait(&cond, &mutex, hive_deadline(NULL, HIVE_MS(5))), -ETIMEDOUT);
	CHECK_EQ(inside, 0);
	store_release(&gone, 1);
	CHECK_OK(hive_mutex_unlock(&mutex));
}

CREW_TEST(time_out_holds_the_mutex_again)
{
	struct crew crew;

	init();
	store_relaxed(&gone, 0);
	crew_begin(&crew, crew_kind);
	crew_add(&crew, times_out, NULL);
	while (load_relaxed(&mutex.state) == 0)
		hive_yield();
	CHECK_OK(hive_mutex_lock(&mutex, HIVE_FOREVER)); /* while it waits for its time */
	inside = 1;
	UNTIL_WAITING_OR(&mutex, 1, &gone); /* it wants the mutex back */
	inside = 0;
	CHECK_OK(hive_mutex_unlock(&mutex));
	crew_end(&crew);
	CHECK_EQ(load_relaxed(&cond.state), 0);
	CHECK_EQ(load_relaxed(&mutex.state), 0);
}

/* Signals and deadlines race. Each signal that found somebody waiting with time left must reach one: a permit for each signal is
 * given while patient ones wait behind the impatient; in the end all permits are gone. */
static void impatient(void *arg)
{
	int rounds = *(int *)arg;

	for (int i = 0; i < rounds; i++) {
		CHECK_OK(hive_mutex_lock(&mutex, HIVE_FOREVER));
		if (permits == 0 && hive_cond_wait(&cond, &mutex, hive_deadline(NULL, HIVE_US(1 + i % 60))) < 0)
			late++;
		CHECK_OK(hive_mutex_unlock(&mutex));
		/* Woken without taking the permit: hands the signal on, as a program must that does not use it. */
		hive_cond_signal(&cond);
	}
}

static void patient(void *arg)
{
	int rounds = *(int *)arg;

	for (int i = 0; i < rounds; i++)
		wait_for_permit(NULL);
}

CREW_TEST(no_signal_is_spent_on_one_who_gave_up)
{
	int rounds = 500 / test_slowness();
	struct crew crew;

	init();
	crew_begin(&crew, crew_kind);
	for (int i = 0; i < 2; i++)
		crew_add(&crew, impatient, &rounds);
	for (int i = 0; i < 2; i++)
		crew_add(&crew, patient, &rounds);
	for (int i = 0; i < 2 * rounds; i++)
		permit(1, false);
	crew_end(&crew);
	CHECK_EQ(woken, 2 * rounds);
	CHECK_EQ(permits, 0);
}

/* A bounded buffer by hand: the classic. */
static int buffer, moved;
static struct hive_cond room;

static void producer(void *arg)
{
	int rounds = *(int *)arg;

	for (int i = 0; i < rounds; i++) {
		CHECK_OK(hive_mutex_lock(&mutex, HIVE_FOREVER));
		while (buffer == 2)
			CHECK_OK(hive_cond_wait(&room, &mutex, HIVE_FOREVER));
		buffer++;
		CHECK_OK(hive_mutex_unlock(&mutex));
		hive_cond_signal(&cond);
	}
}

static void consumer(void *arg)
{
	int rounds = *(int *)arg;

	for (int i = 0; i < rounds; i++) {
		CHECK_OK(hive_mutex_lock(&mutex, HIVE_FOREVER));
		while (buffer == 0)
			CHECK_OK(hive_cond_wait(&cond, &mutex, HIVE_FOREVER));
		buffer--;
		moved++;
		CHECK_OK(hive_mutex_unlock(&mutex));
		hive_cond_signal(&room);
	}
}

CREW_TEST(bounded_buffer_by_hand)
{
	int rounds = 2000 / test_slowness();
	struct crew crew;

	init();
	hive_cond_init(&room);
	buffer = moved = 0;
	crew_begin(&crew, crew_kind);
	for (int i = 0; i < 3; i++) {
		crew_add(&crew, producer, &rounds);
		crew_add(&crew, consumer, &rounds);
	}
	crew_end(&crew);
	CHECK_EQ(moved, 3 * rounds);
	CHECK_EQ(buffer, 0);
}

TEST(wrong_use_is_told)
{
	struct hive_cond never = { 0 };

	init();
	CHECK_ERR(hive_cond_wait(NULL, &mutex, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_cond_wait(&cond, NULL, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_cond_wait(&never, &mutex, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_cond_wait(&cond, &mutex, HIVE_FOREVER), -EPERM);
	hive_cond_signal(NULL);
	hive_cond_broadcast(&never);
	hive_cond_init(NULL);
}
