/* SPDX-License-Identifier: MIT */
/* What every core owes its worker about waiting: how long, what ends it, and which system calls it costs. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "support/child.h"
#include "support/cores.h"

static int64_t turn_for(struct rig *r, int64_t timeout_ns)
{
	int64_t began = hive__clock_now();

	rig_turn(r, timeout_ns);
	return hive__clock_now() - began;
}

static void (*silently)(struct rig *r);

static void check_beside_source(struct rig *r)
{
	struct ear ear;
	int fds[2];

	make_pipe(fds);
	ear_start(&ear, fds[0], HIVE_EVENT_IN);
	silently(r);
	CHECK_EQ(ear.heard, 0);
	ear_stop(&ear);
	close_both(fds);
}

/* A core that has nothing to hear may wait elsewhere than one that has: so once without any source, and once with one that is silent. */
static void each_core_both_ways(void (*check)(struct rig *r))
{
	each_core(check);
	silently = check;
	each_core(check_beside_source);
}

/* ---- how long ---- */

static void check_not_early(struct rig *r)
{
	static const int64_t waits[] = {
		1, 999, HIVE_US(50), HIVE_US(999), HIVE_MS(1), HIVE_MS(1) + 1, HIVE_MS(7) + 3
	};

	for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
		CHECK(turn_for(r, waits[i]) >= waits[i]);
}

/* it waits as long as it was told, never less: a timer would come early, or be waited for in circles. */
TEST(a_wait_is_never_too_short)
{
	each_core_both_ways(check_not_early);
}

static void check_extremes(struct rig *r)
{
	static const int64_t waits[] = { HIVE_FOREVER, HIVE_FOREVER - 1, HIVE_S(4000000), HIVE_MS(INT32_MAX) + 1 };

	for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
		r->ops->wake(r->core);
		rig_turn(r, waits[i]);
	}
	CHECK(turn_for(r, 0) < HIVE_S(5)); /* 0 is not at all */
}

/* waits of any length are possible: no limit of the system's is overrun. */
TEST(waits_of_any_length_can_be_asked_for)
{
	each_core_both_ways(check_extremes);
}

enum { CUT_SHORT = 20 };

/* So many waits in a row, each ended by an event. */
static void cut_waits_short(struct rig *r, struct ear *ear, int fd, int64_t timeout_ns)
{
	for (int i = 0; i < CUT_SHORT; i++) {
		int heard = ear->heard;

		put_byte(fd);
		rig_turn(r, timeout_ns);
		CHECK_EQ(ear->heard, heard + 1);
	}
}

static void take_heard(struct ear *ear)
{
	take_byte((int)ear->source.handle);
}

static void *put_later(void *arg)
{
	CHECK(usleep(30000) ==
	      0); /* longer than what the core has been told before; too soon would show nothing, and harm nothing */
	put_byte(*(int *)arg);
	return NULL;
}

static void check_busy(struct rig *r)
{
	pthread_t thread;
	struct ear ear;
	int fds[2];

	make_pipe(fds);
	ear_start(&ear, fds[0], HIVE_EVENT_IN);
	ear.then = take_heard;
	cut_waits_short(r, &ear, fds[1], HIVE_S(3600));
	CHECK(turn_for(r, HIVE_MS(3)) >= HIVE_MS(3)); /* nearer than what was waited for before: it ends all the same */
	CHECK(turn_for(r, HIVE_MS(3)) >= HIVE_MS(3));
	cut_waits_short(r, &ear, fds[1], HIVE_MS(10));
	CHECK(turn_for(r, HIVE_MS(40)) >= HIVE_MS(40)); /* farther: it is not ended by the others' end */
	cut_waits_short(r, &ear, fds[1], HIVE_MS(10));
	CHECK_EQ(pthread_create(&thread, NULL, put_later, &fds[1]), 0);
	rig_turn(r, HIVE_FOREVER);
	CHECK_EQ(ear.heard, 3 * CUT_SHORT + 1);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	ear_stop(&ear);
	close_both(fds);
}

/* where events come all the time too, and ends of waits are kept from one to the next. */
TEST(waits_that_are_cut_short_leave_nothing_to_the_next)
{
	each_core(check_busy);
}

/* ---- being woken ---- */

static void check_wake_first(struct rig *r)
{
	struct ear ear;
	int fds[2];

	r->ops->wake(
		r->core); /* the very first turn of a new core, with no source: the waker is there from the start */
	rig_turn(r, HIVE_FOREVER);
	make_pipe(fds);
	ear_start(&ear, fds[0], HIVE_EVENT_IN);
	r->ops->wake(r->core);
	rig_turn(r, HIVE_FOREVER);
	CHECK_EQ(ear.heard, 0); /* a wake is no event of anybody's */
	put_byte(fds[1]);
	r->ops->wake(r->core);
	rig_turn(r, HIVE_FOREVER);
	CHECK_EQ(ear.heard, 1); /* both at once: the event is not lost */
	ear_stop(&ear);
	close_both(fds);
}

/* a wake before the turn makes the next one return at once. */
TEST(a_wake_before_the_turn_makes_it_return_at_once)
{
	each_core(check_wake_first);
}

static void check_coalesce(struct rig *r)
{
	for (int i = 0; i < 1000; i++)
		r->ops->wake(r->core);
	rig_turn(r, HIVE_FOREVER);
	CHECK(turn_for(r, HIVE_MS(5)) >= HIVE_MS(5)); /* all thousand were consumed by one */
}

/* wakes coalesce; the waker consumes its signal, and the next turn waits again. */
TEST(many_wakes_before_a_turn_count_as_one)
{
	each_core_both_ways(check_coalesce);
}

enum { WAKERS = 4, WAKES_EACH = 2000 };
static _Atomic(int) wakers_left;
static struct rig *the_rig;

static void *wake_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < WAKES_EACH; i++)
		the_rig->ops->wake(the_rig->core);
	atomic_fetch_sub(&wakers_left, 1);
	the_rig->ops->wake(the_rig->core); /* after the count, so the loop below sees it */
	return NULL;
}

static void check_wakers(struct rig *r)
{
	pthread_t threads[WAKERS];

	the_rig = r;
	atomic_store(&wakers_left, WAKERS);
	for (int i = 0; i < WAKERS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, wake_often, NULL), 0);
	while (atomic_load(&wakers_left) > 0)
		rig_turn(r, HIVE_FOREVER); /* a wake that got lost would leave us here */
	for (int i = 0; i < WAKERS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

/* waking is for any thread at any time, and none is lost on a turn that is about to block. */
TEST(wakes_from_many_threads_are_never_lost)
{
	each_core_both_ways(check_wakers);
}

/* What a core knows grows while others wake it. */
static void check_growth(struct rig *r)
{
	enum { SOURCES = 200 };
	static struct ear ears[SOURCES];
	static int fds[SOURCES][2];
	pthread_t thread;

	the_rig = r;
	atomic_store(&wakers_left, 1);
	CHECK_EQ(pthread_create(&thread, NULL, wake_often, NULL), 0);
	for (int i = 0; i < SOURCES; i++) {
		make_pipe(fds[i]);
		ear_start(&ears[i], fds[i][0], HIVE_EVENT_IN);
		rig_turn(r, 0);
	}
	while (atomic_load(&wakers_left) > 0)
		rig_turn(r, HIVE_FOREVER);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	for (int i = 0; i < SOURCES; i++) {
		CHECK_EQ(ears[i].heard, 0);
		ear_stop(&ears[i]);
		close_both(fds[i]);
	}
}

TEST(a_core_is_woken_while_it_grows)
{
	each_core(check_growth);
}

static void check_wake_before_first_source(struct rig *r)
{
	struct ear ear;
	int fds[2];

	make_pipe(fds);
	r->ops->wake(r->core);
	ear_start(&ear, fds[0], HIVE_EVENT_IN);
	rig_turn(r, HIVE_FOREVER); /* a wake that got lost would leave us here */
	CHECK_EQ(ear.heard, 0);
	ear_stop(&ear);
	close_both(fds);
}

/* Who sleeps elsewhere once there is something to hear takes a wake along. */
TEST(a_wake_before_the_first_source_counts_after_it)
{
	each_core(check_wake_before_first_source);
}

static _Atomic(bool) signalled, interrupted;

static void on_signal(int number_of_signal)
{
	(void)number_of_signal;
	atomic_store(&signalled, true);
}

/* Again and again, since the first may come before the wait; but who is sent the next one before the handler of the last has ended never
 * gets out of handlers.                                                                                                    */
static void *interrupt(void *arg)
{
	while (!atomic_load(&interrupted)) {
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return NULL;
}

static void check_signal(struct rig *r)
{
	struct sigaction action = { .sa_handler = on_signal }, before;
	pthread_t self = pthread_self(), thread;

	CHECK_OK(sigaction(SIGUSR1, &action, &before));
	for (int i = 0; i < 2; i++) {
		atomic_store(&signalled, false);
		atomic_store(&interrupted, false);
		CHECK_EQ(pthread_create(&thread, NULL, interrupt, &self), 0);
		do
			rig_turn(r, i ? HIVE_S(3600) : HIVE_FOREVER); /* checks that the answer is 0 */
		while (!atomic_load(&signalled));
		atomic_store(&interrupted, true);
		CHECK_EQ(pthread_join(thread, NULL), 0);
	}
	CHECK_OK(sigaction(SIGUSR1, &before, NULL));
}

/* a signal may end the wait early, and is no error. */
TEST(a_signal_is_no_error)
{
	each_core_both_ways(check_signal);
}

/* ---- system calls ---- */

static const long waiting_calls[] = {
#if defined(SYS_epoll_wait)
	SYS_epoll_wait,  SYS_poll,
#endif
	SYS_epoll_pwait, SYS_epoll_pwait2, SYS_ppoll, SYS_read, SYS_io_uring_enter, SYS_futex
};

enum { NO_FILTER = 77 };

/* What becomes of a child that may not wait and turns the core without patience; its wait status. */
static int turn_without_calls(struct rig *r)
{
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		if (!filter_system_calls(waiting_calls, sizeof waiting_calls / sizeof *waiting_calls, 0))
			_exit(NO_FILTER);
		for (int i = 0; i < 1000; i++)
			r->ops->turn(r->core, 0);
		syscall(SYS_exit_group, 0); /* not _exit(): in a build that counts coverage that one reads a file */
	}
	while (waitpid(child, &status, 0) < 0)
		CHECK_EQ(errno, EINTR);
	return status;
}

static void check_no_calls(struct rig *r)
{
	struct ear ear;
	int fds[2], status;

	if (rig_is_foreign(r))
		return;
	status = turn_without_calls(r);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTER) {
		test_skip("this kernel gives us no seccomp");
		return;
	}
	CHECK_EQ(status, 0);
	make_pipe(fds);
	ear_start(&ear, fds[0], HIVE_EVENT_IN);
	status = turn_without_calls(r); /* and with a source it must look: the filter would have caught it */
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	ear_stop(&ear);
	CHECK_EQ(turn_without_calls(r), 0);
	close_both(fds);
}

/* the look at the system in every busy beat costs nothing when there is nothing to look at. */
TEST(a_turn_without_sources_and_without_time_makes_no_system_call)
{
	each_core(check_no_calls);
}

static void check_old_kernel(struct rig *r)
{
	static const int64_t waits[] = { 1, HIVE_US(999), HIVE_MS(1) + 1, HIVE_MS(2) };
	const long calls[] = { SYS_epoll_pwait2 };
	int status = 0;
	pid_t child;

	if (rig_is(r, "uring"))
		return; /* has one kind of wait, and a child may not use the ring of its parent */
	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		if (!filter_system_calls(calls, 1, ENOSYS))
			_exit(NO_FILTER);
		for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
			if (turn_for(r, waits[i]) < waits[i])
				_exit(1);
		r->ops->wake(r->core);
		r->ops->turn(r->core, HIVE_S(100000000)); /* more milliseconds than an int can hold */
		_exit(0);
	}
	while (waitpid(child, &status, 0) < 0)
		CHECK_EQ(errno, EINTR);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTER)
		test_skip("this kernel gives us no seccomp");
	else
		CHECK_EQ(status, 0);
}

static void be_busy(void)
{
	each_core(check_busy);
}

/* Without a timer that stays, each wait has its own. */
TEST(a_core_that_gets_no_timer_waits_as_long_as_it_is_told)
{
	const long calls[] = { SYS_timerfd_create };

	child_without(calls, 1, EMFILE, be_busy);
}

/* a kernel without the fine wait gives milliseconds, rounded up: late, never early, never too large. */
TEST(kernels_without_the_fine_wait_are_late_and_never_early)
{
	each_core_both_ways(check_old_kernel);
}
