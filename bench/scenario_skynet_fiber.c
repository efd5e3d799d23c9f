/* SPDX-License-Identifier: MIT */
#include "fibers.h"

/* skynet_fiber: a tree in which each fiber spawns ten more until there are n leaves (n is rounded down to a power of ten); a leaf
 * gives its number, all others the sum of what is beneath them. One operation is one fiber: 1,111,111 with 10^6 leaves. A child
 * writes its sum where its parent keeps it and the parent joins it: cheaper than a channel a node, and what one would write.   */
#define BRANCHES 10

struct node {
	int64_t first, leaves; /* beneath it, itself included */
	uint64_t sum;
};

static int grow(void *arg)
{
	struct node *node = arg, children[BRANCHES];
	struct hive_fiber *handles[BRANCHES];
	if (node->leaves == 1) {
		node->sum = (uint64_t)node->first;
		return 0;
	}
	int64_t leaves = node->leaves / BRANCHES;
	for (int32_t i = 0; i < BRANCHES; i++)
		children[i] = (struct node){ node->first + i * leaves, leaves, 0 };
	int error = fibers_spawn_and_join(grow, children, sizeof *children, BRANCHES, handles);
	node->sum = 0;
	for (int32_t i = 0; i < BRANCHES; i++)
		node->sum += children[i].sum;
	return error;
}

static int64_t power_of_ten_within(int64_t n)
{
	int64_t power = 1;
	while (power <= n / BRANCHES)
		power *= BRANCHES;
	return power;
}

static int64_t fibers_of(int64_t leaves)
{
	return leaves == 1 ? 1 : leaves + fibers_of(leaves / BRANCHES);
}

static int grow_and_check(struct rig *rig, int64_t leaves, int64_t *ret_elapsed_ns)
{
	struct node root = { 0, leaves, 0 };
	uint64_t expected = (uint64_t)leaves * (uint64_t)(leaves - 1) / 2;
	int64_t begin = sync_now();
	int code = fibers_run(rig, grow, &root);
	*ret_elapsed_ns = sync_now() - begin;
	if (code)
		return code;
	return root.sum == expected ? BENCH_OK : bench_wrong("sum of the leaves", expected, root.sum);
}

int bench_skynet_fiber(const struct bench_params *params, struct record *result)
{
	struct rig rig;
	int64_t elapsed_ns = 0, leaves = power_of_ten_within(params->n);
	int code = rig_open(&rig, params, params->threads, 0);
	if (code)
		return code;
	code = grow_and_check(&rig, power_of_ten_within(params->n / 10 + 1), &elapsed_ns);
	if (!code)
		code = grow_and_check(&rig, leaves, &elapsed_ns);
	bench_put_rate(result, (double)fibers_of(leaves), elapsed_ns);
	record_metric(result, "seconds", (double)elapsed_ns / 1e9);
	bench_put_memory(result);
	return rig_close(&rig, code);
}
