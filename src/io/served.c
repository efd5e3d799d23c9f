/* SPDX-License-Identifier: MIT */
/* Operations that are made of several, or of what no core knows: names, connections by name, children, signals. A fiber of our own makes the call
 * of the same name, and its end is that of the operation; also when it was dropped before it began.
 *
 * Such an op is at no desk: whoever asks for its end sends the letter (state.h), which cancels the fiber. The handle stays until the result is
 * told, so that a letter never finds another fiber under it. The deadline is that of the call, and stop, drain, and a worker that
 * leaves are what they are to every fiber.                                                                                    */
#include <rophive/hive.h>
#include <rophive/io.h>
#include <rophive/process.h>

#include "fiber/fiber.h"
#include "io/op.h"

/* In the room that a core would have. */
_Static_assert(sizeof(struct tracker) <= sizeof(((struct hive_op *)0)->spare), "room for the end of a fiber");

static struct tracker *tracker_of(struct hive_op *op)
{
	return (struct tracker *)(void *)op->spare;
}

static struct hive_op *op_of_tracker(struct tracker *tracker)
{
	return (struct hive_op *)(void *)((char *)tracker - offsetof(struct hive_op, spare));
}

/* May wait, in its fiber. */
static int call(const struct hive_op *op)
{
	switch (op->code) {
	case HIVE_OP_RESOLVE:
		return hive_resolve((const char *)op->buffer, (uint16_t)op->mode, (struct hive_address *)op->extra,
		                    op->length, op->deadline_ns);
	case HIVE_OP_DIAL:
		return hive_dial((const char *)op->buffer, (uint16_t)op->mode,
		                 (const struct hive_net_options *)op->extra, op->deadline_ns);
	case HIVE_OP_PROCESS_START:
		return hive_process_start((const char *const *)op->buffer,
		                          (const struct hive_process_options *)op->extra, (int *)(intptr_t)op->offset);
	case HIVE_OP_PROCESS_WAIT:
		return hive_process_wait((int)op->offset, op->deadline_ns);
	case HIVE_OP_SIGNAL_WAIT:
		return hive_signal_wait((const int *)op->buffer, op->length, op->deadline_ns);
	default:
		return -EINVAL;
	}
}

static int serve(void *arg)
{
	struct hive_op *op = (struct hive_op *)arg;

	if (load_relaxed(&op->worker) == HIVE_WORKER_NONE)
		store_relaxed(&op->worker, hive_worker_current());
	return op_state_land(&op->state) & OP_ASKED ? -ECANCELED : call(op);
}

static void ended(struct tracker *tracker)
{
	hive__op_finish_served(op_of_tracker(tracker), tracker->result);
}

int hive__served_begin(struct hive_op *op, uint32_t worker)
{
	struct hive_fiber_options how = { .name = hive__op_name(op), .worker = HIVE_WORKER_NONE };
	struct tracker *tracker = tracker_of(op);

	store_relaxed(&op->owner, (void *)NULL);
	store_relaxed(&op->worker, worker);
	*tracker = (struct tracker){ .ended = ended };
	return hive__fiber_start_own(op->hive, serve, op, &how, tracker, &op->servant);
}

void hive__served_cancel(struct hive_op *op)
{
	hive_fiber_cancel(op->servant);
}

void hive__served_release(struct hive_op *op)
{
	hive_fiber_detach(op->servant);
}
