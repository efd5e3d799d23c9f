// SPDX-License-Identifier: MIT
// usage: build/bin/peer_context [PAIRS [REPEATS]]
// Boost.Context beside "hive bench --scenario switch": the same ping-pong between two stacks on one thread, first with its bare
// jump, then with its public class. One line of JSON a repeat. Built when Boost.Context is there (libboost-context-dev).
#include <algorithm>
#include <boost/context/detail/fcontext.hpp>
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace context = boost::context;
namespace detail = boost::context::detail;

static std::uint64_t rounds;

static std::int64_t now()
{
	return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

static void back_at_once(detail::transfer_t from)
{
	for (;;) {
		rounds++;
		from = detail::jump_fcontext(from.fctx, nullptr);
	}
}

// Nanoseconds for one switch in the median slice and in the best, as in scenario_switch.c.
struct times {
	double median, best;
};

template <typename Pair> static times time_slices(std::int64_t pairs, Pair pair)
{
	std::vector<std::int64_t> slices;
	std::int64_t each = pairs / 100 + 1;

	for (int i = -10; i < 100; i++) {
		std::int64_t begin = now();
		for (std::int64_t k = 0; k < each; k++)
			pair();
		if (i >= 0)
			slices.push_back(now() - begin);
	}
	std::sort(slices.begin(), slices.end());
	return { double(slices[50]) / double(2 * each), double(slices[0]) / double(2 * each) };
}

static times time_jumps(std::int64_t pairs)
{
	context::fixedsize_stack memory;
	context::stack_context stack = memory.allocate();
	detail::transfer_t there = { detail::make_fcontext(stack.sp, stack.size, back_at_once), nullptr };
	times found = time_slices(pairs, [&there] { there = detail::jump_fcontext(there.fctx, nullptr); });

	memory.deallocate(stack);
	return found;
}

static times time_fibers(std::int64_t pairs)
{
	bool over = false;
	context::fiber there([&over](context::fiber &&from) {
		while (!over) {
			rounds++;
			from = std::move(from).resume();
		}
		return std::move(from);
	});
	times found = time_slices(pairs, [&there] { there = std::move(there).resume(); });

	over = true;
	there = std::move(there).resume();
	return found;
}

int main(int argc, char **argv)
{
	std::int64_t pairs = argc > 1 ? std::atoll(argv[1]) : 10000000;
	int repeats = argc > 2 ? std::atoi(argv[2]) : 1;

	if (pairs < 10 || repeats < 1)
		return 2;
	for (int i = 0; i < repeats; i++) {
		rounds = 0;
		times jump = time_jumps(pairs), fiber = time_fibers(pairs);

		if (rounds != std::uint64_t(2 * 110 * (pairs / 100 + 1)))
			return 4;
		std::printf(
			"{\"peer\":\"boost.context\",\"scenario\":\"switch\",\"n\":%lld,\"jump_best_ns\":%.2f,\"jump_ns\":%.2f,"
			"\"fiber_best_ns\":%.2f,\"fiber_ns\":%.2f}\n",
			(long long)pairs, jump.best, jump.median, fiber.best, fiber.median);
	}
}
