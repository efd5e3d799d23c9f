/* SPDX-License-Identifier: MIT */
/* Fibers that one turn of a core makes ready. */
#include "base/atomic.h"
#include "support/net.h"

enum { CROWD = 100 }; /* more than enter the local queue at once */
enum { TRIES = 50 };

static struct {
	int fds[CROWD][2];
	int order[CROWD]; /* who went on, one after the other */
	int count;
	int waits; /* how often somebody has begun to wait */
} crowd;

static int receive_in_turn(void *arg)
{
	int self = (int)(intptr_t)arg, *fds = crowd.fds[self];
	char byte;

	crowd.waits++;
	CHECK_EQ(hive_recv(fds[0], &byte, 1, HIVE_FOREVER), 1); /* waits by an operation */
	crowd.waits++;
	CHECK_EQ(hive_recv(fds[0], &byte, 1, HIVE_FOREVER), 1); /* where the core tells what is ready: by itself */
	crowd.order[crowd.count++] = self;
	return 0;
}

static void write_to_all(void)
{
	for (int i = 0; i < CROWD; i++)
		CHECK_EQ(write(crowd.fds[i][1], "x", 1), 1);
}

/* One worker: who has begun to wait does so when we are here, and after another turn the kernel knows it. */
static void until_all_wait(int times)
{
	while (crowd.waits < times)
		CHECK_OK(hive_sleep(HIVE_MS(1)));
	CHECK_OK(hive_sleep(HIVE_MS(1)));
}

/* Of one batch of events; which ones of the others come with it is the core's business. */
static bool is_in_order(void)
{
	for (int i = 0; i < CROWD; i++)
		for (int before = 0; crowd.order[i] < 64 && before < i; before++)
			if (crowd.order[before] > crowd.order[i] && crowd.order[before] < 64)
				return false;
	return true;
}

static int run_crowd(void *arg)
{
	struct hive_fiber *fibers[CROWD];

	(void)arg;
	crowd.count = crowd.waits = 0;
	for (int i = 0; i < CROWD; i++) {
		net_pair(crowd.fds[i]);
		fibers[i] = net_spawn(receive_in_turn, (void *)(intptr_t)i);
	}
	until_all_wait(CROWD);
	write_to_all();
	until_all_wait(2 * CROWD);
	CHECK_EQ(crowd.count, 0);
	write_to_all();
	for (int i = 0; i < CROWD; i++)
		CHECK_EQ(net_join(fibers[i]), 0);
	for (int i = 0; i < CROWD; i++)
		net_close(crowd.fds[i]);
	CHECK_EQ(crowd.count, CROWD);
	return is_in_order() ? 0 : 1;
}

/* One worker, so that there is an order, and its steps as long as it takes: else those who had no turn in one come after others. Once in a while
 * a machine that is slow does not have all of them wait in time: not every time.                                            */
TEST(they_go_on_in_the_order_of_their_events)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive_worker_options worker = { .local_budget = 4 * CROWD, .slice_ns = HIVE_S(100) };
		struct hive *hive;
		int result = -1, tries = 0;

		if (strcmp(core_names[i], "poll") == 0)
			continue; /* its order is that in which they began to wait */
		CHECK_OK(hive_core_find(core_names[i], &worker.core));
		hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 1, .io = &worker });
		do
			CHECK_OK(hive_block_on(hive, run_crowd, NULL, HIVE_FOREVER, &result));
		while (result != 0 && ++tries < TRIES / test_slowness());
		CHECK_OK(result);
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- a callback that takes long, in the same turn ---- */

static struct {
	struct hive *hive;
	struct hive_source source;
	int socket[2], pipe[2];
	ATOMIC(uint32_t) worker; /* where the fiber waits, */
	ATOMIC(uint32_t) waits;  /* for the n-th time, or is about to: what is posted there runs when it does */
	ATOMIC(uint32_t) source_started;
	ATOMIC(uint32_t) went_on;
} slow;

static int wait_for_byte(void *arg)
{
	char byte;

	(void)arg;
	for (;;) {
		store_relaxed(&slow.worker, hive_worker_current());
		add_release(&slow.waits, 1u);
		if (hive_recv(slow.socket[0], &byte, 1, HIVE_FOREVER) != 1)
			return -EIO;
		if (byte == 'e')
			break;
	}
	store_release(&slow.went_on, 1u);
	return 0;
}

/* Nobody else can let the fiber go on while this runs, but another worker. */
static void take_long(struct hive_source *source, uint32_t events)
{
	int64_t limit = hive_deadline(NULL, HIVE_S(20));

	(void)events;
	while (!load_acquire(&slow.went_on) && hive_now(NULL) < limit)
		;
	CHECK(load_acquire(&slow.went_on));
	CHECK_EQ(hive_source_stop(source), 1);
}

static void start_source(void *arg)
{
	(void)arg;
	hive_source_init(&slow.source, HIVE_SOURCE_FD, slow.pipe[0], HIVE_EVENT_IN, take_long, NULL);
	CHECK_OK(hive_source_start(&slow.source));
	store_release(&slow.source_started, 1u);
}

/* On the worker that will see both in its next turn, in this order. */
static void write_both(void *arg)
{
	(void)arg;
	CHECK_EQ(write(slow.socket[1], "e", 1), 1);
	CHECK_EQ(write(slow.pipe[1], "x", 1), 1);
}

static void until_it_waits(uint32_t times)
{
	while (load_acquire(&slow.waits) < times)
		CHECK_OK(hive_sleep(HIVE_US(100)));
}

static int run_slow(void *arg)
{
	struct hive_fiber *fiber = net_spawn(wait_for_byte, NULL);

	(void)arg;
	until_it_waits(1);
	for (uint32_t i = 0; i < 3; i++) { /* it has waited here before */
		CHECK_EQ(write(slow.socket[1], "a", 1), 1);
		until_it_waits(i + 2);
	}
	CHECK_OK(hive_post_to(slow.hive, load_relaxed(&slow.worker), start_source, NULL));
	while (!load_acquire(&slow.source_started))
		CHECK_OK(hive_sleep(HIVE_US(100)));
	CHECK_OK(hive_post_to(slow.hive, load_relaxed(&slow.worker), write_both, NULL));
	CHECK_EQ(net_join(fiber), 0);
	return 0;
}

TEST(who_became_ready_does_not_wait_for_a_callback_of_the_same_turn)
{
	for (int i = 0; i < core_count(); i++) {
		const struct hive_core_ops *core;
		int result = -1;

		CHECK_OK(hive_core_find(core_names[i], &core));
		if (core->native_ops >> HIVE_OP_RECV & 1)
			continue; /* what the kernel has received shows in an order of its own */
		store_relaxed(&slow.went_on, 0u);
		store_relaxed(&slow.source_started, 0u);
		store_relaxed(&slow.waits, 0u);
		net_pair(slow.socket);
		CHECK_OK(pipe(slow.pipe));
		slow.hive = net_start(core_names[i], 2, 1);
		CHECK_OK(hive_block_on(slow.hive, run_slow, NULL, HIVE_FOREVER, &result));
		CHECK_EQ(result, 0);
		CHECK_EQ(load_acquire(&slow.went_on), 1);
		real_end(slow.hive, HIVE_DRAIN);
		net_close(slow.socket);
		net_close(slow.pipe);
	}
}
