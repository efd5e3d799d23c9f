/* SPDX-License-Identifier: MIT */
/* What the options may be, and where everything lies in the one block of memory:
 *
 *     bus, types, subscriptions, requests, workers (and the dispatcher), a hand for each worker and a spare one,
 *     slots of the ring of submits, slots of each worker's ring; each begins a cache line.
 *
 *     slot = 64 + largest payload, rounded up to 16; rings have their depth rounded up to a power of two, at least 2.       */
#include <string.h>

#include "bus/bus.h"

#define LINE ((size_t)CACHE_LINE)

struct plan {
	size_t types, subscriptions, requests, workers, hands, ring, rings; /* where they begin */
	size_t bytes;
	size_t stride, hand; /* of slots; of hands */
	uint64_t capacity, worker_capacity;
	bool fits;
};

static uint32_t or_else(uint32_t value, uint32_t otherwise)
{
	return (value != 0u) ? value : otherwise;
}

static uint32_t workers_of(const struct hive_bus_options *o)
{
	return (o->workers == 0) ? 1u : (uint32_t)o->workers;
}

static enum bus_shape shape_of(const struct hive_bus_options *o)
{
	if (o->dispatcher) {
		return BUS_DEALT;
	}
	return (o->route == HIVE_BUS_BY_KEY) ? BUS_BOXES : BUS_SHARED;
}

static uint64_t power_of_two(uint64_t depth)
{
	uint64_t capacity = 2u;

	while (capacity < depth) {
		capacity *= 2u;
	}
	return capacity;
}

/* Room for so many of these, from the next cache line on. */
static size_t place(struct plan *plan, uint64_t count, uint64_t each)
{
	uint64_t at = plan->bytes, bytes = count * each;

	bytes = (bytes + (LINE - 1u)) / LINE * LINE;
	plan->fits = plan->fits && (bytes <= (SIZE_MAX / 2u) - at);
	plan->bytes = plan->fits ? (size_t)(at + bytes) : plan->bytes;
	return (size_t)at;
}

static void make_plan(const struct hive_bus_options *o, struct plan *plan)
{
	enum bus_shape shape = shape_of(o);
	uint32_t workers = workers_of(o);
	size_t largest = 0u;

	(void)memset(plan, 0, sizeof(*plan));
	plan->fits = true;
	for (uint32_t i = 0u; i < o->type_count; i++) {
		largest = (o->types[i].size > largest) ? o->types[i].size : largest;
	}
	plan->stride = sizeof(struct bus_hand) + ((largest + 15u) / 16u * 16u);
	plan->hand = (plan->stride + (LINE - 1u)) / LINE * LINE;
	plan->capacity = power_of_two(or_else(o->depth, 1024u));
	plan->worker_capacity = power_of_two(or_else(o->worker_depth, 256u));
	(void)place(plan, 1u, sizeof(struct hive_bus));
	plan->types = place(plan, o->type_count, sizeof(struct bus_type));
	plan->subscriptions = place(plan, or_else(o->subscriptions, 16u), sizeof(struct bus_subscription));
	plan->requests = place(plan, or_else(o->requests, 16u), sizeof(struct bus_request));
	plan->workers = place(plan, (uint64_t)workers + 1u, sizeof(struct bus_worker));
	plan->hands = place(plan, (uint64_t)workers + 1u, plan->hand);
	plan->ring = place(plan, (shape == BUS_BOXES) ? 0u : plan->capacity, plan->stride);
	plan->rings = place(plan, (shape == BUS_SHARED) ? 0u : plan->worker_capacity * workers, plan->stride);
}

/* ---- what the options may be ---- */

static bool types_are_valid(const struct hive_bus_options *o)
{
	bool valid = (o->types != NULL) && (o->type_count > 0u) && (o->type_count <= (uint32_t)HIVE_BUS_TYPES_MAX);

	for (uint32_t i = 0u; valid && (i < o->type_count); i++) {
		valid = (o->types[i].size > 0u) && (o->types[i].size <= (uint32_t)HIVE_BUS_SIZE_MAX);
		for (uint32_t j = 0u; valid && (j < i); j++) {
			valid = o->types[i].type != o->types[j].type;
		}
	}
	return valid;
}

static bool thresholds_are_valid(const struct hive_bus_options *o)
{
	static const uint8_t usual[4] = { 0u, 60u, 80u, 99u };
	bool valid = o->refuse_at[0] == 0u;
	uint32_t before = 0u;

	for (uint32_t p = 1u; p < 4u; p++) {
		uint32_t percent = (o->refuse_at[p] != 0u) ? o->refuse_at[p] : usual[p];

		valid = valid && (percent >= before) && (percent <= 100u);
		before = percent;
	}
	return valid;
}

static bool sizes_are_valid(const struct hive_bus_options *o)
{
	return (o->depth <= HIVE_BUS_DEPTH_MAX) && (o->worker_depth <= HIVE_BUS_DEPTH_MAX) && (o->workers >= 0) &&
	       (o->workers <= HIVE_BUS_WORKERS_MAX) && (o->requests <= (uint32_t)HIVE_BUS_REQUESTS_MAX) &&
	       (o->subscriptions <= (uint32_t)HIVE_BUS_SUBSCRIPTIONS_MAX);
}

static bool home_is_valid(const struct hive_bus_options *o)
{
	bool known = ((uint32_t)o->kind <= (uint32_t)HIVE_COMPUTE) && (o->realtime >= 0) && (o->realtime <= 99) &&
	             (o->cpu_count <= 64u) && ((o->cpu_count == 0u) || (o->cpus != NULL));
	bool own_threads = o->dispatcher || (o->realtime != 0) || (o->cpu_count != 0u);

	return known && ((o->hive == NULL) ? ((uint32_t)o->kind == 0u) : !own_threads);
}

static bool are_valid(const struct hive_bus_options *o)
{
	bool valid = (o != NULL) && sizes_are_valid(o) && types_are_valid(o) && thresholds_are_valid(o) &&
	             home_is_valid(o) && ((uint32_t)o->route <= (uint32_t)HIVE_BUS_BY_KEY) &&
	             ((uint32_t)o->on_full <= (uint32_t)HIVE_BUS_RUN_IN_CALLER) &&
	             !((o->route == HIVE_BUS_BY_KEY) && (o->on_full == HIVE_BUS_DROP_OLDER_LOWER));

	for (uint32_t i = 0u; valid && (i < 8u); i++) {
		valid = o->reserved[i] == 0u;
	}
	return valid;
}

size_t hive_bus_bytes(const struct hive_bus_options *options)
{
	struct plan plan;

	if (!are_valid(options)) {
		return 0u;
	}
	make_plan(options, &plan);
	return plan.fits ? plan.bytes : 0u;
}

/* ---- putting it there ---- */

static void copy_name(char ret_name[HIVE_BUS_NAME], const char *name)
{
	uint32_t i = 0u;

	while ((name != NULL) && (i < ((uint32_t)HIVE_BUS_NAME - 1u)) && (name[i] != '\0')) {
		ret_name[i] = name[i];
		i++;
	}
	ret_name[i] = '\0';
}

static void fill_types(struct hive_bus *bus, const struct hive_bus_options *o)
{
	for (uint32_t i = 0u; i < o->type_count; i++) {
		uint32_t at = i;

		while ((at > 0u) && (bus->type[at - 1u].number > o->types[i].type)) { /* sorted, by insertion */
			(void)memcpy(&bus->type[at], &bus->type[at - 1u], sizeof(bus->type[at]));
			at--;
		}
		(void)memset(&bus->type[at], 0, sizeof(bus->type[at]));
		bus->type[at].number = o->types[i].type;
		bus->type[at].size = o->types[i].size;
		bus->type[at].handle = o->types[i].handle;
		bus->type[at].context = o->types[i].context;
		copy_name(bus->type[at].name, o->types[i].name);
	}
	bus->types = o->type_count;
}

static void init_event(struct bus_event *event)
{
	event_init(&event->event);
	lock_init(&event->lock);
	event->list[0] = NULL;
	event->list[1] = NULL;
}

static void init_worker(struct hive_bus *bus, uint32_t index, unsigned char *block, const struct plan *plan)
{
	struct bus_worker *w = &bus->worker[index];
	bool has_ring = (index < bus->workers) && (bus->shape != BUS_SHARED);
	unsigned char *slots = has_ring ? &block[plan->rings + ((size_t)plan->worker_capacity * plan->stride * index)]
	                                : NULL;

	w->bus = bus;
	w->index = index;
	w->hand = (struct bus_hand *)(void *)&block[plan->hands + (plan->hand * index)];
	w->hand->of.bus = bus;
	w->fresh = true;
	w->clock_every = 1u;
	store_relaxed(&w->end, MPSC_NOWHERE);
	parker_init(&w->parker);
	spsc_init(&w->ring, slots, plan->worker_capacity, plan->stride);
	mpsc_init(&w->box, slots, ((bus->shape == BUS_BOXES) && has_ring) ? plan->worker_capacity : 0u, plan->stride);
	mpsc_set_alone(&w->box);
}

static void init_tables(struct hive_bus *bus)
{
	for (uint32_t i = 0u; i < bus->requests; i++) {
		init_event(&bus->request[i].event);
		bus->request[i].next = ((i + 1u) < bus->requests) ? i + 2u : 0u;
	}
	bus->free_request = 1u;
	init_event(&bus->room_event);
	init_event(&bus->settled);
	lock_init(&bus->resting);
	lock_init(&bus->drop);
	lock_init(&bus->spare_lock);
	lock_init(&bus->tables);
	lock_init(&bus->callers_lock);
	idle_init(&bus->idle);
	store_relaxed(&bus->end, MPSC_NOWHERE);
	store_relaxed(&bus->room_spins, 256u);
}

static void fill_options(struct hive_bus *bus, const struct hive_bus_options *o)
{
	bus->hive = o->hive;
	bus->kind = o->kind;
	bus->shape = shape_of(o);
	bus->route = o->route;
	bus->on_full = o->on_full;
	bus->depth = or_else(o->depth, 1024u);
	bus->worker_depth = or_else(o->worker_depth, 256u);
	bus->workers = workers_of(o);
	bus->subscriptions = or_else(o->subscriptions, 16u);
	bus->requests = or_else(o->requests, 16u);
	bus->realtime = o->realtime;
	bus->cpu_count = o->cpu_count;
	if (o->cpu_count > 0u) {
		(void)memcpy(bus->cpus, o->cpus, o->cpu_count * sizeof(o->cpus[0]));
	}
	bus->hook_arg = o->hook_arg;
	bus->on_level = o->on_level;
	bus->on_drop = o->on_drop;
	bus->on_fail = o->on_fail;
	copy_name(bus->name, o->name);
	hive__bus_thresholds(bus, o->refuse_at);
}

static struct hive_bus *build(unsigned char *block, const struct hive_bus_options *o, const struct plan *plan)
{
	struct hive_bus *bus = (struct hive_bus *)(void *)block;

	(void)memset(block, 0,
	             plan->ring); /* not the slots: their turns are set, and the rest is written before it is read */
	fill_options(bus, o);
	bus->stride = plan->stride;
	bus->type = (struct bus_type *)(void *)&block[plan->types];
	bus->subscription = (struct bus_subscription *)(void *)&block[plan->subscriptions];
	bus->request = (struct bus_request *)(void *)&block[plan->requests];
	bus->worker = (struct bus_worker *)(void *)&block[plan->workers];
	bus->spare = (struct bus_hand *)(void *)&block[plan->hands + (plan->hand * bus->workers)];
	bus->spare->of.bus = bus;
	fill_types(bus, o);
	init_tables(bus);
	mpsc_init(&bus->ring, &block[plan->ring], (bus->shape == BUS_BOXES) ? 0u : plan->capacity, plan->stride);
	if ((bus->shape != BUS_SHARED) || (bus->workers == 1u) || (bus->on_full == HIVE_BUS_DROP_OLDER_LOWER)) {
		mpsc_set_alone(&bus->ring);
	}
	for (uint32_t i = 0u; i <= bus->workers; i++) {
		init_worker(bus, i, block, plan);
	}
	return bus;
}

int hive_bus_create(const struct hive_bus_options *options, struct hive_bus **ret_bus)
{
	const struct memory system = { hive__memory_system, NULL };
	const struct bus_home *home = &hive__bus_threads;
	struct plan plan;
	unsigned char *block;

	if ((ret_bus == NULL) || (hive_bus_bytes(options) == 0u)) {
		return -EINVAL;
	}
	make_plan(options, &plan);
	block = (unsigned char *)options->memory;
	if ((block != NULL) && ((options->memory_bytes < plan.bytes) || (((uintptr_t)block % LINE) != 0u))) {
		return -EINVAL;
	}
#if defined(HIVE_BUS_ALONE)
	if (options->hive != NULL) {
		return -ENOTSUP;
	}
#else
	home = (options->hive != NULL) ? &hive__bus_on_hive : home;
#endif
	if (block == NULL) {
		block = (unsigned char *)hive__memory_new(&system, plan.bytes);
	}
	if (block == NULL) {
		return -ENOMEM;
	}
	*ret_bus = build(block, options, &plan);
	(*ret_bus)->home = home;
	(*ret_bus)->allocated = options->memory == NULL;
	return 0;
}
