/* SPDX-License-Identifier: MIT */
/* Start, pause, resume, stop: one at a time. Nobody polls: who waits is told by whoever was the last to be busy. */
#include "bus/bus.h"

/* ---- one at a time ---- */

static bool try_control(struct hive_bus *bus)
{
	uint32_t nobody = 0u;

	return cas_seq(&bus->control, &nobody, 1u); /* CONTROL-2 (pairs with CONTROL-1) */
}

static int take_control(struct hive_bus *bus, int64_t deadline_ns)
{
	bool ours = try_control(bus);
	int r = 0;

	if (ours) {
		return 0;
	}
	event_enter(&bus->settled.event);
	while (!ours && (r == 0)) {
		uint32_t seen = event_look(&bus->settled.event);

		ours = try_control(bus);
		r = ours ? 0 : hive__bus_event_wait(bus, &bus->settled, seen, deadline_ns);
	}
	event_leave(&bus->settled.event);
	return r;
}

static void give_control(struct hive_bus *bus)
{
	(void)exchange_seq(&bus->control, 0u); /* CONTROL-1 (pairs with CONTROL-2) */
	hive__bus_tell(bus, &bus->settled);
}

/* ---- quiet ---- */

static void set_hold(struct hive_bus *bus, uint32_t hold)
{
	(void)exchange_seq(&bus->hold, hold); /* HOLD-1 (pairs with HOLD-2) */
}

/* What was accepted before this is below the ends. Who has not seen one passes it, which is allowed: no order. */
static void set_ends(struct hive_bus *bus)
{
	store_relaxed(&bus->end, mpsc_next(&bus->ring));
	for (uint32_t i = 0u; i < bus->workers; i++) {
		store_relaxed(&bus->worker[i].end, mpsc_next(&bus->worker[i].box));
	}
}

static void clear_ends(struct hive_bus *bus)
{
	(void)exchange_seq(&bus->end, MPSC_NOWHERE); /* END-1 (pairs with END-2) */
	for (uint32_t i = 0u; i < bus->workers; i++) {
		(void)exchange_seq(&bus->worker[i].end, MPSC_NOWHERE); /* END-1 (pairs with END-2) */
	}
}

/* All below the ends is in the hands of workers, or was. In the order in which messages go: what has left one place was seen to, or is
 * in the next one.                                                                                                        */
static bool all_taken(struct hive_bus *bus)
{
	bool taken = true;
	uint64_t first;

	if (bus->shape == BUS_BOXES) {
		for (uint32_t i = 0u; i < bus->workers; i++) {
			struct bus_worker *w = &bus->worker[i];
			uint64_t oldest = mpsc_oldest(&w->box);

			taken = taken && mpsc_reached(load_relaxed(&w->end), oldest);
		}
		return taken;
	}
	first = mpsc_oldest(&bus->ring);
	taken = mpsc_reached(load_relaxed(&bus->end), first);
	if (bus->shape == BUS_DEALT) {
		taken = taken && (load_seq(&bus->worker[bus->workers].busy) == 0u); /* BUSY-2 (pairs with BUSY-1) */
		for (uint32_t i = 0u; i < bus->workers; i++) {
			taken = taken && (spsc_length(&bus->worker[i].ring) == 0u);
		}
	}
	return taken;
}

static bool nobody_busy(struct hive_bus *bus)
{
	bool quiet = true;

	for (uint32_t i = 0u; i < bus->workers; i++) {
		quiet = quiet && (load_seq(&bus->worker[i].busy) == 0u); /* BUSY-2 (pairs with BUSY-1) */
	}
	return quiet && (load_seq(&bus->callers) == 0u); /* CALL-2 (pairs with CALL-1) */
}

/* Until nobody is busy; flush: and all below the ends was handled. */
static int wait_quiet(struct hive_bus *bus, bool flush, int64_t deadline_ns)
{
	int r = 0;

	event_enter(&bus->settled.event);
	while (r == 0) {
		uint32_t seen = event_look(&bus->settled.event);

		if ((!flush || all_taken(bus)) && nobody_busy(bus)) {
			break;
		}
		r = hive__bus_event_wait(bus, &bus->settled, seen, deadline_ns);
	}
	event_leave(&bus->settled.event);
	return r;
}

/* Refused before anything is done. */
static int check_wait(struct hive_bus *bus, enum hive_stop_mode mode, int64_t deadline_ns)
{
	if ((bus == NULL) || ((mode != HIVE_DRAIN) && (mode != HIVE_NOW))) {
		return -EINVAL;
	}
	if (hive__bus_inside(bus)) {
		return -EDEADLK;
	}
	return (deadline_ns > HIVE_NOWAIT) ? bus->home->may_wait() : 0;
}

/* ---- the calls ---- */

int hive_bus_start(struct hive_bus *bus)
{
	uint32_t state;
	int r;

	if (bus == NULL) {
		return -EINVAL;
	}
	if (!try_control(bus)) {
		return -EBUSY;
	}
	state = load_relaxed(&bus->state);
	if (state == (uint32_t)BUS_CREATED) {
		r = bus->home->start(bus);
		if (r == 0) {
			store_release(&bus->state, (uint32_t)BUS_RUNNING); /* STATE-1 (pairs with STATE-2) */
			mpsc_open(&bus->ring);
			for (uint32_t i = 0u; i < bus->workers; i++) {
				mpsc_open(&bus->worker[i].box);
			}
		}
	} else {
		r = (state == (uint32_t)BUS_RUNNING) ? -EALREADY : -ESHUTDOWN;
	}
	give_control(bus);
	return r;
}

static int pause_now(struct hive_bus *bus, int64_t deadline_ns)
{
	set_hold(bus, 1u);
	return wait_quiet(bus, false, deadline_ns);
}

static int pause_flushed(struct hive_bus *bus, int64_t deadline_ns)
{
	uint32_t before = load_relaxed(&bus->hold);
	int r;

	set_ends(bus);
	set_hold(bus, 0u);
	hive__bus_wake_each(bus);
	r = wait_quiet(bus, true, deadline_ns);
	if (r == 0) {
		r = pause_now(bus, deadline_ns); /* somebody may have begun a call */
	}
	if (r < 0) {
		set_hold(bus, before);
	}
	clear_ends(bus);
	hive__bus_wake_each(bus);
	return r;
}

int hive_bus_pause(struct hive_bus *bus, enum hive_stop_mode mode, int64_t deadline_ns)
{
	int r;

	r = check_wait(bus, mode, deadline_ns);
	if (r == 0) {
		r = take_control(bus, deadline_ns);
	}
	if (r < 0) {
		return r;
	}
	if (load_relaxed(&bus->state) != (uint32_t)BUS_RUNNING) {
		r = -ESHUTDOWN;
	} else {
		r = (mode == HIVE_NOW) ? pause_now(bus, deadline_ns) : pause_flushed(bus, deadline_ns);
	}
	give_control(bus);
	return r;
}

int hive_bus_resume(struct hive_bus *bus)
{
	int r = 0;

	if (bus == NULL) {
		return -EINVAL;
	}
	if (!try_control(bus)) {
		return -EBUSY;
	}
	if (load_relaxed(&bus->state) != (uint32_t)BUS_RUNNING) {
		r = -ESHUTDOWN;
	} else if (load_relaxed(&bus->hold) == 0u) {
		r = -EALREADY;
	} else {
		set_hold(bus, 0u);
		hive__bus_wake_each(bus);
	}
	give_control(bus);
	return r;
}

static void close_door(struct hive_bus *bus)
{
	store_seq(&bus->state, (uint32_t)BUS_STOPPING); /* STATE-1 (pairs with STATE-2) */
	(void)mpsc_close(&bus->ring);
	for (uint32_t i = 0u; i < bus->workers; i++) {
		(void)mpsc_close(&bus->worker[i].box);
	}
	hive__bus_tell(bus, &bus->room_event); /* who waits for room waits in vain */
}

/* 0; -ETIMEDOUT: not all were handled; -EINPROGRESS: somebody is still at it. */
static int stop_running(struct hive_bus *bus, enum hive_stop_mode mode, int64_t deadline_ns)
{
	int drained = 0, r;

	close_door(bus);
	if (mode == HIVE_DRAIN) {
		set_ends(bus);
		set_hold(bus, 0u);
		hive__bus_wake_each(bus);
		drained = wait_quiet(bus, true, deadline_ns);
	}
	r = pause_now(bus, deadline_ns);
	if (r == 0) {
		r = bus->home->end(bus, deadline_ns);
	}
	if (r < 0) {
		return (r == -ETIMEDOUT) ? -EINPROGRESS : r;
	}
	hive__bus_drop_rest(bus);
	store_relaxed(&bus->state, (uint32_t)BUS_STOPPED); /* to all but who has control no news after STOPPING */
	return drained;
}

int hive_bus_stop(struct hive_bus *bus, enum hive_stop_mode mode, int64_t deadline_ns)
{
	uint32_t state;
	int r;

	r = check_wait(bus, mode, deadline_ns);
	if (r == 0) {
		r = take_control(bus, deadline_ns);
	}
	if (r < 0) {
		return r;
	}
	state = load_relaxed(&bus->state);
	if (state == (uint32_t)BUS_STOPPED) {
		r = -EALREADY;
	} else if (state == (uint32_t)BUS_CREATED) {
		store_relaxed(&bus->state, (uint32_t)BUS_STOPPED); /* nobody was let in, or waits to be */
	} else {
		r = stop_running(bus, mode, deadline_ns);
	}
	give_control(bus);
	return r;
}

int hive_bus_destroy(struct hive_bus *bus)
{
	uint32_t state;

	if (bus == NULL) {
		return 0;
	}
	/* Nobody is inside another call, and the caller knows that by an order of his own. */
	state = load_relaxed(&bus->state);
	if ((state == (uint32_t)BUS_RUNNING) || (state == (uint32_t)BUS_STOPPING)) {
		return -EBUSY;
	}
	if (bus->allocated) {
		const struct memory memory = { hive__memory_system, NULL };

		hive__memory_free(&memory, bus);
	}
	return 0;
}
