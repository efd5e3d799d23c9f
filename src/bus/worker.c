/* SPDX-License-Identifier: MIT */
/* What a worker does, whoever lends it a thread: take one message, copy it out of its ring, handle it. One at a time, so that a slow handler
 * holds up nothing that another worker could begin with.                                                                  */
#include <string.h>

#include "base/latch.h"
#include "bus/bus.h"

enum { CLOCK_MOST = 16, BRIEF_NS = 500 }; /* messages for one look at the clock; what a handler may take for that */
enum { LEVEL_EVERY = 16 }; /* messages between two looks at the tail, which those who put are writing to */

/* The bus whose message this worker thread handles. */
#if defined(HIVE_EXPLORE) /* its threads have no thread-locals of their own, but numbers */
enum { THREADS_EXPLORED = 64 };
static const struct hive_bus *handling_of[THREADS_EXPLORED];
#define handling handling_of[hive__thread_number() % THREADS_EXPLORED]
#else
static _Thread_local const struct hive_bus *handling;
#endif

/* ---- who is in a handler ---- */

void hive__bus_caller_enter(struct hive_bus *bus, struct bus_caller *caller)
{
	caller->self = bus->home->self();
	lock_acquire(&bus->callers_lock);
	caller->next = bus->caller;
	bus->caller = caller;
	lock_release(&bus->callers_lock);
}

void hive__bus_caller_leave(struct hive_bus *bus, struct bus_caller *caller)
{
	struct bus_caller **at = &bus->caller;

	lock_acquire(&bus->callers_lock);
	while (*at != caller) {
		at = &(*at)->next;
	}
	*at = caller->next;
	lock_release(&bus->callers_lock);
}

bool hive__bus_inside(struct hive_bus *bus)
{
	bool inside = handling == bus;

	if (!inside && (load_relaxed(&bus->callers) > 0u)) {
		uint64_t self = bus->home->self();

		lock_acquire(&bus->callers_lock);
		for (const struct bus_caller *c = bus->caller; (c != NULL) && !inside; c = c->next) {
			inside = c->self == self;
		}
		lock_release(&bus->callers_lock);
	}
	return inside;
}

/* ---- waking ---- */

void hive__bus_wake(struct hive_bus *bus, uint32_t worker)
{
	if (idle_claim(&bus->idle, worker)) {
		bus->home->wake(&bus->worker[worker]);
	}
}

void hive__bus_wake_one(struct hive_bus *bus)
{
	if (idle_needs_wake(&bus->idle)) {
		uint32_t worker = idle_claim_one(&bus->idle, bus->workers, UINT32_MAX);

		if (worker != IDLE_NOBODY) {
			bus->home->wake(&bus->worker[worker]);
		}
	}
}

void hive__bus_wake_each(struct hive_bus *bus)
{
	uint32_t count = bus->workers + ((bus->shape == BUS_DEALT) ? 1u : 0u);

	for (uint32_t i = 0u; i < count; i++) {
		hive__bus_wake(bus, i);
	}
}

/* ---- taking ---- */

size_t hive__bus_body(const struct hive_bus *bus, const struct bus_envelope *envelope)
{
	return sizeof(*envelope) + bus->type[envelope->type].size;
}

static void copy_out(struct bus_worker *w, const unsigned char *slot)
{
	const struct bus_hand *from = (const struct bus_hand *)(const void *)slot;

	(void)memcpy(&w->hand->envelope, &from->envelope, hive__bus_body(w->bus, &from->envelope));
}

/* From a ring that nobody else takes from. */
static bool take_alone(struct bus_worker *w, struct mpsc *ring, uint64_t end)
{
	uint64_t number;
	struct mpsc_slot *slot = mpsc_front(ring, &number);

	if ((slot == NULL) || mpsc_reached(end, number)) {
		return false;
	}
	copy_out(w, (const unsigned char *)slot);
	mpsc_pop(ring, slot, number);
	return true;
}

static bool take_shared(struct bus_worker *w)
{
	struct hive_bus *bus = w->bus;
	uint64_t number, end = load_relaxed(&bus->end);
	struct mpsc_slot *slot;
	bool took;

	if (bus->on_full == HIVE_BUS_DROP_OLDER_LOWER) {
		lock_acquire(&bus->drop); /* nobody puts another message in its place meanwhile */
		took = take_alone(w, &bus->ring, end);
		lock_release(&bus->drop);
		return took;
	}
	if (bus->workers == 1u) {
		return take_alone(w, &bus->ring, end);
	}
	slot = mpsc_claim(&bus->ring, end, &number);
	if (slot != NULL) {
		copy_out(w, (const unsigned char *)slot);
		mpsc_free(&bus->ring, slot, number);
	}
	return slot != NULL;
}

static bool take_dealt(struct bus_worker *w)
{
	unsigned char *slot = spsc_front(&w->ring);

	if (slot != NULL) {
		copy_out(w, slot);
		spsc_pop(&w->ring);
		hive__bus_took(w);
	}
	return slot != NULL;
}

/* A message into its hand. */
static bool take(struct bus_worker *w)
{
	struct hive_bus *bus = w->bus;
	bool took;

	if (load_seq(&bus->hold) != 0u) { /* HOLD-2 (pairs with HOLD-1) */
		return false;
	}
	if (bus->shape == BUS_SHARED) {
		took = take_shared(w);
	} else if (bus->shape == BUS_DEALT) {
		took = take_dealt(w);
	} else {
		took = take_alone(w, &w->box, load_relaxed(&w->end));
	}
	if (took && (bus->shape != BUS_DEALT)) {
		hive__bus_emptied(bus, (bus->shape == BUS_SHARED) ? &bus->ring : &w->box);
		w->taken++;
		if ((w->taken >= (uint32_t)LEVEL_EVERY) || (bus->refill < (uint32_t)(8 * LEVEL_EVERY))) {
			w->taken = 0u;
			hive__bus_calmer(bus);
		}
	}
	return took;
}

bool hive__bus_has_work(struct bus_worker *w)
{
	struct hive_bus *bus = w->bus;
	struct mpsc *ring = (bus->shape == BUS_SHARED) ? &bus->ring : &w->box;
	ATOMIC(uint64_t) *end = (bus->shape == BUS_SHARED) ? &bus->end : &w->end;
	uint64_t oldest;
	bool some;

	if (load_seq(&bus->hold) != 0u) { /* HOLD-2 (pairs with HOLD-1) */
		return false;
	}
	if (bus->shape == BUS_DEALT) {
		return spsc_length(&w->ring) > 0u;
	}
	some = (mpsc_length(ring) > 0u);
	oldest = mpsc_oldest(ring);
	return some && !mpsc_reached(load_seq(end), oldest); /* END-2 (pairs with END-1) */
}

/* ---- handling ---- */

/* A quarter of an octave each: 0, 1, 2, 3, 4, 5, 6, 7, 8-9, 10-11, ... */
static uint32_t bucket_of(uint64_t ns)
{
	uint32_t octave, bucket;

	if (ns < 8u) {
		return (uint32_t)ns;
	}
	octave = 63u - (uint32_t)__builtin_clzll(ns);
	bucket = ((octave - 1u) * 4u) + (uint32_t)((ns >> (octave - 2u)) & 3u);
	return (bucket < (uint32_t)BUS_WAIT_BUCKETS) ? bucket : (uint32_t)BUS_WAIT_BUCKETS - 1u;
}

/* A look at the clock costs as much as everything else here. While handlers take next to no time it is had once for several messages. */
static int64_t look_at_clock(struct bus_worker *w)
{
	if (w->fresh || (w->clock_left == 0u)) {
		int64_t now_ns = w->bus->home->now(w->bus), took_ns = now_ns - w->now_ns;
		bool brief = !w->fresh && (took_ns < ((int64_t)w->clock_every * BRIEF_NS));

		w->clock_every = (brief && (w->clock_every < (uint32_t)CLOCK_MOST)) ? w->clock_every * 2u
		                                                                    : w->clock_every;
		w->clock_every = brief ? w->clock_every : 1u;
		w->clock_left = w->clock_every;
		w->now_ns = now_ns;
	}
	w->clock_left--;
	return w->now_ns;
}

static void count_wait(struct bus_worker *w)
{
	int64_t waited = look_at_clock(w) - w->hand->envelope.header.time_ns;
	uint64_t ns = (waited > 0) ? (uint64_t)waited : 0u;

	bump(&w->waits[bucket_of(ns)], 1u);
	if (ns > load_relaxed(&w->wait_max_ns)) {
		store_relaxed(&w->wait_max_ns, ns);
	}
}

/* It has found something. Others relied on it to look for more: if there is, one of them is woken. */
static void end_search(struct bus_worker *w)
{
	struct hive_bus *bus = w->bus;

	hive__bus_found(w, w->hand->envelope.header.time_ns);
	if ((bus->shape == BUS_SHARED) && (bus->workers > 1u) && hive__bus_has_work(w)) {
		hive__bus_wake_one(bus);
	}
}

static void handle(struct bus_worker *w)
{
	struct hive_bus *bus = w->bus;
	const struct hive_bus *outer = handling;
	int r;

	count_wait(w);
	if (w->fresh) {
		end_search(w);
	}
	handling = bus;
	r = hive__bus_run(bus, w->hand, bus_payload(w->hand));
	if ((r < 0) && (bus->on_fail != NULL)) {
		bus->on_fail(bus->hook_arg, &w->hand->envelope.header, r);
	}
	handling = outer;
	hive__bus_unanswered(bus, &w->hand->envelope, REPLY_MISSING);
	if (r < 0) {
		store_release(&w->failed, load_relaxed(&w->failed) + 1u); /* LEDGER-1 (pairs with LEDGER-2) */
	} else {
		store_release(&w->handled, load_relaxed(&w->handled) + 1u); /* LEDGER-1 (pairs with LEDGER-2) */
	}
}

bool hive__bus_work(struct bus_worker *w, uint32_t budget)
{
	uint32_t left = budget;
	bool more = true;

	store_seq(&w->busy, 1u); /* BUSY-1 (pairs with BUSY-2) */
	while (more && (left > 0u)) {
		more = take(w);
		if (more) {
			handle(w);
			left--;
		}
	}
	if (!more) {
		hive__bus_calmer(w->bus);
	}
	store_seq(&w->busy, 0u); /* BUSY-1 (pairs with BUSY-2) */
	hive__bus_tell(w->bus, &w->bus->settled);
	return more;
}

/* ---- the rest at the end ---- */

void hive__bus_dropped(struct hive_bus *bus, struct bus_hand *hand, const void *payload)
{
	hand->of.bus = bus;
	if (bus->on_drop != NULL) {
		bus->on_drop(bus->hook_arg, &hand->envelope.header, payload);
	}
	hive__bus_unanswered(bus, &hand->envelope, REPLY_DROPPED);
	(void)add_release(&bus->dropped, 1u); /* LEDGER-1 (pairs with LEDGER-2) */
}

static void drop_ring(struct bus_worker *w, struct mpsc *ring)
{
	while (mpsc_length(ring) > 0u) {
		if (take_alone(w, ring, MPSC_NOWHERE)) {
			hive__bus_dropped(w->bus, w->hand, bus_payload(w->hand));
		} else {
			hive__latch_stay_away(w->tries);
			w->tries++;
		}
	}
	w->tries = 0u;
}

void hive__bus_drop_rest(struct hive_bus *bus)
{
	for (uint32_t i = 0u; i < bus->workers; i++) {
		struct bus_worker *w = &bus->worker[i];

		if (bus->shape == BUS_BOXES) {
			drop_ring(w, &w->box);
		}
		while ((bus->shape == BUS_DEALT) && take_dealt(w)) {
			hive__bus_dropped(bus, w->hand, bus_payload(w->hand));
		}
	}
	if (bus->shape != BUS_BOXES) {
		drop_ring(&bus->worker[0], &bus->ring);
	}
}
