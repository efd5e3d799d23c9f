/* SPDX-License-Identifier: MIT */
#pragma once
/* A world for semantic tests: a host without threads whose clock stands until the test moves it, whose random numbers are a
 * script, whose wakes are counted, and whose allocations can be made to fail; and a core that never blocks, records each
 * time-out it is given and plays a script of events. The test decides which worker makes the next beat.                    */
#include "sched/internal.h"

#include <rophive/hive.h>

/* What holds for local queues of either order. The ring holds as many as its capacity says and, beside it, the newest. */
#define FOR_BOTH_ORDERS(order) for (enum hive_order order = HIVE_ORDER_NEWEST; order <= HIVE_ORDER_OLDEST; order++)

static inline int fake_beside(enum hive_order order)
{
	return order == HIVE_ORDER_OLDEST;
}

enum { FAKE_WORKERS = 64, FAKE_RANDOMS = 256, FAKE_TURNS = 256 };

struct fake_worker {
	uint32_t id;
	hive_step_fn *step;
	void *step_arg;
	int64_t wait_ns;      /* what its last step asked for; -1 before the first */
	int64_t last_wake_ns; /* on the fake clock */
	int wakes;            /* since fake_reset_wakes() */
	bool left;
};

struct fake {
	struct hive_host host;
	struct hive *hive;
	int64_t now_ns;
	struct fake_worker workers[FAKE_WORKERS];
	int worker_count;
	int wakes; /* all workers, since fake_reset_wakes() */
	/* Random numbers: played in order, then 0. fake_random(k, n) makes one that draws k out of n. */
	uint64_t randoms[FAKE_RANDOMS];
	int random_count, random_next;
	/* Allocations: the n-th from now fails (0: none), and with `sticky` all after it. */
	int fail_at, allocations;
	bool sticky;
	int64_t balance; /* blocks given minus blocks taken back */
	int warnings;
	char last_warning[256];
	int drops;
	struct hive_task dropped[256];
};

/* Fills f->host and creates f->hive from `options` (its host, hooks are replaced; default core: the fake core). */
void fake_create(struct fake *f, struct hive_options options);
/* hive_start(): every worker becomes a step. Sources etc. can be started in on_start, which runs in the first step. */
void fake_start(struct fake *f);
/* Stops (HIVE_NOW), steps everybody to the end, destroys; checks that the books balance and no memory is left. */
void fake_destroy(struct fake *f);

struct fake_worker *fake_worker(struct fake *f, uint32_t id);
/* One beat of this worker. The wait it asks for (0: it has more to do), or -ESHUTDOWN. */
int64_t fake_step(struct fake *f, uint32_t id);
/* Beats of everybody, in order of attachment, until all want to wait; how many beats. Time does not move. */
int fake_settle(struct fake *f);
/* Moves the clock, then settles. */
void fake_advance(struct fake *f, int64_t delay_ns);
void fake_reset_wakes(struct fake *f);
/* A random number of which rng_below(…, n) makes k. */
uint64_t fake_random(uint32_t k, uint32_t n);
void fake_push_random(struct fake *f, uint64_t number);

/* The fake core. With core_arg NULL it lives for itself; with a struct fake_core_script it records and plays. */
struct fake_core_script {
	int64_t timeouts[FAKE_TURNS];
	int turns;
	int wakes, opens, closes;
	/* Called inside each turn, if set: the place to deliver events (sources[i]) or to post "while it sleeps". */
	void (*in_turn)(struct fake_core_script *script, int64_t timeout_ns);
	void *arg;
	struct hive_source *sources[64]; /* started ones, NULL holes */
	int source_count;
	int fail_open, fail_add; /* -errno to answer with, once */
};
extern const struct hive_core_ops fake_core; /* takes HIVE_SOURCE_FD and HIVE_SOURCE_USER */

/* A log that tasks write to: fake_note is a hive_fn whose argument is a number below 1000. */
void fake_note(void *number);
void fake_log_clear(void);
const char *fake_log(void); /* "3 1 2" */
