/* SPDX-License-Identifier: MIT */
#pragma once
/* An operation that knows what its on_done must be like: exactly once (or with a negative result last), on an IO worker of its hive,
 * never inside a starter or a cancel, never inside of another one.                                                         */
#include <poll.h>
#include <stdatomic.h>

#include "support/net.h"

struct shot {
	struct hive_op op;
	struct hive *hive;
	struct gate done;
	atomic_int told;  /* calls of on_done */
	atomic_int ended; /* of these the last one */
	int64_t result;
	uint32_t worker;                                 /* where it was told */
	void (*then)(struct shot *shot, int64_t result); /* in on_done, before the gate */
	int number;
	unsigned char byte;
};

static _Thread_local __attribute__((unused)) int shot_inside, shot_depth, shot_r;

/* A call of the library in which no on_done may run. */
#define SHOT_CALL(call) (shot_inside++, shot_r = (call), shot_inside--, shot_r)

static inline void shot_check_place(const struct shot *shot)
{
	struct hive_worker_stats stats;

	CHECK(hive_current() == shot->hive);
	if (hive_worker_stats_read(shot->hive, hive_worker_current(), &stats) == 0) /* else it leaves */
		CHECK_EQ(stats.kind, HIVE_WORKER_IO);
}

static inline void shot_done(struct hive_op *op, int64_t result)
{
	struct shot *shot = op->arg;
	bool last = !op->repeat || result < 0;

	CHECK(op == &shot->op && op->result == result);
	CHECK_EQ(shot_inside, 0);
	CHECK_EQ(shot_depth++, 0);
	shot_check_place(shot);
	CHECK_EQ(atomic_load(&shot->ended), 0);
	shot->result = result;
	shot->worker = hive_worker_current();
	atomic_fetch_add(&shot->told, 1);
	if (last)
		atomic_fetch_add(&shot->ended, 1);
	if (shot->then)
		shot->then(shot, result);
	shot_depth--;
	if (last)
		gate_open(&shot->done);
}

static inline void shot_init(struct shot *shot, struct hive *hive)
{
	memset(shot, 0, sizeof *shot);
	shot->hive = hive;
	gate_init(&shot->done);
	hive_op_init(&shot->op, hive, shot_done, shot);
}

/* Waits for its end. */
static inline int64_t shot_wait(struct shot *shot)
{
	gate_pass(&shot->done);
	CHECK_EQ(atomic_load(&shot->ended), 1);
	return shot->result;
}

static inline int64_t shot_end(struct shot *shot)
{
	int64_t result = shot_wait(shot);

	gate_destroy(&shot->done);
	return result;
}

static inline void shot_again(struct shot *shot)
{
	atomic_store(&shot->told, 0);
	atomic_store(&shot->ended, 0);
}

/* fn(arg) as a task of an IO worker, HIVE_WORKER_NONE: any; when it is back. */
struct shot_task {
	void (*fn)(void *arg);
	void *arg;
	struct gate back;
};

static inline void shot_run(void *arg)
{
	struct shot_task *task = arg;

	task->fn(task->arg);
	gate_open(&task->back);
}

static inline void shot_at(struct hive *hive, uint32_t worker, void (*fn)(void *arg), void *arg)
{
	struct shot_task task = { .fn = fn, .arg = arg };

	gate_init(&task.back);
	CHECK_OK(worker == HIVE_WORKER_NONE ? hive_post(hive, shot_run, &task)
	                                    : hive_post_to(hive, worker, shot_run, &task));
	gate_pass(&task.back);
	gate_destroy(&task.back);
}

static inline uint64_t shot_beats(struct hive *hive)
{
	struct hive_worker_stats stats;
	uint64_t beats = 0;
	uint32_t ids[16];
	size_t n = hive_workers(hive, ids, 16);

	for (size_t i = 0; i < n && i < 16; i++)
		if (hive_worker_stats_read(hive, ids[i], &stats) == 0)
			beats += stats.beats;
	return beats;
}

/* How many beats there are while nothing is to be done, in a twentieth of a second. One that spins makes tens of thousands. */
static inline uint64_t shot_restless(struct hive *hive)
{
	uint64_t before = shot_beats(hive);
	int64_t until = hive_now(NULL) + HIVE_MS(50);

	while (hive_now(NULL) < until)
		poll(NULL, 0, 1);
	return shot_beats(hive) - before;
}

enum { SHOT_RESTFUL = 200 };

#define EACH_CORE(i) for (int i = 0; i < core_count(); i++)
