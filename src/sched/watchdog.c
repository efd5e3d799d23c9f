/* SPDX-License-Identifier: MIT */
/* A worker that is stuck in one task: neither a beat nor a task nor a sleep for stall_ns, and not asleep. It is reported once, with its stack, and
 * what it holds but has not begun is offered to the others. All of this is done by who looks, from counters that are there anyway:
 * workers do nothing for it.
 *
 * Offered are its local queue and what was placed there, which can be stolen, so that somebody has only to be awake; delayed posts that are
 * due, among its timers or in its inbox, which go to the pool; and deadlines of fibers, which are rung from here. Not offered is what is its
 * own: private tasks, posts and timers that were started on it, letters in its lanes, deadlines of operations; and what nobody else can reach:
 * its outbox, and private tasks that it has received.                                                                      */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "sched/backtrace.h"
#include "sched/internal.h"

void hive__watchdog_open(struct hive *hive)
{
	if (hive->stall_ns <= 0 || hive->stepped)
		return;
	hive->asks_stacks = hive__backtrace_open();
}

void hive__watchdog_close(struct hive *hive)
{
	if (hive->asks_stacks)
		hive__backtrace_close();
	hive->asks_stacks = false;
}

/* A thread of ours, which blocks all others. */
void hive__watchdog_dress(struct hive *hive)
{
	if (hive->asks_stacks)
		hive__thread_unblock_signal(hive__backtrace_signal());
}

/* "name+0x12" if the program exports a name, else "module+0x1234", as addr2line takes it. */
static void spell(const void *code, char *ret_text, size_t bytes)
{
	Dl_info info;
	const char *module;

	if (!dladdr(code, &info) || !info.dli_fname) {
		snprintf(ret_text, bytes, "%p", code);
		return;
	}
	module = strrchr(info.dli_fname, '/');
	module = module ? module + 1 : info.dli_fname;
	if (!info.dli_sname)
		snprintf(ret_text, bytes, "%s+0x%zx", module,
		         (size_t)((const char *)code - (const char *)info.dli_fbase));
	else if (code == info.dli_saddr)
		snprintf(ret_text, bytes, "%s", info.dli_sname);
	else
		snprintf(ret_text, bytes, "%s+0x%zx", info.dli_sname,
		         (size_t)((const char *)code - (const char *)info.dli_saddr));
}

/* The worker may go on meanwhile: the report is of the moment at which it was found. */
static void report(struct worker *w, int64_t stuck_ns)
{
	struct hive *hive = w->hive;
	struct backtrace b = { 0 };
	uint32_t thread = load_relaxed(&w->system_thread);
	const void *fn = (const void *)(uintptr_t)load_relaxed(&w->last_task);
	char text[120];

	if (hive->asks_stacks && thread != WORKER_STEPPED && !hive__backtrace_ask(w, thread, &b))
		b.depth = 0;
	spell(b.fiber_fn ? b.fiber_fn : fn, text, sizeof text);
	hive__warn(hive, "worker %s is stuck for %lld ms in %s%s%s%s%s", w->name, (long long)(stuck_ns / HIVE_MS(1)),
	           b.fiber_fn ? "fiber " : "task ", b.fiber_name, b.fiber_name[0] ? ", " : "", fn ? text : "none yet",
	           b.depth > 0 ? ", at" : "");
	for (int i = 0; i < b.depth; i++) {
		spell(b.frames[i], text, sizeof text);
		hive__warn(hive, "  #%d %s", i, text);
	}
}

/* It has a ticket's task that the pool had no memory for; until it is there, the hive is held. */
static void give_kept(struct hive *hive)
{
	struct watchdog *dog = &hive->watchdog;
	bool halted = hive__state(hive) >= HIVE_LEAVING;

	if (!dog->has_kept)
		return;
	if (halted)
		hive__drop(hive, dog->kept);
	else if (pool_give(&hive->pool, hive__thread_number(), dog->kept, false) < 0)
		return;
	dog->has_kept = false;
	hive__wake_if_needed(hive, &hive->io);
	hive__let_end(hive, 1);
}

/* No worker runs it, so it is entered in the books as one that was cancelled. */
static void ring_rescued(struct hive *hive, struct hive_task alarm)
{
	add_relaxed(&hive->cancelled, 1u);
	alarm.fn(alarm.arg);
	hive__let_end(hive, 1);
}

/* The hive is held before each is taken, so that a drain that has begun meanwhile waits until it is in the pool. */
static void rescue_delayed(struct worker *w, int64_t now_ns)
{
	struct hive *hive = w->hive;
	struct watchdog *dog = &hive->watchdog;
	uint64_t place = 0;
	bool alarm = false;

	while (!dog->has_kept) {
		if (!holds_begin_open(&hive->holds, &hive->state, 1) ||
		    !hive__rescue_delayed(w, now_ns, &place, &dog->kept, &alarm)) {
			hive__let_end(hive, 1);
			return;
		}
		add_relaxed(&hive->rescued, 1u);
		if (alarm) {
			ring_rescued(hive, dog->kept);
			continue;
		}
		dog->has_kept = true;
		give_kept(hive);
	}
}

/* For others, if there are any. */
static void rescue(struct worker *w, int64_t now_ns)
{
	struct hive *hive = w->hive;

	if (w->kind != HIVE_WORKER_IO || load_relaxed(&hive->io.count) < 2)
		return;
	if (load_relaxed(&w->stealable) && hive__has_loot(w))
		hive__wake_if_needed(hive, &hive->io);
	rescue_delayed(w, now_ns);
}

uint64_t hive__progress_of(struct worker *w)
{
	return load_relaxed(&w->stats.ran) + load_relaxed(&w->stats.beats) + load_relaxed(&w->stats.sleeps);
}

static void watch_worker(struct worker *w, int64_t now_ns)
{
	struct watched *seen = &w->watched;
	uint64_t progress = hive__progress_of(w);
	uint32_t thread = load_relaxed(&w->system_thread);

	if (thread == 0 || thread != seen->thread || progress != seen->progress ||
	    load_relaxed(&w->parking) != PARKING_RUNNING) {
		*seen = (struct watched){ .progress = progress, .since_ns = now_ns, .thread = thread };
		return;
	}
	if (now_ns - seen->since_ns < w->hive->stall_ns)
		return;
	rescue(w, now_ns); /* first: to ask for a stack may take its time */
	if (!seen->reported) {
		seen->reported = true;
		add_relaxed(&w->hive->stalls, 1u);
		report(w, now_ns - seen->since_ns);
	}
}

/* The monitor. */
void hive__watchdog_look(struct hive *hive)
{
	int64_t now_ns = hive__now(hive);

	give_kept(hive);
	for (uint32_t i = 0; i < hive__limit(&hive->io); i++)
		watch_worker(hive__slot(&hive->io, i), now_ns);
	for (uint32_t i = 0; i < hive__limit(&hive->compute); i++)
		watch_worker(hive__slot(&hive->compute, i), now_ns);
}

/* Who finishes, when nobody looks any more. */
void hive__watchdog_end(struct hive *hive)
{
	if (hive->watchdog.has_kept)
		hive__drop(hive, hive->watchdog.kept);
	hive->watchdog.has_kept = false;
	hive__watchdog_close(hive);
}
