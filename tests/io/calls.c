/* SPDX-License-Identifier: MIT */
/* The calls for fibers, on each core: bytes go through, waits end, files do not block a worker. */
#include <sys/stat.h>
#include <sys/uio.h>

#include "support/net.h"

/* ---- sockets ---- */

static int echo(void *arg)
{
	int fd = *(int *)arg;
	char buffer[100];
	int64_t n;

	while ((n = hive_recv(fd, buffer, sizeof buffer, HIVE_FOREVER)) > 0)
		CHECK_OK(hive_send_all(fd, buffer, (size_t)n, HIVE_FOREVER));
	CHECK_EQ(n, 0);
	return 3;
}

static int talk(void *arg)
{
	char out[1000], in[1000];
	struct hive_fiber *other;
	int fds[2];

	(void)arg;
	net_pair(fds);
	other = net_spawn(echo, &fds[1]);
	for (int i = 0; i < 200; i++) {
		size_t bytes = (size_t)(1 + i * 37 % 1000);

		memset(out, i, sizeof out);
		memset(in, ~i, sizeof in);
		CHECK_OK(hive_send_all(fds[0], out, bytes, HIVE_FOREVER));
		CHECK_OK(hive_recv_all(fds[0], in, bytes, HIVE_FOREVER));
		CHECK_EQ(memcmp(in, out, bytes), 0);
	}
	CHECK_OK(hive_shutdown(fds[0], SHUT_WR, HIVE_FOREVER));
	CHECK_EQ(net_join(other), 3);
	CHECK_ERR(hive_recv_all(fds[0], in, 1, hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT);
	net_close(fds);
	return 0;
}

TEST(bytes_go_there_and_back)
{
	net_each(talk);
}

static int wait_in_vain(void *arg)
{
	int64_t began = hive_now(NULL);
	char byte;
	int fds[2];

	(void)arg;
	net_pair(fds);
	CHECK_ERR(hive_recv(fds[0], &byte, 1, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(hive_recv(fds[0], &byte, 1, began + HIVE_MS(5)), -ETIMEDOUT);
	CHECK(hive_now(NULL) >= began + HIVE_MS(5));
	CHECK_EQ(hive_send(fds[1], "x", 1, HIVE_NOWAIT), 1);
	CHECK_EQ(hive_recv(fds[0], &byte, 1, hive_deadline(NULL, HIVE_S(60))), 1);
	CHECK_OK(close(fds[1]));
	CHECK_EQ(hive_recv(fds[0], &byte, 1, HIVE_FOREVER), 0);
	CHECK_ERR(hive_send(fds[0], &byte, 1, HIVE_FOREVER), -EPIPE); /* and no signal */
	CHECK_OK(close(fds[0]));
	CHECK_ERR(hive_recv(fds[0], &byte, 1, HIVE_FOREVER), -EBADF);
	CHECK_ERR(hive_recv(-1, &byte, 1, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_recv(0, NULL, 1, HIVE_FOREVER), -EINVAL);
	return 0;
}

TEST(waits_end_by_deadline_by_the_peer_and_by_mistakes)
{
	net_each(wait_in_vain);
}

static int receive_for_ever(void *arg)
{
	char byte;

	return (int)hive_recv(*(int *)arg, &byte, 1, HIVE_FOREVER);
}

static int cancel_one(void *arg)
{
	struct hive_fiber *fiber;
	int fds[2];

	(void)arg;
	net_pair(fds);
	for (int i = 0; i < 50; i++) {
		fiber = net_spawn(receive_for_ever, &fds[0]);
		for (int turns = i % 4; turns > 0; turns--)
			CHECK_OK(hive_yield());
		CHECK_OK(hive_fiber_cancel(fiber));
		CHECK_EQ(net_join(fiber), -ECANCELED);
	}
	net_close(fds);
	return 0;
}

TEST(a_cancelled_fiber_comes_back)
{
	net_each(cancel_one);
}

/* Plain close() and the same number again: the wait that follows is not left to the old registration. */
static int reuse(void *arg)
{
	int fds[2], again[2];
	char byte;

	(void)arg;
	for (int i = 0; i < 4; i++) {
		struct hive_fiber *fiber;

		net_pair(fds);
		fiber = net_spawn(receive_for_ever, &fds[0]);
		CHECK_ERR(hive_recv(fds[0], &byte, 1, hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT);
		CHECK_EQ(hive_send(fds[1], "x", 1, HIVE_FOREVER), 1);
		CHECK_EQ(net_join(fiber), 1);
		net_close(fds);
		net_pair(again);
		CHECK_EQ(again[0], fds[0]);
		fiber = net_spawn(receive_for_ever, &again[0]);
		CHECK_OK(hive_sleep(HIVE_MS(1)));
		CHECK_EQ(hive_send(again[1], "y", 1, HIVE_FOREVER), 1);
		CHECK_EQ(net_join(fiber), 1);
		net_close(again);
	}
	return 0;
}

TEST(a_number_may_be_another_descriptor_by_now)
{
	net_each(reuse);
}

/* ---- files ---- */

static int files(void *arg)
{
	char folder[] = "/tmp/rophive.XXXXXX", text[100];
	struct iovec parts[2] = { { text, 3 }, { text + 3, 50 } };
	struct statx about;
	int dir, fd, fds[2];

	(void)arg;
	CHECK(mkdtemp(folder));
	dir = hive_open(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, 0, HIVE_FOREVER);
	CHECK(dir >= 0);
	CHECK_ERR(hive_open(dir, "nothing", O_RDONLY, 0, HIVE_FOREVER), -ENOENT);
	CHECK_OK(hive_mkdir(dir, "inner", 0700, HIVE_FOREVER));
	fd = hive_open(dir, "inner/file", O_RDWR | O_CREAT, 0600, HIVE_FOREVER);
	CHECK(fd >= 0);
	CHECK_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	CHECK_EQ(hive_write(fd, "0123456789", 10, 0, HIVE_FOREVER), 10);
	CHECK_OK(hive_fsync(fd, true, HIVE_FOREVER));
	CHECK_OK(hive_fsync(fd, false, HIVE_FOREVER));
	CHECK_EQ(hive_read(fd, text, 100, 4, HIVE_FOREVER), 6);
	CHECK_EQ(memcmp(text, "456789", 6), 0);
	CHECK_EQ(hive_readv(fd, parts, 2, 1, HIVE_FOREVER), 9);
	CHECK_EQ(memcmp(text, "123456789", 9), 0);
	CHECK_EQ(hive_read(fd, text, 100, 10, HIVE_FOREVER), 0);
	CHECK_OK(hive_statx(dir, "inner/file", 0, &about, HIVE_FOREVER));
	CHECK_EQ(about.stx_size, 10);
	net_pair(fds);
	CHECK_EQ(hive_splice(fd, 2, fds[0], -1, 100, HIVE_FOREVER), 8);
	CHECK_OK(hive_recv_all(fds[1], text, 8, HIVE_FOREVER));
	CHECK_EQ(memcmp(text, "23456789", 8), 0);
	net_close(fds);
	CHECK_OK(hive_rename(dir, "inner/file", dir, "moved", HIVE_FOREVER));
	CHECK_OK(hive_unlink(dir, "moved", 0, HIVE_FOREVER));
	CHECK_OK(hive_unlink(dir, "inner", AT_REMOVEDIR, HIVE_FOREVER));
	CHECK_OK(hive_close(fd, HIVE_FOREVER));
	CHECK_OK(hive_close(dir, HIVE_FOREVER));
	CHECK_OK(rmdir(folder));
	return 0;
}

TEST(files_are_made_written_read_and_gone)
{
	net_each(files);
	CHECK_EQ(files(NULL), 0); /* a thread of its own may do the same */
}

/* ---- elsewhere ---- */

static void call_in_task(void *arg)
{
	char byte;

	CHECK_ERR(hive_recv(0, &byte, 1, HIVE_FOREVER), -EDEADLK);
	gate_open(arg);
}

TEST(a_task_of_an_io_worker_may_not_wait)
{
	struct hive *hive = net_start("epoll", 1, 0);
	struct gate gate;

	gate_init(&gate);
	CHECK_OK(hive_post(hive, call_in_task, &gate));
	gate_pass(&gate);
	gate_destroy(&gate);
	real_end(hive, HIVE_DRAIN);
}

TEST(a_thread_waits_by_itself)
{
	CHECK_EQ(wait_in_vain(NULL), 0);
}
