/* SPDX-License-Identifier: MIT */
/* Each operation that is left to the kernel, and each poll that the core makes for itself, comes back with each error that it may have, and
 * has done nothing: sent again where that is promised, else told, once. The linker leads the core's calls of liburing here
 * (cmake/tests.cmake).                                                                                                     */
#if defined(HIVE_URING)
#include <netinet/in.h>
#include <sys/stat.h>

#include "core/uring.h"
#endif

#include "support/uring_calls.h"

#if defined(HIVE_URING)
enum { MARKS = 16 };

/* What fails: entries of this sort, so often; they are sent as such that do nothing, and their answers are changed. */
static struct {
	uint64_t sort;
	int error, times;
	uint64_t marks[MARKS];
	int marked, injected;
} fault;

static void spoil(struct io_uring *ring)
{
	for (unsigned at = ring->sq.sqe_head; at != ring->sq.sqe_tail && fault.times > 0; at++) {
		struct io_uring_sqe *sqe = &ring->sq.sqes[at & ring->sq.ring_mask];
		uint64_t mark = sqe->user_data;

		if ((mark & FOR_BITS) != fault.sort || sqe->opcode == IORING_OP_NOP)
			continue;
		memset(sqe, 0, sizeof *sqe);
		io_uring_prep_nop(sqe);
		sqe->user_data = mark;
		CHECK(fault.marked < MARKS);
		fault.marks[fault.marked++] = mark;
		fault.times--;
		fault.injected++;
	}
}

static bool was_spoilt(uint64_t mark)
{
	for (int i = 0; i < fault.marked; i++)
		if (fault.marks[i] == mark) {
			fault.marks[i] = fault.marks[--fault.marked];
			return true;
		}
	return false;
}

static void answer_for(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	unsigned head;

	io_uring_for_each_cqe(ring, head, cqe) if (fault.marked > 0 && was_spoilt(cqe->user_data))
	{
		cqe->res = fault.error;
		cqe->flags = 0;
	}
}

int __real_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring);
int __real_io_uring_submit_and_get_events(struct io_uring *ring);
int __wrap_io_uring_submit_and_get_events(struct io_uring *ring);
int __real_io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe, unsigned count,
                                            struct __kernel_timespec *limit, sigset_t *mask);
int __wrap_io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe, unsigned count,
                                            struct __kernel_timespec *limit, sigset_t *mask);

int __wrap_io_uring_submit(struct io_uring *ring)
{
	int r;

	spoil(ring);
	r = __real_io_uring_submit(ring);
	answer_for(ring);
	return r;
}

int __wrap_io_uring_submit_and_get_events(struct io_uring *ring)
{
	int r;

	spoil(ring);
	r = __real_io_uring_submit_and_get_events(ring);
	answer_for(ring);
	return r;
}

int __wrap_io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe, unsigned count,
                                            struct __kernel_timespec *limit, sigset_t *mask)
{
	int r;

	spoil(ring);
	r = __real_io_uring_submit_and_wait_timeout(ring, cqe, count, limit, mask);
	answer_for(ring);
	return r;
}

static void fail_with(uint64_t sort, int error, int times)
{
	fault.sort = sort;
	fault.error = error;
	fault.times = times;
	fault.marked = 0;
}

/* ---- something to do for each operation ---- */

static struct rig rig;

static struct place {
	int pair[2], listener, client, folder, file, copy;
	struct hive_address at;
	char path[64], bytes[8];
	struct iovec part;
	struct msghdr message;
	struct statx about;
	struct hive_buffers *buffers;
} p;

static void make_listener(void)
{
	struct sockaddr_in *at = (struct sockaddr_in *)(void *)p.at.storage;
	socklen_t bytes = sizeof p.at.storage;

	p.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	p.client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	*at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	CHECK_OK(bind(p.listener, (struct sockaddr *)(void *)at, sizeof *at));
	CHECK_OK(listen(p.listener, 10));
	CHECK_OK(getsockname(p.listener, (struct sockaddr *)(void *)at, &bytes));
	p.at.bytes = bytes;
}

static void make_place(void)
{
	memset(&p, 0, sizeof p);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, p.pair));
	CHECK_EQ(write(p.pair[1], "abc", 3), 3);
	make_listener();
	strcpy(p.path, "/tmp/rophive-failing-XXXXXX");
	CHECK(mkdtemp(p.path));
	p.folder = open(p.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	p.file = openat(p.folder, "old", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK_EQ(write(p.file, "hello", 5), 5);
	p.copy = dup(p.file);
	p.part = (struct iovec){ p.bytes, 2 };
	p.message = (struct msghdr){ .msg_iov = &p.part, .msg_iovlen = 1 };
	CHECK_OK(hive_buffers_create(rig.l.f.hive, 2, 10, &p.buffers));
}

static void end_place(void)
{
	int fds[] = { p.pair[0], p.pair[1], p.listener, p.client, p.file };

	for (int i = 0; i < 5; i++)
		CHECK_OK(close(fds[i]));
	if (fcntl(p.copy, F_GETFD) >= 0)
		CHECK_OK(close(p.copy));
	unlinkat(p.folder, "old", 0);
	unlinkat(p.folder, "new", 0);
	unlinkat(p.folder, "folder", AT_REMOVEDIR);
	CHECK_OK(close(p.folder));
	CHECK_OK(rmdir(p.path));
	CHECK_OK(hive_buffers_destroy(p.buffers));
}

static int begin(uint32_t code, struct hive_op *op)
{
	const int64_t never = HIVE_FOREVER;

	switch (code) {
	case HIVE_OP_ACCEPT:
		CHECK_OK(connect(p.client, (const struct sockaddr *)(const void *)p.at.storage, p.at.bytes));
		return hive_op_accept(op, p.listener, 0, never);
	case HIVE_OP_CONNECT:
		return hive_op_connect(op, p.client, &p.at, never);
	case HIVE_OP_RECV:
		return hive_op_recv(op, p.pair[0], p.bytes, 8, never);
	case HIVE_OP_RECV_MANY:
		return hive_op_recv_many(op, p.pair[0], p.buffers, never);
	case HIVE_OP_SEND:
		return hive_op_send(op, p.pair[0], p.bytes, 2, never);
	case HIVE_OP_RECVMSG:
		return hive_op_recvmsg(op, p.pair[0], &p.message, 0, never);
	case HIVE_OP_SENDMSG:
		return hive_op_sendmsg(op, p.pair[0], &p.message, 0, never);
	case HIVE_OP_READ:
		return hive_op_read(op, p.file, p.bytes, 8, 0, never);
	case HIVE_OP_WRITE:
		return hive_op_write(op, p.file, p.bytes, 2, 0, never);
	case HIVE_OP_READV:
		return hive_op_readv(op, p.file, &p.part, 1, 0, never);
	case HIVE_OP_WRITEV:
		return hive_op_writev(op, p.file, &p.part, 1, 0, never);
	case HIVE_OP_POLL:
		return hive_op_poll(op, p.pair[0], HIVE_EVENT_IN, 0, never);
	case HIVE_OP_OPEN:
		return hive_op_open(op, p.folder, "old", O_RDONLY, 0, never);
	case HIVE_OP_CLOSE:
		return hive_op_close(op, p.copy, never);
	case HIVE_OP_FSYNC:
		return hive_op_fsync(op, p.file, false, never);
	case HIVE_OP_STATX:
		return hive_op_statx(op, p.folder, "old", 0, &p.about, never);
	case HIVE_OP_UNLINK:
		return hive_op_unlink(op, p.folder, "old", 0, never);
	case HIVE_OP_RENAME:
		return hive_op_rename(op, p.folder, "old", p.folder, "new", never);
	default:
		return hive_op_mkdir(op, p.folder, "folder", 0700, never);
	}
}

/* What it says where nothing fails; of descriptors: that there is one. */
static int64_t good_result(uint32_t code)
{
	switch (code) {
	case HIVE_OP_RECV:
	case HIVE_OP_RECV_MANY:
		return 3;
	case HIVE_OP_READ:
		return 5;
	case HIVE_OP_SEND:
	case HIVE_OP_SENDMSG:
	case HIVE_OP_RECVMSG:
	case HIVE_OP_WRITE:
	case HIVE_OP_WRITEV:
	case HIVE_OP_READV:
		return 2;
	case HIVE_OP_POLL:
		return HIVE_EVENT_IN;
	default:
		return 0;
	}
}

/* What it has to say after this error. The second EAGAIN in a row is that of a poll: then it goes on without the ring, a write to a file on a
 * compute worker, of which there is none.                                                                                  */
static int64_t result_after(uint32_t code, int error, int times)
{
	bool again = error == 0 || error == -EINTR || (error == -EAGAIN && code < HIVE_OP_OPEN) ||
	             (error == -ECONNABORTED && code == HIVE_OP_ACCEPT) ||
	             (error == -ENOBUFS && code == HIVE_OP_RECV_MANY);

	if (error == -EAGAIN && times > 1 && (code == HIVE_OP_WRITE || code == HIVE_OP_WRITEV))
		return -ENOTSUP;
	return again ? good_result(code) : error;
}

/* ---- the test ---- */

static struct call call;

static void done(struct hive_op *op, int64_t result)
{
	if (op->code == HIVE_OP_RECV_MANY && result > 0)
		CHECK_OK(hive_buffer_return(p.buffers, op->buffer));
	if ((op->code == HIVE_OP_ACCEPT || op->code == HIVE_OP_OPEN) && result >= 0) {
		CHECK_OK(close((int)result));
		result = 0;
	}
	call_done(op, result);
}

static void go_on(void)
{
	rig.ops->wake(rig.core); /* a beat does not wait */
	CHECK(lone_beat(&rig.l, 0));
}

static void go_on_until(int count)
{
	STEP_UNTIL(calls_over >= count, go_on());
}

static void check_code(uint32_t code, int error, int times)
{
	int64_t expected = result_after(code, error, times);

	make_place();
	memset(&call, 0, sizeof call);
	calls_over = 0;
	fail_with(FOR_OP, error, times);
	hive_op_init(&call.op, rig.l.f.hive, done, &call);
	CHECK_OK(begin(code, &call.op));
	go_on_until(1);
	if (call.result != expected)
		test_fail(__FILE__, __LINE__, "operation %u after %s, %d times: %s, not %s", code, test_error(error),
		          times, test_error(call.result), test_error(expected));
	if (times == 1)
		CHECK_EQ(fault.times, 0);
	if (code == HIVE_OP_RECV_MANY && call.result > 0) {
		CHECK_OK(hive_op_cancel(&call.op));
		go_on_until(2);
	}
	for (int i = 0; i < 3; i++) { /* nothing more is told */
		rig.ops->wake(rig.core);
		CHECK(lone_beat(&rig.l, 0));
	}
	CHECK_EQ(call.done, calls_over);
	CHECK(calls_over == 1 || code == HIVE_OP_RECV_MANY);
	end_place();
}

TEST(each_operation_bears_each_error)
{
	static const int errors[] = { -EINTR,        -EAGAIN, -ENOMEM,  -EIO,       -ECANCELED,
		                      -ECONNABORTED, -EINVAL, -ENOBUFS, -EOPNOTSUPP };

	fault.injected = 0;
	for (uint32_t code = 1; code < HIVE_OP_CODES; code++) {
		if (!(URING_OPS >> code & 1))
			continue;
		if (!calls_open(&rig, 8))
			return;
		if (uring_of(rig.core)->can >> code & 1) {
			check_code(code, 0, 0);
			for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
				check_code(code, errors[i], 1);
				check_code(code, errors[i], 3);
			}
		}
		rig_close(&rig);
	}
	printf("faults injected: %d\n", fault.injected);
	CHECK(fault.injected > 300);
}

/* ---- what the core asks for itself ---- */

TEST(a_source_bears_that_its_poll_fails)
{
	static const int errors[] = { -ENOMEM, -EINTR, -ECANCELED, -EAGAIN };
	static const uint32_t ways[] = { HIVE_EVENT_IN, HIVE_EVENT_IN | HIVE_EVENT_EDGE,
		                         HIVE_EVENT_IN | HIVE_EVENT_ONCE };

	for (int i = 0; i < 12; i++) {
		static struct ear ear;
		int fds[2];

		if (!calls_open(&rig, 8))
			return;
		make_pipe(fds);
		fail_with(FOR_WATCH, errors[i % 4], 3);
		ear_start(&ear, fds[0], ways[i / 4]);
		for (int n = 0; n < 5; n++)
			rig_turn(&rig, 0);
		CHECK_EQ(fault.times, 0);
		CHECK_EQ(ear.heard, 0);
		put_byte(fds[1]);
		for (int n = 0; n < 5; n++)
			rig_turn(&rig, 0);
		CHECK(ear.heard > 0);
		CHECK_EQ(ear.events, HIVE_EVENT_IN);
		ear_stop(&ear);
		close_both(fds);
		rig_close(&rig);
	}
}

TEST(a_source_is_told_that_its_descriptor_is_none)
{
	static struct ear ear;
	int fds[2];

	if (!calls_open(&rig, 8))
		return;
	make_pipe(fds);
	fail_with(FOR_WATCH, -EBADF, 1);
	ear_start(&ear, fds[0], HIVE_EVENT_IN);
	for (int n = 0; n < 5; n++)
		rig_turn(&rig, 0);
	CHECK_EQ(ear.heard, 1);
	CHECK_EQ(ear.events, HIVE_EVENT_ERR);
	ear_stop(&ear);
	close_both(fds);
	rig_close(&rig);
}

/* From the first one on, which is sent when the ring is opened. */
TEST(wake_ups_are_heard_though_their_poll_fails)
{
	for (int times = 1; times <= 3; times++) {
		fail_with(FOR_WAKER, -ENOMEM, times);
		if (!calls_open(&rig, 8))
			return;
		for (int n = 0; n < times; n++)
			rig_turn(&rig, 0);
		CHECK_EQ(fault.times, 0);
		rig.ops->wake(rig.core);
		rig_turn(&rig, HIVE_FOREVER);
		rig_turn(&rig, 0);
		rig.ops->wake(rig.core);
		rig_turn(&rig, HIVE_FOREVER);
		rig_close(&rig);
	}
}
#else
TEST(no_ring_in_this_build)
{
	test_skip("no io_uring in this build");
}
#endif
