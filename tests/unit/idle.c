/* SPDX-License-Identifier: MIT */
/* Who sleeps, and how many search. */
#include "queue/idle.h"

#include "unit.h"

static struct idle idle;

static uint32_t sleepers(void)
{
	return idle_sleepers(load_seq(&idle.count));
}

static int32_t searchers(void)
{
	return idle_searchers(load_seq(&idle.count));
}

static uint32_t claim_one(void)
{
	return idle_claim_one(&idle, IDLE_WORKERS, UINT16_MAX);
}

TEST(at_first_nobody_sleeps_or_searches)
{
	idle_init(&idle);
	CHECK_EQ(sleepers(), 0);
	CHECK_EQ(searchers(), 0);
	CHECK(!idle_needs_wake(&idle));
	CHECK_EQ(claim_one(), IDLE_NOBODY);
	CHECK(!idle_claim(&idle, 0));
}

TEST(who_announces_itself_can_be_claimed_once)
{
	idle_init(&idle);
	CHECK_EQ(idle_announce(&idle, 5, false, 0), 0);
	CHECK_EQ(sleepers(), 1);
	CHECK(idle_needs_wake(&idle));
	CHECK_EQ(claim_one(), 5);
	CHECK_EQ(claim_one(), IDLE_NOBODY);
	CHECK_EQ(sleepers(), 0);
	CHECK_EQ(searchers(), 1);
}

TEST(claimed_worker_counts_as_searcher_until_it_ends)
{
	idle_init(&idle);
	idle_announce(&idle, 1, false, 0);
	idle_announce(&idle, 2, false, 0);
	CHECK(claim_one() != IDLE_NOBODY);
	CHECK(!idle_needs_wake(&idle)); /* somebody is on its way already */
	CHECK(idle_search_end(&idle));  /* it was the last, and somebody sleeps */
	CHECK(idle_needs_wake(&idle));
	CHECK_EQ(searchers(), 0);
	CHECK_EQ(sleepers(), 1);
}

TEST(retracting_tells_whether_somebody_was_faster)
{
	idle_init(&idle);
	idle_announce(&idle, 3, false, 0);
	CHECK(!idle_retract(&idle, 3));
	CHECK_EQ(sleepers(), 0);
	CHECK_EQ(searchers(), 0);
	idle_announce(&idle, 3, false, 0);
	CHECK(idle_claim(&idle, 3));
	CHECK(idle_retract(&idle, 3));
	CHECK_EQ(sleepers(), 0);
	CHECK_EQ(searchers(), 1);
}

TEST(who_retracted_cannot_be_claimed)
{
	idle_init(&idle);
	idle_announce(&idle, 3, false, 0);
	idle_retract(&idle, 3);
	CHECK(!idle_claim(&idle, 3));
	CHECK_EQ(claim_one(), IDLE_NOBODY);
}

TEST(claim_by_name_takes_this_one_and_no_other)
{
	idle_init(&idle);
	idle_announce(&idle, 1, false, 0);
	idle_announce(&idle, 65, false, 0);
	CHECK(!idle_claim(&idle, 2));
	CHECK(idle_claim(&idle, 65));
	CHECK(!idle_claim(&idle, 65));
	CHECK_EQ(sleepers(), 1);
	CHECK_EQ(claim_one(), 1);
}

TEST(workers_of_every_word_are_found)
{
	static const uint32_t workers[] = { 0, 1, 63, 64, 127, 128, 500, IDLE_WORKERS - 1 };

	idle_init(&idle);
	for (int i = 0; i < 8; i++) {
		idle_announce(&idle, workers[i], false, 0);
		CHECK_EQ(claim_one(), workers[i]);
		CHECK(idle_retract(&idle, workers[i]));
	}
}

TEST(all_workers_sleep_and_each_is_claimed_once)
{
	struct tally tally;

	idle_init(&idle);
	tally_init(&tally, IDLE_WORKERS);
	for (uint32_t i = 0; i < IDLE_WORKERS; i++)
		idle_announce(&idle, i, false, i);
	CHECK_EQ(sleepers(), IDLE_WORKERS);
	for (uint32_t i = 0; i < IDLE_WORKERS; i++)
		tally_mark(&tally, claim_one());
	CHECK_EQ(claim_one(), IDLE_NOBODY);
	CHECK_EQ(searchers(), IDLE_WORKERS);
	tally_end(&tally);
}

TEST(sleeper_of_the_callers_cpu_comes_first)
{
	idle_init(&idle);
	for (uint32_t i = 0; i < 8; i++)
		idle_announce(&idle, i, false, 10 + i);
	CHECK_EQ(idle_claim_one(&idle, 8, 16), 6);
	CHECK_EQ(idle_claim_one(&idle, 8, 11), 1);
	CHECK(idle_claim_one(&idle, 8, 99) < 8);
	CHECK_EQ(sleepers(), 5);
}

TEST(cpu_is_that_of_the_last_announcement)
{
	idle_init(&idle);
	idle_announce(&idle, 0, false, 1);
	idle_announce(&idle, 1, false, 2);
	idle_retract(&idle, 0);
	idle_announce(&idle, 0, false, 3);
	CHECK_EQ(idle_claim_one(&idle, 2, 3), 0);
	CHECK_EQ(idle_claim_one(&idle, 2, 1), 1);
}

TEST(limit_rounded_up_to_64_spares_the_workers_beyond_it)
{
	idle_init(&idle);
	idle_announce(&idle, 63, false, 0);
	idle_announce(&idle, 64, false, 0);
	CHECK_EQ(idle_claim_one(&idle, 0, 0), IDLE_NOBODY);
	CHECK_EQ(idle_claim_one(&idle, 1, 0), 63);
	CHECK_EQ(idle_claim_one(&idle, 64, 0), IDLE_NOBODY);
	CHECK_EQ(idle_claim_one(&idle, 65, 0), 64);
}

TEST(announcing_tells_how_many_others_search)
{
	idle_init(&idle);
	CHECK(idle_search_begin(&idle, 8));
	CHECK(idle_search_begin(&idle, 8));
	CHECK_EQ(idle_announce(&idle, 0, false, 0), 2); /* was not one of them */
	CHECK_EQ(idle_announce(&idle, 1, true, 0), 1);  /* was */
	CHECK_EQ(idle_announce(&idle, 2, true, 0), 0);
	CHECK_EQ(searchers(), 0);
	CHECK_EQ(sleepers(), 3);
}

TEST(half_of_the_workers_rounded_up_may_search)
{
	for (uint32_t workers = 1; workers <= 9; workers++) {
		uint32_t allowed = 0;

		idle_init(&idle);
		while (idle_search_begin(&idle, workers))
			allowed++;
		CHECK_EQ(allowed, (workers + 1) / 2);
		CHECK_EQ(searchers(), (int32_t)allowed);
	}
}

TEST(without_workers_nobody_searches)
{
	idle_init(&idle);
	CHECK(!idle_search_begin(&idle, 0));
}

TEST(only_the_last_searcher_is_told_to_look_again)
{
	idle_init(&idle);
	idle_search_begin(&idle, 8);
	idle_search_begin(&idle, 8);
	idle_announce(&idle, 0, false, 0);
	CHECK(!idle_search_end(&idle));
	CHECK(idle_search_end(&idle));
}

TEST(last_searcher_need_not_look_when_nobody_sleeps)
{
	idle_init(&idle);
	idle_search_begin(&idle, 8);
	CHECK(!idle_search_end(&idle));
	CHECK_EQ(load_seq(&idle.count), 0);
}

/* The claimer has cleared the bit and not yet entered its searcher, who is done already: for a moment there is one too few. */
TEST(search_that_ends_before_it_was_counted_is_the_last)
{
	idle_init(&idle);
	idle_announce(&idle, 0, false, 0);
	idle_announce(&idle, 1, false, 0);
	and_seq(&idle.asleep[0], ~idle_bit(0)); /* half of idle_claim(0) */
	CHECK(idle_retract(&idle, 0));
	CHECK(idle_search_end(&idle));
	CHECK_EQ(searchers(), -1);
	CHECK(idle_needs_wake(&idle));
	CHECK(idle_search_begin(&idle, 2));
	idle_search_end(&idle);
	add_seq(&idle.count, IDLE_SEARCHER - IDLE_SLEEPER); /* the other half */
	CHECK_EQ(searchers(), 0);
	CHECK_EQ(sleepers(), 1);
}

TEST(announcing_before_the_search_was_counted_sees_nobody_search)
{
	idle_init(&idle);
	idle_announce(&idle, 0, false, 0);
	and_seq(&idle.asleep[0], ~idle_bit(0));
	CHECK(idle_retract(&idle, 0));
	CHECK_EQ(idle_announce(&idle, 0, true, 0), 0);
	add_seq(&idle.count, IDLE_SEARCHER - IDLE_SLEEPER);
	CHECK_EQ(sleepers(), 1);
	CHECK_EQ(searchers(), 0);
	CHECK_EQ(claim_one(), 0);
}

/* ---- threads ---- */

struct night {
	int rounds;
	_Atomic(uint64_t) claims, believed;
	_Atomic(int) awake, searching, most;
};

/* Workers fall asleep and rise; claimers claim by name and by chance. Each claim is believed by exactly one sleeper. */
static void sleep_and_claim(int index, void *arg)
{
	struct night *n = arg;

	if (index < 3) {
		for (int i = 0; i < n->rounds; i++) {
			idle_announce(&idle, (uint32_t)index, false, (uint32_t)i % 4);
			if (i % 3 == 0)
				sched_yield();
			if (idle_retract(&idle, (uint32_t)index)) {
				atomic_fetch_add(&n->believed, 1);
				idle_search_end(&idle);
			}
		}
		atomic_fetch_sub(&n->awake, 1);
		return;
	}
	while (atomic_load(&n->awake) > 0) {
		if (index == 3 ? idle_claim_one(&idle, 3, 2) != IDLE_NOBODY : idle_claim(&idle, 1))
			atomic_fetch_add(&n->claims, 1);
		else
			breathe();
	}
}

TEST(every_claim_is_believed_once)
{
	struct night night = { .rounds = rounds(50000) };

	idle_init(&idle);
	atomic_init(&night.awake, 3);
	crew_run(5, sleep_and_claim, &night);
	CHECK_EQ(atomic_load(&night.claims), atomic_load(&night.believed));
	CHECK_EQ(load_seq(&idle.count), 0);
	CHECK_EQ(load_seq(&idle.asleep[0]), 0);
}

static void search_and_end(int index, void *arg)
{
	struct night *n = arg;

	(void)index;
	for (int i = 0; i < n->rounds; i++) {
		int now;

		if (!idle_search_begin(&idle, 6))
			continue;
		now = atomic_fetch_add(&n->searching, 1) + 1;
		CHECK(now <= 3);
		if (now > atomic_load(&n->most))
			atomic_store(&n->most, now);
		atomic_fetch_sub(&n->searching, 1);
		idle_search_end(&idle);
	}
}

TEST(never_more_than_half_search)
{
	struct night night = { .rounds = rounds(50000) };

	idle_init(&idle);
	crew_run(6, search_and_end, &night);
	CHECK(atomic_load(&night.most) >= 1);
	CHECK_EQ(load_seq(&idle.count), 0);
}
