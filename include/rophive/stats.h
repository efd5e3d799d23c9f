/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/worker.h>

/* Counters are written by their worker alone and read by anyone; a snapshot is per counter exact, across counters
 * close. When the hive is idle or stopped the books balance: posted = ran + dropped + cancelled + waiting.        */
HIVE_BEGIN
struct hive;

struct hive_stats {
	int64_t time_ns;
	uint32_t io_workers, compute_workers, sleeping, searching;
	uint64_t posted, ran, refused, dropped, cancelled;
	uint64_t pool, compute_pool, timers, sources; /* at this moment */
	uint64_t steals, spills, wakes, sleeps;       /* wakes: system calls made to end somebody's sleep */
	uint64_t placed; /* at this moment: sent to workers by load, and not yet taken by them or by others */
	uint64_t stalls,
		rescued; /* workers found stuck in one task; delayed posts and fibers' deadlines that others were given because of that */
	uint64_t compute_high, compute_low; /* at this moment: of compute_pool, at these priorities */
	uint64_t reserved[11];
};

struct hive_worker_stats {
	uint32_t worker, kind;
	char name[32], core[16];
	uint64_t beats, ran, stolen, spilled, woken, sleeps, spins, events, timers_fired;
	uint64_t local, private_tasks, timers, sources; /* at this moment */
	int64_t asleep_ns;
	uint64_t placed;                       /* at this moment: sent to it by load, and not yet taken */
	uint64_t budget;                       /* at this moment: local tasks per beat */
	uint64_t steal_rounds, steal_failures; /* looks at others for something to steal; of these brought nothing */
	uint64_t steal_pauses;                 /* of the CPU, between rounds that failed although there was something */
	uint64_t stolen_far;   /* of `stolen`: from another NUMA node, where distances are known (victim or pin) */
	uint64_t lane_letters; /* that came by lanes of the mesh */
	uint64_t
		lane_falls; /* that it sent by the inbox, although there is a mesh: the lane was full, or not to be had */
	uint64_t lanes;     /* of the mesh, to it: they stay */
	uint64_t in_lanes;   /* at this moment: sent to it by a lane, and not yet taken */
	uint64_t forks;      /* of other workers' groups, that it took over */
	uint64_t frames_cut; /* beats that its frame has ended before all had their turn */
	uint64_t reserved[4];
};

enum hive_format { HIVE_FORMAT_TEXT = 0, HIVE_FORMAT_JSON = 1 };

/* Any thread. */
int hive_stats_read(const struct hive *hive, struct hive_stats *ret_stats);
/* Any thread. -ESRCH: no such worker. */
int hive_worker_stats_read(const struct hive *hive, uint32_t worker, struct hive_worker_stats *ret_stats);
/* Any thread. Hive and all workers, written to fd. System codes of write(). */
int hive_stats_write(const struct hive *hive, int fd, enum hive_format format);
HIVE_END
