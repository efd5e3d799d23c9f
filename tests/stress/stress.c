/* SPDX-License-Identifier: MIT */
/* Real threads, tiny tasks, every door at once, and a ledger: what was accepted ran once, was cancelled, or was dropped and
 * told. Meant for the sanitizers; ROPHIVE_STRESS_SECONDS says for how long.                                             */
#include <pthread.h>
#include <stdatomic.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "support/real.h"
#include "test.h"

#include <rophive/hive.h>

enum { POSTERS = 3, FAR_AHEAD = 100000 };

/* One line of the ledger per run. Everything here is counted by the test itself, nothing is taken from the library. */
struct ledger {
	struct hive *hive;
	_Atomic(uint64_t) accepted, refused, ran, cancelled, dropped;
	_Atomic(bool) over;
	uint64_t seed;
};

static void count(void *arg)
{
	struct ledger *l = arg;

	atomic_fetch_add_explicit(&l->ran, 1, memory_order_relaxed);
}

static void dropped(void *hook_arg, const struct hive_task *task)
{
	(void)task;
	atomic_fetch_add_explicit(&((struct ledger *)hook_arg)->dropped, 1, memory_order_relaxed);
}

/* Nothing of what happens here is out of order: not even a system call that was interrupted. */
static void warned(void *hook_arg, const char *text)
{
	(void)hook_arg;
	test_fail(__FILE__, __LINE__, "a warning: %s", text);
}

static void entry(struct ledger *l, int r, uint64_t tasks)
{
	if (r == 0)
		atomic_fetch_add_explicit(&l->accepted, tasks, memory_order_relaxed);
	else
		atomic_fetch_add_explicit(&l->refused, tasks, memory_order_relaxed);
}

static void post_somewhere(struct ledger *l, uint64_t random)
{
	uint32_t ids[32];
	size_t n = hive_workers(l->hive, ids, 32);
	int r;

	if (n == 0 || n > 32)
		return;
	r = hive_post_to(l->hive, ids[random % n], count, l);
	CHECK(r == 0 || r == -ESRCH || r == -EINVAL || r == -ESHUTDOWN); /* gone meanwhile, a compute worker, stopped */
	entry(l, r, 1);
}

/* A task that posts through the doors that only workers have, and sends letters. */
static void breed(void *arg)
{
	struct ledger *l = arg;

	count(l);
	entry(l, hive_post_local(count, l), 1);
	entry(l, hive_post_self(count, l), 1);
	entry(l, hive_post(l->hive, count, l), 1);
	entry(l, hive_post_self_after(HIVE_US(50), count, l, NULL), 1);
	if (atomic_load_explicit(&l->ran, memory_order_relaxed) % 64 == 0)
		for (uint64_t i = 0; i < 100; i++) /* more than a lane holds */
			post_somewhere(l, i / 40);
}

/* Fills the local queue beyond its capacity: spills. */
static void flood(void *arg)
{
	struct ledger *l = arg;

	count(l);
	for (int i = 0; i < 200; i++)
		entry(l, hive_post_local(count, l), 1);
}

static void post_many(struct ledger *l, bool compute)
{
	struct hive_task tasks[40];

	for (int i = 0; i < 40; i++)
		tasks[i] = (struct hive_task){ count, l };
	entry(l, compute ? hive_post_compute_many(l->hive, tasks, 40) : hive_post_many(l->hive, tasks, 40), 40);
}

static void post_and_maybe_cancel(struct ledger *l, uint64_t random)
{
	uint64_t post = 0;
	int r = hive_post_after(l->hive, HIVE_US(random % 300), count, l, &post);

	entry(l, r, 1);
	if (r == 0 && random & 1024 && hive_post_cancel(l->hive, post) == 0)
		atomic_fetch_add_explicit(&l->cancelled, 1, memory_order_relaxed);
}

/* The second task counts as posted when the first has run. */
static void first_half(void *arg)
{
	struct ledger *l = arg;

	entry(l, 0, 1);
	count(l);
}

static void post_and_come_back(struct ledger *l)
{
	entry(l, hive_post_compute_then(l->hive, first_half, HIVE_WORKER_MAIN, count, l), 1);
}

/* Posters that no worker can follow would fill the memory, and their end would have to catch up. */
static bool is_far_ahead(struct ledger *l)
{
	uint64_t over = atomic_load_explicit(&l->ran, memory_order_relaxed) +
	                atomic_load_explicit(&l->cancelled, memory_order_relaxed) +
	                atomic_load_explicit(&l->dropped, memory_order_relaxed);

	return atomic_load_explicit(&l->accepted, memory_order_relaxed) > over + FAR_AHEAD;
}

static void *poster(void *arg)
{
	struct ledger *l = arg;
	uint64_t rng = l->seed + (uint64_t)(uintptr_t)&rng;

	while (!atomic_load_explicit(&l->over, memory_order_relaxed)) {
		uint64_t random = rng_next(&rng);

		if (is_far_ahead(l)) {
			sched_yield();
			continue;
		}
		switch (random >> 60) {
		case 0:
			post_many(l, false);
			break;
		case 1:
			post_many(l, true);
			break;
		case 2:
			post_and_maybe_cancel(l, random);
			break;
		case 3:
			post_and_come_back(l);
			break;
		case 4:
			post_somewhere(l, random);
			break;
		case 5:
			entry(l, hive_post(l->hive, breed, l), 1);
			break;
		case 6:
			entry(l, hive_post_compute(l->hive, count, l), 1);
			break;
		case 7:
			if (random % 16 == 0)
				entry(l, hive_post(l->hive, flood, l), 1);
			break;
		case 8:
			if (random % 64 == 0)
				nanosleep(&(struct timespec){ 0, 100000 }, NULL);
			break; /* let them fall asleep */
		default:
			entry(l, hive_post(l->hive, count, l), 1);
			break;
		}
	}
	return NULL;
}

static void begin(struct ledger *l, struct hive_options options)
{
	memset(l, 0, sizeof *l);
	l->seed = (uint64_t)test_env("ROPHIVE_STRESS_SEED", 1);
	options.on_drop = dropped;
	options.on_warn = warned;
	options.stall_ns = HIVE_OFF; /* on a full machine somebody may not get a CPU for long */
	options.hook_arg = l;
	CHECK_OK(hive_create(&options, &l->hive));
	CHECK_OK(hive_start(l->hive));
}

/* The ledger of the test and the books of the hive say the same. */
static void balance(struct ledger *l)
{
	struct hive_report report;

	CHECK_OK(hive_report_read(l->hive, &report));
	CHECK_EQ(l->accepted, l->ran + l->cancelled + l->dropped);
	CHECK_EQ(report.ran, l->ran);
	CHECK_EQ(report.dropped, l->dropped);
	CHECK_EQ(report.cancelled, l->cancelled);
	CHECK_EQ(report.posted, report.ran + report.cancelled + report.dropped);
	CHECK_OK(hive_destroy(l->hive));
}

static void start_posters(struct ledger *l, pthread_t *threads)
{
	for (int i = 0; i < POSTERS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, poster, l), 0);
}

static void join_posters(struct ledger *l, pthread_t *threads)
{
	atomic_store(&l->over, true);
	for (int i = 0; i < POSTERS; i++)
		pthread_join(threads[i], NULL);
}

static void pass_time(int64_t ns)
{
	struct timespec t = { ns / HIVE_S(1), ns % HIVE_S(1) };

	nanosleep(&t, NULL);
}

/* What was accepted before the stop and is not delayed runs when draining; the loss of a task would show as a hang or in the
 * ledger.                                                                                                                  */
static void finish(struct ledger *l, pthread_t *threads, enum hive_stop_mode mode)
{
	join_posters(l, threads);
	CHECK_OK(hive_stop(l->hive, mode, HIVE_FOREVER));
	CHECK_OK(hive_join(l->hive, real_patience()));
	balance(l);
}

/* */
TEST(post_everything_from_everywhere)
{
	pthread_t threads[POSTERS];
	struct hive_worker_options small = { .local_capacity = 64 };
	struct ledger l;

	begin(&l, (struct hive_options){ .io_workers = 3, .compute_workers = 2, .io = &small, .mesh = HIVE_MESH_ON });
	start_posters(&l, threads);
	pass_time(test_stress_ns());
	finish(&l, threads, HIVE_DRAIN);
}

/* F-29 … F-58: the same with rings that are robbed by halves, and by workers of both orders and all victims. */
TEST(post_everything_to_workers_with_rings)
{
	struct hive_worker_options small = { .local_capacity = 16, .order = HIVE_ORDER_OLDEST };
	pthread_t threads[POSTERS];
	struct ledger l;

	begin(&l,
	      (struct hive_options){ .io_workers = 2, .compute_workers = 1, .io = &small, .preset = HIVE_PRESET_FAIO });
	for (int i = 1; i <= 3; i++) {
		small.order = i == 2 ? HIVE_ORDER_NEWEST : HIVE_ORDER_OLDEST;
		small.victim = (enum hive_victim)i;
		CHECK_OK(hive_attach(l.hive, &small, NULL));
	}
	start_posters(&l, threads);
	pass_time(test_stress_ns() / 2);
	finish(&l, threads, HIVE_DRAIN);
}

/* The same on far more workers than CPUs. */
TEST(post_everything_to_many_workers)
{
	pthread_t threads[POSTERS];
	struct ledger l;

	begin(&l, (struct hive_options){ .io_workers = 16, .compute_workers = 8, .mesh = HIVE_MESH_ON });
	start_posters(&l, threads);
	pass_time(test_stress_ns() / 2);
	finish(&l, threads, HIVE_NOW);
}

/* */
TEST(attach_and_detach_under_load)
{
	const struct hive_core_ops *poll_core;
	pthread_t threads[POSTERS];
	struct ledger l;
	int64_t end;
	int cycles = 0;

	CHECK_OK(hive_core_find("poll", &poll_core));
	begin(&l, (struct hive_options){ .io_workers = 2, .compute_workers = 1, .mesh = HIVE_MESH_ON });
	start_posters(&l, threads);
	end = hive_deadline(NULL, test_stress_ns());
	while (hive_now(NULL) < end) {
		struct hive_worker_options io = { .local_capacity = 64,
			                          .core = cycles % 2 ? poll_core : NULL,
			                          .order = cycles % 3 ? HIVE_ORDER_OLDEST : HIVE_ORDER_NEWEST };
		struct hive_worker_options compute = { .kind = HIVE_WORKER_COMPUTE };
		uint32_t a, b, c;

		CHECK_OK(hive_attach(l.hive, &io, &a));
		CHECK_OK(hive_attach(l.hive, &compute, &b));
		CHECK_OK(hive_attach(l.hive, &io, &c));
		pass_time(HIVE_MS(1));
		CHECK_OK(hive_detach(l.hive, a, HIVE_FOREVER));
		CHECK_OK(hive_detach(l.hive, b, HIVE_FOREVER));
		CHECK_OK(hive_detach(l.hive, c, HIVE_FOREVER));
		CHECK_ERR(hive_post_to(l.hive, a, count, &l), -ESRCH);
		cycles++;
	}
	CHECK(cycles > 0);
	finish(&l, threads, HIVE_DRAIN);
}

static long resident_pages(void)
{
	FILE *statm = fopen("/proc/self/statm", "re");
	long all = 0, resident = 0;

	CHECK(statm && fscanf(statm, "%ld %ld", &all, &resident) == 2);
	fclose(statm);
	return resident;
}

/* 10,000 cycles, or as many as there is time for: nothing is lost, and memory is where it was after the first ones. What the posters have
 * waiting varies, so that is measured when all of it has run.                                                           */
TEST(resize_under_load)
{
	enum { CYCLES = 10000, FIRST = 50 };
	pthread_t threads[POSTERS];
	struct ledger l;
	int64_t end;
	long before = 0;
	int cycles = 0;

	for (int half = 0; half < 2; half++) {
		begin(&l, (struct hive_options){ .io_workers = 1, .compute_workers = 1 });
		start_posters(&l, threads);
		end = hive_deadline(NULL, half ? test_stress_ns() : HIVE_MS(200));
		for (cycles = 0; cycles < (half ? CYCLES : FIRST) && (hive_now(NULL) < end || cycles < FIRST);
		     cycles++) {
			CHECK_OK(hive_resize(l.hive, 4, 2, HIVE_FOREVER));
			CHECK_OK(hive_resize(l.hive, 1 + cycles % 2, 1, HIVE_FOREVER));
		}
		finish(&l, threads, HIVE_DRAIN);
		if (!half)
			before = resident_pages();
	}
	printf("%d cycles, %ld pages, then %ld\n", cycles, before, resident_pages());
#if defined(__x86_64__) && !TEST_ASAN && !TEST_TSAN /* an emulator has memory of its own */
	CHECK(resident_pages() < before + 2048);
#endif
}

/* stop races with posters that go on posting; afterwards every door is shut. */
static void stop_once(enum hive_stop_mode mode, int64_t delay_ns)
{
	pthread_t threads[POSTERS];
	struct ledger l;

	begin(&l, (struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	start_posters(&l, threads);
	pass_time(delay_ns);
	CHECK_OK(hive_stop(l.hive, mode,
	                   mode == HIVE_DRAIN && delay_ns % 2 ? hive_deadline(NULL, HIVE_US(200)) : HIVE_FOREVER));
	CHECK_OK(hive_join(l.hive, real_patience()));
	CHECK_ERR(hive_post(l.hive, count, &l), -ESHUTDOWN);
	join_posters(&l, threads);
	balance(&l);
}

TEST(stop_while_posting)
{
	int64_t end = hive_deadline(NULL, test_stress_ns());
	int64_t delay = 1;

	do {
		stop_once(delay & 2 ? HIVE_DRAIN : HIVE_NOW, delay * 100000);
		delay = delay % 13 + 1;
	} while (hive_now(NULL) < end);
}

/* Nothing but sleeping and waking: one task at a time, from outside, with pauses of all lengths. A lost wake-up is a hang. */
TEST(no_wake_up_is_lost)
{
	struct ledger l;
	uint64_t rng = 7;
	int64_t end = hive_deadline(NULL, test_stress_ns());

	begin(&l, (struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	while (hive_now(NULL) < end) {
		uint64_t random = rng_next(&rng), before = l.ran;
		int r = random & 1   ? hive_post(l.hive, count, &l)
		        : random & 2 ? hive_post_to(l.hive, HIVE_WORKER_MAIN, count, &l)
		                     : hive_post_compute(l.hive, count, &l);

		CHECK_OK(r);
		entry(&l, r, 1);
		while (atomic_load_explicit(&l.ran, memory_order_relaxed) == before)
			sched_yield();
		for (uint64_t spin = random % 20000; spin > 0; spin--)
			__asm__ volatile("");
	}
	CHECK_OK(hive_stop(l.hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(l.hive, real_patience()));
	balance(&l);
}

static int64_t system_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * HIVE_S(1) + t.tv_nsec;
}

/* the same for delayed tasks, which are never early by the system's clock. A lost one is a hang. */
TEST(no_delayed_task_is_lost)
{
	struct ledger l;
	uint64_t rng = 8;
	int64_t end = system_clock() + test_stress_ns();

	begin(&l, (struct hive_options){ .io_workers = 2 });
	while (system_clock() < end) {
		uint64_t before = l.ran;
		int64_t delay = HIVE_US(rng_next(&rng) % 5000), posted = system_clock();

		CHECK_OK(hive_post_after(l.hive, delay, count, &l, NULL));
		entry(&l, 0, 1);
		while (atomic_load_explicit(&l.ran, memory_order_relaxed) == before)
			sched_yield();
		CHECK(system_clock() - posted >= delay);
	}
	CHECK_OK(hive_stop(l.hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(l.hive, real_patience()));
	CHECK_EQ(l.dropped, 0);
	balance(&l);
}

/* Lanes of the pool belong to posting threads: far more of them than lanes, coming and going. */
static void *short_life(void *arg)
{
	struct ledger *l = arg;

	for (int i = 0; i < 50; i++)
		entry(l, hive_post(l->hive, count, l), 1);
	return NULL;
}

TEST(many_posting_threads_come_and_go)
{
	int64_t end = hive_deadline(NULL, test_stress_ns() / 2);
	struct ledger l;

	begin(&l, (struct hive_options){ .io_workers = 2 });
	while (hive_now(NULL) < end) {
		pthread_t threads[40];

		for (int i = 0; i < 40; i++)
			CHECK_EQ(pthread_create(&threads[i], NULL, short_life, &l), 0);
		for (int i = 0; i < 40; i++)
			pthread_join(threads[i], NULL);
	}
	CHECK_OK(hive_stop(l.hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(l.hive, real_patience()));
	CHECK_EQ(l.dropped, 0);
	balance(&l);
}

/* First in, first out for each posting thread, when one worker serves the pool. */
struct sequence {
	struct ledger *ledger;
	int next_posted, next_seen;
};

static void in_order(void *arg)
{
	struct sequence *s = (struct sequence *)((uintptr_t)arg & ~(uintptr_t)4095);

	CHECK_EQ((uintptr_t)arg & 4095, 64 + s->next_seen % 4000);
	s->next_seen++;
	count(s->ledger);
}

static void *post_in_order(void *arg)
{
	struct sequence *s = arg;

	for (; s->next_posted < 20000; s->next_posted++)
		entry(s->ledger, hive_post(s->ledger->hive, in_order, (char *)s + 64 + s->next_posted % 4000), 1);
	return NULL;
}

TEST(tasks_of_one_thread_keep_their_order)
{
	static _Alignas(4096) char pages[20][4096];
	pthread_t threads[20];
	struct ledger l;

	begin(&l, (struct hive_options){ .io_workers = 1 });
	for (int i = 0; i < 20; i++) { /* more threads than lanes */
		*(struct sequence *)(void *)pages[i] = (struct sequence){ .ledger = &l };
		CHECK_EQ(pthread_create(&threads[i], NULL, post_in_order, pages[i]), 0);
	}
	for (int i = 0; i < 20; i++)
		pthread_join(threads[i], NULL);
	CHECK_OK(hive_stop(l.hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(l.hive, real_patience()));
	CHECK_EQ(l.ran, 20 * 20000);
	balance(&l);
}
