/* SPDX-License-Identifier: MIT */
#pragma once
/* The system's own memory functions, made to fail. The linker leads each call of the library here (--wrap, see
 * cmake/tests.cmake), so that also what does not go through hive_host.allocate is counted: the simulator, the start of a
 * thread, the page of the fork mark.                                                                                      */
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "test.h"

struct wrap {
	bool on;
	int allocations; /* while it is on */
	int fail_at;     /* 0: only count */
	bool sticky;
	ATOMIC(int64_t)
	balance; /* blocks given minus blocks taken back, always; the thread that listens to signals frees too */
};
static struct wrap wrap;
/* In a static C library its own calls come here as well; what it needs to say where a stack is, it gets by others, too. */
static _Thread_local bool wrap_is_deaf;

/* One thread only: these sweeps run in the simulator, and others only free. */
static bool wrap_refuses(void)
{
	if (!wrap.on || wrap_is_deaf)
		return false;
	wrap.allocations++;
	return wrap.fail_at > 0 && (wrap.sticky ? wrap.allocations >= wrap.fail_at : wrap.allocations == wrap.fail_at);
}

int __real_pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes);
int __real_pthread_attr_destroy(pthread_attr_t *attributes);
int __wrap_pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes);
int __wrap_pthread_attr_destroy(pthread_attr_t *attributes);

int __wrap_pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
	int r;

	wrap_is_deaf = true;
	r = __real_pthread_getattr_np(thread, attributes);
	wrap_is_deaf = false;
	return r;
}

int __wrap_pthread_attr_destroy(pthread_attr_t *attributes)
{
	int r;

	wrap_is_deaf = true;
	r = __real_pthread_attr_destroy(attributes);
	wrap_is_deaf = false;
	return r;
}

void *__real_malloc(size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void __real_free(void *block);
void *__real_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *address, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void __wrap_free(void *block);
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *address, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	void *block = wrap_refuses() ? NULL : __real_malloc(bytes);

	add_relaxed(&wrap.balance, (int64_t)(block && !wrap_is_deaf));
	return block;
}

void *__wrap_realloc(void *old, size_t bytes)
{
	void *block = wrap_refuses() ? NULL : __real_realloc(old, bytes);

	add_relaxed(&wrap.balance, (int64_t)(!old && block && !wrap_is_deaf));
	return block;
}

void __wrap_free(void *block)
{
	sub_relaxed(&wrap.balance, (int64_t)(block && !wrap_is_deaf));
	__real_free(block);
}

void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	void *block;

	if (wrap_refuses()) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	block = __real_mmap(address, bytes, protection, flags, fd, offset);
	add_relaxed(&wrap.balance, (int64_t)(block != MAP_FAILED));
	return block;
}

int __wrap_munmap(void *address, size_t bytes)
{
	sub_relaxed(&wrap.balance, (int64_t)1);
	return __real_munmap(address, bytes);
}
