/* SPDX-License-Identifier: MIT */
/* A build system. Targets are nodes of a graph, on compute workers; each is made when what it is made of is there, and only if something of that
 * is newer. The graph is built once and run for each build; a target that fails ends the build, and nothing is made of it.       */
#include <rophive/hive.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { DEPS = 4, TARGETS = 10 };

struct target {
	const char *name, *deps[DEPS]; /* without deps: a source file */
	bool broken;
	uint64_t
		stamp; /* when it was written; 0: it is not there. Whoever makes it writes it, whoever comes behind it reads it */
	struct target *made_of[DEPS];
	struct hive_node *node;
};

static struct target targets[TARGETS] = {
	{ .name = "lexer.h" },
	{ .name = "lexer.c" },
	{ .name = "parser.c" },
	{ .name = "main.c" },
	{ .name = "lexer.o", .deps = { "lexer.c", "lexer.h" } },
	{ .name = "parser.o", .deps = { "parser.c", "lexer.h" } },
	{ .name = "main.o", .deps = { "main.c" } },
	{ .name = "libtool.a", .deps = { "lexer.o", "parser.o" } },
	{ .name = "tool", .deps = { "main.o", "libtool.a" } },
	{ .name = "tool.test", .deps = { "tool" } },
};

static atomic_ullong now, made;

static struct target *find(const char *name)
{
	for (int i = 0; i < TARGETS; i++)
		if (strcmp(targets[i].name, name) == 0)
			return &targets[i];
	return NULL;
}

static void touch(const char *name)
{
	find(name)->stamp = atomic_fetch_add(&now, 1) + 1;
}

static int make(void *arg) /* a node: all that it is made of is there */
{
	struct target *t = arg;
	bool is_old = false;

	for (int i = 0; i < DEPS && t->made_of[i]; i++)
		is_old |= t->made_of[i]->stamp >= t->stamp;
	if (!is_old)
		return 0;
	printf("  make %s%s\n", t->name, t->broken ? ": error" : "");
	if (t->broken)
		return -EIO;
	atomic_fetch_add(&made, 1);
	touch(t->name);
	return 0;
}

static int plan(struct hive_graph *graph)
{
	int r = 0;

	for (int i = 0; i < TARGETS && r == 0; i++)
		r = hive_graph_add(graph, HIVE_COMPUTE, make, &targets[i], &targets[i].node);
	for (int i = 0; i < TARGETS && r == 0; i++)
		for (int k = 0; k < DEPS && targets[i].deps[k] && r == 0; k++) {
			targets[i].made_of[k] = find(targets[i].deps[k]);
			r = hive_graph_edge(graph, targets[i].made_of[k]->node, targets[i].node);
		}
	return r < 0 ? r : hive_graph_check(graph); /* -ELOOP: something is made of itself */
}

static int build(struct hive_graph *graph, const char *why, uint64_t expected, int result)
{
	int r;

	atomic_store(&made, 0);
	printf("%s\n", why);
	r = hive_graph_run(graph, HIVE_FOREVER);
	printf("  %llu made, %s\n", atomic_load(&made), hive_error_text(r));
	return r == result && atomic_load(&made) == expected ? 0 : -EBADMSG;
}

int main(void)
{
	struct hive_options options = { .io_workers = 1, .compute_workers = 2 };
	struct hive_graph *graph;
	struct hive *hive;
	int r;

	if (hive_runtime_start(&options, &hive) < 0 || hive_graph_create(hive, &graph) < 0)
		return 1;
	for (int i = 0; i < 4; i++)
		touch(targets[i].name);
	r = plan(graph);
	if (r == 0)
		r = build(graph, "all of it", 6, 0);
	if (r == 0)
		r = build(graph, "again", 0, 0);
	touch("parser.c");
	if (r == 0)
		r = build(graph, "parser.c has changed", 4, 0);
	touch("main.c");
	find("main.o")->broken = true;
	if (r == 0)
		r = build(graph, "main.c has changed, and is wrong", 0, -EIO);
	hive_graph_destroy(graph);
	return hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER) < 0 || r < 0;
}
