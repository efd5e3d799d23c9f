/* SPDX-License-Identifier: MIT */
/* A program in which fibers and threads meet at a barrier, and some are too late. */
#include <errno.h>
#include <string.h>

#include "crew.h"
#include "programs.h"

static struct {
	struct hive_barrier barrier;
	uint32_t parties, firsts, lasts;
} place;

/* Nobody waits for ever: whether enough come is a matter of luck. */
static int64_t patience(void)
{
	int64_t deadline = crew_deadline();

	return deadline == HIVE_FOREVER ? hive_deadline(ledger.hive, 5000) : deadline;
}

static void meet(int self)
{
	for (uint32_t n = 1 + explore_draw(3); n > 0; n--) {
		int64_t deadline = patience();
		int r = hive_barrier_wait(&place.barrier, deadline);

		crew_check_wait(self, r == 1 ? 0 : r, deadline);
		place.firsts += r == 0;
		place.lasts += r == 1;
	}
}

static int meet_as_fiber(void *one)
{
	meet(crew_enter(one));
	return crew_leave(one);
}

static void meet_as_thread(void *arg)
{
	(void)arg;
	meet(-1);
}

/* They go through together or not at all: as many as there are parties each time, of whom one is told that it was the last. */
void parties_meet_or_give_up(void *arg)
{
	(void)arg;
	crew_clear();
	memset(&place, 0, sizeof place);
	place.parties = 2 + explore_draw(2);
	hive_barrier_init(&place.barrier, place.parties);
	if (!open_hive((struct range){ 1, 3 }, (struct range){ 0, 0 }, CORE_EMPTY))
		return;
	crew_work_together(meet_as_fiber, meet_as_thread);
	EXPECT(place.firsts == place.lasts * (place.parties - 1));
	EXPECT(place.barrier.state == 0 && !place.barrier.waiters[0]);
}
