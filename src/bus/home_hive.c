/* SPDX-License-Identifier: MIT */
/* A bus on a hive: its workers are guests (sched/guest.h) that take a number of messages each time they run, on IO or on compute workers. One
 * that rests is announced, and whoever claims it makes it ready: that cannot fail, so what was accepted is handled.
 *
 * The bus holds the hive from start to stop: a hive that stops waits for its buses. Waits are those of fibers.              */
#include "bus/bus.h"
#include "fiber/wait.h"
#include "sched/guest.h"
#include "sched/state.h"

#include <rophive/worker.h>

enum { BUDGET = 64 }; /* messages, before others have a turn */

struct host { /* in bus_worker.guest */
	struct guest guest;
	struct bus_worker *worker;
};
_Static_assert(sizeof(struct host) <= sizeof(((struct bus_worker *)NULL)->guest), "room for it in bus.h");

static struct host *host_of(struct bus_worker *w)
{
	return (struct host *)(void *)w->guest;
}

static bool is_leaving(struct hive *hive)
{
	return state_ends_waits(hive__guest_state(hive));
}

/* Ready, on a worker of the kind; without memory for that, or without such workers, on any: run() sees to it. From then on it may run, rest and
 * be claimed for good: the bus may be gone.                                                                                */
static void make_ready(struct bus_worker *w)
{
	struct hive *hive = w->bus->hive;
	struct host *host = host_of(w);

	if ((w->bus->kind != HIVE_COMPUTE) || is_leaving(hive) || (hive__guest_compute(hive, &host->guest) < 0)) {
		hive__guest_ready(hive, &host->guest);
	}
}

/* Messages for compute workers that have landed on an IO worker go on, if somebody is there. */
static bool go_on(struct bus_worker *w)
{
	struct hive *hive = w->bus->hive;
	bool misplaced = (w->bus->kind == HIVE_COMPUTE) && (hive__place() != NULL) && !is_leaving(hive);

	if (!misplaced || !hive__guest_has_compute(hive)) {
		return false;
	}
	make_ready(w);
	return true;
}

static void run(struct guest *guest)
{
	struct bus_worker *w = ((struct host *)(void *)guest)->worker;
	struct hive_bus *bus = w->bus;
	uint32_t left = BUDGET;
	bool more = true, rests = false;

	if (go_on(w)) {
		return;
	}
	hive__bus_up(w);
	while (more && (left > 0u)) {
		more = hive__bus_work(w, 8u);
		left = hive_should_yield() ? 0u : left - 8u;
	}
	if (!more) {
		/* Who ends the bus passes through this lock after he has claimed us: then we have done everything we do with it. */
		lock_acquire(&bus->resting);
		rests = hive__bus_rest(w);
		if (rests) {
			hive__bus_tell(bus, &bus->settled);
		}
		lock_release(&bus->resting);
	}
	if (!rests) {
		if (w->tries > 0u) {
			hive__thread_give_way(w->tries - 1u); /* to who puts: its processor may be this one */
		}
		make_ready(w);
	}
}

/* The hive keeps nothing for its buses, but has to know that there are some: then its workers stay while it is held. */
static void stop_all(void *guests, void *cache)
{
	(void)guests;
	(void)cache;
}

static void end_all(void *guests)
{
	(void)guests;
}

static const struct guest_ops ops = { stop_all, end_all, NULL, stop_all, NULL, NULL, NULL };

static int start(struct hive_bus *bus)
{
	int r;

	if ((bus->kind == HIVE_COMPUTE) && !hive__guest_has_compute(bus->hive)) {
		return -ENOTSUP;
	}
	(void)hive__guests_set(bus->hive, GUESTS_BUS, (void *)bus->hive, &ops);
	for (uint32_t i = 0u; i < bus->workers; i++) {
		struct host *host = host_of(&bus->worker[i]);

		host->worker = &bus->worker[i];
		host->guest.run = run;
		bus->worker[i].announced = true;
		(void)idle_announce(&bus->idle, i, false, 0u);
	}
	(void)idle_claim(&bus->idle, 0u);
	r = hive__guest_launch(bus->hive, &host_of(&bus->worker[0])->guest, HIVE_WORKER_NONE); /* holds */
	if (r < 0) {
		idle_init(&bus->idle); /* announced again by the next try */
	}
	return r;
}

/* Each is claimed for good. */
static int end(struct hive_bus *bus, int64_t deadline_ns)
{
	uint32_t claimed = 0u;
	int r = 0;

	event_enter(&bus->settled.event);
	while ((claimed < bus->workers) && (r == 0)) {
		uint32_t seen = event_look(&bus->settled.event);

		if (((bus->claimed >> claimed) & 1u) != 0u) {
			claimed++;
		} else if (idle_claim(&bus->idle, claimed)) {
			bus->claimed |= (uint64_t)1 << claimed;
			claimed++;
		} else {
			r = hive__bus_event_wait(bus, &bus->settled, seen, deadline_ns);
		}
	}
	event_leave(&bus->settled.event);
	if (r == 0) {
		lock_acquire(&bus->resting);
		lock_release(&bus->resting);
		hive__unhold(bus->hive);
	}
	return r;
}

static int wait_event(struct hive_bus *bus, struct bus_event *event, uint32_t seen, int64_t deadline_ns)
{
	struct wait_list *list = (struct wait_list *)(void *)event->list;
	struct wait_node node;
	struct wait wait;
	int r = hive__wait_begin(&wait, "bus");

	(void)bus;
	if (r < 0) {
		return r;
	}
	lock_acquire(&event->lock);
	if (load_relaxed(&event->event.sequence) != seen) {
		lock_release(&event->lock);
		(void)hive__wait_give_up(wait);
		return 0;
	}
	node_add(list, &node, wait);
	lock_release(&event->lock);
	r = hive__wait_end(wait, deadline_ns);
	lock_acquire(&event->lock);
	node_remove(list, &node);
	lock_release(&event->lock);
	return r;
}

static void wake_all(struct bus_event *event)
{
	struct wait_list *list = (struct wait_list *)(void *)event->list;
	struct wait_node *node;

	lock_acquire(&event->lock);
	for (node = node_take(list); node != NULL; node = node_take(list)) {
		(void)hive__wait_wake(node->wait);
	}
	lock_release(&event->lock);
}

static int may_wait(void)
{
	struct wait wait;
	int r = hive__wait_begin(&wait, "bus");

	if (r == 0) {
		(void)hive__wait_give_up(wait);
	}
	return r;
}

static int64_t now(const struct hive_bus *bus)
{
	return hive_now(bus->hive);
}

static uint64_t self(void)
{
	return (uint64_t)(uintptr_t)hive__wait_self();
}

const struct bus_home hive__bus_on_hive = { start, end, make_ready, wait_event, wake_all, may_wait, now, self };
