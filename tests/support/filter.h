/* SPDX-License-Identifier: MIT */
#pragma once
/* Takes system calls away from this process, for good: what is on the list fails with `error`, or kills it (error
 * 0). For children of a test. False: this kernel does not let us.                                                 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { FILTER_MAX = 16 };

static inline bool filter_system_calls(const long *calls, size_t count, int error)
{
	struct sock_filter program[FILTER_MAX + 3];
	struct sock_fprog filter = { .filter = program };
	unsigned n = 0;
	uint32_t answer = error ? SECCOMP_RET_ERRNO | (uint32_t)error : SECCOMP_RET_KILL_PROCESS;

	program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < count && i < FILTER_MAX; i++) /* a match jumps to the last line */
		program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i],
		                                            (uint8_t)(count - i), 0);
	program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
	filter.len = (unsigned short)n;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}
