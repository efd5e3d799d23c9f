/* SPDX-License-Identifier: MIT */
#pragma once
/* Which signals are watched, and those that have come. Signals belong to the process, so this is one for all hives.
 *
 * A watched signal that some thread has open is met by our handler there, which counts it and rings a bell. One that every thread has
 * blocked is met by a signalfd. A thread listens to both and tells those who wait (signal.c); it has everything blocked itself. So it does
 * not matter who has a signal open or blocked. It exists, with its two descriptors, while anything is watched.
 *
 * All of it lies in memory that is zeros in a child after fork(), which therefore has no thread, no lock that somebody holds, and
 * nobody who waits; zeros are how it begins. Handlers are inherited: there they give the signal to what was before ours.
 *
 * Fields:   A  any thread, atomic   L  under the lock that is named                                                          */
#include "base/atomic.h"
#include "base/lock.h"
#include "fiber/wait.h"
#include "io/handlers.h"

enum { SIGNAL_NUMBERS = 65 }; /* 1 … 64 */

struct signals {
	struct lock life;                         /* held by who changes what is watched, until that is done */
	uint32_t interest[SIGNAL_NUMBERS];        /* L life  hives and waits that want it */
	signal_set outside;                       /* L life  watched for who is on no worker */
	uint64_t thread;                          /* L life  that listens; 0: none, and the descriptors are not there */
	int blocked_fd;                           /* L life  signalfd */
	int bell_fd;                              /* L life  eventfd; constant while anything is watched */
	ATOMIC(uint32_t) over;                    /* A  the thread shall end */
	struct handlers handlers;                 /* A  and what they find watched */
	ATOMIC(uint32_t) arrived[SIGNAL_NUMBERS]; /* A  and not taken */
	struct lock lock;
	struct wait_list waits; /* L lock  struct signal_wait */
};

/* Any thread. NULL: no memory. */
struct signals *hive__signals(void);
/* Any thread. Watched for one more, or one less. 0 or -errno. */
int hive__watch_begin(struct signals *s, signal_set set);
void hive__watch_end(struct signals *s, signal_set set);
/* Any thread. The same for a hive, whose set (L life) says which it has: those that are missing; those that are there. */
int hive__watch_keep(struct signals *s, signal_set *mine, signal_set set);
void hive__watch_drop(struct signals *s, signal_set *mine, signal_set set);
/* Any thread. One of them that has arrived is the caller's: its number. 0: there is none. */
int hive__watch_take(struct signals *s, signal_set set);

/* signal.c. */
/* Any thread. 0, or -EINVAL: they cannot be waited for. */
int hive__signals_check(const int *signals, size_t count);
/* The thread that listens: something may have arrived. */
void hive__signals_arrived(struct signals *s);
