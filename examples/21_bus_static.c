/* SPDX-License-Identifier: MIT */
/* A bus without heap: all of it lies in one static array, for small systems. A flush is the safe point to look at what handlers write. */
#include <rophive/bus.h>
#include <stdalign.h>
#include <stdio.h>

enum { STEP = 7 };
struct step {
	int32_t axis, ticks;
};
HIVE_BUS_TYPED(step, STEP, struct step)

static int on_step(void *context, const struct hive_bus_header *header, const void *payload)
{
	const struct step *s = step_of(header, payload);

	((int32_t *)context)[s->axis & 3] += s->ticks;
	return 0;
}

static int32_t position[4];
static alignas(64) unsigned char memory[24 * 1024]; /* all that this bus will ever use */
static const struct hive_bus_type types[] = { { STEP, sizeof(struct step), "step", on_step, position } };

int main(void)
{
	const struct hive_bus_options options = { .types = types,
		                                  .type_count = 1,
		                                  .depth = 128,
		                                  .requests = 1,
		                                  .subscriptions = 1,
		                                  .memory = memory,
		                                  .memory_bytes = sizeof memory };
	struct hive_bus *bus;

	printf("needs %zu of %zu bytes\n", hive_bus_bytes(&options), sizeof memory);
	if (hive_bus_create(&options, &bus) < 0 || hive_bus_start(bus) < 0)
		return 1;
	for (int32_t i = 0; i < 1000; i++) {
		const struct step step = { i % 4, 1 };

		if (step_submit(bus, &step, HIVE_BUS_MEDIUM, HIVE_FOREVER) < 0)
			return 1;
	}
	if (hive_bus_pause(bus, HIVE_DRAIN, HIVE_FOREVER) < 0) /* all handled, none running: safe to look */
		return 1;
	printf("axis 0 at %d\n", position[0]);
	if (hive_bus_stop(bus, HIVE_NOW, HIVE_FOREVER) < 0)
		return 1;
	return hive_bus_destroy(bus) < 0 || position[0] != 250;
}
