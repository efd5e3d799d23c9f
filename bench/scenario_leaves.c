/* SPDX-License-Identifier: MIT */
#include "groups.h"
#include <stdlib.h>

/* leaves: a task forks n slow leaves, of 10 and of 3 ms in turns, and waits. What a worker keeps to itself must not wait behind its own slow leaf
 * while another one has nothing to do. Ideal is the sum of all by the number of workers: 52 ms with 16 leaves and two workers. Leaves
 * spin by the clock, so that what else the machine does befalls the ideal as well.                                         */
#define LONG_NS HIVE_MS(10)
#define SHORT_NS HIVE_MS(3)

struct leaf {
	int64_t length_ns;
	_Atomic int64_t ran;
};

struct tree {
	struct hive *hive;
	struct leaf *leaves;
	int64_t n;
};

static void spin(void *arg)
{
	struct leaf *leaf = arg;
	int64_t end_ns = sync_now() + leaf->length_ns;
	while (sync_now() < end_ns)
		sync_pause();
	atomic_fetch_add_explicit(&leaf->ran, 1, memory_order_relaxed);
}

static void fork_all(void *arg)
{
	struct tree *tree = arg;
	struct hive_group group;
	hive_group_init(&group, tree->hive, HIVE_COMPUTE);
	for (int64_t i = 0; i < tree->n; i++)
		hive_group_run(&group, spin, &tree->leaves[i]);
	hive_group_wait(&group, HIVE_FOREVER);
}

/* Each has run so often. */
static int check(const struct tree *tree, int64_t times)
{
	for (int64_t i = 0; i < tree->n; i++)
		if (tree->leaves[i].ran != times)
			return bench_wrong("a leaf", (uint64_t)times, (uint64_t)tree->leaves[i].ran);
	return BENCH_OK;
}

static int measure(struct tree *tree, const struct bench_params *params, struct record *result)
{
	struct rig rig;
	int64_t times_ns[GROUPS_TURNS], sum_ns = 0;
	int code = groups_open(&rig, params);
	if (code)
		return code;
	tree->hive = rig.hive;
	for (int64_t i = 0; i < tree->n; i++)
		sum_ns += tree->leaves[i].length_ns = i % 2 ? SHORT_NS : LONG_NS;
	groups_time(&rig, fork_all, tree); /* warm-up */
	for (int turn = 0; turn < GROUPS_TURNS; turn++)
		times_ns[turn] = groups_time(&rig, fork_all, tree);
	code = check(tree, GROUPS_TURNS + 1);
	int64_t elapsed_ns = groups_median(times_ns, GROUPS_TURNS);
	double ideal_ns = (double)sum_ns / params->threads;
	bench_put_rate(result, (double)tree->n, elapsed_ns);
	record_metric(result, "seconds", (double)elapsed_ns / 1e9);
	record_metric(result, "ideal_ratio", (double)elapsed_ns / ideal_ns);
	record_metric(result, "ideal_ratio_best", (double)times_ns[0] / ideal_ns);
	record_metric(result, "ideal_ratio_worst", (double)times_ns[GROUPS_TURNS - 1] / ideal_ns);
	bench_put_memory(result);
	return rig_close(&rig, code);
}

int bench_leaves(const struct bench_params *params, struct record *result)
{
	struct tree tree = { .leaves = calloc((size_t)params->n, sizeof *tree.leaves), .n = params->n };
	if (!tree.leaves)
		return bench_failed("leaves", -ENOMEM);
	int code = measure(&tree, params, result);
	if (code != BENCH_TIMEOUT)
		free(tree.leaves);
	return code;
}
