/* SPDX-License-Identifier: MIT */
#pragma once
/* A desk: where the operations of an IO worker are kept, and what it knows of the descriptors they are about. */
#include <rophive/op.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "sched/guest.h"

enum { DOUBT_SLOTS = 64 };

struct seat;
struct share;

struct desk { /* of an IO worker; O */
	struct guest_place *place;
	struct hive *hive;
	struct memory memory;
	uint32_t worker;            /* id */
	struct hive_op *ops, *last; /* all that are here */
	struct seat ***chunks;      /* by descriptor: seat.c */
	uint32_t chunk_count;
	struct seat *doubtful[DOUBT_SLOTS]; /* by the tick in which they are looked at: doubt.c */
	uint32_t doubtful_count;
	uint32_t tick; /* how many there were */
	uint64_t doubt_alarm;
	struct share *shares; /* of buffers: buffers.c */
	uint32_t at_once;     /* weight of results that were there at once, since somebody let others in */
	bool left;            /* its worker leaves: what comes goes on elsewhere */
	bool by_seats;        /* I  its core leaves receives and sends to seats */
};

/* What fibers of a worker have at once, until others have their turn: each result counts, and each so many bytes of it. */
enum { RESULTS_IN_A_ROW = 256, BYTES_OF_A_RESULT = 128 };

/* True: others are due. */
static inline bool desk_counts(struct desk *desk, int64_t result)
{
	desk->at_once += 1 + (uint32_t)(result > 0 ? result / BYTES_OF_A_RESULT : 0);
	if (desk->at_once < RESULTS_IN_A_ROW)
		return false;
	desk->at_once = 0;
	return true;
}

/* It is here from now on, the last of all. */
static inline void desk_link(struct desk *desk, struct hive_op *op)
{
	store_relaxed(&op->owner, (void *)desk);
	store_relaxed(&op->worker, desk->worker);
	op->next = NULL;
	op->prev = desk->last;
	if (desk->last)
		desk->last->next = op;
	else
		desk->ops = op;
	desk->last = op;
	store_relaxed(&desk->place->under_way, load_relaxed(&desk->place->under_way) + 1);
}

static inline void desk_unlink(struct hive_op *op)
{
	struct desk *desk = (struct desk *)load_relaxed(&op->owner);
	struct hive_op *next = (struct hive_op *)op->next, *prev = (struct hive_op *)op->prev;

	if (next)
		next->prev = prev;
	else
		desk->last = prev;
	if (prev)
		prev->next = next;
	else
		desk->ops = next;
	store_relaxed(&desk->place->under_way, load_relaxed(&desk->place->under_way) - 1);
}
