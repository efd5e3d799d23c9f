/* SPDX-License-Identifier: MIT */
#pragma once
/* Graphs: nodes that are guests, each with a count of what it waits for.
 *
 *   Who returns from a node counts down those behind it, and whoever counts to 0 has the node: it goes on with it, or makes it ready.
 *   A node sets its count for the next run before it is called, when nobody counts it any more.
 *   `pending` counts the nodes behind which there is nothing, and who starts; who counts it to 0 tells that all is over. Until then the graph
 *   is there for whoever has a node in hand that was not counted down, or is such a node; and nobody else touches it.
 *   A run that has failed goes through the rest in the same way, but calls nobody.                                        */
#include <errno.h>

#include "base/memory.h"
#include "base/role.h"
#include "fiber/once.h"
#include "group/countdown.h"
#include "group/ready.h"

#include <rophive/graph.h>

#define GRAPH_MAGIC 0x67726170u
#if !defined(GRAPH_NODES_MAX) /* the explorer comes there */
#define GRAPH_NODES_MAX HIVE_GRAPH_NODES_MAX
#define GRAPH_EDGES_MAX HIVE_GRAPH_EDGES_MAX
#endif

enum {
	NODES = 64,
	EDGES = 128,
	BUDGET = 32
}; /* of a block; one after the other on one thread, before others have a turn */

struct edge {
	struct edge *next;
	struct hive_node *to;
};

struct hive_node {
	struct guest guest;          /* first */
	struct hive_graph *graph;    /* I */
	hive_node_fn *fn;            /* I */
	void *arg;                   /* I */
	enum hive_kind kind;         /* I */
	struct edge *edges;          /* I while it runs */
	struct hive_node *next_root; /* I while it runs */
	struct hive_node *link;      /* O  of who has it in hand */
	struct countdown countdown;
};

struct node_block {
	struct node_block *next;
	struct hive_node nodes[NODES];
};

struct edge_block {
	struct edge_block *next;
	struct edge edges[EDGES];
};

/* Fields without a letter are the builder's, and I while it runs. */
struct hive_graph {
	struct guest end;         /* first: tells the end where nobody else can */
	uint32_t magic;           /* I */
	struct hive *hive;        /* I */
	struct memory memory;     /* I */
	struct node_block *nodes; /* newest first; in it the node_count-th is the next */
	struct edge_block *edges;
	struct hive_node *roots;
	uint32_t node_count, edge_count, sinks;
	bool has_compute, is_checked;
	ATOMIC(uint32_t) runs;    /* A  role: who runs or changes it */
	hive_graph_done_fn *done; /* I while it runs. NULL: somebody waits */
	void *arg;                /* I while it runs */
	struct hive_group *waits; /* I while it runs. NULL: no compute task waits, and helps meanwhile */
	struct once once;         /* of the run under way */
	ATOMIC(int) error;        /* A  the first one; 0: none */
	ATOMIC(uint32_t) pending; /* A */
};

static inline bool is_graph(const struct hive_graph *graph)
{
	return graph && graph->magic == GRAPH_MAGIC;
}

/* Who builds it, and who starts it; one at a time. 0, -EINVAL, -EBUSY. */
static inline int graph_enter(struct hive_graph *graph)
{
	if (!is_graph(graph))
		return -EINVAL;
	return role_enter(&graph->runs) ? 0 : -EBUSY;
}

static inline int graph_leave(struct hive_graph *graph, int r)
{
	role_leave(&graph->runs);
	return r;
}

/* graph.c: roots, sinks, counts; -ELOOP: there is a way round. By who has entered. */
int hive__graph_check(struct hive_graph *g);
/* graph_run.c: nodes, and the end, as guests */
guest_fn hive__graph_run_node, hive__graph_drop_node, hive__graph_tell, hive__graph_tell_dropped;
