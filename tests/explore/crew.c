/* SPDX-License-Identifier: MIT */
#include "crew.h"

#include <errno.h>
#include <string.h>

#include "support/invariants.h"

struct crew crew;
static char keys[3];

void crew_clear(void)
{
	memset(&crew, 0, sizeof crew);
}

/* -1 is a thread: nobody cancels those. */
static bool may_be_cancelled(int self)
{
	return self >= 0 && (crew.now || crew.ones[self].cancelled);
}

void crew_check_wait(int self, int r, int64_t deadline)
{
	bool has_deadline = deadline != HIVE_FOREVER;

	EXPECT(r != -ETIMEDOUT || explore_now() >= deadline);
	EXPECT(r == 0 || (r == -ETIMEDOUT && has_deadline) || (r == -ECANCELED && may_be_cancelled(self)) ||
	       (r == -ENOMEM && has_deadline));
}

int64_t crew_deadline(void)
{
	uint32_t how = explore_draw(4);

	if (how == 0)
		return HIVE_NOWAIT;
	return how == 1 ? HIVE_FOREVER : hive_deadline(ledger.hive, (int64_t)explore_draw(3000));
}

/* Somebody after `self` whose handle nobody has asked for; NULL: there is none. */
static struct one *find_free(int self)
{
	for (int i = self + 1; i < crew.used; i++)
		if (crew.ones[i].accepted && crew.ones[i].handle && !crew.ones[i].taken)
			return &crew.ones[i];
	return NULL;
}

static void join(struct one *o, int self)
{
	int64_t deadline;
	int result = -1, r;

	o->taken = true; /* before the clock is asked: others run meanwhile */
	deadline = crew_deadline();
	r = hive_fiber_join(o->handle, deadline, &result);
	crew_check_wait(self, r, deadline);
	if (r < 0) {
		o->taken = false;
		return;
	}
	EXPECT(o->ended || !o->begun);
	EXPECT(result == (o->begun ? (int)(o - crew.ones) : -ECANCELED));
	EXPECT(o->begun || crew.now);
}

static void wait_several(int self)
{
	struct hive_fiber *handles[CREW];
	int64_t deadline = crew_deadline();
	size_t n = 0, index = CREW;
	int r;

	for (int i = self + 1; i < crew.used && n < 4; i++)
		if (crew.ones[i].accepted && crew.ones[i].handle && !crew.ones[i].taken)
			handles[n++] = crew.ones[i].handle;
	if (n == 0)
		return;
	if (explore_draw(2)) {
		r = hive_wait_all(handles, n, deadline);
	} else {
		r = hive_wait_any(handles, n, deadline, &index);
		EXPECT((r == 0) == (index < n));
	}
	if (r != -ESRCH) /* joined by others meanwhile */
		crew_check_wait(self, r, deadline);
}

void crew_ask(int self)
{
	struct one *o = find_free(self);

	if (!o)
		return;
	switch (explore_draw(4)) {
	case 0:
		wait_several(self);
		break;
	case 1:
		o->taken = true;
		EXPECT(hive_fiber_detach(o->handle) == 0);
		break;
	default:
		join(o, self);
	}
}

static int compute(void *arg)
{
	(void)arg;
	EXPECT(!crew.joined && !hive_fiber_current());
	crew.offloads++;
	explore_yield();
	crew.offloads--;
	return 42;
}

static void offload(int self)
{
	int64_t deadline = crew_deadline();
	int result = 0, r = hive_offload(compute, NULL, deadline, &result);

	if (r == -ENOMEM || (r == -ECANCELED && crew.stopping)) /* no compute worker is left to drain for */
		return;
	crew_check_wait(self, r, deadline);
	EXPECT(result == (r == 0 ? 42 : 0));
}

static void set_values(int self)
{
	const void *key = &keys[explore_draw(3)];
	int r = hive_fiber_set(key, number(self));

	EXPECT(r == 0 || r == -ENOMEM);
	EXPECT(r < 0 || hive_fiber_get(key) == number(self));
}

static void act(int self, int depth)
{
	int64_t delay = (int64_t)explore_draw(2000) - 100, due = explore_now() + delay;
	int r;

	switch (explore_draw(7)) {
	case 0:
		r = hive_yield();
		EXPECT(r == 0 || (r == -ECANCELED && may_be_cancelled(self)));
		break;
	case 1:
	case 2:
		r = hive_sleep(delay);
		EXPECT(r == 0 || r == -ENOMEM || (r == -ECANCELED && may_be_cancelled(self)));
		EXPECT(r < 0 || explore_now() >= due); /* never early */
		break;
	case 3:
		set_values(self);
		break;
	case 4:
		if (crew.offloading)
			offload(self);
		break;
	case 5:
		if (depth < 2)
			crew_spawn(depth + 1, (int)explore_draw(4));
		break;
	default:
		crew_ask(self);
	}
}

int crew_enter(void *one)
{
	struct one *o = one;

	EXPECT(!crew.joined && !o->begun && hive_fiber_current());
	o->begun = true;
	return (int)(o - crew.ones);
}

int crew_leave(void *one)
{
	struct one *o = one;

	EXPECT(!crew.joined && !o->ended);
	o->ended = true;
	return (int)(o - crew.ones);
}

static int live(void *arg)
{
	int self = crew_enter(arg);

	for (uint32_t n = explore_draw(4); n > 0; n--)
		act(self, crew.ones[self].depth);
	return crew_leave(arg);
}

static bool spawn(hive_fiber_fn *fn, int depth, int how)
{
	struct hive_fiber_options o = { .worker = HIVE_WORKER_NONE };
	struct one *one;
	int r;

	if (crew.used == CREW)
		return false;
	one = &crew.ones[crew.used++];
	one->depth = depth;
	if (how & 1)
		o.worker = explore_draw(2) ? HIVE_WORKER_MAIN
		                           : ledger.workers[explore_draw((uint32_t)ledger.worker_count)];
	one->taken = how & 2;
	r = hive_spawn(ledger.hive, fn, one, &o, how & 2 ? NULL : &one->handle);
	EXPECT(r == 0 || r == -ENOMEM || (r == -ESHUTDOWN && crew.stopping) || (r == -ESRCH && o.worker));
	EXPECT(r == 0 || (!one->begun && !one->handle));
	one->accepted = r == 0;
	return r == 0;
}

bool crew_spawn(int depth, int how)
{
	return spawn(live, depth, how);
}

bool crew_hire(hive_fiber_fn *fn, int how)
{
	return spawn(fn, 0, how);
}

void crew_poster(void *count)
{
	for (intptr_t n = (intptr_t)count; n > 0; n--) {
		crew_spawn(0, (int)explore_draw(4));
		if (explore_draw(2))
			crew_ask(-1);
	}
}

void crew_canceller(void *count)
{
	for (intptr_t n = (intptr_t)count; n > 0; n--) {
		struct one *o;
		int r;

		explore_yield();
		o = find_free(-1);
		if (!o)
			continue;
		o->taken = true; /* or its handle might be gone when we use it */
		o->cancelled = true;
		r = hive_fiber_cancel(o->handle);
		EXPECT(r == 0);
		o->taken = false;
	}
}

void crew_check_still(void)
{
	const char *wrong;

	explore_wait_quiet();
	explore_hold();
	wrong = invariants_quiet(ledger.hive);
	if (wrong)
		explore_fail("while all sleep: %s", wrong);
	for (int i = 0; i < crew.used; i++)
		if (crew.ones[i].accepted && !crew.ones[i].ended)
			explore_fail("all sleep, and fiber %d has not %s", i, crew.ones[i].begun ? "ended" : "begun");
	explore_go_on();
}

void crew_check_quiet(void)
{
	explore_sleep(HIVE_S(2)); /* clocks may jump, sleeps and deadlines are short */
	crew_check_still();
}

static void check_books(void)
{
	struct hive_report report;

	EXPECT(hive_report_read(ledger.hive, &report) == 0);
	if (report.posted != report.ran + report.cancelled + report.dropped)
		explore_fail("report: posted %llu, ran %llu, cancelled %llu, dropped %llu",
		             (unsigned long long)report.posted, (unsigned long long)report.ran,
		             (unsigned long long)report.cancelled, (unsigned long long)report.dropped);
}

void crew_finish(void)
{
	int result, never = 0;

	EXPECT(hive_join(ledger.hive, HIVE_FOREVER) == 0);
	crew.joined = true;
	EXPECT(crew.offloads == 0);
	for (int i = 0; i < crew.used; i++) {
		struct one *o = &crew.ones[i];

		EXPECT(o->begun == o->ended);
		never += o->accepted && !o->begun;
		if (!o->accepted || o->taken)
			continue;
		EXPECT(hive_fiber_join(o->handle, HIVE_NOWAIT, &result) == 0);
		EXPECT(result == (o->begun ? i : -ECANCELED));
		EXPECT(hive_fiber_join(o->handle, HIVE_NOWAIT, &result) == -ESRCH);
	}
	EXPECT(never == 0 || crew.now);
	check_books();
}

void crew_close(void)
{
	crew_finish();
	explore_check_always(NULL, NULL);
	EXPECT(hive_destroy(ledger.hive) == 0);
}

void crew_stop(void *mode)
{
	int64_t deadline = HIVE_FOREVER;
	int r;

	if (!mode && explore_draw(3) == 0)
		deadline = hive_deadline(ledger.hive, (int64_t)explore_draw(5000));
	crew.now |= mode || deadline != HIVE_FOREVER;
	crew.stopping = true;
	r = hive_stop(ledger.hive, mode ? HIVE_NOW : HIVE_DRAIN, deadline);
	EXPECT(r == 0 || r == -EALREADY);
}

void crew_end(void)
{
	crew_stop(explore_draw(2) ? &crew : NULL);
	crew_close();
}

void crew_detach(void *arg)
{
	int r = hive_detach(ledger.hive, ledger.workers[ledger.worker_count - 1],
	                    explore_draw(2) ? HIVE_FOREVER : HIVE_NOWAIT);

	(void)arg;
	EXPECT(r == 0 || r == -EINPROGRESS || r == -ESHUTDOWN);
}

void crew_join_threads(const int *threads, int n)
{
	for (int i = 0; i < n; i++)
		explore_join(threads[i]);
}

void crew_see_it_through(int *threads, int n)
{
	if (explore_draw(2))
		threads[n++] = explore_draw(3) ? explore_spawn("canceller", crew_canceller, number(3))
		                               : explore_spawn("stopper", crew_stop, explore_draw(2) ? &crew : NULL);
	crew_join_threads(threads, n);
	if (!crew.stopping) {
		crew_check_quiet();
		crew_stop(explore_draw(2) ? &crew : NULL);
	}
	crew_close();
}

void crew_work_together(hive_fiber_fn *fiber, void (*thread)(void *arg))
{
	int threads[3], n = 0;

	for (uint32_t i = 1 + explore_draw(3); i > 0; i--)
		crew_hire(fiber, (int)explore_draw(4));
	for (uint32_t i = 1 + explore_draw(2); i > 0; i--)
		threads[n++] = explore_spawn("thread", thread, NULL);
	crew_see_it_through(threads, n);
}
