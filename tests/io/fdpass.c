/* SPDX-License-Identifier: MIT */
/* Descriptors through unix sockets, on each core: one arrives, nothing leaks. */
#include <dirent.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "support/child.h"
#include "support/net.h"

static int count_open(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	CHECK(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* A message with so many copies of fd, by hand. */
static void send_many(int socket, int fd, int count, const char *text)
{
	union {
		struct cmsghdr align;
		char bytes[1200];
	} control = { .bytes = { 0 } };
	int fds[253];
	struct iovec part = { (void *)(uintptr_t)text, strlen(text) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *header;

	for (int i = 0; i < count; i++)
		fds[i] = fd;
	message.msg_control = control.bytes;
	message.msg_controllen = CMSG_SPACE((size_t)count * sizeof fd);
	header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN((size_t)count * sizeof fd);
	memcpy(CMSG_DATA(header), fds, (size_t)count * sizeof fd);
	CHECK_EQ(sendmsg(socket, &message, MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static int pass(void *arg)
{
	int ends[2], pipes[2], got;
	char byte = 0;

	(void)arg;
	CHECK_OK(hive_socket_pair(false, ends));
	CHECK_OK(hive_pipe(pipes));
	CHECK_ERR(hive_recv_fd(ends[1], HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(hive_recv_fd(ends[1], hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT);
	CHECK_OK(hive_send_fd(ends[0], pipes[1], HIVE_FOREVER));
	CHECK_OK(close(pipes[1]));
	got = hive_recv_fd(ends[1], HIVE_FOREVER);
	CHECK(got >= 0);
	CHECK_EQ(fcntl(got, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	CHECK_EQ(hive_write(got, "x", 1, -1, HIVE_FOREVER), 1);
	CHECK_EQ(hive_read(pipes[0], &byte, 1, -1, HIVE_FOREVER), 1);
	CHECK_EQ(byte, 'x');
	CHECK_OK(close(got));
	CHECK_EQ(hive_read(pipes[0], &byte, 1, -1, HIVE_FOREVER), 0);
	CHECK_OK(close(pipes[0]));
	net_close(ends);
	return 0;
}

TEST(a_descriptor_arrives_and_works)
{
	net_each(pass);
	CHECK_EQ(pass(NULL), 0);
}

static int receive_one(void *arg)
{
	return hive_recv_fd(*(int *)arg, HIVE_FOREVER);
}

static int wait_for_it(void *arg)
{
	int ends[2], got;
	struct hive_fiber *fiber;

	(void)arg;
	CHECK_OK(hive_socket_pair(false, ends));
	for (int i = 0; i < 20; i++) {
		fiber = net_spawn(receive_one, &ends[1]);
		for (int turns = i % 3; turns > 0; turns--)
			CHECK_OK(hive_yield());
		CHECK_OK(hive_send_fd(ends[0], ends[0], HIVE_FOREVER));
		got = net_join(fiber);
		CHECK(got >= 0);
		CHECK_OK(close(got));
	}
	fiber = net_spawn(receive_one, &ends[1]);
	CHECK_OK(hive_yield());
	CHECK_OK(hive_fiber_cancel(fiber));
	CHECK_EQ(net_join(fiber), -ECANCELED);
	net_close(ends);
	return 0;
}

TEST(who_waits_for_one_gets_it_or_is_cancelled)
{
	net_each(wait_for_it);
}

static int surplus(void *arg)
{
	static const int counts[] = { 1, 2, 3, 10, 59, 60, 61, 200, 253 }; /* 60 fit */
	size_t most = getenv("ROPHIVE_EMULATOR") ? 6 : sizeof counts / sizeof *counts;
	int ends[2], before, got;

	(void)arg;
	CHECK_OK(hive_socket_pair(false, ends));
	before = count_open();
	for (size_t i = 0; i < most; i++) {
		send_many(ends[0], ends[0], counts[i], "x");
		got = hive_recv_fd(ends[1], HIVE_FOREVER);
		CHECK(got >= 0);
		CHECK_EQ(count_open(), before + 1);
		CHECK_OK(close(got));
	}
	net_close(ends);
	return 0;
}

TEST(what_comes_along_is_closed)
{
	net_each(surplus);
	if (getenv("ROPHIVE_EMULATOR"))
		test_skip("more than fit: the emulator lets in twice as many as it tells of");
}

static int strange(void *arg)
{
	int ends[2], file, got, before;

	(void)arg;
	CHECK_OK(hive_socket_pair(false, ends));
	before = count_open();
	CHECK_EQ(hive_send(ends[0], "ab", 2, HIVE_FOREVER), 2);
	CHECK_ERR(hive_recv_fd(ends[1], HIVE_FOREVER), -EBADMSG); /* a byte at a time, so that nothing is skipped */
	CHECK_ERR(hive_recv_fd(ends[1], HIVE_FOREVER), -EBADMSG);
	send_many(ends[0], ends[0], 1, "abc");
	got = hive_recv_fd(ends[1], HIVE_FOREVER);
	CHECK(got >= 0);
	CHECK_OK(close(got));
	CHECK_ERR(hive_recv_fd(ends[1], HIVE_FOREVER), -EBADMSG);
	CHECK_ERR(hive_recv_fd(ends[1], HIVE_FOREVER), -EBADMSG);
	CHECK_EQ(count_open(), before);

	CHECK_OK(hive_shutdown(ends[0], SHUT_WR, HIVE_FOREVER));
	CHECK_ERR(hive_recv_fd(ends[1], HIVE_FOREVER), -ENODATA);
	CHECK_ERR(hive_send_fd(ends[0], ends[0], HIVE_FOREVER), -EPIPE);
	net_close(ends);

	CHECK_ERR(hive_send_fd(0, -1, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_send_fd(-1, 0, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_recv_fd(-1, HIVE_FOREVER), -EINVAL);
	file = hive_open(AT_FDCWD, "/dev/null", O_RDWR, 0, HIVE_FOREVER);
	CHECK(file >= 0);
	CHECK_ERR(hive_send_fd(file, 0, HIVE_FOREVER), -ENOTSOCK);
	CHECK_ERR(hive_recv_fd(file, HIVE_FOREVER), -ENOTSOCK);
	CHECK_OK(close(file));
	return 0;
}

TEST(bytes_without_descriptors_ends_and_mistakes_are_told)
{
	net_each(strange);
}

/* Sockets that also want credentials: their data stands beside ours. */
static int with_credentials(void *arg)
{
	int ends[2], got, on = 1;

	(void)arg;
	CHECK_OK(hive_socket_pair(true, ends));
	CHECK_OK(setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
	CHECK_OK(hive_send_fd(ends[0], ends[0], HIVE_FOREVER));
	got = hive_recv_fd(ends[1], HIVE_FOREVER);
	CHECK(got >= 0);
	CHECK_OK(close(got));
	CHECK_EQ(hive_send(ends[0], "x", 1, HIVE_FOREVER), 1);
	CHECK_ERR(hive_recv_fd(ends[1], HIVE_FOREVER), -EBADMSG);
	net_close(ends);
	return 0;
}

TEST(other_control_data_does_not_confuse_it)
{
	net_each(with_credentials);
}

static void no_room(void)
{
	struct rlimit limit;
	int ends[2], filler[64], count = 0, got;

	CHECK_OK(hive_socket_pair(false, ends));
	CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = 32;
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
	CHECK_OK(hive_send_fd(ends[0], ends[0], HIVE_FOREVER));
	CHECK_OK(hive_send_fd(ends[0], ends[0], HIVE_FOREVER));
	while (count < 64 && (filler[count] = dup(ends[0])) >= 0)
		count++;
	CHECK(count < 64);
	CHECK_ERR(hive_recv_fd(ends[1], HIVE_FOREVER), -EMFILE);
	CHECK_OK(close(filler[0]));
	got = hive_recv_fd(ends[1], HIVE_FOREVER);
	CHECK(got >= 0);
}

TEST(no_room_for_one_more_is_told)
{
	pid_t child;

	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		no_room();
		_exit(0);
	}
	CHECK_EQ(child_wait(child), 0);
}
