/* SPDX-License-Identifier: MIT */
/* A run of a graph: who goes on with which node, who tells the end, and who waits for it. */
#include "group/graph.h"

#include <rophive/group.h>
#include <rophive/worker.h>

/* ---- a run ---- */

static void fail(struct hive_graph *g, int error)
{
	int none = 0;

	cas_relaxed(&g->error, &none, error); /* `pending` publishes it */
}

/* All is over. The graph is its owner's from here on. */
static void tell(struct hive_graph *g)
{
	hive_graph_done_fn *done = g->done;
	struct hive *hive = g->hive;
	void *arg = g->arg;
	int result = load_relaxed(&g->error);

	if (done) {
		role_leave(&g->runs);
		done(arg, result);
	} else {
		once_finish(&g->once);
	}
	hive__unhold(hive);
}

void hive__graph_tell(struct guest *guest)
{
	hive__guest_ran(0, true);
	tell((struct hive_graph *)(void *)guest);
}

void hive__graph_tell_dropped(struct guest *guest)
{
	struct hive_graph *g = (struct hive_graph *)(void *)guest;

	hive__guest_not_dropped(g->hive);
	tell(g);
}

/* True: its function was called. */
static bool execute(struct hive_node *node, bool drops)
{
	struct hive_graph *g = node->graph;
	int r;

	countdown_begin(&node->countdown);
	if (g->waits && hive_group_error(g->waits) < 0) /* who waits is late */
		fail(g, hive_group_error(g->waits));
	if (load_relaxed(&g->error) != 0)
		return false;
	if (drops || hive__group_is_leaving(g->hive)) {
		fail(g, -ECANCELED);
		return false;
	}
	r = node->fn(node->arg);
	if (r < 0)
		fail(g, r);
	return true;
}

/* Counts down what comes behind it, and must not touch it any more. Those that this thread goes on with come in front of `ahead`: one of
 * the same kind, if it has none yet and may; and all when the run has failed, for then nothing is called. (Who has seen the failure
 * sees it again.)                                                                                                         */
static struct hive_node *settle(struct hive_node *node, struct hive_node *ahead, bool may_go_on)
{
	struct hive_graph *g = node->graph;
	struct hive *hive = g->hive;
	enum hive_kind kind = node->kind;

	if (!node->edges) {
		if (refs_drop(&g->pending))
			tell(g);
		return ahead;
	}
	for (struct edge *edge = node->edges, *next; edge; edge = next) {
		struct hive_node *to = edge->to;

		next = edge->next;
		if (!countdown_is_last(&to->countdown))
			continue;
		if (load_relaxed(&g->error) != 0 || (!ahead && may_go_on && to->kind == kind)) {
			to->link = ahead;
			ahead = to;
		} else {
			hive__group_ready(hive, &to->guest, to->kind);
		}
	}
	return ahead;
}

static void go(struct hive_node *node, bool is_counted, bool drops)
{
	struct hive_node *ahead = node;
	uint32_t called = 0;

	node->link = NULL;
	while (ahead) {
		bool may_go_on;

		node = ahead;
		ahead = node->link;
		called += execute(node, drops);
		may_go_on = !drops && called < BUDGET && !hive_should_yield();
		ahead = settle(node, ahead, may_go_on);
	}
	if (!drops)
		hive__guest_ran(called, is_counted);
}

void hive__graph_run_node(struct guest *guest)
{
	struct hive_node *node = (struct hive_node *)(void *)guest;

	if (!hive__group_goes_on(node->graph->hive, guest, node->kind))
		go(node, true, false);
}

void hive__graph_drop_node(struct guest *guest)
{
	struct hive_node *node = (struct hive_node *)(void *)guest;

	hive__guest_not_dropped(node->graph->hive);
	go(node, false, !hive__place());
}

/* Who starts counts as well: what has begun cannot end before all have. */
static void begin(struct hive_graph *g)
{
	struct hive *hive = g->hive;
	struct hive_node *next;

	store_relaxed(&g->error, 0);
	store_relaxed(&g->pending, g->sinks + 1);
	once_init(&g->once);
	for (struct hive_node *root = g->roots; root; root = next) {
		next = root->next_root;
		hive__group_ready(hive, &root->guest, root->kind);
	}
	if (refs_drop(&g->pending))
		hive__guest_ready(hive, &g->end);
}

/* ---- starting ---- */

/* 0: the role is ours, and the hive is held. */
static int prepare(struct hive_graph *g)
{
	int r = graph_enter(g);

	if (r < 0)
		return r;
	r = hive__graph_check(g);
	if (r == 0)
		r = hive__group_admit(g->hive, g->has_compute ? HIVE_COMPUTE : HIVE_MICRO);
	if (r == 0)
		r = hive__guest_begin(g->hive);
	return r < 0 ? graph_leave(g, r) : 0;
}

int hive_graph_start(struct hive_graph *graph, hive_graph_done_fn *done, void *arg)
{
	int r = done ? prepare(graph) : -EINVAL;

	if (r < 0)
		return r;
	graph->done = done;
	graph->arg = arg;
	graph->waits = NULL;
	begin(graph);
	return 0;
}

/* A compute task that waits. It runs others meanwhile, nodes of this graph among them: there may be no other worker for them. */
struct helping {
	struct hive_group group;
	int result;
};

static void told(void *arg, int result)
{
	struct helping *h = (struct helping *)arg;

	h->result = result;
	hive_group_leave(&h->group, 0);
}

static int run_helping(struct hive_graph *g, int64_t deadline_ns)
{
	struct hive_group_options options = { .flags = HIVE_GROUP_SHARED };
	struct helping h = { .result = 0 };

	hive_group_init_with(&h.group, g->hive, HIVE_COMPUTE, &options);
	hive_group_enter(&h.group);
	g->done = told;
	g->arg = &h;
	g->waits = &h.group;
	begin(g);
	hive_group_wait(&h.group, deadline_ns);
	return h.result;
}

/* Asked before anything begins. */
static int may_wait(int64_t deadline_ns)
{
	struct wait wait;
	int r;

	if (deadline_ns <= HIVE_NOWAIT || (deadline_ns != HIVE_FOREVER && deadline_ns <= hive_now(NULL)))
		return -ETIMEDOUT;
	hive__wait_checkpoint();
	r = hive__wait_begin(&wait, "graph");
	if (r == 0)
		hive__wait_give_up(wait);
	return r;
}

int hive_graph_run(struct hive_graph *graph, int64_t deadline_ns)
{
	int r = is_graph(graph) ? may_wait(deadline_ns) : -EINVAL;

	if (r == 0)
		r = prepare(graph);
	if (r < 0)
		return r;
	if (hive__on_worker() && !hive__place())
		return run_helping(graph, deadline_ns);
	graph->done = NULL;
	graph->waits = NULL;
	begin(graph);
	r = once_wait(&graph->once, false, "graph", deadline_ns);
	if (r < 0)
		fail(graph, r);
	while (r < 0)
		r = once_wait(&graph->once, true, "graph, ending", HIVE_FOREVER);
	return graph_leave(graph, load_relaxed(&graph->error));
}
