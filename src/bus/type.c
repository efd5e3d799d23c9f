/* SPDX-License-Identifier: MIT */
/* The table of types, and who handles them. */
#include "bus/bus.h"

int32_t hive__bus_find(const struct hive_bus *bus, uint32_t number)
{
	uint32_t low = 0u, high = bus->types;
	uint32_t guess = number - bus->type[0].number; /* numbers in a row */

	if ((guess < high) && (bus->type[guess].number == number)) {
		return (int32_t)guess;
	}
	while (low < high) {
		uint32_t middle = low + ((high - low) / 2u);

		if (bus->type[middle].number < number) {
			low = middle + 1u;
		} else {
			high = middle;
		}
	}
	return ((low < bus->types) && (bus->type[low].number == number)) ? (int32_t)low : -1;
}

const char *hive_bus_type_name(const struct hive_bus *bus, uint32_t type)
{
	int32_t found = (bus == NULL) ? -1 : hive__bus_find(bus, type);

	return (found < 0) ? NULL : bus->type[found].name;
}

/* One subscriber, if it is still one. Its calls are counted, so that who unsubscribes can wait for their end. */
static int run_subscriber(struct hive_bus *bus, uint32_t slot, const struct bus_hand *hand, const void *payload)
{
	struct bus_subscription *s = &bus->subscription[slot];
	int r = 0;

	(void)add_seq(&s->calls, 1u);                                                 /* SUB-1 (pairs with SUB-4) */
	if (((load_seq(&s->state) & 1u) != 0u) && (s->type == hand->envelope.type)) { /* SUB-2 (pairs with SUB-3) */
		r = s->handle(s->context, &hand->envelope.header, payload);
	}
	(void)sub_seq(&s->calls, 1u); /* SUB-5 (pairs with SUB-4) */
	hive__bus_tell(bus, &bus->settled);
	return r;
}

int hive__bus_run(struct hive_bus *bus, struct bus_hand *hand, const void *payload)
{
	struct bus_type *type = &bus->type[hand->envelope.type];
	uint64_t rest = load_relaxed(&type->subscriptions);
	int r = 0;

	if (type->handle != NULL) {
		r = type->handle(type->context, &hand->envelope.header, payload);
	}
	while (rest != 0u) {
		uint32_t slot = (uint32_t)__builtin_ctzll(rest);
		int also = run_subscriber(bus, slot, hand, payload);

		r = ((r >= 0) && (also < 0)) ? also : r;
		rest &= rest - 1u;
	}
	return r;
}

/* ---- subscriptions ---- */

/* Which one; -1: none is free. Free means: off, and nobody may be calling it still. Who unsubscribed has seen that of the life before, and the
 * lock hands it on; who comes late finds it off. So the look at the calls needs no order.                              */
static int32_t free_subscription(struct hive_bus *bus)
{
	for (uint32_t i = 0u; i < bus->subscriptions; i++) {
		struct bus_subscription *s = &bus->subscription[i];

		if (!s->taken && (load_relaxed(&s->calls) == 0u)) {
			return (int32_t)i;
		}
	}
	return -1;
}

int hive_bus_subscribe(struct hive_bus *bus, uint32_t type, hive_bus_fn *handle, void *context,
                       uint32_t *ret_subscription)
{
	int32_t found, slot;

	if ((bus == NULL) || (handle == NULL) || (ret_subscription == NULL)) {
		return -EINVAL;
	}
	found = hive__bus_find(bus, type);
	if (found < 0) {
		return -ENOENT;
	}
	lock_acquire(&bus->tables);
	slot = free_subscription(bus);
	if (slot >= 0) {
		struct bus_subscription *s = &bus->subscription[slot];
		uint32_t life = ((load_relaxed(&s->state) >> 1u) + 1u) & 0x1ffffffu; /* 25 bits, and never 0 */

		life = (life == 0u) ? 1u : life;
		s->taken = true;
		s->type = (uint32_t)found;
		s->handle = handle;
		s->context = context;
		store_release(&s->state, (life << 1u) | 1u); /* SUB-3 (pairs with SUB-2) */
		(void)or_relaxed(&bus->type[found].subscriptions, (uint64_t)1 << (uint32_t)slot);
		*ret_subscription = (life << 6u) | (uint32_t)slot;
	}
	lock_release(&bus->tables);
	return (slot < 0) ? -ENOSPC : 0;
}

/* Off, if it is this life's. */
static bool end_subscription(struct hive_bus *bus, uint32_t slot, uint32_t life)
{
	struct bus_subscription *s = &bus->subscription[slot];
	bool ours;

	lock_acquire(&bus->tables);
	ours = s->taken && ((load_relaxed(&s->state) >> 1u) == life);
	if (ours) {
		(void)and_relaxed(&bus->type[s->type].subscriptions, ~((uint64_t)1 << slot));
		(void)exchange_seq(&s->state, life << 1u); /* SUB-3 (pairs with SUB-2) */
	}
	lock_release(&bus->tables);
	return ours;
}

int hive_bus_unsubscribe(struct hive_bus *bus, uint32_t subscription, int64_t deadline_ns)
{
	uint32_t slot = subscription & 63u;
	struct bus_subscription *s;
	int r = 0;

	if (bus == NULL) {
		return -EINVAL;
	}
	if ((deadline_ns > HIVE_NOWAIT) && hive__bus_inside(bus)) {
		return -EDEADLK;
	}
	if ((slot >= bus->subscriptions) || !end_subscription(bus, slot, subscription >> 6u)) {
		return -ESRCH;
	}
	s = &bus->subscription[slot];
	event_enter(&bus->settled.event);
	while (r == 0) {
		uint32_t seen = event_look(&bus->settled.event);

		if (load_seq(&s->calls) == 0u) { /* SUB-4 (pairs with SUB-1 and SUB-5) */
			break;
		}
		r = hive__bus_event_wait(bus, &bus->settled, seen, deadline_ns);
	}
	event_leave(&bus->settled.event);
	if (r == 0) {
		lock_acquire(&bus->tables);
		if (load_relaxed(&s->state) == (subscription >> 6u) << 1u) {
			s->taken = false; /* unless somebody else did this, and it has a new life */
		}
		lock_release(&bus->tables);
	}
	return r;
}
