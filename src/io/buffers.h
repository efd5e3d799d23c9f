/* SPDX-License-Identifier: MIT */
#pragma once
/* Buffers that are lent when something has come, and who waits for one.
 *
 * Each worker has its share of buffers, made when an operation with them comes there for the first time: so the limit is one of a worker, and
 * workers do not wait for each other's. When a worker leaves, the next one that needs a share goes on with this one.
 *
 * An operation for which there is none is hungry: out of seat and core, in a line at its share. Who returns a buffer sends a letter to the
 * worker then, one at a time, and the letter has those of the line go on for whom there is something.
 *
 * Fields:   I  constant   O  owner: the thread of the share's worker   A  any thread, atomic   L  under the lock of the share's set     */
#include "base/buffers.h"
#include "io/op.h"

struct share {
	struct buffers set;
	struct hive_buffers *pool; /* I */
	struct share *next;        /* I  of the pool */
	struct share *next_here;   /* O  of the desk */
	struct desk *desk;         /* O; L to change  NULL: nobody's */
	uint32_t worker;           /* L  id */
	bool wanted;               /* L  somebody waits for one: who returns one says so */
	bool mail;                 /* L  the letter is on its way */
	uint32_t sent_to;          /* L  and to whom */
	struct guest letter;
	struct hive_op *hungry, *last_hungry; /* O  linked by spare[…] */
};

/* Its desk. It has its buffers from the desk's share from here on. 0, -ENOMEM. */
int hive__share_begin(struct desk *desk, struct hive_op *op);
/* Its desk, where it neither waits nor is in the core: there was no buffer. */
void hive__share_starve(struct hive_op *op);
/* Its desk. It waits for a buffer no longer. */
void hive__share_leave(struct hive_op *op);
/* The desk's worker. There are no operations any more. */
void hive__shares_close(struct desk *desk);
/* Any thread. Operations with them: one begins, if they are of its hive; one has ended. 0, -EINVAL. */
int hive__buffers_use(struct hive_buffers *buffers, const struct hive *hive);
void hive__buffers_unuse(struct hive_buffers *buffers);
uint32_t hive__buffers_bytes(const struct hive_buffers *buffers);
