/* SPDX-License-Identifier: MIT */
#pragma once
#include "rig.h"
#include "sync.h"

/* Chains of CPU hogs: each burns 2 ms of CPU time on a compute worker and posts its successor. CPU time, not time of
 * day: a hog that is interrupted has to make up for it, so hogs a second say how much CPU they got.                 */
#define HOGS_CHAINS 8
#define HOGS_CPU_NS HIVE_MS(2)

struct hogs {
	struct hive *hive;
	atomic_bool stop;
	atomic_int chains;
	_Atomic int64_t done;
};

int hogs_start(struct hogs *hogs, struct rig *rig);
int hogs_start_chains(struct hogs *hogs, struct rig *rig, int chains);
/* Until no chain is left. */
int hogs_stop(struct hogs *hogs);
int64_t hogs_done(const struct hogs *hogs);
