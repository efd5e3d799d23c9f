/* SPDX-License-Identifier: MIT */
/* Workers come and go: attach one of another kind while the hive runs, detach it without losing its tasks, follow the
 * CPU quota; a stale id is refused and never reaches a stranger.                                                          */
#include <rophive/hive.h>
#include <stdio.h>

static void nothing(void *arg)
{
	(void)arg;
}

int main(void)
{
	const struct hive_core_ops *poll_core;
	struct hive_options options = { .io_workers = 2, .compute_workers = 1 };
	struct hive *hive;
	uint32_t extra;

	if (hive_create(&options, &hive) < 0 || hive_start(hive) < 0 || hive_core_find("poll", &poll_core) < 0)
		return 1;
	struct hive_worker_options odd = { .name = "serial-port", .core = poll_core, .no_steal = true };
	if (hive_attach(hive, &odd, &extra) < 0 || hive_post_to(hive, extra, nothing, NULL) < 0)
		return 1;
	printf("%zu workers\n", hive_workers(hive, NULL, 0));
	hive_detach(hive, extra, HIVE_FOREVER);
	printf("a late post: %s\n", hive_error_name(hive_post_to(hive, extra, nothing, NULL)));
	if (hive_resize(hive, 2, HIVE_AUTO, HIVE_FOREVER) <
	    0) /* from now on as many compute workers as the quota gives */
		return 1;
	printf("%zu workers\n", hive_workers(hive, NULL, 0));
	hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER);
	hive_join(hive, HIVE_FOREVER);
	return hive_destroy(hive) < 0;
}
