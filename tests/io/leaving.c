/* SPDX-License-Identifier: MIT */
/* Operations under way on a worker that leaves, and in a hive that stops, on each core. */
#include "support/net.h"

enum { OPS = 20 };

struct waiter {
	struct hive_op ops[OPS];
	char bytes[OPS];
	int fd;
	struct gate begun, done, held;
	_Atomic(int) received, cancelled;
};

static void on_done(struct hive_op *op, int64_t result)
{
	struct waiter *w = op->arg;

	if (result == 1)
		w->received++;
	else if (result == -ECANCELED)
		w->cancelled++;
	else
		test_fail(__FILE__, __LINE__, "an operation ended with %s", test_error(result));
	gate_open(&w->done);
}

static void begin(void *arg)
{
	struct waiter *w = arg;

	for (int i = 0; i < OPS; i++) {
		hive_op_init(&w->ops[i], hive_current(), on_done, w);
		CHECK_OK(hive_op_recv(&w->ops[i], w->fd, &w->bytes[i], 1, HIVE_FOREVER));
	}
	gate_open(&w->begun);
}

/* The worker stays in this task meanwhile. */
static void begin_and_stay(void *arg)
{
	struct waiter *w = arg;

	begin(w);
	gate_pass(&w->held);
}

static void open_waiter(struct waiter *w, int fd)
{
	memset(w, 0, sizeof *w);
	w->fd = fd;
	gate_init(&w->begun);
	gate_init(&w->done);
	gate_init(&w->held);
}

static void close_waiter(struct waiter *w)
{
	gate_destroy(&w->begun);
	gate_destroy(&w->done);
	gate_destroy(&w->held);
}

TEST(operations_go_on_elsewhere_when_their_worker_leaves)
{
	static struct waiter w;

	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 2, 0);
		char bytes[OPS];
		uint32_t ids[2];
		int fds[2];

		net_pair(fds);
		open_waiter(&w, fds[0]);
		CHECK_EQ(hive_workers(hive, ids, 2), 2);
		CHECK_OK(hive_post_to(hive, ids[1], begin, &w));
		gate_pass(&w.begun);
		CHECK_OK(hive_detach(hive, ids[1], HIVE_FOREVER));
		memset(bytes, 'x', sizeof bytes);
		CHECK_EQ(write(fds[1], bytes, sizeof bytes), OPS);
		for (int k = 0; k < OPS; k++)
			gate_pass(&w.done);
		CHECK_EQ(w.received, OPS);
		for (int k = 0; k < OPS; k++)
			CHECK_EQ(w.bytes[k], 'x');
		real_end(hive, HIVE_DRAIN);
		close_waiter(&w);
		net_close(fds);
	}
}

TEST(operations_end_when_the_hive_stops_now)
{
	static struct waiter w;

	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 2, 0);
		uint32_t ids[2];
		int fds[2];

		net_pair(fds);
		open_waiter(&w, fds[0]);
		CHECK_EQ(hive_workers(hive, ids, 2), 2);
		CHECK_OK(hive_post_to(hive, ids[1], begin, &w));
		gate_pass(&w.begun);
		CHECK_EQ(write(fds[1], "xxxxx", 5), 5); /* some race with the end */
		real_end(hive, HIVE_NOW);
		CHECK_EQ(w.received + w.cancelled, OPS);
		CHECK(w.received <= 5);
		close_waiter(&w);
		net_close(fds);
	}
}

/* A worker that leaves, when a stop comes before it has noticed. */
static void stop_at_farewell(const char *core, enum hive_stop_mode mode, struct waiter *w)
{
	struct hive *hive = net_start(core, 2, 0);
	uint32_t ids[2];
	int fds[2];

	net_pair(fds);
	open_waiter(w, fds[0]);
	CHECK_EQ(hive_workers(hive, ids, 2), 2);
	CHECK_OK(hive_post_to(hive, ids[1], begin_and_stay, w));
	gate_pass(&w->begun);
	CHECK_ERR(hive_detach(hive, ids[1], HIVE_NOWAIT), -EINPROGRESS);
	CHECK_OK(hive_stop(hive, mode, HIVE_FOREVER));
	gate_open(&w->held);
	for (int i = 0; i < OPS && mode == HIVE_DRAIN; i++)
		CHECK_OK(hive_op_cancel(&w->ops[i])); /* finds them, wherever they go on */
	real_join(hive);
	CHECK_EQ(w->received, 0);
	CHECK_EQ(w->cancelled, OPS);
	close_waiter(w);
	net_close(fds);
}

TEST(a_worker_that_was_detached_leaves_a_hive_that_drains)
{
	static struct waiter w;

	for (int i = 0; i < core_count(); i++)
		stop_at_farewell(core_names[i], HIVE_DRAIN, &w);
}

TEST(operations_of_a_worker_that_was_detached_end_when_the_hive_stops_now)
{
	static struct waiter w;

	for (int i = 0; i < core_count(); i++)
		stop_at_farewell(core_names[i], HIVE_NOW, &w);
}
