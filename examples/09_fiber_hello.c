/* SPDX-License-Identifier: MIT */
/* A fiber: straight-line code that waits without keeping a thread. From main into fibers and back. */
#include <rophive/hive.h>
#include <stdio.h>

static int child(void *arg)
{
	char name[32];

	hive_fiber_name(NULL, name, sizeof name);
	printf("%s: on worker %u\n", name, hive_worker_current());
	hive_sleep(HIVE_MS(20)); /* the worker does something else meanwhile */
	printf("%s: after a wait it may be another one: %u\n", name, hive_worker_current());
	return *(int *)arg * 2;
}

static int hello(void *arg)
{
	struct hive_fiber_options options = { .name = "child" };
	struct hive_fiber *fiber;
	int number = 21, result;

	(void)arg;
	int r = hive_spawn(hive_current(), child, &number, &options, &fiber);
	if (r < 0)
		return r;
	r = hive_fiber_join(fiber, HIVE_FOREVER, &result); /* number stays until then: it is on our stack */
	return r < 0 ? r : result;
}

int main(void)
{
	struct hive *hive;
	int result = 0;

	if (hive_runtime_start(NULL, &hive) < 0 || hive_block_on(hive, hello, NULL, HIVE_FOREVER, &result) < 0)
		return 1;
	printf("the answer is %d\n", result);
	return hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER) < 0 || result != 42;
}
