/* SPDX-License-Identifier: MIT */
/* Fibers that an event makes ready: the worker goes on with one of them by itself, and others hear of what has to wait. */
#include "support/net.h"

struct guest {
	int fd;
	uint32_t worker; /* where it waits */
	struct gate waits, went_on;
};

static int wait_for_byte(void *arg)
{
	struct guest *g = arg;
	char byte;

	g->worker = hive_worker_current();
	gate_open(&g->waits);
	CHECK_EQ(hive_recv(g->fd, &byte, 1, HIVE_FOREVER), 1);
	gate_open(&g->went_on);
	return 0;
}

static void start_guest(struct guest *g, struct hive *hive, int fd, struct hive_fiber **ret_fiber)
{
	g->fd = fd;
	gate_init(&g->waits);
	gate_init(&g->went_on);
	CHECK_OK(hive_spawn(hive, wait_for_byte, g, NULL, ret_fiber));
	gate_pass(&g->waits);
	real_wait_asleep(hive, 2);
}

static void end_guest(struct guest *g, struct hive *hive, struct hive_fiber *fiber)
{
	CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, NULL));
	real_end(hive, HIVE_DRAIN);
	gate_destroy(&g->waits);
	gate_destroy(&g->went_on);
}

/* The event and a private task come in the same beat, and the task goes on only when the fiber has: on the other worker, which
 * sleeps.                                                                                                                */
TEST(a_fiber_behind_a_private_task_is_for_the_others)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 2, 0);
		struct hive_fiber *fiber;
		struct block block;
		struct guest g;
		int fds[2];

		net_pair(fds);
		start_guest(&g, hive, fds[0], &fiber);
		block_init(&block);
		CHECK_OK(hive_post_to(hive, g.worker, block_task, &block));
		gate_pass(&block.entered);
		CHECK_EQ(write(fds[1], "x", 1), 1);
		CHECK_OK(hive_post_to(hive, g.worker, gate_pass_task, &g.went_on));
		real_wait_asleep(hive, 1);
		gate_open(&block.leave);
		end_guest(&g, hive, fiber);
		block_destroy(&block);
		net_close(fds);
	}
}
