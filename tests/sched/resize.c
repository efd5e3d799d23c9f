/* SPDX-License-Identifier: MIT */
/* The hive grows and shrinks: hive_resize(), by hand and with the CPUs that we are given. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rophive/sim.h>

#include "support/fake.h"
#include "support/real.h"
#include "test.h"

static struct hive_stats stats_of(struct hive *hive)
{
	struct hive_stats stats;

	CHECK_OK(hive_stats_read(hive, &stats));
	return stats;
}

static void check_counts(struct hive *hive, uint32_t io, uint32_t compute)
{
	CHECK_EQ(stats_of(hive).io_workers, io);
	CHECK_EQ(stats_of(hive).compute_workers, compute);
	CHECK_EQ(hive_workers(hive, NULL, 0), io + compute);
}

static atomic_int ran;

static void count(void *arg)
{
	(void)arg;
	ran++;
}

static const struct {
	int32_t io, compute;
} odd[] = { { 0, 0 },
	    { -2, 0 },
	    { 1, -2 },
	    { INT32_MIN, 1 },
	    { HIVE_WORKERS_MAX + 1, 0 },
	    { 1, HIVE_WORKERS_MAX + 1 },
	    { 1, INT32_MAX } };

TEST(counts_that_make_no_sense_are_refused_and_change_nothing)
{
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	for (int running = 0; running < 2; running++) {
		CHECK_ERR(hive_resize(NULL, 1, 0, HIVE_NOWAIT), -EINVAL);
		for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
			CHECK_ERR(hive_resize(f.hive, odd[i].io, odd[i].compute, HIVE_FOREVER), -EINVAL);
		check_counts(f.hive, 2, 1);
		if (!running)
			fake_start(&f);
	}
	fake_destroy(&f);
}

/* Before start and while it runs, up and down; the main worker stays, and what they had is done by those that are left. */
TEST(workers_come_and_go_until_the_counts_hold)
{
	struct fake f = { 0 };
	uint32_t first[1];

	fake_create(&f, (struct hive_options){ 0 });
	ran = 0;
	for (int running = 0; running < 2; running++) {
		CHECK_OK(hive_resize(f.hive, 4, 3, HIVE_FOREVER));
		check_counts(f.hive, 4, 3);
		hive_workers(f.hive, first, 1);
		for (int i = 0; i < 40; i++) {
			CHECK_OK(hive_post(f.hive, count, NULL));
			CHECK_OK(hive_post_after(f.hive, 0, count, NULL, NULL));
			CHECK_OK(hive_post_placed(f.hive, count, NULL));
		}
		CHECK_OK(hive_resize(f.hive, 1, 0, HIVE_FOREVER));
		check_counts(f.hive, 1, 0);
		CHECK_OK(hive_post_to(f.hive, first[0], count, NULL)); /* the main worker is who it was */
		CHECK_OK(hive_resize(f.hive, 1, 0, HIVE_FOREVER));
		if (!running)
			fake_start(&f);
		fake_settle(&f);
		CHECK_EQ(ran, (running + 1) * 121);
	}
	CHECK_OK(hive_stop(f.hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_ERR(hive_resize(f.hive, 2, 0, HIVE_FOREVER), -ESHUTDOWN);
	fake_destroy(&f);
}

static void starts(void *arg)
{
	++*(int *)arg;
}

/* Names, CPUs and hooks are those that the hive was made with, though the caller's copy is gone. */
TEST(who_comes_is_made_as_those_before)
{
	struct fake f = { 0 };
	int io_starts = 0, compute_starts = 0;
	uint32_t ids[4];
	struct hive_worker_stats s;

	{
		char io_name[] = "reader", compute_name[] = "cruncher";
		uint16_t cpu[] = { 0, 1 };
		struct hive_worker_options io = { .name = io_name,
			                          .cpus = cpu,
			                          .cpu_count = 2,
			                          .on_start = starts,
			                          .hook_arg = &io_starts,
			                          .local_capacity = 32 };
		struct hive_worker_options compute = { .name = compute_name,
			                               .on_start = starts,
			                               .hook_arg = &compute_starts };

		fake_create(&f, (struct hive_options){ .io_workers = 1, .io = &io, .compute = &compute });
		memset(io_name, 'x', sizeof io_name - 1);
		memset(compute_name, 'x', sizeof compute_name - 1);
		memset(cpu, 0xff, sizeof cpu);
		memset(&io, 0xff, sizeof io);
		memset(&compute, 0xff, sizeof compute);
	}
	fake_start(&f);
	CHECK_OK(hive_resize(f.hive, 2, 2, HIVE_FOREVER));
	fake_settle(&f);
	CHECK_EQ(io_starts, 2);
	CHECK_EQ(compute_starts, 2);
	CHECK_EQ(hive_workers(f.hive, ids, 4), 4);
	CHECK_OK(hive_worker_stats_read(f.hive, ids[1], &s));
	CHECK_STR(s.name, "reader");
	CHECK_OK(hive_worker_stats_read(f.hive, ids[3], &s));
	CHECK_STR(s.name, "cruncher");
	CHECK_EQ(hive__slot(&f.hive->io, 1)->setup.cpu_count, 2);
	CHECK_EQ(hive__slot(&f.hive->io, 1)->setup.cpus[1], 1);
	CHECK_EQ(hive__slot(&f.hive->io, 1)->local_capacity, 32);
	fake_destroy(&f);
}

/* Memory that fails at whatever place: the counts are as far as it got, and it can be tried again. */
TEST(without_memory_it_ends_where_it_stands)
{
	for (int fail = 1; fail < 40; fail++) {
		struct fake f = { 0 };
		int r;

		fake_create(&f, (struct hive_options){ .io_workers = 1 });
		fake_start(&f);
		f.allocations = 0;
		f.fail_at = fail;
		r = hive_resize(f.hive, 4, 2, HIVE_FOREVER);
		CHECK(r == 0 || r == -ENOMEM);
		CHECK(stats_of(f.hive).io_workers >= 1 && stats_of(f.hive).io_workers <= 4);
		f.fail_at = 0;
		CHECK_OK(hive_resize(f.hive, 4, 2, HIVE_FOREVER));
		check_counts(f.hive, 4, 2);
		fake_destroy(&f);
	}
}

static int resize_result[3];

static void resize_inside(void *hive)
{
	resize_result[0] = hive_resize(hive, 3, 0, HIVE_FOREVER);
	resize_result[1] = hive_resize(hive, 3, 0, HIVE_NOWAIT);
	resize_result[2] = hive_resize(hive, 1, 0, HIVE_NOWAIT);
}

/* On a worker only without waiting; who goes may be the caller itself. */
TEST(on_a_worker_it_does_not_wait)
{
	struct fake f = { 0 };
	uint32_t ids[2];

	fake_create(&f, (struct hive_options){ .io_workers = 2 });
	fake_start(&f);
	CHECK_EQ(hive_workers(f.hive, ids, 2), 2);
	CHECK_OK(hive_post_to(f.hive, ids[1], resize_inside, f.hive));
	fake_settle(&f);
	CHECK_EQ(resize_result[0], -EDEADLK);
	CHECK_EQ(resize_result[1], 0);
	CHECK_EQ(resize_result[2], -EINPROGRESS);
	check_counts(f.hive, 1, 0);
	fake_settle(&f);
	CHECK_OK(hive_resize(f.hive, 3, 0, HIVE_FOREVER)); /* in the slots that they left */
	CHECK_EQ(hive__limit(&f.hive->io), 3);
	fake_destroy(&f);
}

/* No compute workers while there is work that only they can do: as with detach. */
TEST(work_for_nobody_is_not_left_behind)
{
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 1, .compute_workers = 3 });
	fake_start(&f);
	ran = 0;
	CHECK_OK(hive_post_compute(f.hive, count, NULL));
	CHECK_ERR(hive_resize(f.hive, 2, 0, HIVE_FOREVER), -EBUSY);
	check_counts(f.hive, 2, 1);
	fake_settle(&f);
	CHECK_EQ(ran, 1);
	CHECK_OK(hive_resize(f.hive, 1, 0, HIVE_FOREVER));
	fake_destroy(&f);
}

static int32_t cpus_now;

static int32_t count_cpus(void)
{
	return cpus_now;
}

/* HIVE_AUTO follows, kind by kind, until a count is given. */
TEST(automatic_counts_follow_the_cpus)
{
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	f.hive->count_cpus = count_cpus;
	fake_start(&f);
	cpus_now = 3;
	CHECK_OK(hive_resize(f.hive, 2, HIVE_AUTO, HIVE_FOREVER));
	check_counts(f.hive, 2, 3);
	cpus_now = 5;
	hive__monitor_look(f.hive);
	f.now_ns += TUNE_FOLLOW_NS;
	hive__monitor_look(f.hive);
	check_counts(f.hive, 2, 5);
	CHECK_OK(hive_resize(f.hive, HIVE_AUTO, HIVE_AUTO, HIVE_FOREVER));
	check_counts(f.hive, 5, 5);
	cpus_now = 1;
	f.now_ns += TUNE_FOLLOW_NS;
	hive__monitor_look(f.hive);
	check_counts(f.hive, 1, 1);
	fake_settle(&f);
	CHECK_OK(hive_resize(f.hive, 2, 2, HIVE_FOREVER));
	f.now_ns += TUNE_FOLLOW_NS;
	hive__monitor_look(f.hive);
	check_counts(f.hive, 2, 2);
	fake_destroy(&f);
}

/* A machine that has more of them than a hive takes. */
TEST(there_is_a_most_of_workers)
{
	struct hive_worker_options small = { .local_capacity = 4 };
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io = &small });
	f.hive->count_cpus = count_cpus;
	cpus_now = HIVE_WORKERS_MAX + 7;
	CHECK_OK(hive_resize(f.hive, HIVE_AUTO, 0, HIVE_FOREVER));
	check_counts(f.hive, HIVE_WORKERS_MAX, 0);
	CHECK_OK(hive_resize(f.hive, HIVE_WORKERS_MAX, 0, HIVE_NOWAIT));
	fake_destroy(&f);
}

/* Load that never ends, and workers that come and go under it: every task runs once, on each seed. */
TEST(simulated_hives_lose_nothing)
{
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct hive_sim_options how = { .seed = seed };
		struct hive_report report;
		struct hive_sim *sim;
		struct hive *hive;
		int posted = 0;

		CHECK_OK(hive_sim_create(&how, &sim));
		CHECK_OK(hive_create(
			&(struct hive_options){ .io_workers = 2,
		                                .host = hive_sim_host(sim),
		                                .placement = seed % 2 ? HIVE_PLACE_TWO_CHOICES : HIVE_PLACE_POOL },
			&hive));
		CHECK_OK(hive_start(hive));
		ran = 0;
		for (int i = 0; i < 12; i++) {
			for (int j = 0; j < 20; j++, posted += 2) {
				CHECK_OK(hive_post(hive, count, NULL));
				CHECK_OK(hive_post_after(hive, HIVE_US(j), count, NULL, NULL));
			}
			CHECK_OK(hive_resize(hive, 1 + (int32_t)(seed + (uint64_t)i * 7) % 5,
			                     (int32_t)(seed / 5 + (uint64_t)i) % 3, HIVE_FOREVER));
			hive_sim_advance(sim, HIVE_US(5));
		}
		hive_sim_advance(sim, HIVE_S(1));
		CHECK_EQ(ran, posted);
		CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
		CHECK_OK(hive_join(hive, HIVE_FOREVER));
		CHECK_OK(hive_report_read(hive, &report));
		CHECK_EQ(report.posted, report.ran + report.cancelled + report.dropped);
		CHECK_OK(hive_destroy(hive));
		CHECK_OK(hive_sim_destroy(sim));
	}
}

/* ---- real threads ---- */

struct host { /* whose threads are counted, and refused from a certain one on */
	struct hive_host host;
	atomic_int started, joined;
	int refuse_from;
};

struct start {
	hive_fn *main;
	void *arg;
};

static void *thread_body(void *arg)
{
	struct start start = *(struct start *)arg;

	free(arg);
	start.main(start.arg);
	return NULL;
}

static int thread_start(void *arg, hive_fn *main, void *main_arg, uint64_t *ret_thread)
{
	struct host *h = arg;
	struct start *start = malloc(sizeof *start);
	pthread_t thread;

	*start = (struct start){ main, main_arg };
	if (h->refuse_from && h->started + 1 >= h->refuse_from) {
		free(start);
		return -EAGAIN;
	}
	h->started++;
	CHECK_OK(pthread_create(&thread, NULL, thread_body, start));
	*ret_thread = (uint64_t)thread;
	return 0;
}

static void thread_join(void *arg, uint64_t thread)
{
	CHECK_OK(pthread_join((pthread_t)thread, NULL));
	((struct host *)arg)->joined++;
}

static void host_init(struct host *h)
{
	*h = (struct host){ .host = { .thread_start = thread_start, .thread_join = thread_join } };
	h->host.arg = h;
}

/* One thread more for who follows, and it ends with the hive; without it, a count that was given changes nothing by itself. */
TEST(the_monitor_is_a_thread_of_the_host_and_ends_with_the_hive)
{
	struct host h;
	struct hive *hive;

	for (int before = 0; before < 2; before++) {
		host_init(&h);
		hive = real_create((struct hive_options){ .io_workers = 1, .host = &h.host, .stall_ns = HIVE_OFF });
		hive->count_cpus = count_cpus;
		cpus_now = 2;
		if (before)
			CHECK_OK(hive_resize(hive, 1, HIVE_AUTO, HIVE_FOREVER));
		CHECK_OK(hive_start(hive));
		CHECK_EQ(h.started, before ? 4 : 1);
		if (!before)
			CHECK_OK(hive_resize(hive, 1, HIVE_AUTO, HIVE_FOREVER));
		CHECK_EQ(h.started, 4);
		CHECK_OK(hive_resize(hive, 1, HIVE_AUTO, HIVE_FOREVER));
		CHECK_EQ(h.started, 4);
		real_end(hive, HIVE_DRAIN);
		CHECK_EQ(h.joined, 4);
	}
}

TEST(threads_that_cannot_be_had_end_it_where_it_stands)
{
	struct host h;
	struct hive *hive;

	host_init(&h);
	hive = real_start((struct hive_options){ .io_workers = 1, .host = &h.host, .stall_ns = HIVE_OFF });
	h.refuse_from = 3;
	CHECK_ERR(hive_resize(hive, 4, 0, HIVE_FOREVER), -EAGAIN);
	check_counts(hive, 2, 0);
	h.refuse_from = 0;
	CHECK_OK(hive_resize(hive, 4, 0, HIVE_FOREVER));
	check_counts(hive, 4, 0);
	real_end(hive, HIVE_DRAIN);
	CHECK_EQ(h.joined, h.started);
}

/* Who is in a task stays in it: out of the hive at once, with what it had. */
TEST(who_is_in_a_task_is_not_waited_for_beyond_the_deadline)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 2 });
	struct block block;
	uint32_t ids[2];

	block_init(&block);
	CHECK_EQ(hive_workers(hive, ids, 2), 2);
	CHECK_OK(hive_post_to(hive, ids[1], block_task, &block));
	gate_pass(&block.entered);
	ran = 0;
	CHECK_OK(hive_post_to(hive, ids[1], count, NULL));
	CHECK_ERR(hive_resize(hive, 1, 0, hive_deadline(NULL, HIVE_MS(1))), -EINPROGRESS);
	check_counts(hive, 1, 0);
	gate_open(&block.leave);
	WAIT_UNTIL(ran == 1);
	real_end(hive, HIVE_DRAIN);
	block_destroy(&block);
}

struct resizer {
	struct hive *hive;
	int cycles;
	uint32_t seed;
};

static void *resize_often(void *arg)
{
	struct resizer *r = arg;

	for (int i = 0; i < r->cycles; i++) {
		r->seed = r->seed * 1664525u + 1013904223u;
		CHECK_OK(hive_resize(r->hive, 1 + (int32_t)(r->seed >> 16) % 4, 1 + (int32_t)(r->seed >> 24) % 2,
		                     real_patience()));
	}
	return NULL;
}

static long resident_pages(void)
{
	FILE *statm = fopen("/proc/self/statm", "re");
	long all = 0, resident = 0;

	CHECK(statm && fscanf(statm, "%ld %ld", &all, &resident) == 2);
	fclose(statm);
	return resident;
}

/* Two resize at once, two post: one after the other, nothing lost, and no memory more than after the first cycles. */
TEST(resized_under_load_nothing_is_lost_and_memory_stays)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 1 });
	int cycles = 60;
	long before = 0;

	ran = 0;
	for (int round = 0, posted = 0; round < 4; round++) {
		struct resizer a = { hive, cycles, (uint32_t)round }, b = { hive, cycles, (uint32_t)round + 77 };
		pthread_t threads[2];

		CHECK_OK(pthread_create(&threads[0], NULL, resize_often, &a));
		CHECK_OK(pthread_create(&threads[1], NULL, resize_often, &b));
		for (int i = 0; i < 4000; i++, posted += 3) {
			CHECK_OK(hive_post(hive, count, NULL));
			CHECK_OK(hive_post_compute(hive, count, NULL));
			CHECK_OK(hive_post_after(hive, 0, count, NULL, NULL));
		}
		pthread_join(threads[0], NULL);
		pthread_join(threads[1], NULL);
		WAIT_UNTIL(ran == posted);
		if (round == 1)
			before = resident_pages();
	}
	CHECK(TEST_ASAN || TEST_TSAN || resident_pages() < before + 1024); /* sanitizers have memory of their own */
	real_end(hive, HIVE_DRAIN);
}
