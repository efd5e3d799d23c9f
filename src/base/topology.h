/* SPDX-License-Identifier: MIT */
#pragma once
/* Which CPUs stand near each other: what they share, as sysfs tells it. What cannot be read is unknown, and then all are equally
 * far. CPUs beyond the table are unknown, too.                                                                          */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOPOLOGY_CPUS = 1024 };
enum { TOPOLOGY_CORE, TOPOLOGY_L2, TOPOLOGY_L3, TOPOLOGY_NODE, TOPOLOGY_LEVELS, TOPOLOGY_FAR = TOPOLOGY_LEVELS };

struct topology {
	uint16_t group[TOPOLOGY_LEVELS][TOPOLOGY_CPUS]; /* 1 + the lowest CPU of those that share it; 0: unknown */
};

/* root: "/sys". Never fails: errno stays, and unreadable files leave their level unknown. */
void hive__topology_read(struct topology *t, const char *root);
/* The nearest thing that both share: TOPOLOGY_CORE (also for one and the same) … TOPOLOGY_NODE, or TOPOLOGY_FAR. As long as it is
 * not known on which node either of them is, they are taken for neighbours on one.                                         */
int hive__topology_distance(const struct topology *t, uint32_t a, uint32_t b);
/* An order in which to fill CPUs with workers: one of each core before the second of any. In place. */
void hive__topology_spread(const struct topology *t, uint16_t *cpus, size_t count);
