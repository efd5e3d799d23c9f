/* SPDX-License-Identifier: MIT */
#pragma once
/* Strands, graphs and posts by key, for the table in functions.c. */
#include "calls.h"
#include "fibers.h"

static struct hive_strand *kept_strand; /* made by a row, destroyed by it or by us */
static struct hive_graph *kept_graph;
static struct hive_node *kept_nodes[2];

static int strand_create(struct world *w)
{
	struct hive_strand_options options = { .kind = HIVE_COMPUTE, .width = 3 };
	struct hive_strand *strand = NULL;
	int r = hive_strand_create(w->hive, &options, &strand);

	CHECK(r == 0 || !strand);
	CHECK_OK(hive_strand_destroy(strand));
	return r;
}

static void make_strand(struct world *w)
{
	CHECK_OK(hive_strand_create(w->hive, NULL, &kept_strand));
}

DOOR(to_strand, hive_strand_post(kept_strand, ledger_run, e))
DOOR(to_strand_alone, hive_strand_barrier(kept_strand, ledger_run, e))
DOOR(keyed, hive_post_keyed(w->hive, 7, ledger_run, e))

/* Its memory is full to the last place. */
static void fill_strand(struct world *w)
{
	make_strand(w);
	faultless(w, to_strand_how, 61);
}

static void use_strand(struct world *w)
{
	fill_strand(w);
	faultless(w, to_strand_alone_how, 3);
}

static int strand_join(struct world *w)
{
	(void)w;
	CHECK_OK(hive_strand_join(kept_strand, HIVE_FOREVER));
	CHECK_OK(hive_strand_destroy(kept_strand));
	kept_strand = NULL;
	return 0;
}

static int keyed_worker(struct world *w)
{
	return hive_keyed_worker(w->hive, 7) == HIVE_WORKER_NONE;
}

static int node_nop(void *arg)
{
	return (void)arg, 0;
}

static void graph_told(void *ret_told, int result)
{
	CHECK_OK(result);
	*(bool *)ret_told = true;
}

static int graph_create(struct world *w)
{
	struct hive_graph *graph = NULL;
	int r = hive_graph_create(w->extra, &graph);

	CHECK(r == 0 || !graph);
	CHECK_OK(hive_graph_destroy(graph));
	return r;
}

static void make_graph(struct world *w)
{
	make_runtime(w);
	CHECK_OK(hive_graph_create(w->extra, &kept_graph));
}

static int graph_add(struct world *w)
{
	(void)w;
	return hive_graph_add(kept_graph, HIVE_COMPUTE, node_nop, NULL, &kept_nodes[0]);
}

static void make_nodes(struct world *w)
{
	make_graph(w);
	CHECK_OK(graph_add(w));
	CHECK_OK(hive_graph_add(kept_graph, HIVE_MICRO, node_nop, NULL, &kept_nodes[1]));
}

static int graph_edge(struct world *w)
{
	(void)w;
	return hive_graph_edge(kept_graph, kept_nodes[0], kept_nodes[1]);
}

static void build_graph(struct world *w)
{
	make_nodes(w);
	CHECK_OK(graph_edge(w));
}

static int graph_run(struct world *w)
{
	(void)w;
	CHECK_OK(hive_graph_check(kept_graph));
	return hive_graph_run(kept_graph, HIVE_FOREVER);
}

static void run_graph(struct world *w)
{
	build_graph(w);
	CHECK_OK(graph_run(w));
}

static int graph_start(struct world *w)
{
	bool told = false;
	int r = hive_graph_start(kept_graph, graph_told, &told);

	hive_sim_advance(w->sim, HIVE_MS(1));
	CHECK_EQ(told, r == 0);
	return r;
}

static int graph_destroy(struct world *w)
{
	int r = hive_graph_destroy(kept_graph);

	(void)w;
	kept_graph = NULL;
	return r;
}

/* The hive is gone: they may be destroyed after it. */
static void end_strands(void)
{
	CHECK_OK(hive_strand_destroy(kept_strand));
	CHECK_OK(hive_graph_destroy(kept_graph));
	kept_strand = NULL;
	kept_graph = NULL;
}
