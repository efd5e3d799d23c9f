/* SPDX-License-Identifier: MIT */
#include "base/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <rophive/time.h>

/* errno belongs to the program: a library call inside a task must not change it behind its back. */
void hive__futex_wait(ATOMIC(uint32_t) *word, uint32_t expected, int64_t timeout_ns)
{
	int64_t seconds = timeout_ns / HIVE_S(1);
	/* Where time has 32 bits: it may return early. */
	struct timespec limit = { (time_t)(seconds < INT32_MAX ? seconds : INT32_MAX), (long)(timeout_ns % HIVE_S(1)) };
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout_ns == HIVE_FOREVER ? NULL : &limit, NULL, 0);
	errno = saved;
}

void hive__futex_wake(ATOMIC(uint32_t) *word, int count)
{
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
	errno = saved;
}
