/* SPDX-License-Identifier: MIT */
#include "bus/bus.h"

int hive__bus_event_wait(struct hive_bus *bus, struct bus_event *event, uint32_t seen, int64_t deadline_ns)
{
	return (deadline_ns <= HIVE_NOWAIT) ? -ETIMEDOUT : bus->home->wait(bus, event, seen, deadline_ns);
}

void hive__bus_tell(const struct hive_bus *bus, struct bus_event *event)
{
	if (event_tells(&event->event)) {
		bus->home->wake_all(event);
	}
}
