/* SPDX-License-Identifier: MIT */
/* A worker stuck in one task: found, reported once, and relieved of what others can do. */
#include <execinfo.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "support/child.h"
#include "support/fake.h"
#include "support/real.h"
#include "test.h"

enum { STALL_MS = 50, POSTS = 40 };

static struct fake f;
static uint32_t ids[3];
static int runs[POSTS], elsewhere;
static uint32_t stuck_on;

static void open_hive(int io, int compute)
{
	f = (struct fake){ 0 };
	memset(runs, 0, sizeof runs);
	elsewhere = 0;
	fake_create(&f, (struct hive_options){
				.io_workers = io, .compute_workers = compute, .stall_ns = HIVE_MS(STALL_MS) });
	fake_start(&f);
	fake_settle(&f);
	CHECK_EQ(hive_workers(f.hive, ids, 3), io + compute);
}

static struct hive_stats stats_now(void)
{
	struct hive_stats stats;

	CHECK_OK(hive_stats_read(f.hive, &stats));
	return stats;
}

/* The monitor looks, some time later. */
static void look_after(int64_t ms)
{
	f.now_ns += HIVE_MS(ms);
	hive__monitor_look(f.hive);
}

static void stay_for_long(void *arg)
{
	(void)arg;
	look_after(0);
	look_after(STALL_MS - 1);
	CHECK_EQ(stats_now().stalls, 0);
	CHECK_EQ(f.warnings, 0);
	look_after(1);
	CHECK_EQ(stats_now().stalls, 1);
	CHECK_EQ(f.warnings, 1);
	look_after(STALL_MS);
	look_after(10 * STALL_MS);
	CHECK_EQ(f.warnings, 1);
}

TEST(a_stuck_worker_is_reported_once)
{
	for (int compute = 0; compute < 2; compute++) {
		open_hive(2, 1);
		if (compute)
			CHECK_OK(hive_post_compute(f.hive, stay_for_long, NULL));
		else
			CHECK_OK(hive_post_to(f.hive, ids[1], stay_for_long, NULL));
		fake_settle(&f);
		CHECK_EQ(f.warnings, 1);
		CHECK(strstr(f.last_warning, compute ? "worker compute-0 is stuck for 50 ms in task "
		                                     : "worker io-1 is stuck for 50 ms in task "));
		fake_destroy(&f);
	}
}

static void stay(void *arg)
{
	(void)arg;
	look_after(0);
	look_after(STALL_MS);
}

/* The next task that is stuck is another one. */
TEST(each_stuck_task_is_reported)
{
	open_hive(1, 0);
	for (int i = 1; i <= 3; i++) {
		CHECK_OK(hive_post(f.hive, stay, NULL));
		CHECK_OK(hive_post(f.hive, stay, NULL)); /* in the same beat */
		fake_settle(&f);
		CHECK_EQ(stats_now().stalls, 2 * i);
	}
	fake_destroy(&f);
}

static void stay_briefly(void *arg)
{
	(void)arg;
	look_after(STALL_MS - 1);
}

/* Neither sleepers, nor who is between tasks, nor who has left or not begun. */
TEST(who_goes_on_or_sleeps_is_not_stuck)
{
	open_hive(2, 1);
	look_after(0);
	look_after(100 * STALL_MS);
	look_after(100 * STALL_MS);
	for (int i = 0; i < 10; i++) {
		CHECK_OK(hive_post_to(f.hive, ids[0], stay_briefly, NULL));
		fake_settle(&f);
	}
	CHECK_OK(hive_detach(f.hive, ids[1], HIVE_FOREVER));
	look_after(100 * STALL_MS);
	look_after(100 * STALL_MS);
	CHECK_OK(hive_attach(f.hive, NULL, NULL)); /* has not made a step yet */
	look_after(100 * STALL_MS);
	look_after(100 * STALL_MS);
	CHECK_EQ(f.warnings, 0);
	CHECK_EQ(stats_now().stalls, 0);
	fake_destroy(&f);
}

static void note(void *arg)
{
	++*(int *)arg;
	elsewhere += hive_worker_current() != stuck_on;
}

static int sum_runs(void)
{
	int sum = 0;

	for (int i = 0; i < POSTS; i++) {
		CHECK(runs[i] <= 1);
		sum += runs[i];
	}
	return sum;
}

/* Here: due posts among its timers, others on their way to it, one that is not due, one cancelled, and one that was asked for here. */
static void stay_with_posts(void *arg)
{
	uint64_t ids_of_posts[POSTS], later, cancelled;
	static int own;

	(void)arg;
	own = 0;
	stuck_on = hive_worker_current();
	CHECK_OK(hive_post_self_after(0, note, &own, NULL));
	for (int i = 0; i < POSTS; i++)
		CHECK_OK(hive_post_after(f.hive, HIVE_MS(1), note, &runs[i], &ids_of_posts[i]));
	CHECK_OK(hive_post_after(f.hive, HIVE_S(100), note, &own, &later));
	CHECK_OK(hive_post_after(f.hive, HIVE_MS(1), note, &own, &cancelled));
	CHECK_OK(hive_post_cancel(f.hive, cancelled));
	look_after(0);
	fake_step(&f, ids[0] == stuck_on ? ids[1] : ids[0]);
	look_after(STALL_MS);
	for (int i = 0; i < 8; i++)
		fake_step(&f, ids[0] == stuck_on ? ids[1] : ids[0]);
	CHECK_EQ(sum_runs(), POSTS); /* all of them, though this one is still here */
	CHECK_EQ(elsewhere, POSTS);
	CHECK(stats_now().rescued > 0);
	CHECK_EQ(own, 0);
	for (int i = 0; i < POSTS; i++)
		CHECK_ERR(hive_post_cancel(f.hive, ids_of_posts[i]), -ESRCH);
	CHECK_OK(hive_post_cancel(f.hive, later));
	look_after(STALL_MS);
}

/* Whoever is stuck, and wherever the posts were meant to go. fake_destroy() looks at the books. */
TEST(due_posts_of_a_stuck_worker_run_elsewhere_once)
{
	for (int stuck = 0; stuck < 2; stuck++) {
		for (int to = 0; to < 2; to++) {
			open_hive(2, 0);
			for (int i = 0; i < 6 * POSTS; i++)
				fake_push_random(&f, fake_random((uint32_t)to, 2));
			CHECK_OK(hive_post_to(f.hive, ids[stuck], stay_with_posts, NULL));
			fake_settle(&f);
			CHECK_EQ(sum_runs(), POSTS);
			fake_advance(&f, HIVE_S(200));
			CHECK_EQ(sum_runs(), POSTS);
			CHECK_EQ(stats_now().timers, 0);
			fake_destroy(&f);
		}
	}
}

static void wait_among_timers(void *arg)
{
	(void)arg;
	stuck_on = hive_worker_current();
	look_after(0);
	look_after(STALL_MS);
}

/* They are among its timers already, more than it takes for a sweep of what is dead. */
TEST(posts_among_its_timers_are_rescued)
{
	static int many[300];

	open_hive(2, 0);
	memset(many, 0, sizeof many);
	for (int i = 0; i < 300; i++)
		CHECK_OK(hive_post_after(f.hive, HIVE_MS(1), note, &many[i], NULL));
	CHECK_OK(hive_post_to(f.hive, ids[0], wait_among_timers, NULL));
	for (int i = 0; i < 4; i++)
		fake_step(&f, ids[0]);
	CHECK_EQ(stats_now().stalls, 1);
	CHECK(stats_now().rescued > 0);
	fake_settle(&f);
	for (int i = 0; i < 300; i++)
		CHECK_EQ(many[i], 1);
	CHECK_EQ(stats_now().timers, 0);
	fake_destroy(&f);
}

static bool ends;

static void stay_without_memory(void *arg)
{
	(void)arg;
	stuck_on = hive_worker_current();
	for (int i = 0; i < 10; i++)
		CHECK_OK(hive_post_after(f.hive, 0, note, &runs[i], NULL));
	look_after(0);
	f.fail_at = 1;
	f.allocations = 0;
	f.sticky = true;
	look_after(STALL_MS);
	look_after(STALL_MS);
	CHECK_EQ(stats_now().rescued, 1); /* and it waits for memory: the next ones stay where they are */
	f.fail_at = 0;
	if (ends)
		CHECK_OK(hive_stop(f.hive, HIVE_NOW, HIVE_FOREVER));
	look_after(STALL_MS);
	CHECK(ends ? stats_now().rescued == 1 : stats_now().rescued > 1);
	CHECK_EQ(f.drops, ends);
}

/* The pool has no memory: what was taken is neither lost nor run twice, and a stop finds it. */
TEST(without_memory_a_rescued_post_waits)
{
	for (int round = 0; round < 2; round++) {
		ends = round;
		open_hive(2, 0);
		for (int i = 0; i < 20; i++)
			fake_push_random(&f, fake_random(1, 2));
		CHECK_OK(hive_post_to(f.hive, ids[1], stay_without_memory, NULL));
		fake_step(&f, ids[1]);
		CHECK_EQ(stats_now().stalls, 1);
		if (!ends)
			fake_settle(&f);
		CHECK_EQ(sum_runs(), ends ? 0 : 10);
		fake_destroy(&f);
	}
}

/* Nobody else is there: it stays, in its order. */
TEST(alone_nothing_is_moved)
{
	open_hive(1, 0);
	for (int i = 0; i < 10; i++)
		CHECK_OK(hive_post_after(f.hive, 0, note, &runs[i], NULL));
	CHECK_OK(hive_post_to(f.hive, ids[0], stay, NULL));
	fake_settle(&f);
	CHECK_EQ(stats_now().stalls, 1);
	CHECK_EQ(stats_now().rescued, 0);
	CHECK_EQ(sum_runs(), 10);
	fake_destroy(&f);
}

TEST(it_is_off_unless_somebody_wants_it)
{
	struct hive *hive;

	CHECK_ERR(hive_create(&(struct hive_options){ .stall_ns = -2 }, &hive), -EINVAL);
	hive = real_create((struct hive_options){ .io_workers = 1, .stall_ns = HIVE_OFF });
	CHECK_EQ(hive->stall_ns, 0);
	CHECK_OK(hive_destroy(hive));
	hive = real_create((struct hive_options){ .io_workers = 1 });
#if defined(HIVE_DEBUG)
	CHECK_EQ(hive->stall_ns, HIVE_MS(100));
#else
	CHECK_EQ(hive->stall_ns, 0);
#endif
	CHECK_OK(hive_start(hive));
	CHECK_EQ(hive->monitor.has_thread, hive->stall_ns > 0);
	real_end(hive, HIVE_DRAIN);
}

/* ---- real threads ---- */

static pthread_mutex_t words_lock = PTHREAD_MUTEX_INITIALIZER;
static char words[16384];
static atomic_bool let_go;
static atomic_int entered, done;

static void warned(void *hook_arg, const char *text)
{
	(void)hook_arg;
	pthread_mutex_lock(&words_lock);
	if (strlen(words) + strlen(text) + 2 < sizeof words)
		strcat(strcat(words, text), "\n");
	pthread_mutex_unlock(&words_lock);
}

static bool was_said(const char *text)
{
	bool said;

	pthread_mutex_lock(&words_lock);
	said = strstr(words, text);
	pthread_mutex_unlock(&words_lock);
	return said;
}

static void wait_for_flag(void *arg)
{
	(void)arg;
	entered++;
	while (!let_go)
		sched_yield();
	done++;
}

static int wait_in_fiber(void *arg)
{
	wait_for_flag(arg);
	return 0;
}

static void count_done(void *arg)
{
	(void)arg;
	done++;
}

static struct hive *start_watched(void)
{
	words[0] = 0;
	let_go = false;
	entered = done = 0;
	return real_start((struct hive_options){
		.io_workers = 2, .compute_workers = 1, .stall_ns = HIVE_MS(5), .on_warn = warned });
}

/* With its stack, and what it holds is done by the other one while it waits. */
TEST(a_task_that_waits_for_a_flag)
{
	struct hive *hive = start_watched();
	uint32_t workers[3];

	CHECK_EQ(hive_workers(hive, workers, 3), 3);
	CHECK_OK(hive_post_to(hive, workers[1], wait_for_flag, NULL));
	WAIT_UNTIL(entered == 1);
	for (int i = 0; i < 50; i++)
		CHECK_OK(hive_post_after(hive, 0, count_done, NULL, NULL));
	WAIT_UNTIL(done == 50);
	WAIT_UNTIL(was_said("worker io-1 is stuck for "));
	CHECK_OK(hive_post_compute(hive, wait_for_flag, NULL));
	WAIT_UNTIL(was_said("worker compute-0 is stuck for "));
	let_go = true;
	WAIT_UNTIL(done == 52);
	real_end(hive, HIVE_DRAIN);
}

/* What it has in its queue, and what was placed there. */
static void hold_tasks(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++)
		CHECK_OK(hive_post_local(count_done, NULL));
	wait_for_flag(NULL);
}

TEST(queued_and_placed_tasks_of_a_stuck_worker_are_done_by_others)
{
	struct hive *hive = start_watched();
	struct worker *stuck;
	uint32_t workers[3];

	CHECK_EQ(hive_workers(hive, workers, 3), 3);
	CHECK_OK(hive_post_to(hive, workers[1], hold_tasks, NULL));
	WAIT_UNTIL(entered == 1 && done == 20);
	real_wait_asleep(hive, 2);
	stuck = hive__slot(&hive->io, 1);
	for (int i = 0; i < 20; i++) /* nobody is woken for these but by who watches */
		CHECK_OK(tray_put(&stuck->placed, (struct hive_task){ count_done, NULL }));
	WAIT_UNTIL(done == 40);
	let_go = true;
	WAIT_UNTIL(done == 41);
	real_end(hive, HIVE_DRAIN);
}

/* A fiber sleeps, and the worker that keeps its deadline is stuck when it is due: it goes on elsewhere. */
static _Atomic(uint32_t) slept_on, woke_on;

static int sleep_beside(void *arg)
{
	(void)arg;
	slept_on = hive_worker_current();
	CHECK_OK(hive_post_self(wait_for_flag, NULL));
	CHECK_OK(hive_sleep(HIVE_MS(10)));
	woke_on = hive_worker_current();
	return 0;
}

TEST(fibers_whose_deadline_is_kept_by_a_stuck_worker_go_on_elsewhere)
{
	struct hive *hive = start_watched();
	struct hive_stats stats;

	slept_on = woke_on = HIVE_WORKER_NONE;
	CHECK_OK(hive_spawn(hive, sleep_beside, NULL, NULL, NULL));
	WAIT_UNTIL(woke_on != HIVE_WORKER_NONE);
	CHECK_EQ(done, 0);
	CHECK(slept_on != woke_on);
	CHECK_OK(hive_stats_read(hive, &stats));
	CHECK(stats.rescued >= 1);
	let_go = true;
	WAIT_UNTIL(done == 1);
	real_end(hive, HIVE_DRAIN);
}

static void post_waiting(struct hive *hive)
{
	CHECK_OK(hive_post_compute(hive, wait_for_flag, NULL));
}

static void spawn_waiting(struct hive *hive)
{
	struct hive_fiber_options o = { .name = "dreamer" };

	CHECK_OK(hive_spawn(hive, wait_in_fiber, NULL, &o, NULL));
}

/* One after the other gets stuck until this was said of one: a thread that has no CPU when it is asked does not tell its stack. Nor does
 * ThreadSanitizer let it: it tells threads of signals when it likes. */
static void await_stack(void (*begin)(struct hive *hive), const char *text)
{
	struct hive *hive = start_watched();

	do {
		words[0] = 0;
		let_go = false;
		entered = done = 0;
		begin(hive);
		WAIT_UNTIL(entered == 1 && was_said(" is stuck for "));
		let_go = true;
		WAIT_UNTIL(done == 1);
	} while (!TEST_TSAN && !was_said(text));
	real_end(hive, HIVE_DRAIN);
}

static int depth_in_handler;

static void count_frames(int number)
{
	void *frames[8];

	(void)number;
	depth_in_handler = backtrace(frames, 8);
}

/* Not in every emulator. */
static bool handlers_see_stacks(void)
{
	struct sigaction own = { .sa_handler = count_frames }, before;

	CHECK_OK(sigaction(SIGUSR2, &own, &before));
	CHECK_OK(raise(SIGUSR2));
	CHECK_OK(sigaction(SIGUSR2, &before, NULL));
	return depth_in_handler > 4;
}

TEST(a_stuck_task_is_reported_with_its_stack)
{
	if (handlers_see_stacks())
		await_stack(post_waiting, "  #1 ");
	else
		test_skip("no stack can be seen behind a signal here");
}

/* Fibers have names, and functions of their own. */
TEST(a_stuck_fiber_is_reported_by_its_name)
{
	await_stack(spawn_waiting, "in fiber dreamer, ");
}

static void get_stuck(void)
{
	struct hive *hive = start_watched();

	post_waiting(hive);
	WAIT_UNTIL(was_said("worker compute-0 is stuck for "));
	let_go = true;
	real_end(hive, HIVE_DRAIN);
	CHECK(!was_said("  #0 "));
}

/* A system that does not let it ask: the report comes without a stack. */
TEST(a_report_does_without_a_stack)
{
	const long calls[] = { SYS_rt_tgsigqueueinfo };

	child_without(calls, 1, EPERM, get_stuck);
}

static atomic_int signals;

static void on_signal(int number)
{
	(void)number;
	signals++;
}

/* A handler that was there is called for what is not ours, and is there again afterwards. */
TEST(the_signal_is_shared)
{
	struct sigaction own = { .sa_handler = on_signal }, now;
	struct hive *hive;

	CHECK_OK(sigaction(SIGRTMAX - 3, &own, NULL));
	signals = 0;
	hive = start_watched();
	CHECK_OK(raise(SIGRTMAX - 3));
	CHECK_EQ(signals, 1);
	CHECK_OK(hive_post(hive, wait_for_flag, NULL));
	WAIT_UNTIL(was_said(" is stuck for "));
	let_go = true;
	real_end(hive, HIVE_DRAIN);
	CHECK_EQ(signals, 1);
	CHECK_OK(sigaction(SIGRTMAX - 3, NULL, &now));
	CHECK(now.sa_handler == on_signal);
}
