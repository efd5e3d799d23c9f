/* SPDX-License-Identifier: MIT */
#pragma once
/* The waits of fiber/wait.h for the threads of a model: the cell as it is, parked in a parker. A deadline (any but HIVE_FOREVER) may
 * pass at any time. Half of the models' threads park in the cell as fibers do, the others as threads do: they are claimed
 * without being parked, and wait for their token.                                                                           */
#include "base/parker.h"
#include "fiber/wait.h"

#include <rophive/time.h>

struct waiter {
	struct cell cell;
	struct parker parker;
	bool is_thread;
};

#define MODEL_WAITERS 3
static struct waiter *model_waiters; /* of the scenario, one for each thread */

inline int64_t hive_now(const struct hive *)
{
	return 1;
}

inline void *hive__wait_self(void)
{
	/* as an address that is never 0, and a multiple of 8 */
	return (void *)(uintptr_t)((rl::thread_index() + 1) * 8);
}

inline int hive__wait_begin_shielded(struct wait *ret_wait, const char *)
{
	ret_wait->who = &model_waiters[rl::thread_index()];
	ret_wait->turn = cell_begin(&ret_wait->who->cell, true);
	return 0;
}

inline int hive__wait_begin(struct wait *ret_wait, const char *why)
{
	return hive__wait_begin_shielded(ret_wait, why);
}

inline void hive__wait_held(int32_t) {}

inline void hive__wait_checkpoint(void) {}

inline void hive__wait_number(struct wait, int32_t) {}

inline void hive__wait_whom(struct wait, uintptr_t) {}
/* Different for each, so that they try in different orders. */
inline uint64_t hive__wait_random(void)
{
	return rl::thread_index();
}

inline enum cell_claim hive__wait_claim(struct wait wait)
{
	enum cell_claim claim = cell_claim(&wait.who->cell, wait.turn, CELL_WOKEN);

	return claim == CELL_OURS && wait.who->is_thread ? CELL_OURS_PARKED : claim;
}

inline void hive__wait_deliver(struct wait wait)
{
	parker_unpark(&wait.who->parker);
}

static inline int model_result(struct waiter *who)
{
	enum cell_phase end = cell_end(&who->cell);

	RL_ASSERT(end == CELL_WOKEN || end == CELL_LATE);
	return end == CELL_WOKEN ? 0 : -ETIMEDOUT;
}

inline int hive__wait_end(struct wait wait, int64_t deadline_ns)
{
	struct waiter *who = wait.who;

	if (!who->is_thread && !cell_park(&who->cell))
		return model_result(who);
	if (deadline_ns != HIVE_FOREVER) {
		if (parker_park(&who->parker, deadline_ns) ||
		    cell_claim(&who->cell, wait.turn, CELL_LATE) != CELL_NOT_OURS)
			return model_result(who);
	}
	while (!parker_park(&who->parker, HIVE_FOREVER))
		;
	return model_result(who);
}

inline bool hive__wait_give_up(struct wait wait)
{
	bool ours = cell_claim(&wait.who->cell, wait.turn, CELL_LATE) != CELL_NOT_OURS;

	while (!ours && wait.who->is_thread && !parker_park(&wait.who->parker, HIVE_FOREVER))
		;
	cell_end(&wait.who->cell);
	return ours;
}
