/* SPDX-License-Identifier: MIT */
/* Heap and wheel in the simulator: from the same seed the same timers fire at the same times (F-61). */
#include "base/rng.h"
#include "test.h"

#include <rophive/hive.h>
#include <rophive/sim.h>

enum { TIMERS = 300, EVENTS = 4000 };

struct event {
	int64_t at_ns;
	uint32_t worker;
	int who;
};

struct program {
	struct hive *hive;
	uint64_t rng;
	struct hive_timer timers[TIMERS];
	uint64_t posts[TIMERS];
	struct event events[EVENTS];
	int count;
	uint64_t hash;
};

static struct program *running;

static void log_event(int who)
{
	struct program *p = running;

	if (p->count < EVENTS)
		p->events[p->count] = (struct event){ hive_now(p->hive), hive_worker_current(), who };
	p->count++;
}

/* From milliseconds to weeks, and no two the same: of those that are due at the same time on two workers, the schedule decides. */
static int64_t draw_delay(void)
{
	uint64_t bits = 12 + rng_below(rng_next(&running->rng), 29);

	return (int64_t)(rng_next(&running->rng) >> bits);
}

/* Now and then a post is cancelled, from anywhere. */
static void act(void)
{
	struct program *p = running;
	uint32_t i = rng_below(rng_next(&p->rng), TIMERS);

	if (p->count > EVENTS / 2)
		return;
	if (rng_below(rng_next(&p->rng), 4) == 0 && hive_post_cancel(p->hive, p->posts[i]) == 0)
		log_event(2000 + (int)i);
}

static void on_post(void *arg)
{
	uint32_t i = (uint32_t)(uintptr_t)arg;

	log_event(1000 + (int)i);
	act();
	if (running->count < EVENTS / 2)
		CHECK_OK(hive_post_after(running->hive, draw_delay(), on_post, arg, &running->posts[i]));
}

static void on_timer(struct hive_timer *timer)
{
	uint32_t i = (uint32_t)(timer - running->timers),
		 other = i / 100 * 100 + rng_below(rng_next(&running->rng), 100);

	log_event((int)i);
	act();
	if (running->count > EVENTS / 2 || rng_below(rng_next(&running->rng), 3) == 0)
		hive_timer_stop(&running->timers[other]);
	else
		CHECK_OK(hive_timer_start(&running->timers[other], draw_delay(), other % 5 ? 0 : draw_delay() + 1));
}

/* Each worker has a hundred timers of its own. */
static void begin(void *arg)
{
	int first = (int)(uintptr_t)arg;

	for (int i = first; i < first + 100; i++) {
		hive_timer_init(&running->timers[i], on_timer, NULL);
		running->timers[i].drift = (enum hive_drift)(i % 3);
		CHECK_OK(hive_timer_start(&running->timers[i], draw_delay(), 0));
		CHECK_OK(hive_post_after(running->hive, draw_delay(), on_post, (void *)(uintptr_t)i,
		                         &running->posts[i]));
	}
}

static void play(struct program *p, uint64_t seed, enum hive_timers kind)
{
	struct hive_sim_options how = { .seed = seed };
	struct hive_worker_options io = { .timers = kind };
	struct hive_options options = { .io_workers = 3, .io = &io };
	struct hive_sim *sim;
	uint32_t workers[3];

	memset(p, 0, sizeof *p);
	p->rng = seed + 1;
	running = p;
	CHECK_OK(hive_sim_create(&how, &sim));
	options.host = hive_sim_host(sim);
	CHECK_OK(hive_create(&options, &p->hive));
	CHECK_OK(hive_start(p->hive));
	CHECK_EQ(hive_workers(p->hive, workers, 3), 3);
	for (uintptr_t i = 0; i < 3; i++)
		CHECK_OK(hive_post_to(p->hive, workers[i], begin, (void *)(i * 100)));
	hive_sim_advance(sim, HIVE_S(86400) * 60);
	CHECK_OK(hive_stop(p->hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(p->hive, HIVE_FOREVER));
	CHECK_OK(hive_destroy(p->hive));
	p->hash = hive_sim_hash(sim);
	CHECK_OK(hive_sim_destroy(sim));
}

/* F-61, R-56: the order of firing does not depend on the structure. */
TEST(heap_and_wheel_fire_the_same_timers_in_the_same_order)
{
	static struct program heap, wheel;
	int seeds = 60 / test_slowness() + 1;

	for (int seed = 0; seed < seeds; seed++) {
		play(&heap, (uint64_t)seed, HIVE_TIMERS_HEAP);
		play(&wheel, (uint64_t)seed, HIVE_TIMERS_WHEEL);
		CHECK(heap.count > 600 && heap.count < EVENTS);
		CHECK_EQ(wheel.count, heap.count);
		for (int i = 0; i < heap.count; i++) {
			CHECK_EQ(wheel.events[i].at_ns, heap.events[i].at_ns);
			CHECK_EQ(wheel.events[i].who, heap.events[i].who);
			if (wheel.events[i].who < TIMERS) /* a post goes where chance will have it */
				CHECK_EQ(wheel.events[i].worker, heap.events[i].worker);
		}
	}
}

/* and a program with a wheel is as repeatable as any. */
TEST(a_program_with_a_wheel_is_repeatable)
{
	static struct program first, second;

	play(&first, 77, HIVE_TIMERS_WHEEL);
	play(&second, 77, HIVE_TIMERS_WHEEL);
	CHECK_EQ(first.hash, second.hash);
	CHECK_EQ(first.count, second.count);
}
