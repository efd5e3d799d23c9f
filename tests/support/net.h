/* SPDX-License-Identifier: MIT */
#pragma once
/* A hive with real threads on each core of this build, for tests of input and output. */
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/corelist.h"
#include "support/real.h"
#include "test.h"

static inline struct hive *net_start(const char *core, int32_t io, int32_t compute)
{
	struct hive_worker_options worker = { 0 };

	CHECK_OK(hive_core_find(core, &worker.core));
	return real_start((struct hive_options){ .io_workers = io, .compute_workers = compute, .io = &worker });
}

/* The core does it by itself: it may be done when somebody asks for its end, whether he was told or not. */
static inline bool net_is_native(const char *core, enum hive_op_code code)
{
	const struct hive_core_ops *ops;

	CHECK_OK(hive_core_find(core, &ops));
#if TEST_TSAN
	if (code == HIVE_OP_CLOSE)
		return false; /* the checker has to see it */
#endif
	return ops->native_ops >> code & 1;
}

/* fn as a fiber, on each core, with one worker and with three; it returns 0. */
static inline void net_each(hive_fiber_fn *fn)
{
	for (int i = 0; i < core_count(); i++)
		for (int32_t workers = 1; workers < 4; workers += 2) {
			struct hive *hive = net_start(core_names[i], workers, 2);
			int result = -1;

			CHECK_OK(hive_block_on(hive, fn, NULL, HIVE_FOREVER, &result));
			CHECK_EQ(result, 0);
			real_end(hive, HIVE_DRAIN);
		}
}

static inline void net_pair(int fds[2])
{
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
}

static inline void net_close(const int fds[2])
{
	CHECK_OK(close(fds[0]));
	CHECK_OK(close(fds[1]));
}

/* By the system's own calls: a library that cannot do it shall not pass for a machine that cannot. */
static inline bool net_has_v6(void)
{
	struct sockaddr_in6 own = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	if (fd < 0)
		return false;
	r = bind(fd, (struct sockaddr *)&own, sizeof own);
	CHECK_OK(close(fd));
	return r == 0;
}

/* Whether there is something to test for this address. */
static inline bool net_has(const char *text)
{
	return !strchr(text, ':') || strncmp(text, "unix:", 5) == 0 || net_has_v6();
}

static inline struct hive_fiber *net_spawn(hive_fiber_fn *fn, void *arg)
{
	struct hive_fiber *fiber;

	CHECK_OK(hive_spawn(hive_current(), fn, arg, NULL, &fiber));
	return fiber;
}

static inline int net_join(struct hive_fiber *fiber)
{
	int result;

	CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, &result));
	return result;
}
