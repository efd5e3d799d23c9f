/* SPDX-License-Identifier: MIT */
#pragma once
/* What was posted, and what became of it. Everything here is plain memory: no point lies between two lines of it. */
#include "explore.h"

#include <rophive/hive.h>

enum { ENTRIES = 96, PAIRS = 40 };

enum fate {
	NOTHING,
	GIVEN,    /* the call that posts it is under way */
	ACCEPTED, /* that call said 0 */
	WORKED,   /* first half of hive_post_compute_then() */
	RAN,
	CANCELLED,
	DROPPED,
	REFUSED,
};

struct ledger;

struct entry {
	struct ledger *ledger;
	enum fate fate;
	bool ended;                /* ran, was cancelled or was dropped */
	bool shared;               /* went to a pool through one of its doors */
	bool compute;              /* waits for a compute worker */
	bool answered;             /* has two halves */
	bool later;                /* is due at some later time */
	int64_t due_ns, jumped_ns; /* likewise; and how far the clock had jumped before */
	uint64_t post;             /* of a delayed one, once it is known */
	int depth;                 /* posts made by its posts */
	uint32_t target;           /* worker it was posted to, or HIVE_WORKER_NONE */
	uint32_t from;             /* a letter: the worker that sent it, or HIVE_WORKER_NONE */
	int poster;                /* to the strand: the thread that posted it */
	bool alone;                /* likewise: it is a barrier */
};

struct turn_book { /* of the strand, if there is one */
	struct hive_strand *strand;
	uint32_t width, inside;
	bool alone;                            /* who is inside is a barrier */
	const struct entry *last[THREADS_MAX]; /* that began, of each poster: later ones were posted later */
};

struct pair { /* letters from one worker to one other */
	uint32_t from, to;
	const struct entry *last; /* that ran: later ones were posted later */
};

struct ledger {
	struct hive *hive;
	struct entry entries[ENTRIES];
	int used;
	int joined; /* hive_join() has returned: nothing may run any more */
	uint32_t workers[8];
	int worker_count;
	int compute_workers;
	bool draining; /* hive_stop(HIVE_DRAIN) without a deadline, and never HIVE_NOW */
	bool long_tasks;
	int fanout;  /* how many posts a task makes at most */
	int flood;   /* how many local posts the first tasks make */
	int letters; /* how many posts to one worker the first tasks make */
	struct pair pairs[PAIRS];
	struct turn_book turns;
};

/* Makes one call that posts something, drawn at random; `inside`: the caller is a task. False: it was refused for good. */
bool ledger_post(struct ledger *l, bool inside, int depth);
/* Posts into one door only. */
enum door {
	POST,
	POST_MANY,
	POST_TO,
	POST_AFTER,
	COMPUTE,
	THEN,
	POST_MAIN,
	OUTSIDE,
	LOCAL = OUTSIDE,
	SELF,
	SELF_AFTER,
	DOORS, /* those that are drawn; more: */
	COMPUTE_AT = DOORS,
	KEYED,
	STRAND,
	STRAND_ALONE
};
bool ledger_post_by(struct ledger *l, enum door door, int depth);
/* Cancels something that might still wait. */
void ledger_cancel(struct ledger *l);
/* Everybody sleeps: what was accepted and is due has run. */
void ledger_check_quiet(struct ledger *l);
/* After hive_join(): everything has ended, once, and the report says the same. */
void ledger_check_end(struct ledger *l);
void ledger_on_drop(void *ledger, const struct hive_task *task);
