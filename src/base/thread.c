/* SPDX-License-Identifier: MIT */
#include "base/thread.h"

#include "base/atomic.h"
#include "base/futex.h"
#include "base/quiet.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *trampoline_in(void *arg)
{
	struct thread_start start = *(struct thread_start *)arg;

	start.main(start.arg);
	return NULL;
}

static void *trampoline(void *arg)
{
	struct thread_start start = *(struct thread_start *)arg;

	free(arg);
	start.main(start.arg);
	return NULL;
}

/* The new thread inherits the mask of the moment, so no signal can hit it before it has set its own. */
static int start_thread(void *(*main)(void *arg), void *arg, uint64_t *ret_thread)
{
	sigset_t all, old;
	pthread_t thread;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, NULL, main, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r == 0)
		*ret_thread = (uint64_t)thread;
	return -r;
}

int hive__thread_start_in(struct thread_start *start, hive_fn *main, void *main_arg, uint64_t *ret_thread)
{
	start->main = main;
	start->arg = main_arg;
	return start_thread(trampoline_in, start, ret_thread);
}

int hive__thread_start(hive_fn *main, void *main_arg, uint64_t *ret_thread)
{
	struct thread_start *start = malloc(sizeof *start);
	int r;

	if (!start)
		return -ENOMEM;
	start->main = main;
	start->arg = main_arg;
	r = start_thread(trampoline, start, ret_thread);
	if (r < 0)
		free(start);
	return r;
}

void hive__thread_join(uint64_t thread)
{
	pthread_join((pthread_t)thread, NULL);
}

void hive__thread_name(const char *name)
{
	prctl(PR_SET_NAME, name); /* the kernel cuts it at 15 bytes */
}

int hive__thread_pin(const uint16_t *cpus, size_t count)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (size_t i = 0; i < count; i++) {
		if (cpus[i] >= CPU_SETSIZE)
			return -EINVAL;
		CPU_SET(cpus[i], &set);
	}
	return sched_setaffinity(0, sizeof set, &set) < 0 ? -errno : 0;
}

int hive__thread_nice(int nice)
{
	return setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), nice) < 0 ? -errno : 0;
}

void hive__thread_nice_at_least(int nice)
{
	id_t self = (id_t)syscall(SYS_gettid);
	int saved = errno;

	if (getpriority(PRIO_PROCESS, self) < nice)
		setpriority(PRIO_PROCESS, self, nice);
	errno = saved;
}

struct scheduling { /* struct sched_attr of the kernel, which older headers do not have */
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};
enum { RESET_ON_FORK = 1 }; /* one of its flags */

void hive__thread_slices(int64_t slice_ns)
{
	struct scheduling s = { .size = sizeof s };
	int saved = errno;

	if (syscall(SYS_sched_getattr, 0, &s, sizeof s, 0) == 0 && s.policy == SCHED_OTHER) {
		s.size = sizeof s;
		s.runtime = (uint64_t)slice_ns;
		syscall(SYS_sched_setattr, 0, &s, 0);
	}
	errno = saved;
}

int hive__thread_realtime(int priority)
{
	struct sched_param param = { .sched_priority = priority };

	return sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) < 0 ? -errno : 0;
}

/* Who runs for longer than such a limit is killed: that must be somebody's own wish. */
bool hive__thread_is_timed(void)
{
	struct rlimit limit = { 0 };
	int saved = errno;
	bool is_known = getrlimit(RLIMIT_RTTIME, &limit) == 0;

	errno = saved;
	return !is_known || limit.rlim_cur != RLIM_INFINITY;
}

bool hive__thread_realtime_if_allowed(int priority)
{
	struct scheduling s = { .size = sizeof s };
	int saved = errno;
	bool plain = syscall(SYS_sched_getattr, 0, &s, sizeof s, 0) == 0 && s.policy == SCHED_OTHER && s.nice <= 0 &&
	             !hive__thread_is_timed();
	bool given = plain && hive__thread_realtime(priority) == 0;

	errno = saved;
	return given;
}

struct thread_policy hive__thread_policy(void)
{
	struct scheduling s = { .size = sizeof s, .policy = SCHED_OTHER };
	int saved = errno;

	syscall(SYS_sched_getattr, 0, &s, sizeof s, 0); /* where it is not known, nothing is written */
	errno = saved;
	return (struct thread_policy){ (int)s.policy | (s.flags & RESET_ON_FORK ? SCHED_RESET_ON_FORK : 0),
		                       (int)s.priority };
}

/* That those it starts are ordinary again cannot be taken back without a privilege. */
void hive__thread_restore_policy(struct thread_policy before)
{
	struct sched_param param = { .sched_priority = before.priority };
	int saved = errno;

	if (sched_setscheduler(0, before.policy, &param) < 0)
		sched_setscheduler(0, before.policy | SCHED_RESET_ON_FORK, &param);
	errno = saved;
}

int hive__thread_batch(void)
{
	struct sched_param param = { 0 };

	return sched_setscheduler(0, SCHED_BATCH, &param) < 0 ? -errno : 0;
}

void hive__thread_ordinary(void)
{
	struct sched_param param = { 0 };
	int saved = errno;

	hive__thread_slices(0);
	if (sched_getscheduler(0) != SCHED_OTHER)
		sched_setscheduler(0, SCHED_OTHER, &param);
	prctl(PR_SET_TIMERSLACK, 50000UL); /* what the system begins with */
	errno = saved;
}

static void faults(sigset_t *set)
{
	static const int raised_by_code[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF };

	sigemptyset(set);
	for (size_t i = 0; i < sizeof raised_by_code / sizeof *raised_by_code; i++)
		sigaddset(set, raised_by_code[i]);
}

void hive__thread_block_signals(void)
{
	sigset_t all, keep;

	sigfillset(&all);
	faults(&keep);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	pthread_sigmask(SIG_UNBLOCK, &keep, NULL);
	hive__quiet_always();
}

void hive__thread_unblock_signal(int number)
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, number);
	pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

void hive__thread_save_signals(sigset_t *ret_mask)
{
	pthread_sigmask(SIG_SETMASK, NULL, ret_mask);
}

void hive__thread_restore_signals(const sigset_t *mask)
{
	pthread_sigmask(SIG_SETMASK, mask, NULL);
}

int64_t hive__thread_timer_slack(int64_t slack_ns)
{
	int saved = errno;
	int64_t old = prctl(PR_GET_TIMERSLACK); /* an int: not to be had if it is larger */

	if (old > 0 && slack_ns > 0)
		prctl(PR_SET_TIMERSLACK, (unsigned long)slack_ns);
	errno = saved;
	return old;
}

__thread uint64_t hive__thread_own_number __attribute__((tls_model("initial-exec")));

/* The system's thread id, by which we can ask whether it lives, is used again after its death; the count is not. */
uint64_t hive__thread_give_number(void)
{
	static ATOMIC(uint32_t) count;

	hive__thread_own_number = (uint64_t)syscall(SYS_gettid) << 32 | (add_relaxed(&count, 1u) + 1);
	return hive__thread_own_number;
}

uint32_t hive__thread_system_number(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

bool hive__thread_lives(uint64_t number)
{
	int saved = errno;
	bool lives = syscall(SYS_tgkill, getpid(), (pid_t)(number >> 32), 0) == 0 || errno != ESRCH;

	errno = saved;
	return lives;
}

uint32_t hive__thread_cpu(void)
{
	int cpu = sched_getcpu();

	return cpu < 0 ? 0 : (uint32_t)cpu;
}

void hive__thread_yield(void)
{
	sched_yield();
}

void hive__thread_give_way(uint32_t tries)
{
	static ATOMIC(uint32_t) nothing; /* nobody changes it, nobody wakes */

	if (tries < 16)
		sched_yield();
	else
		hive__futex_wait(&nothing, 0, 50000);
}

bool hive__thread_step_aside(void)
{
	cpu_set_t all, others;

	if (sched_getaffinity(0, sizeof all, &all) < 0)
		return false;
	others = all;
	CPU_CLR(hive__thread_cpu(), &others);
	if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) < 0)
		return false;
	sched_setaffinity(0, sizeof all, &all);
	return true;
}

void hive__thread_move_to(uint32_t cpu)
{
	cpu_set_t all, one;

	if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof all, &all) < 0 || !CPU_ISSET(cpu, &all))
		return;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof one, &one) == 0)
		sched_setaffinity(0, sizeof all, &all);
}

char *hive__thread_stack_low(void)
{
	pthread_attr_t attributes;
	size_t bytes;
	void *low;

	if (pthread_getattr_np(pthread_self(), &attributes) != 0)
		return NULL;
	if (pthread_attr_getstack(&attributes, &low, &bytes) != 0)
		low = NULL;
	pthread_attr_destroy(&attributes);
	return (char *)low;
}
