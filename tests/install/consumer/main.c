/* SPDX-License-Identifier: MIT */
/* An outside program: one task on a hive of two workers, then the library's version. */
#include <rophive/hive.h>

#include <stdio.h>

static void say_and_stop(void *arg)
{
	printf("%s\n", hive_version());
	hive_stop(arg, HIVE_DRAIN, HIVE_FOREVER);
}

int main(void)
{
	struct hive_options options = { .io_workers = 2 };
	struct hive *hive;

	if (hive_create(&options, &hive) != 0)
		return 1;
	if (hive_post(hive, say_and_stop, hive) != 0 || hive_run(hive) != 0)
		return 2;
	return hive_destroy(hive) == 0 ? 0 : 3;
}
