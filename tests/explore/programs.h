/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdint.h>

struct program {
	const char *name; /* a sentence, as with tests */
	void (*run)(void *arg);
};

extern const struct program programs[]; /* ends with a name of NULL */

/* lives.c */
void a_start_races_with_everything(void *arg);
void compute_workers_come_and_go(void *arg);
void timers_move_with_their_worker(void *arg);

/* fibers.c */
void fibers_find_their_way(void *arg);
void cancels_race_with_parking(void *arg);
void cancels_race_with_everything(void *arg);
void a_stop_races_with_fibers(void *arg);
void a_drain_waits_for_fibers(void *arg);
void fibers_move_when_their_worker_leaves(void *arg);
void block_on_waits_for_all(void *arg);
