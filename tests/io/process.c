/* SPDX-License-Identifier: MIT */
/* Child processes: started with what they shall have, waited for by fibers and threads, gone afterwards. */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "support/child.h"
#include "support/net.h"

#define ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define SHELL(script) ARGV("sh", "-c", script)

static const struct hive_process_options usual;

static int start(const char *const *argv, const struct hive_process_options *options)
{
	int process = -1;

	CHECK_OK(hive_process_start(argv, options, &process));
	CHECK(process > 0);
	return process;
}

static void check_no_children(void)
{
	CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
	CHECK_EQ(errno, ECHILD);
}

/* Everything that comes, and the end of it. */
static size_t read_all(int fd, char *text, size_t bytes)
{
	size_t have = 0;
	int64_t n;

	while ((n = hive_read(fd, text + have, bytes - 1 - have, -1, HIVE_FOREVER)) > 0)
		have += (size_t)n;
	CHECK_EQ(n, 0);
	text[have] = 0;
	CHECK_OK(close(fd));
	return have;
}

static void write_all(int fd, const char *text)
{
	for (size_t sent = 0; sent < strlen(text);) {
		int64_t n = hive_write(fd, text + sent, strlen(text) - sent, -1, HIVE_FOREVER);

		CHECK(n > 0);
		sent += (size_t)n;
	}
	CHECK_OK(close(fd));
}

/* What a program prints; it has to be content. */
static void output(const char *const *argv, struct hive_process_options options, char *text, size_t bytes)
{
	int fds[3], process;

	options.redirect[1] = true;
	options.ret_fds = fds;
	process = start(argv, &options);
	CHECK(fds[0] == -1 && fds[2] == -1);
	read_all(fds[1], text, bytes);
	CHECK_EQ(hive_process_wait(process, HIVE_FOREVER), 0);
}

/* ---- its end ---- */

static int ends(void *arg)
{
	int process;

	(void)arg;
	CHECK_EQ(hive_process_wait(start(ARGV("true"), NULL), HIVE_FOREVER), 0);
	CHECK_EQ(hive_process_wait(start(SHELL("exit 77"), NULL), HIVE_FOREVER), 77);
	CHECK_EQ(hive_process_wait(start(SHELL("kill -TERM $$"), NULL), HIVE_FOREVER), 256 + SIGTERM);
	process = start(SHELL("read line"), &(struct hive_process_options){ .fds = { HIVE_OFF, 0, 0 } });
	CHECK_EQ(hive_process_wait(process, HIVE_FOREVER), 1); /* nothing to read */
	CHECK_ERR(hive_process_wait(process, HIVE_FOREVER), -ESRCH);
	CHECK_ERR(hive_process_signal(process, SIGTERM), -ESRCH);
	CHECK_ERR(hive_process_wait(getpid(), HIVE_FOREVER), -ESRCH);
	CHECK_ERR(hive_process_wait(-1, HIVE_NOWAIT), -ESRCH);
	check_no_children();
	return 0;
}

TEST(a_wait_tells_how_it_ended)
{
	net_each(ends);
	CHECK_EQ(ends(NULL), 0);
}

/* It lives as long as we do not close its input. */
static int start_cat(int *ret_input)
{
	int fds[3], process;
	struct hive_process_options options = { .redirect = { true }, .fds = { 0, HIVE_OFF, 0 }, .ret_fds = fds };

	process = start(ARGV("cat"), &options);
	*ret_input = fds[0];
	return process;
}

static int wait_for(void *arg)
{
	return hive_process_wait(*(int *)arg, HIVE_FOREVER);
}

static int lives(void *arg)
{
	struct hive_fiber *waiting;
	int input, process = start_cat(&input);

	(void)arg;
	CHECK_ERR(hive_process_wait(process, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(hive_process_wait(process, hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT);
	CHECK_OK(hive_process_signal(process, 0));
	CHECK_ERR(hive_process_signal(process, 1000), -EINVAL);
	waiting = net_spawn(wait_for, &process);
	CHECK_OK(hive_yield());
	CHECK_OK(hive_fiber_cancel(waiting));
	CHECK_EQ(net_join(waiting), -ECANCELED); /* and it lives on */
	CHECK_OK(hive_process_signal(process, SIGKILL));
	CHECK_EQ(hive_process_wait(process, hive_deadline(NULL, HIVE_S(50))), 256 + SIGKILL);
	CHECK_OK(close(input));
	check_no_children();
	return 0;
}

TEST(waits_end_by_deadline_and_cancel_and_it_lives_on)
{
	net_each(lives);
}

enum { CROWD = 12 };

static int crowd(void *arg)
{
	struct hive_fiber *fibers[CROWD];
	bool alone = hive_workers(hive_current(), NULL, 0) == 1 + 2; /* one IO worker: each has come to its wait */
	int input, process = start_cat(&input), told = 0;

	(void)arg;
	for (int i = 0; i < CROWD; i++)
		fibers[i] = net_spawn(wait_for, &process);
	for (int i = 0; i < 50; i++)
		CHECK_OK(hive_yield());
	CHECK_OK(close(input));
	for (int i = 0; i < CROWD; i++) {
		int result = net_join(fibers[i]);

		CHECK(result == 0 || result == -ESRCH); /* came when it was over */
		told += result == 0;
	}
	CHECK(told > 0);
	CHECK(!alone || told == CROWD);
	check_no_children();
	return 0;
}

TEST(all_who_wait_are_told)
{
	net_each(crowd);
}

static int many(void *arg)
{
	int processes[20];

	(void)arg;
	for (int i = 0; i < 20; i++) {
		char script[20];

		snprintf(script, sizeof script, "exit %d", i);
		processes[i] = start(SHELL(script), NULL);
	}
	for (int i = 19; i >= 0; i--)
		CHECK_EQ(hive_process_wait(processes[i], HIVE_FOREVER), i);
	check_no_children();
	return 0;
}

TEST(many_at_once)
{
	net_each(many);
	CHECK_EQ(many(NULL), 0);
}

static void *wait_in_thread(void *arg)
{
	CHECK_EQ(hive_process_wait(*(int *)arg, HIVE_FOREVER), 0);
	return NULL;
}

TEST(a_thread_waits_for_what_a_fiber_may_start)
{
	int input, process = start_cat(&input);
	pthread_t thread;

	CHECK_OK(pthread_create(&thread, NULL, wait_in_thread, &process));
	CHECK_ERR(hive_process_wait(process, hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT);
	CHECK_OK(close(input));
	CHECK_OK(pthread_join(thread, NULL));
	CHECK_ERR(hive_process_wait(process, HIVE_NOWAIT), -ESRCH);
}

TEST(somebody_else_may_have_taken_its_status)
{
	int process = start(ARGV("true"), NULL), status;

	CHECK_EQ(waitpid(process, &status, 0), process);
	CHECK_ERR(hive_process_signal(process, SIGTERM), -ESRCH);
	CHECK_ERR(hive_process_wait(process, HIVE_FOREVER), -ECHILD);
	CHECK_ERR(hive_process_wait(process, HIVE_FOREVER), -ESRCH);
}

static void without_pidfd(void)
{
	int input, process;

	net_each(ends);
	net_each(lives);
	net_each(crowd);
	CHECK_EQ(many(NULL), 0);
	process = start_cat(&input);
	CHECK_ERR(hive_process_wait(process, hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT);
	CHECK_OK(hive_process_signal(process, SIGKILL));
	CHECK_EQ(hive_process_wait(process, HIVE_FOREVER), 256 + SIGKILL);
	CHECK_OK(close(input));
}

TEST(an_old_kernel_has_no_pidfd)
{
	child_without_calls(ENOSYS, without_pidfd, SYS_pidfd_open);
}

/* ---- what it has ---- */

static int sorted(void *arg)
{
	char text[100], errors[100];
	int fds[3], process;
	struct hive_process_options options = { .redirect = { true, true, true }, .ret_fds = fds };

	(void)arg;
	process = start(ARGV("sort"), &options);
	for (int i = 0; i < 3; i++) {
		CHECK(fcntl(fds[i], F_GETFL) & O_NONBLOCK);
		CHECK_EQ(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
	}
	write_all(fds[0], "pear\nfig\napple\n");
	read_all(fds[1], text, sizeof text);
	CHECK_STR(text, "apple\nfig\npear\n");
	CHECK_EQ(read_all(fds[2], errors, sizeof errors), 0);
	CHECK_EQ(hive_process_wait(process, HIVE_FOREVER), 0);
	return 0;
}

TEST(through_pipes_there_and_back)
{
	net_each(sorted);
	CHECK_EQ(sorted(NULL), 0);
}

/* Its own ends block, as it expects: no O_NONBLOCK among the flags. */
TEST(its_ends_of_pipes_are_ordinary_ones)
{
	char text[300];
	int fds[3], process;
	struct hive_process_options options = { .redirect = { true, true }, .ret_fds = fds };
	long flags;

	process = start(SHELL("grep -h flags /proc/self/fdinfo/0"), &options);
	CHECK_OK(close(fds[0]));
	read_all(fds[1], text, sizeof text);
	CHECK_EQ(hive_process_wait(process, HIVE_FOREVER), 0);
	flags = strtol(strchr(text, '\t'), NULL, 8);
	CHECK_EQ(flags & O_NONBLOCK, 0);
}

TEST(environment_and_folder_are_those_asked_for)
{
	struct hive_process_options options = { .env = ARGV("COLOUR=green"), .cwd = "/usr" };
	char text[300];

	output(SHELL("echo $COLOUR; pwd"), options, text, sizeof text);
	CHECK_STR(text, "green\n/usr\n");
	CHECK_OK(setenv("ROPHIVE_TEST_COLOUR", "red", 1));
	output(SHELL("echo $ROPHIVE_TEST_COLOUR"), usual, text, sizeof text);
	CHECK_STR(text, "red\n");
	CHECK_OK(unsetenv("ROPHIVE_TEST_COLOUR"));
}

/* Two of ours take each other's places, and one serves twice: nothing is overwritten before it is copied. */
TEST(descriptors_may_be_crossed)
{
	char text[100];
	int one[2], two[2], process, fds[3], keep = fcntl(2, F_DUPFD_CLOEXEC, 10);
	struct hive_process_options options = { .fds = { 0, 2, 0 } };

	CHECK(keep >= 0);
	CHECK_OK(pipe2(one, O_CLOEXEC));
	CHECK_OK(pipe2(two, O_CLOEXEC));
	CHECK_EQ(dup3(one[1], 2, O_CLOEXEC), 2); /* what we have as 2 is what it gets as 1, */
	options.fds[2] = two[1];
	process = start(SHELL("echo out; echo err >&2"), &options);
	CHECK_EQ(dup2(keep, 2), 2);
	CHECK_OK(close(keep));
	CHECK_OK(close(one[1]));
	CHECK_OK(close(two[1]));
	read_all(one[0], text, sizeof text);
	CHECK_STR(text, "out\n");
	read_all(two[0], text, sizeof text);
	CHECK_STR(text, "err\n");
	CHECK_EQ(hive_process_wait(process, HIVE_FOREVER), 0);
	options = (struct hive_process_options){ .redirect = { false, true },
		                                 .fds = { 0, 0, HIVE_PROCESS_MERGE },
		                                 .ret_fds = fds };
	process = start(SHELL("echo out; echo err >&2"), &options);
	read_all(fds[1], text, sizeof text);
	CHECK_STR(text, "out\nerr\n");
	CHECK_EQ(hive_process_wait(process, HIVE_FOREVER), 0);
}

static void closed_standard(void)
{
	int fds[3], process;
	struct hive_process_options options = { .redirect = { true, true }, .ret_fds = fds };
	char text[100];

	close(0);
	close(1);
	process = start(ARGV("cat"), &options); /* our pipes have these numbers now */
	write_all(fds[0], "through\n");
	read_all(fds[1], text, sizeof text);
	CHECK_STR(text, "through\n");
	CHECK_EQ(hive_process_wait(process, HIVE_FOREVER), 0);
}

TEST(without_standard_descriptors_of_our_own)
{
	pid_t child;

	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		closed_standard();
		_exit(0);
	}
	CHECK_EQ(child_wait(child), 0);
}

/* Line `name` of /proc/self/status of a child. */
static unsigned long long status_line(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	CHECK(at);
	return strtoull(at + strlen(name), NULL, 16);
}

/* Signals whose handling this process can set: an emulator keeps the C library's own two, and leaves them as it was started with. */
static unsigned long long ours(void)
{
	return getenv("ROPHIVE_EMULATOR") ? ~(3ULL << 31) : ~0ULL;
}

static int fresh(void *arg)
{
	char text[4096];

	(void)arg;
	output(ARGV("cat", "/proc/self/status"), usual, text, sizeof text);
	CHECK_EQ(status_line(text, "SigBlk:") & ours(), 0);
	CHECK_EQ(status_line(text, "SigIgn:") & ours(), 0);
	output(SHELL("ls /proc/$$/fd"), usual, text, sizeof text);
	CHECK_STR(text, "0\n1\n2\n");
	return 0;
}

TEST(signals_are_as_in_a_fresh_process_and_no_descriptor_leaks)
{
	static const int watched[] = { SIGUSR1 };
	sigset_t set;
	int fds[2];

	for (int fd = 3; fd < 1024; fd++) /* what the test was started with is not its business */
		if (fcntl(fd, F_GETFD) >= 0)
			CHECK_OK(fcntl(fd, F_SETFD, FD_CLOEXEC));
	CHECK_OK(pipe2(fds, O_CLOEXEC));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	CHECK(signal(SIGHUP, SIG_IGN) != SIG_ERR);
	CHECK_OK(hive_signal_watch(watched, 1));
	net_each(fresh);
	CHECK_EQ(fresh(NULL), 0);
	CHECK_OK(hive_signal_unwatch(watched, 1));
	CHECK(signal(SIGHUP, SIG_DFL) != SIG_ERR);
	CHECK_OK(pthread_sigmask(SIG_UNBLOCK, &set, NULL));
	net_close(fds);
}

static int as_nice(void *arg)
{
	char text[100];

	(void)arg;
	output(SHELL("cut -d ' ' -f 19 /proc/$$/stat"), usual, text, sizeof text);
	return atoi(text);
}

TEST(what_a_fiber_starts_is_as_nice_as_the_program)
{
	int nice = getpriority(PRIO_PROCESS, 0), result = -1;
	struct hive *hive = net_start("epoll", 1, 1);

	CHECK_OK(hive_block_on(hive, as_nice, NULL, HIVE_FOREVER, &result));
	CHECK_EQ(result, nice);
	real_end(hive, HIVE_DRAIN);
}

/* ---- refused ---- */

/* By memory that parent and child share until then. An emulator's do not. */
static bool system_tells_failed_starts(void)
{
	char *const argv[] = { (char[]){ "/nowhere/at/all" }, NULL };
	pid_t child;

	if (posix_spawn(&child, argv[0], NULL, NULL, argv, NULL) != 0)
		return true;
	CHECK_EQ(waitpid(child, NULL, 0), child);
	return false;
}

static void refused_by_the_child(void)
{
	struct hive_process_options folder = { .cwd = "/nowhere/at/all" }, closed = { .fds = { 0, 0, 999 } };
	int process = 7;

	CHECK_ERR(hive_process_start(ARGV("rophive-no-such-program"), NULL, &process), -ENOENT);
	CHECK_ERR(hive_process_start(ARGV("/etc/passwd"), NULL, &process), -EACCES);
	CHECK_ERR(hive_process_start(ARGV("true"), &folder, &process), -ENOENT);
	CHECK_ERR(hive_process_start(ARGV("true"), &closed, &process), -EBADF);
	CHECK_EQ(process, 7);
}

static int refused(void *arg)
{
	struct hive_process_options redirect = { .redirect = { true } }, bad = { .fds = { 0, -3, 0 } };
	struct hive_process_options reserved = { .reserved = { 1 } };
	int process = 7;

	(void)arg;
	if (system_tells_failed_starts())
		refused_by_the_child();
	CHECK_ERR(hive_process_start(ARGV("true"), &bad, &process), -EINVAL);
	CHECK_ERR(hive_process_start(ARGV("true"), &redirect, &process), -EINVAL); /* where to? */
	CHECK_ERR(hive_process_start(ARGV("true"), &reserved, &process), -EINVAL);
	CHECK_ERR(hive_process_start(NULL, NULL, &process), -EINVAL);
	CHECK_ERR(hive_process_start((const char *const[]){ NULL }, NULL, &process), -EINVAL);
	CHECK_ERR(hive_process_start(ARGV("true"), NULL, NULL), -EINVAL);
	CHECK_EQ(process, 7);
	check_no_children();
	return 0;
}

TEST(what_does_not_start_is_told)
{
	net_each(refused);
	CHECK_EQ(refused(NULL), 0);
	if (!system_tells_failed_starts())
		test_skip("by the child: parent and child share no memory here (vfork)");
}

TEST(without_descriptors_it_does_not_start)
{
	struct rlimit limit, low;
	int fds[3] = { -7, -7, -7 }, process = 7, next = dup(0);
	struct hive_process_options options = { .redirect = { true, true, true }, .ret_fds = fds };

	CHECK(next >= 0);
	CHECK_OK(close(next));
	CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
	for (rlim_t room = 0; room < 6; room++) { /* two for each pipe */
		low = (struct rlimit){ (rlim_t)next + room, limit.rlim_max };
		CHECK_OK(setrlimit(RLIMIT_NOFILE, &low));
		CHECK_ERR(hive_process_start(ARGV("true"), &options, &process), -EMFILE);
	}
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
	CHECK(process == 7 && fds[0] == -7);
	check_no_children();
}

static void call_in_task(void *arg)
{
	int process = 7;

	CHECK_ERR(hive_process_start(ARGV("true"), NULL, &process), -EDEADLK);
	gate_open(arg);
}

TEST(a_task_of_an_io_worker_may_not_start_one)
{
	struct hive *hive = net_start("epoll", 1, 0);
	struct gate gate;

	gate_init(&gate);
	CHECK_OK(hive_post(hive, call_in_task, &gate));
	gate_pass(&gate);
	gate_destroy(&gate);
	real_end(hive, HIVE_DRAIN);
}

/* A child of ours after fork() has none of our children. */
TEST(a_forked_child_may_not_wait_for_it)
{
	int input, process = start_cat(&input);
	pid_t child;

	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		_exit(hive_process_wait(process, HIVE_FOREVER) == -ESRCH && hive_process_signal(process, 0) == -ESRCH
		              ? 0
		              : 1);
	CHECK_EQ(child_wait(child), 0);
	CHECK_OK(close(input));
	CHECK_EQ(hive_process_wait(process, HIVE_FOREVER), 0);
}
