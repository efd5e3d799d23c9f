/* SPDX-License-Identifier: MIT */
/* The word of a group: who ends, and who waits and goes as soon as nothing is left. What waits is as in src/group/wait.c; after it has gone
 * the memory is somebody else's, which is shown by writing something else into it.                                      */
#include "group/word.h"

#include "model.h"

#define POISON UINT64_C(0x5a5a5a5a5a5a5a5a)

/* LOCAL: what the owner counts for itself when the threads begin, OTHERS: in the word. Thread 0 waits. */
template <typename T, int THREADS, int LOCAL, int OTHERS> struct group_suite : rl::test_suite<T, THREADS> {
	ATOMIC(uint64_t) word;
	rl::var<int> done[LOCAL + OTHERS]; /* what they were started for */
	rl::var<int> helper, listed;       /* under the latch */
	struct parker parker;
	int64_t local; /* of thread 0 */
	bool gone;

	void before()
	{
		word($) = OTHERS * GROUP_ONE;
		for (int i = 0; i < LOCAL + OTHERS; i++)
			done[i]($) = 0;
		helper($) = listed($) = 0;
		parker_init(&parker);
		local = LOCAL;
		gone = false;
	}

	void after()
	{
		RL_ASSERT(gone && word.load(rl::mo_relaxed, $) == POISON);
	}

	void tell(uint64_t seen)
	{
		int wakes_helper = helper($);

		RL_ASSERT(wakes_helper || listed($));
		if (listed($))
			parker_unpark(&parker); /* claimed on its way to sleep: it may be up before the latch is given */
		helper($) = listed($) = 0;
		latch_give(&word, seen & ~GROUP_WAITED);
		if (wakes_helper)
			parker_unpark(&parker);
	}

	void end_one()
	{
		uint64_t seen;

		if (group_end_one(&word, &seen))
			tell(seen);
	}

	void finish(int i)
	{
		done[i]($) = 1;
		end_one();
	}

	void go()
	{
		for (int i = 0; i < LOCAL + OTHERS; i++)
			RL_ASSERT(done[i]($) == 1);
		gone = true;
		word.store(POISON, rl::mo_relaxed, $);
	}

	void wait_awake()
	{
		while (!group_is_over(&word, local))
			rl::yield(1, $);
	}

	uint64_t fold(uint64_t seen)
	{
		seen += (uint64_t)local * GROUP_ONE;
		local = 0;
		return seen;
	}

	void doze()
	{
		uint64_t seen = fold(latch_take(&word));

		if (group_count(seen) == 0) {
			latch_give(&word, seen);
			return;
		}
		helper($) = 1;
		latch_give(&word, seen | GROUP_WAITED);
		parker_park(&parker, HIVE_FOREVER);
		seen = latch_take(&word);
		helper($) = 0;
		latch_give(&word, seen & ~GROUP_WAITED);
	}

	void wait_as_helper()
	{
		while (!group_is_over(&word, local))
			doze();
	}

	void wait_in_list()
	{
		uint64_t seen = latch_take(&word);

		if (group_count(seen) == 0) {
			latch_give(&word, seen);
			return;
		}
		listed($) = 1;
		latch_give(&word, seen | GROUP_WAITED);
		while (!parker_park(&parker, HIVE_FOREVER)) {}
		latch_pass(&word);
	}
};

struct group_who_waits_awake_sees_all : group_suite<group_who_waits_awake_sees_all, 3, 2, 0> {
	void thread(unsigned i)
	{
		if (i > 0) {
			finish((int)i - 1);
			return;
		}
		wait_awake();
		go();
	}
};
SCENARIO(group_who_waits_awake_sees_all, 50000, 3);

/* What he counted goes into the word while others count down. */
struct group_who_sleeps_is_told : group_suite<group_who_sleeps_is_told, 3, 1, 1> {
	void thread(unsigned i)
	{
		if (i > 0) {
			finish((int)i - 1);
			return;
		}
		wait_as_helper();
		go();
	}
};
SCENARIO(group_who_sleeps_is_told, 50000, 3);

struct group_who_waits_in_the_list_is_told : group_suite<group_who_waits_in_the_list_is_told, 3, 0, 2> {
	void thread(unsigned i)
	{
		if (i > 0) {
			finish((int)i - 1);
			return;
		}
		wait_in_list();
		go();
	}
};
SCENARIO(group_who_waits_in_the_list_is_told, 50000, 3);

/* He gets up, runs one of his own, and counts for himself again: what the word had for it stays there. */
struct group_owner_runs_one_after_a_nap : group_suite<group_owner_runs_one_after_a_nap, 2, 2, 0> {
	void nap()
	{
		uint64_t seen = fold(latch_take(&word));

		helper($) = 1;
		latch_give(&word, seen | GROUP_WAITED);
		parker_park(&parker, 1);
		seen = latch_take(&word);
		helper($) = 0;
		latch_give(&word, seen & ~GROUP_WAITED);
	}

	void thread(unsigned i)
	{
		if (i > 0) {
			finish(0);
			return;
		}
		nap();
		done[1]($) = 1;
		local--;
		wait_as_helper();
		go();
	}
};
SCENARIO(group_owner_runs_one_after_a_nap, 50000, 5);

/* One of its tasks runs another one into it, while somebody enters the list. */
struct group_one_more_comes : group_suite<group_one_more_comes, 3, 0, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			wait_in_list();
			go();
		} else if (i == 1) {
			group_add(&word, 1);
			finish(0);
			end_one();
		} else {
			finish(1);
		}
	}
};
SCENARIO(group_one_more_comes, 50000, 2);

/* Who looks while the last one tells others has not seen what that one did: it is shown when the latch is given back. */
struct group_one_looks_while_another_is_told : group_suite<group_one_looks_while_another_is_told, 3, 0, 1> {
	void thread(unsigned i)
	{
		if (i == 0)
			wait_awake();
		else if (i == 1)
			wait_in_list();
		else
			finish(0);
		if (i < 2)
			RL_ASSERT(done[0]($) == 1);
	}

	void after()
	{
		RL_ASSERT(word.load(rl::mo_relaxed, $) == 0);
	}
};
SCENARIO(group_one_looks_while_another_is_told, 50000, 3);
