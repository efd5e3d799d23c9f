/* SPDX-License-Identifier: MIT */
/* Graceful stop: drain until a deadline; every task that did not run goes through the drop hook, and the report balances. */
#include <rophive/hive.h>
#include <stdio.h>
#include <stdlib.h>

static void use(void *arg)
{
	free(arg);
}

static void dropped(void *hook_arg, const struct hive_task *task)
{
	++*(int *)hook_arg;
	if (task->fn == use) /* the function tells what the argument is */
		free(task->arg);
}

int main(void)
{
	int drops = 0;
	struct hive_options options = { .io_workers = 2, .on_drop = dropped, .hook_arg = &drops };
	struct hive_report report;
	struct hive *hive;

	if (hive_create(&options, &hive) < 0 || hive_start(hive) < 0)
		return 1;
	for (int i = 0; i < 1000; i++) {
		char *item = malloc(64);

		if (hive_post_after(hive, HIVE_MS(i), use, item, NULL) < 0)
			free(item); /* refused: still ours */
	}
	hive_stop(hive, HIVE_DRAIN, hive_deadline(hive, HIVE_MS(50)));
	hive_join(hive, HIVE_FOREVER);
	hive_report_read(hive, &report);
	printf("ran %llu, dropped %llu = %d, %s\n", (unsigned long long)report.ran, (unsigned long long)report.dropped,
	       drops, report.deadline_missed ? "late" : "in time");
	return hive_destroy(hive) < 0 || report.posted != report.ran + report.dropped;
}
