/* SPDX-License-Identifier: MIT */
/* Compute workers: take one, run it, again; nothing there: sleep. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "support/lone.h"

static struct fake *world;

static void open_world(struct fake *f, int io, int compute)
{
	world = f;
	fake_create(f, (struct hive_options){ .io_workers = io, .compute_workers = compute });
	fake_start(f);
	fake_settle(f);
	fake_reset_wakes(f);
	fake_log_clear();
}

static uint32_t compute_id(struct fake *f, int i)
{
	uint32_t ids[16];
	struct hive_stats s;

	CHECK_OK(hive_stats_read(f->hive, &s));
	CHECK(hive_workers(f->hive, ids, 16) <= 16);
	return ids[s.io_workers + (uint32_t)i];
}

/* each round takes one task, the oldest, and runs it; empty, it sleeps until it is woken. */
TEST(a_compute_worker_takes_and_runs_one_task_at_a_time)
{
	struct fake f = { 0 };
	uint32_t id;

	open_world(&f, 1, 1);
	id = compute_id(&f, 0);
	CHECK_EQ(fake_worker(&f, id)->wait_ns, HIVE_FOREVER);
	for (int i = 1; i <= 3; i++)
		CHECK_OK(hive_post_compute(f.hive, fake_note, number(i)));
	CHECK_EQ(fake_worker(&f, id)->wakes, 1);
	CHECK_EQ(fake_step(&f, id), 0);
	CHECK_STR(fake_log(), "1");
	CHECK_EQ(fake_step(&f, id), 0);
	CHECK_STR(fake_log(), "1 2");
	CHECK_EQ(fake_step(&f, id), 0);
	CHECK_STR(fake_log(), "1 2 3");
	CHECK_EQ(fake_step(&f, id), HIVE_FOREVER);
	CHECK_OK(hive_post_compute(f.hive, fake_note, number(4)));
	CHECK_EQ(fake_worker(&f, id)->wakes, 2);
	CHECK_EQ(fake_step(&f, id), 0);
	CHECK_STR(fake_log(), "1 2 3 4");
	fake_destroy(&f);
}

/* any compute worker may take any compute task. */
TEST(any_compute_worker_takes_any_compute_task)
{
	for (int who = 0; who < 3; who++) {
		struct fake f = { 0 };

		open_world(&f, 1, 3);
		CHECK_OK(hive_post_compute(f.hive, fake_note, number(7)));
		fake_step(&f, compute_id(&f, who));
		CHECK_STR(fake_log(), "7");
		fake_destroy(&f);
	}
}

static int started, most;

static void occupy(void *arg)
{
	(void)arg;
	started++;
	/* A long task, seen from inside: what would others find now? All that is left, for nobody hoards. */
	most = (int)levels_length(&world->hive->compute_pool);
}

/* a worker never takes more than its share: what waits, waits where the idle ones can reach it. */
TEST(no_task_waits_behind_another_while_somebody_idles)
{
	struct fake f = { 0 };
	struct hive_task tasks[8];

	open_world(&f, 1, 4);
	for (int i = 0; i < 8; i++)
		tasks[i] = (struct hive_task){ occupy, NULL };
	started = 0;
	CHECK_OK(hive_post_compute_many(f.hive, tasks, 8));
	for (int i = 0; i < 4; i++) {
		fake_step(&f, compute_id(&f, i));
		CHECK_EQ(started, i + 1);
		CHECK_EQ(most, 7 - i);
	}
	fake_destroy(&f);
}

/* a batch wakes one; each taker that leaves more wakes one more, until all are at work. */
TEST(a_batch_of_compute_tasks_wakes_one_worker_and_that_one_the_next)
{
	struct fake f = { 0 };
	struct hive_task tasks[8];

	open_world(&f, 1, 3);
	for (int i = 0; i < 8; i++)
		tasks[i] = (struct hive_task){ occupy, NULL };
	CHECK_OK(hive_post_compute_many(f.hive, tasks, 8));
	CHECK_EQ(f.wakes, 1);
	for (int awake = 1; awake <= 3; awake++) {
		for (int i = 0; i < 3; i++) {
			struct fake_worker *w = fake_worker(&f, compute_id(&f, i));

			if (w->wakes == 1) {
				w->wakes++; /* stepped */
				fake_step(&f, w->id);
				break;
			}
		}
		CHECK_EQ(f.wakes, awake < 3 ? awake + 1 : 3);
	}
	fake_destroy(&f);
}

/* neither kind ever takes from the other's pool, and compute workers steal nothing. */
TEST(compute_workers_and_io_workers_leave_each_others_work_alone)
{
	struct fake f = { 0 };
	uint32_t id;

	open_world(&f, 1, 1);
	id = compute_id(&f, 0);
	CHECK_OK(hive_post(f.hive, fake_note, number(1)));
	CHECK_OK(hive_post_to(f.hive, HIVE_WORKER_MAIN, fake_note, number(2)));
	for (int i = 0; i < 5; i++)
		CHECK_EQ(fake_step(&f, id), HIVE_FOREVER);
	CHECK_STR(fake_log(), "");
	CHECK_OK(hive_post_compute(f.hive, fake_note, number(3)));
	for (int i = 0; i < 5; i++)
		fake_step(&f, f.workers[0].id);
	CHECK_STR(fake_log(), "2 1");
	fake_step(&f, id);
	CHECK_STR(fake_log(), "2 1 3");
	fake_destroy(&f);
}

static void try_own_doors(void *arg)
{
	struct hive_timer timer;
	struct hive_source source;

	(void)arg;
	hive_timer_init(&timer, (hive_timer_fn *)abort, NULL);
	hive_source_init(&source, HIVE_SOURCE_FD, 0, HIVE_EVENT_IN, (hive_source_fn *)abort, NULL);
	CHECK_MISUSE(hive_post_local(fake_note, number(1)), -EPERM);
	CHECK_MISUSE(hive_post_self(fake_note, number(1)), -EPERM);
	CHECK_MISUSE(hive_post_self_after(1, fake_note, number(1), NULL), -EPERM);
	CHECK_MISUSE(hive_timer_start(&timer, 0, 0), -EPERM);
	CHECK_MISUSE(hive_source_start(&source), -EPERM);
	CHECK_OK(hive_post(world->hive, fake_note, number(5))); /* the hive's doors are open to everybody */
}

/* a compute worker has no private queue, local queue, timers or sources; no letter reaches it. */
TEST(compute_workers_have_no_queues_timers_or_sources_of_their_own)
{
	struct fake f = { 0 };
	uint32_t id;

	open_world(&f, 1, 1);
	id = compute_id(&f, 0);
	CHECK_OK(hive_post_compute(f.hive, try_own_doors, NULL));
	fake_step(&f, id);
	CHECK_ERR(hive_post_to(f.hive, id, fake_note, number(1)), -EINVAL);
	fake_settle(&f);
	CHECK_STR(fake_log(), "5");
	fake_destroy(&f);
}

/* there is no delayed compute task: an assertion, or an error and nothing queued. */
TEST(a_delay_is_accepted_for_micro_tasks_only)
{
	struct fake f = { 0 };
	struct hive_stats s;

	open_world(&f, 1, 1);
	CHECK_MISUSE(hive_post_kind(f.hive, HIVE_COMPUTE, 1, fake_note, number(1)), -EINVAL);
	CHECK_OK(hive_stats_read(f.hive, &s));
	CHECK_EQ(s.posted, 0);
	CHECK_EQ(s.compute_pool, 0);
	CHECK_OK(hive_post_kind(f.hive, HIVE_COMPUTE, 0, fake_note, number(2)));
	CHECK_OK(hive_post_kind(f.hive, HIVE_MICRO, 0, fake_note, number(3)));
	CHECK_OK(hive_post_kind(f.hive, HIVE_MICRO, HIVE_MS(1), fake_note, number(4)));
	fake_settle(&f);
	CHECK_EQ(strlen(fake_log()), strlen("2 3"));
	fake_advance(&f, HIVE_MS(1));
	CHECK_EQ(strlen(fake_log()), strlen("2 3 4"));
	fake_destroy(&f);
}

/* ---- falling asleep ---- */

static int parks, unparks;

static void post_in_park(void *arg)
{
	(void)arg;
	if (parks++ == 0)
		CHECK_OK(hive_post_compute(world->hive, fake_note, number(9)));
}

static void note_unpark(void *arg)
{
	(void)arg;
	unparks++;
}

/* what is posted after the last look and before the wait is found by the second look. */
TEST(a_compute_post_between_decision_and_block_is_not_lost)
{
	struct fake f = { 0 };
	struct hive_worker_options compute = { .on_park = post_in_park, .on_unpark = note_unpark };

	parks = unparks = 0;
	world = &f;
	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	compute.kind = HIVE_WORKER_COMPUTE;
	CHECK_OK(hive_attach(f.hive, &compute, NULL));
	fake_start(&f);
	fake_log_clear();
	hive__set_current(hive__slot(&f.hive->compute, 0));
	CHECK(hive__compute_beat(hive__slot(&f.hive->compute, 0), NULL)); /* would hang here, had it fallen asleep */
	CHECK_EQ(parks, 1);
	CHECK_EQ(unparks, 1);
	CHECK(hive__compute_beat(hive__slot(&f.hive->compute, 0), NULL));
	CHECK_STR(fake_log(), "9");
	hive__set_current(NULL);
	fake_destroy(&f);
}

/* id and sleep are readable; a sleeper can be asked to leave. */
TEST(id_and_sleep_of_a_compute_worker_are_readable_and_it_can_be_detached)
{
	struct fake f = { 0 };
	struct hive_worker_stats s;
	struct hive_stats all;
	uint32_t id;

	open_world(&f, 1, 2);
	id = compute_id(&f, 1);
	CHECK_OK(hive_worker_stats_read(f.hive, id, &s));
	CHECK_EQ(s.worker, id);
	CHECK_EQ(s.kind, HIVE_WORKER_COMPUTE);
	CHECK_OK(hive_stats_read(f.hive, &all));
	CHECK_EQ(all.sleeping, 3);
	CHECK_OK(hive_detach(f.hive, id, HIVE_FOREVER));
	CHECK_OK(hive_stats_read(f.hive, &all));
	CHECK_EQ(all.sleeping, 2);
	CHECK_EQ(all.compute_workers, 1);
	CHECK_ERR(hive_worker_stats_read(f.hive, id, &s), -ESRCH);
	fake_destroy(&f);
}

/* ---- with threads ---- */

static sem_t answered;

static void answer(void *arg)
{
	(void)arg;
	sem_post(&answered);
}

static struct hive *start_hive(int io, int compute)
{
	struct hive_options options = { .io_workers = io, .compute_workers = compute };
	struct hive *hive;

	CHECK_OK(hive_create(&options, &hive));
	CHECK_OK(hive_start(hive));
	return hive;
}

static void stop_hive(struct hive *hive)
{
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(hive, HIVE_FOREVER));
	CHECK_OK(hive_destroy(hive));
}

/* one task at a time to workers that fall asleep in between, many times: a lost one would hang. */
TEST(posts_that_meet_compute_workers_falling_asleep_are_never_lost)
{
	struct hive *hive = start_hive(1, 2);

	CHECK_EQ(sem_init(&answered, 0, 0), 0);
	for (int i = 0; i < 20000 / test_slowness(); i++) {
		CHECK_OK(hive_post_compute(hive, answer, NULL));
		while (sem_wait(&answered) < 0)
			CHECK_EQ(errno, EINTR);
	}
	stop_hive(hive);
	sem_destroy(&answered);
}

static void wait_for_sleepers(struct hive *hive, uint32_t sleepers)
{
	struct hive_stats s;

	do {
		sched_yield();
		CHECK_OK(hive_stats_read(hive, &s));
	} while (s.sleeping != sleepers);
}

static uint64_t beats_of_all(struct hive *hive)
{
	uint32_t ids[16];
	size_t n = hive_workers(hive, ids, 16);
	uint64_t beats = 0;

	for (size_t i = 0; i < n; i++) {
		struct hive_worker_stats s;

		CHECK_OK(hive_worker_stats_read(hive, ids[i], &s));
		beats += s.beats;
	}
	return beats;
}

/* asleep means blocked: no beat is made while there is nothing to do. A busy loop would make
 * thousands.                                                                                               */
TEST(idle_workers_make_no_beats)
{
	struct hive *hive = start_hive(2, 2);
	uint64_t before;

	wait_for_sleepers(hive, 4);
	before = beats_of_all(hive);
	nanosleep(&(struct timespec){ 0, 30000000 }, NULL);
	CHECK(beats_of_all(hive) - before <= 4); /* a wake that came too late to matter is no crime */
	stop_hive(hive);
}

static void *stop_from_here(void *hive)
{
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	return NULL;
}

/* stop and wake reach sleeping compute workers from any thread. */
TEST(stop_from_another_thread_ends_sleeping_compute_workers)
{
	for (int i = 0; i < 50; i++) {
		struct hive *hive = start_hive(1, 3);
		pthread_t thread;

		if (i % 2)
			wait_for_sleepers(hive, 4);
		CHECK_EQ(pthread_create(&thread, NULL, stop_from_here, hive), 0);
		CHECK_EQ(pthread_join(thread, NULL), 0);
		CHECK_OK(hive_join(hive, HIVE_FOREVER));
		CHECK_OK(hive_destroy(hive));
	}
}

static _Atomic(int) at_work;
static sem_t release_hog;

static void hog(void *arg)
{
	(void)arg;
	atomic_fetch_add(&at_work, 1);
	while (sem_wait(&release_hog) < 0)
		CHECK_EQ(errno, EINTR);
}

/* all compute workers busy for ever, and more heavy work waiting: micro tasks and timers go on. */
TEST(a_flood_of_computation_does_not_delay_io_workers)
{
	struct hive *hive = start_hive(1, 2);

	CHECK_EQ(sem_init(&answered, 0, 0), 0);
	CHECK_EQ(sem_init(&release_hog, 0, 0), 0);
	atomic_store(&at_work, 0);
	for (int i = 0; i < 10; i++)
		CHECK_OK(hive_post_compute(hive, hog, NULL));
	while (atomic_load(&at_work) < 2)
		sched_yield();
	CHECK_OK(hive_post(hive, answer, NULL));
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, answer, NULL));
	CHECK_OK(hive_post_after(hive, HIVE_MS(1), answer, NULL, NULL));
	for (int i = 0; i < 3; i++)
		while (sem_wait(&answered) < 0)
			CHECK_EQ(errno, EINTR);
	CHECK_EQ(atomic_load(&at_work), 2);
	for (int i = 0; i < 10; i++)
		sem_post(&release_hog);
	stop_hive(hive);
	sem_destroy(&answered);
	sem_destroy(&release_hog);
}
