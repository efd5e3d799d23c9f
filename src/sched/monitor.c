/* SPDX-License-Identifier: MIT */
/* One thread that looks after the hive now and then, made when something needs it: to follow the CPUs that we are given, to find workers that are stuck, and fibers that all are. It waits for nobody
 * but for its time and for its end, so whoever ends it may join it.                                                      */
#include "base/futex.h"
#include "base/thread.h"
#include "sched/internal.h"

enum monitor_word { MONITOR_LOOKS = 0, MONITOR_ENDS = 1 };

void hive__monitor_look(struct hive *hive)
{
	int64_t now_ns = hive__now(hive);

	if (hive->stall_ns > 0) {
		hive__watchdog_look(hive);
		hive__standstill_look(hive);
	}
	if (now_ns < hive->monitor.follow_ns)
		return;
	hive->monitor.follow_ns = time_add(now_ns, TUNE_FOLLOW_NS);
	hive__follow_cpus(hive);
}

/* Stuck for stall_ns is noticed a quarter of that later at most. */
static int64_t pause_ns(const struct hive *hive)
{
	int64_t pause = hive->stall_ns / 4;

	if (hive->stall_ns <= 0 || pause > TUNE_FOLLOW_NS)
		return TUNE_FOLLOW_NS;
	return pause < TUNE_WATCH_MIN_NS ? TUNE_WATCH_MIN_NS : pause;
}

static void monitor_main(void *arg)
{
	struct hive *hive = (struct hive *)arg;
	struct monitor *m = &hive->monitor;

	hive__thread_name("hive-monitor");
	hive__thread_block_signals();
	while (load_acquire(&m->word) == MONITOR_LOOKS) { /* MONITOR-1 (pairs with MONITOR-2) */
		hive__futex_wait(&m->word, MONITOR_LOOKS, pause_ns(hive));
		if (load_relaxed(&m->word) == MONITOR_LOOKS)
			hive__monitor_look(hive);
	}
}

/* Any thread. 0 also when there is one already, or none is needed yet: a hive that does not run has nothing to look after. */
int hive__monitor_start(struct hive *hive)
{
	struct monitor *m = &hive->monitor;
	uint32_t state;
	int r = 0;

	if (hive->stepped)
		return 0;
	lock_acquire(&hive->registry_lock);
	state = load_relaxed(&hive->state);
	if (!m->has_thread && (state == HIVE_STARTING || state == HIVE_RUNNING)) {
		store_relaxed(&m->word, (uint32_t)MONITOR_LOOKS);
		r = hive->host.thread_start(hive->host.arg, monitor_main, hive, &m->thread);
		m->has_thread = r == 0;
	}
	lock_release(&hive->registry_lock);
	return r;
}

/* Who undoes the start, and who finishes: nobody starts one any more. */
void hive__monitor_stop(struct hive *hive)
{
	struct monitor *m = &hive->monitor;
	bool ours;

	lock_acquire(&hive->registry_lock);
	ours = m->has_thread;
	m->has_thread = false;
	lock_release(&hive->registry_lock);
	if (!ours)
		return;
	store_release(&m->word, (uint32_t)MONITOR_ENDS); /* MONITOR-2 (pairs with MONITOR-1) */
	hive__futex_wake(&m->word, 1);
	hive->host.thread_join(hive->host.arg, m->thread);
}
