/* SPDX-License-Identifier: MIT */
/* A message whose submitter waits for a reply, in a cell of a fixed number of them.
 *
 *   NONE --asked--> AWAITED --reply--> WRITING --> GIVEN       and the asker takes it
 *                      |---- handled without --> MISSING
 *                      |---- dropped ----------> DROPPED
 *                      `---- the asker gives up: NONE, with the next turn
 *
 * Who moves the cell out of AWAITED has the asker's buffer, or knows that nobody has. An old turn finds nothing.            */
#include <string.h>

#include "bus/bus.h"

static uint32_t turn_of(uint32_t state)
{
	return state >> 3u;
}

static uint32_t state_of(uint32_t turn, enum bus_reply phase)
{
	return (turn << 3u) | (uint32_t)phase;
}

/* 1 + its number; 0: all are in use. */
static uint32_t take_cell(struct hive_bus *bus)
{
	uint32_t cell;

	lock_acquire(&bus->tables);
	cell = bus->free_request;
	if (cell != 0u) {
		bus->free_request = bus->request[cell - 1u].next;
	}
	lock_release(&bus->tables);
	return cell;
}

static void give_cell(struct hive_bus *bus, uint32_t cell)
{
	lock_acquire(&bus->tables);
	bus->request[cell - 1u].next = bus->free_request;
	bus->free_request = cell;
	lock_release(&bus->tables);
	/* Who waits for one had the lock after us, and found it; or before us, and is seen to wait. */
	hive__bus_tell(bus, &bus->room_event);
}

static int wait_for_cell(struct hive_bus *bus, int64_t deadline_ns, uint32_t *ret_cell)
{
	uint32_t cell = take_cell(bus);
	int r = 0;

	if ((cell == 0u) && (deadline_ns <= HIVE_NOWAIT)) {
		return -ENOBUFS;
	}
	if (cell == 0u) {
		event_enter(&bus->room_event.event);
		do {
			uint32_t seen = event_look(&bus->room_event.event);

			cell = take_cell(bus);
			r = (cell == 0u) ? hive__bus_event_wait(bus, &bus->room_event, seen, deadline_ns) : 0;
		} while ((cell == 0u) && (r == 0));
		event_leave(&bus->room_event.event);
	}
	*ret_cell = cell;
	return r;
}

/* How it ended; by the deadline, or cancelled, it is tried to give up. */
static int await_reply(struct hive_bus *bus, struct bus_request *cell, uint32_t turn, int64_t deadline_ns)
{
	uint32_t awaited = state_of(turn, REPLY_AWAITED), state;
	int r = 0;

	event_enter(&cell->event.event);
	for (;;) {
		uint32_t seen = event_look(&cell->event.event);

		state = load_seq(&cell->state); /* REPLY-2 (pairs with REPLY-1) */
		if ((state != awaited) && (state != state_of(turn, REPLY_WRITING))) {
			break;
		}
		if ((r < 0) &&
		    cas_seq(&cell->state, &awaited, state_of(turn, REPLY_NONE))) { /* REPLY-1 (pairs with REPLY-2) */
			break;
		}
		awaited = state_of(turn, REPLY_AWAITED);
		if (r < 0) { /* it is just being written */
			(void)hive__bus_event_wait(bus, &cell->event, seen, HIVE_FOREVER);
		} else {
			r = hive__bus_event_wait(bus, &cell->event, seen, deadline_ns);
		}
	}
	event_leave(&cell->event.event);
	if (state == state_of(turn, REPLY_GIVEN)) {
		r = (int)cell->given;
	} else if (state == state_of(turn, REPLY_MISSING)) {
		r = -ENODATA;
	} else if (state == state_of(turn, REPLY_DROPPED)) {
		r = -ECANCELED;
	} else {
		/* given up */
	}
	return r;
}

int hive_bus_request(struct hive_bus *bus, const struct hive_bus_message *message, void *ret_reply, size_t bytes,
                     int64_t deadline_ns)
{
	uint32_t type = 0u, number = 0u, turn;
	struct bus_request *cell;
	int r = hive__bus_check(bus, message, &type);

	if ((r == 0) && (((ret_reply == NULL) && (bytes > 0u)) || (bytes > (size_t)INT32_MAX))) {
		r = -EINVAL;
	}
	if ((r == 0) && hive__bus_inside(bus)) {
		r = -EDEADLK;
	}
	if (r < 0) {
		if (bus != NULL) {
			hive__bus_refused(bus, r);
		}
		return r;
	}
	r = wait_for_cell(bus, deadline_ns, &number);
	if (r < 0) {
		return r;
	}
	cell = &bus->request[number - 1u];
	turn = (turn_of(load_relaxed(&cell->state)) + 1u) & 0x1fffffffu;
	cell->reply = ret_reply;
	cell->bytes = bytes;
	store_relaxed(&cell->state, state_of(turn, REPLY_AWAITED)); /* who replies has the cell by the ring */
	r = hive__bus_put(bus, message, type, number, turn, deadline_ns);
	if (r == 0) {
		r = await_reply(bus, cell, turn, deadline_ns);
	}
	store_relaxed(&cell->state, state_of(turn, REPLY_NONE)); /* the next asker has it by the lock of tables */
	give_cell(bus, number);
	return r;
}

int hive_bus_reply(const struct hive_bus_header *header, const void *reply, size_t bytes)
{
	const struct bus_envelope *envelope = (const struct bus_envelope *)(const void *)header;
	const struct bus_hand *hand;
	struct bus_request *cell;
	uint32_t state;

	if ((header == NULL) || ((reply == NULL) && (bytes > 0u))) {
		return -EINVAL;
	}
	if (envelope->request == 0u) {
		return -ENOENT;
	}
	/* The header is the first of the envelope, and that the last of the hand. */
	hand = (const struct bus_hand *)(const void *)((const unsigned char *)envelope -
	                                               offsetof(struct bus_hand, envelope));
	cell = &hand->of.bus->request[envelope->request - 1u];
	state = state_of((uint32_t)envelope->asked, REPLY_AWAITED);
	/* One of several gets the buffer; that it is there was handed on by the ring. What another one read whose reply did not fit was before. */
	if (!cas_acquire(&cell->state, &state,
	                 state_of((uint32_t)envelope->asked, REPLY_WRITING))) { /* REPLY-2 (pairs with REPLY-1) */
		bool same = turn_of(state) == (uint32_t)envelope->asked;

		return (same && ((state & 7u) != (uint32_t)REPLY_NONE)) ? -EALREADY : -ENOENT;
	}
	if (bytes > cell->bytes) {
		store_seq(&cell->state,
		          state_of((uint32_t)envelope->asked, REPLY_AWAITED)); /* REPLY-1 (pairs with REPLY-2) */
		hive__bus_tell(hand->of.bus, &cell->event);
		return -EMSGSIZE;
	}
	if (bytes > 0u) {
		(void)memcpy(cell->reply, reply, bytes);
	}
	cell->given = bytes;
	store_seq(&cell->state, state_of((uint32_t)envelope->asked, REPLY_GIVEN)); /* REPLY-1 (pairs with REPLY-2) */
	hive__bus_tell(hand->of.bus, &cell->event);
	return 0;
}

void hive__bus_unanswered(struct hive_bus *bus, const struct bus_envelope *envelope, enum bus_reply how)
{
	if (envelope->request != 0u) {
		struct bus_request *cell = &bus->request[envelope->request - 1u];
		uint32_t state = state_of((uint32_t)envelope->asked, REPLY_AWAITED);

		/* REPLY-1 (pairs with REPLY-2) */
		if (cas_seq(&cell->state, &state, state_of((uint32_t)envelope->asked, how))) {
			hive__bus_tell(bus, &cell->event);
		}
	}
}
