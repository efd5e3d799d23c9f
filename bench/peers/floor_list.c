/* SPDX-License-Identifier: MIT */
/* The scenario spawn_local for a bare list: one task appends n tasks, a function and its argument each, to an array that is there already and was
 * touched; then they are called in their order. No library: a floor. Not comparable: one thread, whatever T is; nobody else can take a
 * task, nothing is counted or ended, and the memory of all tasks is there from the beginning.                                       */
#include "peer.h"
#include <stdlib.h>
#include <string.h>

struct task {
	void (*fn)(void *arg);
	void *arg;
};

static struct {
	struct task *tasks;
	int64_t first, end, spawned;
} list;

static void append(void (*fn)(void *), void *arg)
{
	list.tasks[list.end++] = (struct task){ fn, arg };
}

static void spawn(void *unused)
{
	(void)unused;
	for (int64_t i = 0; i < list.spawned; i++)
		append(tally_task, NULL);
}

static int64_t spawn_and_run(int64_t n)
{
	int64_t begin_ns = sync_now();
	list.first = list.end = 0;
	list.spawned = n;
	append(spawn, NULL);
	while (list.first < list.end) {
		struct task task = list.tasks[list.first++];
		task.fn(task.arg);
	}
	return sync_now() - begin_ns;
}

static int spawn_local(const struct bench_params *params, struct record *result)
{
	size_t size = ((size_t)params->n + 2) * sizeof *list.tasks;
	uint64_t expected = (uint64_t)params->n + (uint64_t)params->n / 10 + 1;
	list.tasks = malloc(size);
	peer_must_not(!list.tasks, "memory for the tasks");
	memset(list.tasks, 1, size);
	spawn_and_run(params->n / 10 + 1); /* warm-up */
	bench_put_rate(result, (double)params->n, spawn_and_run(params->n));
	free(list.tasks);
	return tally_total() == expected ? BENCH_OK : bench_wrong("tasks", expected, tally_total());
}

int main(int argc, char **argv)
{
	static const struct peer_scenario scenarios[] = { { "spawn_local", 1, 1, 2000000, 0, spawn_local } };
	return peer_main("bare_list", scenarios, sizeof scenarios / sizeof *scenarios, argc, argv);
}
