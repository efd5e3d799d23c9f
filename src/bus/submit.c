/* SPDX-License-Identifier: MIT */
/* The door: what is checked, what comes in, and what becomes of what does not. */
#include <string.h>

#include "base/latch.h"
#include "bus/bus.h"

#define LOOK_NS ((int64_t)1000000)

enum { SPINS_LEAST = 32, SPINS_MOST = 1024 }; /* looks for room before one sleeps; the most: some 50 us */

int hive__bus_check(struct hive_bus *bus, const struct hive_bus_message *m, uint32_t *ret_type)
{
	int32_t type;

	if ((bus == NULL) || (m == NULL) || (m->payload == NULL) || ((uint32_t)m->priority > (uint32_t)HIVE_BUS_HIGH) ||
	    (m->reserved[0] != 0u) || (m->reserved[1] != 0u)) {
		return -EINVAL;
	}
	type = hive__bus_find(bus, m->type);
	if (type < 0) {
		return -ENOENT;
	}
	if (bus->type[type].size != m->size) {
		return -EMSGSIZE;
	}
	*ret_type = (uint32_t)type;
	return 0;
}

void hive__bus_refused(struct hive_bus *bus, int error)
{
	if (error == -ENOENT) {
		(void)add_relaxed(&bus->refused_type, 1u);
	} else if (error == -EMSGSIZE) {
		(void)add_relaxed(&bus->refused_size, 1u);
	} else {
		/* not a message: not counted */
	}
}

static uint32_t priority_of(const struct hive_bus_message *m)
{
	return (m->priority == HIVE_BUS_DEFAULT) ? (uint32_t)HIVE_BUS_MEDIUM : (uint32_t)m->priority;
}

/* All but id. */
static void fill_in(const struct hive_bus *bus, struct bus_envelope *envelope, const struct hive_bus_message *m,
                    uint32_t type)
{
	envelope->header.time_ns = bus->home->now(bus);
	envelope->header.key = m->key;
	envelope->header.type = m->type;
	envelope->header.sender = m->sender;
	envelope->header.priority = priority_of(m);
	envelope->header.size = m->size;
	envelope->type = type;
	envelope->request = 0u;
	envelope->asked = 0u;
}

/* Numbers of rings from 1 on, and so on for each box: never the same twice. */
static uint64_t id_of(const struct hive_bus *bus, uint32_t box, uint64_t number)
{
	uint64_t count = mpsc_distance((uint64_t)RING_START, number);

	return (bus->shape == BUS_BOXES) ? (count * bus->workers) + box + 1u : count + 1u;
}

/* Of what has no number of its own. */
static uint64_t other_id(struct hive_bus *bus)
{
	return MPSC_CLOSED | add_relaxed(&bus->other_ids, 1u);
}

struct put { /* a message on its way */
	const struct hive_bus_message *message;
	uint32_t type;
	uint32_t request;
	uint64_t asked;
};

static void write_message(struct hive_bus *bus, struct bus_hand *to, const struct put *put)
{
	fill_in(bus, &to->envelope, put->message, put->type);
	to->envelope.request = put->request;
	to->envelope.asked = put->asked;
	(void)memcpy(bus_payload(to), put->message->payload, put->message->size);
}

/* BY_KEY with dispatcher: a place in the ring of its worker, before the dispatcher has to find one. */
static bool reserve_pending(struct hive_bus *bus, uint32_t worker)
{
	ATOMIC(uint32_t) *pending = &bus->worker[worker].pending;
	uint32_t seen = load_seq(pending); /* PENDING-2 (pairs with PENDING-1) */
	bool done = false;

	while (!done && (seen < bus->worker_depth)) {
		done = cas_seq(pending, &seen, seen + 1u); /* PENDING-2 (pairs with PENDING-1) */
	}
	return done;
}

/* Is there somebody to wake? Not for what must stay where it is: who lifts that wakes everybody. */
static void wake_for(struct hive_bus *bus, uint32_t box, uint64_t number)
{
	if (bus->shape == BUS_DEALT) {
		if (!mpsc_reached(load_seq(&bus->end), number)) { /* END-2 (pairs with END-1) */
			hive__bus_wake(bus, bus->workers);
		}
	} else if (load_seq(&bus->hold) != 0u) { /* HOLD-2 (pairs with HOLD-1) */
						 /* nobody may begin */
	} else if (bus->shape == BUS_BOXES) {
		if (!mpsc_reached(load_seq(&bus->worker[box].end), number)) { /* END-2 (pairs with END-1) */
			hive__bus_wake(bus, box);
		}
	} else {
		if (!mpsc_reached(load_seq(&bus->end), number)) { /* END-2 (pairs with END-1) */
			hive__bus_wake_one(bus);
		}
	}
}

/* 0, -ENOBUFS, -ESHUTDOWN; never waits, but for one who is just reading the slot. */
static int try_put(struct hive_bus *bus, const struct put *put)
{
	uint32_t box = (bus->route == HIVE_BUS_BY_KEY) ? bus_box_of(bus, put->message->key) : 0u, tries = 0u;
	struct mpsc *ring = (bus->shape == BUS_BOXES) ? &bus->worker[box].box : &bus->ring;
	ATOMIC(uint32_t) *depth_max = (bus->shape == BUS_BOXES) ? &bus->worker[box].depth_max : &bus->depth_max;
	bool reserves = (bus->shape == BUS_DEALT) && (bus->route == HIVE_BUS_BY_KEY);
	struct mpsc_slot *slot;
	uint64_t number;
	int r;

	if (reserves && !reserve_pending(bus, box)) {
		return (load_relaxed(&bus->state) == (uint32_t)BUS_RUNNING) ? -ENOBUFS : -ESHUTDOWN;
	}
	r = mpsc_reserve(ring, bus->room[priority_of(put->message)], &number);
	if (r < 0) {
		if (reserves) {
			(void)sub_seq(&bus->worker[box].pending, 1u); /* PENDING-1 (pairs with PENDING-2) */
			hive__bus_tell(bus, &bus->room_event);
		}
		return r;
	}
	for (slot = mpsc_reserved(ring, number); slot == NULL; slot = mpsc_reserved(ring, number)) {
		hive__latch_stay_away(tries);
		tries++;
	}
	write_message(bus, (struct bus_hand *)(void *)slot, put);
	((struct bus_hand *)(void *)slot)->envelope.header.id = id_of(bus, box, number);
	mpsc_show(slot, number);
	mpsc_fetch_ahead(ring, number);
	hive__bus_filled(bus, ring, depth_max, number);
	wake_for(bus, box, number);
	return 0;
}

/* Until somebody tells, or it is time to look: who takes tells when half of the ring is free, and may be held up before that. */
static int nap(struct hive_bus *bus, uint32_t seen, int64_t deadline_ns)
{
	int64_t look_ns = bus->home->now(bus) + LOOK_NS;
	int r;

	if (deadline_ns <= look_ns) {
		return hive__bus_event_wait(bus, &bus->room_event, seen, deadline_ns);
	}
	r = hive__bus_event_wait(bus, &bus->room_event, seen, look_ns);
	if (r == -ENOMEM) { /* of a fiber: for the timer */
		r = hive__bus_event_wait(bus, &bus->room_event, seen, deadline_ns);
	}
	return (r == -ETIMEDOUT) ? bus->home->may_wait() : r; /* who is cancelled may be told so in the same word */
}

/* A short look for more than a little room before one sleeps, longer if that was good for something the last time. */
static void spin_for_room(struct hive_bus *bus, const struct mpsc *ring)
{
	uint32_t spins = load_relaxed(&bus->room_spins), most = bus->refill + (bus->refill / 2u);
	bool found = false;

	for (uint32_t i = 0u; (i < spins) && !found; i++) {
		cpu_pause();
		found = ((i & 15u) == 15u) && (mpsc_length((struct mpsc *)(uintptr_t)ring) <= most);
	}
	spins = found ? spins * 2u : spins / 2u;
	spins = (spins > (uint32_t)SPINS_MOST) ? (uint32_t)SPINS_MOST : spins;
	store_relaxed(&bus->room_spins, (spins < (uint32_t)SPINS_LEAST) ? (uint32_t)SPINS_LEAST : spins);
}

static int wait_for_room(struct hive_bus *bus, const struct put *put, int64_t deadline_ns)
{
	int r, waited = 0;

	if ((bus->hive == NULL) && (bus->depth >= 64u)) {
		uint32_t box = (bus->shape == BUS_BOXES) ? bus_box_of(bus, put->message->key) : 0u;

		spin_for_room(bus, (bus->shape == BUS_BOXES) ? &bus->worker[box].box : &bus->ring);
	}
	event_enter(&bus->room_event.event);
	do {
		uint32_t seen = event_look(&bus->room_event.event);

		r = try_put(bus, put);
		if ((r == -ENOBUFS) &&
		    (load_seq(&bus->state) != (uint32_t)BUS_RUNNING)) { /* STATE-2 (pairs with STATE-1) */
			r = -ESHUTDOWN;
		}
		if (r == -ENOBUFS) {
			waited = nap(bus, seen, deadline_ns);
		}
	} while ((r == -ENOBUFS) && (waited == 0));
	event_leave(&bus->room_event.event);
	return (r == -ENOBUFS) ? waited : r;
}

/* ---- what becomes of what does not come in ---- */

/* The oldest one of the lowest priority below this; the caller has the lock of takers. */
static struct bus_hand *find_lower(struct hive_bus *bus, uint32_t priority)
{
	uint64_t last = mpsc_next(&bus->ring);
	uint32_t lowest = priority;
	struct bus_hand *found = NULL;

	for (uint64_t number = mpsc_oldest(&bus->ring); number != last; number = MPSC_NUMBER(number + 1u)) {
		struct mpsc_slot *slot = mpsc_shown(&bus->ring, number);
		struct bus_hand *hand = (struct bus_hand *)(void *)slot;

		if ((slot != NULL) && (hand->envelope.header.priority < lowest)) {
			lowest = hand->envelope.header.priority;
			found = hand;
		}
	}
	return found;
}

/* In its place. True: done, and the other one was told. It gets that one's place in the queue. */
static bool replace_lower(struct hive_bus *bus, const struct put *put)
{
	uint64_t self = bus->home->self();
	struct bus_hand *found;

	if (load_relaxed(&bus->dropper) == self) {
		return false; /* in on_drop, which has the spare one */
	}
	lock_acquire(&bus->spare_lock);
	store_relaxed(&bus->dropper, self);
	lock_acquire(&bus->drop);
	found = find_lower(bus, priority_of(put->message));
	if ((found != NULL) && (load_relaxed(&bus->state) != (uint32_t)BUS_RUNNING)) {
		found = NULL;
	}
	if (found != NULL) {
		(void)memcpy(&bus->spare->envelope, &found->envelope, hive__bus_body(bus, &found->envelope));
		(void)add_relaxed(&bus->replaced, 1u); /* before anything that ends one of them: B1 */
		write_message(bus, found, put);
		found->envelope.header.id = other_id(bus);
	}
	lock_release(&bus->drop);
	if (found != NULL) {
		hive__bus_dropped(bus, bus->spare, bus_payload(bus->spare));
	}
	store_relaxed(&bus->dropper, (uint64_t)0);
	lock_release(&bus->spare_lock);
	return found != NULL;
}

/* Handled by the caller. False: not now. */
static bool begin_call(struct hive_bus *bus, struct bus_caller *caller)
{
	(void)add_seq(&bus->callers, 1u); /* CALL-1 (pairs with CALL-2) */
	/* Who stops sets the hold after the state: that keeps him and us apart, and of the state only the start must be seen. */
	if ((load_seq(&bus->hold) != 0u) ||                         /* HOLD-2 (pairs with HOLD-1) */
	    (load_acquire(&bus->state) != (uint32_t)BUS_RUNNING)) { /* STATE-2 (pairs with STATE-1) */
		(void)sub_seq(&bus->callers, 1u);                   /* CALL-1 (pairs with CALL-2) */
		hive__bus_tell(bus, &bus->settled);
		return false;
	}
	hive__bus_caller_enter(bus, caller);
	return true;
}

static int run_here(struct hive_bus *bus, const struct put *put, struct bus_caller *caller)
{
	struct bus_hand hand;
	int r;

	hand.of.bus = bus;
	fill_in(bus, &hand.envelope, put->message, put->type);
	hand.envelope.request = put->request;
	hand.envelope.asked = put->asked;
	hand.envelope.header.id = other_id(bus);
	r = hive__bus_run(bus, &hand, put->message->payload);
	if ((r < 0) && (bus->on_fail != NULL)) {
		bus->on_fail(bus->hook_arg, &hand.envelope.header, r);
	}
	hive__bus_unanswered(bus, &hand.envelope, REPLY_MISSING);
	hive__bus_caller_leave(bus, caller);
	return r;
}

static void end_call(struct hive_bus *bus)
{
	(void)sub_seq(&bus->callers, 1u); /* CALL-1 (pairs with CALL-2) */
	hive__bus_tell(bus, &bus->settled);
}

static bool run_in_caller(struct hive_bus *bus, const struct put *put)
{
	struct bus_caller caller;
	int r;

	if (!begin_call(bus, &caller)) {
		return false;
	}
	(void)add_relaxed(&bus->run_by_caller, 1u);
	r = run_here(bus, put, &caller);
	(void)add_release((r < 0) ? &bus->caller_failed : &bus->caller_handled,
	                  1u); /* LEDGER-1 (pairs with LEDGER-2) */
	end_call(bus);
	return true;
}

static bool by_policy(struct hive_bus *bus, const struct put *put, bool inside)
{
	bool done = false;

	if (bus->on_full == HIVE_BUS_DROP_OLDER_LOWER) {
		done = replace_lower(bus, put);
	} else if ((bus->on_full == HIVE_BUS_RUN_IN_CALLER) && !inside) {
		done = run_in_caller(bus, put);
	} else {
		/* refused */
	}
	return done;
}

int hive__bus_put(struct hive_bus *bus, const struct hive_bus_message *message, uint32_t type, uint32_t request,
                  uint64_t asked, int64_t deadline_ns)
{
	const struct put put = { message, type, request, asked };
	bool inside = false;
	int r = try_put(bus, &put);

	if (r == -ENOBUFS) {
		inside = hive__bus_inside(bus);
		if (deadline_ns > HIVE_NOWAIT) {
			r = inside ? -EDEADLK : wait_for_room(bus, &put, deadline_ns);
		}
	}
	if ((r == -ENOBUFS) || (r == -EDEADLK) || (r == -ETIMEDOUT)) {
		if (by_policy(bus, &put, inside)) {
			return 0;
		}
	}
	if (r == -ESHUTDOWN) {
		(void)add_relaxed(&bus->refused_closed, 1u);
	} else if (r < 0) {
		(void)add_relaxed(&bus->refused[priority_of(message)], 1u);
	} else {
		/* accepted, and counted by its number */
	}
	return r;
}

int hive_bus_submit(struct hive_bus *bus, const struct hive_bus_message *message, int64_t deadline_ns)
{
	uint32_t type = 0u;
	int r = hive__bus_check(bus, message, &type);

	if (r < 0) {
		hive__bus_refused(bus, r);
		return r;
	}
	return hive__bus_put(bus, message, type, 0u, 0u, deadline_ns);
}

int hive_bus_call(struct hive_bus *bus, const struct hive_bus_message *message)
{
	struct put put = { message, 0u, 0u, 0u };
	struct bus_caller caller;
	int r = hive__bus_check(bus, message, &put.type);

	if (r < 0) {
		return r;
	}
	if (!begin_call(bus, &caller)) {
		/* What refused the call had seen as much of the state. */
		return (load_relaxed(&bus->state) == (uint32_t)BUS_RUNNING) ? -EBUSY : -ESHUTDOWN;
	}
	(void)add_relaxed(&bus->called, 1u);
	r = run_here(bus, &put, &caller);
	end_call(bus);
	return r;
}
