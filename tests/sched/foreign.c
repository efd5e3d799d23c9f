/* SPDX-License-Identifier: MIT */
/* A hive as the guest of another loop: here of one with poll(), which is all that a host needs to have. */
#include <fcntl.h>

#include "support/host.h"

/* ---- it runs what a worker runs ---- */

static void check_tasks(const char *core)
{
	struct host h;
	atomic_int n = 0;

	host_begin(&h, host_create(core, (struct hive_worker_options){ 0 }, (struct hive_options){ 0 }));
	for (int i = 0; i < 100; i++) {
		CHECK_OK(hive_post(h.hive, host_count, &n));
		CHECK_OK(hive_post_to(h.hive, HIVE_WORKER_MAIN, host_count, &n));
	}
	STEP_UNTIL(atomic_load(&n) == 200, host_turn(&h));
	host_settle(&h);
	CHECK_EQ(h.wait_ns, HIVE_FOREVER);
	host_end(&h);
}

TEST(tasks_run_inside_of_steps)
{
	host_each_core(check_tasks);
}

/* ---- wakes ---- */

struct poster {
	struct hive *hive;
	atomic_int *n;
	bool to_main;
	int posts;
};

static void *post_some(void *arg)
{
	struct poster *p = arg;

	for (int i = 0; i < p->posts; i++)
		CHECK_OK(p->to_main ? hive_post_to(p->hive, HIVE_WORKER_MAIN, host_count, p->n)
		                    : hive_post(p->hive, host_count, p->n));
	return NULL;
}

/* What is posted while it sleeps makes the descriptor readable, and the step takes that back. */
static void check_wakes(const char *core)
{
	struct host h;
	atomic_int n = 0;

	host_begin(&h, host_create(core, (struct hive_worker_options){ 0 }, (struct hive_options){ 0 }));
	for (int i = 0; i < 10; i++) {
		struct poster p = { h.hive, &n, i % 2 == 0, 1 };
		pthread_t thread;

		host_settle(&h);
		CHECK_EQ(pthread_create(&thread, NULL, post_some, &p), 0);
		CHECK_EQ(pthread_join(thread, NULL), 0);
		STEP_UNTIL(host_readable(h.fd), sched_yield());
		host_step(&h);
		CHECK_EQ(atomic_load(&n), i + 1);
		host_settle(&h);
	}
	host_end(&h);
}

TEST(a_post_makes_the_descriptor_readable_and_a_step_takes_that_back)
{
	host_each_core(check_wakes);
}

/* From the host's own thread, between two steps, it is the same. */
static void check_own_posts(const char *core)
{
	struct host h;
	atomic_int n = 0;

	host_begin(&h, host_create(core, (struct hive_worker_options){ 0 }, (struct hive_options){ 0 }));
	host_settle(&h);
	CHECK_OK(hive_post_to(h.hive, HIVE_WORKER_MAIN, host_count, &n));
	STEP_UNTIL(host_readable(h.fd), sched_yield());
	host_step(&h);
	CHECK_EQ(atomic_load(&n), 1);
	CHECK_EQ(hive_worker_current(), HIVE_WORKER_NONE);
	CHECK_MISUSE(hive_post_local(host_count, &n), -EPERM);
	host_end(&h);
}

TEST(the_host_may_post_between_two_steps)
{
	host_each_core(check_own_posts);
}

/* Four threads post while the host waits for nothing but the descriptor: no wake is lost. */
static void check_no_wake_is_lost(const char *core)
{
	enum { THREADS = 4, POSTS = 2000 };
	struct host h;
	struct poster p[THREADS];
	pthread_t threads[THREADS];
	atomic_int n = 0;
	int posts = POSTS / test_slowness() + 1;

	host_begin(&h, host_create(core, (struct hive_worker_options){ 0 }, (struct hive_options){ 0 }));
	host_settle(&h);
	for (int i = 0; i < THREADS; i++) {
		p[i] = (struct poster){ h.hive, &n, i % 2 == 0, posts };
		CHECK_EQ(pthread_create(&threads[i], NULL, post_some, &p[i]), 0);
	}
	STEP_UNTIL(atomic_load(&n) == THREADS * posts, host_turn(&h));
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	host_settle(&h);
	host_end(&h);
}

TEST(no_wake_is_lost_under_a_storm_of_posts)
{
	host_each_core(check_no_wake_is_lost);
}

/* ---- time ---- */

static int64_t fired_ns;

static void note_time(struct hive_timer *timer)
{
	fired_ns = hive_now(NULL);
	host_count(timer->arg);
}

struct timer_start {
	struct hive_timer timer;
	int64_t delay_ns, started_ns;
};

static void start_timer(void *arg)
{
	struct timer_start *s = arg;

	s->started_ns = hive_now(NULL);
	CHECK_OK(hive_timer_start(&s->timer, s->delay_ns, 0));
}

static void check_timers(const char *core)
{
	struct host h;
	struct timer_start s = { .delay_ns = HIVE_MS(20) };
	atomic_int n = 0;

	host_begin(&h, host_create(core, (struct hive_worker_options){ 0 }, (struct hive_options){ 0 }));
	host_settle(&h);
	CHECK_EQ(h.wait_ns, HIVE_FOREVER);
	hive_timer_init(&s.timer, note_time, &n);
	CHECK_OK(hive_post_to(h.hive, HIVE_WORKER_MAIN, start_timer, &s));
	STEP_UNTIL(s.started_ns != 0, host_turn(&h));
	if (atomic_load(&n) == 0) /* else this thread had to wait for long */
		CHECK(h.wait_ns <= HIVE_MS(20));
	STEP_UNTIL(atomic_load(&n) == 1, host_turn(&h));
	CHECK(fired_ns - s.started_ns >= HIVE_MS(20));
	host_settle(&h);
	CHECK_EQ(h.wait_ns, HIVE_FOREVER);
	CHECK_OK(hive_post_after(h.hive, HIVE_MS(1), host_count, &n, NULL));
	STEP_UNTIL(atomic_load(&n) == 2, host_turn(&h));
	host_end(&h);
}

TEST(a_step_says_when_the_next_timer_is_due)
{
	host_each_core(check_timers);
}

/* ---- events, operations, fibers ---- */

struct pipes {
	int ends[2];
	struct hive_source source;
	atomic_int ready, done;
	char byte;
	int64_t result;
};

static void on_ready(struct hive_source *source, uint32_t events)
{
	struct pipes *p = source->arg;

	CHECK(events & HIVE_EVENT_IN);
	CHECK_EQ(read(p->ends[0], &p->byte, 1), 1);
	atomic_fetch_add(&p->ready, 1);
}

static void start_source(void *arg)
{
	struct pipes *p = arg;

	hive_source_init(&p->source, HIVE_SOURCE_FD, p->ends[0], HIVE_EVENT_IN, on_ready, p);
	CHECK_OK(hive_source_start(&p->source));
	atomic_fetch_add(&p->done, 1);
}

static void stop_source(void *arg)
{
	CHECK_EQ(hive_source_stop(&((struct pipes *)arg)->source), 1);
}

static void check_sources(const char *core)
{
	struct host h;
	struct pipes p = { 0 };

	CHECK_EQ(pipe2(p.ends, O_CLOEXEC | O_NONBLOCK), 0);
	host_begin(&h, host_create(core, (struct hive_worker_options){ 0 }, (struct hive_options){ 0 }));
	CHECK_OK(hive_post_to(h.hive, HIVE_WORKER_MAIN, start_source, &p));
	STEP_UNTIL(atomic_load(&p.done) == 1, host_turn(&h));
	for (int i = 0; i < 5; i++) {
		host_settle(&h);
		CHECK_EQ(write(p.ends[1], "x", 1), 1);
		STEP_UNTIL(host_readable(h.fd), sched_yield());
		STEP_UNTIL(atomic_load(&p.ready) == i + 1, host_turn(&h));
	}
	CHECK_OK(hive_post_to(h.hive, HIVE_WORKER_MAIN, stop_source, &p));
	host_end(&h);
	close(p.ends[0]);
	close(p.ends[1]);
}

TEST(a_source_makes_the_descriptor_readable)
{
	host_each_core(check_sources);
}

/* Begun by the last task before the guest sleeps: what it asks of the kernel has to be sent all the same. */
static int read_in_fiber(void *arg)
{
	struct pipes *p = arg;

	atomic_fetch_add(&p->ready, 1);
	p->result = hive_read(p->ends[0], &p->byte, 1, -1, HIVE_FOREVER);
	atomic_fetch_add(&p->done, 1);
	return 0;
}

static void check_operations(const char *core)
{
	struct hive_fiber_options where = { .worker = HIVE_WORKER_MAIN };
	struct host h;
	struct pipes p = { 0 };

	CHECK_EQ(pipe2(p.ends, O_CLOEXEC | O_NONBLOCK), 0);
	host_begin(&h, host_create(core, (struct hive_worker_options){ 0 }, (struct hive_options){ 0 }));
	for (int i = 0; i < 5; i++) {
		CHECK_OK(hive_spawn(h.hive, read_in_fiber, &p, &where, NULL));
		STEP_UNTIL(atomic_load(&p.ready) == i + 1, host_turn(&h));
		host_settle(&h);
		CHECK_EQ(write(p.ends[1], "y", 1), 1);
		STEP_UNTIL(host_readable(h.fd), sched_yield());
		STEP_UNTIL(atomic_load(&p.done) == i + 1, host_turn(&h));
		CHECK_EQ(p.result, 1);
	}
	host_end(&h);
	close(p.ends[0]);
	close(p.ends[1]);
}

TEST(fibers_and_their_operations_go_on_in_steps)
{
	host_each_core(check_operations);
}

static void square(void *arg)
{
	*(int *)arg *= *(int *)arg;
}

static int group_in_fiber(void *arg)
{
	struct hive_group group;
	int numbers[20];

	hive_group_init(&group, hive_current(), HIVE_MICRO);
	for (int i = 0; i < 20; i++) {
		numbers[i] = i;
		hive_group_run(&group, square, &numbers[i]);
	}
	CHECK_OK(hive_group_wait(&group, HIVE_FOREVER));
	for (int i = 0; i < 20; i++)
		CHECK_EQ(numbers[i], i * i);
	host_count(arg);
	return 0;
}

static void check_groups(const char *core)
{
	struct hive_fiber_options where = { .worker = HIVE_WORKER_MAIN };
	struct host h;
	atomic_int n = 0;

	host_begin(&h, host_create(core, (struct hive_worker_options){ 0 },
	                           (struct hive_options){ .io_workers = 2, .compute_workers = 1 }));
	CHECK_OK(hive_spawn(h.hive, group_in_fiber, &n, &where, NULL));
	STEP_UNTIL(atomic_load(&n) == 1, host_turn(&h));
	CHECK_OK(hive_post_compute_then(h.hive, host_count, HIVE_WORKER_MAIN, host_count, &n));
	STEP_UNTIL(atomic_load(&n) == 3, host_turn(&h));
	host_end(&h);
}

TEST(groups_and_answers_of_compute_workers_arrive)
{
	host_each_core(check_groups);
}

/* ---- the frame ---- */

static void again(void *arg)
{
	host_count(arg);
	if (hive_post_self(again, arg) < 0)
		host_count(arg);
}

/* A task that posts itself for ever does not keep the host from its own business. */
static void check_frame(const char *core)
{
	struct host h;
	atomic_int n = 0;

	host_begin(&h, host_create(core, (struct hive_worker_options){ .frame_ns = HIVE_US(100) },
	                           (struct hive_options){ 0 }));
	CHECK_OK(hive_post_to(h.hive, HIVE_WORKER_MAIN, again, &n));
	for (int i = 0; i < 20; i++) {
		int before = atomic_load(&n);

		host_step(&h);
		CHECK_EQ(h.wait_ns, 0);
		CHECK(atomic_load(&n) > before);
	}
	host_end_with(&h, HIVE_NOW);
}

TEST(a_step_ends_with_its_frame_and_wants_to_be_called_again)
{
	host_each_core(check_frame);
}

/* ---- the end ---- */

static void check_stops(const char *core)
{
	for (enum hive_stop_mode mode = HIVE_DRAIN; mode <= HIVE_NOW; mode++) {
		struct host h;
		atomic_int n = 0;

		host_begin(&h, host_create(core, (struct hive_worker_options){ 0 },
		                           (struct hive_options){ .io_workers = 2, .compute_workers = 2 }));
		host_settle(&h);
		CHECK_ERR(hive_join(h.hive, HIVE_FOREVER), -EDEADLK);
		CHECK_ERR(hive_join(h.hive, HIVE_NOWAIT), -EDEADLK);
		CHECK_ERR(hive_destroy(h.hive), -EBUSY);
		for (int i = 0; i < 50; i++)
			CHECK_OK(hive_post_to(h.hive, HIVE_WORKER_MAIN, host_count, &n));
		host_end_with(&h, mode);
		if (mode == HIVE_DRAIN)
			CHECK_EQ(atomic_load(&n), 50);
	}
}

TEST(stop_between_two_steps_ends_by_steps)
{
	host_each_core(check_stops);
}

static void stop_now(void *hive)
{
	CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_NOWAIT));
	CHECK_ERR(hive_join(hive, HIVE_FOREVER), -EDEADLK);
	CHECK_ERR(hive_destroy(hive), -EDEADLK);
}

static void *join_from_outside(void *hive)
{
	CHECK_OK(hive_join(hive, real_patience()));
	return NULL;
}

/* Another thread may wait for the end, and the last step is over before it goes on. */
static void check_joins(const char *core)
{
	pthread_t thread;
	struct host h;

	host_begin(&h,
	           host_create(core, (struct hive_worker_options){ 0 }, (struct hive_options){ .compute_workers = 1 }));
	CHECK_EQ(pthread_create(&thread, NULL, join_from_outside, h.hive), 0);
	CHECK_OK(hive_post_to(h.hive, HIVE_WORKER_MAIN, stop_now, h.hive));
	STEP_UNTIL(h.over, host_turn(&h));
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_OK(hive_destroy(h.hive));
}

TEST(a_task_may_stop_it_and_another_thread_join_it)
{
	host_each_core(check_joins);
}
