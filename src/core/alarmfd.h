/* SPDX-License-Identifier: MIT */
#pragma once
/* A timer of the kernel's that stays started from one wait to the next.
 *
 * A wait with an end costs more than one without: a timer is started and stopped each time. Where events cut waits short again and
 * again, as in a server whose connections have deadlines, one timer serves for all of them: it rings at the first of these ends.
 * It is never read, so its descriptor has to be watched by edges.                                                            */
#include <errno.h>
#include <sys/timerfd.h>

#include "base/clock.h"

enum { ALARMFD_PAYS = 8 };            /* waits in a row that were cut short */
#define ALARMFD_SHORTEST HIVE_US(500) /* what is nearer is waited for */

struct alarmfd {
	int fd;           /* -1: there is none */
	uint8_t cut;      /* waits that events have cut short, since it was started or one was not */
	int64_t rings_ns; /* when it rings, or has rung */
};

static inline bool alarmfd_start(struct alarmfd *alarm, int64_t deadline_ns)
{
	struct itimerspec when = { .it_value = { deadline_ns / HIVE_S(1), deadline_ns % HIVE_S(1) } };

	alarm->cut = 0;
	if (timerfd_settime(alarm->fd, TFD_TIMER_ABSTIME, &when, NULL) < 0)
		return false;
	alarm->rings_ns = deadline_ns;
	return true;
}

/* It rings before the deadline, or exactly then. */
static inline bool alarmfd_covers(const struct alarmfd *alarm, int64_t now_ns, int64_t deadline_ns)
{
	return alarm->rings_ns > now_ns && alarm->rings_ns <= deadline_ns;
}

/* To start it would be worth its cost. */
static inline bool alarmfd_would_pay(const struct alarmfd *alarm, int64_t now_ns, int64_t deadline_ns)
{
	return alarm->cut >= ALARMFD_PAYS && alarm->fd >= 0 && deadline_ns - now_ns >= ALARMFD_SHORTEST;
}

/* A wait that was to last until a deadline ended, by events or not. */
static inline void alarmfd_note(struct alarmfd *alarm, bool cut_short)
{
	if (!cut_short)
		alarm->cut = 0;
	else if (alarm->cut < ALARMFD_PAYS)
		alarm->cut++;
}
