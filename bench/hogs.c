/* SPDX-License-Identifier: MIT */
#include "hogs.h"
#include "tally.h"

static int64_t thread_cpu_ns(void)
{
	struct timespec used;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

static void burn_cpu_time(int64_t cpu_ns)
{
	int64_t until = thread_cpu_ns() + cpu_ns;
	while (thread_cpu_ns() < until)
		for (volatile unsigned i = 0; i < 5000; i++)
			; /* some 10 µs between two looks at the clock, which is a system call */
}

static void hog(void *arg)
{
	struct hogs *hogs = arg;
	burn_cpu_time(HOGS_CPU_NS);
	atomic_fetch_add_explicit(&hogs->done, 1, memory_order_relaxed);
	int error = atomic_load_explicit(&hogs->stop, memory_order_relaxed) ? -ECANCELED
	                                                                    : hive_post_compute(hogs->hive, hog, hogs);
	if (error == 0)
		return;
	if (error != -ECANCELED)
		tally_fail(error);
	atomic_fetch_sub(&hogs->chains, 1);
}

int hogs_start(struct hogs *hogs, struct rig *rig)
{
	return hogs_start_chains(hogs, rig, HOGS_CHAINS);
}

int hogs_start_chains(struct hogs *hogs, struct rig *rig, int chains)
{
	hogs->hive = rig->hive;
	atomic_init(&hogs->stop, false);
	atomic_init(&hogs->chains, 0);
	atomic_init(&hogs->done, 0);
	for (int i = 0; i < chains; i++) {
		atomic_fetch_add(&hogs->chains, 1);
		int error = hive_post_compute(hogs->hive, hog, hogs);
		if (error) {
			atomic_fetch_sub(&hogs->chains, 1);
			return bench_failed("hive_post_compute", error);
		}
	}
	return BENCH_OK;
}

int hogs_stop(struct hogs *hogs)
{
	int64_t deadline = sync_now() + BENCH_PATIENCE_NS;
	atomic_store(&hogs->stop, true);
	while (atomic_load(&hogs->chains) > 0) {
		if (sync_now() > deadline)
			return bench_timeout("hog chains to end", HOGS_CHAINS, 0);
		sync_sleep(HIVE_MS(1));
	}
	return tally_error() ? bench_failed("a hog", tally_error()) : BENCH_OK;
}

int64_t hogs_done(const struct hogs *hogs)
{
	return atomic_load_explicit(&hogs->done, memory_order_relaxed);
}
