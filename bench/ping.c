/* SPDX-License-Identifier: MIT */
#include "ping.h"

int ping_measure(const struct ping_target *target, int64_t count, int64_t idle_ns, struct stats *stats)
{
	static struct ping_slot slot; /* static: an answer that comes too late must not hit a dead stack */
	for (int64_t i = 0; i < count; i++) {
		if (idle_ns > 0)
			sync_sleep(idle_ns);
		atomic_store_explicit(&slot.started_ns, 0, memory_order_relaxed);
		int64_t submitted = sync_now();
		int error = target->submit(target->arg, &slot);
		if (error)
			return bench_failed("submit", error);
		int64_t started = sync_await(&slot.started_ns, BENCH_PATIENCE_NS);
		if (!started)
			return bench_timeout("an answer", 1, 0);
		if (stats)
			stats_add(stats, started - submitted);
	}
	return BENCH_OK;
}
