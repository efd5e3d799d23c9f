/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

struct hive_process_options;

/* Any thread that may block. A program in a new process: 0, its id, and our ends of its pipes; or what the system said, and there is
 * none.                                                                                                                         */
int hive__spawn(const char *const *argv, const struct hive_process_options *options, pid_t *ret_pid, int ret_fds[3]);
/* -EINVAL: what is asked for makes no sense. */
int hive__spawn_check(const char *const *argv, const struct hive_process_options *options);
