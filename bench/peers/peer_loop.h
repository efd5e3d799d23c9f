/* SPDX-License-Identifier: MIT */
#pragma once
#include "peer.h"
#include <pthread.h>
#include <stdlib.h>

/* The scenarios that every library with event loops can do, written once: post_to, ping, ping_hot, timer, timer_cancel. The file
 * of a library defines the two structures, includes this, and then defines the functions that are declared here; all is static and in one
 * file, so that nothing stands between a scenario and the library that would not stand there in a program of its own.
 *
 * T threads are T loops, as programs with these libraries are written: timers are shared out among them, each armed by its own loop;
 * letters go to the last one, the others sleep. A letter is a function and its argument, put into a queue with a lock; the loop is
 * woken by its own thread-safe call, and only when the queue was empty.                                                     */
struct loop;       /* with the member: struct station *station */
struct loop_timer; /* with the member: void (*fired)(struct loop_timer *) */

static void loop_open(struct loop *loop, bool alone); /* alone: nobody but its own thread will touch it */
static void loop_run(struct loop *loop);              /* until loop_stop() */
static void loop_stop(struct loop *loop);             /* its thread */
static void loop_wake(struct loop *loop);             /* any thread: station_drain() on the loop's thread soon */
static void loop_close(struct loop *loop);
static void loop_refresh(struct loop *loop); /* its thread: the moment from which delays count is now */
static void loop_timer_init(struct loop *loop, struct loop_timer *timer, void (*fired)(struct loop_timer *));
static int loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t delay_ns);
static int loop_timer_stop(struct loop *loop, struct loop_timer *timer);
static bool loop_timer_armed(const struct loop_timer *timer);

struct letter {
	void (*fn)(void *arg);
	void *arg;
};

struct letters {
	struct letter *all;
	size_t count, room;
};

struct station {
	struct loop loop;
	pthread_t thread;
	pthread_mutex_t lock;
	struct letters inbox, taken; /* the lock: inbox. The thread: taken */
};

/* The body of what loop_wake() calls. */
static void station_drain(struct station *station)
{
	pthread_mutex_lock(&station->lock);
	struct letters full = station->inbox;
	station->inbox = station->taken; /* empty, its room is used again */
	pthread_mutex_unlock(&station->lock);
	for (size_t i = 0; i < full.count; i++)
		full.all[i].fn(full.all[i].arg);
	full.count = 0;
	station->taken = full;
}

static void station_post(struct station *station, void (*fn)(void *), void *arg)
{
	pthread_mutex_lock(&station->lock);
	struct letters *inbox = &station->inbox;
	if (inbox->count == inbox->room) {
		inbox->room = inbox->room ? 2 * inbox->room : 64;
		inbox->all = realloc(inbox->all, inbox->room * sizeof *inbox->all);
		peer_must_not(!inbox->all, "memory for letters");
	}
	inbox->all[inbox->count] = (struct letter){ fn, arg };
	bool first = inbox->count++ == 0;
	pthread_mutex_unlock(&station->lock);
	if (first)
		loop_wake(&station->loop);
}

static void *station_main(void *arg)
{
	loop_run(&((struct station *)arg)->loop);
	return NULL;
}

static struct station *stations_open(int32_t count, bool alone)
{
	struct station *stations = calloc((size_t)count, sizeof *stations);
	peer_must_not(!stations, "memory for loops");
	for (int32_t i = 0; i < count; i++) {
		pthread_mutex_init(&stations[i].lock, NULL);
		stations[i].loop.station = &stations[i];
		loop_open(&stations[i].loop, alone);
	}
	return stations;
}

static void stations_start(struct station *stations, int32_t count)
{
	for (int32_t i = 0; i < count; i++)
		peer_must_not(pthread_create(&stations[i].thread, NULL, station_main, &stations[i]) != 0, "a thread");
}

static void stop_here(void *arg)
{
	loop_stop(arg);
}

static void stations_stop(struct station *stations, int32_t count)
{
	for (int32_t i = 0; i < count; i++)
		station_post(&stations[i], stop_here, &stations[i].loop);
}

static void stations_close(struct station *stations, int32_t count)
{
	for (int32_t i = 0; i < count; i++) {
		pthread_join(stations[i].thread, NULL);
		loop_close(&stations[i].loop);
		pthread_mutex_destroy(&stations[i].lock);
		free(stations[i].inbox.all);
		free(stations[i].taken.all);
	}
	free(stations);
}

/* post_to, ping, ping_hot: as scenario_post_to.c and scenario_ping.c. */
#define LOOP_POLL_NS HIVE_US(50)
#define LOOP_PINGS_MAX 20000
#define LOOP_WARM_UP 500

static void answer_letter(void *arg)
{
	ping_answer(arg);
}

static int post_answer(void *arg, struct ping_slot *slot)
{
	station_post(arg, answer_letter, slot);
	return 0;
}

static int flood(struct station *to, int64_t n, int64_t *ret_elapsed_ns)
{
	uint64_t target = tally_total() + (uint64_t)n;
	int64_t begin = sync_now();
	for (int64_t i = 0; i < n; i++)
		station_post(to, tally_task, NULL);
	int code = tally_wait(target, BENCH_PATIENCE_NS, LOOP_POLL_NS);
	*ret_elapsed_ns = sync_now() - begin;
	return code;
}

struct pings {
	int64_t warm_up, count, idle_ns, elapsed_ns;
};

static int ping_station(struct station *to, struct pings *pings, struct record *result)
{
	static struct stats stats;
	const struct ping_target target = { post_answer, to };
	int code = ping_measure(&target, pings->warm_up, pings->idle_ns, NULL);
	int64_t begin = sync_now();
	if (!code)
		code = ping_measure(&target, pings->count, pings->idle_ns, &stats);
	pings->elapsed_ns = sync_now() - begin;
	if (!code)
		peer_put_percentiles(result, "", &stats);
	return code;
}

static int loop_post_to(const struct bench_params *params, struct record *result)
{
	struct station *stations = stations_open(params->threads, false), *last = &stations[params->threads - 1];
	int64_t elapsed_ns = 0, count = params->n / 10 < LOOP_PINGS_MAX ? params->n / 10 + 1 : LOOP_PINGS_MAX;
	struct pings pings = { .warm_up = count / 10 + 1, .count = count };
	stations_start(stations, params->threads);
	sync_sleep_exactly();
	int code = flood(last, params->n / 10 + 1, &elapsed_ns);
	if (!code)
		code = flood(last, params->n, &elapsed_ns);
	if (code)
		return code;
	bench_put_rate(result, (double)params->n, elapsed_ns);
	code = ping_station(last, &pings, result);
	if (code)
		return code;
	stations_stop(stations, params->threads);
	stations_close(stations, params->threads);
	return BENCH_OK;
}

static int ping_only(const struct bench_params *params, int64_t warm_up, int64_t idle_ns, struct record *result)
{
	struct pings pings = { .warm_up = warm_up, .count = params->n, .idle_ns = idle_ns };
	struct station *stations = stations_open(params->threads, false);
	stations_start(stations, params->threads);
	if (idle_ns > 0)
		sync_sleep_exactly();
	int code = ping_station(&stations[params->threads - 1], &pings, result);
	if (code)
		return code;
	bench_put_rate(result, (double)params->n, pings.elapsed_ns);
	stations_stop(stations, params->threads);
	stations_close(stations, params->threads);
	return BENCH_OK;
}

static int loop_ping(const struct bench_params *params, struct record *result)
{
	return ping_only(params, LOOP_WARM_UP, PING_IDLE_NS, result);
}

static int loop_ping_hot(const struct bench_params *params, struct record *result)
{
	return ping_only(params, params->n / 10 + LOOP_WARM_UP, 0, result);
}

/* timer: as scenario_timer.c. One pass inserts and cancels, and gives the rate; another one notes when each is due. */
struct timed {
	struct loop_timer timer;
	struct load *load;
	int64_t delay_ns, due_ns, late_ns;
};

struct load {
	struct station *station;
	pthread_barrier_t *barrier;
	struct timed *timers;
	int64_t count, left, insert_ns;
};

static void on_fire(struct loop_timer *timer)
{
	struct timed *timed = (struct timed *)(void *)timer; /* its first member */
	timed->late_ns = sync_now() - timed->due_ns;
	tally_add();
	if (--timed->load->left == 0)
		loop_stop(&timed->load->station->loop);
}

static void measure_insert(struct load *load)
{
	struct loop *loop = &load->station->loop;
	int error = 0;
	int64_t begin = sync_now();
	loop_refresh(loop);
	for (int64_t i = 0; i < load->count; i++)
		error |= loop_timer_start(loop, &load->timers[i].timer, load->timers[i].delay_ns);
	load->insert_ns = sync_now() - begin;
	for (int64_t i = 0; i < load->count; i++)
		error |= loop_timer_stop(loop, &load->timers[i].timer);
	peer_must_not(error != 0, "a timer");
}

/* Everything is due after the last insertion; else that would be measured. The clock is read before the loop reads its own, so that
 * a timer that is exact is never early.                                                                                    */
static void arm_all(struct load *load)
{
	struct loop *loop = &load->station->loop;
	int error = 0;
	int64_t now = sync_now(), base = now + 2 * load->insert_ns + load->count * 50;
	loop_refresh(loop);
	for (int64_t i = 0; i < load->count; i++) {
		struct timed *timed = &load->timers[i];
		timed->due_ns = base + timed->delay_ns;
		error |= loop_timer_start(loop, &timed->timer, timed->due_ns - now);
	}
	peer_must_not(error != 0, "a timer");
}

static void load_and_arm(void *arg)
{
	struct load *load = arg;
	for (int64_t i = 0; i < load->count; i++)
		loop_timer_init(&load->station->loop, &load->timers[i].timer, on_fire);
	measure_insert(load); /* warm-up */
	measure_insert(load);
	pthread_barrier_wait(load->barrier); /* all have measured */
	pthread_barrier_wait(load->barrier); /* the CPU time was noted */
	arm_all(load);
	if (load->count == 0)
		loop_stop(&load->station->loop);
}

static struct timed *make_timers(struct load *loads, int32_t count, int64_t n)
{
	uint64_t seed = 1;
	struct timed *timers = calloc((size_t)n, sizeof *timers), *next = timers;
	peer_must_not(!timers, "memory for timers");
	for (int32_t i = 0; i < count; i++) {
		loads[i].timers = next;
		loads[i].count = loads[i].left = n / count + (i < n % count);
		for (int64_t k = 0; k < loads[i].count; k++, next++) {
			next->load = &loads[i];
			next->delay_ns = peer_next_delay(&seed);
		}
	}
	return timers;
}

static void put_lateness(struct record *result, const struct timed *timers, int64_t n)
{
	static struct stats stats;
	for (int64_t i = 0; i < n; i++)
		stats_add(&stats, timers[i].late_ns);
	peer_put_percentiles(result, "", &stats);
	record_metric(result, "min_ns", (double)stats.min);
}

static int loop_timers(const struct bench_params *params, struct record *result)
{
	int32_t count = params->threads;
	struct load *loads = calloc((size_t)count, sizeof *loads);
	peer_must_not(!loads, "memory for loads");
	struct timed *timers = make_timers(loads, count, params->n);
	struct station *stations = stations_open(count, true);
	pthread_barrier_t barrier;
	pthread_barrier_init(&barrier, NULL, (unsigned)count + 1);
	for (int32_t i = 0; i < count; i++) {
		loads[i].station = &stations[i];
		loads[i].barrier = &barrier;
		station_post(&stations[i], load_and_arm, &loads[i]);
	}
	stations_start(stations, count);
	pthread_barrier_wait(&barrier);
	int64_t slowest_ns = 0;
	for (int32_t i = 0; i < count; i++)
		slowest_ns = loads[i].insert_ns > slowest_ns ? loads[i].insert_ns : slowest_ns;
	double cpu_before = peer_cpu_seconds();
	pthread_barrier_wait(&barrier);
	int code = tally_wait((uint64_t)params->n, BENCH_PATIENCE_NS, HIVE_MS(10)); /* must not show in the CPU time */
	double cpu_s = peer_cpu_seconds() - cpu_before;
	if (code)
		return code;
	stations_close(stations, count);
	bench_put_rate(result, (double)params->n, slowest_ns);
	put_lateness(result, timers, params->n);
	record_metric(result, "cpu_s", cpu_s);
	pthread_barrier_destroy(&barrier);
	free(timers);
	free(loads);
	return BENCH_OK;
}

/* timer_cancel: as scenario_timer_cancel.c. */
#define LOOP_ARMED 10000
#define LOOP_FAR_NS HIVE_S(3600)

struct ring {
	struct station *station;
	struct loop_timer *timers;
	int64_t operations, elapsed_ns, not_armed;
};

static void on_far(struct loop_timer *timer)
{
	(void)timer;
	tally_fail(-ETIMEDOUT); /* none is due within the hour */
}

static int arm_far(struct ring *ring, int64_t i)
{
	return loop_timer_start(&ring->station->loop, &ring->timers[i % LOOP_ARMED],
	                        LOOP_FAR_NS + i % LOOP_ARMED * HIVE_US(100));
}

static int replace_oldest(struct ring *ring, int64_t operations)
{
	struct loop *loop = &ring->station->loop;
	int error = 0;
	int64_t oldest = 0;
	for (int64_t i = 0; i < operations; i++) {
		struct loop_timer *timer = &ring->timers[oldest];
		ring->not_armed += !loop_timer_armed(timer);
		error |= loop_timer_stop(loop, timer);
		error |= loop_timer_start(loop, timer, LOOP_FAR_NS + oldest * HIVE_US(100));
		oldest = oldest + 1 < LOOP_ARMED ? oldest + 1 : 0;
	}
	return error;
}

static void cancel_all(void *arg)
{
	struct ring *ring = arg;
	int error = 0;
	loop_refresh(&ring->station->loop);
	for (int64_t i = 0; i < LOOP_ARMED; i++) {
		loop_timer_init(&ring->station->loop, &ring->timers[i], on_far);
		error |= arm_far(ring, i);
	}
	error |= replace_oldest(ring, ring->operations / 10 + LOOP_ARMED); /* warm-up */
	int64_t begin = sync_now();
	error |= replace_oldest(ring, ring->operations);
	ring->elapsed_ns = sync_now() - begin;
	for (int64_t i = 0; i < LOOP_ARMED; i++)
		error |= loop_timer_stop(&ring->station->loop, &ring->timers[i]);
	peer_must_not(error != 0, "a timer");
	tally_add();
	loop_stop(&ring->station->loop);
}

static int loop_timer_cancel(const struct bench_params *params, struct record *result)
{
	struct station *station = stations_open(1, true);
	struct ring ring = { .station = station, .operations = params->n };
	ring.timers = calloc(LOOP_ARMED, sizeof *ring.timers);
	peer_must_not(!ring.timers, "memory for timers");
	station_post(station, cancel_all, &ring);
	stations_start(station, 1);
	int code = tally_wait(1, BENCH_PATIENCE_NS, HIVE_MS(1));
	if (code)
		return code;
	stations_close(station, 1);
	free(ring.timers);
	if (ring.not_armed)
		return bench_wrong("timers that were not armed when cancelled", 0, (uint64_t)ring.not_armed);
	bench_put_rate(result, (double)params->n, ring.elapsed_ns);
	return BENCH_OK;
}

/* Rows of a table of struct peer_scenario, with the defaults of bench/scenarios.c. */
#define LOOP_SCENARIOS                                                                                     \
	{ "post_to", 1, 1, 2000000, 0, loop_post_to }, { "ping", 1, 1, 5000, 0, loop_ping },               \
		{ "ping_hot", 1, 1, 200000, 0, loop_ping_hot }, { "timer", 1, 0, 100000, 0, loop_timers }, \
	{                                                                                                  \
		"timer_cancel", 1, 0, 5000000, 0, loop_timer_cancel                                        \
	}
