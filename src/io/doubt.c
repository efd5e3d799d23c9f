/* SPDX-License-Identifier: MIT */
/* Doubt: waits that rely on a registration of old, which may be gone without a word.
 *
 * Time goes by ticks, as long as there are doubtful seats. When a wait has lasted for a whole tick it is verified, which is a system call;
 * one that is over sooner never pays for it. Where events keep coming, or the answer was right, doubt comes ever more rarely, down to
 * every 32nd tick. A seat is touched only in the tick for which it was put down: seats are many, and not in the cache.         */
#include "io/seat.h"

#include <rophive/hive.h>

#include "sched/state.h"

#define TICK_NS HIVE_MS(5)
enum { SURE_MOST = 5, LOOKS = 256 }; /* LOOKS: in one tick */

_Static_assert((1u << SURE_MOST) + 1 < DOUBT_SLOTS, "no seat is put down for a whole round");

static void put_down(struct seat *seat, uint32_t due)
{
	struct seat **first = &seat->desk->doubtful[due % DOUBT_SLOTS];

	seat->due = due;
	seat->doubtful = true;
	seat->doubtful_link = first;
	seat->next_doubtful = *first;
	if (*first)
		(*first)->doubtful_link = &seat->next_doubtful;
	*first = seat;
	seat->desk->doubtful_count++;
}

static void take_back(struct seat *seat)
{
	*seat->doubtful_link = seat->next_doubtful;
	if (seat->next_doubtful)
		seat->next_doubtful->doubtful_link = seat->doubtful_link;
	seat->doubtful = false;
	seat->desk->doubtful_count--;
}

static bool is_before(uint32_t tick, uint32_t other)
{
	return (int32_t)(tick - other) < 0;
}

static void grow_sure(struct seat *seat)
{
	if (seat->sure < SURE_MOST)
		seat->sure++;
}

static void look_at(struct seat *seat)
{
	take_back(seat);
	if (!seat_is_waited_at(seat))
		return;
	if (seat->how == SEAT_OUT || !is_before(seat->desk->tick, seat_due(seat))) {
		if (hive__seat_verify(seat))
			grow_sure(seat);
		return;
	}
	if (seat->heard)
		grow_sure(seat);
	seat->heard = false;
	put_down(seat, seat_due(seat));
}

static void look_at_all(struct desk *desk)
{
	for (uint32_t i = 0; i < DOUBT_SLOTS && desk->doubtful_count > 0; i++)
		while (desk->doubtful[i]) {
			struct seat *seat = desk->doubtful[i];

			take_back(seat);
			hive__seat_verify(seat);
		}
}

static void tick(void *arg);

/* Without memory for the alarm nobody is left in doubt. */
static void watch(struct desk *desk)
{
	if (desk->doubtful_count == 0 || desk->doubt_alarm != 0 || desk->left ||
	    load_relaxed(hive__guest_state(desk->hive)) >= HIVE_LEAVING)
		return;
	if (hive__alarm_start(hive_now(desk->hive) + TICK_NS, tick, desk, &desk->doubt_alarm) < 0) {
		desk->doubt_alarm = 0;
		look_at_all(desk);
	}
}

static void tick(void *arg)
{
	struct desk *desk = (struct desk *)arg;
	struct seat **first = &desk->doubtful[++desk->tick % DOUBT_SLOTS];

	desk->doubt_alarm = 0;
	for (int i = 0; i < LOOKS && *first; i++)
		look_at(*first);
	while (*first) { /* too many at once: the others have to wait */
		struct seat *seat = *first;

		take_back(seat);
		put_down(seat, desk->tick + 1);
	}
	watch(desk);
}

void hive__seat_doubt(struct seat *seat)
{
	seat->since = seat->desk->tick;
	if (!seat->doubtful || is_before(seat_due(seat), seat->due)) {
		if (seat->doubtful)
			take_back(seat);
		put_down(seat, seat_due(seat));
	}
	watch(seat->desk);
}

void hive__seats_rest(struct desk *desk)
{
	if (desk->doubt_alarm != 0)
		hive__alarm_stop(desk->hive, desk->doubt_alarm);
	desk->doubt_alarm = 0;
}
