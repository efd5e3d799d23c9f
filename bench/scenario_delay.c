/* SPDX-License-Identifier: MIT */
#include "rig.h"
#include "sync.h"
#include <semaphore.h>
#include <stdlib.h>

/* delay: delayed posts from outside of the lengths that programs use (a poll, a debounce, a frame), one at a time on an
 * otherwise idle hive: actual minus asked for. Below 0 would be early, and that is never allowed. In turns with them a
 * plain thread sleeps as long: how late that is, no timer on this machine can beat by much.                           */
struct delay_kind {
	int64_t delay_ns;
	const char *p50, *p95, *p99, *min, *stdev; /* names of its fields */
};

static const struct delay_kind kinds[] = {
	{ HIVE_MS(1), "p50_1ms_ns", "p95_1ms_ns", "p99_1ms_ns", "min_1ms_ns", "stdev_1ms_ns" },
	{ HIVE_MS(5), "p50_5ms_ns", "p95_5ms_ns", "p99_5ms_ns", "min_5ms_ns", "stdev_5ms_ns" },
	{ HIVE_MS(16), "p50_16ms_ns", "p95_16ms_ns", "p99_16ms_ns", "min_16ms_ns", "stdev_16ms_ns" },
};
#define KINDS (sizeof kinds / sizeof *kinds)
#define WARM_UP 10

struct answer {
	int64_t ran_ns;
	sem_t done;
};

static void note_time(void *arg)
{
	struct answer *answer = arg;
	answer->ran_ns = sync_now();
	sem_post(&answer->done);
}

static int wait_answer(struct answer *answer)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += BENCH_PATIENCE_NS / HIVE_S(1);
	while (sem_timedwait(&answer->done, &until) != 0)
		if (errno != EINTR)
			return bench_timeout("a delayed post", 1, 0);
	return BENCH_OK;
}

static int measure_one(struct rig *rig, struct answer *answer, int64_t delay_ns, int64_t *ret_late_ns)
{
	int64_t due_ns = sync_now() + delay_ns;
	int error = hive_post_after(rig->hive, delay_ns, note_time, answer, NULL);
	if (error)
		return bench_failed("hive_post_after", error);
	int code = wait_answer(answer);
	*ret_late_ns = answer->ran_ns - due_ns;
	return code;
}

static int64_t sleep_plainly(int64_t delay_ns)
{
	int64_t due_ns = sync_now() + delay_ns;
	sync_sleep_until(due_ns);
	return sync_now() - due_ns;
}

static int measure_all(struct rig *rig, int64_t n, struct stats *all, struct stats *each, struct stats *floor)
{
	static struct answer answer;
	int code = BENCH_OK;
	sem_init(&answer.done, 0, 0);
	for (int64_t round = -WARM_UP; round < n && !code; round++)
		for (size_t kind = 0; kind < KINDS && !code; kind++) {
			int64_t late_ns = 0;
			code = measure_one(rig, &answer, kinds[kind].delay_ns, &late_ns);
			int64_t floor_ns = sleep_plainly(kinds[kind].delay_ns);
			if (code || round < 0)
				continue;
			stats_add(floor, floor_ns);
			stats_add(all, late_ns);
			stats_add(&each[kind], late_ns);
		}
	return code;
}

static void put_kind(struct record *result, const struct delay_kind *kind, const struct stats *stats)
{
	record_metric(result, kind->p50, (double)stats_quantile(stats, 0.50));
	record_metric(result, kind->p95, (double)stats_quantile(stats, 0.95));
	record_metric(result, kind->p99, (double)stats_quantile(stats, 0.99));
	record_metric(result, kind->min, (double)stats->min);
	record_metric(result, kind->stdev, stats_stdev(stats));
}

int bench_delay(const struct bench_params *params, struct record *result)
{
	static struct stats all, each[KINDS], floor;
	struct rig rig;
	stats_reset(&all), stats_reset(&floor);
	for (size_t kind = 0; kind < KINDS; kind++)
		stats_reset(&each[kind]);
	int code = rig_open(&rig, params, params->threads, 0);
	if (code)
		return code;
	sync_sleep_exactly();
	code = measure_all(&rig, params->n, &all, each, &floor);
	bench_put_percentiles(result, &all);
	record_metric(result, "min_ns", (double)all.min);
	record_metric(result, "stdev_ns", stats_stdev(&all));
	record_metric(result, "floor_p50_ns", (double)stats_quantile(&floor, 0.50));
	record_metric(result, "ratio", (double)stats_quantile(&all, 0.50) / (double)stats_quantile(&floor, 0.50));
	for (size_t kind = 0; kind < KINDS; kind++)
		put_kind(result, &kinds[kind], &each[kind]);
	bench_put_memory(result);
	if (!code && all.min < 0)
		code = bench_wrong("nanoseconds early", 0, (uint64_t)-all.min);
	return rig_close(&rig, code);
}
