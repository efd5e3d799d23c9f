/* SPDX-License-Identifier: MIT */
/* The end of a fiber: joined, detached, and as part of a tree. */
#include "fiber/fate.h"

#include "model.h"

enum : uint64_t { FIRST_LIFE = UINT64_C(1) << 32 };

template <typename T, int THREADS> struct fate_suite : rl::test_suite<T, THREADS> {
	ATOMIC(uint64_t) fate;
	rl::var<int> listed[2]; /* under the latch  who waits */
	struct parker parkers[2];
	rl::var<int> result; /* written before the end */
	rl::var<int> object; /* of the memory itself: whoever frees it writes here */
	int freed;

	void before()
	{
		fate.store(0, rl::mo_relaxed, $);
		fate_begin(&fate, 0);
		for (int i = 0; i < 2; i++) {
			listed[i]($) = 0;
			parker_init(&parkers[i]);
		}
		object($) = 1;
		freed = 0;
	}

	void after()
	{
		RL_ASSERT(freed == 1);
	}

	/* Read by all before their last step, so that freeing early or without order is a race. */
	void touch()
	{
		RL_ASSERT(object($) == 1);
	}

	void give_back()
	{
		object($) = 2;
		freed++;
	}

	/* As publish() in end.c, of a fiber that is in no tree. */
	void end()
	{
		bool wakes[2];
		uint64_t was;

		result($) = 7;
		was = latch_take(&fate);
		for (int i = 0; i < 2; i++)
			wakes[i] = listed[i]($);
		touch();
		latch_give(&fate, was | FATE_ENDED | FATE_DONE);
		if (was & FATE_RELEASED)
			give_back();
		for (int i = 0; i < 2; i++)
			if (wakes[i])
				parker_unpark(&parkers[i]);
	}

	/* As wait_for_end(): a lost wake-up is a deadlock. What its fate was before, or ENDED. */
	uint64_t wait(int who, uint64_t bits)
	{
		uint64_t was;
		bool enters;

		if (fate_has_ended(&fate, FIRST_LIFE, &was))
			return FATE_ENDED | (was & bits);
		if (!fate_enter(&fate, FIRST_LIFE, &was))
			return FATE_RELEASED;
		enters = !(was & (FATE_ENDED | bits));
		if (enters)
			listed[who]($) = 1;
		latch_give(&fate, enters ? was | bits : was);
		if (enters)
			while (!parker_park(&parkers[who], HIVE_FOREVER))
				;
		return was;
	}

	void release()
	{
		uint64_t was;

		touch();
		if (fate_release(&fate, FIRST_LIFE, 0, &was) && (was & FATE_DONE))
			give_back();
	}
};

struct fate_joiner_gets_the_result : fate_suite<fate_joiner_gets_the_result, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			end();
			return;
		}
		wait(0, FATE_JOINING);
		RL_ASSERT(result($) == 7);
		release();
	}
};
SCENARIO(fate_joiner_gets_the_result, 50000, 4);

struct fate_detached_is_freed_once : fate_suite<fate_detached_is_freed_once, 2> {
	void thread(unsigned i)
	{
		if (i == 0)
			end();
		else
			release();
	}
};
SCENARIO(fate_detached_is_freed_once, 50000, 5);

/* One waits for it without taking the handle, the other one joins. */
struct fate_all_who_wait_are_told : fate_suite<fate_all_who_wait_are_told, 3> {
	rl::atomic<int> seen;

	void before()
	{
		fate_suite::before();
		seen.store(0, rl::mo_relaxed, $);
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			end();
		} else if (i == 1) {
			wait(0, 0);
			RL_ASSERT(result($) == 7);
			seen.store(1, rl::mo_release,
			           $); /* the handle must live as long as somebody waits: the user's duty */
		} else {
			wait(1, FATE_JOINING);
			RL_ASSERT(result($) == 7);
			while (seen.load(rl::mo_acquire, $) == 0)
				rl::yield(1, $);
			release();
		}
	}
};
SCENARIO(fate_all_who_wait_are_told, 50000, 2);

/* Two want to join: one does, the other one is told so, and nobody hangs. */
struct fate_second_joiner_is_refused : fate_suite<fate_second_joiner_is_refused, 3> {
	int joined;

	void before()
	{
		fate_suite::before();
		joined = 0;
	}

	void thread(unsigned i)
	{
		uint64_t was;

		if (i == 0) {
			end();
			return;
		}
		was = wait((int)i - 1, FATE_JOINING);
		if (was & FATE_JOINING)
			return;
		if (!fate_release(&fate, FIRST_LIFE, 0, &was))
			return;
		joined++;
		if (was & FATE_DONE)
			give_back();
	}

	void after()
	{
		RL_ASSERT(joined == 1);
		fate_suite::after();
	}
};
SCENARIO(fate_second_joiner_is_refused, 50000, 2);

/* Who gives up finds that it ended, and then its result is there; or leaves the list, and is not woken. */
struct fate_who_gives_up_may_come_too_late : fate_suite<fate_who_gives_up_may_come_too_late, 2> {
	void thread(unsigned i)
	{
		uint64_t was;

		if (i == 0) {
			end();
			return;
		}
		if (!fate_enter(&fate, FIRST_LIFE, &was))
			RL_ASSERT(false);
		if (!(was & FATE_ENDED))
			listed[0]($) = 1;
		latch_give(&fate, was);
		if (fate_enter_to_leave(&fate, FIRST_LIFE, &was)) {
			RL_ASSERT(listed[0]($) == 1);
			listed[0]($) = 0;
			latch_give(&fate, was);
		} else {
			RL_ASSERT(result($) == 7);
		}
		release();
	}
};
SCENARIO(fate_who_gives_up_may_come_too_late, 50000, 6);

/* Somebody waits by a handle that another one joins, and the memory begins its next life: that one is left alone. */
struct fate_an_old_handle_does_no_harm : fate_suite<fate_an_old_handle_does_no_harm, 3> {
	void thread(unsigned i)
	{
		uint64_t was;

		if (i == 0) {
			end();
		} else if (i == 1) {
			wait(0, FATE_JOINING);
			RL_ASSERT(fate_release(&fate, FIRST_LIFE, 0, &was));
			if (!(was & FATE_DONE))
				return;
			give_back();
			listed[1]($) = 0;
			fate_begin(&fate, 0);
		} else if (fate_enter(&fate, FIRST_LIFE, &was)) {
			listed[1]($) = 0; /* the list is ours as long as we are inside */
			latch_give(&fate, was);
		}
	}

	void after()
	{
		uint64_t now = fate.load(rl::mo_relaxed, $);

		RL_ASSERT(freed == 1 && now == 2 * (uint64_t)FIRST_LIFE);
	}
};
SCENARIO(fate_an_old_handle_does_no_harm, 50000, 4);

/* A root and its two children, each on a thread of its own: the last of the three, and only that one, sees all they did. */
struct tree_is_complete_once : rl::test_suite<tree_is_complete_once, 3> {
	ATOMIC(uint32_t) pending;
	rl::var<int> done[3];
	int complete;

	void before()
	{
		pending.store(3, rl::mo_relaxed, $);
		complete = 0;
	}

	void thread(unsigned i)
	{
		done[i]($) = 1;
		if (!tree_is_leaf(&pending) &&
		    !tree_is_last(&pending)) /* the root does so, and for the others it must do no harm */
			return;
		for (rl::var<int> &d : done)
			RL_ASSERT(d($) == 1);
		complete++;
	}

	void after()
	{
		RL_ASSERT(complete == 1);
	}
};
SCENARIO(tree_is_complete_once, 50000, 6);
