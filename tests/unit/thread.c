/* SPDX-License-Identifier: MIT */
/* Threads and what the system knows of them. */
#include "base/thread.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "support/child.h"
#include "support/plain.h"
#include "unit.h"

/* Runs fn(arg) on a new thread and waits for it. */
static void on_thread(hive_fn *fn, void *arg)
{
	uint64_t thread;

	CHECK_OK(hive__thread_start(fn, arg, &thread));
	hive__thread_join(thread);
}

static void set_flag(void *arg)
{
	*(int *)arg = 1;
}

TEST(started_thread_runs_once_with_its_argument)
{
	int flag = 0;

	on_thread(set_flag, &flag);
	CHECK_EQ(flag, 1);
}

static void keep_mask(void *arg)
{
	pthread_sigmask(SIG_SETMASK, NULL, arg);
}

TEST(new_thread_starts_with_all_signals_blocked)
{
	sigset_t mask;

	sigemptyset(&mask);
	on_thread(keep_mask, &mask);
	CHECK(sigismember(&mask, SIGTERM) && sigismember(&mask, SIGINT) && sigismember(&mask, SIGUSR1));
	CHECK(sigismember(&mask, SIGCHLD) && sigismember(&mask, SIGALRM));
}

TEST(starting_a_thread_leaves_the_callers_mask_alone)
{
	sigset_t before, after;
	int flag;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	on_thread(set_flag, &flag);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int i = 1; i < SIGRTMIN; i++)
		CHECK_EQ(sigismember(&before, i), sigismember(&after, i));
}

static void block_and_keep(void *arg)
{
	hive__thread_block_signals();
	keep_mask(arg);
}

TEST(blocking_spares_what_a_fault_raises)
{
	sigset_t mask;

	sigemptyset(&mask);
	on_thread(block_and_keep, &mask);
	CHECK(sigismember(&mask, SIGTERM) && sigismember(&mask, SIGINT) && sigismember(&mask, SIGHUP));
	CHECK(!sigismember(&mask, SIGSEGV) && !sigismember(&mask, SIGBUS) && !sigismember(&mask, SIGFPE));
	CHECK(!sigismember(&mask, SIGILL) && !sigismember(&mask, SIGABRT));
}

static void restore_and_keep(void *arg)
{
	sigset_t *masks = arg;

	hive__thread_restore_signals(&masks[0]);
	keep_mask(&masks[1]);
}

TEST(mask_saved_here_can_be_restored_there)
{
	sigset_t masks[2];

	sigfillset(&masks[1]);
	hive__thread_save_signals(&masks[0]);
	CHECK(!sigismember(&masks[0], SIGTERM));
	on_thread(restore_and_keep, masks);
	for (int i = 1; i < SIGRTMIN; i++)
		CHECK_EQ(sigismember(&masks[0], i), sigismember(&masks[1], i));
}

static void name_and_read(void *arg)
{
	hive__thread_name("a-name-that-is-too-long");
	prctl(PR_GET_NAME, arg);
}

TEST(name_is_seen_by_the_system_and_cut)
{
	char name[16] = "", own[16] = "";
	char before[16] = "";

	prctl(PR_GET_NAME, before);
	on_thread(name_and_read, name);
	prctl(PR_GET_NAME, own);
	CHECK_STR(name, "a-name-that-is-");
	CHECK_STR(own, before); /* of that thread only */
}

static void be_nice(void *arg)
{
	int *result = arg;

	result[0] = hive__thread_nice(result[0]);
	result[1] = getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid));
}

TEST(niceness_is_that_of_the_thread)
{
	int before = getpriority(PRIO_PROCESS, 0), nicer = before < 19 ? before + 1 : 19;
	int result[2] = { nicer, -1 };

	on_thread(be_nice, result);
	CHECK_OK(result[0]);
	CHECK_EQ(result[1], nicer);
	CHECK_EQ(getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid)), before);
}

static void be_nice_at_least(void *arg)
{
	int *result = arg;
	id_t self = (id_t)syscall(SYS_gettid);

	errno = EXDEV;
	hive__thread_nice_at_least(result[0]);
	result[1] = getpriority(PRIO_PROCESS, self);
	hive__thread_nice_at_least(result[0] - 1); /* nicer already */
	result[2] = getpriority(PRIO_PROCESS, self);
	CHECK_EQ(errno, EXDEV);
}

TEST(at_least_so_nice_and_never_less)
{
	int before = getpriority(PRIO_PROCESS, 0), nicer = before < 19 ? before + 1 : 19;
	int result[3] = { nicer, -1, -1 };

	on_thread(be_nice_at_least, result);
	CHECK_EQ(result[1], nicer);
	CHECK_EQ(result[2], nicer);
}

static void be_batch(void *arg)
{
	int *result = arg;

	result[0] = hive__thread_batch();
	result[1] = sched_getscheduler(0);
}

TEST(batch_policy_is_set)
{
	int result[2] = { -1, -1 };

	on_thread(be_batch, result);
	CHECK_OK(result[0]);
	CHECK_EQ(result[1], SCHED_BATCH);
	CHECK(sched_getscheduler(0) != SCHED_BATCH);
}

static void be_real_time(void *arg)
{
	int *result = arg;

	result[0] = hive__thread_realtime(1);
	result[1] = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

TEST(real_time_is_given_or_refused)
{
	int result[2] = { 1, -1 };

	on_thread(be_real_time, result);
	CHECK(result[0] == 0 || result[0] == -EPERM);
	CHECK_EQ(result[1] == SCHED_FIFO, result[0] == 0);
}

static void look_at_policy(void *arg)
{
	*(int *)arg = sched_getscheduler(0);
}

static void start_from_real_time(void *arg)
{
	struct thread_policy before = hive__thread_policy();
	int *result = arg;

	result[0] = hive__thread_realtime(1);
	on_thread(look_at_policy, &result[1]);
	hive__thread_restore_policy(before);
	result[2] = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

/* Else a worker of that kind would make all others so whom it attaches, and whole machines would stand still. */
TEST(real_time_is_not_inherited_and_can_be_put_back)
{
	int result[3] = { 1, -1, -1 };

	on_thread(start_from_real_time, result);
	CHECK(result[0] == 0 || result[0] == -EPERM);
	CHECK_EQ(result[1], SCHED_OTHER);
	CHECK_EQ(result[2], SCHED_OTHER);
	if (result[0] < 0)
		test_skip("no right to real-time priority");
}

static void ask_for_real_time(void *arg)
{
	int *result = arg;

	result[1] = hive__thread_realtime_if_allowed(1);
	result[2] = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

static void ask_when_nice(void *arg)
{
	int mine = getpriority(PRIO_PROCESS, 0);

	CHECK_OK(hive__thread_nice(mine > 7 ? mine : 7));
	ask_for_real_time(arg);
}

static void ask_under_a_limit(void)
{
	int result[3] = { 0 };

	limit_real_time();
	CHECK(hive__thread_is_timed());
	on_thread(ask_for_real_time, result);
	CHECK(!result[1]);
	CHECK_EQ(result[2], SCHED_OTHER);
}

static void ask_in_batch(void *arg)
{
	CHECK_OK(hive__thread_batch());
	ask_for_real_time(arg);
}

/* Who asks for it has it where who demands it has it; but a thread that was told to stand back does so. */
TEST(real_time_is_for_ordinary_threads_that_ask)
{
	int demand[2] = { 1, -1 }, plain[3] = { 0 }, nice[3] = { 0 }, batch[3] = { 0 };

	on_thread(be_real_time, demand);
	on_thread(ask_for_real_time, plain);
	on_thread(ask_when_nice, nice);
	on_thread(ask_in_batch, batch);
	CHECK_EQ(plain[1], demand[0] == 0 && is_plain());
	CHECK_EQ(plain[2], plain[1] ? SCHED_FIFO : SCHED_OTHER);
	CHECK(!nice[1] && !batch[1]);
	child_without(NULL, 0, 0, ask_under_a_limit);
	CHECK_EQ(nice[2], SCHED_OTHER);
	CHECK_EQ(batch[2], SCHED_BATCH);
	if (demand[0] < 0)
		test_skip("no right to real-time priority");
}

TEST(absurd_priority_is_refused)
{
	CHECK_ERR(hive__thread_realtime(10000), -EINVAL);
}

/* An allowed CPU to pin to. */
static uint16_t some_cpu(void)
{
	cpu_set_t set;

	CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
	for (uint16_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			return i;
	return 0;
}

static void pin_and_look(void *arg)
{
	int *result = arg;
	uint16_t cpu = some_cpu();
	cpu_set_t set;

	result[0] = hive__thread_pin(&cpu, 1);
	CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
	result[1] = CPU_COUNT(&set);
	result[2] = CPU_ISSET(cpu, &set);
	result[3] = hive__thread_cpu() == cpu;
}

TEST(pinned_thread_stays_where_it_is_told)
{
	int result[4] = { -1, -1, -1, -1 };

	on_thread(pin_and_look, result);
	CHECK_OK(result[0]);
	CHECK_EQ(result[1], 1);
	CHECK(result[2] && result[3]);
}

TEST(cpu_that_cannot_be_is_refused)
{
	uint16_t none = UINT16_MAX, offline = CPU_SETSIZE - 1;

	CHECK_ERR(hive__thread_pin(&none, 1), -EINVAL);
	CHECK_ERR(hive__thread_pin(&offline, 1), -EINVAL); /* by the system */
	CHECK_ERR(hive__thread_pin(NULL, 0), -EINVAL);
}

static void slack(void *arg)
{
	int64_t *result = arg;

	result[0] = hive__thread_timer_slack(12345);
	result[1] = hive__thread_timer_slack(50000);
	result[2] = prctl(PR_GET_TIMERSLACK);
}

TEST(timer_slack_returns_what_it_was)
{
	int64_t result[3] = { 0 };

	on_thread(slack, result);
	CHECK(result[0] > 0);
	CHECK_EQ(result[1], 12345);
	CHECK_EQ(result[2], 50000);
}

static void number(void *arg)
{
	uint64_t *result = arg;

	result[0] = hive__thread_number();
	result[1] = hive__thread_number();
}

TEST(number_stays_the_same_and_differs_between_threads)
{
	uint64_t own = hive__thread_number(), others[8][2];

	CHECK(own != 0);
	CHECK(own == hive__thread_number());
	for (int i = 0; i < 8; i++) {
		on_thread(number, others[i]);
		CHECK(others[i][0] == others[i][1]);
		CHECK(others[i][0] != own && others[i][0] != 0);
		for (int k = 0; k < i; k++)
			CHECK(others[i][0] != others[k][0]); /* not even after that one has ended */
	}
}

/* Lanes are chosen by the low bits. */
TEST(neighbours_differ_in_the_low_bits)
{
	uint64_t first[2], second[2];

	on_thread(number, first);
	on_thread(number, second);
	CHECK_EQ((uint32_t)second[0], (uint32_t)first[0] + 1);
}

TEST(own_thread_lives_and_one_that_ended_does_not)
{
	uint64_t other[2];

	CHECK(hive__thread_lives(hive__thread_number()));
	errno = EXDEV;
	on_thread(number, other);
	while (hive__thread_lives(other[0]))
		sched_yield(); /* joined a little before the kernel is done with it */
	CHECK_EQ(errno, EXDEV);
}

TEST(current_cpu_is_one_of_the_allowed)
{
	cpu_set_t set;

	CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
	for (int i = 0; i < 100; i++) {
		CHECK(CPU_ISSET(hive__thread_cpu(), &set));
		hive__thread_yield();
	}
}

static void step_aside(void *arg)
{
	int *result = arg;
	cpu_set_t before, after;

	CHECK_EQ(sched_getaffinity(0, sizeof before, &before), 0);
	result[0] = hive__thread_step_aside();
	CHECK_EQ(sched_getaffinity(0, sizeof after, &after), 0);
	result[1] = CPU_EQUAL(&before, &after);
	result[2] = CPU_COUNT(&before) > 1;
}

TEST(stepping_aside_leaves_the_affinity_as_it_was)
{
	int result[3];

	on_thread(step_aside, result);
	CHECK(result[1]);
	CHECK_EQ(result[0], result[2]);
}

static void step_aside_pinned(void *arg)
{
	uint16_t cpu = some_cpu();

	CHECK_OK(hive__thread_pin(&cpu, 1));
	*(int *)arg = hive__thread_step_aside();
}

TEST(thread_of_one_cpu_cannot_step_aside)
{
	int moved = 1;

	on_thread(step_aside_pinned, &moved);
	CHECK_EQ(moved, 0);
}
