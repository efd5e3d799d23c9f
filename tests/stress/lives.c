/* SPDX-License-Identifier: MIT */
/* Workers come and go in a hive that lives, under load, thousands of times: nothing is lost, and memory stays where it was. As many cycles
 * as ROPHIVE_STRESS_SECONDS allow; ROPHIVE_CYCLES asks for a number, 10,000 in `make test-long`.                           */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/rng.h"
#include "support/real.h"
#include "test.h"

#include <rophive/hive.h>

enum { POSTERS = 2, WAITING_MOST = 2000, STAGES = 10 };

static struct {
	struct hive *hive;
	_Atomic(uint64_t) accepted, ended;
	_Atomic(bool) over;
} load;

/* What the hive holds, as its host sees it. */
static _Atomic(int64_t) blocks;

static void *count_blocks(void *arg, void *old, size_t bytes)
{
	void *fresh;

	(void)arg;
	if (bytes == 0) {
		atomic_fetch_sub(&blocks, old != NULL);
		free(old);
		return NULL;
	}
	fresh = realloc(old, bytes);
	atomic_fetch_add(&blocks, fresh && !old);
	return fresh;
}

/* One reader is held between looking at the list of workers and drawing one of them. */
static _Thread_local bool is_held;
static struct block hold;

static uint64_t draw(void *arg, uint32_t worker)
{
	static _Atomic(uint64_t) state;

	(void)arg, (void)worker;
	if (is_held) {
		is_held = false;
		block_task(&hold);
	}
	return rng_mix(atomic_fetch_add(&state, 1));
}

static const struct hive_host host = { .allocate = count_blocks, .random = draw };

static void end_one(void *arg)
{
	(void)arg;
	atomic_fetch_add_explicit(&load.ended, 1, memory_order_relaxed);
}

/* Tasks that run while the hive is drained are refused what they post. */
static void accept_one(int r)
{
	if (r == -ESHUTDOWN && atomic_load(&load.over))
		return;
	CHECK_OK(r);
	atomic_fetch_add_explicit(&load.accepted, 1, memory_order_relaxed);
}

static int sleep_a_little(void *arg)
{
	int r = hive_sleep(HIVE_US(20));

	end_one(arg);
	return r;
}

/* Through the doors that only workers have. */
static void breed(void *arg)
{
	accept_one(hive_post_local(end_one, arg));
	accept_one(hive_post_self(end_one, arg));
	accept_one(hive_post(load.hive, end_one, arg));
	end_one(arg);
}

/* -ESRCH: it has gone meanwhile. */
static void post_to_anybody(uint32_t i)
{
	uint32_t ids[64];
	size_t n = hive_workers(load.hive, ids, 64);
	int r = hive_post_to(load.hive, ids[i % n], end_one, NULL);

	if (r == -ESRCH || r == -EINVAL) /* gone; or a compute worker */
		return;
	accept_one(r);
}

static void post_one(uint32_t i)
{
	switch (i % 7) {
	case 0:
		accept_one(hive_post(load.hive, breed, NULL));
		break;
	case 1:
		accept_one(hive_post_after(load.hive, HIVE_US(10), end_one, NULL, NULL));
		break;
	case 2:
		accept_one(hive_post_compute(load.hive, end_one, NULL));
		break;
	case 3:
		accept_one(hive_spawn(load.hive, sleep_a_little, NULL, NULL, NULL));
		break;
	case 4:
		accept_one(hive_post_placed(load.hive, end_one, NULL));
		break;
	case 5:
		post_to_anybody(i / 7);
		break;
	default:
		accept_one(hive_post_compute_then(load.hive, end_one, HIVE_WORKER_MAIN, end_one, NULL));
		accept_one(0); /* the answer */
	}
}

static uint64_t waiting(void)
{
	uint64_t ended = atomic_load(&load.ended);

	return atomic_load(&load.accepted) - ended;
}

/* All the time, but not so much at once that memory would be about that. */
static void *post_on(void *arg)
{
	for (uint32_t i = 0; !atomic_load(&load.over); i++) {
		if ((int64_t)waiting() > WAITING_MOST)
			sched_yield();
		else
			post_one(i);
	}
	return arg;
}

static void begin(pthread_t *threads, enum hive_placement placement)
{
	atomic_store(&load.accepted, 0);
	atomic_store(&load.ended, 0);
	atomic_store(&load.over, false);
	load.hive = real_start(
		(struct hive_options){ .io_workers = 2, .compute_workers = 1, .placement = placement, .host = &host });
	for (int i = 0; i < POSTERS; i++)
		CHECK_OK(pthread_create(&threads[i], NULL, post_on, NULL));
}

static void end(pthread_t *threads)
{
	atomic_store(&load.over, true);
	for (int i = 0; i < POSTERS; i++)
		CHECK_OK(pthread_join(threads[i], NULL));
	real_end(load.hive, HIVE_DRAIN);
	CHECK_EQ(atomic_load(&load.ended), atomic_load(&load.accepted));
}

static long resident_kib(void)
{
	FILE *statm = fopen("/proc/self/statm", "re");
	long all = 0, resident = 0;

	CHECK(statm && fscanf(statm, "%ld %ld", &all, &resident) == 2);
	fclose(statm);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void attach_and_detach(int cycle)
{
	struct hive_worker_options io = { .local_capacity = 64,
		                          .timers = cycle % 2 ? HIVE_TIMERS_WHEEL : HIVE_TIMERS_HEAP };
	struct hive_worker_options compute = { .kind = HIVE_WORKER_COMPUTE };
	uint32_t a, b;

	CHECK_OK(hive_attach(load.hive, &io, &a));
	CHECK_OK(hive_attach(load.hive, cycle % 4 ? &io : &compute, &b));
	CHECK_OK(hive_detach(load.hive, a, HIVE_FOREVER));
	CHECK_OK(hive_detach(load.hive, b, HIVE_FOREVER));
}

static void grow_and_shrink(int cycle)
{
	CHECK_OK(hive_resize(load.hive, 3 + cycle % 3, 2, HIVE_FOREVER));
	CHECK_OK(hive_resize(load.hive, 2, 1, HIVE_FOREVER));
}

/* In stages: what is held in the middle is what is held in the end. */
static void live(void (*cycle)(int), enum hive_placement placement)
{
	pthread_t threads[POSTERS];
	long asked = test_env("ROPHIVE_CYCLES", 0), kib[STAGES];
	int64_t held[STAGES];
	int64_t stage_ns = test_stress_ns() / STAGES / 2;
	int cycles = 0, least = (int)(asked ? asked / STAGES : 10);

	begin(threads, placement);
	for (int stage = 0; stage < STAGES; stage++) {
		int64_t until = hive_deadline(NULL, asked ? 0 : stage_ns);

		for (int i = 0; i < least || hive_now(NULL) < until; i++)
			cycle(cycles++);
		kib[stage] = resident_kib();
		held[stage] = atomic_load(&blocks);
		printf("%d cycles, %lld blocks, %ld KiB resident, %llu tasks\n", cycles, (long long)held[stage],
		       kib[stage], (unsigned long long)atomic_load(&load.ended));
	}
	end(threads);
	CHECK_EQ(atomic_load(&blocks), 0);
	CHECK(held[STAGES - 1] <=
	      held[1] + held[1] / 4 + 16); /* queues that were never so long before; cycles are thousands */
	if (test_slowness() == 1)          /* sanitizers and emulators have memory of their own */
		CHECK(kib[STAGES - 1] <= kib[STAGES / 2] + kib[STAGES / 2] / 10 + 1024);
}

TEST(attached_and_detached_thousands_of_times)
{
	live(attach_and_detach, HIVE_PLACE_POOL);
}

TEST(resized_thousands_of_times)
{
	live(grow_and_shrink, HIVE_PLACE_TWO_CHOICES);
}

static void *post_and_be_held(void *arg)
{
	is_held = true;
	accept_one(hive_post_placed(load.hive, end_one, NULL));
	return arg;
}

/* V-19, V-21: whoever reads the list of workers and gets no further stops neither those that change it nor other readers, and keeps no
 * memory; when he goes on, he finds that his list is an old one.                                                        */
TEST(a_reader_that_is_held_stops_nobody)
{
	pthread_t threads[POSTERS], reader;
	int64_t before = 0;
	int cycles = 200 / test_slowness();

	begin(threads, HIVE_PLACE_TWO_CHOICES);
	block_init(&hold);
	CHECK_OK(pthread_create(&reader, NULL, post_and_be_held, NULL));
	gate_pass(&hold.entered);
	for (int i = 0; i < cycles; i++) {
		attach_and_detach(i);
		if (i == cycles / 4)
			before = atomic_load(&blocks);
	}
	CHECK(atomic_load(&blocks) <= before + before / 4 + 16);
	gate_open(&hold.leave);
	CHECK_OK(pthread_join(reader, NULL));
	end(threads);
	block_destroy(&hold);
}
