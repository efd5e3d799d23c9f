/* SPDX-License-Identifier: MIT */
/* Operations of a worker that leaves when a stop comes, at a moment that the test chooses. */
#include "support/lone.h"
#include "support/net.h"

static struct lone world;
static int cancelled;

static void on_done(struct hive_op *op, int64_t result)
{
	(void)op;
	CHECK_EQ(result, -ECANCELED);
	cancelled++;
}

/* As the end of its thread: the worker is gone for the others. */
static void end_worker(int i)
{
	struct hive *hive = world.f.hive;

	lone_become(&world, i);
	hive__worker_end(world.w[i]);
	lone_become(&world, LONE_NOBODY);
	sub_seq(&hive->alive, 1u);
	store_release(&world.w[i]->gone, 1u);
}

/* It has seen that it shall leave, and that the hive goes on; then the stop comes. */
TEST(a_stop_comes_when_a_worker_has_begun_to_leave)
{
	struct hive_op op;
	char byte;
	int fds[2];

	memset(&world, 0, sizeof world);
	cancelled = 0;
	net_pair(fds);
	lone_open(&world, 2, (struct hive_worker_options){ 0 });
	hive_op_init(&op, world.f.hive, on_done, NULL);
	lone_become(&world, 1);
	CHECK_OK(hive_op_recv(&op, fds[0], &byte, 1, HIVE_FOREVER));
	lone_become(&world, LONE_NOBODY);
	CHECK_ERR(hive_detach(world.f.hive, world.ids[1], HIVE_NOWAIT), -EINPROGRESS);
	CHECK(!lone_beat(&world, 1));
	CHECK_OK(hive_stop(world.f.hive, HIVE_NOW, HIVE_FOREVER));
	end_worker(1);
	world.f.drops = 1; /* counted as such, but it is told itself */
	lone_close(&world);
	CHECK_EQ(cancelled, 1);
	net_close(fds);
}
