/* SPDX-License-Identifier: MIT */
/* What a worker does that has nothing to do: look for a while, if messages have come soon of late, and sleep.
 *
 * That is wrong where who submits cannot run while the worker looks: then each look is in vain, and after each one more rests go by
 * without one.                                                                                                            */
#include "base/latch.h"
#include "bus/bus.h"

#define SOON_NS ((int64_t)20000) /* looks pay if messages come as soon as that, on the average */
#define LOOK_NS ((int64_t)50000) /* a wake-up, and what a machine takes from the one who submits now and then */

enum { VAIN_MOST = 6 }; /* then one rest of 64 begins with a look */

static bool anything(struct bus_worker *w)
{
	return (w->index < w->bus->workers) ? hive__bus_has_work(w) : hive__bus_deal_has_work(w);
}

static bool should_look(struct bus_worker *w)
{
	if (w->pass > 0u) {
		w->pass--;
		return false;
	}
	if ((w->wait_ns < SOON_NS) && !w->searching) {
		w->searching = idle_search_begin(&w->bus->idle, w->bus->workers + 1u);
	}
	return (w->wait_ns < SOON_NS) && w->searching;
}

static bool look_until(struct bus_worker *w, int64_t end_ns)
{
	bool found = false;

	do {
		for (uint32_t i = 0u; i < 8u; i++) {
			cpu_pause();
		}
		found = anything(w);
	} while (!found && (w->bus->home->now(w->bus) < end_ns));
	return found;
}

/* At most half of the workers do. */
static bool look(struct bus_worker *w)
{
	bool found;

	if (!should_look(w)) {
		return false;
	}
	found = look_until(w, w->rest_ns + LOOK_NS);
	if (found) {
		w->vain = 0u;
	} else {
		w->vain = (w->vain < (uint32_t)VAIN_MOST) ? w->vain + 1u : w->vain;
		w->pass = ((uint32_t)1u << w->vain) - 2u; /* once is nothing: who submits was held up */
	}
	return found;
}

static void begin_rest(struct bus_worker *w)
{
	if (!w->fresh) {
		w->fresh = true;
		w->rest_ns = (w->bus->hive == NULL) ? w->bus->home->now(w->bus) : 0;
	}
}

void hive__bus_found(struct bus_worker *w, int64_t since_ns)
{
	int64_t wait_ns = since_ns - w->rest_ns;

	wait_ns = (wait_ns < 0) ? 0 : wait_ns;
	wait_ns = (wait_ns > (SOON_NS * 4)) ? SOON_NS * 4 : wait_ns;
	w->wait_ns += (wait_ns - w->wait_ns) / 4;
	if (w->searching) {
		w->searching = false;
		(void)idle_search_end(&w->bus->idle);
	}
	w->fresh = false;
	w->tries = 0u;
}

bool hive__bus_rest(struct bus_worker *w)
{
	struct idle *idle = &w->bus->idle;
	bool found;

	begin_rest(w);
	if (anything(w)) { /* a put is under way: it will be there in a moment, unless who puts does not run now */
		if (w->bus->hive == NULL) {
			hive__latch_stay_away(w->tries);
		}
		w->tries++;
		return false;
	}
	w->tries = 0u;
	if ((w->bus->hive == NULL) && look(w)) {
		return false;
	}
	found = w->searching;
	w->searching = false;
	w->announced = true; /* before others may see it rest: from there on it may run elsewhere */
	(void)idle_announce(idle, w->index, found, 0u);
	found = anything(w) || (load_relaxed(&w->bus->ending) != 0u);
	if (!found) {
		return true;
	}
	if (idle_retract(idle, w->index)) {
		return true; /* claimed already: the wake is on its way, and is waited for */
	}
	w->announced = false;
	return false;
}

void hive__bus_up(struct bus_worker *w)
{
	if (w->announced) {
		w->announced = false;
		w->searching = idle_retract(&w->bus->idle, w->index); /* claimed, or woken by an old token */
	}
	w->fresh = true;
}
