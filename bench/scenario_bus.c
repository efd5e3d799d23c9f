/* SPDX-License-Identifier: MIT */
#include "bench.h"
#include "bus_floor.h"
#include "sync.h"
#include "windows.h"
#include <pthread.h>
#include <rophive/bus.h>
#include <stdlib.h>
#include <string.h>

/* bus: P threads submit n messages of 64 bytes to a bus of 1024 with T workers, and wait where there is no room. One operation is one message,
 * from the first submit until the last was handled. The sum must be right.
 * bus_load: one submitter at half of the rate that a worker can do (handlers of about 5 us), which is awake: latency by the stats of the bench.
 * bus_overload: P threads submit for --seconds twice what T workers can do: who is refused, and how long each priority waits. A bus of 4096: what
 * is kept for high ones, 19 % of it, must outlast what the machine takes from a worker at once.
 * Both also print the p99 of the median window of 50 ms; bus_load both p99s of two threads that only spin, its floor. --depth: of the bus. */
enum { DEPTH = 1024, DEPTH_OVERLOAD = 4096, MESSAGE = 1, LATE = 2, SIDE_MAX = 256, WORK_NS = 5000 };

struct message {
	uint64_t number, rest[7];
};
struct timed {
	int64_t begin_ns;
	uint64_t rest[7];
};
HIVE_BUS_TYPED(message, MESSAGE, struct message)
HIVE_BUS_TYPED(timed, LATE, struct timed)

struct seat { /* what one worker thread counts */
	_Alignas(SYNC_LINE) uint64_t sum;
	_Atomic(bool) taken;
};

static struct seat seats[SIDE_MAX];
static _Thread_local struct seat *seat;

static int add_up(void *context, const struct hive_bus_header *header, const void *payload)
{
	(void)context;
	for (int i = 0; !seat && i < SIDE_MAX; i++)
		if (!atomic_exchange(&seats[i].taken, true))
			seat = &seats[i];
	seat->sum += message_of(header, payload)->number;
	return 0;
}

/* About so long, without a system call. */
static void work(int64_t ns)
{
	int64_t end = sync_now() + ns;
	while (sync_now() < end)
		sync_pause();
}

struct waits {
	pthread_mutex_t lock;
	struct stats by_priority[4];
	struct windows all;
	int64_t work_ns;
};

static int note_wait(void *context, const struct hive_bus_header *header, const void *payload)
{
	struct waits *waits = context;
	int64_t now = sync_now(), wait = now - timed_of(header, payload)->begin_ns;
	pthread_mutex_lock(&waits->lock);
	stats_add(&waits->by_priority[header->priority], wait);
	windows_add(&waits->all, now, wait);
	pthread_mutex_unlock(&waits->lock);
	work(waits->work_ns);
	return 0;
}

static int open_bus(const struct bench_params *params, uint32_t depth, struct waits *waits, struct hive **ret_hive,
                    struct hive_bus **ret_bus)
{
	const struct hive_bus_type types[] = { { MESSAGE, sizeof(struct message), "message", add_up, NULL },
		                               { LATE, sizeof(struct timed), "timed", note_wait, waits } };
	struct hive_bus_options options = { .types = types, .type_count = 2 };
	int error = 0;
	options.depth = params->depth ? (uint32_t)params->depth : depth;
	options.worker_depth = options.depth;
	options.workers = params->threads;
	options.dispatcher = params->style == BENCH_DISPATCHER;
	options.route = params->style == BENCH_KEY ? HIVE_BUS_BY_KEY : HIVE_BUS_ROUND_ROBIN;
	if (params->style == BENCH_HIVE)
		error = hive_runtime_start(
			&(struct hive_options){ .io_workers = params->threads, .compute_workers = 1 }, &options.hive);
	if (!error)
		error = hive_bus_create(&options, ret_bus);
	if (!error)
		error = hive_bus_start(*ret_bus);
	*ret_hive = options.hive;
	return error ? bench_failed("the bus", error) : BENCH_OK;
}

static int close_bus(struct hive *hive, struct hive_bus *bus, struct record *result)
{
	struct hive_bus_stats stats;
	int error = hive_bus_stop(bus, HIVE_DRAIN, hive_deadline(NULL, BENCH_PATIENCE_NS));
	if (error)
		return bench_failed("the end of the bus", error);
	hive_bus_stats_read(bus, &stats);
	record_metric(result, "wait_p99_ns", (double)stats.wait_p99_ns);
	record_metric(result, "depth_max", stats.depth_max);
	bench_put_memory(result);
	hive_bus_destroy(bus);
	if (hive)
		hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER);
	if (stats.queued || stats.accepted != stats.handled)
		return bench_wrong("messages handled", stats.accepted, stats.handled);
	return BENCH_OK;
}

struct producer {
	struct hive_bus *bus;
	pthread_barrier_t *start;
	pthread_t thread;
	int64_t first, count, begin_ns, end_ns, gap_ns;
	uint64_t refused[4], sent[4];
	int error;
};

static void *produce(void *arg)
{
	struct producer *p = arg;
	struct message message = { 0 };
	pthread_barrier_wait(p->start);
	p->begin_ns = sync_now();
	for (int64_t i = 0; i < p->count && !p->error; i++) {
		message.number = (uint64_t)(p->first + i);
		p->error = message_submit_key(p->bus, &message, HIVE_BUS_HIGH, message.number, HIVE_FOREVER);
	}
	return NULL;
}

static int race(struct hive_bus *bus, int32_t count, int64_t n, int64_t *ret_elapsed_ns)
{
	static struct producer producers[SIDE_MAX];
	pthread_barrier_t start;
	int64_t begin = INT64_MAX, next = 1;
	int error = 0;
	pthread_barrier_init(&start, NULL, (unsigned)count);
	for (int32_t i = 0; i < count; i++) {
		producers[i] = (struct producer){
			.bus = bus, .start = &start, .first = next, .count = n / count + (i < n % count)
		};
		next += producers[i].count;
		if (pthread_create(&producers[i].thread, NULL, produce, &producers[i]) != 0)
			return bench_failed("threads for the producers", -EAGAIN);
	}
	for (int32_t i = 0; i < count; i++) {
		pthread_join(producers[i].thread, NULL);
		begin = producers[i].begin_ns < begin ? producers[i].begin_ns : begin;
		error = error ? error : producers[i].error;
	}
	pthread_barrier_destroy(&start);
	if (!error)
		error = hive_bus_pause(bus, HIVE_DRAIN, hive_deadline(NULL, BENCH_PATIENCE_NS));
	*ret_elapsed_ns = sync_now() - begin;
	if (!error)
		error = hive_bus_resume(bus);
	return error ? bench_failed("a submit or the flush", error) : BENCH_OK;
}

static uint64_t sum_of(int64_t n)
{
	return (uint64_t)n * ((uint64_t)n + 1) / 2;
}

int bench_bus(const struct bench_params *params, struct record *result)
{
	static struct waits waits = { .lock = PTHREAD_MUTEX_INITIALIZER };
	int64_t elapsed_ns = 1, warm = params->n / 10 + 1;
	uint64_t sum = 0, expected = sum_of(warm) + sum_of(params->n);
	struct hive *hive;
	struct hive_bus *bus;
	int code = open_bus(params, DEPTH, &waits, &hive, &bus);
	if (code)
		return code;
	code = race(bus, params->producers, warm, &elapsed_ns);
	if (!code)
		code = race(bus, params->producers, params->n, &elapsed_ns);
	bench_put_rate(result, (double)params->n, elapsed_ns);
	if (!code)
		code = close_bus(hive, bus, result);
	for (int i = 0; i < SIDE_MAX; i++)
		sum += seats[i].sum;
	if (!code && sum != expected)
		code = bench_wrong("sum of the messages", expected, sum);
	return code;
}

/* ---- latency ---- */

/* A message each gap, of all priorities in turn; refused ones are counted. */
static void *produce_timed(void *arg)
{
	struct producer *p = arg;
	int64_t due = sync_now();
	pthread_barrier_wait(p->start);
	for (uint64_t i = (uint64_t)p->first; sync_now() < p->end_ns; i++) {
		enum hive_bus_priority priority = (enum hive_bus_priority)(1 + i % 3);
		struct timed message = { .begin_ns = sync_now() };
		int r = timed_submit_key(p->bus, &message, priority, i, HIVE_NOWAIT);
		p->sent[priority] += r == 0;
		p->refused[priority] += r == -ENOBUFS;
		if (r && r != -ENOBUFS)
			p->error = r;
		for (due += p->gap_ns; sync_now() < due;)
			sync_pause();
	}
	return NULL;
}

static void put_waits(struct record *result, struct waits *waits, struct producer *producers, int32_t count)
{
	static const char *const names[] = { "", "low", "medium", "high" };
	record_metric(result, "window_p99_ns", windows_median(&waits->all));
	record_metric(result, "p99_ns", windows_whole(&waits->all));
	for (int p = 1; p < 4; p++) {
		uint64_t sent = 0, refused = 0;
		char name[32];
		for (int32_t i = 0; i < count; i++) {
			sent += producers[i].sent[p];
			refused += producers[i].refused[p];
		}
		snprintf(name, sizeof name, "%s_p50_ns", names[p]);
		record_metric(result, name, (double)stats_quantile(&waits->by_priority[p], 0.50));
		snprintf(name, sizeof name, "%s_p99_ns", names[p]);
		record_metric(result, name, (double)stats_quantile(&waits->by_priority[p], 0.99));
		snprintf(name, sizeof name, "%s_refused_percent", names[p]);
		record_metric(result, name, sent + refused ? 100.0 * (double)refused / (double)(sent + refused) : 0);
	}
}

static int run_timed(const struct bench_params *params, uint32_t depth, int32_t producers_count, int64_t gap_ns,
                     struct record *result)
{
	static struct waits waits = { .lock = PTHREAD_MUTEX_INITIALIZER, .work_ns = WORK_NS };
	static struct producer producers[SIDE_MAX];
	pthread_barrier_t start;
	struct hive *hive;
	struct hive_bus *bus;
	int64_t end = sync_now() + (int64_t)(params->seconds * 1e9);
	int code = open_bus(params, depth, &waits, &hive, &bus);
	if (code)
		return code;
	for (int p = 0; p < 4; p++)
		stats_reset(&waits.by_priority[p]);
	windows_reset(&waits.all);
	pthread_barrier_init(&start, NULL, (unsigned)producers_count);
	for (int32_t i = 0; i < producers_count; i++) {
		producers[i] = (struct producer){
			.bus = bus, .start = &start, .first = i, .end_ns = end, .gap_ns = gap_ns
		};
		if (pthread_create(&producers[i].thread, NULL, produce_timed, &producers[i]) != 0)
			return bench_failed("threads for the producers", -EAGAIN);
	}
	for (int32_t i = 0; i < producers_count; i++)
		pthread_join(producers[i].thread, NULL);
	pthread_barrier_destroy(&start);
	put_waits(result, &waits, producers, producers_count);
	return close_bus(hive, bus, result);
}

int bench_bus_load(const struct bench_params *params, struct record *result)
{
	int code = run_timed(params, DEPTH, 1, 2 * WORK_NS / params->threads, result);
	int error = code ? 0 : bus_floor(params->seconds, 2 * WORK_NS, WORK_NS, result);
	return error ? bench_failed("threads for the floor", error) : code;
}

int bench_bus_overload(const struct bench_params *params, struct record *result)
{
	return run_timed(params, DEPTH_OVERLOAD, params->producers,
	                 (int64_t)params->producers * WORK_NS / 2 / params->threads, result);
}
