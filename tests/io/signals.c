/* SPDX-License-Identifier: MIT */
/* Signals: waited for by fibers and threads, kept while nobody waits, given back when nobody wants them. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include "base/atomic.h"
#include "support/child.h"
#include "support/net.h"
#include "support/wipe.h"

static const int usr1[] = { SIGUSR1 }, usr2[] = { SIGUSR2 }, both[] = { SIGUSR1, SIGUSR2 };
static ATOMIC(int) handled;

static void count(int number)
{
	(void)number;
	add_relaxed(&handled, 1);
}

static void send_it(int number)
{
	CHECK_OK(kill(getpid(), number));
}

static void set_handler(int number, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	CHECK_OK(sigaction(number, &action, NULL));
}

static bool has_handler(int number, void (*handler)(int))
{
	struct sigaction action;

	CHECK_OK(sigaction(number, NULL, &action));
	return action.sa_handler == handler;
}

static void mask(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
		sigaddset(&set, number);
	CHECK_OK(pthread_sigmask(how, &set, NULL));
}

/* Blocked in every thread of the program. */
static void each_blocked(hive_fiber_fn *fn)
{
	mask(SIG_BLOCK);
	net_each(fn);
	mask(SIG_UNBLOCK);
	CHECK(has_handler(SIGUSR1, SIG_DFL) && has_handler(SIGUSR2, SIG_DFL)); /* the hive is gone */
}

/* ---- waiting ---- */

static int kept(void *arg)
{
	int64_t began = hive_now(NULL);

	(void)arg;
	CHECK_ERR(hive_signal_wait(both, 2, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(hive_signal_wait(both, 2, began + HIVE_MS(3)), -ETIMEDOUT);
	CHECK(hive_now(NULL) >= began + HIVE_MS(3));
	send_it(SIGUSR2);
	CHECK_EQ(hive_signal_wait(both, 2, HIVE_FOREVER), SIGUSR2);
	send_it(SIGUSR1);
	send_it(SIGUSR2);
	CHECK_EQ(hive_signal_wait(usr2, 1, HIVE_FOREVER), SIGUSR2);
	CHECK_EQ(hive_signal_wait(usr1, 1, HIVE_FOREVER), SIGUSR1);
	CHECK_ERR(hive_signal_wait(both, 2, HIVE_NOWAIT), -ETIMEDOUT);
	return 0;
}

TEST(a_signal_is_kept_until_somebody_waits)
{
	each_blocked(kept);
	mask(SIG_BLOCK);
	CHECK_EQ(kept(NULL), 0); /* a thread of its own may do the same */
	CHECK_OK(hive_signal_unwatch(both, 2));
	mask(SIG_UNBLOCK);
}

static int wait_for(void *arg)
{
	return hive_signal_wait((const int *)arg, 1, HIVE_FOREVER);
}

static int wait_for_either(void *arg)
{
	(void)arg;
	return hive_signal_wait(both, 2, HIVE_FOREVER);
}

static int different(void *arg)
{
	struct hive_fiber *one, *other;

	(void)arg;
	CHECK_OK(hive_signal_watch(both, 2));
	CHECK_OK(hive_signal_watch(both, 2)); /* again is nothing */
	one = net_spawn(wait_for, (void *)(uintptr_t)usr1);
	other = net_spawn(wait_for, (void *)(uintptr_t)usr2);
	send_it(SIGUSR2);
	CHECK_EQ(net_join(other), SIGUSR2);
	send_it(SIGUSR1);
	CHECK_EQ(net_join(one), SIGUSR1);
	one = net_spawn(wait_for_either, NULL);
	other = net_spawn(wait_for_either, NULL);
	CHECK_OK(hive_yield());
	send_it(SIGUSR1);
	send_it(SIGUSR2);
	CHECK_EQ(net_join(one) + net_join(other), SIGUSR1 + SIGUSR2);
	return 0;
}

TEST(each_fiber_gets_what_it_waits_for)
{
	each_blocked(different);
}

struct crowd {
	int number;
	ATOMIC(int) got;
	ATOMIC(bool) over;
};

static int get_one(void *arg)
{
	struct crowd *crowd = (struct crowd *)arg;
	int number = hive_signal_wait(&crowd->number, 1, HIVE_FOREVER);

	add_relaxed(&crowd->got, 1);
	return number;
}

/* One that waits gets it, and until then there is no other one. */
static void send_to(struct crowd *crowd, int count_then)
{
	send_it(crowd->number);
	while (load_relaxed(&crowd->got) < count_then)
		CHECK_OK(hive_yield());
}

static int one_each(void *arg)
{
	struct crowd crowd = { .number = SIGUSR1 };
	struct hive_fiber *fibers[8];

	(void)arg;
	CHECK_OK(hive_signal_watch(usr1, 1));
	for (int i = 0; i < 8; i++)
		fibers[i] = net_spawn(get_one, &crowd);
	for (int i = 0; i < 8; i++)
		send_to(&crowd, i + 1);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(net_join(fibers[i]), SIGUSR1);
	CHECK_ERR(hive_signal_wait(usr1, 1, hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT);
	return 0;
}

TEST(one_signal_ends_one_wait)
{
	each_blocked(one_each);
}

/* Those that the system queues are counted. */
static int queued(void *arg)
{
	int number = SIGRTMIN + 1;

	(void)arg;
	CHECK_OK(hive_signal_watch(&number, 1));
	for (int i = 0; i < 100; i++)
		send_it(number);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(hive_signal_wait(&number, 1, HIVE_FOREVER), number);
	CHECK_ERR(hive_signal_wait(&number, 1, hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT);
	return 0;
}

TEST(what_is_queued_comes_one_by_one)
{
	each_blocked(queued);
}

static int cancelled(void *arg)
{
	(void)arg;
	CHECK_OK(hive_signal_watch(usr1, 1));
	for (int i = 0; i < 30; i++) {
		struct hive_fiber *fiber = net_spawn(wait_for, (void *)(uintptr_t)usr1);
		int result;

		for (int turns = i % 3; turns > 0; turns--)
			CHECK_OK(hive_yield());
		send_it(SIGUSR1);
		CHECK_OK(hive_fiber_cancel(fiber));
		result = net_join(fiber);
		CHECK(result == SIGUSR1 || result == -ECANCELED);
		if (result == -ECANCELED) /* then it is still there */
			CHECK_EQ(hive_signal_wait(usr1, 1, HIVE_FOREVER), SIGUSR1);
	}
	return 0;
}

TEST(a_cancelled_wait_loses_no_signal)
{
	each_blocked(cancelled);
}

static int impatient(void *arg)
{
	struct crowd *crowd = (struct crowd *)arg;

	for (int64_t i = 1; !load_relaxed(&crowd->over); i++) {
		int r = hive_signal_wait(&crowd->number, 1, hive_deadline(NULL, HIVE_US(i % 50)));

		if (r > 0)
			add_relaxed(&crowd->got, 1);
		else
			CHECK_ERR(r, -ETIMEDOUT);
	}
	return 0;
}

/* Waits end by their deadlines all the time, and every signal is got once. */
static int hurry(void *arg)
{
	struct crowd crowd = { .number = SIGRTMIN + 2 };
	struct hive_fiber *fibers[4];
	int sent = 2000 / test_slowness();

	(void)arg;
	CHECK_OK(hive_signal_watch(&crowd.number, 1));
	for (int i = 0; i < 4; i++)
		fibers[i] = net_spawn(impatient, &crowd);
	for (int i = 0; i < sent; i++)
		send_to(&crowd, i + 1);
	store_relaxed(&crowd.over, true);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(net_join(fibers[i]), 0);
	CHECK_EQ(load_relaxed(&crowd.got), sent);
	return 0;
}

TEST(deadlines_lose_no_signal)
{
	each_blocked(hurry);
}

/* ---- whoever has it open ---- */

struct both_sides {
	struct gate ready, done;
	int result;
};

static int wait_and_tell(void *arg)
{
	struct both_sides *b = (struct both_sides *)arg;

	CHECK_OK(hive_signal_watch(usr1, 1));
	gate_open(&b->ready);
	b->result = hive_signal_wait(usr1, 1, HIVE_FOREVER);
	gate_open(&b->done);
	return 0;
}

/* The main thread does not block it, and is the one that the system chooses. */
TEST(threads_that_do_not_block_it_do_no_harm)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 2, 0);
		struct both_sides b = { .result = 0 };

		gate_init(&b.ready);
		gate_init(&b.done);
		CHECK_OK(hive_spawn(hive, wait_and_tell, &b, NULL, NULL));
		gate_pass(&b.ready);
		send_it(SIGUSR1);
		gate_pass(&b.done);
		CHECK_EQ(b.result, SIGUSR1);
		gate_destroy(&b.ready);
		gate_destroy(&b.done);
		real_end(hive, HIVE_DRAIN);
	}
	CHECK(has_handler(SIGUSR1, SIG_DFL));
}

TEST(what_was_raised_here_is_there_at_once)
{
	CHECK_OK(hive_signal_watch(both, 2));
	CHECK_OK(raise(SIGUSR2));
	CHECK_EQ(hive_signal_wait(both, 2, HIVE_NOWAIT), SIGUSR2);
	CHECK_ERR(hive_signal_wait(both, 2, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_OK(hive_signal_unwatch(both, 2));
}

/* ---- what it did before ---- */

TEST(a_handler_of_the_program_is_back_afterwards)
{
	set_handler(SIGUSR1, count);
	store_relaxed(&handled, 0);
	CHECK_OK(hive_signal_watch(both, 2));
	CHECK(!has_handler(SIGUSR1, count));
	CHECK_OK(raise(SIGUSR1));
	CHECK_EQ(load_relaxed(&handled), 0);
	CHECK_OK(hive_signal_unwatch(usr1, 1)); /* the one that was kept is gone */
	CHECK(has_handler(SIGUSR1, count) && !has_handler(SIGUSR2, SIG_DFL));
	CHECK_OK(raise(SIGUSR1));
	CHECK_EQ(load_relaxed(&handled), 1);
	CHECK_OK(raise(SIGUSR2));
	CHECK_EQ(hive_signal_wait(usr2, 1, HIVE_NOWAIT), SIGUSR2);
	CHECK_OK(hive_signal_unwatch(both, 2));
	CHECK(has_handler(SIGUSR2, SIG_DFL));
	CHECK_OK(hive_signal_watch(usr1, 1));
	CHECK_ERR(hive_signal_wait(usr1, 1, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_OK(hive_signal_unwatch(usr1, 1));
	set_handler(SIGUSR1, SIG_DFL);
}

TEST(a_handler_that_came_later_stays)
{
	CHECK_OK(hive_signal_watch(usr1, 1));
	set_handler(SIGUSR1, SIG_IGN);
	CHECK_OK(hive_signal_unwatch(usr1, 1));
	CHECK(has_handler(SIGUSR1, SIG_IGN));
	set_handler(SIGUSR1, SIG_DFL);
}

static void (*our_handler(int number))(int)
{
	struct sigaction action;

	CHECK_OK(sigaction(number, NULL, &action));
	return action.sa_handler;
}

/* A thread was interrupted by a signal that was watched, and comes to our handler when it is not: it is met by what there is now. */
TEST(a_late_handler_leaves_what_the_program_has_set)
{
	void (*late)(int);

	CHECK_OK(hive_signal_watch(usr1, 1));
	late = our_handler(SIGUSR1);
	CHECK_OK(hive_signal_unwatch(usr1, 1));
	set_handler(SIGUSR1, count);
	store_relaxed(&handled, 0);
	late(SIGUSR1);
	CHECK(has_handler(SIGUSR1, count));
	CHECK_EQ(load_relaxed(&handled), 1);
	CHECK_OK(hive_signal_watch(usr1, 1));
	late(SIGUSR1); /* or is watched again */
	CHECK(has_handler(SIGUSR1, late));
	CHECK_EQ(hive_signal_wait(usr1, 1, HIVE_NOWAIT), SIGUSR1);
	CHECK_OK(hive_signal_unwatch(usr1, 1));
	set_handler(SIGUSR1, SIG_DFL);
}

/* Blocked by the program, and meant to wait: our thread is not the one that lets it in. */
TEST(a_signal_that_the_program_blocks_stays_blocked)
{
	sigset_t pending;

	mask(SIG_BLOCK);
	for (int i = 0; i < 100; i++) {
		CHECK_OK(hive_signal_watch(both, 2));
		send_it(SIGUSR1);
		CHECK_EQ(hive_signal_wait(usr1, 1, HIVE_FOREVER), SIGUSR1);
		CHECK_OK(hive_signal_unwatch(i % 2 ? both : usr1, i % 2 ? 2 : 1)); /* the thread stays, or ends */
		send_it(SIGUSR1);                                                  /* deadly where it is let in */
		CHECK_OK(sigpending(&pending));
		CHECK_EQ(sigismember(&pending, SIGUSR1), 1);
		CHECK_OK(hive_signal_watch(usr1, 1)); /* and what waits is for who watches */
		CHECK_EQ(hive_signal_wait(usr1, 1, HIVE_FOREVER), SIGUSR1);
		CHECK_OK(hive_signal_unwatch(both, 2));
	}
	mask(SIG_UNBLOCK);
}

static int watch_here(void *arg)
{
	(void)arg;
	return hive_signal_watch(usr1, 1);
}

static void run_in(struct hive *hive, hive_fiber_fn *fn, int expected)
{
	int result = -1;

	CHECK_OK(hive_block_on(hive, fn, NULL, HIVE_FOREVER, &result));
	CHECK_EQ(result, expected);
}

static int wait_now(void *arg)
{
	(void)arg;
	return hive_signal_wait(usr1, 1, HIVE_NOWAIT);
}

TEST(several_hives_watch_side_by_side)
{
	struct hive *one = net_start("epoll", 1, 0), *other = net_start("poll", 1, 1);

	run_in(one, watch_here, 0);
	run_in(other, watch_here, 0);
	CHECK_OK(hive_signal_unwatch(usr1, 1)); /* of the threads, which have none */
	real_end(one, HIVE_DRAIN);
	CHECK_OK(raise(SIGUSR1));
	run_in(other, wait_now, SIGUSR1);
	run_in(other, wait_now, -ETIMEDOUT);
	CHECK(!has_handler(SIGUSR1, SIG_DFL));
	real_end(other, HIVE_DRAIN);
	CHECK(has_handler(SIGUSR1, SIG_DFL));
}

static int unwatched(void *arg)
{
	struct hive_fiber *fiber = net_spawn(wait_for, (void *)(uintptr_t)usr1);

	(void)arg;
	while (has_handler(SIGUSR1, SIG_DFL))
		CHECK_OK(hive_yield());
	for (int i = 0; i < 5; i++)
		CHECK_OK(hive_signal_unwatch(usr1, 1));
	CHECK(!has_handler(SIGUSR1, SIG_DFL));
	send_it(SIGUSR1);
	CHECK_EQ(net_join(fiber), SIGUSR1);
	CHECK_OK(hive_signal_unwatch(usr1, 1));
	CHECK(has_handler(SIGUSR1, SIG_DFL));
	return 0;
}

TEST(who_waits_keeps_it_watched)
{
	each_blocked(unwatched);
}

/* ---- refused ---- */

static void call_in_task(void *arg)
{
	CHECK_ERR(hive_signal_wait(usr1, 1, HIVE_FOREVER), -EDEADLK);
	CHECK_ERR(hive_signal_wait(usr1, 1, HIVE_NOWAIT), -ETIMEDOUT);
	gate_open(arg);
}

TEST(a_task_of_an_io_worker_may_ask_but_not_wait)
{
	struct hive *hive = net_start("epoll", 1, 0);
	struct gate gate;

	gate_init(&gate);
	CHECK_OK(hive_post(hive, call_in_task, &gate));
	gate_pass(&gate);
	gate_destroy(&gate);
	real_end(hive, HIVE_DRAIN);
}

TEST(bad_signals_are_refused)
{
	static const int bad[] = { 0, -1, 65, 1000, SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, 32, 33 };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int pair[2] = { SIGUSR1, bad[i] };

		CHECK_ERR(hive_signal_wait(pair, 2, HIVE_FOREVER), -EINVAL);
		CHECK_ERR(hive_signal_watch(pair, 2), -EINVAL);
		CHECK_ERR(hive_signal_unwatch(pair, 2), -EINVAL);
	}
	CHECK_ERR(hive_signal_wait(NULL, 1, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_signal_wait(usr1, 0, HIVE_FOREVER), -EINVAL);
	CHECK(has_handler(SIGUSR1, SIG_DFL));
}

static void no_thread(void)
{
	CHECK_ERR(hive_signal_watch(both, 2), -EAGAIN);
	CHECK_ERR(hive_signal_wait(both, 2, HIVE_FOREVER), -EAGAIN);
	CHECK(has_handler(SIGUSR1, SIG_DFL) && has_handler(SIGUSR2, SIG_DFL));
	CHECK_OK(hive_signal_unwatch(both, 2));
}

TEST(without_a_thread_nothing_is_changed)
{
	child_without_calls(EAGAIN, no_thread, SYS_clone3, SYS_clone);
}

/* ---- after fork() ---- */

static int status_of(pid_t child)
{
	int status = 0;

	CHECK_EQ(waitpid(child, &status, 0), child);
	return status;
}

/* A checker of threads runs handlers some time later, when something waits. */
static void linger(int handled_then)
{
	for (int i = 0; i < 2000 && load_relaxed(&handled) < handled_then; i++)
		poll(NULL, 0, 10);
}

TEST(a_child_has_it_as_it_was_before)
{
	pid_t child;

	if (!kernel_wipes_pages()) {
		test_skip(NO_WIPING);
		return;
	}
	set_handler(SIGUSR2, count);
	store_relaxed(&handled, 0);
	CHECK_OK(hive_signal_watch(both, 2));
	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		raise(SIGUSR2);
		linger(1);
		if (load_relaxed(&handled) != 1)
			_exit(1);
		raise(SIGUSR1);
		linger(2);
		_exit(2);
	}
	CHECK_EQ(status_of(child), SIGUSR1); /* killed by it */
	CHECK_OK(raise(SIGUSR1));
	CHECK_EQ(hive_signal_wait(both, 2, HIVE_NOWAIT), SIGUSR1);
	CHECK_OK(hive_signal_unwatch(both, 2));
	set_handler(SIGUSR2, SIG_DFL);
}

TEST(a_child_may_watch_by_itself)
{
#if TEST_TSAN
	test_skip("ThreadSanitizer allows no threads in a child of a program with threads");
#else
	pid_t child;

	if (!kernel_wipes_pages()) {
		test_skip(NO_WIPING);
		return;
	}
	store_relaxed(&handled, 0);
	CHECK_OK(hive_signal_watch(both, 2));
	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		CHECK_OK(hive_signal_watch(usr1, 1));
		CHECK_OK(raise(SIGUSR1));
		CHECK_EQ(hive_signal_wait(usr1, 1, HIVE_NOWAIT), SIGUSR1);
		CHECK_OK(hive_signal_unwatch(usr1, 1));
		CHECK(has_handler(SIGUSR1, SIG_DFL));
		raise(SIGUSR2); /* which it does not watch */
		linger(1);
		_exit(2);
	}
	CHECK_EQ(status_of(child), SIGUSR2);
	CHECK_OK(hive_signal_unwatch(both, 2));
#endif
}
