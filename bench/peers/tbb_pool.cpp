// SPDX-License-Identifier: MIT
// The scenarios post, spawn_local, ping, ping_hot and mixed of `hive bench` for oneTBB: same flags, same output, same checks.
//
// Comparable: what is done, and on how many threads: an arena with T slots, none of them kept for a caller, and T workers in all. From outside
// threads a task comes by task_arena::enqueue(), which its manual has for that; inside by task_group::run(). In mixed there are two arenas, as
// the manual has it for work of different urgency: hogs in one of low priority with T slots, tiny tasks in one of high priority with one. T workers
// go to where the priority is, but not before their hog ends. One worker more, for the tiny tasks alone, was no better: it spins before it sleeps.
// Not comparable: enqueue() has no way to say that there was no memory, it throws. No timers, no named worker.
#include "pool.hpp"
#include "scenarios.hpp"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

static const char *const name = "tbb";

static void mixed(const peer_options &o)
{
	tbb::task_arena urgent(1, 0, tbb::task_arena::priority::high),
		heavy(o.threads, 0, tbb::task_arena::priority::low);
	mixed_and_print(
		name, o, [&](auto task) { urgent.enqueue(task); }, [&](auto task) { heavy.enqueue(task); });
}

static bool with_one_arena(const peer_options &o)
{
	tbb::task_arena arena(o.threads, 0);
	tbb::task_group group;
	auto post = [&](auto &&task) { arena.enqueue(task); };
	if (o.scenario == "post")
		post_and_print(name, o, post);
	else if (o.scenario == "spawn_local")
		spawn_and_print(name, o, post, [&](auto &&task) { group.run(task); });
	else if (o.scenario == "ping" || o.scenario == "ping_hot")
		ping_and_print(name, o, post);
	else
		return false;
	arena.execute([&] { group.wait(); });
	return true;
}

bool pool_scenarios(peer_options o)
{
	// an outside thread counts as one more
	tbb::global_control limit(tbb::global_control::max_allowed_parallelism, std::size_t(o.threads) + 1);
	if (o.scenario != "mixed")
		return with_one_arena(o);
	mixed(o);
	return true;
}
