/* SPDX-License-Identifier: MIT */
/* Receiving again and again into buffers that are lent when something has come, on each core. */
#include <pthread.h>

#include "support/tap.h"

/* ---- a stream ---- */

TEST(a_stream_comes_in_pieces_and_ends)
{
	EACH_CORE(core)
	for (uint32_t count = 1; count <= 8; count += 7) {
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct hive_buffers *pool = tap_pool(hive, count, 1000);
		struct tap t;

		tap_init(&t, hive, pool);
		tap_start(&t);
		CHECK_ERR(hive_buffers_destroy(pool), -EBUSY);
		tap_send(&t, 300000);
		CHECK_OK(shutdown(t.fds[1], SHUT_WR));
		CHECK_EQ(tap_wait(&t), 0);
		CHECK_EQ(atomic_load(&t.have), 300000);
		CHECK(atomic_load(&t.pieces) >= 300);
		CHECK_ERR(hive_op_cancel(&t.op), -ESRCH);
		CHECK_OK(hive_buffers_destroy(pool));
		tap_end(&t);
		real_end(hive, HIVE_DRAIN);
	}
}

TEST(bytes_that_come_one_by_one)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct hive_buffers *pool = tap_pool(hive, 4, 100);
		struct tap t;

		tap_init(&t, hive, pool);
		tap_start(&t);
		for (int i = 1; i <= 500; i++) {
			tap_send(&t, 1);
			if (i % 3 == 0)
				WAIT_UNTIL(atomic_load(&t.have) == i);
		}
		WAIT_UNTIL(atomic_load(&t.have) == 500);
		CHECK(shot_restless(hive) < SHOT_RESTFUL);
		CHECK_OK(hive_op_cancel(&t.op));
		CHECK_ERR(tap_wait(&t), -ECANCELED);
		tap_end(&t);
		CHECK_OK(hive_buffers_destroy(pool));
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- returning ---- */

TEST(each_buffer_is_returned_once)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct hive_buffers *pool = tap_pool(hive, 3, 100), *other = tap_pool(hive, 3, 100);
		char *buffer, stranger;
		struct tap t;

		tap_init(&t, hive, pool);
		t.keeps = true;
		CHECK_ERR(hive_buffer_return(pool, &stranger), -EINVAL); /* there are none yet */
		tap_start(&t);
		tap_send(&t, 10);
		WAIT_UNTIL(atomic_load(&t.have) == 10);
		buffer = t.kept[0];
		CHECK_ERR(hive_buffers_destroy(pool), -EBUSY);
		CHECK_ERR(hive_buffer_return(pool, buffer + 1), -EINVAL);
		CHECK_ERR(hive_buffer_return(pool, buffer + 128), -EINVAL); /* a neighbour, or beyond */
		CHECK_ERR(hive_buffer_return(pool, NULL), -EINVAL);
		CHECK_ERR(hive_buffer_return(pool, &stranger), -EINVAL);
		CHECK_ERR(hive_buffer_return(other, buffer), -EINVAL);
		CHECK_ERR(hive_buffer_return(NULL, buffer), -EINVAL);
		CHECK_OK(hive_op_cancel(&t.op));
		CHECK_ERR(tap_wait(&t), -ECANCELED);
		CHECK_ERR(hive_buffers_destroy(pool), -EBUSY); /* it is lent whatever becomes of the operation */
		CHECK_EQ(buffer[9], (char)tap_byte(9));
		CHECK_OK(hive_buffer_return(pool, buffer));
		CHECK_ERR(hive_buffer_return(pool, buffer), -EINVAL);
		CHECK_OK(hive_buffers_destroy(pool));
		CHECK_OK(hive_buffers_destroy(other));
		CHECK_OK(hive_buffers_destroy(NULL));
		tap_end(&t);
		real_end(hive, HIVE_DRAIN);
	}
}

#if TEST_ASAN
#include <sanitizer/asan_interface.h>

TEST(what_is_not_lent_is_poisoned)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct hive_buffers *pool = tap_pool(hive, 1, 100);
		struct tap t;

		tap_init(&t, hive, pool);
		t.keeps = true;
		tap_start(&t);
		tap_send(&t, 10);
		WAIT_UNTIL(atomic_load(&t.have) == 10);
		CHECK(!__asan_region_is_poisoned(t.kept[0], 100));
		CHECK_OK(hive_buffer_return(pool, t.kept[0]));
		for (int i = 0; i < 100; i++)
			CHECK(__asan_address_is_poisoned((char *)t.kept[0] + i));
		CHECK_OK(hive_op_cancel(&t.op));
		CHECK_ERR(tap_wait(&t), -ECANCELED);
		tap_end(&t);
		CHECK_OK(hive_buffers_destroy(pool));
		real_end(hive, HIVE_DRAIN);
	}
}
#endif

/* ---- none left ---- */

TEST(without_buffers_it_waits_and_goes_on)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct hive_buffers *pool = tap_pool(hive, 2, 10);
		struct tap t;

		tap_init(&t, hive, pool);
		t.keeps = true;
		tap_start(&t);
		tap_send(&t, 95);
		for (int n = 2; n < 10; n++) {
			WAIT_UNTIL(atomic_load(&t.pieces) == n);
			CHECK_EQ(atomic_load(&t.have), 10 * n);
			if (n < 4)
				CHECK(shot_restless(hive) < SHOT_RESTFUL); /* it does not ask again and again */
			CHECK_EQ(atomic_load(&t.pieces), n);
			CHECK_OK(hive_buffer_return(pool, t.kept[n - 2]));
		}
		WAIT_UNTIL(atomic_load(&t.have) == 95);
		CHECK_OK(close(t.fds[1]));
		t.fds[1] = dup(t.fds[0]);
		CHECK_OK(hive_buffer_return(pool, t.kept[8]));
		CHECK_EQ(tap_wait(&t), 0);
		CHECK_OK(hive_buffer_return(pool, t.kept[9]));
		CHECK_OK(hive_buffers_destroy(pool));
		tap_end(&t);
		real_end(hive, HIVE_DRAIN);
	}
}

enum { CROWD = 150 };

/* Much more connections than buffers; another thread returns what they keep. */
TEST(a_crowd_shares_a_few_buffers)
{
	static struct tap taps[CROWD];

	EACH_CORE(core)
	for (int32_t workers = 1; workers <= 3; workers += 2) {
		struct hive *hive = net_start(core_names[core], workers, 0);
		struct hive_buffers *pool = tap_pool(hive, 2, 16);
		int returned[CROWD] = { 0 };
		bool all = false;

		for (int i = 0; i < CROWD; i++) {
			tap_init(&taps[i], hive, pool);
			taps[i].keeps = true;
			tap_start(&taps[i]);
		}
		for (int i = 0; i < CROWD; i++)
			tap_send(&taps[i], 40); /* three pieces */
		while (!all) {
			all = true;
			for (int i = 0; i < CROWD; i++) {
				while (returned[i] < atomic_load(&taps[i].pieces))
					CHECK_OK(hive_buffer_return(pool, taps[i].kept[returned[i]++]));
				all = all &&
				      atomic_load(&taps[i].have) == 40; /* the last piece is counted a moment later */
			}
			sched_yield();
		}
		CHECK(shot_restless(hive) < SHOT_RESTFUL);
		for (int i = 0; i < CROWD; i++)
			CHECK_OK(hive_op_cancel(&taps[i].op));
		for (int i = 0; i < CROWD; i++) {
			CHECK_ERR(tap_wait(&taps[i]), -ECANCELED);
			while (returned[i] < atomic_load(&taps[i].pieces))
				CHECK_OK(hive_buffer_return(pool, taps[i].kept[returned[i]++]));
			tap_end(&taps[i]);
		}
		CHECK_OK(hive_buffers_destroy(pool));
		real_end(hive, HIVE_DRAIN);
	}
}

/* The first of those that wait has nothing to read any more when there is a buffer again: then it is the next one's. */
TEST(a_buffer_that_one_does_not_need_is_the_next_ones)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct hive_buffers *pool = tap_pool(hive, 1, 16);
		struct tap taps[4];
		char byte;

		for (int i = 0; i < 4; i++) {
			tap_init(&taps[i], hive, pool);
			taps[i].keeps = true;
			tap_start(&taps[i]);
			tap_send(&taps[i], 1);
			if (i == 0)
				WAIT_UNTIL(atomic_load(&taps[0].have) == 1);
		}
		CHECK(shot_restless(hive) < SHOT_RESTFUL); /* by now they are hungry */
		CHECK_EQ(recv(taps[1].fds[0], &byte, 1, 0), 1);
		CHECK_OK(close(taps[2].fds[1])); /* it has its byte, and then its end */
		taps[2].fds[1] = dup(taps[2].fds[0]);
		CHECK_OK(hive_buffer_return(pool, taps[0].kept[0]));
		WAIT_UNTIL(atomic_load(&taps[2].have) + atomic_load(&taps[3].have) == 1);
		CHECK_OK(hive_buffer_return(pool, atomic_load(&taps[2].have) ? taps[2].kept[0] : taps[3].kept[0]));
		WAIT_UNTIL(atomic_load(&taps[2].have) + atomic_load(&taps[3].have) == 2);
		CHECK_OK(hive_op_cancel(&taps[0].op));
		CHECK_OK(hive_op_cancel(&taps[1].op));
		CHECK_OK(hive_op_cancel(&taps[3].op));
		for (int i = 0; i < 4; i++)
			if (i != 2)
				CHECK_ERR(tap_wait(&taps[i]), -ECANCELED);
		if (hive_buffer_return(pool, taps[2].kept[0]) < 0) /* one of the two is lent */
			CHECK_OK(hive_buffer_return(pool, taps[3].kept[0]));
		CHECK_EQ(tap_wait(&taps[2]), 0);
		for (int i = 0; i < 4; i++)
			tap_end(&taps[i]);
		CHECK_OK(hive_buffers_destroy(pool));
		real_end(hive, HIVE_DRAIN);
	}
}

/* So many before it have nothing to read any more that they do not go on all at once. */
TEST(a_buffer_finds_the_one_who_needs_it)
{
	static struct tap taps[CROWD];

	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct hive_buffers *pool = tap_pool(hive, 1, 16);
		char byte;

		for (int i = 0; i < CROWD; i++) {
			tap_init(&taps[i], hive, pool);
			taps[i].keeps = i == 0;
			tap_start(&taps[i]);
			tap_send(&taps[i], 1);
			if (i == 0)
				WAIT_UNTIL(atomic_load(&taps[0].have) == 1);
		}
		CHECK(shot_restless(hive) < SHOT_RESTFUL);
		for (int i = 1; i < CROWD - 1; i++)
			CHECK_EQ(recv(taps[i].fds[0], &byte, 1, 0), 1);
		CHECK_OK(hive_buffer_return(pool, taps[0].kept[0]));
		WAIT_UNTIL(atomic_load(&taps[CROWD - 1].have) == 1);
		for (int i = 0; i < CROWD; i++)
			CHECK_OK(hive_op_cancel(&taps[i].op));
		for (int i = 0; i < CROWD; i++) {
			CHECK_ERR(tap_wait(&taps[i]), -ECANCELED);
			tap_end(&taps[i]);
		}
		CHECK_OK(hive_buffers_destroy(pool));
		real_end(hive, HIVE_DRAIN);
	}
}

TEST(one_that_waits_for_a_buffer_is_cancelled_or_late)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct hive_buffers *pool = tap_pool(hive, 1, 16);
		struct tap first, second, third;

		tap_init(&first, hive, pool);
		tap_init(&second, hive, pool);
		tap_init(&third, hive, pool);
		first.keeps = true;
		tap_start(&first);
		tap_send(&first, 1);
		WAIT_UNTIL(atomic_load(&first.have) == 1);
		tap_send(&second, 3);
		tap_send(&third, 3);
		tap_start(&second);
		CHECK_OK(hive_op_recv_many(&third.op, third.fds[0], pool, hive_deadline(NULL, HIVE_MS(10))));
		CHECK_ERR(tap_wait(&third), -ETIMEDOUT);
		CHECK_OK(hive_op_cancel(&second.op));
		CHECK_ERR(tap_wait(&second), -ECANCELED);
		CHECK_EQ(atomic_load(&second.have) + atomic_load(&third.have), 0);
		CHECK_OK(hive_op_cancel(&first.op));
		CHECK_ERR(tap_wait(&first), -ECANCELED);
		atomic_store(&second.ended, 0);
		tap_start(&second); /* nothing is lost */
		CHECK_OK(hive_buffer_return(pool, first.kept[0]));
		WAIT_UNTIL(atomic_load(&second.have) == 3);
		CHECK_OK(hive_op_cancel(&second.op));
		CHECK_ERR(tap_wait(&second), -ECANCELED);
		tap_end(&first);
		tap_end(&second);
		tap_end(&third);
		CHECK_OK(hive_buffers_destroy(pool));
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- ends ---- */

static void *send_in_bits(void *arg)
{
	struct tap *t = arg;

	for (int i = 0; i < 100; i++)
		tap_send(t, 5);
	return NULL;
}

/* What was told and what is left are all that was sent, and the end comes once. */
TEST(cancel_against_pieces)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 2, 0);
		struct hive_buffers *pool = tap_pool(hive, 3, 7);

		for (int round = 0; round < 60 / test_slowness() + 10; round++) {
			char rest[1000];
			pthread_t thread;
			struct tap t;
			ssize_t left;

			tap_init(&t, hive, pool);
			t.cancel_at = round % 2 ? round : 0;
			tap_start(&t);
			CHECK_OK(pthread_create(&thread, NULL, send_in_bits, &t));
			if (t.cancel_at == 0) {
				WAIT_UNTIL(atomic_load(&t.have) > 2 * round);
				CHECK_OK(hive_op_cancel(&t.op));
			}
			CHECK_ERR(tap_wait(&t), -ECANCELED);
			CHECK_OK(pthread_join(thread, NULL));
			left = recv(t.fds[0], rest, sizeof rest, MSG_DONTWAIT);
			CHECK_EQ(atomic_load(&t.have) + (left > 0 ? (int)left : 0), 500);
			for (ssize_t i = 0; i < left; i++)
				CHECK_EQ((unsigned char)rest[i], tap_byte((size_t)atomic_load(&t.have) + (size_t)i));
			tap_end(&t);
		}
		CHECK_OK(hive_buffers_destroy(pool));
		real_end(hive, HIVE_DRAIN);
	}
}

static void tcp_pair(int fds[2])
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t bytes = sizeof any;

	CHECK_OK(bind(listener, (const void *)&any, sizeof any));
	CHECK_OK(listen(listener, 1));
	CHECK_OK(getsockname(listener, (void *)&any, &bytes));
	fds[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_OK(connect(fds[1], (const void *)&any, bytes));
	fds[0] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	CHECK(fds[0] >= 0);
	CHECK_OK(close(listener));
}

TEST(the_peer_resets)
{
	static const struct linger at_once = { .l_onoff = 1 };

	EACH_CORE(core)
	for (int bytes = 0; bytes < 40; bytes += 13)
		for (int waits = 0; waits < 2; waits++) { /* for the pieces; else the reset may take them */
			struct hive *hive = net_start(core_names[core], 1, 0);
			struct hive_buffers *pool = tap_pool(hive, 2, 16);
			struct tap t;

			tap_init(&t, hive, pool);
			net_close(t.fds);
			tcp_pair(t.fds);
			tap_start(&t);
			tap_send(&t, (size_t)bytes);
			if (waits)
				WAIT_UNTIL(atomic_load(&t.have) == bytes);
			CHECK_OK(setsockopt(t.fds[1], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
			CHECK_OK(close(t.fds[1]));
			t.fds[1] = dup(t.fds[0]);
			CHECK_ERR(tap_wait(&t), -ECONNRESET);
			CHECK(atomic_load(&t.have) <= bytes);
			CHECK_OK(hive_buffers_destroy(pool));
			tap_end(&t);
			real_end(hive, HIVE_DRAIN);
		}
}
