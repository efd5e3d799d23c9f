/* SPDX-License-Identifier: MIT */
/* More programs: starts that fail or race, compute workers that come and go, timers whose worker leaves. */
#include <errno.h>
#include <string.h>

#include "house.h"
#include "programs.h"
#include "sched/internal.h"

static void start(void *arg)
{
	int r = hive_start(ledger.hive);

	(void)arg;
	EXPECT(r == 0 || r == -EALREADY || r == -ESHUTDOWN || r == -ENOMEM || r == -EAGAIN || r == -EMFILE);
}

static void attach(void *kind)
{
	struct hive_worker_options o = { .kind = kind ? HIVE_WORKER_COMPUTE : HIVE_WORKER_IO, .local_capacity = 4 };
	int r;

	if (kind)
		o.local_capacity = 0;
	r = hive_attach(ledger.hive, &o, NULL);
	EXPECT(r == 0 || r == -ESHUTDOWN || r == -ENOMEM || r == -EAGAIN || r == -EMFILE);
}

/* Two start it, one posts, one attaches, one stops: in whatever order, it ends, and the books balance. */
void a_start_races_with_everything(void *arg)
{
	int threads[5], n = 0;

	(void)arg;
	if (!make_hive((struct range){ 1, 2 }, (struct range){ 0, 1 }, 0))
		return;
	ledger.compute_workers = 0; /* it may never start */
	threads[n++] = explore_spawn("starter", start, NULL);
	threads[n++] = explore_spawn("poster", post_some, number(3));
	if (explore_draw(2))
		threads[n++] = explore_spawn("starter", start, NULL);
	if (explore_draw(2))
		threads[n++] = explore_spawn("comer", attach, explore_draw(2) ? &ledger : NULL);
	if (explore_draw(2))
		threads[n++] = explore_spawn("stopper", stop, &ledger);
	for (int i = 0; i < n; i++)
		explore_join(threads[i]);
	stop(&ledger);
	close_hive();
}

static void detach_compute(void *arg)
{
	uint32_t ids[16];
	size_t n = hive_workers(ledger.hive, ids, 16);
	int r = n == 0 ? -ESRCH : hive_detach(ledger.hive, ids[n - 1], explore_draw(2) ? HIVE_FOREVER : HIVE_NOWAIT);

	(void)arg;
	EXPECT(r == 0 || r == -EINPROGRESS || r == -ESHUTDOWN || r == -ESRCH || r == -EBUSY);
}

static void post_heavy(void *count)
{
	for (intptr_t n = (intptr_t)count; n > 0; n--)
		if (!ledger_post_by(&ledger, explore_draw(2) ? COMPUTE : THEN, 0))
			return;
}

/* Heavy tasks find somebody, or wait for somebody to come. */
void compute_workers_come_and_go(void *arg)
{
	int threads[4];

	(void)arg;
	if (!open_hive((struct range){ 1, 2 }, (struct range){ 1, 2 }, 0))
		return;
	ledger.compute_workers = 0; /* the last may leave */
	threads[0] = explore_spawn("poster", post_heavy, number(4));
	threads[1] = explore_spawn("poster", post_heavy, number(3));
	threads[2] = explore_spawn("leaver", detach_compute, NULL);
	threads[3] = explore_spawn("comer", attach, &ledger);
	for (int i = 0; i < 4; i++)
		explore_join(threads[i]);
	check_quiet();
	end_hive();
}

static void post_at_levels(void *count)
{
	for (intptr_t n = (intptr_t)count; n > 0; n--)
		if (!ledger_post_by(&ledger, COMPUTE_AT, 0))
			return;
}

/* All levels are filled while workers come and go, or while a stop comes: whatever the level of a task, it runs or is told. */
void levels_lose_nothing(void *arg)
{
	bool stops = explore_draw(2);
	int threads[4], n = 0;

	(void)arg;
	if (!open_hive((struct range){ 1, 2 }, (struct range){ 1, 2 }, 0))
		return;
	threads[n++] = explore_spawn("poster", post_at_levels, number(5));
	threads[n++] = explore_spawn("poster", post_at_levels, number(4));
	if (stops) {
		threads[n++] = explore_spawn("stopper", stop, explore_draw(2) ? &ledger : NULL);
	} else {
		ledger.compute_workers = 0; /* the last may leave */
		threads[n++] = explore_spawn("leaver", detach_compute, NULL);
		threads[n++] = explore_spawn("comer", attach, &ledger);
	}
	for (int i = 0; i < n; i++)
		explore_join(threads[i]);
	if (stops) {
		close_hive();
		return;
	}
	check_quiet();
	end_hive();
}

static struct {
	struct hive_timer timers[2];
	int fired[2];
	bool armed[2], stopped[2];
} clockwork;

static void tick(struct hive_timer *timer)
{
	clockwork.fired[timer - clockwork.timers]++;
}

static void arm_timers(void *arg)
{
	(void)arg;
	for (int i = 0; i < 2; i++)
		clockwork.armed[i] = hive_timer_start(&clockwork.timers[i], HIVE_US(explore_draw(50)), 0) == 0;
}

/* On the main worker, whose they are now. */
static void stop_timer(void *arg)
{
	(void)arg;
	clockwork.stopped[0] = hive_timer_stop(&clockwork.timers[0]) == 1;
}

/* A worker leaves with its timers armed: each fires once, on the main worker, or is stopped there. */
void timers_move_with_their_worker(void *arg)
{
	int poster, r;

	(void)arg;
	memset(&clockwork, 0, sizeof clockwork);
	if (!open_hive((struct range){ 2, 2 }, (struct range){ 0, 0 }, 0))
		return;
	for (int i = 0; i < 2; i++)
		hive_timer_init(&clockwork.timers[i], tick, NULL);
	r = hive_post_to(ledger.hive, ledger.workers[1], arm_timers, NULL);
	EXPECT(r == 0 || r == -ENOMEM);
	poster = explore_spawn("poster", post_some, number(3));
	EXPECT(hive_detach(ledger.hive, ledger.workers[1], HIVE_FOREVER) == 0);
	if (hive_post_to(ledger.hive, HIVE_WORKER_MAIN, stop_timer, NULL) < 0)
		explore_note(1);
	explore_join(poster);
	explore_sleep(HIVE_S(2));
	explore_wait_quiet();
	for (int i = 0; i < 2 && warnings == 0; i++) /* a warning: no memory to take it over */
		EXPECT(clockwork.fired[i] + clockwork.stopped[i] == clockwork.armed[i]);
	end_hive();
}

static void resize(void *arg)
{
	int64_t deadline = explore_draw(2) ? HIVE_FOREVER : HIVE_NOWAIT;
	int32_t io = 1 + (int32_t)explore_draw(3),
		compute = 1 + (int32_t)explore_draw(2); /* in this order, with all compilers */
	int r = hive_resize(ledger.hive, io, compute, deadline);

	(void)arg;
	EXPECT(r == 0 || r == -ESHUTDOWN || r == -ENOMEM || r == -EAGAIN || r == -EMFILE ||
	       (deadline == HIVE_NOWAIT && (r == -EINPROGRESS || r == -ETIMEDOUT)));
}

/* One after the other, under load, with a stop that may come between: nothing is lost, and it ends. */
void resizes_race_with_each_other(void *arg)
{
	int threads[4], n = 0;

	(void)arg;
	if (!open_hive((struct range){ 1, 2 }, (struct range){ 1, 1 }, 0))
		return;
	threads[n++] = explore_spawn("poster", post_some, number(4));
	threads[n++] = explore_spawn("resizer", resize, NULL);
	threads[n++] = explore_spawn("resizer", resize, NULL);
	if (explore_draw(3) == 0)
		threads[n++] = explore_spawn("stopper", stop, explore_draw(2) ? &ledger : NULL);
	for (int i = 0; i < n; i++)
		explore_join(threads[i]);
	if (n == 4) {
		close_hive();
		return;
	}
	check_quiet();
	end_hive();
}

static void post_later(void *count)
{
	for (intptr_t n = (intptr_t)count; n > 0; n--)
		if (!ledger_post_by(&ledger, POST_AFTER, 0))
			return;
}

/* Whoever did nothing between two looks counts as stuck, though he is not: what is due is taken from him while he fires it. */
static void watch(void *arg)
{
	(void)arg;
	for (int i = 0; i < 6; i++) {
		hive__watchdog_look(ledger.hive);
		explore_sleep(HIVE_US(explore_draw(20)));
	}
}

/* Fired, cancelled or rescued: once. */
void posts_are_rescued_from_their_keepers(void *arg)
{
	int threads[3];

	(void)arg;
	if (!open_hive((struct range){ 2, 3 }, (struct range){ 0, 0 }, 0))
		return;
	ledger.hive->stall_ns = 1; /* nobody watches by himself */
	threads[0] = explore_spawn("poster", post_later, number(4));
	threads[1] = explore_spawn("poster", post_some, number(3));
	threads[2] = explore_spawn("watcher", watch, NULL);
	for (int i = 0; i < 3; i++)
		explore_join(threads[i]);
	for (int i = 0; i < 8 && ledger.hive->watchdog.has_kept; i++)
		hive__watchdog_look(ledger.hive);
	check_quiet();
	end_hive();
}
