/* SPDX-License-Identifier: MIT */
#pragma once
/* Trouble on purpose, to see whether frames stay on time. Letters: a  four compute workers for each processor; b  10,000 timers a second on the UI
 * worker; c  100,000 posts a second to the shared pool; d  a task that blocks another IO worker for five seconds.           */
#include <rophive/hive.h>

int32_t load_compute_workers(const char *letters);
/* On the UI worker; it ends with the hive. 0 or -errno. */
int load_start(struct hive *hive, const char *letters);
void load_stop(void);
/* What it has done so far; and whether all that was asked for has done something. */
struct load_figures {
	uint64_t timers, posts, blocked;
};
struct load_figures load_read(void);
bool load_came(const char *letters);
