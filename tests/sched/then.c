/* SPDX-License-Identifier: MIT */
/* Compute and answer: hive_post_compute_then(). */
#include <sched.h>

#include "support/fake.h"
#include "support/real.h"
#include "test.h"

struct job {
	int worked, answered;
	uint32_t worked_on, answered_on;
};

static void work(void *arg)
{
	struct job *job = arg;

	CHECK_EQ(job->answered, 0);
	job->worked++;
	job->worked_on = hive_worker_current();
}

static void answer(void *arg)
{
	struct job *job = arg;

	CHECK_EQ(job->worked, 1);
	job->answered++;
	job->answered_on = hive_worker_current();
}

static struct hive_report stop_and_report(struct fake *f, enum hive_stop_mode mode)
{
	struct hive_report report;

	CHECK_OK(hive_stop(f->hive, mode, HIVE_FOREVER));
	CHECK_OK(hive_join(f->hive, HIVE_FOREVER));
	CHECK_OK(hive_report_read(f->hive, &report));
	return report;
}

/* the work on a compute worker, then the answer on the worker that was named, and nowhere else; each wakes its
 * worker.                                                                                                                */
TEST(the_work_runs_on_a_compute_worker_and_the_answer_where_it_was_asked_for)
{
	struct fake f = { 0 };
	struct job job = { 0 }, to_main = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 3, .compute_workers = 1 });
	fake_start(&f);
	fake_settle(&f);
	fake_reset_wakes(&f);
	CHECK_OK(hive_post_compute_then(f.hive, work, f.workers[1].id, answer, &job));
	CHECK_EQ(f.wakes, 1);
	CHECK_EQ(f.workers[3].wakes, 1);
	fake_step(&f, f.workers[3].id);
	CHECK_EQ(job.worked_on, f.workers[3].id);
	CHECK_EQ(f.workers[1].wakes, 1);
	CHECK_EQ(f.wakes, 2);
	fake_step(&f, f.workers[0].id);
	fake_step(&f, f.workers[2].id);
	CHECK_EQ(job.answered, 0);
	fake_step(&f, f.workers[1].id);
	CHECK_EQ(job.answered, 1);
	CHECK_EQ(job.answered_on, f.workers[1].id);
	CHECK_OK(hive_post_compute_then(f.hive, work, HIVE_WORKER_MAIN, answer, &to_main));
	fake_settle(&f);
	CHECK_EQ(to_main.answered_on, f.workers[0].id);
	CHECK_EQ(stop_and_report(&f, HIVE_DRAIN).ran, 4);
	fake_destroy(&f);
}

/* Both places are reserved by the post: without a byte of memory the answer arrives. */
TEST(the_answer_needs_no_memory)
{
	struct fake f = { 0 };
	struct job jobs[40];

	memset(jobs, 0, sizeof jobs);
	fake_create(&f, (struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	fake_start(&f);
	for (int i = 0; i < 40; i++)
		CHECK_OK(hive_post_compute_then(f.hive, work, f.workers[1].id, answer, &jobs[i]));
	f.allocations = 0;
	f.fail_at = 1;
	f.sticky = true;
	fake_settle(&f);
	f.fail_at = 0;
	for (int i = 0; i < 40; i++)
		CHECK_EQ(jobs[i].answered, 1);
	fake_destroy(&f);
}

/* Draining counts the answer as queued from the moment of the post, wherever the work is just then. */
TEST(draining_waits_for_the_answer)
{
	for (int before = 0; before < 3; before++) {
		struct fake f = { 0 };
		struct job job = { 0 };

		fake_create(&f, (struct hive_options){ .io_workers = 2, .compute_workers = 1 });
		fake_start(&f);
		CHECK_OK(hive_post_compute_then(f.hive, work, f.workers[1].id, answer, &job));
		if (before >= 1)
			fake_step(&f, f.workers[2].id);
		if (before >= 2)
			fake_step(&f, f.workers[0].id);
		CHECK_EQ(stop_and_report(&f, HIVE_DRAIN).ran, 2);
		CHECK_EQ(job.answered, 1);
		CHECK_EQ(job.answered_on, f.workers[1].id);
		CHECK_EQ(f.drops, 0);
		fake_destroy(&f);
	}
}

/* The one who asked has left: the main worker takes the answer. */
TEST(the_answer_for_a_detached_worker_goes_to_the_main_worker)
{
	for (int reused = 0; reused < 2; reused++) {
		struct fake f = { 0 };
		struct job job = { 0 };
		uint32_t id, other;

		fake_create(&f, (struct hive_options){ .io_workers = 1, .compute_workers = 1 });
		fake_start(&f);
		CHECK_OK(hive_attach(f.hive, NULL, &id));
		CHECK_OK(hive_post_compute_then(f.hive, work, id, answer, &job));
		CHECK_ERR(hive_detach(f.hive, id, HIVE_NOWAIT), -EINPROGRESS);
		CHECK_EQ(fake_step(&f, id), -ESHUTDOWN);
		if (reused) { /* a stranger in the same place must not get it */
			CHECK_OK(hive_attach(f.hive, NULL, &other));
			CHECK_EQ(hive__slot(&f.hive->io, 1)->life, WORKER_RUNNING);
			fake_step(&f, f.workers[1].id);
			for (int i = 0; i < 3; i++)
				fake_step(&f, other);
			CHECK_EQ(job.answered, 0);
		}
		fake_settle(&f);
		CHECK_EQ(job.worked, 1);
		CHECK_EQ(job.answered, 1);
		CHECK_EQ(job.answered_on, f.workers[0].id);
		fake_destroy(&f);
	}
}

static bool was_dropped(const struct fake *f, hive_fn *fn, void *arg)
{
	return f->drops == 1 && f->dropped[0].fn == fn && f->dropped[0].arg == arg;
}

/* Stopping now: the hook sees the part that did not run: the work, or the answer; never both. */
TEST(the_drop_hook_sees_the_part_that_did_not_run)
{
	for (int worked = 0; worked < 2; worked++) {
		struct fake f = { 0 };
		struct job job = { 0 };
		struct hive_report report;

		fake_create(&f, (struct hive_options){ .io_workers = 1, .compute_workers = 1 });
		fake_start(&f);
		CHECK_OK(hive_post_compute_then(f.hive, work, f.workers[0].id, answer, &job));
		if (worked)
			fake_step(&f, f.workers[1].id);
		report = stop_and_report(&f, HIVE_NOW);
		CHECK(was_dropped(&f, worked ? answer : work, &job));
		CHECK_EQ(report.ran, worked);
		CHECK_EQ(report.posted, worked + 1);
		CHECK_EQ(report.dropped, 1);
		CHECK_EQ(job.answered, 0);
		fake_destroy(&f);
	}
}

/* Nobody computes: draining must not wait for an answer that cannot come. */
TEST(draining_ends_although_nobody_can_compute)
{
	struct fake f = { 0 };
	struct job job = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 2 });
	fake_start(&f);
	CHECK_OK(hive_post_compute_then(f.hive, work, f.workers[1].id, answer, &job));
	CHECK_EQ(stop_and_report(&f, HIVE_DRAIN).dropped, 1);
	CHECK(was_dropped(&f, work, &job));
	fake_destroy(&f);
}

static struct gate done;

static void answer_and_tell(void *arg)
{
	answer(arg);
	gate_open(&done);
}

/* Real threads: many at once, with the askers coming and going; each answer arrives once. */
TEST(every_answer_arrives_while_workers_come_and_go)
{
	enum { JOBS = 400 };
	static struct job jobs[JOBS];
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 2 });

	memset(jobs, 0, sizeof jobs);
	gate_init(&done);
	for (int i = 0; i < JOBS;) {
		uint32_t id;

		CHECK_OK(hive_attach(hive, NULL, &id));
		for (int k = 0; k < 20; k++, i++)
			CHECK_OK(hive_post_compute_then(hive, work, id, answer_and_tell, &jobs[i]));
		CHECK_OK(hive_detach(hive, id, real_patience()));
	}
	for (int i = 0; i < JOBS; i++)
		gate_pass(&done);
	CHECK_EQ(real_end(hive, HIVE_DRAIN).ran, 2 * JOBS);
	for (int i = 0; i < JOBS; i++)
		CHECK_EQ(jobs[i].answered, 1);
	gate_destroy(&done);
}

/* Real threads: stop in the middle of the work; the answer comes all the same. */
TEST(draining_waits_for_work_that_is_under_way)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	struct block block;
	uint32_t ids[2];

	block_init(&block);
	gate_init(&done);
	hive_workers(hive, ids, 2);
	CHECK_OK(hive_post_compute_then(hive, block_task, ids[1], block_task, &block));
	gate_pass(&block.entered);
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_ERR(hive_join(hive, HIVE_NOWAIT), -ETIMEDOUT);
	gate_open(&block.leave);
	gate_pass(&block.entered);
	CHECK_EQ(block.worker, ids[1]);
	gate_open(&block.leave);
	CHECK_EQ(real_join(hive).ran, 2);
	block_destroy(&block);
	gate_destroy(&done);
}
