/* SPDX-License-Identifier: MIT */
/* A strand, narrow or wide, on workers of either kind: several post, some join, and the ledger knows whose turn it is. */
#include <errno.h>

#include "crew.h"
#include "programs.h"

/* False: there was no memory for it, or for the hive. */
static bool open_strand(void)
{
	struct hive_strand_options o = { .kind = HIVE_MICRO };
	int r;

	crew_clear();
	if (!open_hive((struct range){ 1, 3 }, (struct range){ 0, 2 }, CORE_EMPTY))
		return false;
	if (ledger.compute_workers > 0 && explore_draw(2))
		o.kind = HIVE_COMPUTE;
	ledger.turns.width = o.width = 1 + explore_draw(3);
	r = hive_strand_create(ledger.hive, &o, &ledger.turns.strand);
	EXPECT(r == 0 || r == -ENOMEM);
	if (r < 0)
		end_hive();
	return r == 0;
}

static void post_to_strand(void *count)
{
	for (intptr_t n = (intptr_t)count; n > 0; n--)
		if (!ledger_post_by(&ledger, explore_draw(4) ? STRAND : STRAND_ALONE, 0))
			return;
}

/* What was posted when it began has ended. */
static void join_strand(void *arg)
{
	int64_t deadline = crew_deadline();
	int before = ledger.used, r;
	bool mine[ENTRIES];

	(void)arg;
	for (int i = 0; i < before; i++)
		mine[i] = ledger.entries[i].fate == ACCEPTED;
	r = hive_strand_join(ledger.turns.strand, deadline);
	crew_check_wait(-1, r, deadline);
	for (int i = 0; r == 0 && i < before; i++)
		EXPECT(!mine[i] || ledger.entries[i].ended);
}

static int start_all(int threads[6])
{
	int n = 0;

	for (uint32_t i = 1 + explore_draw(2); i > 0; i--)
		threads[n++] = explore_spawn("poster", post_to_strand, number(1 + (intptr_t)explore_draw(4)));
	for (uint32_t i = explore_draw(3); i > 0; i--)
		threads[n++] = explore_spawn("joiner", join_strand, NULL);
	return n;
}

/* Nobody is inside any more. */
static void destroy_strand(void)
{
	EXPECT(hive_strand_join(ledger.turns.strand, HIVE_NOWAIT) == 0);
	EXPECT(ledger.turns.inside == 0);
	EXPECT(hive_strand_destroy(ledger.turns.strand) == 0);
}

/* As soon as it can be, with drains that may still be on their way to it; its tasks post more, which come after the join. */
static void join_and_destroy(void)
{
	int r;

	do {
		EXPECT(hive_strand_join(ledger.turns.strand, HIVE_FOREVER) == 0);
		r = hive_strand_destroy(ledger.turns.strand);
		EXPECT(r == 0 || r == -EBUSY);
	} while (r < 0);
}

void strands_take_turns(void *arg)
{
	int threads[6], n;
	bool early;

	(void)arg;
	if (!open_strand())
		return;
	n = start_all(threads);
	crew_join_threads(threads, n);
	early = explore_draw(2);
	if (early)
		join_and_destroy();
	check_quiet();
	if (!early)
		destroy_strand();
	end_hive();
}

static void detach_last(void *arg)
{
	uint32_t worker = ledger.workers[ledger.worker_count - 1];
	int r = ledger.worker_count > 1 ? hive_detach(ledger.hive, worker, HIVE_FOREVER) : 0;

	(void)arg;
	EXPECT(r == 0 || r == -ESHUTDOWN || r == -ESRCH);
}

void strands_end_with_their_hive(void *arg)
{
	bool early = explore_draw(2);
	int threads[6], n;

	(void)arg;
	if (!open_strand())
		return;
	n = start_all(threads);
	threads[n++] = explore_spawn("stopper", stop, explore_draw(2) ? &ledger : NULL);
	if (explore_draw(3) == 0)
		threads[n++] = explore_spawn("leaver", detach_last, NULL);
	crew_join_threads(threads, n);
	EXPECT(hive_join(ledger.hive, HIVE_FOREVER) == 0);
	if (early)
		destroy_strand();
	close_hive();
	if (!early) /* its hive is gone */
		destroy_strand();
}
