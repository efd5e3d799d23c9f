/* SPDX-License-Identifier: MIT */
/* Tasks, timers, groups and the bus. */
#include "paths.h"

enum { BURST = 64, TIMERS = 1024 };

static uint64_t ran, left;

static void count(void *arg)
{
	(void)arg;
	ran++;
}

static void expect(uint64_t n)
{
	MUST(ran == n);
	ran = 0;
}

static void settle_and_expect(struct world *w, uint64_t n)
{
	world_settle(w);
	expect(n);
}

/* ---- the pool: filled, and emptied ---- */

static uint64_t post(struct world *w, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		MUST(hive_post(w->hive, count, w) == 0);
	return n;
}

static void post_before(struct world *w, uint64_t n)
{
	post(w, n);
}

static uint64_t settle(struct world *w, uint64_t n)
{
	world_settle(w);
	return n;
}

static void expect_after(struct world *w, uint64_t n)
{
	(void)w;
	expect(n);
}

static uint64_t post_compute(struct world *w, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		MUST(hive_post_compute(w->hive, count, w) == 0);
		if (i % BURST == BURST - 1)
			world_settle(w);
	}
	world_settle(w);
	return n;
}

static uint64_t post_to(struct world *w, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		MUST(hive_post_to(w->hive, w->workers[0].id, count, w) == 0);
		if (i % BURST == BURST - 1)
			world_settle(w);
	}
	world_settle(w);
	return n;
}

/* A letter from worker to worker, which answers it. */
static void send_back(void *arg)
{
	struct world *w = arg;
	uint32_t here = hive_worker_current();

	ran++;
	if (--left > 0)
		MUST(hive_post_to(w->hive, w->workers[w->workers[0].id == here].id, send_back, w) == 0);
}

static uint64_t letters(struct world *w, uint64_t n)
{
	left = n;
	MUST(hive_post_to(w->hive, w->workers[0].id, send_back, w) == 0);
	world_settle(w);
	return n;
}

/* ---- the local queue, and thieves ---- */

static void burst(void *arg)
{
	ran++;
	for (int i = 0; i < BURST - 2; i++)
		MUST(hive_post_local(count, arg) == 0);
	if (--left > 0)
		MUST(hive_post_local(burst, arg) == 0);
	else
		MUST(hive_post_local(count, arg) == 0);
}

/* Each burst is so many tasks, with itself and the next one; the last one has one in its place. */
static uint64_t post_local(struct world *w, uint64_t n)
{
	left = n / (BURST - 1) + (n < BURST - 1);
	n = left * (BURST - 1) + 1;
	MUST(hive_post(w->hive, burst, w) == 0);
	world_settle(w);
	expect(n);
	return n;
}

static void hoard(void *arg)
{
	struct world *w = arg;

	for (uint64_t i = 0; i < left; i++)
		MUST(hive_post_local(count, w) == 0);
}

/* The first worker has them all, and stands still while the second one robs it. */
static void hoard_before(struct world *w, uint64_t n)
{
	left = n;
	MUST(hive_post_to(w->hive, w->workers[0].id, hoard, w) == 0);
	world_step(w, 0);
}

static uint64_t steal(struct world *w, uint64_t n)
{
	uint64_t own = ran;

	for (uint64_t beats = 0; ran < n && beats < 2 * n; beats++)
		world_step(w, 1);
	MUST(ran == n && own <= 1 + n / 8);
	return n - own;
}

/* ---- timers ---- */

static struct hive_timer timers[TIMERS];

static void on_fire(struct hive_timer *timer)
{
	count(timer);
}

static int64_t delay(struct world *w)
{
	return (int64_t)(world_random(w) % HIVE_S(10));
}

static void timers_open(struct world *w)
{
	(void)w;
	for (int i = 0; i < TIMERS; i++)
		hive_timer_init(&timers[i], on_fire, NULL);
}

/* Half of them are armed at any time. */
static void start_and_stop(void *arg)
{
	for (uint64_t i = 0; i < left; i++) {
		MUST(hive_timer_start(&timers[i % TIMERS], HIVE_MS(1) + delay(arg), 0) == 0);
		if (i >= TIMERS / 2)
			MUST(hive_timer_stop(&timers[(i - TIMERS / 2) % TIMERS]) == 1);
	}
	for (uint64_t i = left < TIMERS / 2 ? 0 : left - TIMERS / 2; i < left; i++)
		MUST(hive_timer_stop(&timers[i % TIMERS]) == 1);
}

static uint64_t timer(struct world *w, uint64_t n)
{
	left = n;
	MUST(hive_post_to(w->hive, w->workers[0].id, start_and_stop, w) == 0);
	world_settle(w);
	return n;
}

static void start_some(void *arg)
{
	for (int i = 0; i < TIMERS; i++)
		MUST(hive_timer_start(&timers[i], delay(arg), 0) == 0);
}

static uint64_t timer_fire(struct world *w, uint64_t n)
{
	uint64_t fired = 0;

	for (; fired < n; fired += TIMERS) {
		MUST(hive_post_to(w->hive, w->workers[0].id, start_some, w) == 0);
		world_settle(w);
		for (int i = 0; i < 100; i++) {
			w->now_ns += HIVE_MS(100);
			world_settle(w);
		}
	}
	expect(fired);
	return fired;
}

/* ---- groups ---- */

static void fork_and_join(struct world *w, uint64_t n)
{
	struct hive_group group;

	for (uint64_t i = 0; i < n; i++) {
		hive_group_init(&group, w->hive, HIVE_COMPUTE);
		hive_group_run(&group, count, w);
		MUST(hive_group_wait(&group, HIVE_FOREVER) == 0);
	}
}

/* Each fork is the only one there is, so that it is shown to others. */
static void fork_alone(void *arg)
{
	fork_and_join(arg, left);
}

/* There is an older one for others to take, as inside a recursion: those after it are the worker's own business. */
static void fork_inside(void *arg)
{
	struct world *w = arg;
	struct hive_group outer;

	hive_group_init(&outer, w->hive, HIVE_COMPUTE);
	hive_group_run(&outer, count, w);
	fork_and_join(w, left - 1);
	MUST(hive_group_wait(&outer, HIVE_FOREVER) == 0);
}

static uint64_t group(struct world *w, uint64_t n)
{
	left = n;
	MUST(hive_post_compute(w->hive, fork_inside, w) == 0);
	world_settle(w);
	return n;
}

static uint64_t group_alone(struct world *w, uint64_t n)
{
	left = n;
	MUST(hive_post_compute(w->hive, fork_alone, w) == 0);
	world_settle(w);
	return n;
}

/* ---- the bus, on a hive ---- */

static struct hive_bus *bus;

static int handle(void *context, const struct hive_bus_header *header, const void *payload)
{
	(void)header, (void)payload;
	count(context);
	return 0;
}

static void bus_open(struct world *w)
{
	struct hive_bus_type type = { .type = 1, .size = 64, .handle = handle };
	struct hive_bus_options options = { .types = &type, .type_count = 1, .hive = w->hive };

	MUST(hive_bus_create(&options, &bus) == 0);
	MUST(hive_bus_start(bus) == 0);
}

static uint64_t submit(struct world *w, uint64_t n)
{
	static const char payload[64] = "sixty-four bytes";
	struct hive_bus_message message = { .type = 1, .size = sizeof payload, .payload = payload };

	for (uint64_t i = 0; i < n; i++) {
		MUST(hive_bus_submit(bus, &message, HIVE_NOWAIT) == 0);
		if (i % BURST == BURST - 1)
			world_settle(w);
	}
	world_settle(w);
	return n;
}

static void bus_close(struct world *w)
{
	(void)w;
	MUST(hive_bus_stop(bus, HIVE_DRAIN, HIVE_FOREVER) == 0);
	MUST(hive_bus_destroy(bus) == 0);
}

const struct path task_paths[] = {
	{ .name = "post", .run = post, .after = settle_and_expect },
	{ .name = "pop", .before = post_before, .run = settle, .after = expect_after },
	{ .name = "post_local", .run = post_local },
	{ .name = "post_to", .run = post_to, .after = expect_after },
	{ .name = "letter", .io_workers = 2, .run = letters, .after = expect_after },
	{ .name = "steal",
	  .io_workers = 2,
	  .local_capacity = 65536,
	  .local_budget = 1,
	  .before = hoard_before,
	  .run = steal,
	  .after = settle_and_expect },
	{ .name = "compute", .compute_workers = 1, .run = post_compute, .after = expect_after },
	{ .name = "timer_heap", .timers = HIVE_TIMERS_HEAP, .open = timers_open, .run = timer },
	{ .name = "timer_wheel", .timers = HIVE_TIMERS_WHEEL, .open = timers_open, .run = timer },
	{ .name = "fire_heap", .timers = HIVE_TIMERS_HEAP, .open = timers_open, .run = timer_fire },
	{ .name = "fire_wheel", .timers = HIVE_TIMERS_WHEEL, .open = timers_open, .run = timer_fire },
	{ .name = "group", .compute_workers = 1, .run = group, .after = expect_after },
	{ .name = "group_alone", .compute_workers = 1, .run = group_alone, .after = expect_after },
	{ .name = "bus", .open = bus_open, .run = submit, .after = expect_after, .close = bus_close },
	{ 0 },
};
