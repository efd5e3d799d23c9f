/* SPDX-License-Identifier: MIT */
#pragma once
/* One who receives again and again into buffers of a pool. What is sent to him is a stream of known bytes: he has to get all of them, in
 * order, once.                                                                                                              */
#include "support/shot.h"

static inline unsigned char tap_byte(size_t at)
{
	return (unsigned char)(at * 7 + (at >> 8));
}

enum { TAP_KEPT = 64 };

struct tap {
	struct hive_op op;
	struct hive *hive;
	struct hive_buffers *pool;
	int fds[2]; /* 0: here; 1: the peer's */
	size_t sent;
	atomic_bool keeps; /* its buffers */
	int cancel_at;
	void *kept[TAP_KEPT];
	atomic_int have, pieces, ended;
	int64_t result;
	struct gate done;
};

static inline void tap_take(struct tap *t, int64_t result)
{
	const unsigned char *bytes = t->op.buffer;
	int have = atomic_load(&t->have), pieces = atomic_load(&t->pieces);

	for (int64_t i = 0; i < result; i++)
		CHECK_EQ(bytes[i], tap_byte((size_t)have + (size_t)i));
	if (t->keeps) {
		CHECK(pieces < TAP_KEPT);
		t->kept[pieces] = t->op.buffer;
	} else {
		CHECK_OK(hive_buffer_return(t->pool, t->op.buffer));
	}
	atomic_store(&t->have, have + (int)result);
	atomic_store(&t->pieces, pieces + 1);
	if (pieces + 1 == t->cancel_at)
		CHECK_OK(SHOT_CALL(hive_op_cancel(&t->op)));
}

static inline void tap_told(struct hive_op *op, int64_t result)
{
	struct tap *t = op->arg;

	CHECK(op == &t->op && op->result == result);
	CHECK(hive_current() == t->hive);
	CHECK_EQ(shot_inside, 0);
	CHECK_EQ(shot_depth++, 0);
	CHECK_EQ(atomic_load(&t->ended), 0);
	if (result > 0)
		tap_take(t, result);
	shot_depth--;
	if (result > 0)
		return;
	t->result = result;
	atomic_store(&t->ended, 1);
	gate_open(&t->done);
}

static inline void tap_init(struct tap *t, struct hive *hive, struct hive_buffers *pool)
{
	memset(t, 0, sizeof *t);
	t->hive = hive;
	t->pool = pool;
	gate_init(&t->done);
	net_pair(t->fds);
	hive_op_init(&t->op, hive, tap_told, t);
}

static inline void tap_start(void *arg)
{
	struct tap *t = arg;

	CHECK_OK(SHOT_CALL(hive_op_recv_many(&t->op, t->fds[0], t->pool, HIVE_FOREVER)));
}

static inline int64_t tap_wait(struct tap *t)
{
	gate_pass(&t->done);
	CHECK_EQ(atomic_load(&t->ended), 1);
	return t->result;
}

static inline void tap_end(struct tap *t)
{
	gate_destroy(&t->done);
	net_close(t->fds);
}

static inline void tap_send(struct tap *t, size_t bytes)
{
	unsigned char text[4096];

	while (bytes > 0) {
		size_t n = bytes < sizeof text ? bytes : sizeof text;
		ssize_t r;

		for (size_t i = 0; i < n; i++)
			text[i] = tap_byte(t->sent + i);
		r = write(t->fds[1], text, n);
		if (r < 0) {
			CHECK_EQ(errno, EAGAIN);
			sched_yield();
			continue;
		}
		t->sent += (size_t)r;
		bytes -= (size_t)r;
	}
}

static inline struct hive_buffers *tap_pool(struct hive *hive, uint32_t count, size_t bytes)
{
	struct hive_buffers *pool = NULL;

	CHECK_OK(hive_buffers_create(hive, count, bytes, &pool));
	return pool;
}
