/* SPDX-License-Identifier: MIT */
/* Real threads, many short fibers, every call at once, and a ledger: who was spawned ends once, who joins gets the result, and
 * nobody is left behind. Meant for the sanitizers; ROPHIVE_STRESS_SECONDS says for how long.                               */
#include <pthread.h>
#include <stdatomic.h>

#include "base/rng.h"
#include "support/real.h"
#include "test.h"

#include <rophive/hive.h>

enum { THREADS = 3, CHILDREN = 4, DEPTH = 3, LIVE_MOST = 2000 }; /* ThreadSanitizer bears 8,128 contexts */

static struct {
	struct hive *hive;
	_Atomic(int64_t) spawned, refused, ended, live;
	_Atomic(int64_t) joined, cancelled, late, moved, offloaded, lost;
	_Atomic(bool) over, stopping;
	_Atomic(uint64_t) seed;
} all;

static char key;

static uint64_t next(uint64_t *rng)
{
	return rng_next(rng) >> 8;
}

struct life {
	uint64_t rng;
	int depth;
};

static int live(void *arg);

/* The argument of a fiber is a number, not memory: one that never begins frees nothing. */
static void *pack(uint64_t *rng, int depth)
{
	return (void *)(uintptr_t)(next(rng) << 4 | (uint64_t)depth);
}

static struct hive_fiber *spawn(uint64_t *rng, int depth, bool keep)
{
	struct hive_fiber_options o = { .name = "stress", .stack_bytes = next(rng) % 8 ? 0 : 1 + next(rng) % 200000 };
	struct hive_fiber *fiber = NULL;
	int r;

	if (next(rng) % 8 == 0)
		o.worker = HIVE_WORKER_MAIN;
	all.live++;
	r = hive_spawn(all.hive, live, pack(rng, depth), &o, keep ? &fiber : NULL);
	if (r == 0) {
		all.spawned++;
		return fiber;
	}
	CHECK(r == -ENOMEM || (r == -ESHUTDOWN && all.stopping));
	all.live--;
	all.refused++;
	return NULL;
}

static void note_wait(int r)
{
	CHECK(r == 0 || r == -ETIMEDOUT || r == -ECANCELED);
	all.late += r == -ETIMEDOUT;
	all.cancelled += r == -ECANCELED;
}

static int64_t some_deadline(uint64_t *rng)
{
	return next(rng) % 3 ? HIVE_FOREVER : hive_deadline(NULL, HIVE_US(next(rng) % 300));
}

/* Until it has the result, or has given it up. */
static void join(uint64_t *rng, struct hive_fiber *fiber)
{
	int result = -1, r = hive_fiber_join(fiber, some_deadline(rng), &result);

	note_wait(r);
	if (r < 0) {
		CHECK_OK(hive_fiber_detach(fiber));
		return;
	}
	CHECK(result == 1234 || (result == -ECANCELED && all.stopping));
	all.joined++;
}

static int compute(void *arg)
{
	CHECK(!hive_fiber_current());
	all.offloaded++;
	return arg != NULL;
}

static void wait_for_children(struct life *life, struct hive_fiber **fibers, size_t count)
{
	size_t index = count;

	if (next(&life->rng) % 2)
		note_wait(hive_wait_all(fibers, count, some_deadline(&life->rng)));
	else if (hive_wait_any(fibers, count, some_deadline(&life->rng), &index) == 0)
		CHECK(index < count);
	for (size_t i = 0; i < count; i++)
		join(&life->rng, fibers[i]);
}

static void raise_children(struct life *life)
{
	struct hive_fiber *fibers[CHILDREN];
	size_t count = 0, want = next(&life->rng) % (CHILDREN + 1);

	if (life->depth == DEPTH || all.live > LIVE_MOST)
		return;
	while (want-- > 0) {
		bool keep = next(&life->rng) % 3;
		struct hive_fiber *fiber = spawn(&life->rng, life->depth + 1, keep);

		if (fiber)
			fibers[count++] = fiber;
	}
	for (size_t i = 0; i < count; i++)
		if (next(&life->rng) % 8 == 0)
			CHECK_OK(hive_fiber_cancel(fibers[i]));
	if (count > 0)
		wait_for_children(life, fibers, count);
}

static void act(struct life *life)
{
	int result = 0, r;

	switch (next(&life->rng) % 6) {
	case 0:
		r = hive_yield();
		CHECK(r == 0 || r == -ECANCELED);
		break;
	case 1:
		r = hive_sleep(HIVE_US(next(&life->rng) % 200));
		CHECK(r == 0 || r == -ECANCELED);
		break;
	case 2:
		r = hive_offload(compute, life, some_deadline(&life->rng), &result);
		if (r != -ENOTSUP) /* some have no compute worker */
			note_wait(r);
		CHECK_EQ(result, r == 0);
		break;
	case 3:
		CHECK_OK(hive_fiber_set(&key, life));
		CHECK(hive_fiber_get(&key) == life);
		break;
	default:
		raise_children(life);
	}
}

static int live(void *arg)
{
	uint64_t packed = (uintptr_t)arg;
	struct life life = { packed >> 4, (int)(packed & 15) };
	uint32_t born_on = hive_worker_current();
	volatile uint64_t canary = packed; /* on the own stack, through all moves */

	for (uint64_t i = next(&life.rng) % 4; i > 0; i--)
		act(&life);
	all.moved += hive_worker_current() != born_on;
	CHECK(canary == packed);
	all.ended++;
	all.live--;
	return 1234;
}

static int root(void *arg)
{
	all.live++;
	all.spawned++;
	return live(arg);
}

static void *poster(void *arg)
{
	uint64_t rng = rng_mix((uint64_t)(uintptr_t)arg + all.seed++);

	while (!all.over) {
		struct hive_fiber *fiber = NULL;
		int r, result = 0;

		if (all.live > LIVE_MOST) {
			sched_yield();
			continue;
		}
		switch (next(&rng) % 4) {
		case 0:
			r = hive_block_on(all.hive, root, pack(&rng, 1), some_deadline(&rng), &result);
			CHECK(r == 0 || r == -ETIMEDOUT || (r == -ESHUTDOWN && all.stopping));
			CHECK(r == -ESHUTDOWN || result == 1234 || (result == -ECANCELED && all.stopping));
			break;
		case 1:
			spawn(&rng, 0, false);
			break;
		default:
			fiber = spawn(&rng, 0, true);
			if (fiber && next(&rng) % 4 == 0)
				CHECK_OK(hive_fiber_cancel(fiber));
			if (fiber)
				join(&rng, fiber);
		}
	}
	return NULL;
}

static void begin(struct hive_options options)
{
	memset(&all, 0, sizeof all);
	all.seed = (uint64_t)hive_now(NULL);
	all.hive = real_start(options);
}

static void end(enum hive_stop_mode mode, pthread_t *threads)
{
	struct hive_report report;
	bool early = all.seed % 2; /* under the spawners' hands */

	if (!early) {
		all.over = true;
		for (int i = 0; i < THREADS; i++)
			CHECK_OK(pthread_join(threads[i], NULL));
	}
	all.stopping = true;
	CHECK_OK(hive_stop(all.hive, mode, HIVE_FOREVER));
	all.over = true;
	for (int i = 0; early && i < THREADS; i++)
		CHECK_OK(pthread_join(threads[i], NULL));
	CHECK_OK(hive_join(all.hive, real_patience()));
	CHECK_OK(hive_report_read(all.hive, &report));
	CHECK_EQ(report.posted, report.ran + report.cancelled + report.dropped);
	if (mode == HIVE_DRAIN)
		CHECK_EQ(all.spawned, all.ended);
	else /* the rest never began; offloads may have been dropped, too */
		CHECK(all.spawned >= all.ended && (uint64_t)(all.spawned - all.ended) <= report.dropped);
	CHECK_OK(hive_destroy(all.hive));
}

static void stress(enum hive_stop_mode mode, struct hive_options options, int64_t duration_ns)
{
	pthread_t threads[THREADS];
	int64_t limit = hive_deadline(NULL, duration_ns);

	begin(options);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK_OK(pthread_create(&threads[i], NULL, poster, (void *)(i + 1)));
	while (hive_now(NULL) < limit)
		CHECK_OK(hive_sleep(HIVE_MS(5)));
	end(mode, threads);
}

TEST(fibers_end_once_and_a_drain_waits_for_them)
{
	stress(HIVE_DRAIN, (struct hive_options){ .io_workers = 3, .compute_workers = 1 }, test_stress_ns() / 2);
	CHECK(all.ended > 0 && all.joined > 0 && all.offloaded > 0);
}

TEST(small_queues_and_few_workers_bear_many_fibers)
{
	struct hive_worker_options small = { .local_capacity = 4 };

	stress(HIVE_DRAIN,
	       (struct hive_options){ .io_workers = 2, .compute_workers = 2, .io = &small, .mesh = HIVE_MESH_ON },
	       test_stress_ns() / 2);
}

/* Again and again, under the hands of those who spawn, join, cancel and block. */
TEST(a_stop_in_the_middle_of_everything_loses_nobody)
{
	int64_t limit = hive_deadline(NULL, test_stress_ns() / 2);

	for (int round = 0; hive_now(NULL) < limit; round++)
		stress(round % 3 ? HIVE_NOW : HIVE_DRAIN,
		       (struct hive_options){ .io_workers = 2,
		                              .compute_workers = round % 2,
		                              .mesh = round / 2 % 2 ? HIVE_MESH_ON : HIVE_MESH_OFF },
		       HIVE_MS(20));
}
