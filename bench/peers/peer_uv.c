/* SPDX-License-Identifier: MIT */
/* Scenarios of `hive bench` for libuv: same flags, same output, same checks.
 *
 * Comparable: what is done, how often, on how many threads. post_to, ping and the timers are those of a loop (peer_loop.h); letters come by
 * uv_async_send(), the one call that other threads may make. Timers have milliseconds: delays are rounded up, as one would, but since the
 * loop's clock is rounded down one can fire up to a millisecond early. post is the thread pool, of T threads: uv_queue_work()
 * is for the thread of a loop, so each of the P producers is one, and posts from a callback; a request is allocated for each, as the
 * manual has it, and its completion is a call on that loop, which ours do not have. spawn_local is left out: what runs in
 * the pool cannot post. mixed: hogs in the pool, tiny tasks to the loop.                                                  */
#include "peer.h"
#include <stdlib.h>
#include <uv.h>

struct loop {
	uv_loop_t uv;
	uv_async_t async;
	struct station *station;
};

struct loop_timer {
	uv_timer_t uv;
	void (*fired)(struct loop_timer *);
};

#include "peer_loop.h"

static void on_async(uv_async_t *async)
{
	station_drain(((struct loop *)async->data)->station);
}

static void loop_open(struct loop *loop, bool alone)
{
	(void)alone;
	loop->async.data = loop;
	peer_must_not(uv_loop_init(&loop->uv) < 0, "uv_loop_init");
	peer_must_not(uv_async_init(&loop->uv, &loop->async, on_async) < 0, "uv_async_init");
}

static void loop_run(struct loop *loop)
{
	uv_run(&loop->uv, UV_RUN_DEFAULT);
}

static void loop_stop(struct loop *loop)
{
	uv_stop(&loop->uv);
}

static void loop_wake(struct loop *loop)
{
	uv_async_send(&loop->async);
}

static void close_handle(uv_handle_t *handle, void *unused)
{
	(void)unused;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void loop_close(struct loop *loop)
{
	uv_walk(&loop->uv, close_handle, NULL);
	uv_run(&loop->uv, UV_RUN_DEFAULT);
	peer_must_not(uv_loop_close(&loop->uv) < 0, "uv_loop_close");
}

static void loop_refresh(struct loop *loop)
{
	uv_update_time(&loop->uv);
}

static void on_timer(uv_timer_t *timer)
{
	struct loop_timer *mine = (struct loop_timer *)(void *)timer; /* its first member */
	mine->fired(mine);
}

static void loop_timer_init(struct loop *loop, struct loop_timer *timer, void (*fired)(struct loop_timer *))
{
	uv_timer_init(&loop->uv, &timer->uv);
	timer->fired = fired;
}

static int loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t delay_ns)
{
	(void)loop;
	return uv_timer_start(&timer->uv, on_timer, (uint64_t)(delay_ns + 999999) / 1000000, 0);
}

static int loop_timer_stop(struct loop *loop, struct loop_timer *timer)
{
	(void)loop;
	return uv_timer_stop(&timer->uv);
}

static bool loop_timer_armed(const struct loop_timer *timer)
{
	return uv_is_active((const uv_handle_t *)&timer->uv) != 0;
}

static void pool_of(int32_t threads)
{
	char text[16];
	snprintf(text, sizeof text, "%d", threads);
	setenv("UV_THREADPOOL_SIZE", text, 1); /* read when the pool is first used */
}

/* post */
struct producer {
	struct station *station;
	int64_t count, begin_ns;
	_Atomic int64_t completed;
};

static void tally_work(uv_work_t *work)
{
	(void)work;
	tally_add();
}

static void after_tally(uv_work_t *work, int status)
{
	struct producer *producer = work->data;
	peer_must_not(status != 0, "uv_queue_work");
	free(work);
	atomic_fetch_add_explicit(&producer->completed, 1, memory_order_release);
}

static void produce(void *arg)
{
	struct producer *producer = arg;
	producer->begin_ns = sync_now();
	for (int64_t i = 0; i < producer->count; i++) {
		uv_work_t *work = malloc(sizeof *work);
		peer_must_not(!work, "memory for a request");
		work->data = producer;
		peer_must_not(uv_queue_work(&producer->station->loop.uv, work, tally_work, after_tally) < 0,
		              "uv_queue_work");
	}
}

/* Until each loop has seen the ends of its requests: those are not part of the time, but the next race must not begin among them. */
static int await_completions(struct producer *producers, int32_t count)
{
	int64_t deadline = sync_now() + BENCH_PATIENCE_NS;
	for (int32_t i = 0; i < count; i++)
		while (atomic_load_explicit(&producers[i].completed, memory_order_acquire) < producers[i].count) {
			if (sync_now() > deadline)
				return bench_timeout("completions", (uint64_t)producers[i].count,
				                     (uint64_t)atomic_load(&producers[i].completed));
			sync_sleep(HIVE_US(500));
		}
	return BENCH_OK;
}

static int race(struct station *stations, int32_t count, int64_t n, int64_t *ret_elapsed_ns)
{
	static struct producer producers[256];
	uint64_t target = tally_total() + (uint64_t)n;
	for (int32_t i = 0; i < count; i++) {
		producers[i].station = &stations[i];
		producers[i].count = n / count + (i < n % count);
		atomic_store(&producers[i].completed, 0);
		station_post(&stations[i], produce, &producers[i]);
	}
	int code = tally_wait(target, BENCH_PATIENCE_NS, HIVE_US(500));
	int64_t end = sync_now(), begin = end;
	if (!code)
		code = await_completions(producers, count);
	for (int32_t i = 0; i < count; i++)
		begin = producers[i].begin_ns < begin ? producers[i].begin_ns : begin;
	*ret_elapsed_ns = end - begin;
	return code;
}

static int uv_post(const struct bench_params *params, struct record *result)
{
	int64_t elapsed_ns = 0;
	pool_of(params->threads);
	struct station *stations = stations_open(params->producers, false);
	stations_start(stations, params->producers);
	sync_sleep_exactly();
	int code = race(stations, params->producers, params->n / 10 + 1, &elapsed_ns); /* warm-up */
	if (!code)
		code = race(stations, params->producers, params->n, &elapsed_ns);
	if (code)
		return code;
	bench_put_rate(result, (double)params->n, elapsed_ns);
	stations_stop(stations, params->producers);
	stations_close(stations, params->producers);
	return BENCH_OK;
}

/* mixed: as scenario_mixed.c. */
#define HOG_CHAINS 8
#define HOG_CPU_NS HIVE_MS(2)
#define TINY_PERIOD_NS HIVE_MS(1)

struct hogs {
	struct station *station;
	uv_work_t works[HOG_CHAINS];
	atomic_bool stop;
	_Atomic int64_t done, chains;
};

struct tiny {
	int64_t due_ns, posted_ns, started_ns;
};

static void hog(uv_work_t *work)
{
	struct hogs *hogs = work->data;
	peer_burn(HOG_CPU_NS);
	atomic_fetch_add_explicit(&hogs->done, 1, memory_order_relaxed);
}

static void after_hog(uv_work_t *work, int status)
{
	struct hogs *hogs = work->data;
	peer_must_not(status != 0, "uv_queue_work");
	if (atomic_load_explicit(&hogs->stop, memory_order_relaxed))
		atomic_fetch_sub(&hogs->chains, 1);
	else
		peer_must_not(uv_queue_work(work->loop, work, hog, after_hog) < 0, "uv_queue_work");
}

static void start_hogs(void *arg)
{
	struct hogs *hogs = arg;
	for (int i = 0; i < HOG_CHAINS; i++) {
		hogs->works[i].data = hogs;
		peer_must_not(uv_queue_work(&hogs->station->loop.uv, &hogs->works[i], hog, after_hog) < 0,
		              "uv_queue_work");
		atomic_fetch_add(&hogs->chains, 1);
	}
}

static int stop_hogs(struct hogs *hogs)
{
	int64_t deadline = sync_now() + BENCH_PATIENCE_NS;
	atomic_store(&hogs->stop, true);
	while (atomic_load(&hogs->chains) > 0) {
		if (sync_now() > deadline)
			return bench_timeout("hog chains to end", HOG_CHAINS, 0);
		sync_sleep(HIVE_MS(1));
	}
	return BENCH_OK;
}

static double hogs_alone(struct hogs *hogs, int64_t span_ns)
{
	int64_t begin = sync_now(), done = atomic_load(&hogs->done);
	sync_sleep(span_ns);
	return (double)(atomic_load(&hogs->done) - done) * 1e9 / (double)(sync_now() - begin);
}

static void run_tiny(void *arg)
{
	((struct tiny *)arg)->started_ns = sync_now();
	tally_add();
}

static int hogs_with_tiny(struct hogs *hogs, struct tiny *tiny, int64_t count, double *ret_per_s)
{
	uint64_t target = tally_total() + (uint64_t)count;
	int64_t begin = sync_now(), done = atomic_load(&hogs->done);
	for (int64_t i = 0; i < count; i++) {
		tiny[i].due_ns = begin + (i + 1) * TINY_PERIOD_NS;
		sync_sleep_until(tiny[i].due_ns);
		tiny[i].posted_ns = sync_now();
		station_post(hogs->station, run_tiny, &tiny[i]);
	}
	*ret_per_s = (double)(atomic_load(&hogs->done) - done) * 1e9 / (double)(sync_now() - begin);
	return tally_wait(target, BENCH_PATIENCE_NS, HIVE_MS(1));
}

static void put_latencies(struct record *result, const struct tiny *tiny, int64_t count)
{
	static struct stats run, end_to_end;
	for (int64_t i = 0; i < count; i++) {
		stats_add(&run, tiny[i].started_ns - tiny[i].posted_ns);
		stats_add(&end_to_end, tiny[i].started_ns - tiny[i].due_ns);
	}
	peer_put_percentiles(result, "", &run);
	peer_put_percentiles(result, "e2e_", &end_to_end);
}

static int uv_mixed(const struct bench_params *params, struct record *result)
{
	static struct hogs hogs;
	int64_t span_ns = (int64_t)(params->seconds * 1e9), count = span_ns / TINY_PERIOD_NS + 1;
	struct tiny *tiny = calloc((size_t)count, sizeof *tiny);
	double with_tiny = 0;
	peer_must_not(!tiny, "memory for tiny tasks");
	pool_of(params->threads);
	hogs.station = stations_open(1, false);
	stations_start(hogs.station, 1);
	sync_sleep_exactly();
	station_post(hogs.station, start_hogs, &hogs);
	sync_sleep(HIVE_MS(200)); /* warm-up */
	double alone = hogs_alone(&hogs, span_ns / 2) / 2;
	int code = hogs_with_tiny(&hogs, tiny, count, &with_tiny);
	alone += hogs_alone(&hogs, span_ns / 2) / 2;
	int stopped = stop_hogs(&hogs);
	if (code || stopped)
		return code ? code : stopped;
	stations_stop(hogs.station, 1);
	stations_close(hogs.station, 1);
	bench_put_rate(result, (double)count, span_ns);
	put_latencies(result, tiny, count);
	record_metric(result, "hogs_per_s", with_tiny);
	record_metric(result, "hogs_alone_per_s", alone);
	record_metric(result, "hogs_ratio", with_tiny / alone);
	free(tiny);
	return BENCH_OK;
}

int main(int argc, char **argv)
{
	static const struct peer_scenario scenarios[] = {
		LOOP_SCENARIOS,
		{ "post", 2, 1, 2000000, 0, uv_post },
		{ "mixed", 0, 1, 0, 3, uv_mixed },
	};
	return peer_main("libuv", scenarios, sizeof scenarios / sizeof *scenarios, argc, argv);
}
