/* SPDX-License-Identifier: MIT */
#pragma once
/* Operations, and what the files of this folder offer each other.
 *
 * An op belongs to a desk, that of the IO worker where it was started or landed; that worker's thread alone works on it. For everybody
 * else its state says where it is (state.h).                                                                            */
#include <rophive/op.h>
#include <rophive/source.h>

#include "base/atomic.h"
#include "fiber/once.h"
#include "io/desk.h"
#include "io/lend.h"
#include "io/state.h"
#include "sched/guest.h"

enum { ACCEPT_ALONE = 1 }; /* flags of an accept: hive__op_accept_alone() */

_Static_assert(sizeof(struct guest) <= sizeof(((struct hive_op *)0)->way), "room for the way of an op");
_Static_assert(sizeof(struct once) <= sizeof(((struct hive_op *)0)->once), "room for who waits for an op");

enum { OP_MAGIC = 0x6f704f50 };

static inline bool op_is_valid(const struct hive_op *op)
{
	return op && op->magic == OP_MAGIC;
}

static inline struct guest *op_way(struct hive_op *op)
{
	return (struct guest *)(void *)op->way;
}

static inline struct hive_op *op_of_way(struct guest *guest)
{
	return (struct hive_op *)(void *)((char *)guest - offsetof(struct hive_op, way));
}

static inline struct once *op_once(struct hive_op *op)
{
	return (struct once *)(void *)op->once;
}

/* desk.c */
/* IO worker. Its desk, made when it is asked for the first time; NULL: no memory. */
struct desk *hive__desk(struct guest_place *place);
/* Any thread. Which signals this hive watches, under the lock of watch.h; NULL: no memory. */
uint64_t *hive__desk_signals(struct hive *hive);

/* op.c */
/* Any thread. A filled op begins. 0, -EBUSY, -EINVAL, -ENOMEM, -ESHUTDOWN, -EOWNERDEAD. */
int hive__op_begin(struct hive_op *op, int64_t deadline_ns);
/* Any thread. As hive_op_accept(); of all that wait so for this listener, on several workers, one is told of a connection where the core
 * can. Hence who has got one has to come back for the next, as long as others wait: they may not have been told of it.       */
int hive__op_accept_alone(struct hive_op *op, int fd, int64_t deadline_ns);
/* Its desk. It is complete; on_done is called, now or, `soon`, from the private queue of the worker: user code must not run inside
 * of what the user calls.                                                                                                */
void hive__op_finish(struct hive_op *op, int64_t result);
void hive__op_finish_soon(struct hive_op *op, int64_t result);
/* The same as finish, inside a turn of the core: a fiber that waits for it goes on soon, here. */
void hive__op_finish_in_turn(struct hive_op *op, int64_t result);
/* The fiber that has served it, when it ends, or whoever drops that. It is complete. */
void hive__op_finish_served(struct hive_op *op, int64_t result);
/* Its desk. One of several results. */
void hive__op_tell(struct hive_op *op, int64_t result);
/* Its desk. The rest of it blocks: a compute worker does it. */
void hive__op_to_compute(struct hive_op *op);
/* Its desk, where it is. It begins, or goes on when it was hungry. */
void hive__op_work(struct hive_op *op, struct desk *desk);
/* Its desk. Its end was asked for. */
void hive__op_end_here(struct hive_op *op);
/* Its desk, where it does not wait any more. It goes on at another one. */
void hive__op_move_on(struct hive_op *op);

/* under.c, for one that has a token */
/* Who begins it: 0; or it must not begin: the reason, -ENOMEM, … */
int hive__op_enter(struct hive_op *op);
/* Who tells it, or refuses to begin it: the token does not know it any more. The result that counts. */
int64_t hive__op_part(struct hive_op *op, int64_t result);

/* leave.c */
/* The desk's worker. All of them end (stop), or go on at other desks (leave). */
void hive__ops_cancel(struct desk *desk);
void hive__ops_move(struct desk *desk);

/* collect.c */
/* For dumps: what it is; if that ends with a blank its descriptor belongs to it. */
const char *hive__op_name(const struct hive_op *op);

/* net.c */
/* 0 or -EINVAL. */
int hive__net_check(const struct hive_net_options *options);

/* served.c: those that a fiber of ours does, by the call of the same name */
/* Any thread that may begin it, which is MOVING. On this worker it will be told; HIVE_WORKER_NONE: where its fiber begins. 0, -ENOMEM, -ESHUTDOWN. */
int hive__served_begin(struct hive_op *op, uint32_t worker);
/* IO worker, whose letter it is. */
void hive__served_cancel(struct hive_op *op);
/* Who tells its result. */
void hive__served_release(struct hive_op *op);

static inline bool op_is_served(const struct hive_op *op)
{
	return op->code >= HIVE_OP_RESOLVE;
}

/* seat.c: readiness */
/* The desk of an operation that begins: what a descriptor that is known gives at once. False: it has to wait, or nothing is known. */
bool hive__seat_try(struct desk *desk, struct hive_op *op, int64_t *ret_result);
/* Its desk. Tries, then waits for readiness. */
void hive__seat_start(struct desk *desk, struct hive_op *op);
/* Its desk. It waits no longer. */
void hive__seat_leave(struct desk *desk, struct hive_op *op);
/* The desk's worker. This number is, or is about to be, another descriptor. */
void hive__seat_forget(struct desk *desk, int fd);
/* The desk's worker. Nothing waits there any more. */
void hive__seats_rest(struct desk *desk);
void hive__seats_close(struct desk *desk);

/* call.c */
/* Any thread. hive_recv() and hive_send() where an operation is needed. */
int64_t hive__recv_by_op(int fd, void *buffer, size_t bytes, int64_t deadline_ns);
int64_t hive__send_by_op(int fd, const void *buffer, size_t bytes, int64_t deadline_ns);

/* system.c: what an op means to the system */
/* Once, without blocking: the result, or -EAGAIN. */
int64_t hive__op_try(struct hive_op *op);
/* It repeats, and this is one result of several. */
bool hive__op_has_more(const struct hive_op *op, int64_t result);
/* What repeats is not tried before an event, which may never come for what is no socket. -EAGAIN: it is one. */
int64_t hive__check_socket(int fd);
/* To its end, blocking. -EAGAIN: it has to wait for readiness after all, or, if it still op_blocks(), that is the answer. */
int64_t hive__op_block(struct hive_op *op);

/* copy.c */
/* Blocking. A splice from file to file: the result. */
int64_t hive__op_copy_file(const struct hive_op *op);

/* op->step, 0 at first: how far a connect is; what a splice waits for; that no event tells when to try again, or that it may be done
 * now, but only by who may block.                                                                                           */
enum { STEP_NEW, CONNECT_UNDER_WAY, SPLICE_FROM, SPLICE_TO, STEP_BLOCKS, STEP_BLOCKS_A_MOMENT };

/* After -EAGAIN: the HIVE_EVENT_… that it waits for, and the descriptor of which. */
static inline uint32_t op_events(const struct hive_op *op)
{
	const uint32_t out = 1u << HIVE_OP_CONNECT | 1u << HIVE_OP_SEND | 1u << HIVE_OP_SENDMSG | 1u << HIVE_OP_WRITE |
	                     1u << HIVE_OP_WRITEV;

	if (op->code == HIVE_OP_POLL)
		return op->flags;
	return (out >> op->code & 1) || op->step == SPLICE_TO ? HIVE_EVENT_OUT : HIVE_EVENT_IN;
}

static inline int op_waits_at(const struct hive_op *op)
{
	return op->step == SPLICE_TO ? op->fd2 : op->fd;
}

/* It is, or has come to be, about what no event tells of: a file, a name. */
static inline bool op_blocks(const struct hive_op *op)
{
	return op->step >= STEP_BLOCKS || (op->code >= HIVE_OP_OPEN && op->code != HIVE_OP_CLOSE);
}
/* It is about so much of a file that to copy it keeps a worker, though it be in memory. */
bool hive__op_is_long(const struct hive_op *op);
