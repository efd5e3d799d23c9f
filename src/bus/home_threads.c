/* SPDX-License-Identifier: MIT */
/* Threads of the bus's own. */
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"
#include "bus/bus.h"

static int set_up(const struct bus_worker *w)
{
	const struct hive_bus *bus = w->bus;
	bool worker = w->index < bus->workers;
	int r = 0;

	hive__thread_block_signals();
	if (bus->name[0] != '\0') {
		hive__thread_name(bus->name);
	}
	if (bus->cpu_count > 0u) {
		r = worker ? hive__thread_pin(&bus->cpus[w->index % bus->cpu_count], 1u)
		           : hive__thread_pin(bus->cpus, bus->cpu_count);
	}
	if ((r == 0) && (bus->realtime > 0)) {
		r = hive__thread_realtime(bus->realtime);
	}
	return r;
}

static void sleep_until_woken(struct bus_worker *w)
{
	if (hive__bus_rest(w)) {
		(void)parker_park(&w->parker, HIVE_FOREVER);
		hive__bus_up(w);
	}
}

static void thread_main(void *arg)
{
	struct bus_worker *w = (struct bus_worker *)arg;
	struct hive_bus *bus = w->bus;
	int r = set_up(w);

	store_seq(&w->setup, r); /* SETUP-1 (pairs with SETUP-2) */
	hive__bus_tell(bus, &bus->settled);
	while ((r == 0) && (load_relaxed(&bus->ending) == 0u)) { /* who does not see it finds the token when it parks */
		bool more = (w->index < bus->workers) ? hive__bus_work(w, UINT32_MAX) : hive__bus_deal(w);

		if (!more) {
			sleep_until_woken(w);
		}
	}
}

static uint32_t threads_of(const struct hive_bus *bus)
{
	return bus->workers + ((bus->shape == BUS_DEALT) ? 1u : 0u);
}

static void end_threads(struct hive_bus *bus, uint32_t count)
{
	store_relaxed(&bus->ending, 1u); /* the tokens hand it on */
	for (uint32_t i = 0u; i < count; i++) {
		parker_unpark(&bus->worker[i].parker);
	}
	for (uint32_t i = 0u; i < count; i++) {
		hive__thread_join(bus->worker[i].thread);
	}
}

/* What each said of its CPU and its class; the first error. */
static int await_setup(struct hive_bus *bus)
{
	uint32_t ready = 0u;
	int r = 0;

	event_enter(&bus->settled.event);
	while (ready < threads_of(bus)) {
		uint32_t seen = event_look(&bus->settled.event);
		int32_t setup = load_seq(&bus->worker[ready].setup); /* SETUP-2 (pairs with SETUP-1) */

		if (setup == 1) {
			(void)hive__bus_event_wait(bus, &bus->settled, seen, HIVE_FOREVER);
		} else {
			r = (r == 0) ? setup : r;
			ready++;
		}
	}
	event_leave(&bus->settled.event);
	return r;
}

static int start_threads(struct hive_bus *bus)
{
	uint32_t started = 0u;
	int r = 0;

	while ((r == 0) && (started < threads_of(bus))) {
		struct bus_worker *w = &bus->worker[started];

		store_relaxed(&w->setup, 1);
		r = hive__thread_start_in(&w->start, thread_main, w, &w->thread);
		started += (r == 0) ? 1u : 0u;
	}
	if (r == 0) {
		r = await_setup(bus);
	}
	if (r < 0) {
		end_threads(bus, started);
		store_relaxed(&bus->ending, 0u);
		idle_init(&bus->idle);
	}
	return r;
}

static int end(struct hive_bus *bus, int64_t deadline_ns)
{
	(void)deadline_ns; /* no handler runs */
	end_threads(bus, threads_of(bus));
	return 0;
}

static void wake(struct bus_worker *w)
{
	parker_unpark(&w->parker);
}

static int wait_event(struct hive_bus *bus, struct bus_event *event, uint32_t seen, int64_t deadline_ns)
{
	int64_t left = HIVE_FOREVER;

	(void)bus;
	if (deadline_ns != HIVE_FOREVER) {
		int64_t now = hive__clock_now();

		if (now >= deadline_ns) {
			return -ETIMEDOUT;
		}
		left = deadline_ns - now;
	}
	hive__futex_wait(&event->event.sequence, seen, left);
	return 0;
}

static void wake_all(struct bus_event *event)
{
	hive__futex_wake(&event->event.sequence, INT32_MAX);
}

static int may_wait(void)
{
	return 0;
}

static int64_t now(const struct hive_bus *bus)
{
	(void)bus;
	return hive__clock_now();
}

static uint64_t self(void)
{
	return hive__thread_number();
}

const struct bus_home hive__bus_threads = { start_threads, end, wake, wait_event, wake_all, may_wait, now, self };
