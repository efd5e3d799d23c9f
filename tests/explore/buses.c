/* SPDX-License-Identifier: MIT */
/* A bus on a hive that stops: what was accepted is handled, and when the bus is gone nobody touches it. */
#include <errno.h>
#include <string.h>

#include <rophive/bus.h>

#include "crew.h"
#include "programs.h"

enum { MESSAGE = 1, DEPTH = 8 };

static struct hive_bus *bus;
static uint32_t accepted, handled;

static int handle(void *context, const struct hive_bus_header *header, const void *payload)
{
	(void)context, (void)header, (void)payload;
	handled++;
	return 0;
}

/* False: there was no memory for it, or for the hive. Its own memory is the caller's, so that nothing but the caller's word keeps it. */
static bool open_bus(void *memory, size_t bytes)
{
	const struct hive_bus_type type = { MESSAGE, sizeof(uint32_t), "message", handle, NULL };
	struct hive_bus_options o = {
		.types = &type, .type_count = 1, .depth = DEPTH, .requests = 1, .subscriptions = 1
	};
	int r;

	crew_clear();
	accepted = handled = 0;
	if (!open_hive((struct range){ 1, 2 }, (struct range){ 1, 2 }, CORE_EMPTY))
		return false;
	o.hive = ledger.hive;
	o.kind = explore_draw(4) ? HIVE_COMPUTE : HIVE_MICRO;
	o.workers = 1 + (int32_t)explore_draw(2);
	o.memory = memory;
	o.memory_bytes = bytes;
	EXPECT(hive_bus_create(&o, &bus) == 0);
	r = hive_bus_start(bus);
	EXPECT(r == 0 || r == -ENOMEM);
	if (r == 0)
		return true;
	EXPECT(hive_bus_destroy(bus) == 0);
	end_hive();
	return false;
}

static void submit_some(void *count)
{
	for (intptr_t n = (intptr_t)count; n > 0; n--) {
		uint32_t payload = 0;
		struct hive_bus_message message = {
			.type = MESSAGE, .size = sizeof payload, .payload = &payload, .priority = HIVE_BUS_HIGH
		};
		int r = hive_bus_submit(bus, &message, HIVE_NOWAIT);

		EXPECT(r == 0 || r == -ENOBUFS);
		accepted += r == 0;
	}
}

void a_stop_races_with_a_bus(void *arg)
{
	static _Alignas(64) char memory[1 << 16];
	int threads[3], n = 0;

	(void)arg;
	if (!open_bus(memory, sizeof memory))
		return;
	for (uint32_t i = 1 + explore_draw(2); i > 0; i--)
		threads[n++] = explore_spawn("submitter", submit_some, number(1 + (intptr_t)explore_draw(3)));
	threads[n++] = explore_spawn("stopper", stop, explore_draw(4) ? &ledger : NULL);
	crew_join_threads(threads, n);
	EXPECT(hive_bus_stop(bus, HIVE_DRAIN, HIVE_FOREVER) == 0);
	EXPECT(handled == accepted);
	EXPECT(hive_bus_destroy(bus) == 0);
	memset(memory, 0, sizeof memory); /* it is ours again: who goes there now goes nowhere */
	close_hive();
}
