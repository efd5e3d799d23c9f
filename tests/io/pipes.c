/* SPDX-License-Identifier: MIT */
/* Pipes: bytes, back-pressure, and a reader that has gone, on each core and in threads. */
#include <pthread.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "support/net.h"

enum { STREAM = 3 << 20 };

static void make(int fds[2])
{
	CHECK_OK(pipe2(fds, O_NONBLOCK | O_CLOEXEC));
}

static unsigned char byte_at(size_t at)
{
	return (unsigned char)(at * 31 + (at >> 8));
}

/* ---- bytes ---- */

static int pour(void *arg)
{
	static unsigned char bytes[STREAM];
	int fd = *(int *)arg;

	for (size_t i = 0; i < STREAM; i++)
		bytes[i] = byte_at(i);
	for (size_t sent = 0; sent < STREAM;) {
		int64_t n = hive_write(fd, bytes + sent, STREAM - sent, -1, HIVE_FOREVER);

		CHECK(n > 0);
		sent += (size_t)n;
	}
	CHECK_OK(close(fd));
	return 0;
}

/* The stream is many times what a pipe holds: the writer has to wait for the reader, again and again. */
static int drink(void *arg)
{
	unsigned char buffer[5000];
	struct hive_fiber *other;
	size_t have = 0;
	int64_t n;
	int fds[2];

	(void)arg;
	make(fds);
	other = net_spawn(pour, &fds[1]);
	while ((n = hive_read(fds[0], buffer, sizeof buffer, -1, HIVE_FOREVER)) > 0)
		for (int64_t i = 0; i < n; i++)
			CHECK_EQ(buffer[i], byte_at(have++));
	CHECK_EQ(n, 0);
	CHECK_EQ(have, STREAM);
	CHECK_EQ(net_join(other), 0);
	CHECK_OK(close(fds[0]));
	return 0;
}

TEST(a_stream_goes_through_a_pipe)
{
	net_each(drink);
}

static int fill(int fd)
{
	static const char bytes[4096];
	int64_t n;
	int sum = 0;

	while ((n = hive_write(fd, bytes, sizeof bytes, -1, HIVE_NOWAIT)) > 0)
		sum += (int)n;
	CHECK_ERR(n, -ETIMEDOUT);
	return sum;
}

static int write_more(void *arg)
{
	return (int)hive_write(*(int *)arg, "!", 1, -1, HIVE_FOREVER);
}

static int full(void *arg)
{
	char buffer[4096];
	struct hive_fiber *other;
	struct iovec parts[2] = { { buffer, 10 }, { buffer + 10, 90 } };
	int fds[2], held;

	(void)arg;
	make(fds);
	held = fill(fds[1]);
	CHECK(held >= 4096);
	CHECK_ERR(hive_write(fds[1], "x", 1, -1, hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT);
	CHECK_ERR(hive_writev(fds[1], parts, 2, -1, hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT);
	other = net_spawn(write_more, &fds[1]);
	for (int taken = 0; taken < held + 1;) { /* only now there is room for it */
		int64_t n = hive_read(fds[0], buffer, sizeof buffer, -1, HIVE_FOREVER);

		CHECK(n > 0);
		taken += (int)n;
	}
	CHECK_EQ(net_join(other), 1);
	CHECK_ERR(hive_read(fds[0], buffer, 1, -1, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_EQ(hive_writev(fds[1], parts, 2, -1, HIVE_FOREVER), 100);
	CHECK_EQ(hive_readv(fds[0], parts, 2, -1, HIVE_FOREVER), 100);
	CHECK_ERR(hive_write(fds[1], "x", 1, 0, HIVE_FOREVER), -ESPIPE);
	net_close(fds);
	return 0;
}

TEST(a_full_pipe_makes_the_writer_wait)
{
	net_each(full);
}

TEST(the_same_in_a_thread)
{
	int fds[2];

	make(fds);
	fill(fds[1]);
	CHECK_ERR(hive_write(fds[1], "x", 1, -1, hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT);
	net_close(fds);
}

/* ---- nobody reads ---- */

static bool is_pending(int number)
{
	sigset_t set;

	CHECK_OK(sigpending(&set));
	return sigismember(&set, number) == 1;
}

static bool is_blocked(int number)
{
	sigset_t set;

	CHECK_OK(pthread_sigmask(SIG_SETMASK, NULL, &set));
	return sigismember(&set, number) == 1;
}

/* Whatever thread it is on: the answer, no signal, and none that waits to be let in. */
static int write_to_nobody(void *arg)
{
	static const char bytes[100];
	struct iovec parts[2] = { { (void *)(uintptr_t)bytes, 10 }, { (void *)(uintptr_t)bytes, 90 } };
	bool pending = is_pending(SIGPIPE), blocked = is_blocked(SIGPIPE);
	int fds[2], from[2], sockets[2];

	(void)arg;
	make(fds);
	make(from);
	net_pair(sockets);
	CHECK_OK(close(fds[0]));
	CHECK_OK(close(sockets[0]));
	CHECK_EQ(hive_write(from[1], bytes, sizeof bytes, -1, HIVE_FOREVER), 100);
	CHECK_ERR(hive_write(fds[1], bytes, sizeof bytes, -1, HIVE_FOREVER), -EPIPE);
	CHECK_ERR(hive_write(fds[1], bytes, sizeof bytes, -1, HIVE_NOWAIT), -EPIPE);
	CHECK_ERR(hive_writev(fds[1], parts, 2, -1, HIVE_FOREVER), -EPIPE);
	CHECK_ERR(hive_splice(from[0], -1, fds[1], -1, 100, HIVE_FOREVER), -EPIPE);
	CHECK_ERR(hive_write(sockets[1], bytes, sizeof bytes, -1, HIVE_FOREVER), -EPIPE);
	CHECK_ERR(hive_splice(from[0], -1, sockets[1], -1, 100, HIVE_FOREVER), -EPIPE);
	CHECK_EQ(is_pending(SIGPIPE), pending);
	CHECK_EQ(is_blocked(SIGPIPE), blocked);
	CHECK_OK(close(fds[1]));
	CHECK_OK(close(sockets[1]));
	net_close(from);
	return 0;
}

TEST(a_fiber_is_told_that_nobody_reads)
{
	net_each(write_to_nobody);
}

static struct sigaction usual(void)
{
	struct sigaction action;

	CHECK_OK(sigaction(SIGPIPE, NULL, &action));
	return action;
}

TEST(a_thread_is_told_that_nobody_reads)
{
	CHECK(usual().sa_handler == SIG_DFL); /* it would be deadly */
	CHECK(!is_blocked(SIGPIPE));
	CHECK_EQ(write_to_nobody(NULL), 0);
	CHECK(usual().sa_handler == SIG_DFL);
}

/* One that was there before, and is the program's own, is still there afterwards. */
TEST(a_signal_that_was_pending_stays)
{
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	CHECK_EQ(write_to_nobody(NULL), 0);
	CHECK(!is_pending(SIGPIPE));
	CHECK_OK(raise(SIGPIPE));
	CHECK_EQ(write_to_nobody(NULL), 0);
	CHECK(is_pending(SIGPIPE));
	CHECK_OK(sigwait(&set, &number));
	CHECK_OK(pthread_sigmask(SIG_UNBLOCK, &set, NULL));
}

static int run_and_stop(void *arg)
{
	CHECK(!is_blocked(SIGPIPE));
	CHECK_EQ(write_to_nobody(NULL), 0);
	return hive_stop((struct hive *)arg, HIVE_DRAIN, HIVE_FOREVER);
}

/* The thread that calls hive_run() keeps its signals as they are. */
TEST(a_fiber_on_the_main_thread_is_told_that_nobody_reads)
{
	struct hive *hive = real_create((struct hive_options){ .io_workers = 1 });

	CHECK_OK(hive_spawn(hive, run_and_stop, hive, NULL, NULL));
	CHECK_OK(hive_run(hive));
	CHECK_OK(hive_destroy(hive));
}

static int block_for_ever(void *arg)
{
	char byte;

	return (int)hive_read(*(int *)arg, &byte, 1, -1, HIVE_FOREVER);
}

static int endings(void *arg)
{
	struct hive_fiber *reader, *writer;
	int fds[2];

	(void)arg;
	make(fds);
	reader = net_spawn(block_for_ever, &fds[0]);
	CHECK_OK(hive_yield());
	CHECK_OK(close(fds[1]));
	CHECK_EQ(net_join(reader), 0); /* the last writer has gone */
	CHECK_OK(close(fds[0]));
	make(fds);
	fill(fds[1]);
	writer = net_spawn(write_more, &fds[1]);
	CHECK_OK(hive_yield());
	CHECK_OK(close(fds[0]));
	CHECK_EQ(net_join(writer), -EPIPE); /* and so has the last reader */
	CHECK_OK(close(fds[1]));
	return 0;
}

TEST(waits_end_when_the_other_end_goes)
{
	net_each(endings);
}

struct look {
	int fd;
	int64_t patience;
	int expected;
};

static int look(void *arg)
{
	struct look *l = (struct look *)arg;
	char byte;

	CHECK_EQ(hive_read(l->fd, &byte, 1, -1, hive_deadline(NULL, l->patience)), l->expected);
	return 0;
}

/* A worker sleeps that has waited for it: were it asked about still, the pipe would have a reader as long as it sleeps. */
TEST(who_sleeps_keeps_nothing_open)
{
	for (int i = 0; i < 2 * core_count(); i++) {
		bool in_vain = i % 2;
		struct hive *hive = net_start(core_names[i / 2], 1, 0);
		struct look l = { .patience = in_vain ? HIVE_MS(2) : HIVE_S(50), .expected = in_vain ? -ETIMEDOUT : 1 };
		struct hive_fiber *fiber;
		int fds[2], result;

		make(fds);
		l.fd = fds[0];
		CHECK_OK(hive_spawn(hive, look, &l, NULL, &fiber));
		if (!in_vain) {
			real_wait_asleep(hive, 1);
			CHECK_EQ(write(fds[1], "x", 1), 1);
		}
		CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, &result));
		real_wait_asleep(hive, 1);
		CHECK_OK(close(fds[0]));
		CHECK_ERR(hive_write(fds[1], "x", 1, -1, HIVE_NOWAIT), -EPIPE);
		CHECK_OK(close(fds[1]));
		real_end(hive, HIVE_DRAIN);
	}
}
