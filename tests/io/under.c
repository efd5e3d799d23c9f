/* SPDX-License-Identifier: MIT */
/* Operations under a cancel token, on each core: cancelled when it fires, told once, with its reason; fibers whose calls are under one. */
#include <pthread.h>
#include <stdatomic.h>

#include "support/net.h"

struct one {
	struct hive_op op;
	struct gate done;
	int fds[2], tells;
	int64_t result;
	char byte;
};

static void on_done(struct hive_op *op, int64_t result)
{
	struct one *o = op->arg;

	o->tells++;
	o->result = result;
	gate_open(&o->done);
}

static void one_init(struct one *o, struct hive *hive, struct hive_cancel *cancel)
{
	memset(o, 0, sizeof *o);
	net_pair(o->fds);
	gate_init(&o->done);
	hive_op_init(&o->op, hive, on_done, o);
	CHECK_OK(hive_op_under(&o->op, cancel));
}

/* Told as often as it was started. */
static void one_end_after(struct one *o, int starts)
{
	CHECK_EQ(o->tells, starts);
	gate_destroy(&o->done);
	net_close(o->fds);
}

static void one_end(struct one *o)
{
	one_end_after(o, 1);
}

#define EACH_CORE(i) for (int i = 0; i < core_count(); i++)

static void start_there(void *arg)
{
	struct one *o = arg;

	CHECK_OK(hive_op_recv(&o->op, o->fds[0], &o->byte, 1, HIVE_FOREVER));
	gate_open(&o->done);
}

/* Started by a thread or on a worker; fired by this thread. */
TEST(a_token_cancels_operations_and_gives_them_its_reason)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 2, 1);
		struct hive_cancel cancel;
		struct one all[4];

		hive_cancel_init(&cancel, NULL, HIVE_FOREVER);
		for (int i = 0; i < 4; i++) {
			one_init(&all[i], hive, &cancel);
			if (i % 2) {
				CHECK_OK(hive_post(hive, start_there, &all[i]));
				gate_pass(&all[i].done);
			} else {
				CHECK_OK(hive_op_recv(&all[i].op, all[i].fds[0], &all[i].byte, 1, HIVE_FOREVER));
			}
		}
		CHECK_ERR(hive_op_under(&all[0].op, NULL), -EBUSY);
		CHECK_EQ(write(all[0].fds[1], "x", 1), 1); /* what really happened counts */
		gate_pass(&all[0].done);
		CHECK_EQ(all[0].result, 1);
		CHECK_OK(hive_cancel_fire_with(&cancel, -EIO));
		for (int i = 1; i < 4; i++) {
			gate_pass(&all[i].done);
			CHECK_EQ(all[i].result, -EIO);
		}
		CHECK_ERR(hive_op_recv(&all[0].op, all[0].fds[0], &all[0].byte, 1, HIVE_FOREVER), -EIO);
		CHECK_OK(hive_cancel_join(&cancel, HIVE_FOREVER));
		for (int i = 0; i < 4; i++)
			one_end(&all[i]);
		real_end(hive, HIVE_DRAIN);
	}
}

/* What begins before the token's deadline is ended by it; false: it has passed already, and that was told. */
static bool is_ended_after(struct hive *hive, int64_t delay_ns)
{
	struct hive_cancel cancel;
	struct one one;
	int r;

	hive_cancel_init(&cancel, NULL, hive_deadline(hive, delay_ns));
	one_init(&one, hive, &cancel);
	r = hive_op_recv(&one.op, one.fds[0], &one.byte, 1, HIVE_FOREVER);
	if (r == 0) {
		gate_pass(&one.done);
		CHECK_EQ(one.result, -ETIMEDOUT);
	} else {
		CHECK_ERR(r, -ETIMEDOUT);
	}
	one_end_after(&one, r == 0);
	CHECK_OK(hive_cancel_join(&cancel, HIVE_FOREVER));
	return r == 0;
}

/* However slow the machine is: some delay is long enough to begin before it is over. */
TEST(a_deadline_of_the_token_ends_operations)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		int64_t delay_ns = HIVE_MS(2);

		CHECK(!is_ended_after(hive, 0));
		while (!is_ended_after(hive, delay_ns))
			delay_ns *= 2;
		real_end(hive, HIVE_DRAIN);
	}
}

/* Without on_done, collected by who waits; fired from inside the worker that has it. */
static int collect(void *arg)
{
	struct hive_cancel *cancel = arg;
	struct hive_op op;
	char byte;
	int fds[2];

	net_pair(fds);
	hive_op_init(&op, hive_current(), NULL, NULL);
	CHECK_OK(hive_op_under(&op, cancel));
	CHECK_OK(hive_op_recv(&op, fds[0], &byte, 1, HIVE_FOREVER));
	hive_cancel_fire(cancel);
	CHECK_ERR(hive_op_wait(&op), -ECANCELED);
	net_close(fds);
	CHECK_OK(hive_cancel_join(cancel, HIVE_FOREVER));
	return 0;
}

static int collect_once(void *arg)
{
	struct hive_cancel cancel;

	(void)arg;
	hive_cancel_init(&cancel, NULL, HIVE_FOREVER);
	return collect(&cancel);
}

TEST(an_operation_is_collected_after_its_token_has_fired)
{
	net_each(collect_once);
}

TEST(what_is_wrong_is_told)
{
	struct hive_cancel raw = { .magic = 2 };
	struct hive_op op;

	memset(&op, 0, sizeof op);
	CHECK_ERR(hive_op_under(NULL, NULL), -EINVAL);
	CHECK_ERR(hive_op_under(&op, NULL), -EINVAL);
	hive_op_init(&op, NULL, on_done, NULL);
	CHECK_ERR(hive_op_under(&op, &raw), -EINVAL);
	CHECK_OK(hive_op_under(&op, NULL));
}

/* A stop ends them as before; the token is empty then. */
TEST(a_stop_ends_operations_under_a_token)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct hive_cancel cancel;
		struct one one;

		hive_cancel_init(&cancel, NULL, HIVE_FOREVER);
		one_init(&one, hive, &cancel);
		CHECK_OK(hive_op_recv(&one.op, one.fds[0], &one.byte, 1, HIVE_FOREVER));
		real_end(hive, HIVE_NOW);
		CHECK_EQ(one.result, -ECANCELED);
		CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
		one_end(&one);
	}
}

/* ---- calls of fibers ---- */

static _Atomic int waiting;

static int wait_for_bytes(void *arg)
{
	char bytes[64];
	int *fds = arg;
	int64_t r;

	waiting++;
	r = hive_recv(fds[0], bytes, sizeof bytes, HIVE_FOREVER);
	CHECK_ERR(r, -EIO);
	CHECK_ERR(hive_recv_all(fds[0], bytes, 8, HIVE_FOREVER), -EIO);
	CHECK_OK(hive_close(fds[0], HIVE_FOREVER));
	CHECK_OK(hive_close(fds[1], HIVE_FOREVER));
	return 1;
}

static int fire_at_waiting_calls(void *arg)
{
	struct hive_cancel cancel;
	struct hive_fiber_options options = { .cancel = &cancel };
	struct hive_fiber *fibers[3];
	int fds[3][2], result;

	(void)arg;
	waiting = 0;
	hive_cancel_init(&cancel, NULL, HIVE_FOREVER);
	for (int i = 0; i < 3; i++) {
		net_pair(fds[i]);
		CHECK_OK(hive_spawn(hive_current(), wait_for_bytes, fds[i], &options, &fibers[i]));
	}
	while (waiting < 3)
		CHECK_OK(hive_sleep(HIVE_US(100)));
	CHECK_OK(hive_cancel_fire_with(&cancel, -EIO));
	CHECK_OK(hive_cancel_join(&cancel, HIVE_FOREVER));
	for (int i = 0; i < 3; i++) {
		CHECK_OK(hive_fiber_join(fibers[i], HIVE_FOREVER, &result));
		CHECK_EQ(result, 1);
	}
	return 0;
}

TEST(calls_of_fibers_under_a_token_end_with_its_reason)
{
	net_each(fire_at_waiting_calls);
}
