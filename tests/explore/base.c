/* SPDX-License-Identifier: MIT */
/* What the system does for the library (base/futex.c, thread.c, clock.c, cpus.c, topology.c), done for virtual threads. */
#include "base/clock.h"
#include "base/cpus.h"
#include "base/fault.h"
#include "base/futex.h"
#include "base/thread.h"
#include "base/topology.h"

#include <errno.h>

#include "explore.h"

/* ---- clock: moves with the steps that are made, and now and then by a lot ---- */

int64_t hive__clock_now(void)
{
	if (explore_is_on() && HIVE_FAULT("clock jump"))
		explore_jump(HIVE_US(1) << explore_draw(20));
	return explore_now();
}

int32_t hive__cpus_allowed(void)
{
	return 2;
}

size_t hive__cpus_list(uint16_t *ret_cpus, size_t capacity)
{
	(void)ret_cpus, (void)capacity;
	return 0;
}

/* Two CPUs on two nodes: there are near victims and far ones. */
void hive__topology_read(struct topology *t, const char *root)
{
	(void)t, (void)root;
}

int hive__topology_distance(const struct topology *t, uint32_t a, uint32_t b)
{
	(void)t;
	return a == b ? TOPOLOGY_CORE : TOPOLOGY_FAR;
}

void hive__topology_spread(const struct topology *t, uint16_t *cpus, size_t count)
{
	(void)t, (void)cpus, (void)count;
}

/* ---- futex ---- */

enum { NAP_NS = 50000 }; /* who comes back so soon has only stepped aside (base/latch.c) */

void hive__futex_wait(ATOMIC(uint32_t) *word, uint32_t expected, int64_t timeout_ns)
{
	if (HIVE_FAULT("spurious wake") || load_relaxed(word) != expected)
		return;
	if (timeout_ns <= NAP_NS)
		explore_nap((const void *)(uintptr_t)word, timeout_ns);
	else
		explore_block((const void *)(uintptr_t)word, timeout_ns);
}

void hive__futex_wake(ATOMIC(uint32_t) *word, int count)
{
	if (HIVE_FAULT("delayed wake"))
		explore_yield();
	explore_unblock((const void *)(uintptr_t)word, count);
}

/* ---- threads ---- */

__thread uint64_t hive__thread_own_number __attribute__((tls_model("initial-exec")));

uint64_t hive__thread_give_number(void)
{
	hive__thread_own_number = (uint64_t)explore_self() + 1;
	return hive__thread_own_number;
}

bool hive__thread_lives(uint64_t number)
{
	return !explore_thread_is_done((int)(number - 1));
}

int hive__thread_start_in(struct thread_start *start, hive_fn *main, void *main_arg, uint64_t *ret_thread)
{
	(void)start;
	return hive__thread_start(main, main_arg, ret_thread);
}

int hive__thread_start(hive_fn *main, void *main_arg, uint64_t *ret_thread)
{
	if (HIVE_FAULT("thread creation"))
		return -EAGAIN;
	*ret_thread = (uint64_t)explore_spawn("worker", main, main_arg);
	return 0;
}

void hive__thread_join(uint64_t thread)
{
	explore_join((int)thread);
}

uint32_t hive__thread_cpu(void)
{
	return explore_is_on() ? (uint32_t)explore_self() % 2 : 0;
}

void hive__thread_yield(void)
{
	explore_yield();
}

void hive__thread_give_way(uint32_t tries)
{
	(void)tries;
	explore_yield();
}

char *hive__thread_stack_low(void)
{
	return NULL;
}

bool hive__thread_step_aside(void)
{
	return true;
}

void hive__thread_move_to(uint32_t cpu)
{
	(void)cpu;
}

void hive__thread_name(const char *name)
{
	(void)name;
}

int hive__thread_pin(const uint16_t *cpus, size_t count)
{
	(void)cpus, (void)count;
	return 0;
}

int hive__thread_nice(int nice)
{
	(void)nice;
	return 0;
}

void hive__thread_nice_at_least(int nice)
{
	(void)nice;
}

void hive__thread_slices(int64_t slice_ns)
{
	(void)slice_ns;
}

int hive__thread_realtime(int priority)
{
	(void)priority;
	return 0;
}

bool hive__thread_is_timed(void)
{
	return false;
}

bool hive__thread_realtime_if_allowed(int priority)
{
	(void)priority;
	return false;
}

struct thread_policy hive__thread_policy(void)
{
	return (struct thread_policy){ 0 };
}

void hive__thread_restore_policy(struct thread_policy before)
{
	(void)before;
}

int hive__thread_batch(void)
{
	return 0;
}

void hive__thread_ordinary(void) {}

void hive__thread_block_signals(void) {}

void hive__thread_unblock_signal(int number)
{
	(void)number;
}

uint32_t hive__thread_system_number(void)
{
	return (uint32_t)explore_self() + 1;
}

void hive__thread_save_signals(sigset_t *ret_mask)
{
	sigemptyset(ret_mask);
}

void hive__thread_restore_signals(const sigset_t *mask)
{
	(void)mask;
}

int64_t hive__thread_timer_slack(int64_t slack_ns)
{
	return slack_ns;
}
