/* SPDX-License-Identifier: MIT */
/* Coalescing posts (src/ui/notice.h): whatever is posted is seen by a run that begins after it, unless the owner has stopped it; each notice is freed once, and
 * nobody touches it afterwards. The protocol is that of src/ui/update.c; the queue between is a flag.                      */
#include "ui/notice.h"

#include "model.h"

enum { POSTERS = 2 };

struct model_notice {
	ATOMIC(uint32_t) fate;
	ATOMIC(uint32_t) queued; /* it has arrived */
	rl::var<int> memory;     /* written by who frees it */
	int freed;
};

template <typename T> struct notice_suite : rl::test_suite<T, POSTERS + 1> {
	ATOMIC(void *) word;
	struct model_notice notices[POSTERS];
	rl::var<int> written[POSTERS]; /* by who posts, before it */
	int runs, stops;

	void before()
	{
		word.store(NULL, rl::mo_relaxed, $);
		for (int i = 0; i < POSTERS; i++) {
			notices[i].fate.store(0, rl::mo_relaxed, $);
			notices[i].queued.store(0, rl::mo_relaxed, $);
			notices[i].memory($) = 0;
			notices[i].freed = 0;
			written[i]($) = 0;
		}
		runs = stops = 0;
	}

	void free_it(struct model_notice *n)
	{
		n->memory($) = 2;
		n->freed++;
	}

	/* hive_update_post(). True: it is promised that somebody sees what was written. */
	bool post(int i, bool refused)
	{
		struct model_notice *n = &notices[i];

		if (notice_join(&word))
			return true;
		n->memory($) = 1;
		while (!notice_hang(&word, n)) {
			if (notice_join(&word)) {
				free_it(n);
				return true;
			}
		}
		if (!refused) {
			n->queued.store(1, rl::mo_release, $); /* a queue, which has models of its own */
			return true;
		}
		if (notice_withdraw(&word, n) || notice_part(&n->fate, NOTICE_REFUSED))
			free_it(n);
		return false;
	}

	/* The owner takes what has arrived, and runs it. */
	void run_arrived()
	{
		for (int i = 0; i < POSTERS; i++) {
			struct model_notice *n = &notices[i];

			if (n->queued.load(rl::mo_acquire, $) != 1)
				continue;
			n->queued.store(2, rl::mo_relaxed, $);
			if (load_relaxed(&n->fate) & NOTICE_STOPPED) {
				free_it(n);
				continue;
			}
			RL_ASSERT(notice_take(&word) == n);
			RL_ASSERT(n->memory($) == 1);
			free_it(n);
			runs++;
		}
	}

	void stop()
	{
		struct model_notice *n = (struct model_notice *)notice_take(&word);

		if (!n)
			return;
		stops++;
		RL_ASSERT(n->memory($) == 1);
		if (notice_part(&n->fate, NOTICE_STOPPED))
			free_it(n);
	}

	void check_freed()
	{
		RL_ASSERT(word.load(rl::mo_relaxed, $) == NULL);
		for (int i = 0; i < POSTERS; i++)
			RL_ASSERT(notices[i].freed <= 1 && (notices[i].freed == 1) == (notices[i].memory($) == 2));
		for (int i = 0; i < POSTERS; i++)
			RL_ASSERT(notices[i].memory($) != 1);
	}
};

/* Two post, the owner runs what arrives until both are done: the last run, after each post, has seen it. Here what was written is read, without an order
 * of its own, by the run that is promised for it: a race if that is not ordered.                                        */
struct notice_each_post_is_seen : notice_suite<notice_each_post_is_seen> {
	int promised[POSTERS], seen_by_run[POSTERS];
	ATOMIC(uint32_t) done[POSTERS]; /* relaxed: it must not order anything */

	void before()
	{
		notice_suite::before();
		for (int i = 0; i < POSTERS; i++)
			done[i].store(0, rl::mo_relaxed, $), promised[i] = seen_by_run[i] = 0;
	}

	void thread(unsigned i)
	{
		if (i < POSTERS) {
			written[i]($) = 1;
			promised[i] = post((int)i, false);
			done[i].store(1, rl::mo_relaxed, $);
			return;
		}
		for (int rounds = 0;; rounds++) {
			bool all = done[0].load(rl::mo_relaxed, $) && done[1].load(rl::mo_relaxed, $);
			int before = runs;

			run_arrived();
			if (all && runs > 0 && word.load(rl::mo_relaxed, $) == NULL && runs == before)
				break;
			rl::yield(1, $);
		}
		/* Both were promised a run, and there was one since: it is ordered after what they wrote. */
		RL_ASSERT(written[0]($) == 1 && written[1]($) == 1);
	}

	void after()
	{
		RL_ASSERT(promised[0] && promised[1] && runs >= 1 && runs <= POSTERS);
		check_freed();
	}
};
SCENARIO(notice_each_post_is_seen, 50000, 4);

/* One post is refused, one is not; the owner stops in between, and runs what arrives. Nothing is freed twice, nothing is left. */
struct notice_stop_against_posts : notice_suite<notice_stop_against_posts> {
	void thread(unsigned i)
	{
		if (i < POSTERS) {
			post((int)i, i == 0);
			return;
		}
		stop();
		run_arrived();
		run_arrived();
	}

	void after()
	{
		run_arrived(); /* what came later */
		check_freed();
	}
};
SCENARIO(notice_stop_against_posts, 50000, 4);
