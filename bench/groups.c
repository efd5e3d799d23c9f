/* SPDX-License-Identifier: MIT */
#include "groups.h"

int groups_open(struct rig *rig, const struct bench_params *params)
{
	return rig_open(rig, params, 1, params->threads);
}

int64_t groups_time(const struct rig *rig, hive_fn *fn, void *arg)
{
	struct hive_group group;
	int64_t begin = sync_now();
	hive_group_init(&group, rig->hive, HIVE_COMPUTE);
	hive_group_run(&group, fn, arg);
	hive_group_wait(&group, HIVE_FOREVER);
	return sync_now() - begin;
}

int64_t groups_median(int64_t *times_ns, size_t count)
{
	for (size_t i = 1; i < count; i++)
		for (size_t at = i; at > 0 && times_ns[at - 1] > times_ns[at]; at--) {
			int64_t other = times_ns[at];
			times_ns[at] = times_ns[at - 1];
			times_ns[at - 1] = other;
		}
	return times_ns[count / 2];
}
