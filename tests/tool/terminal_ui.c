/* SPDX-License-Identifier: MIT */
/* examples/32_terminal_ui.c on a terminal: it draws, takes keys, and leaves the terminal as it was; also when it cannot have the descriptors that it
 * needs, and then its exit status says so.                                                                                */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pty.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include "test.h"

enum { ENOUGH = 64, NO_FILTER = 77 };

/* What it is refused. */
struct lack {
	rlim_t descriptors; /* more than so many */
	bool keys;          /* somebody who watches its terminal */
};

static char output[1 << 20];
static size_t length;

static const char *find_example(void)
{
	static char path[2048];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);

	CHECK(n > 0);
	path[n] = '\0';
	for (int i = 0; i < 2; i++) /* from build/tests/tool.terminal_ui to build */
		*strrchr(path, '/') = '\0';
	return strcat(path, "/examples/example.32_terminal_ui");
}

/* epoll_ctl() of descriptor 0, for good, is -ENOSPC. False: this kernel does not let us. */
static bool refuse_keys(void)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_ctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])), /* the lower half */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, STDIN_FILENO, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof program / sizeof *program, program };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

static pid_t start(int slave, int master, struct lack lack)
{
	const char *example = find_example();
	pid_t child;

	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		close(master);
		if (login_tty(slave) < 0 ||
		    setrlimit(RLIMIT_NOFILE, &(struct rlimit){ lack.descriptors, lack.descriptors }) < 0)
			_exit(126);
		if (lack.keys && !refuse_keys())
			_exit(NO_FILTER);
		execl(example, example, (char *)NULL);
		_exit(127);
	}
	return child;
}

static void read_some(int master)
{
	struct pollfd ready = { .fd = master, .events = POLLIN };
	ssize_t n;

	poll(&ready, 1, 10);
	while ((n = read(master, output + length, sizeof output - 1 - length)) > 0)
		length += (size_t)n;
	CHECK(length < sizeof output - 1);
	output[length] = '\0';
}

static bool is_raw(int master)
{
	struct termios now;

	CHECK_OK(tcgetattr(master, &now)); /* the terminal's, not this side's */
	return !(now.c_lflag & (ICANON | ECHO));
}

/* When it has drawn it gets a key that means nothing, and q. Its exit status. */
static int play(int master, pid_t child)
{
	bool asked = false;
	int status;

	length = 0;
	output[0] = '\0';
	for (;;) {
		pid_t ended = waitpid(child, &status, WNOHANG);

		CHECK(ended >= 0);
		read_some(master); /* also what was written last */
		if (ended == child)
			break;
		if (!asked && strstr(output, "q quits")) {
			CHECK(is_raw(master));
			CHECK_EQ(write(master, "xq", 2), 2);
			asked = true;
		}
	}
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int run_on_terminal(struct lack lack)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	struct termios before, after;
	int master, slave, status;

	CHECK_OK(openpty(&master, &slave, NULL, NULL, &size));
	CHECK_OK(fcntl(master, F_SETFL, O_RDWR | O_NONBLOCK));
	CHECK_OK(tcgetattr(slave, &before));
	CHECK(!is_raw(master));
	status = play(master, start(slave, master, lack));
	CHECK_OK(tcgetattr(slave, &after));
	CHECK_EQ(after.c_lflag, before.c_lflag);
	CHECK_EQ(after.c_oflag, before.c_oflag);
	CHECK_EQ(after.c_iflag, before.c_iflag);
	CHECK_OK(close(master));
	CHECK_OK(close(slave));
	return status;
}

/* In this order. */
static void check_parts(const char *const *parts)
{
	const char *at = output;

	for (; *parts; parts++) {
		at = strstr(at, *parts);
		if (!at)
			test_fail(__FILE__, __LINE__, "no \"%s\" where it should be", *parts);
	}
}

TEST(it_draws_on_a_terminal_and_q_quits_and_the_terminal_is_as_it_was)
{
	CHECK_EQ(run_on_terminal((struct lack){ .descriptors = ENOUGH }), 0);
	check_parts((const char *const[]){ "\033[?1049h", "\033[2J", "\033[H", "job 0", "job 3", "q quits",
	                                   "\033[?1049l", "frames on time", NULL });
}

/* One more descriptor each time, from none of its own to enough: it works, or it says that it does not. */
TEST(a_hive_that_cannot_begin_is_in_the_exit_status)
{
	int refused = 0;

	for (rlim_t descriptors = 4; descriptors < 12; descriptors++) {
		int status = run_on_terminal((struct lack){ .descriptors = descriptors });

		CHECK_EQ(status == 0, strstr(output, "q quits") != NULL);
		refused += status != 0;
	}
	CHECK(refused > 0);
}

/* Everything is there but somebody who watches the keys: nobody could end it. */
TEST(keys_that_cannot_be_had_are_in_the_exit_status_and_the_terminal_is_as_it_was)
{
	int status = run_on_terminal((struct lack){ .descriptors = ENOUGH, .keys = true });

	if (status == NO_FILTER) {
		printf("skipped: this kernel gives us no seccomp\n");
		return;
	}
	check_parts((const char *const[]){ "\033[?1049h", "\033[?1049l", NULL });
	CHECK(!strstr(output, "q quits"));
	CHECK_EQ(status, 1);
}
