/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/cancel.h>
#include <rophive/task.h>
#include <rophive/time.h>

/* One system operation under way, completion style, on every core. Buffers, paths, messages and the op itself are lent
 * until on_done. cancel() is a request: on_done still comes, exactly once, with what really happened. Each starter here
 * has the arguments of the fiber call of the same name in io.h, with the op in front.
 *
 * Descriptors of sockets, pipes and terminals have to be non-blocking (those that this library makes are); one that
 * blocks is used with care (MSG_DONTWAIT) where the system allows it, and is never made non-blocking: others may have
 * it too. Files never block an IO worker: what the core cannot do goes to a compute worker, and without one it is
 * refused (-ENOTSUP); so does, where there is one, more than 32 KiB of a file at once, though it be in memory; and so
 * does a write to a terminal that blocks, a page at most at once (process.h: hive_tty_open).
 * To write to what nobody reads is -EPIPE, and no signal, on whatever thread.
 *
 * Several that wait for the same descriptor are served in the order in which they began; where the core does them by itself (io_uring) the
 * kernel has its own order, so do not send what has to arrive in order by two at once.
 *
 * on_done never runs inside a starter or hive_op_cancel(). Cancel what waits for a descriptor before you close that: what
 * still waits then ends with -EBADF at best, or waits for whatever has the number next.                              */
HIVE_BEGIN
struct hive;
struct hive_buffers;
struct hive_fiber;
struct hive_net_options;
struct hive_op;
struct iovec;
struct msghdr;
struct statx;

struct hive_address { /* a sockaddr of any family */
	uint32_t bytes;
	uint32_t reserved;
	uint64_t storage[16];
};

typedef void hive_op_fn(struct hive_op *op, int64_t result); /* count, descriptor or 0; else -errno */

enum hive_op_code {
	HIVE_OP_ACCEPT = 1,
	HIVE_OP_CONNECT,
	HIVE_OP_RECV,
	HIVE_OP_RECV_MANY,
	HIVE_OP_SEND,
	HIVE_OP_RECVMSG,
	HIVE_OP_SENDMSG,
	HIVE_OP_READ,
	HIVE_OP_WRITE,
	HIVE_OP_READV,
	HIVE_OP_WRITEV,
	HIVE_OP_SPLICE,
	HIVE_OP_POLL,
	HIVE_OP_SHUTDOWN,
	HIVE_OP_OPEN,
	HIVE_OP_CLOSE,
	HIVE_OP_FSYNC,
	HIVE_OP_STATX,
	HIVE_OP_UNLINK,
	HIVE_OP_RENAME,
	HIVE_OP_MKDIR,
	HIVE_OP_CODES,        /* one more than the last that a core may be given */
	HIVE_OP_RESOLVE = 32, /* from here on by the library itself */
	HIVE_OP_DIAL,
	HIVE_OP_PROCESS_START,
	HIVE_OP_PROCESS_WAIT,
	HIVE_OP_SIGNAL_WAIT
};

struct hive_op {
	/* yours */
	void *arg;
	/* read-only */
	int64_t result;
	uint32_t code;
	int fd;
	/* for cores: what it is about */
	int fd2;           /* splice: where to; rename: the second folder */
	uint32_t flags;    /* of the system call; poll: HIVE_EVENT_…; fsync: 1 for data only */
	uint32_t mode;     /* open, mkdir */
	uint32_t repeat;   /* HIVE_OP_REPEAT */
	void *buffer;      /* bytes, parts, message, path, address, name; recv_many: what was filled */
	void *extra;       /* second path, statx, hive_buffers, options */
	uint64_t length;   /* bytes, or how many parts */
	int64_t offset;    /* in the file; -1: where it stands, and for what has no places */
	int64_t offset2;   /* splice */
	uint64_t spare[4]; /* the core's own while it has the op */
	/* private */
	HIVE_ATOMIC(uint32_t) state;
	HIVE_ATOMIC(uint32_t) worker;
	uint32_t magic, step;
	int64_t deadline_ns;
	hive_op_fn *on_done;
	struct hive *hive;
	HIVE_ATOMIC(void *) owner;
	void *next, *prev, *behind;
	struct hive_fiber *servant;
	uint64_t alarm;
	HIVE_ATOMIC(uint32_t) alarm_rung;
	bool native, waits, again, leaves, told, begins, at_once, hungry;
	uint64_t once[4], way[14];
	struct hive_cancel *cancel;
	struct hive_cancel_watch watch;
};

/* accept, poll: on_done for each result; a negative one is the last. Not with HIVE_NOWAIT. Poll tells of each event once where the core
 * knows events (epoll), else in each turn as long as it holds: take all that is there.                                     */
enum { HIVE_OP_REPEAT = 1 };

/* Any thread. on_done runs on the IO worker that starts the op, or on one chosen by load when another thread does.
 * on_done NULL: nobody is called, a fiber or a thread collects the result with hive_op_wait().                    */
void hive_op_init(struct hive_op *op, struct hive *hive, hive_op_fn *on_done, void *arg);
/* Any thread, before it is started. From then on each of its starts is under this token (NULL: none; so it is after init), which has to stay. When that fires,
 * the op is cancelled, and the result is the reason if nothing else has happened before; if it has fired, starters return the
 * reason. -EBUSY: under way. -EINVAL.                                                                                      */
HIVE_CHECKED int hive_op_under(struct hive_op *op, struct hive_cancel *cancel);
/* Any thread. Each: 0, -EINVAL, -EBUSY (under way), -ENOMEM, -ESHUTDOWN; every other error arrives in on_done. */
HIVE_CHECKED int hive_op_accept(struct hive_op *op, int fd, uint32_t flags, int64_t deadline_ns);
HIVE_CHECKED int hive_op_connect(struct hive_op *op, int fd, const struct hive_address *to, int64_t deadline_ns);
HIVE_CHECKED int hive_op_recv(struct hive_op *op, int fd, void *buffer, size_t bytes, int64_t deadline_ns);
HIVE_CHECKED int hive_op_send(struct hive_op *op, int fd, const void *buffer, size_t bytes, int64_t deadline_ns);
HIVE_CHECKED int hive_op_recvmsg(struct hive_op *op, int fd, struct msghdr *message, int flags, int64_t deadline_ns);
HIVE_CHECKED int hive_op_sendmsg(struct hive_op *op, int fd, const struct msghdr *message, int flags,
                                 int64_t deadline_ns);
/* Any thread. offset -1: where the file stands, and for sockets, pipes and terminals. */
HIVE_CHECKED int hive_op_read(struct hive_op *op, int fd, void *buffer, size_t bytes, int64_t offset,
                              int64_t deadline_ns);
HIVE_CHECKED int hive_op_write(struct hive_op *op, int fd, const void *buffer, size_t bytes, int64_t offset,
                               int64_t deadline_ns);
HIVE_CHECKED int hive_op_readv(struct hive_op *op, int fd, const struct iovec *parts, int count, int64_t offset,
                               int64_t deadline_ns);
HIVE_CHECKED int hive_op_writev(struct hive_op *op, int fd, const struct iovec *parts, int count, int64_t offset,
                                int64_t deadline_ns);
/* Any thread. From a file or a pipe to a socket, a pipe or a file, without a copy where the system can. */
HIVE_CHECKED int hive_op_splice(struct hive_op *op, int from, int64_t from_offset, int to, int64_t to_offset,
                                size_t bytes, int64_t deadline_ns);
/* Any thread. The result: HIVE_EVENT_… that hold. */
HIVE_CHECKED int hive_op_poll(struct hive_op *op, int fd, uint32_t events, uint32_t flags, int64_t deadline_ns);
/* Any thread. */
HIVE_CHECKED int hive_op_shutdown(struct hive_op *op, int fd, int how, int64_t deadline_ns);
HIVE_CHECKED int hive_op_open(struct hive_op *op, int dir, const char *path, int flags, uint32_t mode,
                              int64_t deadline_ns);
HIVE_CHECKED int hive_op_close(struct hive_op *op, int fd, int64_t deadline_ns);
HIVE_CHECKED int hive_op_fsync(struct hive_op *op, int fd, bool data_only, int64_t deadline_ns);
HIVE_CHECKED int hive_op_statx(struct hive_op *op, int dir, const char *path, int flags, struct statx *ret,
                               int64_t deadline_ns);
HIVE_CHECKED int hive_op_unlink(struct hive_op *op, int dir, const char *path, int flags, int64_t deadline_ns);
HIVE_CHECKED int hive_op_rename(struct hive_op *op, int from, const char *old_path, int to, const char *new_path,
                                int64_t deadline_ns);
HIVE_CHECKED int hive_op_mkdir(struct hive_op *op, int dir, const char *path, uint32_t mode, int64_t deadline_ns);
/* Any thread. Names, and connections by name: on every core by a fiber of the library's own, hence -ENOMEM also without a stack for it. It asks
 * and waits as hive_resolve() and hive_dial() do in a fiber: a resolver on a compute worker, which a deadline or a cancel leaves to
 * itself. The name, the options and ret_addresses are lent. The result of dial is a descriptor, and yours.                    */
HIVE_CHECKED int hive_op_resolve(struct hive_op *op, const char *name, uint16_t port,
                                 struct hive_address *ret_addresses, size_t capacity, int64_t deadline_ns);
HIVE_CHECKED int hive_op_dial(struct hive_op *op, const char *name, uint16_t port,
                              const struct hive_net_options *options, int64_t deadline_ns);
#define HIVE_BUFFER_MOST (1u << 30)
/* Any thread. Buffers that are lent to on_done when something has come, so that thousands of idle connections need none. Each IO worker has
 * `count` of its own, made when an operation uses them there for the first time (-ENOMEM in on_done: they could not be made). At most
 * 32768, each of HIVE_BUFFER_MOST bytes at most. -EINVAL, -ENOMEM.                                                           */
HIVE_CHECKED int hive_buffers_create(struct hive *hive, uint32_t count, size_t bytes,
                                     struct hive_buffers **ret_buffers);
/* Any thread, before the hive is destroyed. -EBUSY: one is lent, or an operation uses them. NULL is fine. */
int hive_buffers_destroy(struct hive_buffers *buffers);
/* Any thread, once for each that was lent. -EINVAL: it is none of these, or was returned before. */
int hive_buffer_return(struct hive_buffers *buffers, void *buffer);
/* Any thread. Receives again and again: on_done for each piece, result > 0: so many bytes, in op->buffer, which is yours until you return
 * it, whatever becomes of the op. 0 (the peer has ended, or sent an empty datagram) and negative results are the last. As long as
 * all buffers of the worker are lent it waits, and what comes stays with the system. A datagram longer than a buffer is cut.
 * A piece may still come after a cancel, before the last result. Not with HIVE_NOWAIT, nor without an on_done.             */
HIVE_CHECKED int hive_op_recv_many(struct hive_op *op, int fd, struct hive_buffers *buffers, int64_t deadline_ns);
/* Any thread, while the op is lent. 0: asked; on_done follows. -ESRCH: not under way. */
int hive_op_cancel(struct hive_op *op);
/* May wait. Until it is complete; the result. A cancelled fiber cancels the op and still waits for it: buffers are lent.
 * -EINVAL: it has an on_done, or never began. -EDEADLK: on an IO worker outside a fiber. One that was refused: why.  */
int64_t hive_op_wait(struct hive_op *op);
HIVE_END
