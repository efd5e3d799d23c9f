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
