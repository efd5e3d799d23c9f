/* SPDX-License-Identifier: MIT */
/* Hello: a task is a function and a pointer; the caller of hive_run() is the main worker. */
#include <rophive/hive.h>
#include <stdio.h>

static void hello(void *arg)
{
	printf("hello from worker %u\n", hive_worker_current());
	hive_stop(arg, HIVE_DRAIN, HIVE_FOREVER);
}

int main(void)
{
	struct hive_options options = { .io_workers = 1 };
	struct hive *hive;

	if (hive_create(&options, &hive) < 0 || hive_post(hive, hello, hive) < 0)
		return 1;
	int r = hive_run(hive);
	hive_destroy(hive);
	return r < 0;
}
