/* SPDX-License-Identifier: MIT */
/* Programs with what fibers and threads share: a mutex, a semaphore, a condition. */
#include <errno.h>
#include <string.h>

#include "crew.h"
#include "programs.h"
#include "support/invariants.h"

enum { UNITS = 3 };

static struct {
	struct hive_mutex mutex;
	struct hive_cond cond;
	struct hive_semaphore semaphore;
	bool held;          /* somebody is between lock and unlock */
	uint32_t units;     /* of the semaphore, that somebody has */
	int goods, waiting; /* what the condition is about; who waits for it */
	bool closed;        /* there will be no more goods */
} shared;

static const char *check_shared(void)
{
	const char *wrong = invariants_mutex(&shared.mutex);

	if (!wrong)
		wrong = invariants_cond(&shared.cond);
	return wrong ? wrong : invariants_semaphore(&shared.semaphore);
}

static bool open_shared(struct range io)
{
	crew_clear();
	memset(&shared, 0, sizeof shared);
	hive_mutex_init(&shared.mutex);
	hive_cond_init(&shared.cond);
	hive_semaphore_init(&shared.semaphore, UNITS);
	if (!open_hive(io, (struct range){ 0, 0 }, CORE_EMPTY))
		return false;
	watched = check_shared;
	return true;
}

/* Nobody has anything of it, and nobody waits. */
static void close_shared(void)
{
	EXPECT(hive_mutex_lock(&shared.mutex, HIVE_NOWAIT) == 0);
	EXPECT(hive_mutex_unlock(&shared.mutex) == 0);
	EXPECT(hive_semaphore_acquire(&shared.semaphore, UNITS, HIVE_NOWAIT) == 0);
	EXPECT(shared.waiting == 0 && !shared.held && shared.units == 0);
}

/* In the middle of something that others must not see. */
static void take_a_while(int self)
{
	explore_yield();
	if (self >= 0 && explore_draw(3) == 0)
		(void)hive_yield();
}

/* ---- mutex and semaphore ---- */

static void lock_and_unlock(int self)
{
	int64_t deadline = crew_deadline();
	int r = hive_mutex_lock(&shared.mutex, deadline);

	crew_check_wait(self, r, deadline);
	if (r < 0)
		return;
	EXPECT(!shared.held);
	shared.held = true;
	EXPECT(hive_mutex_lock(&shared.mutex, HIVE_FOREVER) == -EDEADLK);
	take_a_while(self);
	EXPECT(shared.held);
	shared.held = false;
	EXPECT(hive_mutex_unlock(&shared.mutex) == 0);
}

static void acquire_and_release(int self)
{
	int64_t deadline = crew_deadline();
	uint32_t n = 1 + explore_draw(UNITS);
	int r = hive_semaphore_acquire(&shared.semaphore, n, deadline);

	crew_check_wait(self, r, deadline);
	if (r < 0)
		return;
	shared.units += n;
	EXPECT(shared.units <= UNITS);
	take_a_while(self);
	shared.units -= n;
	EXPECT(hive_semaphore_release(&shared.semaphore, n) == 0);
}

static void take_turns(int self)
{
	for (uint32_t n = 1 + explore_draw(4); n > 0; n--)
		if (explore_draw(2))
			lock_and_unlock(self);
		else
			acquire_and_release(self);
}

static int take_turns_as_fiber(void *one)
{
	take_turns(crew_enter(one));
	return crew_leave(one);
}

static void take_turns_as_thread(void *arg)
{
	(void)arg;
	take_turns(-1);
}

/* One at a time has the mutex, and nobody more of the semaphore than there is; whoever waits without a limit has its turn. */
void fibers_and_threads_take_turns(void *arg)
{
	(void)arg;
	if (!open_shared((struct range){ 1, 3 }))
		return;
	crew_work_together(take_turns_as_fiber, take_turns_as_thread);
	close_shared();
}

/* ---- condition ---- */

static void set_held(bool held)
{
	EXPECT(shared.held != held);
	shared.held = held;
}

/* With the mutex, which it has again in any case. */
static int wait_for_goods(int self)
{
	int64_t deadline = crew_deadline();
	int r;

	set_held(false);
	shared.waiting++;
	r = hive_cond_wait(&shared.cond, &shared.mutex, deadline);
	shared.waiting--;
	set_held(true);
	crew_check_wait(self, r, deadline);
	return r;
}

static void consume(int self)
{
	int r = hive_mutex_lock(&shared.mutex, HIVE_FOREVER);

	crew_check_wait(self, r, HIVE_FOREVER);
	if (r < 0)
		return;
	set_held(true);
	while (shared.goods == 0 && !shared.closed && r == 0)
		r = wait_for_goods(self);
	shared.goods -= r == 0 && shared.goods > 0;
	set_held(false);
	EXPECT(hive_mutex_unlock(&shared.mutex) == 0);
}

static int consume_as_fiber(void *one)
{
	int self = crew_enter(one);

	for (uint32_t n = 1 + explore_draw(2); n > 0; n--)
		consume(self);
	return crew_leave(one);
}

static void consume_as_thread(void *arg)
{
	(void)arg;
	consume(-1);
}

static void signal_some(uint32_t n)
{
	if (n > 1 || explore_draw(3) == 0)
		hive_cond_broadcast(&shared.cond);
	else
		hive_cond_signal(&shared.cond);
}

/* For threads, which nobody cancels. NULL: the last of it. */
static void produce(void *count)
{
	uint32_t n = 1 + explore_draw(2);
	bool inside = explore_draw(2);

	EXPECT(hive_mutex_lock(&shared.mutex, HIVE_FOREVER) == 0);
	set_held(true);
	shared.goods += count ? (int)n : 0;
	shared.closed |= !count;
	if (inside)
		signal_some(count ? n : 2);
	set_held(false);
	EXPECT(hive_mutex_unlock(&shared.mutex) == 0);
	if (!inside)
		signal_some(count ? n : 2);
}

static void produce_some(void *count)
{
	for (intptr_t n = (intptr_t)count; n > 0; n--)
		produce(count);
}

/* A signal is for somebody who waits: nobody sleeps while there is something for it, whoever else was late or cancelled. */
void conditions_wake_who_waits(void *arg)
{
	int threads[4], n = 0;

	(void)arg;
	if (!open_shared((struct range){ 1, 3 }))
		return;
	for (uint32_t i = 1 + explore_draw(3); i > 0; i--)
		crew_hire(consume_as_fiber, (int)explore_draw(4));
	threads[n++] = explore_spawn("producer", produce_some, number(1 + (intptr_t)explore_draw(3)));
	if (explore_draw(2))
		threads[n++] = explore_spawn("producer", produce_some, number(1));
	if (explore_draw(3) == 0)
		threads[n++] = explore_draw(2) ? explore_spawn("canceller", crew_canceller, number(3))
		                               : explore_spawn("stopper", crew_stop, &crew);
	crew_join_threads(threads, n);
	n = 0;
	if (explore_draw(2))
		threads[n++] = explore_spawn("consumer", consume_as_thread, NULL);
	explore_wait_quiet();
	EXPECT(shared.goods == 0 || shared.waiting == 0);
	produce(NULL);
	crew_join_threads(threads, n);
	if (!crew.stopping) {
		crew_check_still();
		crew_stop(explore_draw(2) ? &crew : NULL);
	}
	crew_close();
	close_shared();
}
