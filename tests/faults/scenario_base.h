/* SPDX-License-Identifier: MIT */
#pragma once
/* What the steps of scenario.h share. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "ledger.h"

enum { SCENARIO_SOURCES = 18, SCENARIO_STEPS = 25, SCENARIO_FIBERS = 40 };
enum { DEEP = 30 << 20, DEEP_FIBERS = 8 }; /* stacks so large that few of them keep their pages */

struct ear {
	struct hive_source source;
	ATOMIC(uint32_t) heard, started;
};

struct scenario {
	/* What the world gives */
	struct hive_options options;  /* host, template of IO workers */
	const int *codes;             /* documented, ends with 0 */
	int retries;                  /* of a call that failed */
	bool must_recover;            /* the last of them must succeed */
	bool deaf;                    /* cores cannot look for events: nobody waits for one */
	bool use_run;                 /* hive_run() on a thread in place of hive_start() */
	void (*pass)(void *pass_arg); /* lets something happen while we wait; fails the test if that takes too long */
	void *pass_arg;
	int out_fd; /* for hive_stats_write() */
	/* Its own */
	struct hive *hive;
	struct ledger *ledger;
	int steps;
	bool running;
	uint32_t second, third;
	struct hive_timer once, periodic, guard, left_behind;
	ATOMIC(uint32_t) periods, fibers_ended, deep_ended;
	int pipe[2], pair[2];
	struct ear pipe_ears[SCENARIO_SOURCES], pair_ear;
	ATOMIC(uint32_t) up, run_ended;
	struct hive_semaphore gate;
	int run_result;
	pthread_t runner;
	struct hive_worker_options io;
};

static inline bool documented(const struct scenario *s, int r)
{
	for (const int *code = s->codes; *code; code++)
		if (r == *code)
			return true;
	return false;
}

static inline void judge(struct scenario *s, int r, bool again, const char *text, int line)
{
	add_seq(&s->ledger->errors, 1u);
	if (!documented(s, r))
		test_fail(__FILE__, line, "%s: %s", text, test_error(r));
	if (!again && s->must_recover)
		test_fail(__FILE__, line, "%s: still %s", text, test_error(r));
}

/* r = expression; again and again while that returns an error that it may return. */
#define ATTEMPT(s, r, expression)                                                  \
	do {                                                                       \
		for (int left = (s)->retries; ((r) = (expression)) != 0; left--) { \
			judge((s), (r), left > 0, #expression, __LINE__);          \
			if (left <= 0)                                             \
				break;                                             \
		}                                                                  \
	} while (0)
