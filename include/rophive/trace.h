/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/stats.h>

/* What a hive is doing, for people who look for the reason why it does not do something else. */
HIVE_BEGIN
/* Any thread, also a signal handler. State and queue lengths of the hive and of every worker, the task that each ran last and
 * the last things it did; each fiber, what it waits for (and for whom, where that can be said), its stack, where it stands: as text to fd.
 * Takes no lock and no memory, so it works on a hive that hangs; what changes meanwhile is told as it was seen. -EINVAL, system
 * codes of write().                                                                                                      */
int hive_dump(const struct hive *hive, int fd);
HIVE_END
