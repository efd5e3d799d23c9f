/* SPDX-License-Identifier: MIT */
/* Operations under a cancel token: a watch inside the operation, from its beginning until it is told. */
#include "fiber/cancel.h"
#include "io/op.h"

static void on_fired(struct hive_cancel_watch *watch, int reason)
{
	(void)reason;
	hive_op_cancel((struct hive_op *)watch->arg);
}

int hive_op_under(struct hive_op *op, struct hive_cancel *cancel)
{
	if (!op_is_valid(op) || (cancel && !cancel_is_valid(cancel)))
		return -EINVAL;
	if (load_relaxed(&op->state) != 0)
		return -EBUSY;
	op->cancel = cancel;
	return 0;
}

/* From here on its end may be asked for, as if somebody else had been told of it. */
int hive__op_enter(struct hive_op *op)
{
	int r = hive__cancel_enter(op->cancel);

	if (r < 0)
		return r;
	hive_cancel_watch_init(&op->watch, on_fired, op);
	r = hive__cancel_arm(op->cancel, op->hive);
	if (r == 0)
		r = hive__cancel_watch(op->cancel, &op->watch);
	hive__cancel_leave(op->cancel, NULL);
	return r;
}

/* Nobody asks for its end any more: neither now nor, when who fires is just doing so, any longer. */
int64_t hive__op_part(struct hive_op *op, int64_t result)
{
	bool fired = hive_cancel_watch_stop(&op->watch) == 0;

	return fired && result == -ECANCELED ? op->watch.reason : result;
}
