/* SPDX-License-Identifier: MIT */
/* A sensor pipeline under overload: readings come faster than they can be worked on. Those of low priority are shed at the door, and the
 * submitter is told; alarms are of high priority and come through.                                                      */
#include <rophive/bus.h>
#include <stdio.h>

enum { READING = 1, ALARM = 2 };
struct reading {
	uint32_t sensor;
	float value;
};
struct alarm {
	uint32_t sensor;
	char text[28];
};
HIVE_BUS_TYPED(reading, READING, struct reading)
HIVE_BUS_TYPED(alarm, ALARM, struct alarm)

static volatile double work;

static int on_reading(void *context, const struct hive_bus_header *header, const void *payload)
{
	const struct reading *r = reading_of(header, payload);

	for (int i = 0; i < 200; i++)
		work += (double)r->value; /* it takes its time */
	++*(uint64_t *)context;           /* one worker: no lock */
	return 0;
}

static int on_alarm(void *context, const struct hive_bus_header *header, const void *payload)
{
	const struct alarm *a = alarm_of(header, payload);

	if (++*(uint64_t *)context == 1)
		printf("first alarm: sensor %u, %s\n", a->sensor, a->text);
	return 0;
}

static void on_level(void *arg, enum hive_bus_level level)
{
	static const char *const names[] = { "normal", "warning", "critical", "full" };

	if (++*(int *)arg <= 4)
		printf("level: %s\n", names[level]);
}

int main(void)
{
	uint64_t readings = 0, alarms = 0, sent = 0;
	int levels = 0, r = 0;
	const struct hive_bus_type types[] = {
		{ READING, sizeof(struct reading), "reading", on_reading, &readings },
		{ ALARM, sizeof(struct alarm), "alarm", on_alarm, &alarms },
	};
	const struct hive_bus_options options = { .name = "sensors",
		                                  .types = types,
		                                  .type_count = 2,
		                                  .depth = 64,
		                                  .hook_arg = &levels,
		                                  .on_level = on_level };
	struct hive_bus_stats stats;
	struct hive_bus *bus;

	if (hive_bus_create(&options, &bus) < 0 || hive_bus_start(bus) < 0)
		return 1;
	for (uint32_t i = 0; i < 100000; i++) {
		const struct reading reading = { i % 16, 1 };
		const struct alarm alarm = { i % 16, "too hot" };
		int shed = reading_submit(bus, &reading, HIVE_BUS_LOW, HIVE_NOWAIT); /* never waits */

		if (shed == 0 || i % 100 != 0)
			continue;
		r = alarm_submit(bus, &alarm, HIVE_BUS_HIGH, HIVE_FOREVER); /* waits for room if it has to */
		sent += r == 0;
	}
	if (hive_bus_stop(bus, HIVE_DRAIN, HIVE_FOREVER) < 0 || hive_bus_stats_read(bus, &stats) < 0)
		return 1;
	printf("readings: %llu handled, %llu shed; alarms: %llu of %llu\n", (unsigned long long)readings,
	       (unsigned long long)stats.refused[HIVE_BUS_LOW], (unsigned long long)alarms, (unsigned long long)sent);
	return hive_bus_destroy(bus) < 0 || r < 0 || alarms != sent || readings + alarms != stats.handled;
}
