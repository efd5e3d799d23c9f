/* SPDX-License-Identifier: MIT */
/* The dispatcher: a thread of its own that deals from the ring of submits to the rings of the workers, in batches: what a batch brought a
 * worker is shown to it at once.
 *
 * A worker whose ring is full holds up nobody: another one gets the message, and with BY_KEY, where nobody else may have it, messages come in
 * only as far as their worker's ring has room for all of them (`pending`). When all rings are full the dispatcher waits, and the
 * ring of submits fills up: that is seen at the door.                                                                   */
#include <string.h>

#include "bus/bus.h"

enum { BATCH = 32 };

static uint32_t after(const struct hive_bus *bus, uint32_t worker)
{
	return ((worker + 1u) < bus->workers) ? worker + 1u : 0u;
}

/* Who has fewest; those with equal numbers in turn. */
static uint32_t least_loaded(struct hive_bus *bus)
{
	uint32_t best = bus->cursor, worker = best;
	uint64_t fewest = UINT64_MAX;

	for (uint32_t i = 0u; i < bus->workers; i++) {
		struct spsc *ring = &bus->worker[worker].ring;
		uint64_t waits = ring->written - load_relaxed(&ring->head);
		uint64_t more = load_relaxed(&bus->worker[worker].busy); /* it has one in its hand */

		if ((waits + more) < fewest) {
			fewest = waits + more;
			best = worker;
		}
		worker = after(bus, worker);
	}
	return best;
}

/* A worker with room for this message; -1: there is none. */
static int32_t choose(struct hive_bus *bus, const struct bus_envelope *envelope)
{
	uint32_t worker;

	if (bus->route == HIVE_BUS_BY_KEY) {
		return (int32_t)bus_box_of(bus, envelope->header.key);
	}
	worker = (bus->route == HIVE_BUS_LEAST_LOADED) ? least_loaded(bus) : bus->cursor;
	for (uint32_t i = 0u; i < bus->workers; i++) {
		if (spsc_room(&bus->worker[worker].ring) != NULL) {
			bus->cursor = after(bus, worker);
			return (int32_t)worker;
		}
		worker = after(bus, worker);
	}
	return -1;
}

static void give(struct hive_bus *bus, uint32_t worker, const struct bus_hand *from)
{
	struct bus_worker *w = &bus->worker[worker];
	struct bus_hand *to = (struct bus_hand *)(void *)spsc_room(&w->ring);
	uint64_t length;

	(void)memcpy(&to->envelope, &from->envelope, hive__bus_body(bus, &from->envelope));
	spsc_wrote(&w->ring);
	length = w->ring.written - load_relaxed(&w->ring.head);
	if (length > load_relaxed(&w->depth_max)) {
		store_relaxed(&w->depth_max, (uint32_t)length);
	}
}

/* Each worker sees what it was given, and is woken if it sleeps. */
static void show(struct hive_bus *bus)
{
	for (uint32_t i = 0u; i < bus->workers; i++) {
		if (spsc_show(&bus->worker[i].ring)) {
			hive__bus_wake(bus, i);
		}
	}
}

/* One message on. False: there is none (that may go), or nobody has room, which is told by ret_starved. */
static bool deal_one(struct hive_bus *bus, bool *ret_starved)
{
	bool drops = bus->on_full == HIVE_BUS_DROP_OLDER_LOWER;
	struct mpsc_slot *slot;
	uint64_t number;
	int32_t worker = -1;

	*ret_starved = false;
	if (drops) {
		lock_acquire(&bus->drop);
	}
	slot = mpsc_front(&bus->ring, &number);
	if ((slot != NULL) && !mpsc_reached(load_relaxed(&bus->end), number)) {
		const struct bus_hand *from = (const struct bus_hand *)(const void *)slot;

		worker = choose(bus, &from->envelope);
		*ret_starved = worker < 0;
		if (worker >= 0) {
			give(bus, (uint32_t)worker, from);
			mpsc_pop(&bus->ring, slot, number);
		}
	}
	if (drops) {
		lock_release(&bus->drop);
	}
	if (worker >= 0) {
		hive__bus_emptied(bus, &bus->ring);
		hive__bus_calmer(bus);
	}
	return worker >= 0;
}

static bool room_anywhere(struct hive_bus *bus)
{
	bool room = false;

	for (uint32_t i = 0u; (i < bus->workers) && !room; i++) {
		room = spsc_room(&bus->worker[i].ring) != NULL;
	}
	return room;
}

/* Nobody has room. Says so, looks once more, and waits for one who takes. */
static void wait_for_room(struct bus_worker *d)
{
	struct hive_bus *bus = d->bus;

	(void)exchange_seq(&bus->starved, 1u); /* STARVED-1 (pairs with STARVED-2) */
	if (!room_anywhere(bus) && (load_relaxed(&bus->ending) == 0u)) {
		(void)parker_park(&d->parker, HIVE_FOREVER);
	}
	store_relaxed(&bus->starved, 0u);
}

bool hive__bus_deal(struct bus_worker *d)
{
	struct hive_bus *bus = d->bus;
	bool starved = false, some = false;
	uint32_t dealt = 0u;

	/* It does not look at the hold; and who sees by the ring's head that it has taken sees this. So no order. */
	store_relaxed(&d->busy, 1u);
	while ((dealt < (uint32_t)BATCH) && deal_one(bus, &starved)) {
		dealt++;
	}
	some = dealt > 0u;
	if (some && d->fresh) {
		hive__bus_found(d, bus->home->now(bus));
	}
	show(bus);
	store_seq(&d->busy, 0u); /* BUSY-1 (pairs with BUSY-2) */
	hive__bus_tell(bus, &bus->settled);
	if (starved) {
		wait_for_room(d);
	}
	return some || starved;
}

bool hive__bus_deal_has_work(struct bus_worker *d)
{
	struct hive_bus *bus = d->bus;
	bool some = (mpsc_length(&bus->ring) > 0u);
	uint64_t oldest = mpsc_oldest(&bus->ring);

	return some && !mpsc_reached(load_seq(&bus->end), oldest); /* END-2 (pairs with END-1) */
}

/* The worker has taken one out of its ring. */
void hive__bus_took(struct bus_worker *w)
{
	struct hive_bus *bus = w->bus;

	if (bus->route == HIVE_BUS_BY_KEY) {
		if ((sub_seq(&w->pending, 1u) <= ((bus->worker_depth / 2u) + 1u)) ||
		    (bus->worker_depth < 16u)) { /* PENDING-1 (pairs with PENDING-2) */
			hive__bus_tell(bus, &bus->room_event);
		}
	}
	/* The look is what counts. Of several whom it shows the same one wakes, and needs no order for that: the token has its own. */
	if ((load_seq(&bus->starved) != 0u) && /* STARVED-2 (pairs with STARVED-1) */
	    (exchange_relaxed(&bus->starved, 0u) != 0u)) {
		parker_unpark(&bus->worker[bus->workers].parker);
	}
}
