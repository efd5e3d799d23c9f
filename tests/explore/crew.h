/* SPDX-License-Identifier: MIT */
#pragma once
/* The fibers of a program, and what became of each: spawned or refused, begun at most once, ended, its result asked for once.
 * Plain memory, as the ledger of tasks.                                                                                  */
#include "house.h"

enum { CREW = 24 };

struct one {
	struct hive_fiber *handle;
	bool accepted; /* its spawn said 0 */
	bool begun, ended;
	bool taken;     /* somebody joins or detaches it, or has */
	bool cancelled; /* somebody asked for it */
	int depth;
};

extern struct crew {
	struct one ones[CREW];
	int used;
	int offloads;    /* that run just now */
	bool joined;     /* hive_join() has returned */
	bool stopping;   /* a stop was asked for: spawns may be refused, waits may be cancelled */
	bool now;        /* not by a drain without a deadline */
	bool offloading; /* there are compute workers, and there will be */
} crew;

void crew_clear(void);
/* A fiber that does something at random. False: it was refused. `how`: bit 0 pinned to a worker, bit 1 detached */
bool crew_spawn(int depth, int how);
/* A fiber that does as it is told: fn(one), which begins with crew_enter() and ends with crew_leave(). False: it was refused. */
bool crew_hire(hive_fiber_fn *fn, int how);
/* Its number. */
int crew_enter(void *one);
int crew_leave(void *one);
/* No time at all, for ever, or a moment. */
int64_t crew_deadline(void);
/* What a wait of this one may say; -1: not a fiber, which nobody cancels. -ENOMEM: a fault took the memory of its deadline. */
void crew_check_wait(int self, int r, int64_t deadline);
/* Stops, and makes a note of it: argument NULL: drain, maybe until a deadline; else now. For threads. */
void crew_stop(void *mode);
void crew_end(void);
/* A thread that detaches the last worker. */
void crew_detach(void *arg);
void crew_join_threads(const int *threads, int n);
/* Somebody who is not a fiber spawns some, and joins most. For threads. */
void crew_poster(void *count);
/* These threads and the fibers come to their end, while somebody may cancel or stop; and so does the hive. There is room for one thread more. */
void crew_see_it_through(int *threads, int n);
/* A few fibers and threads, which are seen through. */
void crew_work_together(hive_fiber_fn *fiber, void (*thread)(void *arg));
/* A thread that cancels whomever it finds, so often. */
void crew_canceller(void *count);
/* Joins, waits for, detaches one of them; only those after `self`, so that nobody waits in a circle. -1: not a fiber. */
void crew_ask(int self);
/* All sleep: everybody has come to an end, given time. */
void crew_check_quiet(void);
/* The same, without: nobody needs more than what has happened. */
void crew_check_still(void);
/* Stopped already: waits for the end, asks for what is left, compares the books; and destroys. */
void crew_finish(void);
void crew_close(void);
