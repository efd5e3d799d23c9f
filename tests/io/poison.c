/* SPDX-License-Identifier: MIT */
/* What an operation fills is nobody's until it is complete: AddressSanitizer would say so. */
#include "base/poison.h"
#include "support/net.h"

#include <rophive/fiber.h>
#include <rophive/sync.h>
#include <sys/stat.h>
#include <sys/uio.h>

static _Alignas(64) char buffer[256];
static _Alignas(64) struct statx about;
static struct iovec parts[2] = { { buffer, 64 }, { buffer + 128, 64 } };

static void check_at(const void *at, bool expected)
{
	int poisoned = IS_POISONED((void *)(uintptr_t)at);

	(void)at;
	CHECK_EQ(poisoned, TEST_ASAN ? (int)expected : -1);
}

/* What the operations say is looked at all the same. */
static void say_what_is_missing(void)
{
	if (!TEST_ASAN)
		test_skip("nobody sees what is poisoned without AddressSanitizer: results alone");
}

/* Whether these 64 bytes are, and what follows is not. */
static void check_bytes(const char *at, bool expected)
{
	check_at(at, expected);
	check_at(at + 63, expected);
	check_at(at + 64, false);
}

/* ---- what waits for a descriptor ---- */

enum what { RECV, READ, READV, RECVMSG, WHATS };

static struct msghdr message;
static _Alignas(64) char name[128], control[128];

static int begin(enum what what, struct hive_op *op, int fd, int64_t deadline_ns)
{
	switch (what) {
	case RECV:
		return hive_op_recv(op, fd, buffer, 64, deadline_ns);
	case READ:
		return hive_op_read(op, fd, buffer, 64, -1, deadline_ns);
	case READV:
		return hive_op_readv(op, fd, parts, 2, -1, deadline_ns);
	default:
		message = (struct msghdr){ .msg_iov = parts,
			                   .msg_iovlen = 2,
			                   .msg_name = name,
			                   .msg_namelen = 64,
			                   .msg_control = control,
			                   .msg_controllen = 64 };
		return hive_op_recvmsg(op, fd, &message, 0, deadline_ns);
	}
}

static void check_all(enum what what, bool expected)
{
	check_bytes(buffer, expected);
	check_bytes(buffer + 128, expected && (what == READV || what == RECVMSG));
	check_bytes(name, expected && what == RECVMSG);
	check_bytes(control, expected && what == RECVMSG);
}

static void check_ways(const int fds[2], enum what what)
{
	for (int way = 0; way < 3; way++) {
		int64_t deadline_ns = way == 2 ? hive_deadline(NULL, HIVE_MS(1)) : HIVE_FOREVER, result;
		struct hive_op op;

		hive_op_init(&op, hive_current(), NULL, NULL);
		check_all(what, false);
		CHECK_OK(begin(what, &op, fds[0], deadline_ns));
		check_all(what, true);
		if (way == 0)
			CHECK_EQ(write(fds[1], "x", 1), 1);
		else if (way == 1)
			CHECK_OK(hive_op_cancel(&op));
		result = hive_op_wait(&op);
		check_all(what, false);
		CHECK_EQ(result, way == 0 ? 1 : way == 1 ? -ECANCELED : -ETIMEDOUT);
	}
}

static int fill(void *arg)
{
	int fds[2];

	(void)arg;
	net_pair(fds);
	for (int i = 0; i < 2 * WHATS; i++) /* the first one is registered, others find it so */
		check_ways(fds, (enum what)(i % WHATS));
	net_close(fds);
	return 0;
}

TEST(what_is_filled_is_nobodys_until_it_is_complete)
{
	say_what_is_missing();
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 1, 1);
		int result = -1;

		CHECK_OK(hive_block_on(hive, fill, NULL, HIVE_FOREVER, &result));
		CHECK_EQ(result, 0);
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- a fiber that waits at its seat itself ---- */

static struct hive_semaphore turn;

/* One worker: who is let go has his turn when the other one waits. */
static int64_t receive_once(int fd, int64_t deadline_ns)
{
	int64_t r;

	CHECK_OK(hive_semaphore_release(&turn, 1));
	r = hive_recv(fd, buffer, 64, deadline_ns);
	check_bytes(buffer, false);
	return r;
}

static int receive(void *arg)
{
	const int *fds = arg;

	CHECK_EQ(receive_once(fds[0], HIVE_FOREVER), 1); /* by an operation: nothing is known of it yet */
	CHECK_EQ(receive_once(fds[0], HIVE_FOREVER), 1);
	CHECK_ERR(receive_once(fds[0], hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT);
	CHECK_ERR(receive_once(fds[0], HIVE_FOREVER), -ECANCELED);
	return 0;
}

static int watch_receiver(void *arg)
{
	struct hive_fiber *fiber;
	int fds[2];

	(void)arg;
	net_pair(fds);
	hive_semaphore_init(&turn, 0);
	fiber = net_spawn(receive, fds);
	for (int i = 0; i < 4; i++) {
		CHECK_OK(hive_semaphore_acquire(&turn, 1, HIVE_FOREVER));
		check_bytes(buffer, true);
		if (i < 2)
			CHECK_EQ(write(fds[1], "x", 1), 1);
	}
	CHECK_OK(hive_fiber_cancel(fiber));
	CHECK_EQ(net_join(fiber), 0);
	check_bytes(buffer, false);
	net_close(fds);
	return 0;
}

TEST(what_a_fiber_waits_for_is_nobodys)
{
	say_what_is_missing();
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 1, 1);
		int result = -1;

		CHECK_OK(hive_block_on(hive, watch_receiver, NULL, HIVE_FOREVER, &result));
		CHECK_EQ(result, 0);
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- on compute workers ---- */

enum { FILE_BYTES = 100000 };

static _Alignas(64) char large[2][FILE_BYTES];
static struct iovec large_parts[2] = { { large[0], FILE_BYTES }, { large[1], FILE_BYTES } };

static void check_large(bool expected)
{
	for (int i = 0; i < 2; i++) {
		check_at(large[i], expected);
		check_at(&large[i][FILE_BYTES - 16], expected);
	}
}

/* Nobody comes to it, until the gate is opened. */
static void check_queued(struct hive *hive, int fd, bool cancels)
{
	struct hive_op reading, asking;
	struct block block;
	int64_t results[2];

	block_init(&block);
	CHECK_OK(hive_post_compute(hive, block_task, &block));
	gate_pass(&block.entered);
	hive_op_init(&reading, hive, NULL, NULL);
	hive_op_init(&asking, hive, NULL, NULL);
	CHECK_OK(hive_op_readv(&reading, fd, large_parts, 2, 0, HIVE_FOREVER)); /* too long for any IO worker */
	CHECK_OK(hive_op_statx(&asking, AT_FDCWD, "/", 0, &about, HIVE_FOREVER));
	check_large(true);
	check_at(&about, true);
	check_at((char *)&about + sizeof about - 1, true);
	if (cancels) {
		CHECK_OK(hive_op_cancel(&reading));
		CHECK_OK(hive_op_cancel(&asking));
	}
	gate_open(&block.leave);
	results[0] = hive_op_wait(&reading);
	results[1] = hive_op_wait(&asking);
	check_large(false);
	check_at(&about, false);
	check_at((char *)&about + sizeof about - 1, false);
	CHECK_EQ(results[0], cancels ? -ECANCELED : 2 * FILE_BYTES);
	CHECK(results[1] == 0 || (cancels && results[1] == -ECANCELED));
	block_destroy(&block);
}

static int read_file(void *arg)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK_OK(ftruncate(fd, 3 * FILE_BYTES));
	check_queued(arg, fd, false);
	check_queued(arg, fd, true);
	CHECK_OK(close(fd));
	return 0;
}

TEST(what_a_compute_worker_will_fill_is_nobodys)
{
	say_what_is_missing();
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 1, 1);
		int result = -1;

		CHECK_OK(hive_block_on(hive, read_file, hive, HIVE_FOREVER, &result));
		CHECK_EQ(result, 0);
		real_end(hive, HIVE_DRAIN);
	}
}

/* Those that nobody came to. */
static int leave_two(void *arg)
{
	struct hive_op *ops = arg;

	for (int i = 0; i < 2; i++)
		hive_op_init(&ops[i], hive_current(), NULL, NULL);
	CHECK_OK(hive_op_statx(&ops[0], AT_FDCWD, "/", 0, &about, HIVE_FOREVER));
	CHECK_OK(hive_op_readv(&ops[1], 987654, large_parts, 2, 0, HIVE_FOREVER));
	return 0;
}

TEST(what_was_never_filled_is_returned_all_the_same)
{
	say_what_is_missing();
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 1, 1);
		struct hive_op ops[2];
		struct block block;
		int result = -1;

		block_init(&block);
		CHECK_OK(hive_post_compute(hive, block_task, &block));
		gate_pass(&block.entered);
		CHECK_OK(hive_block_on(hive, leave_two, ops, HIVE_FOREVER, &result));
		CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
		gate_open(&block.leave);
		for (int n = 0; n < 2; n++)
			CHECK(hive_op_wait(&ops[n]) <= 0);
		check_at(&about, false);
		check_large(false);
		real_end(hive, HIVE_NOW);
		block_destroy(&block);
	}
}
