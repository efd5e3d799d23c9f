/* SPDX-License-Identifier: MIT */
/* Kernels that are older, know less or answer otherwise than this one: the ring does with what there is, or says why it cannot. The
 * linker leads the core's calls of liburing here (cmake/tests.cmake).                                                      */
#if defined(HIVE_URING)
#include <netinet/in.h>
#include <sys/utsname.h>

#include "core/uring.h"
#endif

#include "support/uring_calls.h"

#if defined(HIVE_URING)
/* What is odd about it. */
static struct {
	unsigned flags; /* of a ring, that it does not know */
	uint32_t lacks; /* features */
	int error;      /* of a new ring */
	int asked;      /* for a ring, so often */
	int probe_error;
	int lacks_code; /* an operation, 0: none */
	int buffers_error;
	int setup; /* what it says to a ring without entries */
	const char *release;
	int instead; /* of what it would answer, so often: */
	int insteads;
} odd;

int __real_io_uring_queue_init_params(unsigned entries, struct io_uring *ring, struct io_uring_params *params);
int __wrap_io_uring_queue_init_params(unsigned entries, struct io_uring *ring, struct io_uring_params *params);
int __real_io_uring_register_probe(struct io_uring *ring, struct io_uring_probe *probe, unsigned count);
int __wrap_io_uring_register_probe(struct io_uring *ring, struct io_uring_probe *probe, unsigned count);
int __real_io_uring_register_buf_ring(struct io_uring *ring, struct io_uring_buf_reg *about, unsigned flags);
int __wrap_io_uring_register_buf_ring(struct io_uring *ring, struct io_uring_buf_reg *about, unsigned flags);
int __wrap_io_uring_setup(unsigned entries, struct io_uring_params *params);
int __wrap_uname(struct utsname *ret_name);
int __real_io_uring_submit_and_get_events(struct io_uring *ring);
int __wrap_io_uring_submit_and_get_events(struct io_uring *ring);
int __real_io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe, unsigned count,
                                            struct __kernel_timespec *limit, sigset_t *mask);
int __wrap_io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe, unsigned count,
                                            struct __kernel_timespec *limit, sigset_t *mask);

int __wrap_io_uring_queue_init_params(unsigned entries, struct io_uring *ring, struct io_uring_params *params)
{
	int r;

	odd.asked++;
	if (odd.error < 0)
		return odd.error;
	if (params->flags & odd.flags)
		return -EINVAL;
	r = __real_io_uring_queue_init_params(entries, ring, params);
	params->features &= ~odd.lacks;
	return r;
}

int __wrap_io_uring_register_probe(struct io_uring *ring, struct io_uring_probe *probe, unsigned count)
{
	int r = odd.probe_error < 0 ? odd.probe_error : __real_io_uring_register_probe(ring, probe, count);
	struct io_uring_probe_op *ops = probe->ops;

	if (r >= 0 && odd.lacks_code)
		ops[odd.lacks_code].flags = 0;
	return r;
}

int __wrap_io_uring_register_buf_ring(struct io_uring *ring, struct io_uring_buf_reg *about, unsigned flags)
{
	return odd.buffers_error < 0 ? odd.buffers_error : __real_io_uring_register_buf_ring(ring, about, flags);
}

int __wrap_io_uring_setup(unsigned entries, struct io_uring_params *params)
{
	(void)entries;
	(void)params;
	return odd.setup > 0 ? dup(2) : odd.setup;
}

int __wrap_uname(struct utsname *ret_name)
{
	if (!odd.release)
		return -1;
	memset(ret_name, 0, sizeof *ret_name);
	strcpy(ret_name->release, odd.release);
	return 0;
}

static void answer_otherwise(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	unsigned head;

	io_uring_for_each_cqe(ring, head, cqe) if (odd.insteads > 0 && (cqe->user_data & FOR_BITS) == FOR_OP)
	{
		if (odd.instead == -ECONNABORTED && cqe->res >= 0)
			close(cqe->res); /* the one that has gone */
		cqe->res = odd.instead;
		odd.insteads--;
	}
}

int __wrap_io_uring_submit_and_get_events(struct io_uring *ring)
{
	int r = __real_io_uring_submit_and_get_events(ring);

	answer_otherwise(ring);
	return r;
}

int __wrap_io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe, unsigned count,
                                            struct __kernel_timespec *limit, sigset_t *mask)
{
	int r = __real_io_uring_submit_and_wait_timeout(ring, cqe, count, limit, mask);

	answer_otherwise(ring);
	return r;
}

/* An ordinary kernel of the oldest sort that will do. */
static void be_ordinary(void)
{
	memset(&odd, 0, sizeof odd);
	odd.setup = -EINVAL;
	odd.release = "5.13.0";
}

enum { CALLS = 10 };

static struct call calls[CALLS];
static struct rig rig;

/* A beat, for the engine's sake too; it does not wait. */
static void go_on(void)
{
	rig.ops->wake(rig.core);
	CHECK(lone_beat(&rig.l, 0));
}

static void go_on_until(int count)
{
	STEP_UNTIL(calls_over >= count, go_on());
	CHECK_EQ(calls_over, count);
}

/* Until only so many answers are still to be other ones. */
static void go_on_until_answered(int left)
{
	STEP_UNTIL(odd.insteads <= left, go_on());
}

static void pair(int fds[2])
{
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
}

/* Receives, more than the ring has entries, and one of them cancelled. */
static void check_ring(void)
{
	int fds[2];

	if (!calls_open(&rig, 4))
		return;
	pair(fds);
	calls_begin(&rig, calls, CALLS, fds[0]);
	go_on();
	CHECK_OK(hive_op_cancel(&calls[5].op));
	go_on_until(1);
	CHECK_EQ(write(fds[1], "abcdefghi", CALLS - 1), CALLS - 1);
	go_on_until(CALLS);
	for (int i = 0; i < CALLS; i++) {
		CHECK_EQ(calls[i].done, 1);
		CHECK_EQ(calls[i].result, i == 5 ? -ECANCELED : 1);
	}
	close_both(fds);
	rig_close(&rig);
}

/* ---- new rings ---- */

TEST(a_ring_is_opened_with_what_the_kernel_knows)
{
	static const unsigned unknown[] = {
		0,
		IORING_SETUP_DEFER_TASKRUN,                                                          /* before 6.1 */
		IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER,                             /* 6.0 */
		IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_TASKRUN_FLAG, /* 5.19 */
		IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_TASKRUN_FLAG |
			IORING_SETUP_SUBMIT_ALL, /* 5.18 */
	};

	for (int i = 0; i < (int)(sizeof unknown / sizeof *unknown); i++) {
		be_ordinary();
		odd.flags = unknown[i];
		check_ring();
		if (odd.asked == 0) /* skipped */
			return;
		CHECK_EQ(odd.asked, i + 1);
	}
	be_ordinary();
	odd.lacks = IORING_FEAT_CQE_SKIP; /* before 5.17 */
	check_ring();
}

static int open_descriptors(void)
{
	int fd = dup(2);

	CHECK(fd >= 0);
	CHECK_OK(close(fd));
	return fd;
}

static void check_refusal(int error, int asked)
{
	struct hive_core *core = NULL;
	int before = open_descriptors();

	odd.asked = 0;
	CHECK_ERR(hive__core_uring.open(NULL, &core), error);
	CHECK(!core);
	CHECK_EQ(odd.asked, asked);
	CHECK_EQ(open_descriptors(), before);
}

TEST(a_ring_that_cannot_be_had_leaves_nothing)
{
	be_ordinary();
	odd.error = -ENOMEM;
	check_refusal(-ENOMEM, 1);
	odd.error = -EPERM;
	check_refusal(-EPERM, 1);
	odd.error = -EINVAL; /* whatever it is asked for */
	check_refusal(-EINVAL, 5);
	be_ordinary();
	if (!calls_open(&rig, 4))
		return;
	rig_close(&rig);
	odd.lacks = IORING_FEAT_EXT_ARG;
	check_refusal(-ENOSYS, 1);
}

TEST(what_is_found_without_a_ring)
{
	int before = open_descriptors();

	be_ordinary();
	CHECK_OK(hive__uring_probe());
	odd.setup = 1; /* it makes one without entries */
	CHECK_OK(hive__uring_probe());
	CHECK_EQ(open_descriptors(), before);
	for (int i = 0; i < 2; i++) {
		odd.setup = i ? -EPERM : -ENOSYS;
		CHECK_ERR(hive__uring_probe(), odd.setup);
	}
	odd.setup = -EINVAL;
	for (int i = 0; i < 6; i++) {
		const char *releases[] = { "5.12.9", "4.19.0", "5", "none", NULL, "6.1.0" };

		odd.release = releases[i];
		CHECK_EQ(hive__uring_probe(), i == 5 ? 0 : -ENOSYS);
	}
}

/* ---- operations that it does not know ---- */

static int listen_at(struct sockaddr_in *ret_at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t bytes = sizeof *ret_at;

	*ret_at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	CHECK_OK(bind(fd, (struct sockaddr *)(void *)ret_at, sizeof *ret_at));
	CHECK_OK(listen(fd, 10));
	CHECK_OK(getsockname(fd, (struct sockaddr *)(void *)ret_at, &bytes));
	return fd;
}

static void accepted(struct hive_op *op, int64_t result)
{
	struct call *call = op->arg;

	call->result = result;
	calls_over++;
	if (result >= 0)
		CHECK_OK(close((int)result));
}

/* One after the other, by one operation, while the kernel says so often that somebody has gone. */
static void check_accepts(int gone)
{
	struct sockaddr_in at;
	int listener = listen_at(&at), fds[3];

	if (!calls_open(&rig, 4)) {
		CHECK_OK(close(listener));
		return;
	}
	calls_over = 0;
	hive_op_init(&calls[0].op, rig.l.f.hive, accepted, &calls[0]);
	CHECK_OK(hive_op_accept(&calls[0].op, listener, HIVE_OP_REPEAT, HIVE_FOREVER));
	odd.instead = -ECONNABORTED;
	odd.insteads = gone;
	for (int i = 0; i < 3; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK_OK(connect(fds[i], (const struct sockaddr *)(const void *)&at, sizeof at));
		if (i < gone)
			go_on_until_answered(gone - 1 - i);
		else
			go_on_until(i + 1 - gone);
	}
	CHECK_OK(hive_op_cancel(&calls[0].op));
	go_on_until(4 - gone);
	CHECK_ERR(calls[0].result, -ECANCELED);
	for (int i = 0; i < 3; i++)
		CHECK_OK(close(fds[i]));
	CHECK_OK(close(listener));
	rig_close(&rig);
}

TEST(what_the_kernel_does_not_know_is_done_by_readiness)
{
	be_ordinary();
	odd.probe_error = -EINVAL;
	check_ring();
	check_accepts(0);
	be_ordinary();
	odd.lacks_code = IORING_OP_RECV;
	check_ring();
	be_ordinary();
	odd.lacks_code = IORING_OP_SOCKET; /* before 5.19: an accept is one accept */
	check_accepts(0);
}

/* ---- lent buffers ---- */

static struct hive_buffers *pool;

static void piece(struct hive_op *op, int64_t result)
{
	struct call *call = op->arg;

	call->result = result;
	if (result <= 0) {
		call->done++;
		return;
	}
	calls_over += (int)result;
	CHECK_OK(hive_buffer_return(pool, op->buffer));
}

struct scarce {
	struct memory memory;
	int left;
};

static void *lack_one(void *arg, void *old, size_t bytes)
{
	struct scarce *s = arg;

	return bytes > 0 && s->left-- == 0 ? NULL : s->memory.allocate(s->memory.arg, old, bytes);
}

/* After so many blocks there is one that cannot be had; -1: all can. */
static void check_buffers(int blocks)
{
	struct scarce scarce;
	int fds[2];

	if (!calls_open(&rig, 4))
		return;
	pair(fds);
	calls_over = 0;
	memset(calls, 0, sizeof calls);
	CHECK_OK(hive_buffers_create(rig.l.f.hive, 2, 10, &pool));
	hive_op_init(&calls[0].op, rig.l.f.hive, piece, &calls[0]);
	scarce = (struct scarce){ uring_of(rig.core)->memory, blocks };
	uring_of(rig.core)->memory = (struct memory){ lack_one, &scarce };
	CHECK_OK(hive_op_recv_many(&calls[0].op, fds[0], pool, HIVE_FOREVER));
	uring_of(rig.core)->memory = scarce.memory;
	CHECK_EQ(write(fds[1], "0123456789abcdefghijklmno", 25), 25);
	go_on_until(25);
	CHECK_OK(shutdown(fds[1], SHUT_WR));
	STEP_UNTIL(calls[0].done, go_on());
	CHECK_EQ(calls[0].result, 0);
	CHECK_OK(hive_buffers_destroy(pool));
	close_both(fds);
	rig_close(&rig);
}

TEST(buffers_that_the_kernel_does_not_take_are_lent_by_readiness)
{
	be_ordinary();
	check_buffers(-1);
	check_buffers(0);
	check_buffers(1);
	odd.buffers_error = -ENOMEM;
	check_buffers(-1);
}

/* ---- other answers ---- */

/* It has taken a byte and says otherwise, so often; the next byte is for the same operation. */
static void check_again(int error, int times)
{
	int fds[2];

	be_ordinary();
	if (!calls_open(&rig, 4))
		return;
	pair(fds);
	odd.instead = error;
	odd.insteads = times;
	calls_begin(&rig, calls, 1, fds[0]);
	for (int left = times; left > 0; left--) {
		put_byte(fds[1]);
		go_on_until_answered(left - 1);
	}
	CHECK_EQ(calls_over, 0);
	CHECK_EQ(write(fds[1], "y", 1), 1);
	go_on_until(1);
	CHECK_EQ(calls[0].result, 1);
	CHECK_EQ(calls[0].byte, 'y');
	close_both(fds);
	rig_close(&rig);
}

TEST(what_was_interrupted_is_sent_again)
{
	check_again(-EINTR, 1);
	check_again(-EINTR, 3);
	check_again(-EAGAIN, 1); /* it would rather not wait: a poll does */
	be_ordinary();
	odd.lacks_code = IORING_OP_SOCKET;
	check_accepts(1);
	check_accepts(2);
}

static void check_sends(int error)
{
	char bytes[3] = "ab";
	struct iovec part = { bytes, 2 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	int fds[2];

	be_ordinary();
	if (!calls_open(&rig, 4))
		return;
	pair(fds);
	calls_over = 0;
	for (int i = 0; i < 2; i++) {
		memset(&calls[i], 0, sizeof calls[i]);
		hive_op_init(&calls[i].op, rig.l.f.hive, call_done, &calls[i]);
		odd.instead = error;
		odd.insteads = 1;
		if (i == 0)
			CHECK_OK(hive_op_send(&calls[i].op, fds[0], bytes, 2, HIVE_FOREVER));
		else
			CHECK_OK(hive_op_sendmsg(&calls[i].op, fds[0], &message, 0, HIVE_FOREVER));
		go_on_until(i + 1);
		CHECK_EQ(calls[i].result, 2);
	}
	CHECK_EQ(read(fds[1], (char[9]){ 0 }, 9), 8); /* those too of which it said that they were not sent */
	close_both(fds);
	rig_close(&rig);
}

TEST(one_that_cannot_be_sent_yet_waits_for_room)
{
	check_sends(-EAGAIN);
	check_sends(-EINTR);
}

/* Its end was asked for, and then it comes back for another reason. */
TEST(what_was_recalled_is_not_sent_again)
{
	static const int errors[] = { -EINTR, -EAGAIN };

	for (int i = 0; i < 2; i++) {
		int fds[2];

		be_ordinary();
		if (!calls_open(&rig, 4))
			return;
		pair(fds);
		calls_begin(&rig, calls, 1, fds[0]);
		go_on();
		CHECK_OK(hive_op_cancel(&calls[0].op));
		odd.instead = errors[i];
		odd.insteads = 1;
		go_on_until(1);
		CHECK_ERR(calls[0].result, -ECANCELED);
		close_both(fds);
		rig_close(&rig);
	}
}
#else
TEST(no_ring_in_this_build)
{
	test_skip("no io_uring in this build");
}
#endif
