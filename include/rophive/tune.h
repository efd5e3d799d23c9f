/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/task.h>

/* Parameters from outside: what `hive tune` wants to try reaches a program by the environment. */
HIVE_BEGIN
struct hive_options;
struct hive_worker_options;

/* Any thread. Sets the fields that HIVE_TUNE in the environment names: "pool_batch=32,spin_ns=off,order=oldest"; the others stay, and
 * all of them if there is no such variable. Either may be NULL: then what is meant for it is read and left out; so is `timers` for
 * a compute worker, which has none. -EINVAL: a name or a value that nobody knows, or one that does not fit; then nothing was set.
 * Whether the values suit each other is said by hive_create() and hive_attach(). Not while another thread changes the environment. */
HIVE_CHECKED int hive_tune_options(struct hive_worker_options *worker, struct hive_options *hive);
HIVE_END
