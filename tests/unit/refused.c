/* SPDX-License-Identifier: MIT */
/* What the ground does when the system says no. */
#include <sched.h>
#include <sys/resource.h>

#include "base/cpus.h"
#include "base/forkmark.h"
#include "base/thread.h"
#include "support/child.h"
#include "unit.h"

static void never(void *arg)
{
	(void)arg;
	test_fail(__FILE__, __LINE__, "this thread must not exist");
}

static void start_in_vain(void)
{
	sigset_t before, after;
	uint64_t thread = 7;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	CHECK_ERR(hive__thread_start(never, NULL, &thread), -EAGAIN);
	CHECK_EQ(thread, 7);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int i = 1; i < SIGRTMIN; i++)
		CHECK_EQ(sigismember(&before, i), sigismember(&after, i));
}

TEST(thread_that_the_system_refuses_is_reported_and_the_mask_is_as_before)
{
	child_without_calls(EAGAIN, start_in_vain, SYS_clone, SYS_clone3);
}

static void start_without_memory(void)
{
	struct rlimit before, none;
	void *volatile block = &none;
	uint64_t thread = 7;
	int r;

	CHECK_OK(getrlimit(RLIMIT_AS, &before));
	none = before;
	none.rlim_cur = 0;
	CHECK_OK(setrlimit(RLIMIT_AS, &none));
	for (int i = 0; block && i < 1000000; i++) /* what the allocator still has */
		block = malloc(sizeof block);
	r = hive__thread_start(never, NULL, &thread);
	CHECK_OK(setrlimit(RLIMIT_AS, &before));
	CHECK_ERR(r, -ENOMEM);
	CHECK_EQ(thread, 7);
}

TEST(thread_that_finds_no_memory_is_refused)
{
	if (test_slowness() > 1)
		printf("skipped: the allocator of this build ends the program instead\n");
	else
		child_without(NULL, 0, ENOMEM, start_without_memory);
}

static void schedule_in_vain(void)
{
	CHECK_ERR(hive__thread_nice(3), -EPERM);
	CHECK_ERR(hive__thread_batch(), -EPERM);
	CHECK_ERR(hive__thread_realtime(1), -EPERM);
	errno = EXDEV;
	CHECK(!hive__thread_realtime_if_allowed(1));
	hive__thread_nice_at_least(19); /* a wish, not a demand */
	CHECK_EQ(errno, EXDEV);
}

TEST(priority_that_the_system_refuses_is_reported)
{
	child_without_calls(EPERM, schedule_in_vain, SYS_setpriority, SYS_sched_setscheduler);
}

static void slices_in_vain(void)
{
	errno = EXDEV;
	hive__thread_slices(100000);
	CHECK_EQ(errno, EXDEV);
	CHECK_EQ(sched_getscheduler(0), SCHED_OTHER);
}

TEST(short_slices_are_a_wish_that_old_kernels_ignore)
{
	child_without_calls(ENOSYS, slices_in_vain, SYS_sched_getattr);
	child_without_calls(EINVAL, slices_in_vain, SYS_sched_setattr);
}

/* What the kernel says of the calling thread: policy, niceness, slice and more. */
static void ask_kernel(uint64_t ret_attributes[6])
{
	memset(ret_attributes, 0, 6 * sizeof *ret_attributes);
	CHECK_OK(syscall(SYS_sched_getattr, 0, ret_attributes, 6 * sizeof *ret_attributes, 0));
}

static void slices_of_batch(void *arg)
{
	uint64_t before[6], after[6];

	(void)arg;
	CHECK_OK(hive__thread_batch());
	ask_kernel(before);
	hive__thread_slices(100000);
	ask_kernel(after);
	CHECK_EQ(sched_getscheduler(0), SCHED_BATCH);
	CHECK_EQ(memcmp(before, after, sizeof before), 0);
}

TEST(short_slices_leave_a_thread_of_another_policy_alone)
{
	uint64_t thread;

	CHECK_OK(hive__thread_start(slices_of_batch, NULL, &thread));
	hive__thread_join(thread);
}

static cpu_set_t own_cpus(void)
{
	cpu_set_t set;

	CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
	return set;
}

static void move_in_vain(void)
{
	cpu_set_t before = own_cpus(), after;
	uint32_t cpu = hive__thread_cpu();

	CHECK(!hive__thread_step_aside());
	hive__thread_move_to(cpu);
	after = own_cpus();
	CHECK(CPU_EQUAL(&before, &after));
}

TEST(thread_that_may_not_move_stays_with_its_affinity)
{
	child_without_calls(EPERM, move_in_vain, SYS_sched_setaffinity);
}

static void move_blindly(void)
{
	CHECK(!hive__thread_step_aside());
	hive__thread_move_to(hive__thread_cpu());
	CHECK(hive__cpus_allowed() >= 1); /* the number of CPUs that are there stands in */
}

TEST(without_its_affinity_a_thread_stays_and_all_cpus_count)
{
	child_without_calls(ENOSYS, move_blindly, SYS_sched_getaffinity);
}

/* Not the one given by the argument; CPU_SETSIZE: there is none. */
static uint32_t forbidden_cpu(const cpu_set_t *allowed)
{
	uint32_t cpu = 0;

	while (cpu < CPU_SETSIZE && CPU_ISSET(cpu, allowed))
		cpu++;
	return cpu;
}

TEST(moving_leaves_the_affinity_as_it_was_and_asks_for_no_foreign_cpu)
{
	cpu_set_t before = own_cpus(), after;
	const uint32_t to[] = { hive__thread_cpu(), forbidden_cpu(&before), CPU_SETSIZE, UINT32_MAX };

	for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
		hive__thread_move_to(to[i]);
		after = own_cpus();
		CHECK(CPU_EQUAL(&before, &after));
	}
}

TEST(without_a_list_of_groups_affinity_alone_counts)
{
	struct rlimit before, none;
	cpu_set_t set = own_cpus();
	int32_t cpus;

	CHECK_OK(getrlimit(RLIMIT_NOFILE, &before));
	none = before;
	none.rlim_cur = 0; /* no file can be opened */
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &none));
	cpus = hive__cpus_allowed();
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &before));
	CHECK_EQ(cpus, CPU_COUNT(&set));
}
