/* SPDX-License-Identifier: MIT */
#include "fibers.h"
#include "machine.h"

/* fibers_asleep: n fibers sleep at once until one and the same moment. How long it takes until all of them exist and sleep, what
 * each costs in resident memory meanwhile, and how long it takes from that moment until all have run.
 *
 * The moment is chosen from what a tenth of them took to fall asleep (the warm-up). When the machine was so slow that some woke
 * before the last slept, the night is repeated, twice as long.                                                              */
#define NIGHTS 6
#define POLL_NS HIVE_MS(5) /* the fibers note the times; who looks more often only takes CPU away */
#define SHORTEST_NS HIVE_MS(50)

struct night {
	int64_t n, wake_ns;
	_Alignas(SYNC_LINE) _Atomic int64_t asleep, early;
	_Alignas(SYNC_LINE) _Atomic int64_t awake;
	_Atomic int64_t asleep_ns, awake_ns; /* when the last one was about to sleep, and when the last one ran again */
	int64_t begin_ns, memory_kb;
};

static int sleep_once(void *arg)
{
	struct night *night = arg;
	const int64_t n = night->n; /* after its last count the next night may begin */
	if (atomic_fetch_add_explicit(&night->asleep, 1, memory_order_relaxed) + 1 == n)
		atomic_store_explicit(&night->asleep_ns, sync_now(), memory_order_release);
	int64_t left = night->wake_ns - sync_now();
	int error = hive_sleep(left < 1 ? 1 : left);
	int64_t now = sync_now();
	if (now < night->wake_ns)
		atomic_fetch_add_explicit(&night->early, 1, memory_order_relaxed);
	if (atomic_fetch_add_explicit(&night->awake, 1, memory_order_acq_rel) + 1 == n)
		atomic_store_explicit(&night->awake_ns, now, memory_order_release);
	return error;
}

/* Detached: nobody asks for a million results, and a handle each would be part of what is measured. */
static int spawn_all(void *arg)
{
	struct night *night = arg;
	int error = 0;
	for (int64_t i = 0; i < night->n && !error; i++)
		error = hive_spawn(hive_current(), sleep_once, night, NULL, NULL);
	return error;
}

static int wait_for(const _Atomic int64_t *moment_ns, const _Atomic int64_t *count, int64_t n, const char *what)
{
	int64_t deadline = sync_now() + BENCH_PATIENCE_NS;
	while (!atomic_load_explicit(moment_ns, memory_order_acquire)) {
		if (sync_now() > deadline)
			return bench_timeout(what, (uint64_t)n, (uint64_t)atomic_load(count));
		sync_sleep(POLL_NS);
	}
	return BENCH_OK;
}

static int pass(struct rig *rig, struct night *night, int64_t n, int64_t length_ns)
{
	int64_t now = sync_now();
	*night = (struct night){ .n = n, .begin_ns = now, .wake_ns = now + length_ns };
	int code = fibers_run(rig, spawn_all, night);
	if (!code)
		code = wait_for(&night->asleep_ns, &night->asleep, n, "fibers to fall asleep");
	if (!code)
		sync_sleep(POLL_NS); /* the last one has said that it is about to; let it */
	night->memory_kb = machine_memory_kb();
	if (!code)
		code = wait_for(&night->awake_ns, &night->awake, n, "fibers to wake");
	if (!code && atomic_load(&night->early))
		code = bench_wrong("fibers that woke early", 0, (uint64_t)atomic_load(&night->early));
	return code;
}

static int64_t length_for(const struct night *night, int64_t n)
{
	int64_t took_ns = night->asleep_ns - night->begin_ns;
	int64_t expected_ns = (int64_t)((double)took_ns * (double)n / (double)night->n);
	return SHORTEST_NS + 2 * expected_ns;
}

int bench_fibers_asleep(const struct bench_params *params, struct record *result)
{
	static struct night night;
	struct rig rig;
	int64_t n = params->n, before_kb = machine_memory_kb();
	struct bench_params as_runtime = *params;
	if (as_runtime.timers == HIVE_TIMERS_DEFAULT)
		as_runtime.timers = HIVE_TIMERS_WHEEL; /* what hive_runtime_start() takes */
	int code = rig_open(&rig, &as_runtime, params->threads, 0);
	if (code)
		return code;
	sync_sleep_exactly();
	code = pass(&rig, &night, n / 10 + 1, SHORTEST_NS + n * 200); /* warm-up */
	int64_t length_ns = length_for(&night, n);
	for (int32_t i = 0; i < NIGHTS && !code && (i == 0 || night.asleep_ns >= night.wake_ns); i++, length_ns *= 2)
		code = pass(&rig, &night, n, length_ns);
	if (!code && night.asleep_ns >= night.wake_ns)
		code = bench_timeout("all fibers to sleep at once", (uint64_t)n, 0);
	int64_t created_ns = night.asleep_ns - night.begin_ns;
	bench_put_rate(result, (double)n, created_ns);
	record_metric(result, "create_s", (double)created_ns / 1e9);
	record_metric(result, "bytes_each", (double)(night.memory_kb - before_kb) * 1024 / (double)n);
	record_metric(result, "wake_all_s", (double)(night.awake_ns - night.wake_ns) / 1e9);
	bench_put_memory(result);
	return rig_close(&rig, code);
}
