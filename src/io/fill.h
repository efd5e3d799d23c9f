/* SPDX-License-Identifier: MIT */
#pragma once
/* Calls by which a compute worker fills what is poisoned meanwhile (lend.h). The kernel does not mind; a sanitizer that knows the C library's
 * functions would.                                                                                                         */
#include <errno.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/poison.h"

static inline ssize_t fill_parts(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
	ssize_t r = -1;

	if (POISONS)
		r = syscall(SYS_preadv2, fd, parts, count, (long)offset, (long)((uint64_t)offset >> 32), flags);
	return POISONS && (r >= 0 || errno != ENOSYS) ? r : preadv2(fd, parts, count, offset, flags);
}

static inline int fill_statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret)
{
	if (POISONS)
		return (int)syscall(SYS_statx, dir, path, flags, mask, ret);
	return statx(dir, path, flags, mask, ret);
}
