/* SPDX-License-Identifier: MIT */
/* A bus on a hive: no threads of its own. A timer on an IO worker submits, compute workers handle, and a fiber asks for the sum. */
#include <rophive/bus.h>
#include <rophive/hive.h>
#include <stdatomic.h>
#include <stdio.h>

enum { SAMPLE = 1, TOTAL = 2 };
struct sample {
	int64_t value;
};
HIVE_BUS_TYPED(sample, SAMPLE, struct sample)

static _Atomic(int64_t) total;
static struct hive_bus *bus;

static int on_sample(void *context, const struct hive_bus_header *header, const void *payload)
{
	(void)context;
	atomic_fetch_add(&total, sample_of(header, payload)->value);
	return 0;
}

static int on_total(void *context, const struct hive_bus_header *header, const void *payload)
{
	int64_t sum = atomic_load(&total);

	(void)context, (void)payload;
	return hive_bus_reply(header, &sum, sizeof sum);
}

static void on_tick(void *arg)
{
	int64_t *left = arg;
	const struct sample sample = { *left };

	if (sample_submit(bus, &sample, HIVE_BUS_HIGH, HIVE_NOWAIT) == 0) /* on an IO worker nobody waits */
		--*left;
	if (*left > 0 && hive_post_self_after(HIVE_MS(1), on_tick, left, NULL) < 0)
		*left = 0;
}

/* A fiber waits without keeping its worker from anything. */
static int ask(void *arg)
{
	const struct hive_bus_message message = { .type = TOTAL, .size = 1, .payload = "?", .priority = HIVE_BUS_HIGH };
	int64_t sum = 0;
	int r = 0;

	(void)arg;
	while (r >= 0 && sum < 55) {
		r = hive_sleep(HIVE_MS(1));
		if (r == 0)
			r = hive_bus_request(bus, &message, &sum, sizeof sum, hive_deadline(NULL, HIVE_S(5)));
	}
	printf("sum of ten samples: %lld\n", (long long)sum);
	return r < 0 ? r : 0;
}

int main(void)
{
	const struct hive_bus_type types[] = { { SAMPLE, sizeof(struct sample), "sample", on_sample, NULL },
		                               { TOTAL, 1, "total", on_total, NULL } };
	struct hive_bus_options options = { .types = types, .type_count = 2, .workers = 2, .kind = HIVE_COMPUTE };
	int64_t left = 10;
	int result = -1;

	if (hive_runtime_start(NULL, &options.hive) < 0 || hive_bus_create(&options, &bus) < 0 ||
	    hive_bus_start(bus) < 0)
		return 1;
	if (hive_post(options.hive, on_tick, &left) < 0 ||
	    hive_block_on(options.hive, ask, NULL, HIVE_FOREVER, &result) < 0)
		return 1;
	if (hive_bus_stop(bus, HIVE_DRAIN, HIVE_FOREVER) < 0 || hive_bus_destroy(bus) < 0) /* before its hive */
		return 1;
	return hive_runtime_stop(options.hive, HIVE_DRAIN, HIVE_FOREVER) < 0 || result < 0;
}
