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
	uint64_t reserved[16];
};

struct hive_worker_stats {
	uint32_t worker, kind;
	char name[32], core[16];
	uint64_t beats, ran, stolen, spilled, woken, sleeps, spins, events, timers_fired;
	uint64_t local, private_tasks, timers, sources; /* at this moment */
	int64_t asleep_ns;
	uint64_t reserved[16];
};

enum hive_format { HIVE_FORMAT_TEXT = 0, HIVE_FORMAT_JSON = 1 };

/* Any thread. */
int hive_stats_read(const struct hive *hive, struct hive_stats *ret_stats);
/* Any thread. -ESRCH: no such worker. */
int hive_worker_stats_read(const struct hive *hive, uint32_t worker, struct hive_worker_stats *ret_stats);
/* Any thread. Hive and all workers, written to fd. System codes of write(). */
int hive_stats_write(const struct hive *hive, int fd, enum hive_format format);
HIVE_END
