/* SPDX-License-Identifier: MIT */
/* The sockets of c-ares, made and closed by us. Closed through the library, so that each worker learns that the number begins a new life: the next
 * question most likely has it again, and its answer would be noticed late. Who replaces one of these functions replaces all: old
 * versions call what is not there.                                                                                               */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "edge/dns/dns.h"

static ares_socket_t open_socket(int family, int type, int protocol, void *arg)
{
	int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol), on = 1;

	(void)arg;
	if (fd >= 0 && type == SOCK_STREAM)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	return fd;
}

static int close_socket(ares_socket_t fd, void *arg)
{
	(void)arg;
	return hive_close(fd, HIVE_NOWAIT) < 0 ? -1 : 0;
}

static int connect_socket(ares_socket_t fd, const struct sockaddr *to, ares_socklen_t bytes, void *arg)
{
	(void)arg;
	return connect(fd, to, bytes);
}

static ares_ssize_t receive(ares_socket_t fd, void *buffer, size_t bytes, int flags, struct sockaddr *ret_from,
                            ares_socklen_t *ret_bytes, void *arg)
{
	(void)arg;
	return recvfrom(fd, buffer, bytes, flags, ret_from, ret_bytes);
}

/* A server that has gone is an error, and no signal. */
static ares_ssize_t send_parts(ares_socket_t fd, const struct iovec *parts, int count, void *arg)
{
	struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)count };

	(void)arg;
	return sendmsg(fd, &message, MSG_NOSIGNAL);
}

const struct ares_socket_functions hive__dns_sockets = { .asocket = open_socket,
	                                                 .aclose = close_socket,
	                                                 .aconnect = connect_socket,
	                                                 .arecvfrom = receive,
	                                                 .asendv = send_parts };
