/* SPDX-License-Identifier: MIT */
#include "groups.h"

/* skynet: a tree in which each task runs ten more in a group until there are n leaves (n is rounded down to a power of ten); a leaf gives its
 * number, all others the sum of what is beneath them. One operation is one task: 1,111,111 with 10^6 leaves. The tenth child is called, as one
 * would write it.                                                                                                         */
#define BRANCHES 10

struct node {
	struct hive *hive;
	int64_t first, leaves; /* beneath it, itself included */
	int64_t sum;
};

static void grow(void *arg)
{
	struct node *node = arg, children[BRANCHES];
	struct hive_group group;
	if (node->leaves == 1) {
		node->sum = node->first;
		return;
	}
	hive_group_init(&group, node->hive, HIVE_COMPUTE);
	int64_t leaves = node->leaves / BRANCHES;
	for (int i = 0; i < BRANCHES; i++) {
		children[i] = (struct node){ node->hive, node->first + i * leaves, leaves, 0 };
		if (i < BRANCHES - 1)
			hive_group_run(&group, grow, &children[i]);
		else
			grow(&children[i]);
	}
	hive_group_wait(&group, HIVE_FOREVER);
	node->sum = 0;
	for (int i = 0; i < BRANCHES; i++)
		node->sum += children[i].sum;
}

static int64_t power_of_ten_within(int64_t n)
{
	int64_t power = 1;
	while (power <= n / BRANCHES)
		power *= BRANCHES;
	return power;
}

static int64_t tasks_of(int64_t leaves)
{
	return leaves == 1 ? 1 : leaves + tasks_of(leaves / BRANCHES);
}

static int grow_and_check(const struct rig *rig, int64_t leaves, int64_t *ret_elapsed_ns)
{
	struct node root = { rig->hive, 0, leaves, 0 };
	uint64_t expected = (uint64_t)leaves * (uint64_t)(leaves - 1) / 2;
	*ret_elapsed_ns = groups_time(rig, grow, &root);
	return (uint64_t)root.sum == expected ? BENCH_OK : bench_wrong("the leaves' sum", expected, (uint64_t)root.sum);
}

int bench_skynet(const struct bench_params *params, struct record *result)
{
	struct rig rig;
	int64_t times_ns[GROUPS_TURNS] = { 0 }, leaves = power_of_ten_within(params->n);
	int code = groups_open(&rig, params);
	if (code)
		return code;
	code = grow_and_check(&rig, power_of_ten_within(params->n / 10 + 1), &times_ns[0]);
	for (int turn = 0; turn < GROUPS_TURNS && !code; turn++)
		code = grow_and_check(&rig, leaves, &times_ns[turn]);
	int64_t elapsed_ns = groups_median(times_ns, GROUPS_TURNS);
	bench_put_rate(result, (double)tasks_of(leaves), elapsed_ns);
	record_metric(result, "seconds", (double)elapsed_ns / 1e9);
	bench_put_memory(result);
	return rig_close(&rig, code);
}
