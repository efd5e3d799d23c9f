/* SPDX-License-Identifier: MIT */
#pragma once
/* System calls for whom nothing else matters than the kernel. The C library's functions are points of cancellation: in a program with
 * threads each of them says so to others before and afterwards, by atomic steps that cost more than all the rest around the call.
 * No thread of ours is cancelled. Sanitizers want the functions, to see which memory is read and written;
 * the explorer has functions of its own.                                                                                    */
#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined(__has_feature)
#define __has_feature(x) 0
#endif
#if defined(SYS_recvfrom) && defined(SYS_sendto) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) && \
	!__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer) && !__has_feature(memory_sanitizer) &&   \
	!defined(HIVE_EXPLORE)
#define DIRECT_CALLS 1
#else
#define DIRECT_CALLS 0
#endif

#if DIRECT_CALLS && defined(__x86_64__)
/* recvfrom and sendto, with nobody's address. */
static inline int64_t direct_transfer(long call, int fd, const void *buffer, size_t length, int flags)
{
	register long r10 __asm__("r10") = flags;
	register const void *r8 __asm__("r8") = NULL;
	register long r9 __asm__("r9") = 0;
	int64_t r;

	__asm__ volatile("syscall"
	                 : "=a"(r)
	                 : "a"(call), "D"((long)fd), "S"(buffer), "d"(length), "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	return r;
}
#else
static inline int64_t direct_transfer(long call, int fd, const void *buffer, size_t length, int flags)
{
	int error = errno;
#if DIRECT_CALLS
	int64_t r = syscall(call, fd, buffer, length, flags, NULL, 0);
#else
	int64_t r = call == SYS_recvfrom ? recv(fd, (void *)(uintptr_t)buffer, length, flags)
	                                 : send(fd, buffer, length, flags);
#endif

	if (r < 0) {
		r = -errno;
		errno = error;
	}
	return r;
}
#endif

/* As recv() and send(), but for errors, which are returned, negative; errno stays as it was. */
static inline int64_t direct_recv(int fd, void *buffer, size_t length, int flags)
{
	return direct_transfer(SYS_recvfrom, fd, buffer, length, flags);
}

static inline int64_t direct_send(int fd, const void *buffer, size_t length, int flags)
{
	return direct_transfer(SYS_sendto, fd, buffer, length, flags);
}
