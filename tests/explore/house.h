/* SPDX-License-Identifier: MIT */
#pragma once
/* The hive that a program explores, with its ledger: made, started, watched, ended. */
#include "ledger.h"

extern struct ledger ledger;
extern int warnings;            /* of this hive */
extern bool rings;              /* the local queues of this hive are rings; everything else about them is drawn */
extern bool meshed;             /* this hive has a mesh; else it is drawn */
extern hive_drop_fn *drop_hook; /* of the hives to come; NULL: the ledger's */

extern const char *(*watched)(void); /* checked at every switch beside this hive; NULL: nothing */

struct range {
	int least, most;
};

/* How its IO workers are, and those that come later. */
struct hive_worker_options draw_options(void);
bool make_hive(struct range io, struct range compute, int core);
bool open_hive(struct range io, struct range compute, int core);
/* Main functions of threads: stop (argument NULL: drain, else now), post that many times. */
void stop(void *mode);
void post_some(void *count);
/* Nobody is inside a call any more: everything that could run has run. */
void check_quiet(void);
/* Stopped already: waits for the end, compares the books, destroys. end_hive() stops first. */
void close_hive(void);
void end_hive(void);
void *number(intptr_t n);
