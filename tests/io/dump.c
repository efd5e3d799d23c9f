/* SPDX-License-Identifier: MIT */
/* hive_dump() says how many operations a worker has under way, and which one a fiber waits for. */
#include <signal.h>

#include "support/dump.h"
#include "support/net.h"

static int receive(void *arg)
{
	char byte;

	return (int)hive_recv(*(int *)arg, &byte, 1, HIVE_FOREVER);
}

static int await(void *arg)
{
	return hive_poll_fd(*(int *)arg, HIVE_EVENT_IN, HIVE_FOREVER) > 0 ? 1 : 0;
}

static bool says(struct hive *hive, const char *format, int number)
{
	char words[80];

	snprintf(words, sizeof words, format, number);
	return strstr(dump_text(hive), words) != NULL;
}

static struct hive_fiber *spawn(struct hive *hive, hive_fiber_fn *fn, int *fd)
{
	struct hive_fiber *fiber;

	CHECK_OK(hive_spawn(hive, fn, fd, NULL, &fiber));
	return fiber;
}

TEST(a_dump_tells_of_operations)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 1, 0);
		struct hive_fiber *fibers[2];
		int pair[2], result = 0;

		net_pair(pair);
		CHECK(!says(hive, ", operations", 0));
		fibers[0] = spawn(hive, receive, &pair[0]);
		fibers[1] = spawn(hive, await, &pair[1]);
		WAIT_UNTIL(says(hive, "waits: recv on %d,", pair[0]));
		WAIT_UNTIL(says(hive, "waits: poll on %d,", pair[1]));
		WAIT_UNTIL(says(hive, ", operations %d,", 2));
		CHECK_OK(hive_send_all(pair[0], "x", 1, HIVE_FOREVER));
		CHECK_OK(hive_send_all(pair[1], "x", 1, HIVE_FOREVER));
		for (int j = 0; j < 2; j++) {
			CHECK_OK(hive_fiber_join(fibers[j], HIVE_FOREVER, &result));
			CHECK_EQ(result, 1);
		}
		CHECK(!says(hive, ", operations", 0));
		real_end(hive, HIVE_DRAIN);
		net_close(pair);
	}
}

/* One that a fiber of the library does is that fiber. */
TEST(a_dump_names_the_fiber_of_an_operation)
{
	struct hive *hive = net_start("epoll", 1, 0);
	int signals[] = { SIGUSR1 };
	struct hive_op op;

	hive_op_init(&op, hive, NULL, NULL);
	CHECK_OK(hive_op_signal_wait(&op, signals, 1, HIVE_FOREVER));
	WAIT_UNTIL(says(hive, "signal", 0) && says(hive, "waits: signal", 0));
	CHECK_OK(hive_op_cancel(&op));
	CHECK_ERR(hive_op_wait(&op), -ECANCELED);
	real_end(hive, HIVE_DRAIN);
}
