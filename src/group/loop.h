/* SPDX-License-Identifier: MIT */
#pragma once
/* A range that several work on: each takes the next piece until there is none. Who begins it works alone at first, so that a short one costs
 * nothing; then others are asked in, when they have nothing else to do.
 *
 * Pieces last some hundred microseconds (on IO workers, which have others to serve, some ten), by measurement: so long that taking one is nothing
 * beside it, and so short that all end at about the same time, however unequal the work is.                               */
#include "group/group.h"

struct loop {
	alignas(CACHE_LINE) ATOMIC(uint64_t) taken; /* A  of the range, from its begin on */
	alignas(CACHE_LINE) ATOMIC(uint32_t) asked; /* A  how many were asked in */
	uint64_t length, grain;                     /* I */
	int64_t begin;                              /* I */
	uint32_t crew;                              /* I  how many may take part, at most */
	bool measured;                              /* I  pieces grow and shrink */
	int64_t short_ns, long_ns;                  /* I  where they do */
	struct hive *hive;                          /* I */
	hive_fn *ticket;                            /* I  takes part, with the loop as its argument */
	int64_t deadline_ns;                        /* I */
	struct hive_group group;
};

/* One who takes part. */
struct loop_part {
	uint64_t piece;     /* how much it takes next */
	uint32_t pieces;    /* that it took */
	int64_t entered_ns; /* with the first of them */
	int64_t began_ns;   /* with the last */
};

/* Pieces below and above are made longer, shorter; on IO workers they are short. A loop that does little else than read and write memory wants long ones:
 * those of two workers lie beside each other, and with 8 to 40 µs it was slower than with a half for each, by a sixth (hive bench --scenario loop). */
enum { LOOP_SHORT_NS = 100000, LOOP_LONG_NS = 400000, LOOP_SHORT_IO_NS = 8000, LOOP_LONG_IO_NS = 40000 };
enum { LOOP_WORTH_NS = 8000 }; /* what has lasted for so long is worth asking others in */
enum { LOOP_FEW = 8 };         /* pieces */

/* 0: the range is there to be worked on; 1: it is empty. Else as hive_parallel_for() says. */
int hive__loop_begin(struct loop *loop, struct hive *hive, enum hive_kind kind, int64_t begin, int64_t end,
                     int64_t grain, int64_t deadline_ns);
/* Asks others in, takes part if it may, waits for all. */
int hive__loop_run(struct loop *loop, hive_fn *ticket);

void hive__loop_enter(struct loop *loop, struct loop_part *part);
/* The next piece; false: there is none, or the time is over. */
bool hive__loop_next(struct loop *loop, struct loop_part *part, int64_t *ret_begin, int64_t *ret_end);
