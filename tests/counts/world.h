/* SPDX-License-Identifier: MIT */
#pragma once
/* A host without threads that does next to nothing, so that what is counted is the library: the clock stands until it is moved, random numbers
 * are always the same ones, and workers make their beats in order.                                                            */
#include <rophive/hive.h>

#include <stdio.h>
#include <stdlib.h>

enum { WORLD_WORKERS = 4 };

struct world_worker {
	uint32_t id;
	hive_step_fn *step;
	void *step_arg;
	int64_t due_ns;
	bool woken, left;
};

struct world {
	struct hive_host host;
	struct hive *hive;
	int64_t now_ns;
	uint64_t random;
	struct world_worker workers[WORLD_WORKERS];
	int count;
};

/* A wrong result is no figure. */
#define MUST(condition)                                                                           \
	do {                                                                                      \
		if (!(condition)) {                                                               \
			fprintf(stderr, "%s:%d: %s is not so\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

/* Creates the hive with this host and starts it; all have made a beat on return. */
void world_open(struct world *w, struct hive_options options);
/* Drains, looks into the books, and destroys. */
void world_close(struct world *w);
/* One beat of the worker with this place in the order of attachment. */
void world_step(struct world *w, int worker);
/* Beats of everybody who wants one, until nobody does. False: nobody did. */
bool world_settle(struct world *w);
uint64_t world_random(struct world *w);
