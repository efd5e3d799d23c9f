/* SPDX-License-Identifier: MIT */
#pragma once
/* The stack of another thread, as that thread sees it: it is sent a signal, and its handler writes down where it stands. One is asked at a
 * time, in the whole process.
 *
 *   IDLE --ask--> ASKED --the thread's handler--> WRITING --> ANSWERED --> IDLE
 *                 ASKED --nobody has answered in time--> IDLE: a handler that comes later finds another question's number            */
#include <stdbool.h>
#include <stdint.h>

struct worker;

enum { BACKTRACE_MAX = 48 };

struct backtrace {
	int depth;      /* 0: nothing can be seen */
	void *fiber_fn; /* of the fiber that runs there; NULL: none does */
	char fiber_name[32];
	void *frames[BACKTRACE_MAX]; /* where it stands first */
};

/* Any thread. From the first to the last of these the signal has our handler; what was there before is called for signals that are not ours.
 * False: this system cannot do it.                                                                                    */
bool hive__backtrace_open(void);
void hive__backtrace_close(void);
/* While open. A thread that blocks it is never answered for. */
int hive__backtrace_signal(void);
/* Any thread, while open. False: no answer, or not in time. */
bool hive__backtrace_ask(struct worker *w, uint32_t thread, struct backtrace *ret_backtrace);
