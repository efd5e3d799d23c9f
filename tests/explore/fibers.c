/* SPDX-License-Identifier: MIT */
/* Programs with fibers: joins against ends, cancels and deadlines against parking, spawns and ends against a stop. */
#include <errno.h>

#include "crew.h"
#include "programs.h"
#include "sched/internal.h"

/* Whoever waits for an end, a deadline or its turn goes on: nobody sleeps for ever. */
void fibers_find_their_way(void *arg)
{
	int threads[2];

	(void)arg;
	crew_clear();
	if (!open_hive((struct range){ 1, 3 }, (struct range){ 1, 1 }, 0))
		return;
	crew.offloading = true;
	for (int i = 0; i < 2; i++)
		threads[i] = explore_spawn("poster", crew_poster, number(1 + (intptr_t)explore_draw(4)));
	crew_join_threads(threads, 2);
	crew_check_quiet();
	crew_end();
}

static int wait_for_ever(void *arg)
{
	struct one *o = arg;
	int r = 0;

	o->begun = true;
	while (r == 0 || r == -ENOMEM)
		r = explore_draw(2) ? hive_sleep(HIVE_FOREVER) : hive_sleep((int64_t)explore_draw(2000));
	EXPECT(r == -ECANCELED);
	o->ended = true;
	return (int)(o - crew.ones);
}

/* A cancel finds whoever waits, parks or has not begun: those who would wait for ever come to their end. */
void cancels_race_with_parking(void *arg)
{
	int n = 1 + (int)explore_draw(3), result;

	(void)arg;
	crew_clear();
	if (!open_hive((struct range){ 1, 3 }, (struct range){ 0, 0 }, 0))
		return;
	for (int i = 0; i < n; i++) {
		struct one *o = &crew.ones[crew.used++];

		o->accepted = hive_spawn(ledger.hive, wait_for_ever, o, NULL, &o->handle) == 0;
		if (explore_draw(2))
			explore_yield();
	}
	for (int i = 0; i < n; i++) {
		struct one *o = &crew.ones[i];

		if (!o->accepted)
			continue;
		EXPECT(hive_fiber_cancel(o->handle) == 0);
		o->taken = explore_draw(2);
		if (!o->taken)
			continue;
		EXPECT(hive_fiber_join(o->handle, HIVE_FOREVER, &result) == 0);
		EXPECT(o->ended && result == i);
	}
	crew_check_quiet();
	crew_end();
}

/* Cancels among everything else. */
void cancels_race_with_everything(void *arg)
{
	int threads[3];

	(void)arg;
	crew_clear();
	if (!open_hive((struct range){ 1, 2 }, (struct range){ 1, 1 }, 0))
		return;
	crew.offloading = true;
	threads[0] = explore_spawn("poster", crew_poster, number(1 + (intptr_t)explore_draw(4)));
	threads[1] = explore_spawn("poster", crew_poster, number(1 + (intptr_t)explore_draw(3)));
	threads[2] = explore_spawn("canceller", crew_canceller, number(4));
	crew_join_threads(threads, 3);
	crew_check_quiet();
	crew_end();
}

static int doze(void *arg)
{
	struct one *o = arg;

	o->begun = true;
	for (int i = 0; i < 3; i++) {
		int r = hive_sleep((int64_t)explore_draw(30));

		EXPECT(r == 0 || r == -ECANCELED || r == -ENOMEM);
	}
	o->ended = true;
	return (int)(o - crew.ones);
}

static void watch_closely(void *arg)
{
	(void)arg;
	for (int i = 0; i < 40; i++)
		hive__watchdog_look(ledger.hive);
}

/* Deadlines are rung by their keeper, or by who has him for stuck, though he is not, while others cancel: once. */
void deadlines_are_rescued_from_their_keepers(void *arg)
{
	int n = 1 + (int)explore_draw(3), watcher;

	(void)arg;
	crew_clear();
	if (!open_hive((struct range){ 2, 3 }, (struct range){ 0, 0 }, 0))
		return;
	ledger.hive->stall_ns = 1; /* nobody watches by himself */
	watcher = explore_spawn("watcher", watch_closely, NULL);
	for (int i = 0; i < n; i++) {
		struct one *o = &crew.ones[crew.used++];

		o->accepted = hive_spawn(ledger.hive, doze, o, NULL, &o->handle) == 0;
		if (o->accepted && explore_draw(4) == 0)
			EXPECT(hive_fiber_cancel(o->handle) == 0);
	}
	explore_join(watcher);
	crew_check_quiet();
	crew_end();
}

/* Spawns, ends and waits while the hive stops: each fiber that was accepted ends, and can be asked. */
void a_stop_races_with_fibers(void *arg)
{
	int threads[3], n = 0;

	(void)arg;
	crew_clear();
	if (!open_hive((struct range){ 1, 2 }, (struct range){ 0, 1 }, 0))
		return;
	crew.offloading = ledger.compute_workers > 0;
	threads[n++] = explore_spawn("poster", crew_poster, number(1 + (intptr_t)explore_draw(4)));
	if (explore_draw(2))
		threads[n++] = explore_spawn("poster", crew_poster, number(1 + (intptr_t)explore_draw(3)));
	threads[n++] = explore_spawn("stopper", crew_stop, explore_draw(2) ? &crew : NULL);
	crew_join_threads(threads, n);
	crew_close();
}

/* A drain without a deadline cancels nothing: all that has been spawned comes to its end in peace. */
void a_drain_waits_for_fibers(void *arg)
{
	(void)arg;
	crew_clear();
	if (!open_hive((struct range){ 1, 3 }, (struct range){ 1, 1 }, 0))
		return;
	crew.offloading = true;
	for (uint32_t i = 1 + explore_draw(4); i > 0; i--)
		crew_spawn(0, (int)explore_draw(4));
	crew.stopping = true;
	EXPECT(hive_stop(ledger.hive, HIVE_DRAIN, HIVE_FOREVER) == 0);
	crew_close();
}

/* A worker leaves: its fibers, pinned ones too, and their deadlines go on elsewhere. */
void fibers_move_when_their_worker_leaves(void *arg)
{
	int threads[2];

	(void)arg;
	crew_clear();
	if (!open_hive((struct range){ 2, 3 }, (struct range){ 0, 0 }, 0))
		return;
	threads[0] = explore_spawn("poster", crew_poster, number(2 + (intptr_t)explore_draw(4)));
	threads[1] = explore_spawn("leaver", crew_detach, NULL);
	crew_join_threads(threads, 2);
	crew_check_quiet();
	crew_end();
}

/* ---- hive_block_on() ---- */

static struct {
	int begun, ended;
	bool limited; /* by a deadline: they may wait for ever */
} tree;

static int grow(void *arg)
{
	intptr_t depth = (intptr_t)arg;
	struct hive_fiber *child;

	tree.begun++;
	for (uint32_t n = explore_draw(3); n > 0 && depth > 0; n--) {
		bool kept = explore_draw(2);

		if (hive_spawn(ledger.hive, grow, number(depth - 1), NULL, kept ? &child : NULL) < 0 || !kept)
			continue;
		if (explore_draw(2) || hive_fiber_join(child, HIVE_FOREVER, NULL) < 0)
			EXPECT(hive_fiber_detach(child) == 0);
	}
	for (uint32_t n = explore_draw(3); n > 0; n--)
		if (hive_sleep(tree.limited && explore_draw(3) == 0 ? HIVE_FOREVER : (int64_t)explore_draw(2000)) < 0)
			break;
	tree.ended++;
	return (int)depth;
}

static void block(void *arg)
{
	intptr_t depth = (intptr_t)explore_draw(3);
	int64_t deadline = explore_draw(2) ? HIVE_FOREVER : hive_deadline(ledger.hive, (int64_t)explore_draw(4000));
	int begun = tree.begun, result = -1, r;

	tree.limited = arg && deadline != HIVE_FOREVER;
	r = hive_block_on(ledger.hive, grow, number(depth), deadline, &result);
	EXPECT(r == 0 || r == -ENOMEM || (r == -ETIMEDOUT && deadline != HIVE_FOREVER) ||
	       (r == -ESHUTDOWN && crew.stopping));
	if (r == 0 || r == -ETIMEDOUT)
		EXPECT(result == depth || (result == -ECANCELED && crew.now));
	if (arg) /* alone: everybody beneath has ended, and nobody was late */
		EXPECT(tree.begun == tree.ended && tree.begun >= begun);
}

/* The caller goes on when all have ended, not before, and for all that there is a deadline or a stop. */
void block_on_waits_for_all(void *arg)
{
	bool alone = explore_draw(2);
	int threads[3], n = 0;

	(void)arg;
	crew_clear();
	tree.begun = tree.ended = 0;
	tree.limited = false;
	if (!open_hive((struct range){ 1, 3 }, (struct range){ 0, 0 }, 0))
		return;
	threads[n++] = explore_spawn("blocker", block, alone ? &tree : NULL);
	if (!alone)
		threads[n++] = explore_spawn("blocker", block, NULL);
	if (!alone && explore_draw(2))
		threads[n++] = explore_spawn("stopper", crew_stop, explore_draw(2) ? &crew : NULL);
	crew_join_threads(threads, n);
	if (!crew.stopping)
		crew_stop(NULL);
	crew_close();
	EXPECT(tree.begun == tree.ended);
}
