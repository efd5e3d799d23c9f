/* SPDX-License-Identifier: MIT */
/* A fiber that never has to wait, because what it asks for is always there: others have their turn all the same, on each core. */
#include <sys/uio.h>

#include "base/atomic.h"
#include "support/net.h"

enum { LAPS = 200000, TICKS = 5 };

struct track {
	int fds[2];
	hive_fiber_fn *greedy;
	ATOMIC(uint32_t) ticks;
};

static bool goes_on(struct track *t, int lap)
{
	return lap < LAPS && load_relaxed(&t->ticks) < TICKS;
}

static int by_calls(void *arg)
{
	struct track *t = arg;
	char byte;

	for (int lap = 0; goes_on(t, lap); lap++) {
		CHECK_EQ(hive_send(t->fds[0], "x", 1, HIVE_FOREVER), 1);
		CHECK_EQ(hive_recv(t->fds[1], &byte, 1, HIVE_FOREVER), 1);
	}
	return 0;
}

static int by_messages(void *arg)
{
	struct track *t = arg;
	char byte;

	for (int lap = 0; goes_on(t, lap); lap++) {
		CHECK_EQ(hive_sendto(t->fds[0], "x", 1, NULL, HIVE_FOREVER), 1);
		CHECK_EQ(hive_recvfrom(t->fds[1], &byte, 1, NULL, HIVE_FOREVER), 1);
	}
	return 0;
}

static int by_stream(void *arg)
{
	struct track *t = arg;
	struct hive_stream *streams[2];
	const char *line;

	for (int i = 0; i < 2; i++)
		CHECK_OK(hive_stream_create(dup(t->fds[i]), NULL, &streams[i]));
	for (int lap = 0; goes_on(t, lap); lap++) {
		CHECK_OK(hive_stream_write(streams[0], "x\n", 2, HIVE_FOREVER));
		CHECK_EQ(hive_stream_read_line(streams[1], &line, HIVE_FOREVER), 2);
	}
	for (int i = 0; i < 2; i++)
		CHECK_OK(hive_stream_destroy(streams[i], HIVE_FOREVER));
	return 0;
}

/* Pages that are in memory. */
static int by_file(void *arg)
{
	struct track *t = arg;
	char name[] = "/tmp/rophive.XXXXXX", part[4096] = { 0 };
	int fd = mkostemp(name, O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_OK(unlink(name));
	CHECK_EQ(write(fd, part, sizeof part), (ssize_t)sizeof part);
	for (int lap = 0; goes_on(t, lap); lap++)
		CHECK_EQ(hive_read(fd, part, sizeof part, 0, HIVE_FOREVER), (int64_t)sizeof part);
	CHECK_OK(close(fd));
	return 0;
}

static int modest(void *arg)
{
	struct track *t = arg;

	for (int i = 0; i < TICKS; i++) {
		CHECK_OK(hive_sleep(HIVE_US(10)));
		add_relaxed(&t->ticks, 1u);
	}
	return 0;
}

/* Both on the one worker. */
static int race(void *arg)
{
	struct track *t = arg;
	struct hive_fiber *fibers[2];

	net_pair(t->fds);
	fibers[0] = net_spawn(modest, t);
	fibers[1] = net_spawn(t->greedy, t);
	CHECK_EQ(net_join(fibers[1]), 0);
	CHECK_EQ(load_relaxed(&t->ticks), TICKS); /* it did not have to end for that */
	CHECK_EQ(net_join(fibers[0]), 0);
	net_close(t->fds);
	return 0;
}

TEST(who_never_waits_keeps_nobody_waiting)
{
	static hive_fiber_fn *const greedy[] = { by_calls, by_messages, by_stream, by_file };

	for (int i = 0; i < core_count(); i++)
		for (int kind = 0; kind < 4; kind++) {
			struct hive *hive = net_start(core_names[i], 1, 1);
			struct track t = { .greedy = greedy[kind] };

			CHECK_OK(hive_block_on(hive, race, &t, HIVE_FOREVER, NULL));
			real_end(hive, HIVE_DRAIN);
		}
}

/* ---- with callbacks ---- */

struct chain {
	struct hive *hive;
	struct hive_op op;
	struct gate ended;
	int fds[2], laps;
	bool marked;
	char byte;
};

static void mark(void *arg)
{
	struct chain *c = arg;

	c->marked = true;
}

static void on_link(struct hive_op *op, int64_t result)
{
	struct chain *c = op->arg;

	CHECK_EQ(result, 1);
	if (++c->laps == 10)
		CHECK_OK(hive_post_to(c->hive, hive_worker_current(), mark, c));
	if (c->marked || c->laps >= LAPS)
		gate_open(&c->ended);
	else if (c->laps % 2)
		CHECK_OK(hive_op_send(op, c->fds[0], "x", 1, HIVE_FOREVER));
	else
		CHECK_OK(hive_op_recv(op, c->fds[1], &c->byte, 1, HIVE_FOREVER));
}

/* All of its results are there at once, but for the first. */
TEST(callbacks_that_never_wait_keep_no_task_waiting)
{
	for (int i = 0; i < core_count(); i++) {
		struct chain c = { .hive = net_start(core_names[i], 1, 1) };

		gate_init(&c.ended);
		net_pair(c.fds);
		hive_op_init(&c.op, c.hive, on_link, &c);
		CHECK_OK(hive_op_recv(&c.op, c.fds[1], &c.byte, 1, HIVE_FOREVER));
		CHECK_EQ(write(c.fds[0], "x", 1), 1);
		gate_pass(&c.ended);
		CHECK(c.marked && c.laps < LAPS);
		real_end(c.hive, HIVE_DRAIN);
		net_close(c.fds);
		gate_destroy(&c.ended);
	}
}

/* ---- and no event ---- */

enum { CROWD = 40 }; /* fits into what a core is told of in one turn */

struct crowd {
	struct chain chain;
	struct hive_op ops[CROWD];
	int fds[CROWD][2], heard, first_lap, last_lap;
	char bytes[CROWD];
};

static void on_heard(struct hive_op *op, int64_t result)
{
	struct crowd *c = op->arg;

	CHECK_EQ(result, 1);
	if (c->heard++ == 0)
		c->first_lap = c->chain.laps;
	c->last_lap = c->chain.laps;
	if (c->heard == CROWD)
		c->chain.marked = true;
}

/* On the worker: all of them have something to hear when it looks next, and the chain has gone on for a while. */
static void tell_crowd(void *arg)
{
	struct crowd *c = arg;

	for (int i = 0; i < CROWD; i++)
		CHECK_EQ(write(c->fds[i][0], "x", 1), 1);
}

static void start_crowd(void *arg)
{
	struct crowd *c = arg;

	for (int i = 0; i < CROWD; i++) {
		net_pair(c->fds[i]);
		hive_op_init(&c->ops[i], c->chain.hive, on_heard, c);
		CHECK_OK(hive_op_recv(&c->ops[i], c->fds[i][1], &c->bytes[i], 1, HIVE_FOREVER));
	}
	c->chain.laps = 10; /* nobody marks but the crowd */
	hive_op_init(&c->chain.op, c->chain.hive, on_link, &c->chain);
	CHECK_OK(hive_op_recv(&c->chain.op, c->chain.fds[1], &c->chain.byte, 1, HIVE_FOREVER));
	CHECK_EQ(write(c->chain.fds[0], "x", 1), 1);
	CHECK_OK(hive_post_after(c->chain.hive, HIVE_MS(2), tell_crowd, c, NULL));
}

/* Events of one turn are told one after the other: who never waits has a link or two between them, not four for each. */
TEST(callbacks_that_never_wait_keep_no_event_waiting)
{
	for (int i = 0; i < core_count(); i++) {
		struct crowd c = { .chain = { .hive = net_start(core_names[i], 1, 1) } };

		gate_init(&c.chain.ended);
		net_pair(c.chain.fds);
		CHECK_OK(hive_post(c.chain.hive, start_crowd, &c));
		gate_pass(&c.chain.ended);
		CHECK_EQ(c.heard, CROWD);
		CHECK(c.last_lap - c.first_lap <= 8);
		real_end(c.chain.hive, HIVE_DRAIN);
		for (int k = 0; k < CROWD; k++)
			net_close(c.fds[k]);
		net_close(c.chain.fds);
		gate_destroy(&c.chain.ended);
	}
}

static uint64_t compute_ran(struct hive *hive)
{
	struct hive_worker_stats stats;
	uint32_t ids[2];

	CHECK_EQ(hive_workers(hive, ids, 2), 2);
	CHECK_OK(hive_worker_stats_read(hive, ids[1], &stats));
	CHECK_EQ(stats.kind, HIVE_WORKER_COMPUTE);
	return stats.ran;
}

/* So much of a file that to copy it takes its time: the IO worker has others do it, though all of it be in memory. */
static int read_much(void *arg)
{
	enum { MUCH = 8 << 20 };
	char name[] = "/tmp/rophive.XXXXXX", *all = calloc(1, MUCH);
	struct iovec parts[2] = { { all, MUCH / 2 }, { all + MUCH / 2, MUCH / 2 } };
	int fd = mkostemp(name, O_CLOEXEC);
	uint64_t before;

	CHECK(all && fd >= 0);
	CHECK_OK(unlink(name));
	CHECK_EQ(write(fd, all, MUCH), MUCH);
	before = compute_ran(arg);
	CHECK_EQ(hive_read(fd, all, MUCH, 0, HIVE_FOREVER), MUCH);
	WAIT_UNTIL(compute_ran(arg) == before + 1);
	CHECK_EQ(hive_readv(fd, parts, 2, 0, HIVE_FOREVER), MUCH);
	CHECK_EQ(hive_write(fd, all, MUCH, 0, HIVE_FOREVER), MUCH);
	CHECK_EQ(hive_writev(fd, parts, 2, 0, HIVE_FOREVER), MUCH);
	WAIT_UNTIL(compute_ran(arg) == before + 4);
	CHECK_OK(close(fd));
	free(all);
	return 0;
}

TEST(no_io_worker_copies_large_pieces_of_files)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 1, 1);

		CHECK_OK(hive_block_on(hive, read_much, hive, HIVE_FOREVER, NULL));
		real_end(hive, HIVE_DRAIN);
	}
}
