/* SPDX-License-Identifier: MIT */
/* Operations on io_uring: each is a request of the same name. What the kernel answers is what the readiness engine would: an
 * interrupted request is sent again, and one for which the kernel would rather not wait (non-blocking terminals, odd devices) is
 * sent again when a poll says so.                                                                                             */
#if defined(HIVE_URING)
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "core/uring.h"

#if !defined(__has_feature) /* gcc */
#define __has_feature(x) 0
#endif

/* spare[STATE]. LATE: in the list of those that are to be sent or, IN_KERNEL, recalled. RECALLED: its end was asked for. AWAITS: what is
 * in the kernel is a poll, and it is sent when that is complete. QUIET: a poll that is told of changes only, because what holds
 * is nothing that was asked for.                                                                                              */
enum { IN_KERNEL = 1, LATE = 2, RECALLED = 4, AWAITS = 8, QUIET = 16 };
enum {
	NEXT,
	PREV,
	STATE,
	SEEN,
	TOLD = SEEN
}; /* spare[…]; SEEN: what a quiet poll has found before it was back. TOLD, others that
                                                 repeat: the turn, and how many results it has had in that */
enum { ROUND = 64, TURN_SHIFT = 32 }; /* ROUND: results of one operation in a row */

#define LONGEST 0x7ffff000u /* the system's own limit for one call */

/* ---- the list of those for which there was no entry ---- */

static struct hive_op *op_at(struct hive_op *op, int which)
{
	return (struct hive_op *)(uintptr_t)op->spare[which];
}

static void enter_list(struct uring_core *c, struct hive_op *op)
{
	if (op->spare[STATE] & LATE)
		return;
	op->spare[STATE] |= LATE;
	op->spare[NEXT] = 0;
	op->spare[PREV] = (uintptr_t)c->late_last;
	if (c->late_last)
		c->late_last->spare[NEXT] = (uintptr_t)op;
	else
		c->late = op;
	c->late_last = op;
	c->late_count++;
}

static void leave_list(struct uring_core *c, struct hive_op *op)
{
	struct hive_op *next = op_at(op, NEXT), *prev = op_at(op, PREV);

	if (!(op->spare[STATE] & LATE))
		return;
	op->spare[STATE] &= ~(uint64_t)LATE;
	if (next)
		next->spare[PREV] = (uintptr_t)prev;
	else
		c->late_last = prev;
	if (prev)
		prev->spare[NEXT] = (uintptr_t)next;
	else
		c->late = next;
	c->late_count--;
}

/* ---- requests ---- */

static uint32_t events_for(const struct hive_op *op)
{
	switch (op->code) {
	case HIVE_OP_SEND:
	case HIVE_OP_SENDMSG:
	case HIVE_OP_WRITE:
	case HIVE_OP_WRITEV:
		return HIVE_EVENT_OUT;
	case HIVE_OP_POLL:
		return op->flags;
	default:
		return HIVE_EVENT_IN;
	}
}

static unsigned bytes_of(const struct hive_op *op)
{
	return op->length < LONGEST ? (unsigned)op->length : LONGEST;
}

/* As many as there are at once, as the engine has it: neither more patience nor less. */
static unsigned message_flags(const struct hive_op *op, int more)
{
	return (op->flags & ~(unsigned)(MSG_DONTWAIT | MSG_WAITALL)) | (unsigned)more;
}

static void prepare_socket(const struct uring_core *c, struct io_uring_sqe *sqe, const struct hive_op *op)
{
	const struct hive_address *to = (const struct hive_address *)op->buffer;

	switch (op->code) {
	case HIVE_OP_ACCEPT:
		if (op->repeat && c->accepts_many)
			io_uring_prep_multishot_accept(sqe, op->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		else
			io_uring_prep_accept(sqe, op->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		break;
	case HIVE_OP_CONNECT:
		io_uring_prep_connect(sqe, op->fd, (const struct sockaddr *)(const void *)to->storage, to->bytes);
		break;
	case HIVE_OP_RECV:
		io_uring_prep_recv(sqe, op->fd, op->buffer, bytes_of(op), 0);
		break;
	case HIVE_OP_RECV_MANY:
		io_uring_prep_recv_multishot(sqe, op->fd, NULL, 0, 0);
		sqe->flags |= IOSQE_BUFFER_SELECT;
		sqe->buf_group = hive__uring_group(buffers_of(op->offset2));
		break;
	case HIVE_OP_SEND:
		io_uring_prep_send(sqe, op->fd, op->buffer, bytes_of(op), MSG_NOSIGNAL);
		break;
	case HIVE_OP_RECVMSG:
		io_uring_prep_recvmsg(sqe, op->fd, (struct msghdr *)op->buffer, message_flags(op, MSG_CMSG_CLOEXEC));
		break;
	default:
		io_uring_prep_sendmsg(sqe, op->fd, (const struct msghdr *)op->buffer, message_flags(op, MSG_NOSIGNAL));
		break;
	}
}

static void prepare_bytes(struct io_uring_sqe *sqe, const struct hive_op *op)
{
	const struct iovec *parts = (const struct iovec *)op->buffer;

	switch (op->code) {
	case HIVE_OP_READ:
		io_uring_prep_read(sqe, op->fd, op->buffer, bytes_of(op), (uint64_t)op->offset);
		break;
	case HIVE_OP_WRITE:
		io_uring_prep_write(sqe, op->fd, op->buffer, bytes_of(op), (uint64_t)op->offset);
		break;
	case HIVE_OP_READV:
		io_uring_prep_readv(sqe, op->fd, parts, (unsigned)op->length, (uint64_t)op->offset);
		break;
	default:
		io_uring_prep_writev(sqe, op->fd, parts, (unsigned)op->length, (uint64_t)op->offset);
		break;
	}
}

static void prepare_file(struct io_uring_sqe *sqe, const struct hive_op *op)
{
	const char *path = (const char *)op->buffer;

	switch (op->code) {
	case HIVE_OP_OPEN:
		io_uring_prep_openat(sqe, op->fd, path, (int)op->flags | O_CLOEXEC, (mode_t)op->mode);
		break;
	case HIVE_OP_CLOSE:
		io_uring_prep_close(sqe, op->fd);
		break;
	case HIVE_OP_FSYNC:
		io_uring_prep_fsync(sqe, op->fd, op->flags ? IORING_FSYNC_DATASYNC : 0);
		break;
	case HIVE_OP_STATX:
		io_uring_prep_statx(sqe, op->fd, path, (int)op->flags, STATX_BASIC_STATS | STATX_BTIME,
		                    (struct statx *)op->extra);
		break;
	case HIVE_OP_UNLINK:
		io_uring_prep_unlinkat(sqe, op->fd, path, (int)op->flags);
		break;
	case HIVE_OP_RENAME:
		io_uring_prep_renameat(sqe, op->fd, path, op->fd2, (const char *)op->extra, 0);
		break;
	default:
		io_uring_prep_mkdirat(sqe, op->fd, path, (mode_t)op->mode);
		break;
	}
}

static void prepare(const struct uring_core *c, struct io_uring_sqe *sqe, const struct hive_op *op)
{
	if (op->spare[STATE] & QUIET)
		io_uring_prep_poll_multishot(sqe, op->fd, hive__uring_poll_of(op->flags));
	else if ((op->spare[STATE] & AWAITS) || op->code == HIVE_OP_POLL)
		io_uring_prep_poll_add(sqe, op->fd, hive__uring_poll_of(events_for(op)));
	else if (op->code <= HIVE_OP_SENDMSG)
		prepare_socket(c, sqe, op);
	else if (op->code <= HIVE_OP_WRITEV)
		prepare_bytes(sqe, op);
	else
		prepare_file(sqe, op);
	sqe->user_data = (uintptr_t)op | FOR_OP;
}

void hive__uring_learn(struct uring_core *c)
{
	static const struct {
		uint8_t code, opcode;
	} known[] = {
		{ HIVE_OP_ACCEPT, IORING_OP_ACCEPT },   { HIVE_OP_CONNECT, IORING_OP_CONNECT },
		{ HIVE_OP_RECV, IORING_OP_RECV },       { HIVE_OP_SEND, IORING_OP_SEND },
		{ HIVE_OP_RECVMSG, IORING_OP_RECVMSG }, { HIVE_OP_SENDMSG, IORING_OP_SENDMSG },
		{ HIVE_OP_READ, IORING_OP_READ },       { HIVE_OP_WRITE, IORING_OP_WRITE },
		{ HIVE_OP_READV, IORING_OP_READV },     { HIVE_OP_WRITEV, IORING_OP_WRITEV },
		{ HIVE_OP_POLL, IORING_OP_POLL_ADD },   { HIVE_OP_OPEN, IORING_OP_OPENAT },
		{ HIVE_OP_CLOSE, IORING_OP_CLOSE },     { HIVE_OP_FSYNC, IORING_OP_FSYNC },
		{ HIVE_OP_STATX, IORING_OP_STATX },     { HIVE_OP_UNLINK, IORING_OP_UNLINKAT },
		{ HIVE_OP_RENAME, IORING_OP_RENAMEAT }, { HIVE_OP_MKDIR, IORING_OP_MKDIRAT },
	};
	_Alignas(struct io_uring_probe) char
		room[sizeof(struct io_uring_probe) + IORING_OP_LAST * sizeof(struct io_uring_probe_op)] = { 0 };
	struct io_uring_probe *probe = (struct io_uring_probe *)(void *)room;
	const struct io_uring_probe_op *ops = probe->ops;

	if (io_uring_register_probe(&c->ring, probe, IORING_OP_LAST) < 0)
		return; /* then the engine does everything */
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (ops[known[i].opcode].flags & IO_URING_OP_SUPPORTED)
			c->can |= 1u << known[i].code;
	if (ops[IORING_OP_SEND_ZC].flags & IO_URING_OP_SUPPORTED) /* of the same version as receives that go on, 6.0 */
		c->can |= 1u << HIVE_OP_RECV_MANY;
	c->accepts_many = ops[IORING_OP_SOCKET].flags & IO_URING_OP_SUPPORTED; /* of the same version, 5.19 */
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
	c->can &= ~(1u << HIVE_OP_CLOSE); /* it follows numbers, and would take what the kernel closes for open */
#endif
}

/* ---- to the kernel ---- */

/* False: there is no entry. */
static bool send_op(struct uring_core *c, struct hive_op *op)
{
	struct io_uring_sqe *sqe;

	if (op->spare[STATE] & IN_KERNEL)
		return hive__uring_recall(c, (uintptr_t)op | FOR_OP);
	sqe = hive__uring_entry(c);
	if (!sqe)
		return false;
	prepare(c, sqe, op);
	op->spare[STATE] |= IN_KERNEL;
	return true;
}

/* Those that came earlier are sent earlier, so that a recall never meets what came after it under the same address. */
static void send_or_list(struct uring_core *c, struct hive_op *op)
{
	if (c->late || !send_op(c, op))
		enter_list(c, op);
}

bool hive__ops_send(struct uring_core *c)
{
	bool delivered = false;

	for (uint32_t n = c->late_count; n > 0 && c->late; n--) {
		struct hive_op *op = c->late;

		if ((op->spare[STATE] & (IN_KERNEL | RECALLED)) == RECALLED) {
			leave_list(c, op);
			hive_op_deliver(op, -ECANCELED, false);
			delivered = true;
		} else if (send_op(c, op)) {
			leave_list(c, op);
		} else {
			break;
		}
	}
	return delivered;
}

/* To a pipe, or a socket by write(): the kernel would raise SIGPIPE in whoever sends the request, and cannot be told not to. */
static bool may_raise_a_signal(const struct hive_op *op)
{
	return (op->code == HIVE_OP_WRITE || op->code == HIVE_OP_WRITEV) && op->offset < 0;
}

/* At a place of what has none: the kernel would not mind, and take or give the next bytes. To read nothing costs little, and waits
 * for nobody.                                                                                                                  */
static bool has_no_places(const struct hive_op *op)
{
	int error = errno;
	bool has_none = op->code >= HIVE_OP_READ && op->code <= HIVE_OP_WRITEV && op->offset >= 0 &&
	                preadv(op->fd, NULL, 0, op->offset) < 0 && errno == ESPIPE;

	errno = error;
	return has_none;
}

int hive__uring_submit(struct hive_core *core, struct hive_op *op)
{
	struct uring_core *c = uring_of(core);

	if (!(c->can >> op->code & 1) || may_raise_a_signal(op))
		return -ENOTSUP;
	if (has_no_places(op))
		return -ESPIPE;
	if (op->code == HIVE_OP_RECV_MANY && !hive__uring_lend(c, buffers_of(op->offset2)))
		return -ENOTSUP;
	memset(op->spare, 0, sizeof op->spare);
	send_or_list(c, op);
	return 0;
}

void hive__uring_cancel(struct hive_core *core, struct hive_op *op)
{
	if (op->spare[STATE] & RECALLED)
		return;
	op->spare[STATE] |= RECALLED;
	if (op->spare[STATE] & IN_KERNEL) /* else it is late, and will not be sent */
		send_or_list(uring_of(core), op);
}

/* ---- from the kernel ---- */

/* Once more, as it is or by a poll. After a recall it is over. */
static void again(struct uring_core *c, struct hive_op *op, uint64_t how)
{
	if (op->spare[STATE] & RECALLED) {
		hive_op_deliver(op, -ECANCELED, false);
		return;
	}
	op->spare[STATE] = (op->spare[STATE] & ~(uint64_t)(AWAITS | QUIET)) | how;
	send_or_list(c, op);
}

static void count_told(struct uring_core *c, struct hive_op *op)
{
	uint64_t turn = (uint64_t)c->turns << TURN_SHIFT;

	if (op->code == HIVE_OP_POLL)
		return; /* one in each turn */
	op->spare[TOLD] = op->spare[TOLD] >= turn ? op->spare[TOLD] + 1 : turn + 1;
	if (op->spare[TOLD] - turn >= ROUND)
		c->enough = true;
}

/* One result of several. If the kernel has ended the request it is sent again first, so that on_done finds it under way. */
static void deliver_one(struct uring_core *c, struct hive_op *op, int64_t result, bool more)
{
	bool over = !more && (op->spare[STATE] & RECALLED);

	if (!more && !over)
		again(c, op, 0);
	count_told(c, op);
	hive_op_deliver(op, result, true);
	if (over)
		hive_op_deliver(op, -ECANCELED, false);
}

static void poll_told(struct uring_core *c, struct hive_op *op, int result, bool more)
{
	uint32_t events = result < 0 ? 0 : hive__uring_events_of(result, op->flags);

	op->spare[SEEN] |= events;
	if (more) { /* a quiet one: it has to come back before it can be delivered */
		if (events != 0 && !(op->spare[STATE] & LATE))
			send_or_list(c, op);
		return;
	}
	events = (uint32_t)op->spare[SEEN];
	op->spare[SEEN] = 0;
	if (events == 0 && result >= 0)
		again(c, op, QUIET);
	else if (events != 0 && op->repeat)
		deliver_one(c, op, events, false);
	else
		hive_op_deliver(op, events ? (int64_t)events : result, false);
}

static bool can_wait(const struct hive_op *op)
{
	return op->code <= HIVE_OP_WRITEV && op->code != HIVE_OP_CONNECT;
}

/* The kernel has used one of the buffers. */
static void note_buffer(struct hive_op *op, int result, uint32_t index)
{
	struct buffers *buffers = buffers_of(op->offset2);

	buffers->in_ring--;
	if (result > 0)
		op->buffer = buffers_lend(buffers, index);
	else
		buffers_put(buffers, index);
}

/* What has come back meanwhile may do. Else it is the engine's to wait. */
static void lack_buffer(struct uring_core *c, struct hive_op *op)
{
	hive__uring_refill(buffers_of(op->offset2));
	if (buffers_of(op->offset2)->in_ring > 0 || (op->spare[STATE] & RECALLED))
		again(c, op, 0);
	else
		hive_op_deliver(op, -ENOBUFS, false);
}

static bool is_one_of_several(const struct hive_op *op, int result)
{
	return op->repeat && (result > 0 || (result == 0 && op->code != HIVE_OP_RECV_MANY));
}

void hive__op_told(struct uring_core *c, struct hive_op *op, int result, uint32_t flags)
{
	bool awaited = op->spare[STATE] & AWAITS, more = flags & IORING_CQE_F_MORE;

	if (!more) {
		op->spare[STATE] &= ~(uint64_t)IN_KERNEL;
		leave_list(c, op);
	}
	if (flags & IORING_CQE_F_BUFFER)
		note_buffer(op, result, flags >> IORING_CQE_BUFFER_SHIFT);
	if (result == -EINTR && op->code == HIVE_OP_CLOSE)
		hive_op_deliver(op, 0, false); /* it is gone all the same */
	else if (result == -EINTR || (result == -ECONNABORTED && op->code == HIVE_OP_ACCEPT))
		again(c, op, 0);
	else if (op->code == HIVE_OP_POLL)
		poll_told(c, op, result, more);
	else if (awaited && result >= 0)
		again(c, op, 0);
	else if (result == -EAGAIN && !awaited && can_wait(op))
		again(c, op, AWAITS);
	else if (result == -ENOBUFS && op->code == HIVE_OP_RECV_MANY)
		lack_buffer(c, op);
	else if (is_one_of_several(op, result))
		deliver_one(c, op, result, more);
	else
		hive_op_deliver(op, result, false);
}
#endif
