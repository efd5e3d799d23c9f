/* SPDX-License-Identifier: MIT */
/* Guests of either kind: which workers run them, and who stands in. */
#include <errno.h>

#include "group/ready.h"
#include "sched/state.h"

/* The hive keeps nothing for them, but has to know that there are some: then its workers stay while it is held. */
static void stop_all(void *guests, void *cache)
{
	(void)guests;
	(void)cache;
}

static void end_all(void *guests)
{
	(void)guests;
}

static const struct guest_ops ops = { .stop = stop_all, .end = end_all, .leave = stop_all };

int hive__group_admit(struct hive *hive, enum hive_kind kind)
{
	int r = kind == HIVE_MICRO || kind == HIVE_COMPUTE ? hive__guest_door(hive) : -EINVAL;

	if (r == 0) /* whose inbox takes what finds no room elsewhere */
		r = hive__guest_check_worker(hive, HIVE_WORKER_MAIN);
	if (r == 0 && kind == HIVE_COMPUTE && !hive__guest_has_compute(hive))
		r = -ENOTSUP;
	if (r == 0)
		hive__guests_set(hive, GUESTS_STRANDS, hive, &ops);
	return r;
}

bool hive__group_is_leaving(struct hive *hive)
{
	return load_relaxed(hive__guest_state(hive)) >= HIVE_LEAVING;
}

static bool to_compute(struct hive *hive, struct guest *guest, enum hive_kind kind)
{
	return kind == HIVE_COMPUTE && !hive__group_is_leaving(hive) && hive__guest_compute(hive, guest) == 0;
}

void hive__group_ready(struct hive *hive, struct guest *guest, enum hive_kind kind)
{
	if (!to_compute(hive, guest, kind))
		hive__guest_ready(hive, guest);
}

/* The pool is first in, first out, and anybody's; the local queue would give it back at once. */
void hive__group_again(struct hive *hive, struct guest *guest, enum hive_kind kind)
{
	if (!to_compute(hive, guest, kind))
		hive__guest_move(hive, guest);
}

/* Where it came because there was no memory it goes on from. If there still is none, it runs here. */
bool hive__group_goes_on(struct hive *hive, struct guest *guest, enum hive_kind kind)
{
	if (!hive__place() || !to_compute(hive, guest, kind))
		return false;
	hive__guest_ran(0, true);
	return true;
}
