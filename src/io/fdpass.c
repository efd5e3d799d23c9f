/* SPDX-License-Identifier: MIT */
/* Descriptors through unix sockets: one with one byte. Whatever else comes along is closed, not leaked. */
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rophive/io.h>

#include "io/number.h"

enum { CONTROL_ROOM = 256 }; /* for more than we want: what does not fit the kernel closes, and says so */

union control {
	struct cmsghdr align;
	char bytes[CONTROL_ROOM];
};

int hive_send_fd(int socket, int fd, int64_t deadline_ns)
{
	union control control = { .bytes = { 0 } };
	char byte = 0;
	struct iovec part = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = CMSG_SPACE(sizeof fd)
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int64_t r;

	if (fd < 0)
		return -EINVAL;
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(header), &fd, sizeof fd);
	r = hive_sendmsg(socket, &message, 0, deadline_ns);
	return r < 0 ? (int)r : 0;
}

/* The first descriptor of a message, the others closed; -1: there is none. */
static int take_first(struct msghdr *message)
{
	int first = -1;

	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
		size_t bytes = header->cmsg_len - CMSG_LEN(0);

		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof first <= bytes; at += sizeof first) {
			int fd;

			memcpy(&fd, CMSG_DATA(header) + at, sizeof fd);
			if (first < 0)
				first = fd;
			else
				hive__number_close(fd);
		}
	}
	return first;
}

int hive_recv_fd(int socket, int64_t deadline_ns)
{
	union control control;
	char byte;
	struct iovec part = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes
	};
	int64_t r = hive_recvmsg(socket, &message, 0, deadline_ns);
	int fd;

	if (r < 0)
		return (int)r;
	fd = number_made(take_first(&message));
	if (fd >= 0)
		return fd;
	if (message.msg_flags & MSG_CTRUNC)
		return -EMFILE;
	return r == 0 ? -ENODATA : -EBADMSG;
}
