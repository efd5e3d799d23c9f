/* SPDX-License-Identifier: MIT */
/* The scenarios post, bus and chan for what two CPUs can hand over: a ring for each producer, which nobody else writes, read by one consumer. What is
 * written is seen at once, by a release store for each slot. post: 16 bytes, a function and its argument, called. bus: messages of 64 bytes, 1024
 * in all rings together. T consumers share the P rings, but no more than half of the CPUs. chan: values of 8 bytes through one ring of 1024,
 * from one thread to another, and with T=1 within one thread, which fills the ring and empties it in turns; P and C have no meaning. No library:
 * floors. Not comparable: nobody sleeps, who finds nothing looks again and lets others run; a ring cannot grow, and nobody may be late.    */
#include "peer.h"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

enum { PRODUCERS_MAX = 256, ROOM_TASKS = 4096, ROOM_MESSAGES = 1024, ROOM_VALUES = 1024, LOOKS = 256 };
#define INLINE static inline __attribute__((always_inline)) /* sizes and functions of a scenario are constants there */

struct lane {
	_Alignas(SYNC_LINE) _Atomic uint64_t tail; /* the producer's line */
	uint64_t head_seen;
	_Alignas(SYNC_LINE) _Atomic uint64_t head; /* the consumer's line */
	_Alignas(SYNC_LINE) unsigned char *slots;
	uint64_t room;         /* a power of two */
	uint64_t first, count; /* the numbers that go through it */
};

typedef void fill_fn(void *slot, uint64_t number);
typedef uint64_t use_fn(const void *slot);

struct crew {
	struct lane lanes[PRODUCERS_MAX];
	int32_t lane_count, consumers;
	size_t size;
	void *(*produce)(void *seat), *(*consume)(void *seat);
	pthread_barrier_t start;
};

struct seat {
	struct crew *crew;
	int32_t index;
	uint64_t sum;
	int64_t begin_ns, end_ns;
	pthread_t thread;
};

/* ---- a ring ---- */

static unsigned looks_each; /* before others may run: 1 where there are more threads than CPUs */

/* Called again and again by who finds nothing to do. */
static void look_again(unsigned *looks, int64_t *limit_ns)
{
	if (++*looks % looks_each) {
		sync_pause();
		return;
	}
	*limit_ns = *limit_ns ? *limit_ns : sync_now() + BENCH_PATIENCE_NS;
	if (sync_now() > *limit_ns)
		_Exit(bench_timeout("a ring to move", 1, 0));
	sched_yield();
}

INLINE void lane_put(struct lane *lane, size_t size, fill_fn *fill, uint64_t number)
{
	uint64_t tail = atomic_load_explicit(&lane->tail, memory_order_relaxed);
	unsigned looks = 0;
	for (int64_t limit_ns = 0; tail - lane->head_seen == lane->room; look_again(&looks, &limit_ns)) {
		lane->head_seen = atomic_load_explicit(&lane->head, memory_order_acquire);
		if (tail - lane->head_seen < lane->room)
			break;
	}
	fill(lane->slots + (tail & (lane->room - 1)) * size, number);
	atomic_store_explicit(&lane->tail, tail + 1, memory_order_release);
}

/* All that is there, but no more than a quarter of the ring: the producer shall have room meanwhile. How many. */
INLINE uint64_t lane_take(struct lane *lane, size_t size, use_fn *use, uint64_t *sum)
{
	uint64_t head = atomic_load_explicit(&lane->head, memory_order_relaxed), most = lane->room / 4 + 1;
	uint64_t there = atomic_load_explicit(&lane->tail, memory_order_acquire) - head;
	there = there < most ? there : most;
	for (uint64_t end = head + there; head < end; head++)
		*sum += use(lane->slots + (head & (lane->room - 1)) * size);
	if (there > 0)
		atomic_store_explicit(&lane->head, head, memory_order_release);
	return there;
}

INLINE void *produce(struct seat *seat, size_t size, fill_fn *fill)
{
	struct lane *lane = &seat->crew->lanes[seat->index];
	pthread_barrier_wait(&seat->crew->start);
	seat->begin_ns = sync_now();
	for (uint64_t number = lane->first; number < lane->first + lane->count; number++)
		lane_put(lane, size, fill, number);
	return NULL;
}

/* Every so-manieth ring is this consumer's. */
INLINE void *consume(struct seat *seat, size_t size, use_fn *use)
{
	struct crew *crew = seat->crew;
	uint64_t left = 0, sum = 0, found = 0;
	unsigned looks = 0;
	int64_t limit_ns = 0;
	for (int32_t i = seat->index; i < crew->lane_count; i += crew->consumers)
		left += crew->lanes[i].count;
	pthread_barrier_wait(&crew->start);
	for (; left > 0; left -= found) {
		found = 0;
		for (int32_t i = seat->index; i < crew->lane_count; i += crew->consumers)
			found += lane_take(&crew->lanes[i], size, use, &sum);
		if (found == 0)
			look_again(&looks, &limit_ns);
		else
			limit_ns = 0;
	}
	seat->sum = sum;
	seat->end_ns = sync_now();
	return NULL;
}

/* ---- what goes through it ---- */

struct task {
	void (*fn)(void *arg);
	void *arg;
};

struct message {
	uint64_t number, rest[7];
};

static void fill_task(void *slot, uint64_t number)
{
	(void)number;
	*(struct task *)slot = (struct task){ tally_task, NULL };
}

static uint64_t run_task(const void *slot)
{
	const struct task *task = slot;
	task->fn(task->arg);
	return 0;
}

static void fill_message(void *slot, uint64_t number)
{
	*(struct message *)slot = (struct message){ number, { 0 } };
}

static uint64_t number_of(const void *slot)
{
	return ((const struct message *)slot)->number;
}

static void fill_value(void *slot, uint64_t number)
{
	*(uint64_t *)slot = number;
}

static uint64_t value_of(const void *slot)
{
	return *(const uint64_t *)slot;
}

static void *produce_tasks(void *seat)
{
	return produce(seat, sizeof(struct task), fill_task);
}

static void *consume_tasks(void *seat)
{
	return consume(seat, sizeof(struct task), run_task);
}

static void *produce_messages(void *seat)
{
	return produce(seat, sizeof(struct message), fill_message);
}

static void *consume_messages(void *seat)
{
	return consume(seat, sizeof(struct message), number_of);
}

static void *produce_values(void *seat)
{
	return produce(seat, sizeof(uint64_t), fill_value);
}

static void *consume_values(void *seat)
{
	return consume(seat, sizeof(uint64_t), value_of);
}

/* ---- a race ---- */

static uint64_t power_of_two_within(uint64_t most)
{
	uint64_t power = 1;
	while (power <= most / 2)
		power *= 2;
	return power;
}

/* The numbers 1 to n in even shares; `room` is that of all rings together. */
static void open_lanes(struct crew *crew, uint64_t room, uint64_t n)
{
	uint64_t lanes = (uint64_t)crew->lane_count, next = 1;
	for (uint64_t i = 0; i < lanes; i++) {
		uint64_t count = n / lanes + (i < n % lanes), mine = power_of_two_within(room / lanes);
		unsigned char *slots = crew->lanes[i].slots;
		if (!slots)
			slots = aligned_alloc(SYNC_LINE, (mine * crew->size + SYNC_LINE - 1) / SYNC_LINE * SYNC_LINE);
		peer_must_not(!slots, "memory for a ring");
		crew->lanes[i] = (struct lane){ .slots = slots, .room = mine, .first = next, .count = count };
		next += count;
	}
}

static void start(struct crew *crew, struct seat *seats, int32_t count, void *(*body)(void *))
{
	for (int32_t i = 0; i < count; i++) {
		seats[i] = (struct seat){ .crew = crew, .index = i };
		peer_must_not(pthread_create(&seats[i].thread, NULL, body, &seats[i]) != 0, "pthread_create");
	}
}

/* From the first slot until the last one was read. The sum of all that came. */
static uint64_t race(struct crew *crew, uint64_t room, uint64_t n, int64_t *ret_elapsed_ns)
{
	static struct seat producers[PRODUCERS_MAX], consumers[PRODUCERS_MAX];
	int64_t begin_ns = INT64_MAX, end_ns = 0;
	uint64_t sum = 0;
	looks_each = crew->lane_count + crew->consumers > sysconf(_SC_NPROCESSORS_ONLN) ? 1 : LOOKS;
	open_lanes(crew, room, n);
	pthread_barrier_init(&crew->start, NULL, (unsigned)(crew->lane_count + crew->consumers));
	start(crew, consumers, crew->consumers, crew->consume);
	start(crew, producers, crew->lane_count, crew->produce);
	for (int32_t i = 0; i < crew->lane_count; i++) {
		pthread_join(producers[i].thread, NULL);
		begin_ns = producers[i].begin_ns < begin_ns ? producers[i].begin_ns : begin_ns;
	}
	for (int32_t i = 0; i < crew->consumers; i++) {
		pthread_join(consumers[i].thread, NULL);
		end_ns = consumers[i].end_ns > end_ns ? consumers[i].end_ns : end_ns;
		sum += consumers[i].sum;
	}
	pthread_barrier_destroy(&crew->start);
	*ret_elapsed_ns = end_ns - begin_ns;
	return sum;
}

/* One thread, as fibers of one worker would do it: until the ring is full, until it is empty. */
static uint64_t take_turns(struct crew *crew, uint64_t room, uint64_t n, int64_t *ret_elapsed_ns)
{
	uint64_t sum = 0;
	looks_each = LOOKS;
	open_lanes(crew, room, n);
	struct lane *lane = &crew->lanes[0];
	int64_t begin_ns = sync_now();
	for (uint64_t number = 1; number <= n;) {
		for (uint64_t i = 0; i < lane->room && number <= n; i++)
			lane_put(lane, sizeof(uint64_t), fill_value, number++);
		while (lane_take(lane, sizeof(uint64_t), value_of, &sum) > 0)
			;
	}
	*ret_elapsed_ns = sync_now() - begin_ns;
	return sum;
}

static struct crew crew;

static int measure(const struct bench_params *params, struct record *result, uint64_t room,
                   uint64_t (*run)(struct crew *, uint64_t, uint64_t, int64_t *), uint64_t (*due)(uint64_t n),
                   const char *what)
{
	uint64_t warm_up = (uint64_t)params->n / 10 + 1, n = (uint64_t)params->n, sum;
	int64_t elapsed_ns = 0;
	if ((sum = run(&crew, room, warm_up, &elapsed_ns)) != due(warm_up))
		return bench_wrong(what, due(warm_up), sum);
	if ((sum = run(&crew, room, n, &elapsed_ns)) != due(n))
		return bench_wrong(what, due(n), sum);
	bench_put_rate(result, (double)n, elapsed_ns);
	for (int32_t i = 0; i < crew.lane_count; i++)
		free(crew.lanes[i].slots);
	return BENCH_OK;
}

static uint64_t sum_of_all(uint64_t n)
{
	return n * (n + 1) / 2;
}

static uint64_t nothing(uint64_t n)
{
	(void)n;
	return 0;
}

/* Who reads: as many as are asked for, but no more than there are rings, and half of the CPUs are for those who write. */
static int32_t consumers_of(const struct bench_params *params)
{
	int32_t most = (int32_t)sysconf(_SC_NPROCESSORS_ONLN) / 2;
	most = most < 1 ? 1 : most < params->producers ? most : params->producers;
	return params->threads < most ? params->threads : most;
}

static int post(const struct bench_params *params, struct record *result)
{
	uint64_t expected = (uint64_t)params->n + (uint64_t)params->n / 10 + 1;
	crew = (struct crew){ .lane_count = params->producers,
		              .consumers = consumers_of(params),
		              .size = sizeof(struct task),
		              .produce = produce_tasks,
		              .consume = consume_tasks };
	int code = measure(params, result, (uint64_t)ROOM_TASKS * (uint64_t)params->producers, race, nothing, "sums");
	return code || tally_total() == expected ? code : bench_wrong("tasks", expected, tally_total());
}

static int bus(const struct bench_params *params, struct record *result)
{
	crew = (struct crew){ .lane_count = params->producers,
		              .consumers = consumers_of(params),
		              .size = sizeof(struct message),
		              .produce = produce_messages,
		              .consume = consume_messages };
	return measure(params, result, ROOM_MESSAGES, race, sum_of_all, "sum of the messages");
}

static int chan(const struct bench_params *params, struct record *result)
{
	crew = (struct crew){ .lane_count = 1,
		              .consumers = 1,
		              .size = sizeof(uint64_t),
		              .produce = produce_values,
		              .consume = consume_values };
	return measure(params, result, ROOM_VALUES, params->threads > 1 ? race : take_turns, sum_of_all,
	               "sum of the values");
}

int main(int argc, char **argv)
{
	static const struct peer_scenario scenarios[] = {
		{ "post", 1, 1, 2000000, 0, post },
		{ "bus", 1, 1, 5000000, 0, bus },
		{ "chan", 1, 1, 10000000, 0, chan },
	};
	return peer_main("lane", scenarios, sizeof scenarios / sizeof *scenarios, argc, argv);
}
