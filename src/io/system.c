/* SPDX-License-Identifier: MIT */
/* What an operation means to the system: one attempt that does not block, or all of it, blocking, on a compute worker. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rophive/io.h>

#include "base/buffers.h"
#include "base/quiet.h"
#include "io/fill.h"
#include "io/number.h"
#include "io/op.h"
#include "io/try.h"

enum { MOMENT_BYTES = 4 << 10 }; /* written where that may block */
enum { LONG_BYTES = 32 << 10 };  /* more of a file than this is no IO worker's business */
enum { SEND_BYTES = 1 << 20 };   /* of a file, by who may block: others wait for that worker too */
enum { PROBES = 32 };            /* parts in which a piece is looked at, for there is little stack */

static int64_t answer(int64_t r)
{
	return r < 0 ? -errno : r;
}

static bool is_file(int fd)
{
	struct stat about;
	int error = errno;
	bool is = fstat(fd, &about) == 0 &&
	          (S_ISREG(about.st_mode) || S_ISBLK(about.st_mode) || S_ISDIR(about.st_mode));

	errno = error;
	return is;
}

/* ---- sockets ---- */

/* Somebody who gave up between knocking and being let in is none of the caller's business. */
static int64_t try_accept(const struct hive_op *op)
{
	int fd;

	do
		fd = accept4(op->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	return answer(number_made(fd));
}

static int64_t end_of_connect(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	socklen_t bytes = sizeof(int);
	int error = 0;

	if (poll(&ready, 1, 0) == 0)
		return -EAGAIN;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) < 0)
		return -errno;
	return -error;
}

static int64_t try_connect(struct hive_op *op)
{
	const struct hive_address *to = (const struct hive_address *)op->buffer;

	if (op->step == CONNECT_UNDER_WAY)
		return end_of_connect(op->fd);
	if (connect(op->fd, (const struct sockaddr *)(const void *)to->storage, to->bytes) == 0)
		return 0;
	if (errno != EINPROGRESS && errno != EINTR && errno != EALREADY)
		return -errno; /* -EAGAIN: too many knock at a unix socket; no event tells when there are fewer */
	op->step = CONNECT_UNDER_WAY;
	return -EAGAIN;
}

/* ---- bytes ---- */

struct bytes { /* of a read or a write */
	bool reads;
	struct iovec one;
	const struct iovec *parts;
	int count;
};

static void look_at_bytes(const struct hive_op *op, struct bytes *b)
{
	bool many = op->code == HIVE_OP_READV || op->code == HIVE_OP_WRITEV;

	b->reads = op->code == HIVE_OP_READ || op->code == HIVE_OP_READV;
	b->one = (struct iovec){ op->buffer, op->length };
	b->parts = many ? (const struct iovec *)op->buffer : &b->one;
	b->count = many ? (int)op->length : 1;
}

static ssize_t move_bytes(const struct hive_op *op, const struct bytes *b, int flags)
{
	struct quiet quiet;
	ssize_t r;

	if (b->reads)
		return fill_parts(op->fd, b->parts, b->count, op->offset, flags);
	hive__quiet_begin(&quiet);
	r = pwritev2(op->fd, b->parts, b->count, op->offset, flags);
	hive__quiet_end(&quiet, r < 0 && errno == EPIPE);
	return r;
}

/* What the kernel cannot try without blocking is looked at first, unless it never blocks. A terminal that others use too stays as it is, that is,
 * it blocks; and that it is ready means that there is a line, or room for a byte. So a line is read here, but others have to write. */
static int64_t try_plain(struct hive_op *op, const struct bytes *b)
{
	struct pollfd ready = { .fd = op->fd, .events = b->reads ? POLLIN : POLLOUT };

	if (fcntl(op->fd, F_GETFL) & O_NONBLOCK)
		return answer(move_bytes(op, b, 0));
	if (poll(&ready, 1, 0) == 0)
		return -EAGAIN;
	if (!b->reads) {
		op->step = STEP_BLOCKS_A_MOMENT;
		return -EAGAIN;
	}
	return answer(move_bytes(op, b, 0));
}

static int64_t try_bytes(struct hive_op *op)
{
	struct bytes b;
	ssize_t r;

	look_at_bytes(op, &b);
	r = move_bytes(op, &b, RWF_NOWAIT);
	if (r >= 0 || (errno != EOPNOTSUPP && errno != EAGAIN))
		return answer(r);
	if (is_file(op->fd)) {
		op->step = STEP_BLOCKS;
		return -EAGAIN;
	}
	return errno == EAGAIN ? -EAGAIN : try_plain(op, &b);
}

/* To close a file may write what was written to it. */
static int64_t do_close(const struct hive_op *op)
{
	hive__number_begins(op->fd);                              /* as soon as it is free it may be another's */
	return close(op->fd) == 0 || errno == EINTR ? 0 : -errno; /* EINTR: it is gone all the same */
}

static int64_t try_close(struct hive_op *op)
{
	if (!is_file(op->fd))
		return do_close(op);
	op->step = STEP_BLOCKS;
	return -EAGAIN;
}

/* From where. */
static off_t place_of(const struct hive_op *op)
{
	off_t at = op->offset >= 0 ? op->offset : lseek(op->fd, 0, SEEK_CUR);

	return at < 0 ? 0 : at;
}

/* How much of it is in memory, from its place on, of a piece: read to be thrown away, since nothing else tells it of each page, and a page that
 * is not there would keep whoever sends it. 0: its end. -EAGAIN: nothing.                                                     */
static int64_t warm_bytes(const struct hive_op *op)
{
	char scratch[LONG_BYTES / PROBES];
	struct iovec parts[PROBES];
	size_t left = op->length < LONG_BYTES ? op->length : LONG_BYTES;
	int count = 0;
	ssize_t r;

	do {
		parts[count] = (struct iovec){ scratch, left < sizeof scratch ? left : sizeof scratch };
		left -= parts[count++].iov_len;
	} while (left > 0);
	r = preadv2(op->fd, parts, count, place_of(op), RWF_NOWAIT);
	return r < 0 && errno == EOPNOTSUPP ? -EAGAIN : answer(r);
}

static int64_t send_file(const struct hive_op *op, size_t bytes)
{
	off_t from = op->offset;
	struct quiet quiet;
	int64_t r;

	hive__quiet_begin(&quiet);
	r = answer(sendfile(op->fd2, op->fd, op->offset < 0 ? NULL : &from, bytes));
	hive__quiet_end(&quiet, r == -EPIPE);
	return r;
}

/* What is in memory; what is not only by who may block. */
static int64_t try_send_file(struct hive_op *op)
{
	int64_t warm = warm_bytes(op), r;

	if (warm == -EAGAIN) {
		op->step = STEP_BLOCKS;
		return -EAGAIN;
	}
	if (warm < 0)
		return warm == -EISDIR ? -EINVAL : warm; /* as sendfile() says it */
	r = send_file(op, (size_t)warm);
	if (r == -EAGAIN)
		op->step = SPLICE_TO;
	return r;
}

static bool is_ready(int fd, short events)
{
	struct pollfd ready = { .fd = fd, .events = events };

	return poll(&ready, 1, 0) > 0;
}

/* From a file: only what is in memory. From a pipe: whatever is there. */
static int64_t try_splice(struct hive_op *op)
{
	bool from_file = is_file(op->fd);
	struct quiet quiet;
	int64_t r;

	if ((op->step == SPLICE_FROM && !from_file && !is_ready(op->fd, POLLIN)) ||
	    (op->step == SPLICE_TO && !is_ready(op->fd2, POLLOUT)))
		return -EAGAIN;
	if (is_file(op->fd2)) {
		op->step = STEP_BLOCKS;
		return -EAGAIN;
	}
	if (from_file)
		return try_send_file(op);
	hive__quiet_begin(&quiet);
	r = answer(splice(op->fd, NULL, op->fd2, NULL, op->length, SPLICE_F_NONBLOCK | SPLICE_F_MOVE));
	hive__quiet_end(&quiet, r == -EPIPE);
	if (r == -EAGAIN)
		op->step = is_ready(op->fd, POLLIN) ? SPLICE_TO : SPLICE_FROM;
	return r;
}

static uint32_t events_of(short revents)
{
	return (revents & POLLIN ? HIVE_EVENT_IN : 0u) | (revents & POLLOUT ? HIVE_EVENT_OUT : 0u) |
	       (revents & POLLPRI ? HIVE_EVENT_PRI : 0u) | (revents & POLLHUP ? HIVE_EVENT_HUP : 0u) |
	       (revents & (POLLERR | POLLNVAL) ? HIVE_EVENT_ERR : 0u);
}

static int64_t try_poll(const struct hive_op *op)
{
	struct pollfd ready = { .fd = op->fd,
		                .events = (short)((op->flags & HIVE_EVENT_IN ? POLLIN : 0) |
		                                  (op->flags & HIVE_EVENT_OUT ? POLLOUT : 0) |
		                                  (op->flags & HIVE_EVENT_PRI ? POLLPRI : 0)) };
	int n = poll(&ready, 1, 0);

	if (n < 0)
		return -errno;
	if (ready.revents & POLLNVAL)
		return -EBADF;
	return n == 0 ? -EAGAIN : (int64_t)events_of(ready.revents);
}

int64_t hive__check_socket(int fd)
{
	int type, error = errno;
	socklen_t bytes = sizeof type;
	int64_t r = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) < 0 ? -errno : -EAGAIN;

	errno = error;
	return r;
}

bool hive__op_has_more(const struct hive_op *op, int64_t result)
{
	return op->repeat && (result > 0 || (result == 0 && op->code != HIVE_OP_RECV_MANY));
}

/* -ENOBUFS: there is none, and what has come stays where it is. */
static int64_t try_recv_many(struct hive_op *op)
{
	struct buffers *buffers = buffers_of(op->offset2);
	uint32_t index;
	int64_t r;

	if (!buffers_take(buffers, &index))
		return -ENOBUFS;
	r = try_recv(op->fd, buffers_open_one(buffers, index), buffers->bytes);
	if (r > 0)
		op->buffer = buffers_lend(buffers, index);
	else
		buffers_put(buffers, index);
	return r == -ENOBUFS ? -ENOMEM : r;
}

static int64_t once_more(struct hive_op *op)
{
	switch (op->code) {
	case HIVE_OP_ACCEPT:
		return try_accept(op);
	case HIVE_OP_CONNECT:
		return try_connect(op);
	case HIVE_OP_RECVMSG:
		return answer(
			recvmsg(op->fd, (struct msghdr *)op->buffer, (int)op->flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
	case HIVE_OP_SENDMSG:
		return answer(sendmsg(op->fd, (const struct msghdr *)op->buffer,
		                      (int)op->flags | MSG_DONTWAIT | MSG_NOSIGNAL));
	case HIVE_OP_READ:
	case HIVE_OP_WRITE:
	case HIVE_OP_READV:
	case HIVE_OP_WRITEV:
		return try_bytes(op);
	case HIVE_OP_SPLICE:
		return try_splice(op);
	case HIVE_OP_POLL:
		return try_poll(op);
	case HIVE_OP_SHUTDOWN:
		return answer(shutdown(op->fd, (int)op->flags));
	case HIVE_OP_CLOSE:
		return try_close(op);
	default:
		return -EAGAIN;
	}
}

int64_t hive__op_try(struct hive_op *op)
{
	int error;
	int64_t r;

	if (op->code == HIVE_OP_RECV)
		return try_recv(op->fd, op->buffer, op->length);
	if (op->code == HIVE_OP_SEND)
		return try_send(op->fd, op->buffer, op->length);
	if (op->code == HIVE_OP_RECV_MANY)
		return try_recv_many(op);
	error = errno;
	do
		r = once_more(op);
	while (r == -EINTR);
	errno = error;
	return r == -EWOULDBLOCK ? -EAGAIN : r;
}

/* ---- blocking ---- */

/* Room for a byte is no room for a page, but soon there will be, if anybody looks at that terminal. */
static void cut_to_a_moment(struct bytes *b)
{
	while (b->count > 1 && b->parts->iov_len == 0) {
		b->parts++;
		b->count--;
	}
	if (b->count < 1)
		return;
	b->one = *b->parts;
	if (b->one.iov_len > MOMENT_BYTES)
		b->one.iov_len = MOMENT_BYTES;
	b->parts = &b->one;
	b->count = 1;
}

/* -EAGAIN: others who have that terminal too have made it non-blocking meanwhile. So it is tried as if it had always been. */
static int64_t block_bytes(struct hive_op *op)
{
	struct bytes b;
	int64_t r;

	look_at_bytes(op, &b);
	if (op->step == STEP_BLOCKS_A_MOMENT)
		cut_to_a_moment(&b);
	r = answer(move_bytes(op, &b, 0));
	if (r == -EAGAIN && op->step == STEP_BLOCKS_A_MOMENT)
		op->step = STEP_NEW;
	return r;
}

/* To a file, all of it. To a socket or a pipe, which do not block: as much as they take. */
static int64_t block_splice(struct hive_op *op)
{
	off_t to = op->offset2;
	int64_t r;

	if (is_file(op->fd2) && is_file(op->fd))
		return hive__op_copy_file(op);
	if (is_file(op->fd2)) {
		r = answer(splice(op->fd, NULL, op->fd2, op->offset2 < 0 ? NULL : &to, op->length, SPLICE_F_NONBLOCK));
		op->step = SPLICE_FROM;
		return r;
	}
	r = send_file(op, op->length < SEND_BYTES ? op->length : SEND_BYTES);
	if (r == -EAGAIN)
		op->step = SPLICE_TO;
	return r;
}

static int64_t block_once(struct hive_op *op)
{
	const char *path = (const char *)op->buffer;

	switch (op->code) {
	case HIVE_OP_READ:
	case HIVE_OP_WRITE:
	case HIVE_OP_READV:
	case HIVE_OP_WRITEV:
		return block_bytes(op);
	case HIVE_OP_SPLICE:
		return block_splice(op);
	case HIVE_OP_OPEN:
		return answer(number_made(openat(op->fd, path, (int)op->flags | O_CLOEXEC, (mode_t)op->mode)));
	case HIVE_OP_CLOSE:
		return do_close(op);
	case HIVE_OP_FSYNC:
		return answer(op->flags ? fdatasync(op->fd) : fsync(op->fd));
	case HIVE_OP_STATX:
		return answer(fill_statx(op->fd, path, (int)op->flags, STATX_BASIC_STATS | STATX_BTIME,
		                         (struct statx *)op->extra));
	case HIVE_OP_UNLINK:
		return answer(unlinkat(op->fd, path, (int)op->flags));
	case HIVE_OP_RENAME:
		return answer(renameat(op->fd, path, op->fd2, (const char *)op->extra));
	case HIVE_OP_MKDIR:
		return answer(mkdirat(op->fd, path, (mode_t)op->mode));
	default:
		return hive__op_try(op);
	}
}

int64_t hive__op_block(struct hive_op *op)
{
	int error = errno;
	int64_t r;

	do
		r = block_once(op);
	while (r == -EINTR);
	errno = error;
	return r;
}

/* A core that asks for many at once would copy all of them in one call. */
bool hive__op_is_long(const struct hive_op *op)
{
	struct bytes b;
	uint64_t bytes = 0;

	if (op->code == HIVE_OP_SPLICE)
		return op->length > LONG_BYTES && op->step == STEP_NEW && is_file(op->fd);
	if (op->code < HIVE_OP_READ || op->code > HIVE_OP_WRITEV)
		return false;
	look_at_bytes(op, &b);
	if (b.count > IOV_MAX)
		return false; /* more than the system takes, and maybe more than there are */
	for (int i = 0; i < b.count && bytes <= LONG_BYTES; i++)
		bytes += b.parts[i].iov_len;
	return bytes > LONG_BYTES && is_file(op->fd);
}
