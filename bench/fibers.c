/* SPDX-License-Identifier: MIT */
#include "fibers.h"

/* Joined from outside and not by hive_block_on(): that one keeps track of all descendants, which peers do not do, and waits for
 * them even after its deadline.                                                                                          */
int fibers_run(struct rig *rig, hive_fiber_fn *fn, void *arg)
{
	struct hive_fiber *fiber;
	int result = 0;
	int error = hive_spawn(rig->hive, fn, arg, NULL, &fiber);
	if (error)
		return bench_failed("hive_spawn", error);
	error = hive_fiber_join(fiber, hive_deadline(rig->hive, BENCH_PATIENCE_NS), &result);
	if (error == -ETIMEDOUT)
		return bench_timeout("the first fiber", 1, 0);
	if (error)
		return bench_failed("hive_fiber_join", error);
	return result < 0 ? bench_failed("a fiber", result) : BENCH_OK;
}

int fibers_spawn_and_join(hive_fiber_fn *fn, void *arg, size_t step, int32_t count, struct hive_fiber **handles)
{
	struct hive *hive = hive_current();
	int first_error = 0;
	int32_t spawned = 0;
	for (; spawned < count && !first_error; spawned++)
		first_error = hive_spawn(hive, fn, (char *)arg + (size_t)spawned * step, NULL, &handles[spawned]);
	if (first_error)
		spawned--;
	for (int32_t i = 0; i < spawned; i++) {
		int result = 0;
		int error = hive_fiber_join(handles[i], HIVE_FOREVER, &result);
		if (!first_error)
			first_error = error ? error : result < 0 ? result : 0;
	}
	return first_error;
}
