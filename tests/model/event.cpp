/* SPDX-License-Identifier: MIT */
/* Something to wait for: who waits and who tells, with a futex that compares and sleeps in one step. */
#include "bus/event.h"

#include "base/parker.h"
#include "model.h"

template <typename T, int WAITERS, int TELLERS> struct event_suite : rl::test_suite<T, WAITERS + TELLERS> {
	struct event event;
	rl::atomic<int> changes; /* what they wait for: all of them */

	void before()
	{
		event_init(&event);
		changes($) = 0;
	}

	void wait()
	{
		uint32_t seen;

		event_enter(&event);
		for (;;) {
			seen = event_look(&event);
			if (changes.load(rl::mo_seq_cst, $) == TELLERS)
				break;
			hive__futex_wait(&event.sequence, seen, INT64_MAX);
		}
		event_leave(&event);
	}

	void tell()
	{
		changes.fetch_add(1, rl::mo_seq_cst, $);
		if (event_tells(&event))
			hive__futex_wake(&event.sequence, INT32_MAX);
	}

	void thread(unsigned i)
	{
		if (i < WAITERS)
			wait();
		else
			tell();
	}

	void after()
	{
		RL_ASSERT(event.waiters.load(rl::mo_relaxed, $) == 0);
	}
};

struct event_one_waits_one_tells : event_suite<event_one_waits_one_tells, 1, 1> {};
SCENARIO(event_one_waits_one_tells, 50000, 3);
struct event_one_waits_two_tell : event_suite<event_one_waits_two_tell, 1, 2> {};
SCENARIO(event_one_waits_two_tell, 50000, 3);
struct event_two_wait_one_tells : event_suite<event_two_wait_one_tells, 2, 1> {};
SCENARIO(event_two_wait_one_tells, 50000, 2);
