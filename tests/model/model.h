/* SPDX-License-Identifier: MIT */
#pragma once
/* What the model programs share: tasks that know whether they were run, memory, and main().
 *
 * usage: <program> --list                 names of the scenarios
 *        <program> <scenario>             random schedules, then all schedules with few preemptions; status 1: it fails
 *        <program> --mutants              weaken each order that the scenarios reach, one at a time; a line for each  */
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

/* Posting threads of a model do not end. */
inline bool hive__thread_lives(uint64_t)
{
	return true;
}

struct model_scenario {
	const char *name;
	bool (*run)(rl::scheduler_type_e search, unsigned iterations, unsigned preemptions);
	unsigned iterations, preemptions;
	model_scenario *next;

	static model_scenario *&first()
	{
		static model_scenario *scenarios;
		return scenarios;
	}

	template <typename T>
	static bool simulate(rl::scheduler_type_e search, unsigned iterations, unsigned preemptions)
	{
		rl::test_params params;

		params.search_type = search;
		params.iteration_count = iterations;
		params.context_bound = preemptions;
		params.execution_depth_limit = 5000;
		return rl::simulate<T>(params);
	}

	model_scenario(const char *n, bool (*r)(rl::scheduler_type_e, unsigned, unsigned), unsigned i, unsigned p)
	    : name(n), run(r), iterations(i), preemptions(p), next(NULL)
	{
		model_scenario **at = &first();

		while (*at)
			at = &(*at)->next;
		*at = this;
	}
};

/* `preemptions` 0: random schedules only, where the search for all of them would take too long. */
#define SCENARIO(suite, iterations, preemptions) \
	static model_scenario scenario_##suite(#suite, model_scenario::simulate<suite>, iterations, preemptions)

static inline bool model_holds(const model_scenario *s, unsigned share)
{
	return s->run(rl::sched_random, s->iterations / share, 0) &&
	       (s->preemptions == 0 || s->run(rl::sched_bound, 0, share > 1 ? 1 : s->preemptions));
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

static inline bool model_weaker(const model_site *site, rl::memory_order order)
{
	if (order == site->order || order == rl::mo_consume || order == rl::mo_seq_cst)
		return false;
	if ((site->kind == MODEL_LOAD && (order == rl::mo_release || order == rl::mo_acq_rel)) ||
	    (site->kind == MODEL_STORE && (order == rl::mo_acquire || order == rl::mo_acq_rel)))
		return false;
	return site->order == rl::mo_seq_cst || site->order == rl::mo_acq_rel || order == rl::mo_relaxed;
}

/* In a child: the mutant stays there. Prints which scenario noticed it first. */
static inline void model_try_mutant(model_site *site, rl::memory_order order, bool tagless)
{
	FILE *out = fdopen(dup(1), "w");
	pid_t child;

	fflush(out);
	child = fork();
	if (child == 0) {
		site->tagless = tagless;
		site->order = order;
		if (order == rl::mo_relaxed || order == rl::mo_release)
			site->failure = rl::mo_relaxed;
		else if (site->failure == rl::mo_seq_cst)
			site->failure = rl::mo_acquire;
		if (!freopen("/dev/null", "w", stdout))
			_exit(2);
		alarm(120);
		for (model_scenario *s = model_scenario::first(); s; s = s->next)
			if (!model_holds(s, 4)) {
				fprintf(out, "killed    %s %s %s = %s (%s)\n", site->function, site->verb, site->object,
				        tagless ? "tagless" : model_order_name(order), s->name);
				fflush(out);
				_exit(1);
			}
		fprintf(out, "survived  %s %s %s = %s\n", site->function, site->verb, site->object,
		        tagless ? "tagless" : model_order_name(order));
		fflush(out);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	fclose(out);
}

static inline int model_mutants(void)
{
	int out = dup(1);

	if (!freopen("/dev/null", "w", stdout))
		return 2;
	for (model_scenario *s = model_scenario::first(); s; s = s->next)
		if (!s->run(rl::sched_random, 2000, 0)) /* to learn the sites */
			return 2;
	dup2(out, 1);
	for (model_site *site = model_site::first(); site; site = site->next) {
		static const rl::memory_order orders[] = { rl::mo_acq_rel, rl::mo_release, rl::mo_acquire,
			                                   rl::mo_relaxed };

		for (rl::memory_order order : orders)
			if (model_weaker(site, order))
				model_try_mutant(site, order, false);
		if (strcmp(site->function, "slab_pop") == 0 && strncmp(site->verb, "cas", 3) == 0)
			model_try_mutant(site, site->order, true);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--mutants") == 0)
		return model_mutants();
	for (model_scenario *s = model_scenario::first(); s; s = s->next) {
		if (argc == 2 && strcmp(argv[1], "--list") == 0)
			puts(s->name);
		else if (argc == 2 && strcmp(argv[1], s->name) == 0)
			return model_holds(s, 1) ? 0 : 1;
	}
	return argc == 2 && strcmp(argv[1], "--list") == 0 ? 0 : 2;
}
