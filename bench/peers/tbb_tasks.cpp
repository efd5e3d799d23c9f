// SPDX-License-Identifier: MIT
// The scenarios fib, skynet, loop and sort of `hive bench` for oneTBB: same flags, same output, same checks.
//
// Comparable: what is done, how often, and on how many threads (global_control, the caller among them). One half is run in a task_group, the other
// one called; parallel_invoke is no faster. A task_group can be cancelled and carries an exception, for which it has a context of its own, that is
// made and destroyed with it; ours keeps an error, and has no exceptions. With PEER_ONE_CONTEXT all groups share one context, so that an error
// anywhere would be one of all: nearly twice as fast at fib on one thread. Not comparable: parallel_sort is not stable, and takes no memory.
#include "scenarios.hpp"
#include "tasks.hpp"

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>
#include <tbb/task_group.h>

#if defined(PEER_ONE_CONTEXT)
static tbb::task_group_context of_all(tbb::task_group_context::isolated);
struct group_of_tasks : tbb::task_group {
	group_of_tasks() : tbb::task_group(of_all)
	{
	}
};
#else
using group_of_tasks = tbb::task_group;
#endif

static std::int64_t fib(int n)
{
	if (n < 2)
		return n;
	std::int64_t left, right;
	group_of_tasks group;
	group.run([&] { left = fib(n - 1); });
	right = fib(n - 2);
	group.wait();
	return left + right;
}

static std::int64_t skynet(std::int64_t first, std::int64_t leaves)
{
	if (leaves == 1)
		return first;
	std::int64_t each = leaves / branches, sums[branches], sum = 0;
	group_of_tasks group;
	for (int i = 0; i < branches - 1; i++)
		group.run([=, &sums] { sums[i] = skynet(first + i * each, each); });
	sums[branches - 1] = skynet(first + (branches - 1) * each, each);
	group.wait();
	for (std::int64_t one : sums)
		sum += one;
	return sum;
}

static void loop(std::uint32_t *numbers, std::int64_t n)
{
	tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, n), [=](const tbb::blocked_range<std::int64_t> &range) {
		for (std::int64_t i = range.begin(); i < range.end(); i++)
			numbers[i] = numbers[i] * loop_factor + loop_plus;
	});
}

static void sort_and_print(peer_options o)
{
	o.n = o.n ? o.n : 10000000;
	std::vector<std::int32_t> items(std::size_t(o.n), 0);
	std::vector<double> seconds;
	for (int turn = 0; turn <= turns; turn++) { // the first one warms up
		std::uint64_t seed = std::uint64_t(turn) + 1, sum = 0;
		for (auto &item : items) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			item = std::int32_t(std::uint32_t(seed >> 32));
			sum += std::uint32_t(item);
		}
		auto begin = peer_clock::now();
		tbb::parallel_sort(items.begin(), items.end());
		double took = peer_seconds(peer_clock::now() - begin);
		peer_check("items in order", 1, std::is_sorted(items.begin(), items.end()));
		for (auto item : items)
			sum -= std::uint32_t(item);
		peer_check("what the items' sums differ by", 0, sum);
		if (turn > 0)
			seconds.push_back(took);
	}
	std::sort(seconds.begin(), seconds.end());
	peer_print("tbb", o, double(o.n), seconds[seconds.size() / 2]);
}

bool group_scenarios(peer_options o)
{
	tbb::global_control threads(tbb::global_control::max_allowed_parallelism, std::size_t(o.threads));
	if (o.scenario == "fib")
		fib_and_print("tbb", o, fib);
	else if (o.scenario == "skynet")
		skynet_and_print("tbb", o, skynet);
	else if (o.scenario == "loop")
		loop_and_print("tbb", o, loop);
	else if (o.scenario == "sort")
		sort_and_print(o);
	else
		return false;
	return true;
}
