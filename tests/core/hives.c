/* SPDX-License-Identifier: MIT */
/* Cores under whole hives with real threads: events, timers and wakes end a sleep, and cores of all kinds mix. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/rng.h"
#include "support/cores.h"
#include "support/real.h"

static const struct hive_core_ops *core_named(const char *name)
{
	const struct hive_core_ops *core;

	CHECK_OK(hive_core_find(name, &core));
	return core;
}

/* ---- finding ---- */

/* cores are found by name; what is not there is said to be so. */
TEST(cores_are_found_by_name)
{
	const struct hive_core_ops *core = NULL, *best = NULL;

	unsetenv("HIVE_CORE");
	CHECK_OK(hive_core_find("epoll", &core));
	CHECK_STR(core->name, "epoll");
	CHECK_OK(hive_core_find("best", &best));
	CHECK_EQ(best, core);
	CHECK_OK(hive_core_find("poll", &core));
	CHECK_STR(core->name, "poll");
	CHECK_ERR(hive_core_find("kqueue", &best), -ENOTSUP);
	CHECK_ERR(hive_core_find(NULL, &best), -EINVAL);
	CHECK_ERR(hive_core_find("poll", NULL), -EINVAL);
	CHECK_EQ(best, core_named("best"));
}

/* ---- events, timers and wakes end the sleep ---- */

struct echo {
	struct hive *hive;
	struct hive_source source;
	struct hive_timer timer;
	int fds[2];
	_Atomic(int) seen;
};

static void on_byte(struct hive_source *source, uint32_t events)
{
	struct echo *e = source->arg;

	CHECK_EQ(events, HIVE_EVENT_IN);
	take_byte((int)source->handle);
	atomic_fetch_add(&e->seen, 1);
}

static void on_time(struct hive_timer *timer)
{
	atomic_fetch_add(&((struct echo *)timer->arg)->seen, 1);
}

static void listen_here(void *arg)
{
	struct echo *e = arg;

	hive_source_init(&e->source, HIVE_SOURCE_FD, e->fds[0], HIVE_EVENT_IN, on_byte, e);
	CHECK_OK(hive_source_start(&e->source));
	hive_timer_init(&e->timer, on_time, e);
}

static void hang_up(void *arg)
{
	hive_source_stop(&((struct echo *)arg)->source);
}

static void seen_task(void *arg)
{
	atomic_fetch_add(&((struct echo *)arg)->seen, 1);
}

static void arm(void *arg)
{
	CHECK_OK(hive_timer_start(&((struct echo *)arg)->timer, HIVE_MS(2), 0));
}

/* a sleeping worker returns for an event, for a timer and for a wake, on every core. */
TEST(a_sleeping_worker_gets_up_for_an_event_a_timer_and_a_wake)
{
	for (int i = 0; i < core_count(); i++) {
		struct echo e = { 0 };
		struct hive_worker_options io = {
			.core = core_named(core_names[i]), .on_start = listen_here, .on_stop = hang_up, .hook_arg = &e
		};

		make_pipe(e.fds);
		e.hive = real_start((struct hive_options){ .io_workers = 1, .io = &io });
		for (int round = 0; round < 20; round++) {
			real_wait_asleep(e.hive, 1);
			put_byte(e.fds[1]);
			WAIT_UNTIL(atomic_load(&e.seen) == 3 * round + 1);
			real_wait_asleep(e.hive, 1);
			CHECK_OK(hive_post(e.hive, seen_task, &e));
			WAIT_UNTIL(atomic_load(&e.seen) == 3 * round + 2);
			CHECK_OK(hive_post_to(e.hive, HIVE_WORKER_MAIN, arm, &e));
			WAIT_UNTIL(atomic_load(&e.seen) == 3 * round + 3);
		}
		real_end(e.hive, HIVE_DRAIN);
		close_both(e.fds);
	}
}

static struct hive *door_hive;
static _Atomic(int) doors_done;

static void through_a_door(void *arg)
{
	(void)arg;
	if (atomic_fetch_add(&doors_done, 1) == 7)
		CHECK_OK(hive_stop(door_hive, HIVE_DRAIN, HIVE_FOREVER));
}

static void use_every_door(struct hive_source *source, uint32_t events)
{
	(void)events;
	CHECK_EQ(hive_source_stop(source), 1);
	CHECK_OK(hive_post(door_hive, through_a_door, NULL));
	CHECK_OK(hive_post_to(door_hive, HIVE_WORKER_MAIN, through_a_door, NULL));
	CHECK_OK(hive_post_after(door_hive, HIVE_US(100), through_a_door, NULL, NULL));
	CHECK_OK(hive_post_compute(door_hive, through_a_door, NULL));
	CHECK_OK(hive_post_local(through_a_door, NULL));
	CHECK_OK(hive_post_self(through_a_door, NULL));
	CHECK_OK(hive_post_self_after(HIVE_US(100), through_a_door, NULL, NULL));
	CHECK_OK(hive_post_many(door_hive, &(struct hive_task){ through_a_door, NULL }, 1));
}

static void open_doors(void *arg)
{
	struct echo *e = arg;

	hive_source_init(&e->source, HIVE_SOURCE_FD, e->fds[1], HIVE_EVENT_OUT, use_every_door, e);
	CHECK_OK(hive_source_start(&e->source));
}

/* in a hive that runs on the caller's thread, an event's callback uses every door there is. */
TEST(callbacks_of_real_events_may_use_every_door)
{
	for (int i = 0; i < core_count(); i++) {
		struct echo e = { 0 };
		struct hive_worker_options io = {
			.core = core_named(core_names[i]), .on_start = open_doors, .on_stop = hang_up, .hook_arg = &e
		};

		make_pipe(e.fds);
		atomic_store(&doors_done, 0);
		door_hive = real_create((struct hive_options){ .compute_workers = 1 });
		CHECK_OK(hive_attach(door_hive, &io, NULL));
		CHECK_OK(hive_run(door_hive));
		CHECK_EQ(atomic_load(&doors_done), 8);
		CHECK_OK(hive_destroy(door_hive));
		close_both(e.fds);
	}
}

enum { TIMERS = 300 };
static struct hive_timer timers[TIMERS];
static int64_t not_before[TIMERS];
static int timers_fired;

static void on_due(struct hive_timer *timer)
{
	CHECK(hive_now(NULL) >= not_before[timer - timers]);
	timers_fired++;
	if (timers_fired == TIMERS)
		CHECK_OK(hive_stop(hive_current(), HIVE_DRAIN, HIVE_FOREVER));
}

static void start_timers(void *arg)
{
	uint64_t rng = 5;

	(void)arg;
	for (int i = 0; i < TIMERS; i++) {
		int64_t delay = rng_below(rng_next(&rng), (uint32_t)HIVE_MS(20));

		hive_timer_init(&timers[i], on_due, NULL);
		not_before[i] = hive_now(NULL) + delay;
		CHECK_OK(hive_timer_start(&timers[i], delay, 0));
	}
}

/* on the system's clock too no timer is early, on every core. */
TEST(no_timer_is_early_on_the_systems_clock)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive_worker_options io = { .core = core_named(core_names[i]), .on_start = start_timers };
		struct hive *hive = real_create((struct hive_options){ .io_workers = 1, .io = &io });

		timers_fired = 0;
		CHECK_OK(hive_run(hive));
		CHECK_EQ(timers_fired, TIMERS);
		CHECK_OK(hive_destroy(hive));
	}
}

/* ---- different cores in one hive ---- */

/* A core of one's own, as a foreign loop would be: a condition, and one kind of source. */
struct bell_core {
	struct hive_core core;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool woken;
	int rings; /* L lock */
	struct hive_source *source;
};
static struct bell_core bell;
static const struct hive_core_ops bell_ops;

static int bell_open(void *arg, struct hive_core **ret_core)
{
	CHECK_EQ(arg, &bell);
	bell.core.ops = &bell_ops;
	*ret_core = &bell.core;
	return 0;
}

static void bell_close(struct hive_core *core)
{
	(void)core;
}

static int bell_turn(struct hive_core *core, int64_t timeout_ns)
{
	int rings;

	(void)core;
	pthread_mutex_lock(&bell.lock);
	while (timeout_ns != 0 && !bell.woken && bell.rings == 0)
		pthread_cond_wait(&bell.changed, &bell.lock); /* no timers in this test, so no limit either */
	rings = bell.rings;
	bell.rings = 0;
	bell.woken = false;
	pthread_mutex_unlock(&bell.lock);
	while (rings-- > 0 && bell.source)
		hive_source_deliver(bell.source, HIVE_EVENT_IN);
	return 0;
}

static void bell_wake(struct hive_core *core)
{
	(void)core;
	pthread_mutex_lock(&bell.lock);
	bell.woken = true;
	pthread_cond_signal(&bell.changed);
	pthread_mutex_unlock(&bell.lock);
}

static void ring(void)
{
	pthread_mutex_lock(&bell.lock);
	bell.rings++;
	pthread_cond_signal(&bell.changed);
	pthread_mutex_unlock(&bell.lock);
}

static int bell_add(struct hive_core *core, struct hive_source *source)
{
	(void)core;
	if (bell.source)
		return -EEXIST;
	bell.source = source;
	return 0;
}

static int bell_modify(struct hive_core *core, struct hive_source *source)
{
	(void)core, (void)source;
	return 0;
}

static void bell_remove(struct hive_core *core, struct hive_source *source)
{
	(void)core, (void)source;
	bell.source = NULL;
}

static const struct hive_core_ops bell_ops = { .name = "bell",
	                                       .kinds = 1u << HIVE_SOURCE_USER,
	                                       .open = bell_open,
	                                       .close = bell_close,
	                                       .turn = bell_turn,
	                                       .wake = bell_wake,
	                                       .add = bell_add,
	                                       .modify = bell_modify,
	                                       .remove = bell_remove };

static _Atomic(int) strokes, replies;

static void on_ring(struct hive_source *source, uint32_t events)
{
	(void)events;
	atomic_fetch_add(&strokes, 1);
	put_byte(((struct echo *)source->arg)->fds[1]); /* on to the worker with the descriptors */
}

static void hear_bell(void *arg)
{
	struct hive_source *source = arg;

	CHECK_OK(hive_source_start(source));
}

static void count_reply(void *arg)
{
	(void)arg;
	atomic_fetch_add(&replies, 1);
}

/* a foreign loop is one more kind of core; workers with different ones share all tasks. */
TEST(workers_of_one_hive_may_wait_in_different_cores)
{
	static struct echo echo[CORES];
	struct hive_source source;
	struct hive_worker_options main = {
		.core = &bell_ops, .core_arg = &bell, .on_start = hear_bell, .hook_arg = &source
	};
	struct hive *hive = real_create((struct hive_options){ 0 });
	struct hive_worker_stats s;
	uint32_t ids[CORES + 1];
	int workers = core_count() + 1;

	memset(echo, 0, sizeof echo);
	pthread_mutex_init(&bell.lock, NULL);
	pthread_cond_init(&bell.changed, NULL);
	bell.rings = 0;
	bell.woken = false;
	bell.source = NULL;
	atomic_store(&strokes, 0);
	atomic_store(&replies, 0);
	hive_source_init(&source, HIVE_SOURCE_USER, 0, HIVE_EVENT_IN, on_ring, &echo[0]);
	CHECK_OK(hive_attach(hive, &main, &ids[0]));
	for (int i = 0; i < core_count(); i++) {
		struct hive_worker_options io = { .core = core_named(core_names[i]),
			                          .on_start = listen_here,
			                          .on_stop = hang_up,
			                          .hook_arg = &echo[i] };

		make_pipe(echo[i].fds);
		CHECK_OK(hive_attach(hive, &io, &ids[i + 1]));
	}
	CHECK_OK(hive_start(hive));
	for (int i = 0; i < workers; i++) {
		CHECK_OK(hive_worker_stats_read(hive, ids[i], &s));
		CHECK_STR(s.core, i == 0 ? "bell" : core_names[i - 1]);
	}
	for (int i = 0; i < 50; i++) {
		if (i % 2)
			real_wait_asleep(hive, (uint32_t)workers);
		ring();
		for (int j = 0; j < workers; j++)
			CHECK_OK(hive_post_to(hive, ids[j], count_reply, NULL));
		CHECK_OK(hive_post(hive, count_reply, NULL));
	}
	WAIT_UNTIL(atomic_load(&strokes) == 50 && atomic_load(&echo[0].seen) == 50 &&
	           atomic_load(&replies) == 50 * (workers + 1));
	real_end(hive, HIVE_DRAIN);
	for (int i = 0; i < core_count(); i++)
		close_both(echo[i].fds);
	pthread_cond_destroy(&bell.changed);
	pthread_mutex_destroy(&bell.lock);
}
