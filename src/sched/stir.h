/* SPDX-License-Identifier: MIT */
#pragma once
/* What happens inside a turn of a worker's core. */
#include "sched/internal.h"

/* sleep.c: the first event. */
void hive__hear(struct worker *w);

/* The first that happens in a turn that slept ends the sleep. */
static inline void stirs(struct worker *w, bool user_code)
{
	if (w->still)
		hive__hear(w);
	bump(&w->stats.events, 1);
	if (user_code)
		hive__end_search(w);
}
