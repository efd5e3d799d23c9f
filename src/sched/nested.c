/* SPDX-License-Identifier: MIT */
/* Cores that are the loop of somebody else. Its callbacks are user code that comes by no source of ours, and may run that loop again: the
 * worker is awake for the first, and its beats go on in the second.                                                          */
#include "sched/internal.h"
#include "sched/stir.h"

static struct worker *worker_in(const struct hive_core *core)
{
	struct worker *w = hive__current();

	return w && w->kind == HIVE_WORKER_IO && w->core == core ? w : NULL;
}

void hive_core_enter(struct hive_core *core)
{
	struct worker *w = worker_in(core);

	if (!w || !w->turning)
		return;
	w->foreign = true;
	stirs(w, true);
}

void hive_core_leave(struct hive_core *core)
{
	struct worker *w = worker_in(core);

	if (!w || !w->foreign)
		return;
	w->foreign = false;
	hive__get_up(w);
	hive__end_search(w);
}

int hive_core_beat(struct hive_core *core, int64_t *ret_wait_ns)
{
	struct worker *w = worker_in(core);

	if (!ret_wait_ns)
		return -EINVAL;
	if (!w)
		return -EPERM;
	*ret_wait_ns = HIVE_FOREVER;
	if (w->foreign)
		return hive__beat_nested(w, ret_wait_ns) ? 0 : -ESHUTDOWN;
	hive__flush_outbox(w); /* else who waits for its answer in there would wait for ever */
	return -EDEADLK;
}
