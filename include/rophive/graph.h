/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/task.h>
#include <rophive/time.h>

/* Functions that depend on each other: each is called when all that come before it have returned. Built once, run as often as one likes; a run
 * needs no memory. Whoever returns last of those before a node goes on with it, on the same thread if it is of the same kind.
 *
 * A node that returns less than 0 ends the run: what has not begun is not called, and its result is that of the run. So does a hive that
 * stops with HIVE_NOW (-ECANCELED); one that drains waits for the end of the run. There is no order among nodes that no path connects.
 *
 * A graph is built by one thread at a time, and not while it runs.                                                       */
HIVE_BEGIN
struct hive;
struct hive_graph;
struct hive_node; /* part of its graph */

#define HIVE_GRAPH_NODES_MAX (1u << 20)
#define HIVE_GRAPH_EDGES_MAX (1u << 24)

typedef int hive_node_fn(void *arg); /* 0, or -errno */
/* On a worker of the hive; on another thread if the hive ends before it ever ran. The graph may be run again or destroyed here. */
typedef void hive_graph_done_fn(void *arg, int result);

/* Any thread. -ESRCH: the hive has no IO worker. -ESHUTDOWN. */
HIVE_CHECKED int hive_graph_create(struct hive *hive, struct hive_graph **ret_graph);
/* Any thread. 0: gone, and its nodes (NULL is fine). -EBUSY: it runs. Before its hive is destroyed, or after. */
int hive_graph_destroy(struct hive_graph *graph);
/* Any thread. A node, called on an IO worker or a compute worker. ret_node may be NULL. -EBUSY: it runs. -ENOSPC: HIVE_GRAPH_NODES_MAX. */
HIVE_CHECKED int hive_graph_add(struct hive_graph *graph, enum hive_kind kind, hive_node_fn *fn, void *arg,
                                struct hive_node **ret_node);
/* Any thread. `after` is called when `before` has returned. -EINVAL: a node of another graph. -ELOOP: twice the same; a longer way round is
 * found when the graph is checked. -EBUSY: it runs. -ENOSPC: HIVE_GRAPH_EDGES_MAX.                                         */
HIVE_CHECKED int hive_graph_edge(struct hive_graph *graph, struct hive_node *before, struct hive_node *after);
/* Any thread. -ELOOP: some nodes wait for each other. Asked by each run after a change. -EBUSY: it runs. */
int hive_graph_check(struct hive_graph *graph);

/* May wait. All nodes, once: 0, or the first result below 0. The graph may be destroyed as soon as it returns. Not begun: -ELOOP, -EBUSY
 * (it runs), -ESHUTDOWN, -EDEADLK, -ENOTSUP (HIVE_COMPUTE, and there is no compute worker). -ETIMEDOUT, -ECANCELED: the wait has ended, what had
 * not begun was left out, and what had begun was waited for. A compute task runs others meanwhile, nodes of the graph among them.       */
int hive_graph_run(struct hive_graph *graph, int64_t deadline_ns);
/* Any thread. The same without waiting: done(arg, result) when all is over, exactly once if this returned 0. */
HIVE_CHECKED int hive_graph_start(struct hive_graph *graph, hive_graph_done_fn *done, void *arg);
HIVE_END
