/* SPDX-License-Identifier: MIT */
#pragma once
/* What the parts of the scenario in io.h share. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "test.h"

#include <rophive/hive.h>
#include <rophive/io.h>
#include <rophive/process.h>

enum { IO_BYTES = 5000 };

struct io_scenario {
	struct hive_options options;
	bool strict; /* nothing fails */
	/* its own */
	struct hive *hive;
	int listener;
	int process; /* that could not be waited for */
	char folder[64];
	ATOMIC(uint32_t) errors, free;
};

static inline int64_t io_soon(void)
{
	return hive_deadline(NULL, HIVE_MS(300));
}

/* True: it went well. */
static inline bool io_is_fine(struct io_scenario *s, int64_t r, int line)
{
	if (r >= 0)
		return true;
	add_seq(&s->errors, 1u);
	if (s->strict)
		test_fail(__FILE__, line, "without a fault: %s", test_error(r));
	return false;
}

#define FINE(s, expression) io_is_fine((s), (expression), __LINE__)

/* One that could not be closed because that, too, failed is closed by hand. */
static inline void io_close(struct io_scenario *s, int fd)
{
	if (fd >= 0 && !FINE(s, hive_close(fd, io_soon())) && fcntl(fd, F_GETFD) >= 0)
		close(fd);
}

static inline void io_close_both(struct io_scenario *s, const int fds[2])
{
	io_close(s, fds[0]);
	io_close(s, fds[1]);
}

static inline bool io_spawn(struct io_scenario *s, hive_fiber_fn *fn, struct hive_fiber **ret_fiber)
{
	return FINE(s, hive_spawn(s->hive, fn, s, NULL, ret_fiber));
}

static inline int io_join(struct hive_fiber *fiber)
{
	int result = 0;

	CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, &result));
	return result;
}
