/* SPDX-License-Identifier: MIT */
#pragma once
/* What the model programs share: tasks that know whether they were run, memory, and main().
 *
 * usage: <program> --list                 names of the scenarios
 *        <program> <scenario>             random schedules, then all schedules with few preemptions; status 1: it fails
 *        <program> --sites                which orders each scenario reaches
 *        <program> --mutant SITE ORDER SCENARIO...    with one order weakened, as --sites names it; status 1, and the name
 *                                         of the scenario: that one fails                                              */
#include "base/atomic.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/parker.h"
#include "base/thread.h"

#include <rophive/task.h>

/* Indices begin here: two steps on they wrap. */
#define NEAR_WRAP (UINT64_MAX - 1)

template <int N> struct model_tasks {
	rl::var<int> made[N]; /* written before a task is given, read where it runs: a race shows a missing order */
	int ran[N];
	int count; /* of those that ran */

	model_tasks() : ran(), count() {}

	template <int I> static void function(void *) {}

	static hive_fn *function_of(int i)
	{
		static hive_fn *const functions[] = { function<0>, function<1>, function<2>, function<3>, function<4> };
		static_assert(N <= 5, "one function for each task");
		return functions[i];
	}

	hive_task make(int i)
	{
		hive_task task = { function_of(i), &made[i] };

		made[i]($) = i;
		return task;
	}

	/* The number of the task. Both words must be of the same task, and it must not have run before. */
	int run(hive_task task)
	{
		int i = (int)((rl::var<int> *)task.arg - made);

		RL_ASSERT(i >= 0 && i < N && task.fn == function_of(i));
		RL_ASSERT(made[i]($) == i);
		RL_ASSERT(ran[i] == 0);
		ran[i] = 1;
		count++;
		return i;
	}
};

/* Blocks are members of the scenario, constructed with it, and handed out in this order. Chunks are plain memory. */
struct model_memory {
	struct block {
		void *start;
		size_t bytes;
		bool given;
	} blocks[4];
	struct memory memory;

	static void *allocate(void *, void *, size_t)
	{
		return NULL;
	}

	model_memory() : blocks()
	{
		memory.allocate = allocate; /* not called: hive__memory_new is ours */
		memory.arg = this;
	}

	void offer(void *start, size_t bytes)
	{
		block *b = blocks;

		while (b->start)
			b++;
		b->start = start;
		b->bytes = bytes;
	}
};

inline void *hive__memory_new(const struct memory *memory, size_t bytes)
{
	model_memory *m = (model_memory *)memory->arg;

	for (model_memory::block &b : m->blocks)
		if (b.start && !b.given && b.bytes == bytes) {
			b.given = true;
			return b.start;
		}
	return rl::rl_calloc(1, bytes, $);
}

inline void hive__memory_free(const struct memory *memory, void *block)
{
	model_memory *m = (model_memory *)memory->arg;

	for (model_memory::block &b : m->blocks)
		if (b.start == block)
			return;
	rl::rl_free(block, $);
}

/* Posting threads of a model live, unless it says which one has ended. The system's word orders nothing. */
static rl::atomic<uint64_t> *model_ended;

inline bool hive__thread_lives(uint64_t number)
{
	return !model_ended || model_ended->load(rl::mo_relaxed, $) != number;
}

template <typename T> struct model_scene_of {
	static void construct(void *at)
	{
		new (at) T();
	}
	static void destroy(void *suite)
	{
		((T *)suite)->~T();
	}
	static void before(void *suite)
	{
		((T *)suite)->before();
	}
	static void invariant(void *suite)
	{
		((T *)suite)->invariant();
	}
	static void thread(void *suite, unsigned number)
	{
		((T *)suite)->thread(number);
	}
	static void after(void *suite)
	{
		((T *)suite)->after();
	}
	static const model_scene *scene()
	{
		static const model_scene scene = {
			T::params::thread_count, sizeof(T), construct, destroy, before, invariant, thread, after
		};

		return &scene;
	}
};

struct model_scenario {
	const char *name;
	const model_scene *scene;
	unsigned iterations, preemptions;
	model_scenario *next;

	static model_scenario *&first()
	{
		static model_scenario *scenarios;
		return scenarios;
	}

	bool run(rl::scheduler_type_e search, unsigned schedules, unsigned most) const
	{
		return model_play(scene, search, schedules, most);
	}

	model_scenario(const char *n, const model_scene *s, unsigned i, unsigned p)
	    : name(n), scene(s), iterations(i), preemptions(p), next(NULL)
	{
		model_scenario **at = &first();

		while (*at)
			at = &(*at)->next;
		*at = this;
	}
};

/* `preemptions` 0: random schedules only, where the search for all of them would take too long. */
#define SCENARIO(suite, iterations, preemptions) \
	static model_scenario scenario_##suite(#suite, model_scene_of<suite>::scene(), iterations, preemptions)

/* ROPHIVE_MODEL_PART=3: a third of the random schedules, and one preemption fewer where there are several. */
static inline unsigned model_part(void)
{
	const char *part = getenv("ROPHIVE_MODEL_PART");

	return part && atoi(part) > 0 ? (unsigned)atoi(part) : 1;
}

static inline bool model_holds(const model_scenario *s, unsigned share)
{
	unsigned part = model_part(), preemptions = s->preemptions - (part > 1 && s->preemptions > 2 ? 1 : 0);

	return s->run(rl::sched_random, s->iterations / share / part, 0) &&
	       (s->preemptions == 0 || s->run(rl::sched_bound, 0, share > 1 ? 1 : preemptions));
}

static inline const char *model_order_name(rl::memory_order order)
{
	switch (order) {
	case rl::mo_relaxed:
		return "relaxed";
	case rl::mo_acquire:
		return "acquire";
	case rl::mo_release:
		return "release";
	case rl::mo_acq_rel:
		return "acq_rel";
	default:
		return "seq_cst";
	}
}

static inline model_scenario *model_scenario_named(const char *name)
{
	model_scenario *s = model_scenario::first();

	while (s && strcmp(s->name, name) != 0)
		s = s->next;
	return s;
}

/* A line for each scenario and each order that it reaches, with tabs between. What Relacy says itself goes nowhere. */
static inline int model_sites(void)
{
	static const char *const kinds[] = { "load", "store", "change" };
	FILE *out = fdopen(dup(1), "w");

	if (!out || !freopen("/dev/null", "w", stdout))
		return 2;
	for (model_scenario *s = model_scenario::first(); s; s = s->next) {
		for (model_site *site = model_site::first(); site; site = site->next)
			site->reached = false;
		if (!s->run(rl::sched_random, 1000, 0) || (s->preemptions > 0 && !s->run(rl::sched_bound, 0, 1)))
			return 2;
		for (model_site *site = model_site::first(); site; site = site->next) {
			char name[300];

			site->print_name(name, sizeof name);
			if (site->reached)
				fprintf(out, "%s\t%s\t%s\t%s\t%s\n", name, site->function, kinds[site->kind],
				        model_order_name(site->order), s->name);
		}
	}
	return fclose(out) == 0 ? 0 : 2;
}

static inline int model_mutant(int argc, char **argv)
{
	FILE *out = fdopen(dup(1), "w");

	model_site::mutant() = argv[2];
	for (int order = rl::mo_relaxed; order <= rl::mo_seq_cst; order++)
		if (strcmp(model_order_name((rl::memory_order)order), argv[3]) == 0 && order != rl::mo_consume)
			model_site::mutant_order() = (rl::memory_order)order;
	if (!out || !freopen("/dev/null", "w", stdout))
		return 2;
	for (int i = 4; i < argc; i++) {
		const model_scenario *s = model_scenario_named(argv[i]);

		if (!s)
			return 2;
		if (model_holds(s, 4))
			continue;
		fprintf(out, "%s\n", s->name);
		return fclose(out) == 0 ? 1 : 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const model_scenario *s;

	if (argc == 2 && strcmp(argv[1], "--sites") == 0)
		return model_sites();
	if (argc > 4 && strcmp(argv[1], "--mutant") == 0)
		return model_mutant(argc, argv);
	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (s = model_scenario::first(); s; s = s->next)
			puts(s->name);
		return 0;
	}
	s = argc == 2 ? model_scenario_named(argv[1]) : NULL;
	return !s ? 2 : model_holds(s, 1) ? 0 : 1;
}
