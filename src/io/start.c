/* SPDX-License-Identifier: MIT */
/* The starters: each fills an operation, and begins it. */
#include <rophive/io.h>
#include <rophive/op.h>
#include <rophive/process.h>

#include "io/buffers.h"
#include "io/op.h"
#include "io/spawn.h"
#include "io/watch.h"

struct what { /* it is about; zeros for what an operation does not have */
	enum hive_op_code code;
	int fd, fd2;
	uint32_t flags, mode, repeat;
	const void *buffer, *extra;
	uint64_t length;
	int64_t offset, offset2;
};

static int start(struct hive_op *op, struct what what, int64_t deadline_ns)
{
	if (!op_is_valid(op))
		return -EINVAL;
	if (load_relaxed(&op->state) != 0)
		return -EBUSY;
	op->code = what.code;
	op->fd = what.fd;
	op->fd2 = what.fd2;
	op->flags = what.flags;
	op->mode = what.mode;
	op->repeat = what.repeat;
	op->buffer = (void *)(uintptr_t)what.buffer;
	op->extra = (void *)(uintptr_t)what.extra;
	op->length = what.length;
	op->offset = what.offset;
	op->offset2 = what.offset2;
	return hive__op_begin(op, deadline_ns);
}

int hive_op_accept(struct hive_op *op, int fd, uint32_t flags, int64_t deadline_ns)
{
	if (fd < 0 || (flags & ~(uint32_t)HIVE_OP_REPEAT))
		return -EINVAL;
	return start(op, (struct what){ .code = HIVE_OP_ACCEPT, .fd = fd, .repeat = flags }, deadline_ns);
}

int hive__op_accept_alone(struct hive_op *op, int fd, int64_t deadline_ns)
{
	return fd < 0 ? -EINVAL
	              : start(op, (struct what){ .code = HIVE_OP_ACCEPT, .fd = fd, .flags = ACCEPT_ALONE },
	                      deadline_ns);
}

int hive_op_connect(struct hive_op *op, int fd, const struct hive_address *to, int64_t deadline_ns)
{
	if (fd < 0 || !to || to->bytes == 0 || to->bytes > sizeof to->storage)
		return -EINVAL;
	return start(op, (struct what){ .code = HIVE_OP_CONNECT, .fd = fd, .buffer = to }, deadline_ns);
}

static int bytes(struct hive_op *op, enum hive_op_code code, int fd, const void *buffer, size_t length, int64_t offset,
                 int64_t deadline_ns)
{
	if (fd < 0 || (!buffer && length > 0) || offset < -1)
		return -EINVAL;
	return start(op, (struct what){ .code = code, .fd = fd, .buffer = buffer, .length = length, .offset = offset },
	             deadline_ns);
}

int hive_op_recv(struct hive_op *op, int fd, void *buffer, size_t length, int64_t deadline_ns)
{
	return bytes(op, HIVE_OP_RECV, fd, buffer, length, -1, deadline_ns);
}

int hive_op_recv_many(struct hive_op *op, int fd, struct hive_buffers *buffers, int64_t deadline_ns)
{
	int r = fd < 0 || !op_is_valid(op) ? -EINVAL : hive__buffers_use(buffers, op->hive);

	if (r < 0)
		return r;
	r = start(op,
	          (struct what){ .code = HIVE_OP_RECV_MANY,
	                         .fd = fd,
	                         .repeat = HIVE_OP_REPEAT,
	                         .extra = buffers,
	                         .length = hive__buffers_bytes(buffers),
	                         .offset = -1 },
	          deadline_ns);
	if (r < 0)
		hive__buffers_unuse(buffers);
	return r;
}

int hive_op_send(struct hive_op *op, int fd, const void *buffer, size_t length, int64_t deadline_ns)
{
	return bytes(op, HIVE_OP_SEND, fd, buffer, length, -1, deadline_ns);
}

int hive_op_read(struct hive_op *op, int fd, void *buffer, size_t length, int64_t offset, int64_t deadline_ns)
{
	return bytes(op, HIVE_OP_READ, fd, buffer, length, offset, deadline_ns);
}

int hive_op_write(struct hive_op *op, int fd, const void *buffer, size_t length, int64_t offset, int64_t deadline_ns)
{
	return bytes(op, HIVE_OP_WRITE, fd, buffer, length, offset, deadline_ns);
}

int hive_op_readv(struct hive_op *op, int fd, const struct iovec *parts, int count, int64_t offset, int64_t deadline_ns)
{
	return count < 0 ? -EINVAL : bytes(op, HIVE_OP_READV, fd, parts, (size_t)count, offset, deadline_ns);
}

int hive_op_writev(struct hive_op *op, int fd, const struct iovec *parts, int count, int64_t offset,
                   int64_t deadline_ns)
{
	return count < 0 ? -EINVAL : bytes(op, HIVE_OP_WRITEV, fd, parts, (size_t)count, offset, deadline_ns);
}

static int message(struct hive_op *op, enum hive_op_code code, int fd, const struct msghdr *header, int flags,
                   int64_t deadline_ns)
{
	if (fd < 0 || !header)
		return -EINVAL;
	return start(op, (struct what){ .code = code, .fd = fd, .buffer = header, .flags = (uint32_t)flags },
	             deadline_ns);
}

int hive_op_recvmsg(struct hive_op *op, int fd, struct msghdr *header, int flags, int64_t deadline_ns)
{
	return message(op, HIVE_OP_RECVMSG, fd, header, flags, deadline_ns);
}

int hive_op_sendmsg(struct hive_op *op, int fd, const struct msghdr *header, int flags, int64_t deadline_ns)
{
	return message(op, HIVE_OP_SENDMSG, fd, header, flags, deadline_ns);
}

int hive_op_splice(struct hive_op *op, int from, int64_t from_offset, int to, int64_t to_offset, size_t length,
                   int64_t deadline_ns)
{
	if (from < 0 || to < 0 || from_offset < -1 || to_offset < -1)
		return -EINVAL;
	return start(op,
	             (struct what){ .code = HIVE_OP_SPLICE,
	                            .fd = from,
	                            .fd2 = to,
	                            .length = length,
	                            .offset = from_offset,
	                            .offset2 = to_offset },
	             deadline_ns);
}

int hive_op_poll(struct hive_op *op, int fd, uint32_t events, uint32_t flags, int64_t deadline_ns)
{
	const uint32_t all = HIVE_EVENT_IN | HIVE_EVENT_OUT | HIVE_EVENT_PRI;

	if (fd < 0 || events == 0 || (events & ~all) || (flags & ~(uint32_t)HIVE_OP_REPEAT))
		return -EINVAL;
	return start(op, (struct what){ .code = HIVE_OP_POLL, .fd = fd, .flags = events, .repeat = flags },
	             deadline_ns);
}

int hive_op_shutdown(struct hive_op *op, int fd, int how, int64_t deadline_ns)
{
	return fd < 0 ? -EINVAL
	              : start(op, (struct what){ .code = HIVE_OP_SHUTDOWN, .fd = fd, .flags = (uint32_t)how },
	                      deadline_ns);
}

int hive_op_close(struct hive_op *op, int fd, int64_t deadline_ns)
{
	return fd < 0 ? -EINVAL : start(op, (struct what){ .code = HIVE_OP_CLOSE, .fd = fd }, deadline_ns);
}

int hive_op_fsync(struct hive_op *op, int fd, bool data_only, int64_t deadline_ns)
{
	return fd < 0 ? -EINVAL
	              : start(op, (struct what){ .code = HIVE_OP_FSYNC, .fd = fd, .flags = data_only }, deadline_ns);
}

/* By name; dir as for openat(2). */
static int name(struct hive_op *op, struct what what, int64_t deadline_ns)
{
	return what.buffer ? start(op, what, deadline_ns) : -EINVAL;
}

int hive_op_open(struct hive_op *op, int dir, const char *path, int flags, uint32_t mode, int64_t deadline_ns)
{
	return name(op,
	            (struct what){
			    .code = HIVE_OP_OPEN, .fd = dir, .buffer = path, .flags = (uint32_t)flags, .mode = mode },
	            deadline_ns);
}

int hive_op_statx(struct hive_op *op, int dir, const char *path, int flags, struct statx *ret, int64_t deadline_ns)
{
	if (!ret)
		return -EINVAL;
	return name(op,
	            (struct what){
			    .code = HIVE_OP_STATX, .fd = dir, .buffer = path, .flags = (uint32_t)flags, .extra = ret },
	            deadline_ns);
}

int hive_op_unlink(struct hive_op *op, int dir, const char *path, int flags, int64_t deadline_ns)
{
	return name(op, (struct what){ .code = HIVE_OP_UNLINK, .fd = dir, .buffer = path, .flags = (uint32_t)flags },
	            deadline_ns);
}

int hive_op_rename(struct hive_op *op, int from, const char *old_path, int to, const char *new_path,
                   int64_t deadline_ns)
{
	if (!new_path)
		return -EINVAL;
	return name(
		op,
		(struct what){ .code = HIVE_OP_RENAME, .fd = from, .fd2 = to, .buffer = old_path, .extra = new_path },
		deadline_ns);
}

int hive_op_mkdir(struct hive_op *op, int dir, const char *path, uint32_t mode, int64_t deadline_ns)
{
	return name(op, (struct what){ .code = HIVE_OP_MKDIR, .fd = dir, .buffer = path, .mode = mode }, deadline_ns);
}

/* ---- by a fiber ---- */

int hive_op_resolve(struct hive_op *op, const char *text, uint16_t port, struct hive_address *ret_addresses,
                    size_t capacity, int64_t deadline_ns)
{
	if (!ret_addresses && capacity > 0)
		return -EINVAL;
	return name(op,
	            (struct what){ .code = HIVE_OP_RESOLVE,
	                           .fd = -1,
	                           .buffer = text,
	                           .mode = port,
	                           .extra = ret_addresses,
	                           .length = capacity },
	            deadline_ns);
}

int hive_op_dial(struct hive_op *op, const char *text, uint16_t port, const struct hive_net_options *options,
                 int64_t deadline_ns)
{
	if (hive__net_check(options) < 0)
		return -EINVAL;
	return name(op, (struct what){ .code = HIVE_OP_DIAL, .fd = -1, .buffer = text, .mode = port, .extra = options },
	            deadline_ns);
}

int hive_op_process_start(struct hive_op *op, const char *const *argv, const struct hive_process_options *options,
                          int *ret_process)
{
	if (!ret_process || hive__spawn_check(argv, options) < 0)
		return -EINVAL;
	return start(op,
	             (struct what){ .code = HIVE_OP_PROCESS_START,
	                            .fd = -1,
	                            .buffer = argv,
	                            .extra = options,
	                            .offset = (int64_t)(intptr_t)ret_process },
	             HIVE_FOREVER);
}

int hive_op_process_wait(struct hive_op *op, int process, int64_t deadline_ns)
{
	return start(op, (struct what){ .code = HIVE_OP_PROCESS_WAIT, .fd = -1, .offset = process }, deadline_ns);
}

int hive_op_signal_wait(struct hive_op *op, const int *signals, size_t count, int64_t deadline_ns)
{
	if (hive__signals_check(signals, count) < 0)
		return -EINVAL;
	return start(op, (struct what){ .code = HIVE_OP_SIGNAL_WAIT, .fd = -1, .buffer = signals, .length = count },
	             deadline_ns);
}
