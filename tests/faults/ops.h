/* SPDX-License-Identifier: MIT */
#pragma once
/* The calls of the table in functions.c that are about operations, on a hive of their own: started outside, and by a fiber. Whatever
 * the system says of them is right here; what counts is whether memory was missing.                                       */
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <rophive/io.h>
#include <rophive/process.h>

#include "fibers.h"

static char op_bytes[16];
static struct iovec op_part = { op_bytes, 8 };
static struct msghdr op_message = { .msg_iov = &op_part, .msg_iovlen = 1 };
static struct hive_address op_nowhere = { .bytes = 2 };
static struct statx op_about;
static const int op_signals[] = { SIGUSR1 };
static const char *const op_argv[] = { "true", NULL };

/* `r`: what its starter said. It has to end, cancelled if need be. */
static int op_told(struct world *w, struct hive_op *op, int r)
{
	int64_t result;

	if (r < 0)
		return r;
	hive_sim_advance(w->sim, 0);
	hive_op_cancel(op);
	result = hive_op_wait(op);
	return result == -ENOMEM ? -ENOMEM : 0;
}

#define OP_CALL(NAME, ...)                                                             \
	static int op_##NAME(struct world *w)                                          \
	{                                                                              \
		struct hive_op op;                                                     \
                                                                                       \
		hive_op_init(&op, w->extra, NULL, NULL);                               \
		return op_told(w, &op, hive_op_##NAME(&op, __VA_ARGS__, HIVE_S(9)));   \
	}                                                                              \
	static int op_##NAME##_here(void *arg)                                         \
	{                                                                              \
		struct world *w = arg;                                                 \
		struct hive_op op;                                                     \
		int r;                                                                 \
                                                                                       \
		hive_op_init(&op, w->extra, NULL, NULL);                               \
		r = hive_op_##NAME(&op, __VA_ARGS__, hive_deadline(NULL, HIVE_MS(1))); \
		if (r == 0)                                                            \
			r = hive_op_wait(&op) == -ENOMEM ? -ENOMEM : 0;                \
		return r;                                                              \
	}                                                                              \
	static int op_##NAME##_in_fiber(struct world *w)                               \
	{                                                                              \
		return in_fiber(w, op_##NAME##_here, w);                               \
	}

OP_CALL(accept, w->fds[0], 0)
OP_CALL(connect, w->fds[0], &op_nowhere)
OP_CALL(recv, w->fds[0], op_bytes, 8)
OP_CALL(send, w->fds[0], op_bytes, 8)
OP_CALL(recvmsg, w->fds[0], &op_message, 0)
OP_CALL(sendmsg, w->fds[0], &op_message, 0)
OP_CALL(read, w->fds[0], op_bytes, 8, -1)
OP_CALL(write, w->fds[19], op_bytes, 8, -1)
OP_CALL(readv, w->fds[0], &op_part, 1, -1)
OP_CALL(writev, w->fds[19], &op_part, 1, -1)
OP_CALL(splice, w->fds[0], -1, w->fds[1], -1, 8)
OP_CALL(poll, w->fds[0], HIVE_EVENT_IN, 0)
OP_CALL(shutdown, w->fds[0], SHUT_WR)
OP_CALL(open, AT_FDCWD, "/nowhere/at/all", O_RDONLY, 0)
OP_CALL(close, 987654)
OP_CALL(fsync, w->fds[0], false)
OP_CALL(statx, AT_FDCWD, "/nowhere/at/all", 0, &op_about)
OP_CALL(unlink, AT_FDCWD, "/nowhere/at/all", 0)
OP_CALL(rename, AT_FDCWD, "/nowhere/at/all", AT_FDCWD, "/nowhere/else")
OP_CALL(mkdir, AT_FDCWD, "/nowhere/at/all", 0700)

OP_CALL(resolve, "nobody.test", 80, &op_nowhere, 1)
OP_CALL(dial, "127.0.0.1", 1, NULL)
OP_CALL(process_wait, 1)
OP_CALL(signal_wait, op_signals, 1)

static int op_process_start(struct world *w)
{
	struct hive_op op;
	int process;

	hive_op_init(&op, w->extra, NULL, NULL);
	return op_told(w, &op, hive_op_process_start(&op, op_argv, NULL, &process));
}

/* One that repeats, and has something to read. */
struct op_pieces {
	struct hive_op op;
	struct hive_buffers *pool;
	int64_t last;
	bool over;
};

static void op_piece(struct hive_op *op, int64_t result)
{
	struct op_pieces *p = op->arg;

	if (result > 0)
		CHECK_OK(hive_buffer_return(p->pool, op->buffer));
	p->over = result <= 0;
	p->last = result;
}

static void op_heard(struct hive_op *op, int64_t result)
{
	struct op_pieces *p = op->arg;

	p->over = result < 0;
	p->last = result;
}

static int op_recv_many(struct world *w)
{
	struct op_pieces p = { .last = 0 };
	int fds[2], r = hive_buffers_create(w->extra, 2, 100, &p.pool);

	if (r < 0)
		return r;
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
	CHECK_EQ(write(fds[1], op_bytes, 8), 8);
	hive_op_init(&p.op, w->extra, op_piece, &p);
	r = hive_op_recv_many(&p.op, fds[0], p.pool, HIVE_FOREVER);
	if (r == 0) {
		hive_sim_advance(w->sim, HIVE_MS(1));
		hive_op_cancel(&p.op);
		hive_sim_advance(w->sim, HIVE_MS(1));
		CHECK(p.over);
		r = p.last == -ENOMEM ? -ENOMEM : 0;
	}
	CHECK_OK(hive_buffers_destroy(p.pool));
	CHECK_OK(close(fds[0]));
	CHECK_OK(close(fds[1]));
	return r;
}

/* What a core calls. */
static int deliver_op_here(void *arg)
{
	struct world *w = arg;
	struct op_pieces p = { .last = 0 };
	int r;

	hive_op_init(&p.op, w->extra, op_heard, &p);
	r = hive_op_poll(&p.op, w->fds[0], HIVE_EVENT_IN, HIVE_OP_REPEAT, HIVE_FOREVER);
	if (r < 0)
		return r;
	hive_yield();
	if (!p.over)
		hive_op_deliver(&p.op, HIVE_EVENT_IN, true);
	CHECK(p.last != 0);
	hive_op_cancel(&p.op);
	while (!p.over)
		hive_yield();
	return p.last == -ENOMEM ? -ENOMEM : 0;
}

static int deliver_op(struct world *w)
{
	return in_fiber(w, deliver_op_here, w);
}

#define IO_CALL(NAME, ...)                                                                                 \
	static int io_##NAME##_here(void *arg)                                                             \
	{                                                                                                  \
		struct world *w = arg;                                                                     \
                                                                                                           \
		(void)w;                                                                                   \
		return hive_##NAME(__VA_ARGS__, hive_deadline(NULL, HIVE_MS(1))) == -ENOMEM ? -ENOMEM : 0; \
	}                                                                                                  \
	static int io_##NAME(struct world *w)                                                              \
	{                                                                                                  \
		return in_fiber(w, io_##NAME##_here, w);                                                   \
	}

IO_CALL(accept, w->fds[0])
IO_CALL(connect, w->fds[0], &op_nowhere)
IO_CALL(recv, w->fds[0], op_bytes, 8)
IO_CALL(send, w->fds[0], op_bytes, 8)
IO_CALL(recvfrom, w->fds[0], op_bytes, 8, &op_nowhere)
IO_CALL(sendto, w->fds[0], op_bytes, 8, &op_nowhere)
IO_CALL(recvmsg, w->fds[0], &op_message, 0)
IO_CALL(sendmsg, w->fds[0], &op_message, 0)
IO_CALL(read, w->fds[0], op_bytes, 8, -1)
IO_CALL(write, w->fds[19], op_bytes, 8, -1)
IO_CALL(readv, w->fds[0], &op_part, 1, -1)
IO_CALL(writev, w->fds[19], &op_part, 1, -1)
IO_CALL(splice, w->fds[0], -1, w->fds[1], -1, 8)
IO_CALL(poll_fd, w->fds[0], HIVE_EVENT_IN)
IO_CALL(shutdown, w->fds[0], SHUT_WR)
IO_CALL(open, AT_FDCWD, "/nowhere/at/all", O_RDONLY, 0)
IO_CALL(close, 987654)
IO_CALL(fsync, w->fds[0], false)
IO_CALL(statx, AT_FDCWD, "/nowhere/at/all", 0, &op_about)
IO_CALL(unlink, AT_FDCWD, "/nowhere/at/all", 0)
IO_CALL(rename, AT_FDCWD, "/nowhere/at/all", AT_FDCWD, "/nowhere/else")
IO_CALL(mkdir, AT_FDCWD, "/nowhere/at/all", 0700)
IO_CALL(recv_all, w->fds[0], op_bytes, 8)
IO_CALL(send_all, w->fds[0], op_bytes, 8)

static int op_hang_up(int fd, void *arg)
{
	(void)arg;
	return close(fd);
}

IO_CALL(serve, w->extra, w->fds[0], NULL, op_hang_up, NULL)

#define OP_ROWS(NAME)                                                   \
	{ "hive_op_" #NAME, NO_HIVE, EITHER, op_##NAME, warm_runtime }, \
		{ "hive_op_" #NAME, NO_HIVE, EITHER, op_##NAME##_in_fiber, warm_runtime },
/* A simulated hive refuses them, or knows no such child: only their fiber may need memory. */
#define SERVED_ROWS(NAME)                                               \
	{ "hive_op_" #NAME, NO_HIVE, EITHER, op_##NAME, make_runtime }, \
		{ "hive_op_" #NAME, NO_HIVE, SILENT, op_##NAME##_in_fiber, warm_runtime },
#define IO_ROW(NAME) { "hive_" #NAME, NO_HIVE, EITHER, io_##NAME, warm_runtime },
