/* SPDX-License-Identifier: MIT */
/* Graphs: building, checking, their end. */
#include "group/graph.h"

/* Where the n-th node of all is, of as many as there are in its block. */
#define FOR_NODES(node, graph, block, n)                                                                   \
	for (struct node_block *block = (graph)->nodes; block; block = block->next)                        \
		for (uint32_t n = block == (graph)->nodes ? ((graph)->node_count - 1) % NODES + 1 : NODES; \
		     n > 0 && ((node) = &block->nodes[n - 1]); n--)

/* Takes away, again and again, what waits for nothing. What is left waits for itself. */
static uint32_t count_free(struct hive_graph *g)
{
	struct hive_node *node, *ahead = g->roots;
	uint32_t count = 0;

	for (node = ahead; node; node = node->next_root)
		node->link = node->next_root;
	while ((node = ahead) != NULL) {
		ahead = node->link;
		count++;
		for (struct edge *edge = node->edges; edge; edge = edge->next)
			if (countdown_is_last(&edge->to->countdown)) {
				edge->to->link = ahead;
				ahead = edge->to;
			}
	}
	return count;
}

/* Roots, sinks, counts; and whether there is a way round. */
int hive__graph_check(struct hive_graph *g)
{
	struct hive_node *node;
	bool is_free;

	if (g->is_checked)
		return 0;
	g->roots = NULL;
	g->sinks = 0;
	FOR_NODES(node, g, block, n)
	{
		countdown_begin(&node->countdown);
		g->sinks += !node->edges;
		if (node->countdown.needs > 0)
			continue;
		node->next_root = g->roots;
		g->roots = node;
	}
	is_free = count_free(g) == g->node_count;
	FOR_NODES(node, g, block, n)
	countdown_begin(&node->countdown);
	g->is_checked = is_free;
	return is_free ? 0 : -ELOOP;
}

int hive_graph_check(struct hive_graph *graph)
{
	int r = graph_enter(graph);

	return r < 0 ? r : graph_leave(graph, hive__graph_check(graph));
}

int hive_graph_create(struct hive *hive, struct hive_graph **ret_graph)
{
	int r = ret_graph ? hive__group_admit(hive, HIVE_MICRO) : -EINVAL;
	struct hive_graph *g;

	if (r < 0)
		return r;
	g = (struct hive_graph *)hive__memory_new(hive__guest_memory(hive), sizeof *g);
	if (!g)
		return -ENOMEM;
	g->end.run = hive__graph_tell;
	g->end.drop = hive__graph_tell_dropped;
	g->hive = hive;
	g->memory = *hive__guest_memory(hive);
	g->magic = GRAPH_MAGIC;
	*ret_graph = g;
	return 0;
}

int hive_graph_destroy(struct hive_graph *graph)
{
	struct memory memory;
	int r = graph ? graph_enter(graph) : 0;

	if (r < 0 || !graph)
		return r;
	memory = graph->memory;
	graph->magic = 0;
	for (struct node_block *block = graph->nodes, *next; block; block = next) {
		next = block->next;
		hive__memory_free(&memory, block);
	}
	for (struct edge_block *block = graph->edges, *next; block; block = next) {
		next = block->next;
		hive__memory_free(&memory, block);
	}
	hive__memory_free(&memory, graph);
	return 0;
}

static int new_node(struct hive_graph *g, struct hive_node **ret_node)
{
	if (g->node_count == GRAPH_NODES_MAX)
		return -ENOSPC;
	if (g->node_count % NODES == 0) {
		struct node_block *block = (struct node_block *)hive__memory_new(&g->memory, sizeof *block);

		if (!block)
			return -ENOMEM;
		block->next = g->nodes;
		g->nodes = block;
	}
	*ret_node = &g->nodes->nodes[g->node_count++ % NODES];
	return 0;
}

int hive_graph_add(struct hive_graph *graph, enum hive_kind kind, hive_node_fn *fn, void *arg,
                   struct hive_node **ret_node)
{
	struct hive_node *node;
	int r = fn && (kind == HIVE_MICRO || kind == HIVE_COMPUTE) ? graph_enter(graph) : -EINVAL;

	if (r < 0)
		return r;
	r = new_node(graph, &node);
	if (r < 0)
		return graph_leave(graph, r);
	node->guest.run = hive__graph_run_node;
	node->guest.drop = hive__graph_drop_node;
	node->graph = graph;
	node->fn = fn;
	node->arg = arg;
	node->kind = kind;
	graph->has_compute |= kind == HIVE_COMPUTE;
	graph->is_checked = false;
	if (ret_node)
		*ret_node = node;
	return graph_leave(graph, 0);
}

static int new_edge(struct hive_graph *g, struct hive_node *before, struct hive_node *after)
{
	struct edge *edge;

	if (g->edge_count == GRAPH_EDGES_MAX)
		return -ENOSPC;
	if (g->edge_count % EDGES == 0) {
		struct edge_block *block = (struct edge_block *)hive__memory_new(&g->memory, sizeof *block);

		if (!block)
			return -ENOMEM;
		block->next = g->edges;
		g->edges = block;
	}
	edge = &g->edges->edges[g->edge_count++ % EDGES];
	edge->to = after;
	edge->next = before->edges;
	before->edges = edge;
	after->countdown.needs++;
	g->is_checked = false;
	return 0;
}

int hive_graph_edge(struct hive_graph *graph, struct hive_node *before, struct hive_node *after)
{
	int r = before && after ? graph_enter(graph) : -EINVAL;

	if (r < 0)
		return r;
	if (before->graph != graph || after->graph != graph)
		return graph_leave(graph, -EINVAL);
	return graph_leave(graph, before == after ? -ELOOP : new_edge(graph, before, after));
}
