/* SPDX-License-Identifier: MIT */
#pragma once
/* Many receives at once on a rig with a ring that is too small for them. */
#include <rophive/io.h>

#include "support/cores.h"
#include "support/real.h"

struct call {
	struct hive_op op;
	char byte;
	int done;
	int64_t result;
};
static int calls_over;

/* A ring of so many entries, and the test is its worker. False: this build or this kernel has none, which was said. */
static inline bool calls_open(struct rig *r, int32_t entries)
{
	const struct hive_core_ops *core;

	if (hive_core_find("uring", &core) < 0) {
		test_skip("no io_uring here");
		return false;
	}
	rig_open_with(r, "uring", (struct hive_worker_options){ .ring_entries = entries });
	return true;
}

static inline void call_done(struct hive_op *op, int64_t result)
{
	struct call *call = op->arg;

	call->done++;
	call->result = result;
	calls_over++;
}

static inline void calls_begin(struct rig *r, struct call *calls, int count, int fd)
{
	calls_over = 0;
	memset(calls, 0, (size_t)count * sizeof *calls);
	for (int i = 0; i < count; i++) {
		hive_op_init(&calls[i].op, r->l.f.hive, call_done, &calls[i]);
		CHECK_OK(hive_op_recv(&calls[i].op, fd, &calls[i].byte, 1, HIVE_FOREVER));
	}
}

static inline void calls_turn_until(struct rig *r, int count, int64_t timeout_ns)
{
	STEP_UNTIL(calls_over >= count, rig_turn(r, timeout_ns));
}
