/* SPDX-License-Identifier: MIT */
#pragma once
/* The bus: create allocates, once; nothing else does, with threads of its own and in memory that was given. */
#include <rophive/bus.h>

#include "calls.h"

static int bus_answer(void *context, const struct hive_bus_header *header, const void *payload)
{
	++*(int *)context;
	(void)hive_bus_reply(header, payload, 8); /* if somebody asked */
	return 0;
}

static int bus_handled;
static const struct hive_bus_type bus_types[] = { { 1, 8, "eight", bus_answer, &bus_handled } };

static int bus_create(struct world *w)
{
	const struct hive_bus_options options = { .types = bus_types, .type_count = 1 };
	struct hive_bus *bus;
	int r = hive_bus_create(&options, &bus);

	(void)w;
	if (r == 0)
		CHECK_OK(hive_bus_destroy(bus));
	return r;
}

static void bus_look(struct hive_bus *bus)
{
	struct hive_bus_stats stats;
	struct hive_bus_worker_stats worker;

	CHECK_OK(hive_bus_stats_read(bus, &stats));
	CHECK_OK(hive_bus_worker_stats_read(bus, 0, &worker));
	CHECK_EQ(hive_bus_level(bus), HIVE_BUS_NORMAL);
	CHECK_STR(hive_bus_name(bus), "");
	CHECK_STR(hive_bus_type_name(bus, 1), "eight");
}

/* Everything, on a bus that was started. */
static void bus_use(struct hive_bus *bus)
{
	const struct hive_bus_message message = { .type = 1, .size = 8, .payload = "1234567" };
	char reply[8];
	uint32_t id;

	for (int i = 0; i < 10; i++)
		CHECK_OK(hive_bus_submit(bus, &message, HIVE_FOREVER));
	CHECK_OK(hive_bus_call(bus, &message));
	CHECK_EQ(hive_bus_request(bus, &message, reply, sizeof reply, HIVE_FOREVER), 8);
	CHECK_OK(hive_bus_subscribe(bus, 1, bus_answer, &bus_handled, &id));
	CHECK_OK(hive_bus_unsubscribe(bus, id, HIVE_FOREVER));
	CHECK_OK(hive_bus_pause(bus, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_bus_resume(bus));
	bus_look(bus);
	CHECK_OK(hive_bus_stop(bus, HIVE_DRAIN, HIVE_FOREVER));
}

static _Alignas(64) unsigned char bus_memory[512 * 1024];

static int bus_all(struct world *w)
{
	struct hive_bus_options options = {
		.types = bus_types, .type_count = 1, .memory = bus_memory, .memory_bytes = sizeof bus_memory
	};
	struct hive_bus *bus;

	(void)w;
	for (int form = 0; form < 4; form++) {
		options.dispatcher = form & 1;
		options.route = form & 2 ? HIVE_BUS_BY_KEY : HIVE_BUS_ROUND_ROBIN;
		CHECK(hive_bus_bytes(&options) <= sizeof bus_memory);
		CHECK_OK(hive_bus_create(&options, &bus));
		CHECK_OK(hive_bus_start(bus));
		bus_use(bus);
		CHECK_OK(hive_bus_destroy(bus));
	}
	return 0;
}

/* On a hive the start posts; from then on nothing can be refused. */
static int bus_on_hive(struct world *w)
{
	const struct hive_bus_options options = { .types = bus_types,
		                                  .type_count = 1,
		                                  .memory = bus_memory,
		                                  .memory_bytes = sizeof bus_memory,
		                                  .hive = w->extra };
	struct hive_bus *bus;
	int r;

	CHECK_OK(hive_bus_create(&options, &bus));
	r = hive_bus_start(bus);
	if (r == 0)
		bus_use(bus);
	CHECK_OK(hive_bus_destroy(bus));
	return r;
}
