/* SPDX-License-Identifier: MIT */
#pragma once
/* Receives and sends, tried once: the result, or -EAGAIN. */
#include "base/direct.h"

static inline int64_t try_recv(int fd, void *buffer, size_t length)
{
	int64_t r;

	do
		r = direct_recv(fd, buffer, length, MSG_DONTWAIT);
	while (r == -EINTR);
	return r;
}

static inline int64_t try_send(int fd, const void *buffer, size_t length)
{
	int64_t r;

	do
		r = direct_send(fd, buffer, length, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (r == -EINTR);
	return r;
}
