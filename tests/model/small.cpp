/* SPDX-License-Identifier: MIT */
/* Small words that objects share: references (src/base/refs.h), parts that one plays (role.h), what is made once (first.h), what is
 * done (sync/words.h).                                                                                                     */
#include "base/first.h"
#include "base/refs.h"
#include "base/role.h"
#include "sync/words.h"

#include "model.h"

/* Each has one, works with the object and gives it back; who has the last one frees what all have worked on. */
struct refs_last_one_sees_the_others : rl::test_suite<refs_last_one_sees_the_others, 3> {
	ATOMIC(uint32_t) refs;
	rl::var<int> work[3];
	int freed;

	void before()
	{
		refs.store(3, rl::mo_relaxed, $);
		freed = 0;
	}

	void thread(unsigned i)
	{
		work[i]($) = 1;
		if (!refs_drop(&refs))
			return;
		for (int k = 0; k < 3; k++)
			RL_ASSERT(work[k]($) == 1);
		for (int k = 0; k < 3; k++)
			work[k]($) = 2;
		freed++;
	}

	void after()
	{
		RL_ASSERT(freed == 1 && refs.load(rl::mo_relaxed, $) == 0);
	}
};
SCENARIO(refs_last_one_sees_the_others, 20000, 4);

/* Somebody gets one and gives it back: who is alone again may change what the other one has read. */
struct refs_alone_again : rl::test_suite<refs_alone_again, 2> {
	ATOMIC(uint32_t) refs;
	rl::var<int> value;

	void before()
	{
		refs.store(1, rl::mo_relaxed, $);
		value($) = 1;
		refs_add(&refs);
	}

	void thread(unsigned i)
	{
		if (i == 1) {
			RL_ASSERT(value($) == 1);
			RL_ASSERT(!refs_drop(&refs));
		} else if (refs_are(&refs, 1)) {
			value($) = 2;
		}
	}
};
SCENARIO(refs_alone_again, 20000, 6);

/* Whoever plays it changes what belongs to it; who finds it taken does not. */
struct role_one_plays_it : rl::test_suite<role_one_plays_it, 3> {
	ATOMIC(uint32_t) role;
	rl::var<int> half;
	int played;

	void before()
	{
		role.store(0, rl::mo_relaxed, $);
		half($) = 0;
		played = 0;
	}

	void thread(unsigned)
	{
		if (!role_enter(&role))
			return;
		half($) = half($) + 1;
		played++;
		role_leave(&role);
	}

	void after()
	{
		RL_ASSERT(half($) == played && played > 0);
	}
};
SCENARIO(role_one_plays_it, 20000, 4);

/* Three need it; some make it; all have the same one, complete, and what was made in vain is given back. */
struct first_is_the_same_for_all : rl::test_suite<first_is_the_same_for_all, 3> {
	ATOMIC(void *) at;
	rl::var<int> made[3];
	void *seen[3];
	int given_back;

	void before()
	{
		at.store(NULL, rl::mo_relaxed, $);
		given_back = 0;
	}

	void thread(unsigned i)
	{
		void *kept = first_seen(&at);

		if (!kept) {
			made[i]($) = 1;
			kept = first_kept(&at, &made[i]);
			if (kept != &made[i]) {
				made[i]($) = 2;
				given_back++;
			}
		}
		seen[i] = kept;
		RL_ASSERT((*(rl::var<int> *)kept)($) == 1);
	}

	void after()
	{
		RL_ASSERT(seen[0] == seen[1] && seen[1] == seen[2] && given_back < 3);
	}
};
SCENARIO(first_is_the_same_for_all, 20000, 4);

/* Who finds it done sees what was done. */
struct done_is_seen_with_what_was_done : rl::test_suite<done_is_seen_with_what_was_done, 2> {
	ATOMIC(uint32_t) done;
	rl::var<int> made;

	void before()
	{
		done.store(0, rl::mo_relaxed, $);
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			made($) = 1;
			done_now(&done);
		} else if (done_is(&done)) {
			RL_ASSERT(made($) == 1);
		}
	}
};
SCENARIO(done_is_seen_with_what_was_done, 20000, 6);
