/* SPDX-License-Identifier: MIT */
#pragma once
/* The calls of the table in functions.c that are about what belongs to the process: signals, children, terminals. By a thread; a
 * simulated hive has none of this.                                                                                          */
#include <signal.h>
#include <sys/wait.h>

#include <rophive/process.h>

#include "fibers.h"

static const int awaited[] = { SIGUSR1, SIGUSR2 };

static bool is_untouched(int number)
{
	struct sigaction action;

	return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_DFL;
}

/* A page for signals and one for children are made at the first use, and stay. */
static void make_what_stays(void)
{
	CHECK_OK(hive_signal_unwatch(awaited, 2));
	CHECK_ERR(hive_process_wait(1, HIVE_NOWAIT), -ESRCH);
}

static int watch(struct world *w)
{
	int r = hive_signal_watch(awaited, 2);

	(void)w;
	CHECK_EQ(is_untouched(SIGUSR1), r < 0);
	CHECK_OK(hive_signal_unwatch(awaited, 2));
	CHECK(is_untouched(SIGUSR1));
	return r;
}

static int wait_for_signal(struct world *w)
{
	int r = hive_signal_watch(awaited, 2);

	(void)w;
	if (r == 0) {
		CHECK_OK(raise(SIGUSR2));
		r = hive_signal_wait(awaited, 2, HIVE_FOREVER);
	}
	CHECK_OK(hive_signal_unwatch(awaited, 2));
	return r == SIGUSR2 ? 0 : r;
}

static int refused_here(void *arg)
{
	int process;

	(void)arg;
	CHECK_ERR(hive_process_start((const char *const[]){ "true", NULL }, NULL, &process), -ENOTSUP);
	CHECK_ERR(hive_signal_watch(awaited, 2), -ENOTSUP);
	return 0;
}

static int refused_in_simulation(struct world *w)
{
	return in_fiber(w, refused_here, w);
}

static int start_and_wait(struct world *w)
{
	int fds[3], process = -1, r;
	struct hive_process_options options = { .redirect = { true }, .ret_fds = fds };

	(void)w;
	r = hive_process_start((const char *const[]){ "cat", NULL }, &options, &process);
	if (r == 0) {
		CHECK_OK(hive_process_signal(process, SIGTERM));
		CHECK_EQ(hive_process_wait(process, HIVE_FOREVER), 256 + SIGTERM);
		CHECK_OK(close(fds[0]));
	}
	CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1); /* no zombie */
	return r;
}

static int use_tty(struct world *w)
{
	struct hive_tty saved;
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave, again, columns, rows;

	(void)w;
	CHECK(master >= 0);
	CHECK_OK(unlockpt(master));
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	CHECK(slave >= 0);
	CHECK_OK(hive_tty_raw(slave, &saved));
	CHECK_OK(hive_tty_restore(slave, &saved));
	CHECK_OK(hive_tty_size(slave, &columns, &rows));
	again = hive_tty_open(slave);
	CHECK(again >= 0);
	CHECK_OK(close(again));
	CHECK_OK(close(slave));
	return close(master);
}
