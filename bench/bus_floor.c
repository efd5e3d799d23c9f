/* SPDX-License-Identifier: MIT */
#include "bus_floor.h"
#include "record.h"
#include "sync.h"
#include "windows.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { SLOTS = 1024 };

static struct floor {
	_Alignas(SYNC_LINE) _Atomic uint64_t tail;
	_Alignas(SYNC_LINE) _Atomic uint64_t head;
	_Atomic bool over;
	int64_t begun_ns[SLOTS], work_ns;
	struct windows waits;
} all;

static void *take(void *arg)
{
	(void)arg;
	for (uint64_t i = 0;; i++) {
		while (atomic_load_explicit(&all.tail, memory_order_acquire) == i) {
			if (atomic_load_explicit(&all.over, memory_order_relaxed))
				return NULL;
			sync_pause();
		}
		int64_t now = sync_now(), wait = now - all.begun_ns[i % SLOTS];
		atomic_store_explicit(&all.head, i + 1, memory_order_release);
		windows_add(&all.waits, now, wait);
		while (sync_now() < now + all.work_ns)
			sync_pause();
	}
}

int bus_floor(double seconds, int64_t gap_ns, int64_t work_ns, struct record *result)
{
	pthread_t taker;
	int64_t due = sync_now(), end = due + (int64_t)(seconds * 1e9);
	atomic_store(&all.tail, 0);
	atomic_store(&all.head, 0);
	atomic_store(&all.over, false);
	all.work_ns = work_ns;
	windows_reset(&all.waits);
	if (pthread_create(&taker, NULL, take, NULL) != 0)
		return -EAGAIN;
	for (uint64_t i = 0; sync_now() < end; i++) {
		while (i - atomic_load_explicit(&all.head, memory_order_acquire) == SLOTS)
			sync_pause();
		all.begun_ns[i % SLOTS] = sync_now();
		atomic_store_explicit(&all.tail, i + 1, memory_order_release);
		for (due += gap_ns; sync_now() < due;)
			sync_pause();
	}
	atomic_store(&all.over, true);
	pthread_join(taker, NULL);
	record_metric(result, "floor_window_p99_ns", windows_median(&all.waits));
	record_metric(result, "floor_p99_ns", windows_whole(&all.waits));
	return 0;
}
