/* SPDX-License-Identifier: MIT */
/* Receives with lent buffers: workers that leave, hives that stop, thousands that are idle, datagrams, and what is refused. */
#include <pthread.h>
#include <sys/resource.h>

#include "support/tap.h"

static uint32_t attach_on(struct hive *hive, const char *core)
{
	struct hive_worker_options options = { .kind = HIVE_WORKER_IO };
	uint32_t id;

	CHECK_OK(hive_core_find(core, &options.core));
	CHECK_OK(hive_attach(hive, &options, &id));
	return id;
}

/* ---- a worker leaves ---- */

enum { MOVED = 6 };

/* They wait for bytes, or for buffers; some of what was lent by the worker comes back when it has left. */
TEST(a_worker_leaves_and_they_go_on_elsewhere)
{
	EACH_CORE(core)
	for (int round = 0; round < 8; round++) {
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct hive_buffers *pool = tap_pool(hive, 3, 10);
		uint32_t second = attach_on(hive, core_names[core]);
		struct tap taps[MOVED];

		for (int i = 0; i < MOVED; i++) {
			tap_init(&taps[i], hive, pool);
			taps[i].keeps = i < 3;
			shot_at(hive, second, tap_start, &taps[i]);
		}
		for (int i = 0; i < 3; i++)
			tap_send(&taps[i], 5);
		for (int i = 0; i < 3; i++)
			WAIT_UNTIL(atomic_load(&taps[i].have) == 5);
		for (int i = 3; i < MOVED && round % 2; i++)
			tap_send(&taps[i], 5); /* hungry */
		if (round & 2)
			CHECK_OK(hive_buffer_return(pool, taps[0].kept[0]));
		CHECK_OK(hive_detach(hive, second, HIVE_FOREVER));
		if (round & 4)
			second = attach_on(hive, core_names[core]); /* may take over what the last one had */
		for (int i = round & 2 ? 1 : 0; i < 3; i++)
			CHECK_OK(hive_buffer_return(pool, taps[i].kept[0]));
		for (int i = 0; i < MOVED; i++) {
			taps[i].keeps = false; /* nobody is at it: nothing is sent to these */
			tap_send(&taps[i], 30 - taps[i].sent);
		}
		for (int i = 0; i < MOVED; i++)
			WAIT_UNTIL(atomic_load(&taps[i].have) == 30);
		for (int i = 0; i < MOVED; i++) {
			CHECK_OK(hive_op_cancel(&taps[i].op));
			CHECK_ERR(tap_wait(&taps[i]), -ECANCELED);
			tap_end(&taps[i]);
		}
		CHECK_OK(hive_buffers_destroy(pool));
		real_end(hive, HIVE_DRAIN);
	}
}

struct crowd {
	struct hive *hive;
	struct tap taps[MOVED];
	uint32_t worker;
};

static void *send_all(void *arg)
{
	struct crowd *c = arg;

	for (int n = 0; n < 50; n++)
		for (int i = 0; i < MOVED; i++)
			tap_send(&c->taps[i], 7);
	return NULL;
}

/* Pieces, hunger and the move at once: nothing is lost, and the order stays. */
TEST(pieces_against_a_worker_that_leaves)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 2, 0);
		struct hive_buffers *pool = tap_pool(hive, 2, 5);

		for (int round = 0; round < 30 / test_slowness() + 5; round++) {
			struct crowd c = { .hive = hive, .worker = attach_on(hive, core_names[core]) };
			pthread_t thread;

			for (int i = 0; i < MOVED; i++) {
				tap_init(&c.taps[i], hive, pool);
				shot_at(hive, c.worker, tap_start, &c.taps[i]);
			}
			CHECK_OK(pthread_create(&thread, NULL, send_all, &c));
			WAIT_UNTIL(atomic_load(&c.taps[round % MOVED].have) > 7 * round % 300);
			CHECK_OK(hive_detach(hive, c.worker, HIVE_FOREVER));
			CHECK_OK(pthread_join(thread, NULL));
			for (int i = 0; i < MOVED; i++) {
				CHECK_OK(shutdown(c.taps[i].fds[1], SHUT_WR));
				CHECK_EQ(tap_wait(&c.taps[i]), 0);
				CHECK_EQ(atomic_load(&c.taps[i].have), 350);
				tap_end(&c.taps[i]);
			}
		}
		CHECK_OK(hive_buffers_destroy(pool));
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- a hive stops ---- */

TEST(a_hive_stops)
{
	EACH_CORE(core)
	for (int mode = 0; mode < 2; mode++) {
		struct hive *hive = net_start(core_names[core], 2, 0);
		struct hive_buffers *pool = tap_pool(hive, 1, 16);
		struct tap taps[MOVED];
		int lent = 0;

		for (int i = 0; i < MOVED; i++) {
			tap_init(&taps[i], hive, pool);
			taps[i].keeps = true;
			shot_at(hive, HIVE_WORKER_MAIN, tap_start, &taps[i]);
		}
		for (int i = 0; i < MOVED - 1; i++)
			tap_send(&taps[i], 5); /* one has a buffer, the others are hungry, and one is idle */
		while (lent == 0)
			for (int i = 0; i < MOVED; i++)
				lent += atomic_load(&taps[i].have) > 0;
		CHECK_OK(hive_stop(hive, mode ? HIVE_NOW : HIVE_DRAIN,
		                   mode ? HIVE_FOREVER : hive_deadline(NULL, HIVE_MS(3))));
		for (int i = 0; i < MOVED; i++)
			CHECK_ERR(tap_wait(&taps[i]), -ECANCELED);
		CHECK_ERR(hive_op_recv_many(&taps[0].op, taps[0].fds[0], pool, HIVE_FOREVER), -ESHUTDOWN);
		CHECK_ERR(hive_buffers_destroy(pool), -EBUSY);
		for (int i = 0; i < MOVED; i++)
			if (atomic_load(&taps[i].have) > 0)
				CHECK_OK(hive_buffer_return(pool, taps[i].kept[0]));
		CHECK_OK(hive_buffers_destroy(pool));
		real_join(hive);
		for (int i = 0; i < MOVED; i++)
			tap_end(&taps[i]);
	}
}

static void *return_slowly(void *arg)
{
	struct crowd *c = arg;
	int returned[MOVED] = { 0 }, sum = 0;

	while (sum < MOVED * 3) {
		sum = 0;
		for (int i = 0; i < MOVED; i++) {
			if (returned[i] < atomic_load(&c->taps[i].pieces))
				CHECK_OK(hive_buffer_return(c->taps[i].pool, c->taps[i].kept[returned[i]++]));
			sum += atomic_load(&c->taps[i].ended) ? 3 : returned[i];
		}
		sched_yield();
	}
	for (int i = 0; i < MOVED; i++)
		while (returned[i] < atomic_load(&c->taps[i].pieces))
			CHECK_OK(hive_buffer_return(c->taps[i].pool, c->taps[i].kept[returned[i]++]));
	return NULL;
}

/* Buffers come back, and letters are on their way, while it stops. */
TEST(returns_against_stop)
{
	EACH_CORE(core)
	for (int round = 0; round < 30 / test_slowness() + 5; round++) {
		struct crowd c = { .hive = net_start(core_names[core], 2, 0) };
		struct hive_buffers *pool = tap_pool(c.hive, 1, 10);
		pthread_t thread;

		for (int i = 0; i < MOVED; i++) {
			tap_init(&c.taps[i], c.hive, pool);
			c.taps[i].keeps = true;
			tap_send(&c.taps[i], 30);
			tap_start(&c.taps[i]);
		}
		CHECK_OK(pthread_create(&thread, NULL, return_slowly, &c));
		for (int i = 0; i < round; i++)
			sched_yield();
		CHECK_OK(hive_stop(c.hive, HIVE_NOW, HIVE_FOREVER));
		for (int i = 0; i < MOVED; i++)
			CHECK_ERR(tap_wait(&c.taps[i]), -ECANCELED);
		CHECK_OK(pthread_join(thread, NULL));
		CHECK_OK(hive_buffers_destroy(pool));
		real_join(c.hive);
		for (int i = 0; i < MOVED; i++)
			tap_end(&c.taps[i]);
	}
}

/* ---- thousands ---- */

TEST(thousands_of_idle_connections_need_no_buffer)
{
	enum { IDLE = 1000 };
	static struct tap taps[IDLE];
	struct rlimit limit, more;

	CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
	more = limit;
	more.rlim_cur = 2 * IDLE + 100;
	if (more.rlim_cur > limit.rlim_max) {
		test_skip("not so many descriptors");
		return;
	}
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &more));
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct hive_buffers *pool = tap_pool(hive, 4, 4096);

		for (int i = 0; i < IDLE; i++) {
			tap_init(&taps[i], hive, pool);
			tap_start(&taps[i]);
		}
		CHECK(shot_restless(hive) < SHOT_RESTFUL);
		for (int round = 1; round <= 3; round++) {
			for (int i = 0; i < IDLE; i++)
				tap_send(&taps[i], 10);
			for (int i = 0; i < IDLE; i++)
				WAIT_UNTIL(atomic_load(&taps[i].have) == 10 * round);
		}
		for (int i = 0; i < IDLE; i++)
			CHECK_OK(hive_op_cancel(&taps[i].op));
		for (int i = 0; i < IDLE; i++) {
			CHECK_ERR(tap_wait(&taps[i]), -ECANCELED);
			tap_end(&taps[i]);
		}
		CHECK_OK(hive_buffers_destroy(pool));
		real_end(hive, HIVE_DRAIN);
	}
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
}

/* ---- pools that come and go; the last on_done may end its pool ---- */

static void destroy_pool(struct hive_op *op, int64_t result)
{
	struct tap *t = op->arg;

	if (result > 0) {
		tap_told(op, result);
		return;
	}
	CHECK_OK(hive_buffers_destroy(t->pool));
	tap_told(op, result);
}

TEST(pools_come_and_go)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 2, 0);

		for (int round = 0; round < 50; round++) {
			struct hive_buffers *pools[3];
			struct tap taps[3];

			for (int i = 0; i < 3; i++) {
				pools[i] = tap_pool(hive, 2u + (uint32_t)i, 100);
				tap_init(&taps[i], hive, pools[i]);
				hive_op_init(&taps[i].op, hive, destroy_pool, &taps[i]);
				tap_start(&taps[i]);
				tap_send(&taps[i], 250);
				CHECK_OK(shutdown(taps[i].fds[1], SHUT_WR));
			}
			for (int i = 0; i < 3; i++) {
				CHECK_EQ(tap_wait(&taps[i]), 0);
				CHECK_EQ(atomic_load(&taps[i].have), 250);
				tap_end(&taps[i]);
			}
		}
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- datagrams ---- */

TEST(datagrams_are_pieces)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct hive_buffers *pool = tap_pool(hive, 2, 10);
		struct tap t;

		tap_init(&t, hive, pool);
		net_close(t.fds);
		CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, t.fds));
		tap_start(&t);
		for (int i = 1; i <= 3; i++) {
			tap_send(&t, 4);
			WAIT_UNTIL(atomic_load(&t.pieces) == i);
		}
		tap_send(&t, 25); /* cut */
		WAIT_UNTIL(atomic_load(&t.pieces) == 4);
		CHECK_EQ(atomic_load(&t.have), 22);
		CHECK_EQ(send(t.fds[1], "", 0, 0), 0);
		CHECK_EQ(tap_wait(&t), 0);
		CHECK_OK(hive_buffers_destroy(pool));
		tap_end(&t);
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- what is refused ---- */

static void check_late(struct hive *hive, struct hive_buffers *pool, int fd, int64_t result)
{
	struct tap t;

	tap_init(&t, hive, pool);
	CHECK_OK(hive_op_recv_many(&t.op, fd, pool, HIVE_FOREVER));
	CHECK_ERR(tap_wait(&t), result);
	tap_end(&t);
}

TEST(what_is_refused)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0), *other = net_start("epoll", 1, 0);
		struct hive_buffers *pool = tap_pool(hive, 2, 10), *foreign = tap_pool(other, 2, 10), *none = NULL;
		struct hive_op silent;
		struct tap t;
		int ends[2];

		CHECK_ERR(hive_buffers_create(NULL, 1, 1, &none), -EINVAL);
		CHECK_ERR(hive_buffers_create(hive, 0, 1, &none), -EINVAL);
		CHECK_ERR(hive_buffers_create(hive, 32769, 1, &none), -EINVAL);
		CHECK_ERR(hive_buffers_create(hive, 1, 0, &none), -EINVAL);
		CHECK_ERR(hive_buffers_create(hive, 1, (size_t)HIVE_BUFFER_MOST + 1, &none), -EINVAL);
		CHECK_ERR(hive_buffers_create(hive, 1, 1, NULL), -EINVAL);
		CHECK(!none);
		tap_init(&t, hive, pool);
		hive_op_init(&silent, hive, NULL, NULL);
		CHECK_ERR(hive_op_recv_many(&t.op, -1, pool, HIVE_FOREVER), -EINVAL);
		CHECK_ERR(hive_op_recv_many(&t.op, t.fds[0], NULL, HIVE_FOREVER), -EINVAL);
		CHECK_ERR(hive_op_recv_many(&t.op, t.fds[0], foreign, HIVE_FOREVER), -EINVAL);
		CHECK_ERR(hive_op_recv_many(&t.op, t.fds[0], pool, HIVE_NOWAIT), -EINVAL);
		CHECK_ERR(hive_op_recv_many(&silent, t.fds[0], pool, HIVE_FOREVER), -EINVAL);
		CHECK_ERR(hive_op_recv_many(NULL, t.fds[0], pool, HIVE_FOREVER), -EINVAL);
		tap_start(&t);
		CHECK_ERR(hive_op_recv_many(&t.op, t.fds[0], pool, HIVE_FOREVER), -EBUSY);
		CHECK_OK(pipe2(ends, O_NONBLOCK | O_CLOEXEC));
		check_late(hive, pool, ends[0], -ENOTSOCK);
		net_close(ends);
		check_late(hive, pool, 98765, -EBADF); /* nobody has that many */
		CHECK_OK(hive_op_cancel(&t.op));
		CHECK_ERR(tap_wait(&t), -ECANCELED);
		tap_end(&t);
		CHECK_OK(hive_buffers_destroy(pool)); /* none of these is still counted */
		CHECK_OK(hive_buffers_destroy(foreign));
		real_end(other, HIVE_DRAIN);
		real_end(hive, HIVE_DRAIN);
	}
}
