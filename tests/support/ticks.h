/* SPDX-License-Identifier: MIT */
#pragma once
/* A signal that comes again and again until it is told to stop, and interrupts whatever waits. The alarm belongs to the
 * harness, so this is a timer of its own.                                                                               */
#include <signal.h>
#include <time.h>

#include "test.h"

struct ticks {
	timer_t timer;
	struct sigaction before;
};

static inline void ticks_start(struct ticks *t, long period_ns, void (*handler)(int signal_number))
{
	struct sigaction action = { .sa_handler = handler }; /* no SA_RESTART */
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec period = { { 0, period_ns }, { 0, period_ns } };

	CHECK_OK(sigaction(SIGUSR1, &action, &t->before));
	CHECK_OK(timer_create(CLOCK_MONOTONIC, &event, &t->timer));
	CHECK_OK(timer_settime(t->timer, 0, &period, NULL));
}

static inline void ticks_stop(struct ticks *t)
{
	CHECK_OK(timer_delete(t->timer));
	CHECK(signal(SIGUSR1, SIG_IGN) != SIG_ERR); /* one may still be pending */
	CHECK_OK(sigaction(SIGUSR1, &t->before, NULL));
}
