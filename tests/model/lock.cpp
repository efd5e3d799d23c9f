/* SPDX-License-Identifier: MIT */
/* The parker, and the lock as it is: lock.h on the modelled atomics and futex instead of the checker's mutex. */
#include "base/atomic.h"
#include "model_parker.h"
#undef HIVE_MODEL
#include "base/lock.h"
#define HIVE_MODEL 1
#include "model.h"

template <typename T, int THREADS> struct parker_suite : rl::test_suite<T, THREADS> {
	struct parker parker;
	rl::var<int> news[3];
	rl::atomic<int> told[3];

	void before()
	{
		parker_init(&parker);
		for (rl::atomic<int> &t : told)
			t.store(0, rl::mo_relaxed, $);
	}

	/* What came before a token is seen by whoever took it, however the two met. */
	void tell(int i)
	{
		news[i]($) = 1;
		told[i].store(1, rl::mo_relaxed, $); /* the token is what orders, not this */
		parker_unpark(&parker);
	}

	void wait_for(int i, int64_t timeout_ns)
	{
		while (told[i].load(rl::mo_relaxed, $) == 0)
			parker_park(&parker, timeout_ns);
	}
};

struct parker_token_before_or_during_the_wait : parker_suite<parker_token_before_or_during_the_wait, 2> {
	void thread(unsigned i)
	{
		if (i == 0)
			wait_for(0, HIVE_FOREVER); /* a lost token is a deadlock */
		else
			tell(0);
	}
};
SCENARIO(parker_token_before_or_during_the_wait, 50000, 4);

/* A park that returns with the token has everything that its giver wrote. */
struct parker_token_carries_what_came_before : rl::test_suite<parker_token_carries_what_came_before, 2> {
	struct parker parker;
	rl::var<int> news;

	void before()
	{
		parker_init(&parker);
	}

	void thread(unsigned i)
	{
		if (i == 1) {
			news($) = 1;
			parker_unpark(&parker);
		} else if (parker.state.load(rl::mo_relaxed, $) == PARKER_TOKEN) {
			parker_park(&parker, HIVE_FOREVER);
			RL_ASSERT(news($) == 1);
		}
	}
};
SCENARIO(parker_token_carries_what_came_before, 50000, 4);

struct parker_two_tokens_at_once : parker_suite<parker_two_tokens_at_once, 3> {
	void thread(unsigned i)
	{
		if (i == 0) {
			wait_for(0, HIVE_FOREVER);
			wait_for(1, HIVE_FOREVER);
		} else {
			tell((int)i - 1);
		}
	}
};
SCENARIO(parker_two_tokens_at_once, 50000, 2);

struct parker_time_limit_against_token : parker_suite<parker_time_limit_against_token, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			parker_park(&parker, HIVE_MS(1));
			wait_for(
				0,
				HIVE_FOREVER); /* the token may have come too late for the first wait, never for both */
		} else {
			tell(0);
		}
	}
};
SCENARIO(parker_time_limit_against_token, 50000, 4);

template <typename T, int THREADS> struct lock_suite : rl::test_suite<T, THREADS> {
	struct lock lock;
	rl::var<int> inside;
	int total;

	void before()
	{
		lock_init(&lock);
		inside($) = 0;
		total = 0;
	}

	void visit()
	{
		inside($) = inside($) + 1;
		total++;
		lock_release(&lock);
	}

	void after()
	{
		RL_ASSERT(inside($) == total);
		RL_ASSERT(lock_try(&lock));
	}
};

struct lock_three_threads_one_inside : lock_suite<lock_three_threads_one_inside, 3> {
	void thread(unsigned)
	{
		lock_acquire(&lock);
		visit();
	}
};
SCENARIO(lock_three_threads_one_inside, 50000, 1);

/* The bounded search lets one thread spin to the end while another holds it: then it sleeps, and must be woken. */
struct lock_sleepers_are_woken : lock_suite<lock_sleepers_are_woken, 2> {
	void thread(unsigned)
	{
		for (int round = 0; round < 2; round++) {
			lock_acquire(&lock);
			visit();
		}
	}
};
SCENARIO(lock_sleepers_are_woken, 50000, 3);

struct lock_try_never_waits : lock_suite<lock_try_never_waits, 2> {
	void thread(unsigned)
	{
		if (lock_try(&lock))
			visit();
	}
};
SCENARIO(lock_try_never_waits, 50000, 4);
