/* SPDX-License-Identifier: MIT */
#pragma once
/* Descriptors 0, 1 and 2 are standard ones if others have given them to us, for everybody to inherit. A program that was started without
 * them has something of its own there, a socket maybe; like all that this library makes, that is close-on-exec.             */
#include <fcntl.h>
#include <stdbool.h>

/* Any thread, handlers of signals too. errno may change. */
static inline bool fd_is_inherited(int fd)
{
	int flags = fcntl(fd, F_GETFD);

	return flags >= 0 && !(flags & FD_CLOEXEC);
}
