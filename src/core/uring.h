/* SPDX-License-Identifier: MIT */
#pragma once
/* The parts of the io_uring core.
 *
 * Everything that is asked of the kernel is an entry of the submission queue, sent off by the next turn; what comes back carries
 * the pointer it was sent with, and two bits that say of what. What is pointed at lives until the last answer is there.
 *
 * All of it belongs to the owner thread.                                                                                     */
#include <liburing.h>
#include <poll.h>

#include "base/buffers.h"
#include "base/memory.h"
#include "core/cores.h"

enum { FOR_OP, FOR_WATCH, FOR_WAKER, FOR_NOBODY, FOR_BITS = 3 }; /* low bits of user_data */

/* A source, and the poll request for it. Told once by the kernel, it is armed again in the next turn: that is what level means. By
 * edges: one request that goes on telling. One that the source has left behind is recalled, and is a spare when it has come back. */
struct watch {
	struct hive_source *source; /* NULL: nobody's any more */
	int fd;
	bool in_kernel;
	bool listed;   /* wants an entry of the submission queue */
	bool off;      /* ONCE, and told; or beyond hope */
	bool quiet;    /* what holds is nothing that was asked for: told of changes only */
	bool recalled; /* is to come back from the kernel */
	struct watch *next, *next_of_all;
};

struct buffer_ring; /* uring_buffers.c */

struct uring_core {
	struct hive_core core;
	struct memory memory;
	struct io_uring ring;
	int wake_fd;
	bool waker_is_armed;
	bool skips;           /* answers to recalls that succeed need not be told */
	bool accepts_many;    /* by one request */
	uint32_t can;         /* operations that this kernel knows, bit (1u << code) */
	uint32_t watching;    /* sources that are added */
	struct watch **by_fd; /* NULL: none */
	uint32_t fds;
	struct watch *listed, **listed_last; /* in order */
	struct watch *spare, *all;
	struct hive_op *late, *late_last; /* for which there was no entry in the submission queue, or whose recall */
	uint32_t late_count;
	struct buffer_ring *buffer_rings;
	uint32_t turns; /* how many there were */
	bool polled;    /* somebody else waits for the descriptor of the ring */
	bool enough;    /* of the answers in this one: somebody has had so many that others are due */
};

static inline struct uring_core *uring_of(struct hive_core *core)
{
	return (struct uring_core *)(void *)core;
}

/* uring.c */
/* An empty entry of the submission queue; NULL: it is full, and the kernel takes nothing at the moment. */
struct io_uring_sqe *hive__uring_entry(struct uring_core *c);
/* Asks the kernel to let go of what was sent with this. False: no entry. */
bool hive__uring_recall(struct uring_core *c, uint64_t user_data);
/* What a poll has told of that which was asked for. */
uint32_t hive__uring_events_of(int poll_events, uint32_t asked);
unsigned hive__uring_poll_of(uint32_t events);

/* uring_watch.c */
int hive__uring_add(struct hive_core *core, struct hive_source *source);
int hive__uring_modify(struct hive_core *core, struct hive_source *source);
void hive__uring_remove(struct hive_core *core, struct hive_source *source);
/* Sends what is listed. */
void hive__watches_send(struct uring_core *c);
/* An answer of the kernel; `more`: others follow. */
void hive__watch_told(struct uring_core *c, struct watch *w, int result, bool more);
void hive__watches_free(struct uring_core *c);

/* uring_op.c */
/* Which operations this kernel knows. */
void hive__uring_learn(struct uring_core *c);
int hive__uring_submit(struct hive_core *core, struct hive_op *op);
void hive__uring_cancel(struct hive_core *core, struct hive_op *op);
/* Sends what is late. True: something was delivered meanwhile. */
bool hive__ops_send(struct uring_core *c);
/* An answer, with the flags that came with it. */
void hive__op_told(struct uring_core *c, struct hive_op *op, int result, uint32_t flags);

/* uring_buffers.c */
/* The kernel has them from here on, all that are idle. False: it does not take them. */
bool hive__uring_lend(struct uring_core *c, struct buffers *buffers);
/* By which number the kernel knows them. */
uint16_t hive__uring_group(const struct buffers *buffers);
/* What has come back goes to the kernel again. */
void hive__uring_refill(struct buffers *buffers);
void hive__uring_refill_all(struct uring_core *c);

/* Operations that are left to the kernel, if it knows them. Not splice: it would block a thread of the kernel, and wants a pipe. Nor
 * shutdown, which does not block: the kernel has a thread do it all the same, and 113 us instead of half a one pass.            */
#define URING_OPS (((1u << HIVE_OP_CODES) - 2) & ~(1u << HIVE_OP_SPLICE | 1u << HIVE_OP_SHUTDOWN))
