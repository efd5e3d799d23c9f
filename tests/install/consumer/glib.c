/* SPDX-License-Identifier: MIT */
/* An outside program whose worker waits in GLib's main loop: one task there, then the library's version. */
#include <rophive/glib.h>
#include <rophive/hive.h>

#include <stdio.h>

static void end(void *arg)
{
	printf("%s\n", hive_version());
	hive_stop(arg, HIVE_DRAIN, HIVE_FOREVER);
}

int main(void)
{
	struct hive_worker_options ui = { .core = hive_core_glib() };
	struct hive_options options = { .io_workers = 1, .io = &ui };
	struct hive *hive;

	if (hive_create(&options, &hive) != 0 || hive_post(hive, end, hive) != 0 || hive_run(hive) != 0)
		return 1;
	return hive_destroy(hive) != 0;
}
