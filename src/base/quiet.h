/* SPDX-License-Identifier: MIT */
#pragma once
/* To write to what nobody reads any more raises SIGPIPE, in the thread that writes. Around such a call:
 *
 *     hive__quiet_begin(&quiet);
 *     r = write(…);
 *     hive__quiet_end(&quiet, r < 0 && errno == EPIPE);
 *
 * and the program never sees the signal. A thread whose signals we have blocked for good pays for it when it happens only. */
#include <signal.h>
#include <stdbool.h>

struct quiet {
	sigset_t mask; /* of the thread, before */
	bool ours;     /* it is a thread of ours */
	bool pending;  /* the signal was there before */
};

void hive__quiet_begin(struct quiet *quiet);
/* raised: the call in between failed with EPIPE. errno stays. */
void hive__quiet_end(const struct quiet *quiet, bool raised);
/* The calling thread has SIGPIPE blocked from here on, until it ends. */
void hive__quiet_always(void);
