/* SPDX-License-Identifier: MIT */
#include "ledger.h"

#include <errno.h>
#include <string.h>

#include "sched/internal.h"
#include "support/invariants.h"

static struct entry *new_entry(struct ledger *l, int depth)
{
	struct entry *e;

	if (l->used == ENTRIES)
		return NULL;
	e = &l->entries[l->used++];
	memset(e, 0, sizeof *e);
	e->ledger = l;
	e->fate = GIVEN;
	e->depth = depth;
	return e;
}

/* A task has ended, whichever way; only once, and never after the end of the hive. */
static void end(struct entry *e, enum fate fate)
{
	EXPECT(!e->ended);
	EXPECT(e->fate == GIVEN || e->fate == ACCEPTED || e->fate == WORKED);
	EXPECT(!e->ledger->joined);
	e->ended = true;
	e->fate = fate;
	explore_note((uint64_t)(e - e->ledger->entries) * 8 + (uint64_t)fate);
}

static void post_more(struct entry *e)
{
	for (int n = e->depth == 0 ? e->ledger->flood : 0; n > 0; n--)
		ledger_post_by(e->ledger, LOCAL, 2);
	for (int n = e->depth == 0 ? e->ledger->letters : 0; n > 0; n--)
		ledger_post_by(e->ledger, explore_draw(4) ? POST_TO : POST_MAIN, 2);
	if (e->depth < 2 && e->ledger->fanout > 0)
		for (uint32_t n = explore_draw((uint32_t)e->ledger->fanout + 1); n > 0; n--)
			ledger_post(e->ledger, true, e->depth + 1);
}

/* Where it was posted to, unless that worker has left. */
static void check_place(const struct entry *e)
{
	struct worker *w;

	explore_hold();
	w = e->target == HIVE_WORKER_NONE ? NULL : hive__find_io(e->ledger->hive, e->target);
	EXPECT(!w || w == hive__current() || !hive__is_live(&e->ledger->hive->io, w->index));
	explore_go_on();
}

/* Letters from one worker to one other run in the order in which they were sent; entries are in the order of posts. */
static void check_order(const struct entry *e)
{
	uint32_t here = hive_worker_current();
	struct pair *p = e->ledger->pairs;

	if (e->from == HIVE_WORKER_NONE || (e->target != here && e->target != HIVE_WORKER_MAIN))
		return; /* it was too late for whom it was meant */
	while (p < e->ledger->pairs + PAIRS - 1 && p->last && (p->from != e->from || p->to != here))
		p++;
	EXPECT(!p->last || p->from != e->from || p->to != here || p->last < e);
	*p = (struct pair){ e->from, here, e };
}

static void run(void *arg)
{
	struct entry *e = arg;

	check_place(e);
	check_order(e);
	EXPECT(hive_current() == e->ledger->hive);
	EXPECT(explore_now() >= e->due_ns);
	end(e, RAN);
	if (e->ledger->long_tasks && explore_draw(3) == 0)
		explore_sleep(HIVE_MS(100));
	post_more(e);
}

static void run_compute(void *arg)
{
	struct entry *e = arg;

	EXPECT(hive__current()->kind == HIVE_WORKER_COMPUTE);
	end(e, RAN);
	if (e->depth < 2 && explore_draw(3) == 0)
		ledger_post(e->ledger, false, e->depth + 1);
}

static void run_work(void *arg)
{
	struct entry *e = arg;

	EXPECT(hive__current()->kind == HIVE_WORKER_COMPUTE);
	EXPECT(e->fate == GIVEN || e->fate == ACCEPTED);
	e->fate = WORKED;
}

static void run_answer(void *arg)
{
	struct entry *e = arg;

	EXPECT(hive__current()->kind == HIVE_WORKER_IO);
	EXPECT(e->fate == WORKED);
	run(e);
}

/* So many at a time, a barrier alone; and in a strand each thread's posts in their order. */
static void enter_strand(struct turn_book *b, const struct entry *e)
{
	EXPECT(!b->alone && b->inside < b->width && (!e->alone || b->inside == 0));
	b->inside++;
	b->alone = e->alone;
	if (b->width == 1) {
		EXPECT(!b->last[e->poster] || b->last[e->poster] < e);
		b->last[e->poster] = e;
	}
}

static void run_in_strand(void *arg)
{
	struct entry *e = arg;
	struct turn_book *b = &e->ledger->turns;

	EXPECT(hive_current() == e->ledger->hive);
	enter_strand(b, e);
	hive__explore_point(__FILE__, __LINE__); /* others may come, and must not */
	if (e->depth < 2 && explore_draw(3) == 0)
		ledger_post_by(e->ledger, explore_draw(3) ? STRAND : STRAND_ALONE, e->depth + 1);
	b->inside--;
	b->alone = false;
	end(e, RAN);
}

void ledger_on_drop(void *ledger, const struct hive_task *task)
{
	struct ledger *l = ledger;
	struct entry *e = task->arg;

	/* What a pool has accepted is run by a hive that drains. */
	EXPECT(!l->draining || !e->shared || (e->compute && l->compute_workers == 0));
	end(e, DROPPED);
}

/* ---- posting ---- */

static uint32_t any_worker(struct ledger *l)
{
	return l->worker_count ? l->workers[explore_draw((uint32_t)l->worker_count)] : HIVE_WORKER_MAIN;
}

static void accept(struct entry *e, int r)
{
	EXPECT(r == 0 || r == -ESHUTDOWN || r == -ESRCH || r == -ENOMEM);
	if (r == 0) {
		if (e->fate == GIVEN)
			e->fate = ACCEPTED;
		return;
	}
	EXPECT(e->fate == GIVEN); /* refused means that it never runs */
	e->fate = REFUSED;
}

static int64_t delay(struct entry *e)
{
	static const int64_t delays[] = { 0, HIVE_US(1), HIVE_US(20), HIVE_MS(3) };
	int64_t d = delays[explore_draw(4)];

	e->later = true;
	e->due_ns = explore_now() + d;
	e->jumped_ns = explore_jumped();
	return d;
}

static int post_many(struct ledger *l, struct entry *first, int depth)
{
	struct hive_task tasks[6];
	struct entry *entries[6] = { first };
	size_t n = 1, count = 1 + explore_draw(6);
	int r;

	while (n < count && (entries[n] = new_entry(l, depth)) != NULL)
		n++;
	for (size_t i = 0; i < n; i++)
		tasks[i] = (struct hive_task){ run, entries[i] }, entries[i]->shared = true;
	r = hive_post_many(l->hive, tasks, n);
	for (size_t i = 1; i < n; i++)
		accept(entries[i], r);
	return r;
}

/* Whoever has left, somebody else has the key. */
static int by_key(struct ledger *l, struct entry *e)
{
	int r = hive_post_keyed(l->hive, explore_draw(8), run, e);

	EXPECT(r != -ESRCH);
	return r;
}

static int post(struct ledger *l, enum door door, struct entry *e)
{
	uint32_t worker;

	switch (door) {
	case POST:
		e->shared = hive_worker_current() == HIVE_WORKER_NONE;
		return hive_post(l->hive, run, e);
	case POST_MANY:
		return post_many(l, e, e->depth);
	case POST_TO:
		worker = e->target = any_worker(l);
		e->from = hive_worker_current();
		return hive_post_to(l->hive, worker, run, e);
	case POST_MAIN:
		e->target = HIVE_WORKER_MAIN;
		e->from = hive_worker_current();
		return hive_post_to(l->hive, HIVE_WORKER_MAIN, run, e);
	case POST_AFTER:
		return hive_post_after(l->hive, delay(e), run, e, &e->post);
	case COMPUTE:
		e->compute = e->shared = true;
		return hive_post_compute(l->hive, run_compute, e);
	case COMPUTE_AT:
		e->compute = e->shared = true;
		return hive_post_compute_at(l->hive, (enum hive_priority)explore_draw(3), run_compute, e);
	case THEN:
		worker = any_worker(l);
		e->compute = e->answered = true;
		return hive_post_compute_then(l->hive, run_work, worker, run_answer, e);
	case LOCAL:
		return hive_post_local(run, e);
	case SELF:
		return hive_post_self(run, e);
	case SELF_AFTER:
		return hive_post_self_after(delay(e), run, e, &e->post);
	case KEYED:
		return by_key(l, e);
	case STRAND:
	case STRAND_ALONE:
		e->shared = true;
		e->poster = explore_self();
		e->alone = door == STRAND_ALONE && l->turns.width > 1;
		return door == STRAND ? hive_strand_post(l->turns.strand, run_in_strand, e)
		                      : hive_strand_barrier(l->turns.strand, run_in_strand, e);
	default:
		return 0;
	}
}

bool ledger_post_by(struct ledger *l, enum door door, int depth)
{
	struct entry *e = new_entry(l, depth);
	int r;

	if (!e)
		return true;
	r = post(l, door, e);
	accept(e, r);
	return r != -ESHUTDOWN;
}

bool ledger_post(struct ledger *l, bool inside, int depth)
{
	return ledger_post_by(l, (enum door)explore_draw(inside ? DOORS : OUTSIDE), depth);
}

void ledger_cancel(struct ledger *l)
{
	for (int i = 0; i < l->used; i++) {
		struct entry *e = &l->entries[i];
		int r;

		if (!e->later || e->post == 0 || e->ended)
			continue;
		r = hive_post_cancel(l->hive, e->post);
		EXPECT(r == 0 || r == -ESRCH);
		if (r == 0)
			end(e, CANCELLED);
		return;
	}
}

/* ---- the books ---- */

void ledger_check_quiet(struct ledger *l)
{
	const char *wrong;

	explore_hold();
	wrong = invariants_quiet(l->hive);
	if (wrong)
		explore_fail("while all sleep: %s", wrong);
	for (int i = 0; i < l->used; i++) {
		struct entry *e = &l->entries[i];

		if (e->fate == REFUSED || e->ended || (e->compute && load_relaxed(&l->hive->compute.count) == 0))
			continue;
		/* The clock may have jumped, more than once, between the worker's look at it and its falling asleep. */
		if (e->later && e->due_ns + explore_jumped() - e->jumped_ns + HIVE_S(1) > explore_now())
			continue;
		explore_fail("all sleep, and task %d was not run (fate %d)", i, (int)e->fate);
	}
	explore_go_on();
}

void ledger_check_end(struct ledger *l)
{
	struct hive_report report;
	uint64_t counts[REFUSED + 1] = { 0 }, answers = 0;

	for (int i = 0; i < l->used; i++) {
		struct entry *e = &l->entries[i];

		counts[e->fate]++;
		if (e->fate != REFUSED && !e->ended)
			explore_fail("task %d was accepted and then forgotten (fate %d)", i, (int)e->fate);
		answers += e->answered && e->fate == RAN;
	}
	EXPECT(hive_report_read(l->hive, &report) == 0);
	if (report.posted != report.ran + report.cancelled + report.dropped)
		explore_fail("report: posted %llu, ran %llu, cancelled %llu, dropped %llu",
		             (unsigned long long)report.posted, (unsigned long long)report.ran,
		             (unsigned long long)report.cancelled, (unsigned long long)report.dropped);
	EXPECT(report.dropped == counts[DROPPED]);
	EXPECT(report.cancelled == counts[CANCELLED]);
	EXPECT(report.ran >= counts[RAN] + answers);
}
