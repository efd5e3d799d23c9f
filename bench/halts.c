/* SPDX-License-Identifier: MIT */
#include "halts.h"
#include "sync.h"
#include <errno.h>
#include <sched.h>

static void note(struct halts_of_cpu *cpu, int64_t from_ns, int64_t to_ns)
{
	int at = cpu->count++ % HALTS_MOST;
	cpu->from[at] = from_ns;
	cpu->to[at] = to_ns;
}

static bool is_real_time(void)
{
	struct sched_param above_ours = { .sched_priority = sched_get_priority_min(SCHED_FIFO) + 1 };
	return pthread_setschedparam(pthread_self(), SCHED_FIFO, &above_ours) == 0;
}

static void *watch(void *arg)
{
	struct halts_of_cpu *cpu = arg;
	int64_t due_ns = sync_now();
	cpu_set_t here;
	CPU_ZERO(&here);
	CPU_SET((size_t)cpu->cpu, &here);
	bool may = pthread_setaffinity_np(pthread_self(), sizeof here, &here) == 0 && is_real_time();
	atomic_store(&cpu->look, may ? HALTS_LOOKS : HALTS_REFUSED);
	while ((may || cpu->halts->anyhow) && !atomic_load(&cpu->halts->end)) {
		due_ns += HALTS_PERIOD_NS;
		sync_sleep_until(due_ns);
		int64_t now_ns = sync_now();
		if (now_ns - due_ns < HALTS_LATE_NS)
			continue;
		note(cpu, due_ns - HALTS_PERIOD_NS, now_ns); /* it may have begun right after the last look */
		due_ns = now_ns;
	}
	return NULL;
}

static int end(struct halts *halts, int r)
{
	atomic_store(&halts->end, true);
	for (int i = 0; i < halts->cpu_count; i++)
		pthread_join(halts->cpus[i].thread, NULL);
	return r;
}

/* All of them say whether they may. */
static int await_all(struct halts *halts)
{
	for (int i = 0; i < halts->cpu_count; i++) {
		int look;
		while ((look = atomic_load(&halts->cpus[i].look)) == HALTS_NOT_YET)
			sync_sleep(HALTS_PERIOD_NS);
		if (look == HALTS_REFUSED && !halts->anyhow)
			return -EPERM;
	}
	return 0;
}

int halts_begin(struct halts *halts, bool anyhow)
{
	cpu_set_t allowed;
	int error = 0;
	halts->cpu_count = 0;
	halts->anyhow = anyhow;
	atomic_init(&halts->end, false);
	if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
		return -errno;
	for (int i = 0; i < CPU_SETSIZE && halts->cpu_count < HALTS_CPUS && !error; i++) {
		struct halts_of_cpu *cpu = &halts->cpus[halts->cpu_count];
		if (!CPU_ISSET((size_t)i, &allowed))
			continue;
		cpu->halts = halts;
		cpu->cpu = i;
		cpu->count = 0;
		atomic_init(&cpu->look, HALTS_NOT_YET);
		error = -pthread_create(&cpu->thread, NULL, watch, cpu);
		halts->cpu_count += !error;
	}
	if (!error)
		error = await_all(halts);
	return error ? end(halts, error) : 0;
}

void halts_end(struct halts *halts)
{
	end(halts, 0);
}

bool halts_are_certain(const struct halts *halts)
{
	for (int i = 0; i < halts->cpu_count; i++)
		if (atomic_load(&halts->cpus[i].look) == HALTS_REFUSED)
			return false;
	return true;
}

static int kept(const struct halts_of_cpu *cpu)
{
	return cpu->count < HALTS_MOST ? cpu->count : HALTS_MOST;
}

int halts_count(const struct halts *halts)
{
	int count = 0;
	for (int i = 0; i < halts->cpu_count; i++)
		count += halts->cpus[i].count;
	return count;
}

int64_t halts_longest(const struct halts *halts)
{
	int64_t longest = 0;
	for (int i = 0; i < halts->cpu_count; i++)
		for (int k = 0; k < kept(&halts->cpus[i]); k++) {
			int64_t ns = halts->cpus[i].to[k] - halts->cpus[i].from[k] - HALTS_PERIOD_NS;
			longest = ns > longest ? ns : longest;
		}
	return longest;
}

bool halts_between(const struct halts *halts, int64_t from_ns, int64_t to_ns)
{
	for (int i = 0; i < halts->cpu_count; i++)
		for (int k = 0; k < kept(&halts->cpus[i]); k++)
			if (halts->cpus[i].from[k] < to_ns && halts->cpus[i].to[k] > from_ns)
				return true;
	return false;
}
