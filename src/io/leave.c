/* SPDX-License-Identifier: MIT */
/* Operations that come back: from a worker that stops or leaves, and from a core that has done them. */
#include <rophive/core.h>

#include "io/buffers.h"
#include "io/number.h"
#include "io/op.h"
#include "io/seat.h"

/* ---- the end of a worker ---- */

/* Each of them, whether somebody asked for its end or not: his letter may not come here any more. New ones do not begin. */
void hive__ops_cancel(struct desk *desk)
{
	struct hive_op *op, *next;

	hive__seats_rest(desk);
	for (op = desk->ops; op; op = next) {
		next = (struct hive_op *)op->next;
		hive__op_end_here(op);
	}
}

/* Those that the core has must come back first: it is asked to let go of them, and what it has done meanwhile counts. */
void hive__ops_move(struct desk *desk)
{
	struct hive_core *core = hive__place_core(desk->place);
	struct hive_op *op, *next;

	desk->left = true;
	hive__seats_rest(desk);
	hive__seats_call_all(desk);
	for (op = desk->ops; op; op = next) {
		next = (struct hive_op *)op->next;
		if (op->native) {
			op->leaves = true;
			hive__op_end_here(op);
		} else {
			hive__seat_leave(desk, op);
			hive__op_move_on(op);
		}
	}
	while (desk->ops)
		core->ops->turn(core, HIVE_MS(10));
}

/* ---- from the core ---- */

/* The engine is not asked where a core works by itself, but others use what it makes. */
static void note_fresh(const struct hive_op *op, int64_t result)
{
	if (result < 0 || (op->code != HIVE_OP_ACCEPT && op->code != HIVE_OP_OPEN))
		return;
	hive__number_begins((int)result);
}

/* Nothing has happened yet, and it goes on without the core: by readiness, or when there is a buffer. */
static bool goes_on(const struct hive_op *op, int64_t result)
{
	return (result == -EAGAIN && op->code < HIVE_OP_OPEN) || (result == -ENOBUFS && op->code == HIVE_OP_RECV_MANY);
}

static void come_home(struct desk *desk, struct hive_op *op, int64_t result)
{
	bool asked = (load_relaxed(&op->state) & OP_ASKED) || (op->told && !op->leaves); /* by somebody, or by a stop */

	op_returns(op);
	op->native = false;
	if (op->leaves && !asked && (result == -ECANCELED || goes_on(op, result)))
		hive__op_move_on(op);
	else if (!goes_on(op, result))
		hive__op_finish_in_turn(op, result);
	else if (asked)
		hive__op_finish(op, -ECANCELED);
	else if (result == -ENOBUFS)
		hive__share_starve(op);
	else
		hive__seat_start(desk, op);
}

void hive_op_deliver(struct hive_op *op, int64_t result, bool more)
{
	struct desk *desk = (struct desk *)load_relaxed(&op->owner);

	note_fresh(op, result);
	hive__place_stirs(desk->place, op->on_done);
	if (more)
		hive__op_tell(op, result);
	else
		come_home(desk, op, result);
}
