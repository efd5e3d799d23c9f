/* SPDX-License-Identifier: MIT */
#pragma once
/* The descriptor by which other threads end a wait. */
#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fault.h"

/* A descriptor, or -errno. */
static inline int wakefd_open(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

/* Any thread. EAGAIN would mean that the counter is full: then it is readable anyway. */
static inline void wakefd_signal(int fd)
{
	uint64_t one = 1;
	int saved = errno;
	ssize_t n = write(fd, &one, sizeof one);

	(void)n;
	errno = saved;
}

static inline void wakefd_clear(int fd)
{
	uint64_t count;
	ssize_t n = HIVE_FAULT("short read")
	                    ? 0
	                    : read(fd, &count, sizeof count); /* then it is readable again: one look more */

	(void)n;
}
