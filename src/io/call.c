/* SPDX-License-Identifier: MIT */
/* The calls for fibers: an operation on the caller's stack, and a wait for it. Who is no fiber blocks, in his own thread. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <rophive/hive.h>
#include <rophive/io.h>

#include "io/op.h"
#include "io/try.h"

/* ---- in a thread ---- */

static int64_t left(int64_t deadline_ns)
{
	int64_t now = deadline_ns == HIVE_FOREVER ? 0 : hive_now(NULL);

	return deadline_ns == HIVE_FOREVER ? HIVE_FOREVER : deadline_ns > now ? deadline_ns - now : 0;
}

static int64_t block(struct hive_op *op, int64_t deadline_ns)
{
	bool was_ready = false;
	int64_t r;

	for (;;) {
		bool blocks = op_blocks(op);
		struct pollfd ready;
		uint32_t events;

		r = blocks ? hive__op_block(op) : hive__op_try(op);
		if (r != -EAGAIN || (blocks && op_blocks(op)))
			return r;
		if (left(deadline_ns) == 0)
			return -ETIMEDOUT;
		events = op_events(op);
		ready = (struct pollfd){ .fd = op_waits_at(op),
			                 .events = (short)((events & HIVE_EVENT_IN ? POLLIN : 0) |
			                                   (events & HIVE_EVENT_OUT ? POLLOUT : 0) |
			                                   (events & HIVE_EVENT_PRI ? POLLPRI : 0)) };
		if (op_blocks(op))
			continue;
		if (was_ready) /* as it was said to be, and yet it was not: no event tells */
			poll(NULL, 0, 1);
		was_ready = poll(&ready, 1, hive_poll_ms(left(deadline_ns))) > 0;
	}
}

/* ---- in a task ---- */

static inline int64_t late_if_not_yet(int64_t result)
{
	return result == -EAGAIN ? -ETIMEDOUT : result;
}

/* ---- in a fiber ---- */

enum where { IN_THREAD, IN_FIBER, IN_TASK };

/* An op without a hive is filled by its starter, and not begun. */
static enum where prepare(struct hive_op *op)
{
	struct guest_place *place = hive__place();
	bool fiber = place && place->now;

	hive_op_init(op, fiber ? place->hive : NULL, NULL, NULL);
	return !place ? IN_THREAD : fiber ? IN_FIBER : IN_TASK;
}

/* Whoever always finds at once what he asks for would keep his worker, and those who wait there would wait for ever. */
static int64_t take_turns(int64_t result, int64_t deadline_ns)
{
	struct guest_place *place = hive__place();
	struct desk *desk = place ? (struct desk *)place->cache[GUESTS_IO] : NULL;

	if (desk && desk_counts(desk, result) && deadline_ns != HIVE_NOWAIT)
		hive_yield();
	return result;
}

/* `begun`: what the starter said. The result. */
static int64_t settle(struct hive_op *op, enum where here, int begun, int64_t deadline_ns)
{
	if (op->code == 0)
		return begun; /* refused for its arguments */
	if (here == IN_TASK && (left(deadline_ns) > 0 || op_blocks(op)))
		return -EDEADLK;
	if (here == IN_TASK)
		return late_if_not_yet(hive__op_try(op));
	if (here == IN_THREAD)
		return block(op, deadline_ns);
	if (begun < 0)
		return begun == -ESHUTDOWN ? -ECANCELED : begun;
	return op->at_once ? take_turns(op->result, deadline_ns) : hive_op_wait(op);
}

#define CALL(starter, ...)              \
	struct hive_op op;              \
	enum where here = prepare(&op); \
	int64_t result = settle(&op, here, starter(&op, __VA_ARGS__, deadline_ns), deadline_ns)

int hive_accept(int fd, int64_t deadline_ns)
{
	CALL(hive_op_accept, fd, 0);
	return (int)result;
}

int hive_connect(int fd, const struct hive_address *to, int64_t deadline_ns)
{
	CALL(hive_op_connect, fd, to);
	return (int)result;
}

/* What a callback asks for most, and has at once mostly. What is odd goes the way of all others, to be told so. */
static inline bool is_glance(int fd, const void *buffer, int64_t deadline_ns)
{
	struct guest_place *place = deadline_ns == HIVE_NOWAIT && fd >= 0 && buffer ? hive__place() : NULL;

	return place && !place->now;
}

/* hive_recv() and hive_send(): sit.c */
int64_t hive__recv_by_op(int fd, void *buffer, size_t bytes, int64_t deadline_ns)
{
	if (is_glance(fd, buffer, deadline_ns))
		return late_if_not_yet(try_recv(fd, buffer, bytes));
	CALL(hive_op_recv, fd, buffer, bytes);
	return result;
}

int64_t hive__send_by_op(int fd, const void *buffer, size_t bytes, int64_t deadline_ns)
{
	if (is_glance(fd, buffer, deadline_ns))
		return late_if_not_yet(try_send(fd, buffer, bytes));
	CALL(hive_op_send, fd, buffer, bytes);
	return result;
}

int64_t hive_recvmsg(int fd, struct msghdr *message, int flags, int64_t deadline_ns)
{
	CALL(hive_op_recvmsg, fd, message, flags);
	return result;
}

int64_t hive_sendmsg(int fd, const struct msghdr *message, int flags, int64_t deadline_ns)
{
	CALL(hive_op_sendmsg, fd, message, flags);
	return result;
}

int64_t hive_read(int fd, void *buffer, size_t bytes, int64_t offset, int64_t deadline_ns)
{
	CALL(hive_op_read, fd, buffer, bytes, offset);
	return result;
}

int64_t hive_write(int fd, const void *buffer, size_t bytes, int64_t offset, int64_t deadline_ns)
{
	CALL(hive_op_write, fd, buffer, bytes, offset);
	return result;
}

int64_t hive_readv(int fd, const struct iovec *parts, int count, int64_t offset, int64_t deadline_ns)
{
	CALL(hive_op_readv, fd, parts, count, offset);
	return result;
}

int64_t hive_writev(int fd, const struct iovec *parts, int count, int64_t offset, int64_t deadline_ns)
{
	CALL(hive_op_writev, fd, parts, count, offset);
	return result;
}

int64_t hive_splice(int from, int64_t from_offset, int to, int64_t to_offset, size_t bytes, int64_t deadline_ns)
{
	CALL(hive_op_splice, from, from_offset, to, to_offset, bytes);
	return result;
}

int hive_poll_fd(int fd, uint32_t events, int64_t deadline_ns)
{
	CALL(hive_op_poll, fd, events, 0);
	return (int)result;
}

int hive_shutdown(int fd, int how, int64_t deadline_ns)
{
	CALL(hive_op_shutdown, fd, how);
	return (int)result;
}

int hive_open(int dir, const char *path, int flags, uint32_t mode, int64_t deadline_ns)
{
	CALL(hive_op_open, dir, path, flags, mode);
	return (int)result;
}

/* Whoever is cancelled, or has no memory for an operation, has to tidy up all the same. */
int hive_close(int fd, int64_t deadline_ns)
{
	struct hive_op op;
	enum where here = prepare(&op);
	int begun = hive_op_close(&op, fd, deadline_ns);
	int64_t result = settle(&op, here, begun, deadline_ns);

	if (result == -ECANCELED || (begun == 0 && here == IN_FIBER && op.result == -ECANCELED) ||
	    (begun == -ENOMEM && here == IN_FIBER))
		result = hive__op_block(&op);
	return (int)result;
}

int hive_fsync(int fd, bool data_only, int64_t deadline_ns)
{
	CALL(hive_op_fsync, fd, data_only);
	return (int)result;
}

int hive_statx(int dir, const char *path, int flags, struct statx *ret, int64_t deadline_ns)
{
	CALL(hive_op_statx, dir, path, flags, ret);
	return (int)result;
}

int hive_unlink(int dir, const char *path, int flags, int64_t deadline_ns)
{
	CALL(hive_op_unlink, dir, path, flags);
	return (int)result;
}

int hive_rename(int from, const char *old_path, int to, const char *new_path, int64_t deadline_ns)
{
	CALL(hive_op_rename, from, old_path, to, new_path);
	return (int)result;
}

int hive_mkdir(int dir, const char *path, uint32_t mode, int64_t deadline_ns)
{
	CALL(hive_op_mkdir, dir, path, mode);
	return (int)result;
}

/* ---- made of these ---- */

int64_t hive_recvfrom(int fd, void *buffer, size_t bytes, struct hive_address *ret_from, int64_t deadline_ns)
{
	struct iovec part = { buffer, bytes };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	int64_t r;

	if (!buffer && bytes > 0)
		return -EINVAL;
	if (ret_from) {
		message.msg_name = ret_from->storage;
		message.msg_namelen = sizeof ret_from->storage;
	}
	r = hive_recvmsg(fd, &message, 0, deadline_ns);
	if (r < 0)
		return r;
	if (ret_from)
		ret_from->bytes = message.msg_namelen;
	return message.msg_flags & MSG_TRUNC ? -EMSGSIZE : r;
}

int64_t hive_sendto(int fd, const void *buffer, size_t bytes, const struct hive_address *to, int64_t deadline_ns)
{
	struct iovec part = { (void *)(uintptr_t)buffer, bytes };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if ((to && to->bytes > sizeof to->storage) || (!buffer && bytes > 0))
		return -EINVAL;
	if (to) {
		message.msg_name = (void *)(uintptr_t)to->storage;
		message.msg_namelen = to->bytes;
	}
	return hive_sendmsg(fd, &message, 0, deadline_ns);
}

int hive_recv_all(int fd, void *buffer, size_t bytes, int64_t deadline_ns)
{
	char *at = (char *)buffer;

	while (bytes > 0) {
		int64_t n = hive_recv(fd, at, bytes, deadline_ns);

		if (n <= 0)
			return n < 0 ? (int)n : -ENODATA;
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

int hive_send_all(int fd, const void *buffer, size_t bytes, int64_t deadline_ns)
{
	const char *at = (const char *)buffer;

	while (bytes > 0) {
		int64_t n = hive_send(fd, at, bytes, deadline_ns);

		if (n < 0)
			return (int)n;
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}
