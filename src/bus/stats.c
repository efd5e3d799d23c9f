/* SPDX-License-Identifier: MIT */
/* What there is to know about a bus, at one moment: B1 says in which order it is read. */
#include <string.h>

#include "bus/bus.h"

/* What ended, of each kind. */
static void add_ends(struct hive_bus *bus, struct hive_bus_stats *stats)
{
	for (uint32_t i = 0u; i < bus->workers; i++) {
		stats->handled += load_acquire(&bus->worker[i].handled); /* LEDGER-2 (pairs with LEDGER-1) */
		stats->failed += load_acquire(&bus->worker[i].failed);   /* LEDGER-2 (pairs with LEDGER-1) */
	}
	stats->handled += load_acquire(&bus->caller_handled); /* LEDGER-2 (pairs with LEDGER-1) */
	stats->failed += load_acquire(&bus->caller_failed);   /* LEDGER-2 (pairs with LEDGER-1) */
	stats->dropped = load_acquire(&bus->dropped);         /* LEDGER-2 (pairs with LEDGER-1) */
}

static void add_beginnings(struct hive_bus *bus, struct hive_bus_stats *stats)
{
	uint64_t start = MPSC_NUMBER((uint64_t)RING_START);

	for (uint32_t i = 0u; (i < bus->workers) && (bus->shape == BUS_BOXES); i++) {
		stats->dispatched += mpsc_distance(start, mpsc_oldest(&bus->worker[i].box));
		stats->accepted += mpsc_distance(start, mpsc_next(&bus->worker[i].box));
	}
	if (bus->shape != BUS_BOXES) {
		stats->dispatched = mpsc_distance(start, mpsc_oldest(&bus->ring));
		stats->accepted = mpsc_distance(start, mpsc_next(&bus->ring));
	}
	stats->run_by_caller = load_relaxed(&bus->run_by_caller);
	stats->accepted += stats->run_by_caller + load_relaxed(&bus->replaced);
	stats->queued = stats->accepted - stats->handled - stats->failed - stats->dropped;
}

static void add_refusals(struct hive_bus *bus, struct hive_bus_stats *stats)
{
	stats->refused_type = load_relaxed(&bus->refused_type);
	stats->refused_size = load_relaxed(&bus->refused_size);
	stats->refused_closed = load_relaxed(&bus->refused_closed);
	stats->submitted = stats->accepted + stats->refused_type + stats->refused_size + stats->refused_closed;
	for (uint32_t p = 1u; p < 4u; p++) {
		stats->refused[p] = load_relaxed(&bus->refused[p]);
		stats->submitted += stats->refused[p];
	}
	stats->called = load_relaxed(&bus->called);
}

/* The largest wait of a bucket. */
static uint64_t bucket_top(uint32_t bucket)
{
	uint32_t octave = (bucket / 4u) + 1u;

	uint64_t quarters = (uint64_t)(bucket & 3u) + 5u;

	return (bucket < 8u) ? (uint64_t)bucket : ((quarters << (octave - 2u)) - 1u);
}

static void add_waits(const struct hive_bus *bus, struct hive_bus_stats *stats)
{
	uint64_t buckets[BUS_WAIT_BUCKETS], all = 0u, below = 0u;

	for (uint32_t b = 0u; b < (uint32_t)BUS_WAIT_BUCKETS; b++) {
		buckets[b] = 0u;
		for (uint32_t i = 0u; i < bus->workers; i++) {
			buckets[b] += load_relaxed(&bus->worker[i].waits[b]);
		}
		all += buckets[b];
	}
	for (uint32_t i = 0u; i < bus->workers; i++) {
		uint64_t max = load_relaxed(&bus->worker[i].wait_max_ns);

		stats->wait_max_ns = (max > stats->wait_max_ns) ? max : stats->wait_max_ns;
	}
	for (uint32_t b = 0u; b < (uint32_t)BUS_WAIT_BUCKETS; b++) {
		uint64_t upto = below + buckets[b], top = bucket_top(b);

		top = (top < stats->wait_max_ns) ? top : stats->wait_max_ns;
		if (((below * 2u) < all) && ((upto * 2u) >= all)) {
			stats->wait_p50_ns = top;
		}
		if (((below * 100u) < (all * 99u)) && ((upto * 100u) >= (all * 99u))) {
			stats->wait_p99_ns = top;
		}
		below = upto;
	}
}

/* More than this cannot be queued: rings, hands, callers. */
static uint64_t most_queued(struct hive_bus *bus)
{
	uint64_t own = (bus->shape == BUS_SHARED) ? 0u : bus->worker[0].ring.capacity;
	uint64_t shared = (bus->shape == BUS_BOXES) ? 0u : bus->depth;

	return shared + (bus->workers * (own + 1u)) + load_relaxed(&bus->callers);
}

/* True by its order; and close together: who was kept from going on between the two would count as queued what came and went meanwhile. */
static void read_ledger(struct hive_bus *bus, struct hive_bus_stats *stats)
{
	uint32_t tries = 0u;

	do {
		(void)memset(stats, 0, sizeof(*stats));
		add_ends(bus, stats);
		add_beginnings(bus, stats);
		tries++;
	} while ((stats->queued > most_queued(bus)) && (tries < 100u));
	add_refusals(bus, stats);
}

int hive_bus_stats_read(const struct hive_bus *bus, struct hive_bus_stats *ret_stats)
{
	struct hive_bus *b = (struct hive_bus *)(uintptr_t)bus; /* it is read only */

	if ((bus == NULL) || (ret_stats == NULL)) {
		return -EINVAL;
	}
	read_ledger(b, ret_stats);
	add_waits(bus, ret_stats);
	ret_stats->depth_now = hive__bus_fill(bus);
	ret_stats->depth_max = load_relaxed(&b->depth_max);
	for (uint32_t i = 0u; (i < bus->workers) && (bus->shape == BUS_BOXES); i++) {
		uint32_t most = load_relaxed(&bus->worker[i].depth_max);

		ret_stats->depth_max = (most > ret_stats->depth_max) ? most : ret_stats->depth_max;
	}
	ret_stats->level = (uint32_t)hive_bus_level(bus);
	ret_stats->workers = bus->workers;
	return 0;
}

int hive_bus_worker_stats_read(const struct hive_bus *bus, uint32_t worker, struct hive_bus_worker_stats *ret_stats)
{
	struct bus_worker *w;
	uint64_t length = 0u;

	if ((bus == NULL) || (ret_stats == NULL)) {
		return -EINVAL;
	}
	if (worker >= bus->workers) {
		return -ESRCH;
	}
	w = &bus->worker[worker];
	(void)memset(ret_stats, 0, sizeof(*ret_stats));
	ret_stats->handled = load_relaxed(&w->handled);
	ret_stats->failed = load_relaxed(&w->failed);
	if (bus->shape == BUS_DEALT) {
		length = spsc_length(&w->ring);
	} else if (bus->shape == BUS_BOXES) {
		length = mpsc_length(&w->box);
	} else {
		/* it has none */
	}
	ret_stats->depth_now = (uint32_t)((length > bus->worker_depth) ? bus->worker_depth : length);
	ret_stats->depth_max = load_relaxed(&w->depth_max);
	ret_stats->busy = load_relaxed(&w->busy) != 0u;
	return 0;
}

const char *hive_bus_name(const struct hive_bus *bus)
{
	return (bus == NULL) ? "" : bus->name;
}
