/* SPDX-License-Identifier: MIT */
/* The small lock: one inside, nobody forgotten. */
#include "base/lock.h"

#include <errno.h>
#include <time.h>

#include "unit.h"

static struct lock lock;

TEST(new_lock_is_free)
{
	lock_init(&lock);
	CHECK_EQ(load_relaxed(&lock.state), LOCK_FREE);
	CHECK(lock_try(&lock));
	CHECK_EQ(load_relaxed(&lock.state), LOCK_HELD);
	lock_release(&lock);
	CHECK_EQ(load_relaxed(&lock.state), LOCK_FREE);
}

TEST(held_lock_cannot_be_had_by_trying)
{
	lock_init(&lock);
	lock_acquire(&lock);
	CHECK(!lock_try(&lock));
	CHECK(!lock_try(&lock));
	lock_release(&lock);
	CHECK(lock_try(&lock));
	lock_release(&lock);
}

TEST(lock_can_be_had_again_and_again)
{
	lock_init(&lock);
	for (int i = 0; i < 1000; i++) {
		lock_acquire(&lock);
		lock_release(&lock);
	}
	CHECK_EQ(load_relaxed(&lock.state), LOCK_FREE);
}

struct counter {
	int rounds;
	uint64_t value; /* plain: only the lock protects it */
	_Atomic(int) inside;
	int pause_every;
};

static void count(int index, void *arg)
{
	struct counter *c = arg;

	(void)index;
	for (int i = 0; i < c->rounds; i++) {
		lock_acquire(&lock);
		CHECK_EQ(atomic_fetch_add(&c->inside, 1), 0);
		c->value++;
		if (c->pause_every && i % c->pause_every == 0)
			sched_yield(); /* a holder that loses its CPU */
		atomic_fetch_sub(&c->inside, 1);
		lock_release(&lock);
	}
}

TEST(four_threads_count_without_loss)
{
	struct counter counter = { .rounds = rounds(50000) };

	lock_init(&lock);
	crew_run(4, count, &counter);
	CHECK_EQ(counter.value, (uint64_t)counter.rounds * 4);
	CHECK_EQ(load_relaxed(&lock.state), LOCK_FREE);
}

TEST(preempted_holder_makes_the_others_sleep_and_wakes_them)
{
	struct counter counter = { .rounds = rounds(5000), .pause_every = 3 };

	lock_init(&lock);
	crew_run(8, count, &counter);
	CHECK_EQ(counter.value, (uint64_t)counter.rounds * 8);
}

static void try_and_count(int index, void *arg)
{
	struct counter *c = arg;

	(void)index;
	for (int i = 0; i < c->rounds;) {
		if (!lock_try(&lock)) {
			breathe();
			continue;
		}
		CHECK_EQ(atomic_fetch_add(&c->inside, 1), 0);
		c->value++;
		i++;
		atomic_fetch_sub(&c->inside, 1);
		lock_release(&lock);
	}
}

TEST(trying_is_exclusive_too)
{
	struct counter counter = { .rounds = rounds(20000) };

	lock_init(&lock);
	crew_run(3, try_and_count, &counter);
	CHECK_EQ(counter.value, (uint64_t)counter.rounds * 3);
}

static int64_t cpu_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void hold_and_wait(int index, void *arg)
{
	int64_t *burnt = arg;

	if (index == 0) {
		while (load_relaxed(&lock.state) != LOCK_CONTENDED) /* it sleeps: only then let go */
			breathe();
		nanosleep(&(struct timespec){ 0, 50 * 1000 * 1000 }, NULL);
		lock_release(&lock);
	} else {
		int64_t before = cpu_time();

		lock_acquire(&lock);
		*burnt = cpu_time() - before;
		lock_release(&lock);
	}
}

/* Half of the time that the lock was held would be 25 ms of spinning. */
TEST(waiting_costs_no_cpu)
{
	int64_t burnt = 0;

	lock_init(&lock);
	lock_acquire(&lock);
	crew_run(2, hold_and_wait, &burnt);
	CHECK(burnt < 25 * 1000 * 1000);
}

TEST(errno_survives)
{
	lock_init(&lock);
	errno = EXDEV;
	lock_acquire(&lock);
	store_relaxed(&lock.state, LOCK_CONTENDED);
	lock_release(&lock); /* wakes whoever sleeps: nobody */
	CHECK_EQ(errno, EXDEV);
	hive__futex_wait(&lock.state, LOCK_HELD, INT64_MAX); /* the word says something else: no wait */
	CHECK_EQ(errno, EXDEV);
}
