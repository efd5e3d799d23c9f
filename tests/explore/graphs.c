/* SPDX-License-Identifier: MIT */
/* Fibers and threads build graphs and run them, each its own, which is gone as soon as its run has returned. */
#include <errno.h>
#include <string.h>

#include "base/atomic.h"
#include "crew.h"
#include "programs.h"

enum { ACTORS = 8, NODES = 7 }; /* one node more than fits */

struct step {
	struct actor *actor;
	bool before[NODES]; /* which steps come before it */
	bool called, returned;
	bool fails;
};

struct actor {
	struct hive_graph *graph;
	struct step steps[NODES];
	int count;
	bool fails;         /* one of the steps does */
	bool started, told; /* with a callback */
};

static struct actor actors[ACTORS];
static int used;

static int visit(void *arg)
{
	struct step *step = arg;
	const struct actor *a = step->actor;

	EXPECT(!step->called);
	step->called = true;
	for (int i = 0; i < a->count; i++)
		EXPECT(!step->before[i] || (a->steps[i].returned && !a->steps[i].fails));
	hive__explore_point(__FILE__, __LINE__);
	step->returned = true;
	return step->fails ? -EIO : 0;
}

static enum hive_kind draw_kind(void)
{
	return ledger.compute_workers > 0 && explore_draw(2) ? HIVE_COMPUTE : HIVE_MICRO;
}

/* Edges lead to later steps, so there is no circle. What finds no memory is left out. */
static void build(struct actor *a)
{
	struct hive_node *nodes[NODES];
	int wanted = (int)explore_draw(NODES + 1), r = 0;

	for (a->count = 0; r == 0 && a->count < wanted; a->count += r == 0) {
		struct step *step = &a->steps[a->count];

		step->actor = a;
		r = hive_graph_add(a->graph, draw_kind(), visit, step, &nodes[a->count]);
		EXPECT(r == 0 || r == -ENOMEM || (r == -ENOSPC && a->count == NODES - 1));
		step->fails = r == 0 && explore_draw(12) == 0;
		a->fails |= step->fails;
		for (int i = 0; r == 0 && i < a->count; i++)
			if (explore_draw(2) && hive_graph_edge(a->graph, nodes[i], nodes[a->count]) == 0)
				step->before[i] = true;
	}
}

static void renew(struct actor *a)
{
	for (int i = 0; i < a->count; i++)
		a->steps[i].called = a->steps[i].returned = false;
}

/* Nobody is inside, and if it says that all is well all were called. */
static void check_end(const struct actor *a, int r)
{
	for (int i = 0; i < a->count; i++)
		EXPECT(a->steps[i].called == a->steps[i].returned && (r < 0 || a->steps[i].called));
	EXPECT(r == 0 || r != -EIO || a->fails);
}

static void run_some(struct actor *a, int self)
{
	for (uint32_t n = 1 + explore_draw(2); n > 0; n--) {
		int64_t deadline = crew_deadline();
		int r;

		renew(a);
		r = hive_graph_run(a->graph, deadline);
		check_end(a, r);
		if (r != -EIO && !(r == -ESHUTDOWN && crew.stopping) && !(r == -ECANCELED && crew.now))
			crew_check_wait(self, r, deadline);
	}
	EXPECT(hive_graph_destroy(a->graph) == 0);
}

static void told(void *actor, int r)
{
	struct actor *a = actor;

	EXPECT(a->started && !a->told);
	a->told = true;
	EXPECT(r == 0 || r == -EIO || (r == -ECANCELED && crew.now));
	check_end(a, r);
	EXPECT(hive_graph_destroy(a->graph) == 0);
}

static void act(int self)
{
	struct actor *a = used < ACTORS ? &actors[used++] : NULL;
	int r = a ? hive_graph_create(ledger.hive, &a->graph) : -ENOMEM;

	EXPECT(r == 0 || r == -ENOMEM || (r == -ESHUTDOWN && crew.stopping));
	if (r < 0)
		return;
	build(a);
	if (explore_draw(2)) {
		run_some(a, self);
		return;
	}
	a->started = true;
	r = hive_graph_start(a->graph, told, a);
	EXPECT(r == 0 || (r == -ESHUTDOWN && crew.stopping));
	if (r < 0) {
		a->started = false;
		EXPECT(hive_graph_destroy(a->graph) == 0);
	}
}

static int act_as_fiber(void *one)
{
	act(crew_enter(one));
	return crew_leave(one);
}

static void act_as_thread(void *arg)
{
	(void)arg;
	act(-1);
}

void graphs_run_in_order(void *arg)
{
	(void)arg;
	crew_clear();
	memset(actors, 0, sizeof actors);
	used = 0;
	if (!open_hive((struct range){ 1, 3 }, (struct range){ 0, 2 }, CORE_EMPTY))
		return;
	crew_work_together(act_as_fiber, act_as_thread);
	for (int i = 0; i < used; i++)
		EXPECT(actors[i].started == actors[i].told);
}
