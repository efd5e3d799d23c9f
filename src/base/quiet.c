/* SPDX-License-Identifier: MIT */
#include "base/quiet.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

static _Thread_local bool always;

void hive__quiet_always(void)
{
	always = true;
}

static bool is_pending(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

/* Only a signal that is blocked can be pending: who has it open asks no more than that. */
void hive__quiet_begin(struct quiet *quiet)
{
	sigset_t set;

	quiet->ours = always;
	if (quiet->ours)
		return;
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &set, &quiet->mask);
	quiet->pending = sigismember(&quiet->mask, SIGPIPE) == 1 && is_pending();
}

/* That of the thread is taken before one that was sent to the process. */
static void take(void)
{
	static const struct timespec now;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	while (sigtimedwait(&set, NULL, &now) < 0 && errno == EINTR)
		;
}

void hive__quiet_end(const struct quiet *quiet, bool raised)
{
	int error = errno;

	if (raised && (quiet->ours || !quiet->pending))
		take();
	if (!quiet->ours)
		pthread_sigmask(SIG_SETMASK, &quiet->mask, NULL);
	errno = error;
}
