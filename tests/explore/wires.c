/* SPDX-License-Identifier: MIT */
/* What the library asks the system for about bytes, in place of the functions of the C library. The system does it, with three
 * differences: it is a point; it may be done by halves, or be interrupted, as the system may do it; and when it has made a
 * descriptor ready, whoever waits in a core looks again.
 *
 * Wires are pairs of unix sockets: what is sent has arrived when the call returns, so the seed alone decides what happens.    */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/fault.h"
#include "explore.h"

static bool like_tcp;

void explore_wire(bool tcp, int ret_fds[2])
{
	int room = 1; /* the least that there is: a few sends */

	like_tcp = tcp;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ret_fds) < 0)
		abort();
	for (int i = 0; i < 2; i++)
		setsockopt(ret_fds[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
}

/* True: it comes back with EINTR. */
static bool begin(void)
{
	hive__explore_point(__FILE__, __LINE__);
	if (!HIVE_FAULT("interrupted call"))
		return false;
	errno = EINTR;
	return true;
}

static long end(long r)
{
	if (r >= 0 && explore_is_on())
		explore_fd_event();
	return r;
}

/* On TCP less than was asked for means that nothing is left, and the library relies on that. */
static bool reads_short(void)
{
	return !like_tcp && HIVE_FAULT("short read");
}

ssize_t recv(int fd, void *buffer, size_t bytes, int flags)
{
	if (begin())
		return -1;
	if (bytes > 1 && reads_short())
		bytes = 1;
	return end(syscall(SYS_recvfrom, fd, buffer, bytes, flags, NULL, NULL));
}

ssize_t send(int fd, const void *buffer, size_t bytes, int flags)
{
	if (begin())
		return -1;
	if (bytes > 1 && HIVE_FAULT("short write"))
		bytes = 1;
	return end(syscall(SYS_sendto, fd, buffer, bytes, flags, NULL, 0));
}

/* Of its parts the first byte. */
static struct iovec cut(const struct iovec *parts)
{
	struct iovec one = { parts->iov_base, parts->iov_len > 1 ? 1 : parts->iov_len };

	return one;
}

ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
	struct iovec one;

	if (begin())
		return -1;
	if (count > 0 && reads_short()) {
		one = cut(parts);
		return end(syscall(SYS_preadv2, fd, &one, 1, offset, 0, flags));
	}
	return end(syscall(SYS_preadv2, fd, parts, count, offset, 0, flags));
}

ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
	struct iovec one;

	if (begin())
		return -1;
	if (count > 0 && HIVE_FAULT("short write")) {
		one = cut(parts);
		return end(syscall(SYS_pwritev2, fd, &one, 1, offset, 0, flags));
	}
	return end(syscall(SYS_pwritev2, fd, parts, count, offset, 0, flags));
}

int shutdown(int fd, int how)
{
	hive__explore_point(__FILE__, __LINE__);
	return (int)end(syscall(SYS_shutdown, fd, how));
}

/* A wire of two streams is as good as TCP, and says so if it shall be. */
int getsockopt(int fd, int level, int name, void *restrict ret_value, socklen_t *restrict bytes)
{
	if (level != SOL_SOCKET || name != SO_PROTOCOL || !like_tcp)
		return (int)syscall(SYS_getsockopt, fd, level, name, ret_value, bytes);
	*(int *)ret_value = IPPROTO_TCP;
	return 0;
}
