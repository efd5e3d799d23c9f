/* SPDX-License-Identifier: MIT */
/* Statistics: a snapshot per worker as plain numbers, or everything as text or JSON. */
#include <rophive/hive.h>
#include <stdio.h>

static void work(void *arg)
{
	(void)arg;
}

int main(void)
{
	struct hive_options options = { .io_workers = 2, .compute_workers = 1 };
	struct hive *hive;
	uint32_t ids[64];

	if (hive_create(&options, &hive) < 0 || hive_start(hive) < 0)
		return 1;
	for (int i = 0; i < 100000; i++)
		if (hive_post(hive, work, NULL) < 0)
			return 1;
	size_t n = hive_workers(hive, ids, 64);
	for (size_t i = 0; i < n && i < 64; i++) {
		struct hive_worker_stats s;

		if (hive_worker_stats_read(hive, ids[i], &s) == 0)
			printf("%-12s %-6s ran %8llu stolen %6llu asleep %5.1f ms\n", s.name, s.core,
			       (unsigned long long)s.ran, (unsigned long long)s.stolen, (double)s.asleep_ns / 1e6);
	}
	fflush(stdout);
	hive_stats_write(hive, 1, HIVE_FORMAT_JSON);
	hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER);
	hive_join(hive, HIVE_FOREVER);
	return hive_destroy(hive) < 0;
}
