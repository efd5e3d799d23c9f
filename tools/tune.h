/* SPDX-License-Identifier: MIT */
#pragma once
#include "bench.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* `hive tune`: from what is tried (space) by what is measured (sample), kept (state), compared (stage) and decided (search) to
 * what is told (report).                                                                                                  */

/* ---- tune_space.c: parameters, their values, and candidates, which are a value for each ---- */
#define TUNE_PARAMETERS 16
#define TUNE_VALUES 12    /* of one parameter, beside its default */
#define TUNE_TEXT 512     /* of a candidate, as in HIVE_TUNE */
#define TUNE_WORD 24      /* of a value */
#define TUNE_ENOUGH 3     /* rounds that can be judged at all */
#define TUNE_DEFAULTS "-" /* the candidate that sets nothing, where an empty word would be overlooked */

struct tune_parameter {
	const char *name;
	bool of_hive;         /* a field of struct hive_options, else of struct hive_worker_options */
	const char *constant; /* what the names of its enum begin with; NULL: a number */
	char values[TUNE_VALUES][TUNE_WORD];
	int count;
};

struct tune_space {
	struct tune_parameter parameters[TUNE_PARAMETERS];
	int count;
};

struct tune_candidate {
	uint8_t choice[TUNE_PARAMETERS]; /* 0: the default, i: the i-th of the values */
};

/* "name,name=value:value,…", NULL: all. False: `why` says what is wrong with it. */
bool tune_space_read(struct tune_space *space, const char *text, char *why, size_t size);
/* How many candidates there are, at most `most`. */
size_t tune_space_size(const struct tune_space *space, size_t most);
void tune_candidate_text(const struct tune_space *space, const struct tune_candidate *candidate, char *text,
                         size_t size);
bool tune_candidate_equal(const struct tune_candidate *a, const struct tune_candidate *b);
int tune_candidate_changes(const struct tune_candidate *candidate); /* parameters that are not at their default */
/* How the value is written in C: HIVE_ORDER_OLDEST, HIVE_OFF, 32. */
void tune_value_in_c(const struct tune_parameter *parameter, int choice, char *text, size_t size);

/* ---- tune_sample.c: one figure, from a process of its own ---- */
#define TUNE_SOURCES 8 /* scenarios in one search */

struct tune_job {
	const struct bench_scenario *scenarios[TUNE_SOURCES];
	int scenario_count;
	char **command; /* NULL: `hive bench` with the scenarios; else ends with NULL */
	char **extra;   /* options for `hive bench`, ends with NULL */
	bool less;      /* of the command: less is better */
	double limit_s; /* longest time of a sample */
};

enum tune_end { TUNE_GOOD, TUNE_FAILED, TUNE_LATE, TUNE_INTERRUPTED };

int tune_job_sources(const struct tune_job *job);
const char *tune_job_name(const struct tune_job *job, int source);
const char *tune_job_figure(const struct tune_job *job, int source);
bool tune_job_more(const struct tune_job *job, int source);
/* `candidate` as in HIVE_TUNE. Unless good, `why` says what happened. */
enum tune_end tune_sample_take(const struct tune_job *job, int source, const char *candidate, uint64_t number,
                               double *ret_figure, char *why, size_t size);

/* ---- tune_state.c: all figures, by the names of their places in the search; in a file, if there is one ---- */
struct tune_line {
	char *key;
	double figure; /* 0: it failed */
};

struct tune_state {
	FILE *file;
	const char *path;
	struct tune_line *lines;
	size_t count, capacity;
};

/* path NULL: only in memory. `head`, one line, says what the search is about. False: `why`. */
bool tune_state_open(struct tune_state *state, const char *path, const char *head, char *why, size_t size);
const struct tune_line *tune_state_find(const struct tune_state *state, const char *key);
bool tune_state_add(struct tune_state *state, const char *key, double figure);
void tune_state_close(struct tune_state *state);

/* ---- tune_stage.c: some candidates, measured in turns ---- */
struct tune {
	struct tune_space space;
	struct tune_job job;
	struct tune_state state;
	uint64_t seed, samples, fresh;               /* samples: asked for, of these fresh: not from the file */
	size_t most;                                 /* candidates in a set */
	int repeat, generations;                     /* rounds of what decides; sets, one after the other */
	int64_t began_ns, search_until_ns, until_ns; /* INT64_MAX: no limit */
	bool terminal;                               /* of the progress */
	int failed;                                  /* candidates that gave no figure; the last reason is kept */
	char why[TUNE_TEXT + 512];
	int exit_code; /* not 0: the run has to end */
};

struct tune_stage {
	char *key, *title;                 /* its name in the state, and for people */
	struct tune_candidate *candidates; /* the first one has all defaults */
	size_t count;
	int rounds, done; /* planned, measured */
	double *figures;  /* [candidate][source][round] */
	bool *failed;     /* [candidate] */
	double *medians;  /* [candidate] how many times as good as the defaults */
	double *spreads;  /* [candidate] of the same: their middle half, as a standard deviation */
	double *base;     /* [source] median of the defaults */
};

/* NULL: no memory, which is said. Copies the candidates. */
struct tune_stage *tune_stage_create(struct tune *tune, const char *key, const char *title, int rounds,
                                     const struct tune_candidate *candidates, size_t count);
/* False: the run has to end (tune->exit_code). Else measured, as far as the time allowed: `done` rounds. */
bool tune_stage_run(struct tune *tune, struct tune_stage *stage, int64_t until_ns);
void tune_stage_free(struct tune_stage *stage);
/* SIZE_MAX: not in it. */
size_t tune_stage_find(const struct tune_stage *stage, const struct tune_candidate *candidate);
/* Is the difference of the medians greater than the spread of either? */
bool tune_stage_beats(const struct tune_stage *stage, size_t a, size_t b);
/* Places of all but the first, the best first, failed ones last. `ret_order` has room for count. */
void tune_stage_rank(const struct tune_stage *stage, size_t *ret_order);

uint64_t tune_random(uint64_t *state);

/* ---- tune_progress.c: on stderr ---- */
void tune_progress_sample(const struct tune *tune, const struct tune_stage *stage, size_t done, size_t all);
void tune_progress_stage(const struct tune *tune, const struct tune_stage *stage);
void tune_progress_note(const struct tune *tune, const char *text);

/* ---- tune_search.c, tune_judge.c: which candidate, and whether it is one ---- */
struct tune_outcome {
	struct tune_stage *survey; /* a value at a time around `around`; NULL: there was no time for it */
	struct tune_candidate around;
	struct tune_candidate challenger; /* the best of the search */
	struct tune_stage *effects;       /* `examined`, and it with each of its parameters set back */
	struct tune_candidate examined;   /* the challenger without what had fallen out by then */
	struct tune_stage *final;
	struct tune_candidate winner; /* all defaults: nothing is better */
	bool short_of_time;           /* too few rounds to judge */
};

/* The set of the first generation. How many. */
size_t tune_search_first(struct tune *tune, const struct tune_candidate *around, int generation,
                         struct tune_candidate *ret_set);
bool tune_search(struct tune *tune, struct tune_outcome *outcome);
bool tune_judge(struct tune *tune, struct tune_outcome *outcome);

/* ---- tune_report.c ---- */
void tune_report(const struct tune *tune, const struct tune_outcome *outcome, FILE *out);
bool tune_report_write(const struct tune *tune, const struct tune_outcome *outcome, const char *path);

int tune_main(int argc, char **argv);
