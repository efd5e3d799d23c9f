/* SPDX-License-Identifier: MIT */
/* A kernel that takes nothing for a while: what could not be sent is kept in order, may be cancelled meanwhile, and is sent later. The
 * linker leads the core's calls of liburing here (cmake/tests.cmake).                                                      */
#if defined(HIVE_URING)
#include <liburing.h>
#endif

#include "support/uring_calls.h"

#if defined(HIVE_URING)
static int refusal;  /* what the kernel says; 0: it takes everything */
static int refusals; /* so often */

static int refuse(void)
{
	if (refusals == 0)
		return 0;
	refusals--;
	return refusal;
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
	int r = refuse();

	return r < 0 ? r : __real_io_uring_submit(ring);
}

int __wrap_io_uring_submit_and_get_events(struct io_uring *ring)
{
	int r = refuse();

	return r < 0 ? r : __real_io_uring_submit_and_get_events(ring);
}

int __wrap_io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe, unsigned count,
                                            struct __kernel_timespec *limit, sigset_t *mask)
{
	int r = refuse();

	return r < 0 ? r : __real_io_uring_submit_and_wait_timeout(ring, cqe, count, limit, mask);
}

enum { CALLS = 20, MANY = 1000000 };

static struct call calls[CALLS];

static void check_kernel_that_says(int error)
{
	static struct rig r;
	int fds[2];

	if (!calls_open(&r, 4))
		return;
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
	refusal = error;
	refusals = MANY;
	calls_begin(&r, calls, CALLS, fds[0]);
	for (int i = 0; i < 5; i++)
		rig_turn(&r, i % 2 ? HIVE_MS(2) : 0);
	CHECK_EQ(calls_over, 0);
	CHECK_OK(hive_op_cancel(&calls[2].op));  /* in the queue, never sent */
	CHECK_OK(hive_op_cancel(&calls[10].op)); /* in line */
	CHECK_OK(hive_op_cancel(&calls[CALLS - 1].op));
	refusals = 7;
	CHECK_EQ(write(fds[1], "abcdefghijklmnopqrst", CALLS), CALLS);
	calls_turn_until(&r, CALLS, HIVE_MS(1));
	for (int i = 0; i < CALLS; i++) {
		bool cancelled = i == 10 || i == CALLS - 1;

		CHECK_EQ(calls[i].done, 1);
		if (i != 2) /* its recall may come too late */
			CHECK_EQ(calls[i].result, cancelled ? -ECANCELED : 1);
	}
	close_both(fds);
	rig_close(&r);
}

TEST(what_a_kernel_without_memory_does_not_take_is_sent_later)
{
	check_kernel_that_says(-EAGAIN);
	check_kernel_that_says(-EBUSY);
}

/* The recall of one that is in the kernel has to wait in line too. */
TEST(a_recall_waits_as_well)
{
	static struct rig r;
	int fds[2];

	if (!calls_open(&r, 4))
		return;
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
	calls_begin(&r, calls, CALLS, fds[0]);
	rig_turn(&r, 0);
	refusal = -EBUSY;
	refusals = MANY;
	for (int i = 0; i < CALLS; i++)
		CHECK_OK(hive_op_cancel(&calls[i].op));
	rig_turn(&r, 0);
	CHECK_EQ(calls_over, 0);
	refusals = 3;
	calls_turn_until(&r, CALLS, HIVE_MS(1));
	for (int i = 0; i < CALLS; i++) {
		CHECK_EQ(calls[i].done, 1);
		CHECK_ERR(calls[i].result, -ECANCELED);
	}
	close_both(fds);
	rig_close(&r);
}
/* ---- sources ---- */

enum { EARS = 8 };

/* Armed, stopped and started again while nothing is taken: they hear all there is to hear afterwards, and not before. */
TEST(sources_wait_for_the_kernel_too)
{
	static struct rig r;
	static struct ear ears[EARS];
	int fds[EARS][2];

	if (!calls_open(&r, 4))
		return;
	refusal = -EBUSY;
	refusals = MANY;
	for (int i = 0; i < EARS; i++) {
		make_pipe(fds[i]);
		put_byte(fds[i][1]);
		ear_start(&ears[i], fds[i][0], HIVE_EVENT_IN);
	}
	for (int i = 0; i < 3; i++)
		rig_turn(&r, 0);
	ear_stop(&ears[0]);        /* in the queue, never sent; */
	ear_stop(&ears[EARS - 1]); /* in line */
	rig_turn(&r, 0);
	for (int i = 0; i < EARS; i++)
		CHECK_EQ(ears[i].heard, 0);
	refusals = 2;
	for (int i = 0; i < 10; i++)
		rig_turn(&r, HIVE_MS(1));
	for (int i = 0; i < EARS; i++)
		CHECK_EQ(ears[i].heard > 0, i != 0 && i != EARS - 1);
	refusals = MANY; /* those that are in the kernel cannot be recalled */
	for (int i = 1; i < EARS - 1; i++)
		ear_stop(&ears[i]);
	for (int i = 0; i < EARS; i++)
		ear_start(&ears[i], fds[i][0], HIVE_EVENT_IN);
	rig_turn(&r, 0);
	refusals = 0;
	for (int i = 0; i < 10; i++)
		rig_turn(&r, HIVE_MS(1));
	for (int i = 0; i < EARS; i++) {
		CHECK(ears[i].heard > 0);
		ear_stop(&ears[i]);
		close_both(fds[i]);
	}
	rig_close(&r);
}

TEST(a_ring_is_opened_and_closed_while_nothing_is_taken)
{
	static struct rig r;
	static struct ear ears[EARS];
	int fds[2];

	refusal = -EAGAIN;
	refusals = 1;
	if (!calls_open(&r, 4))
		return;
	CHECK_EQ(refusals, 0);
	make_pipe(fds);
	r.ops->wake(r.core);
	rig_turn(&r, HIVE_FOREVER); /* it hears wake-ups all the same */
	refusals = MANY;
	for (int i = 0; i < EARS; i++)
		ear_start(&ears[i], i % 2 ? dup(fds[0]) : dup(fds[1]), HIVE_EVENT_IN);
	rig_turn(&r, 0);
	for (int i = 0; i < EARS; i++) {
		ear_stop(&ears[i]);
		CHECK_OK(close((int)ears[i].source.handle));
	}
	rig_close(&r);
	refusals = 0;
	close_both(fds);
}

TEST(a_ring_that_does_not_work_is_not_opened)
{
	struct hive_core *core = NULL;
	const struct hive_core_ops *ops;

	if (hive_core_find("uring", &ops) < 0) {
		test_skip("no io_uring here");
		return;
	}
	refusal = -ENXIO;
	refusals = 1;
	CHECK_ERR(ops->open(NULL, &core), -ENXIO);
	CHECK(!core);
}
#else
TEST(no_ring_in_this_build)
{
	test_skip("no io_uring in this build");
}
#endif
