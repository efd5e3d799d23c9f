/* SPDX-License-Identifier: MIT */
#pragma once
/* A host without threads for fuzz targets: the clock stands until the target moves it, workers make a beat when they were
 * woken, when their time has come, or when the input says so, memory is counted and can run out. And a core whose events
 * are made by the target.                                                                                                */
#include "fuzz.h"

#include <rophive/hive.h>

enum { WORLD_WORKERS = 64, WORLD_SOURCES = 8 };

struct world_worker {
	uint32_t id;
	hive_step_fn *step; /* NULL: it has left */
	void *step_arg;
	int64_t due_ns; /* when it wants its next beat; HIVE_FOREVER: only when woken */
	bool woken;
	uint64_t beat; /* the number of its last one */
};

struct world {
	struct hive_host host;
	struct counted_memory memory;
	int64_t now_ns;
	uint64_t rng;
	struct world_worker workers[WORLD_WORKERS]; /* those that have left stay */
	int count, running, next;
	uint64_t begun;  /* beats so far */
	int stepping;    /* beats under way, one inside the other */
	long beats_left; /* an input may make so many beats of its own */
	int warnings;
	void (*on_left)(uint32_t worker); /* if set: after its last beat */
	/* Idle spinning: so many beats in a row that somebody wanted, but nothing came of them. 0: nobody counts. */
	long patience, idle_beats;
	uint64_t progress; /* the target counts here whatever of its own is called */
};

extern const struct hive_core_ops world_core;

void world_init(struct world *w, uint64_t seed, int64_t now_ns);
/* One beat of this worker; what it asks for, or -ESHUTDOWN. */
int64_t world_step(struct world *w, int index);
bool world_wants_beat(const struct world *w, int index);
/* Beats of those who want one, until nobody does. False: the bound came first. */
bool world_settle(struct world *w, long beats);
/* Beats of this one alone, as long as it wants them and *beats lasts. */
void world_settle_one(struct world *w, int index, long *beats);
/* Counts; hive_options.hook_arg must be the world. */
void world_warn(void *hook_arg, const char *text);
