/* SPDX-License-Identifier: MIT */
/* Buffers that the kernel takes from a ring: small rings, answers that run over, cancels at each moment, and systems that have none. */
#include "support/child.h"
#include "support/cores.h"
#include "support/real.h"

#include <rophive/io.h>

#include "io/op.h"

static bool is_there(void)
{
	const struct hive_core_ops *core;

	if (hive_core_find("uring", &core) == 0)
		return true;
	test_skip("no io_uring here");
	return false;
}

enum { TAPS = 40 };

struct tap {
	struct hive_op op;
	int fds[2], sum, ended;
	int64_t last;
	void *kept; /* the last one, if it keeps */
	bool keeps;
	struct desk *stops; /* with its first piece */
};
static struct tap taps[TAPS];
static struct hive_buffers *pool;
static int total;

static void told(struct hive_op *op, int64_t result)
{
	struct tap *t = op->arg;

	CHECK_EQ(t->ended, 0);
	if (result <= 0) {
		t->ended = 1;
		t->last = result;
		return;
	}
	for (int64_t i = 0; i < result; i++)
		CHECK_EQ(((unsigned char *)op->buffer)[i], (t->sum + (int)i) % 251);
	t->sum += (int)result;
	total += (int)result;
	if (t->stops)
		hive__ops_cancel(t->stops);
	if (t->keeps)
		t->kept = op->buffer;
	else
		CHECK_OK(hive_buffer_return(pool, op->buffer));
}

static void open_taps(struct rig *r, int32_t entries, int count, uint32_t buffers, size_t bytes)
{
	rig_open_with(r, "uring", (struct hive_worker_options){ .ring_entries = entries });
	CHECK_OK(hive_buffers_create(r->l.f.hive, buffers, bytes, &pool));
	memset(taps, 0, sizeof taps);
	total = 0;
	for (int i = 0; i < count; i++) {
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, taps[i].fds));
		hive_op_init(&taps[i].op, r->l.f.hive, told, &taps[i]);
		CHECK_OK(hive_op_recv_many(&taps[i].op, taps[i].fds[0], pool, HIVE_FOREVER));
	}
}

static void send_to(struct tap *t, int from, int bytes)
{
	unsigned char text[1000];

	for (int i = 0; i < bytes; i++)
		text[i] = (unsigned char)((from + i) % 251);
	CHECK_EQ(write(t->fds[1], text, (size_t)bytes), bytes);
}

/* A beat, for the engine's letters too; it does not wait. */
static void go_on(struct rig *r)
{
	r->ops->wake(r->core);
	CHECK(lone_beat(&r->l, 0));
}

static void go_on_until(struct rig *r, int bytes)
{
	STEP_UNTIL(total >= bytes, go_on(r));
	CHECK_EQ(total, bytes);
}

static void close_taps(struct rig *r, int count)
{
	for (int i = 0; i < count; i++)
		if (!taps[i].ended)
			CHECK_OK(hive_op_cancel(&taps[i].op));
	for (int turns = 0, open = count; open > 0; turns++) {
		CHECK(turns < 10000);
		go_on(r);
		open = 0;
		for (int i = 0; i < count; i++)
			open += !taps[i].ended;
	}
	for (int i = 0; i < count; i++)
		close_both(taps[i].fds);
	CHECK_OK(hive_buffers_destroy(pool));
	rig_close(r);
}

/* ---- rings that are too small ---- */

TEST(a_ring_of_4_serves_forty_connections_with_three_buffers)
{
	static struct rig r;

	if (!is_there())
		return;
	open_taps(&r, 4, TAPS, 3, 16);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < TAPS; i++)
			send_to(&taps[i], 100 * round, 100);
		go_on_until(&r, 100 * TAPS * (round + 1));
	}
	for (int i = 0; i < TAPS; i++)
		CHECK_EQ(taps[i].sum, 500);
	close_taps(&r, TAPS);
}

/* More pieces at once than there is room for answers. */
TEST(pieces_that_run_over_are_all_told_in_order)
{
	static struct rig r;

	if (!is_there())
		return;
	open_taps(&r, 4, TAPS, 1000, 1);
	go_on(&r);
	for (int i = 0; i < TAPS; i++)
		send_to(&taps[i], 0, 50);
	go_on_until(&r, 50 * TAPS);
	send_to(&taps[7], 50, 900);
	go_on_until(&r, 50 * TAPS + 900);
	close_taps(&r, TAPS);
}

/* The next one has its turn before the first is through. */
TEST(one_does_not_keep_the_turn)
{
	static struct rig r;

	if (!is_there())
		return;
	open_taps(&r, 0, 1, 500, 1);
	go_on(&r);
	send_to(&taps[0], 0, 400);
	for (int turns = 0; total < 400; turns++) {
		int before = total;

		CHECK(turns < 1000);
		rig_turn(&r, 0);
		CHECK(total - before <= 64);
	}
	close_taps(&r, 1);
}

/* ---- none left ---- */

static struct rig *idle_rig;

static void turn_without_calls(void)
{
	for (int i = 0; i < 100; i++)
		CHECK_OK(idle_rig->ops->turn(idle_rig->core, 0));
}

TEST(without_buffers_nothing_is_asked_of_the_kernel)
{
	static struct rig r;
	void *first;

	if (!is_there())
		return;
	open_taps(&r, 0, 2, 1, 10);
	taps[0].keeps = taps[1].keeps = true;
	go_on(&r);
	send_to(&taps[0], 0, 5);
	go_on_until(&r, 5);
	first = taps[0].kept;
	send_to(&taps[0], 5, 5);
	send_to(&taps[1], 0, 5);
	for (int i = 0; i < 5; i++)
		go_on(&r);
	CHECK_EQ(total, 5);
	idle_rig = &r;
	child_without_calls(ENOSYS, turn_without_calls, SYS_io_uring_enter);
	CHECK_OK(hive_buffer_return(pool, first));
	go_on_until(&r, 10);
	CHECK_OK(hive_buffer_return(pool, taps[1].kept ? taps[1].kept : taps[0].kept));
	go_on_until(&r, 15);
	CHECK_EQ(taps[0].sum, 10);
	CHECK_EQ(taps[1].sum, 5);
	CHECK(hive_buffer_return(pool, taps[0].kept) == 0 || hive_buffer_return(pool, taps[1].kept) == 0);
	close_taps(&r, 2);
}

/* ---- ends ---- */

static void check_race(struct rig *r, int round)
{
	char rest[200];
	ssize_t left;

	open_taps(r, round & 8 ? 4 : 0, 1, 2, 7);
	if (round & 1)
		go_on(r);
	if (round & 2)
		send_to(&taps[0], 0, 100);
	if (round & 4)
		rig_turn(r, 0);
	CHECK_OK(hive_op_cancel(&taps[0].op));
	CHECK_OK(hive_op_cancel(&taps[0].op));
	for (int turns = 0; !taps[0].ended; turns++) {
		CHECK(turns < 1000);
		go_on(r);
	}
	go_on(r);
	CHECK_ERR(taps[0].last, -ECANCELED);
	left = recv(taps[0].fds[0], rest, sizeof rest, MSG_DONTWAIT);
	CHECK_EQ(taps[0].sum + (left > 0 ? (int)left : 0), round & 2 ? 100 : 0);
	close_taps(r, 1);
}

TEST(a_cancelled_one_ends_once_and_nothing_is_lost)
{
	static struct rig r;

	if (!is_there())
		return;
	for (int round = 0; round < 16; round++)
		check_race(&r, round);
}

/* The end is asked for when the answer, that there is no buffer, is on its way: it is the end all the same. */
TEST(a_stop_meets_one_for_whom_there_is_no_buffer)
{
	static struct rig r;

	if (!is_there())
		return;
	open_taps(&r, 0, 2, 1, 10);
	go_on(&r);
	taps[0].keeps = taps[1].keeps = true;
	taps[0].stops = taps[1].stops = r.l.w[0]->place.cache[GUESTS_IO];
	send_to(&taps[0], 0, 5);
	send_to(&taps[1], 0, 5);
	go_on_until(&r, 5); /* one has it, and the other one's answer is there too */
	CHECK_OK(hive_buffer_return(pool, taps[0].kept ? taps[0].kept : taps[1].kept));
	for (int turns = 0; turns < 5; turns++)
		go_on(&r);
	CHECK_ERR(taps[0].last, -ECANCELED);
	CHECK_ERR(taps[1].last, -ECANCELED);
	close_taps(&r, 2);
}

/* ---- systems without ---- */

static void by_readiness(void)
{
	static struct rig r;

	open_taps(&r, 0, 3, 2, 10);
	for (int i = 0; i < 3; i++)
		send_to(&taps[i], 0, 35);
	go_on_until(&r, 105);
	CHECK_OK(shutdown(taps[0].fds[1], SHUT_WR));
	for (int turns = 0; !taps[0].ended; turns++) {
		CHECK(turns < 1000);
		go_on(&r);
	}
	CHECK_EQ(taps[0].last, 0);
	close_taps(&r, 3);
}

TEST(where_the_kernel_has_no_such_rings_it_is_done_by_readiness)
{
	if (!is_there())
		return;
	by_readiness();
	child_without_calls(EINVAL, by_readiness, SYS_io_uring_register);
}
