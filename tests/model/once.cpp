/* SPDX-License-Identifier: MIT */
/* What is done once, and one who waits for it (src/fiber/once.h): who waits goes on when it is done, sees what was written before, and
 * may free the memory when he has gone on: whoever still touches it then races. And errands (src/fiber/errand.h), whose memory is freed
 * by who runs them if nobody wants them any more.                                                                            */
#include "base/atomic.h"
#include "model_wait.h"

#include "model.h"

inline void hive__thread_give_way(uint32_t tries)
{
	(void)tries;
	rl::yield(1, $);
}

/* Of the memory in which it is: written by who frees it, read by who finishes it up to his last step. */
static rl::var<int> *model_object;

/* As wait.c: claimed, then run. */
inline bool hive__wait_wake(struct wait wait)
{
	enum cell_claim claim = hive__wait_claim(wait);

	if (claim == CELL_OURS_PARKED)
		hive__wait_deliver(wait);
	RL_ASSERT((*model_object)($) == 1);
	return claim != CELL_NOT_OURS;
}

#include "fiber/errand.h"
#include "fiber/once.h"

#define SOON 2 /* a deadline that is not past, and may pass at any time */
#define POISON UINT64_C(0xdead3)

template <typename T> struct once_suite : rl::test_suite<T, 2> {
	struct waiter waiters[MODEL_WAITERS];
	struct once once;
	rl::var<int> news;
	rl::var<int> object;

	void before()
	{
		model_waiters = waiters;
		model_object = &object;
		for (int i = 0; i < MODEL_WAITERS; i++) {
			waiters[i].cell.word.store(0, rl::mo_relaxed, $);
			parker_init(&waiters[i].parker);
			waiters[i].is_thread = i % 2 == 1;
		}
		once_init(&once);
		news($) = 0;
		object($) = 1;
	}

	void finish()
	{
		RL_ASSERT(object($) == 1);
		news($) = 1;
		once_finish(&once);
	}

	/* The memory is somebody else's from here on, and must stay as he leaves it. */
	void free_it()
	{
		RL_ASSERT(news($) == 1);
		object($) = 2;
		store_relaxed(&once.word, POISON);
	}

	void after()
	{
		RL_ASSERT(load_relaxed(&once.word) == POISON);
	}
};

struct once_is_done_before_or_while_one_waits : once_suite<once_is_done_before_or_while_one_waits> {
	void thread(unsigned i)
	{
		if (i == 0) {
			finish();
			return;
		}
		RL_ASSERT(once_wait(&once, false, "", HIVE_FOREVER) == 0);
		free_it();
	}
};
SCENARIO(once_is_done_before_or_while_one_waits, 50000, 4);

/* The same with a waiter that parks in its cell, as fibers do. */
struct once_is_done_while_a_fiber_waits : once_suite<once_is_done_while_a_fiber_waits> {
	void thread(unsigned i)
	{
		if (i == 1) {
			finish();
			return;
		}
		RL_ASSERT(once_wait(&once, false, "", HIVE_FOREVER) == 0);
		free_it();
	}
};
SCENARIO(once_is_done_while_a_fiber_waits, 50000, 4);

/* Gives up, and waits once more: an earlier wait is not taken for the one under way. */
struct once_who_gave_up_waits_again : once_suite<once_who_gave_up_waits_again> {
	void thread(unsigned i)
	{
		if (i == 1) {
			finish();
			return;
		}
		if (once_wait(&once, false, "", SOON) < 0)
			RL_ASSERT(once_wait(&once, true, "", HIVE_FOREVER) == 0);
		free_it();
	}
};
SCENARIO(once_who_gave_up_waits_again, 50000, 4);

/* Thread 1 runs the errand, thread 0 wants it and may give up: as a resolver does it (taken when it is done), or as an offload (taken when
 * it begins).                                                                                                               */
template <typename T> struct errand_suite : once_suite<T> {
	ATOMIC(uint32_t) errand;
	int freed;

	void before()
	{
		once_suite<T>::before();
		errand.store(ERRAND_WANTED, rl::mo_relaxed, $);
		freed = 0;
	}

	void discard()
	{
		freed++;
		RL_ASSERT(this->object($) == 1);
		this->object($) = 2;
		store_relaxed(&this->once.word, POISON);
	}

	/* in_fiber() of both */
	void want()
	{
		int r;

		RL_ASSERT(this->object($) == 1);
		r = once_wait(&this->once, false, "", SOON);
		if (r < 0 && errand_abandon(&errand))
			return;
		while (r < 0)
			r = once_wait(&this->once, true, "", HIVE_FOREVER);
		RL_ASSERT(this->news($) == 1);
		discard();
	}

	void after()
	{
		RL_ASSERT(freed == 1);
		once_suite<T>::after();
	}
};

struct errand_taken_when_it_is_done : errand_suite<errand_taken_when_it_is_done> {
	void thread(unsigned i)
	{
		if (i == 0) {
			want();
			return;
		}
		if (errand_is_wanted(&errand))
			news($) = 1;
		if (errand_take(&errand))
			once_finish(&once);
		else
			discard();
	}
};
SCENARIO(errand_taken_when_it_is_done, 50000, 4);

struct errand_taken_when_it_begins : errand_suite<errand_taken_when_it_begins> {
	void thread(unsigned i)
	{
		if (i == 0)
			want();
		else if (errand_take(&errand))
			finish();
		else
			discard();
	}
};
SCENARIO(errand_taken_when_it_begins, 50000, 4);
