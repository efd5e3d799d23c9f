/* SPDX-License-Identifier: MIT */
/* Who comes in, by how full it is; and who is told of that.
 *
 * A message of priority p comes in while fewer than room[p] are inside: the percentage of the depth, rounded up. So in the smallest ring each
 * priority finds room for one, and a lower one never for more than a higher one. Racing submitters do not overshoot: queue/ring.h, R3. */
#include "bus/bus.h"

void hive__bus_thresholds(struct hive_bus *bus, const uint8_t refuse_at[4])
{
	static const uint8_t usual[4] = { 0u, 60u, 80u, 99u };
	uint64_t depth = (bus->shape == BUS_BOXES) ? bus->worker_depth : bus->depth;

	for (uint32_t p = 1u; p < 4u; p++) {
		uint64_t percent = (refuse_at[p] != 0u) ? refuse_at[p] : usual[p];
		uint64_t slack = depth / 8u;

		bus->room[p] = (uint32_t)(((depth * percent) + 99u) / 100u);
		bus->back[p] = (bus->room[p] > slack) ? bus->room[p] - (uint32_t)slack : 1u;
	}
	/* Each slot that gets free would wake somebody, who fills it and sleeps again: a switch of threads for each message. */
	bus->refill = (uint32_t)((depth < 16u) ? depth : depth / 2u);
	bus->room[0] = 0u;
	bus->back[0] = 0u;
}

/* What is in the ring of submits now; in the fullest one. */
uint32_t hive__bus_fill(const struct hive_bus *bus)
{
	uint64_t most = 0u, limit = (bus->shape == BUS_BOXES) ? bus->worker_depth : bus->depth;

	if (bus->shape != BUS_BOXES) {
		most = mpsc_length((struct mpsc *)(uintptr_t)&bus->ring);
	} else {
		for (uint32_t i = 0u; i < bus->workers; i++) {
			uint64_t length = mpsc_length(&bus->worker[i].box);

			most = (length > most) ? length : most;
		}
	}
	/* Others came and went between the two looks: more than fits is not there. */
	return (uint32_t)((most > limit) ? limit : most);
}

static uint32_t level_of(const struct hive_bus *bus, uint32_t fill)
{
	uint32_t level = 0u;

	while ((level < 3u) && (fill >= bus->room[level + 1u])) {
		level++;
	}
	return level;
}

enum hive_bus_level hive_bus_level(const struct hive_bus *bus)
{
	return (bus == NULL) ? HIVE_BUS_NORMAL : (enum hive_bus_level)level_of(bus, hive__bus_fill(bus));
}

/* The level to tell, when `told` was told: falling needs a little more. */
static uint32_t level_next(const struct hive_bus *bus, uint32_t told)
{
	uint32_t fill = hive__bus_fill(bus), level = level_of(bus, fill);

	while ((level < told) && (fill >= bus->back[level + 1u])) {
		level++;
	}
	return level;
}

/* One at a time tells, and goes on until what was told is true. Who finds somebody at it leaves word. He writes down what he tells and looks at the
 * ring again; who changes the ring looks at what was told afterwards: one of them sees the other.                              */
static void tell_level(struct hive_bus *bus)
{
	uint32_t nobody = 0u, told, next;

	(void)exchange_seq(&bus->level_news, 1u); /* LEVEL-1 (pairs with LEVEL-4) */
	while ((load_seq(&bus->level_news) != 0u) &&
	       cas_seq(&bus->level_role, &nobody, 1u)) {               /* LEVEL-2 (pairs with LEVEL-3) */
		while (exchange_acquire(&bus->level_news, 0u) != 0u) { /* LEVEL-4 (pairs with LEVEL-1) */
			told = load_relaxed(&bus->level);
			for (next = level_next(bus, told); next != told; next = level_next(bus, told)) {
				told = next;
				store_seq(&bus->level, told); /* LEVEL-5 (pairs with LEVEL-6) */
				if (bus->on_level != NULL) {
					bus->on_level(bus->hook_arg, (enum hive_bus_level)told);
				}
			}
		}
		store_seq(&bus->level_role, 0u); /* LEVEL-3 (pairs with LEVEL-2) */
		nobody = 0u;
	}
}

void hive__bus_filled(struct hive_bus *bus, struct mpsc *ring, ATOMIC(uint32_t) *depth_max, uint64_t number)
{
	uint32_t most = load_relaxed(depth_max);
	uint64_t fill = mpsc_distance(load_relaxed(&ring->head_seen), number) + 1u; /* at least what it is */

	if ((fill <= most) &&
	    ((fill < bus->room[HIVE_BUS_LOW]) ||
	     (level_of(bus, (uint32_t)fill) <= load_seq(&bus->level)))) { /* LEVEL-6 (pairs with LEVEL-5) */
		return;
	}
	fill = mpsc_fill(ring, MPSC_NUMBER(number + 1u));
	if (fill == UINT64_MAX) {
		return; /* it was taken meanwhile */
	}
	while ((fill > most) && !cas_relaxed(depth_max, &most, (uint32_t)fill)) {
		/* somebody else has seen more, or less */
	}
	if ((fill >= bus->room[HIVE_BUS_LOW]) &&
	    (level_of(bus, (uint32_t)fill) > load_seq(&bus->level))) { /* LEVEL-6 (pairs with LEVEL-5) */
		tell_level(bus);
	}
}

void hive__bus_emptied(struct hive_bus *bus, struct mpsc *ring)
{
	if (event_is_awaited(&bus->room_event.event) && (mpsc_length(ring) <= bus->refill)) {
		hive__bus_tell(bus, &bus->room_event);
	}
}

void hive__bus_calmer(struct hive_bus *bus)
{
	uint32_t told = load_seq(&bus->level); /* LEVEL-6 (pairs with LEVEL-5) */

	if ((told != 0u) && (level_next(bus, told) < told)) {
		tell_level(bus);
	}
}
