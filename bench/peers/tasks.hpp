// SPDX-License-Identifier: MIT
// What the peers of the scenarios fib, skynet, loop and sort share: sizes, checks, how often each is done.
#pragma once
#include "peer.hpp"

#include <algorithm>
#include <vector>

static const int turns = 5, loop_turns = 15, branches = 10;

inline std::int64_t fib_by_adding(int n)
{
	std::int64_t a = 0, b = 1;
	for (; n > 0; n--) {
		std::int64_t sum = a + b;
		a = b;
		b = sum;
	}
	return a;
}

inline std::int64_t power_of_ten_within(std::int64_t n)
{
	std::int64_t power = 1;
	while (power <= n / branches)
		power *= branches;
	return power;
}

inline std::int64_t tasks_of(std::int64_t leaves)
{
	return leaves == 1 ? 1 : leaves + tasks_of(leaves / branches);
}

// The middle one of so many turns, in seconds. Slow ones do not get all of them.
template <typename Work> double median_of(int count, Work &&work)
{
	std::vector<double> seconds;
	double all = 0;
	for (int i = 0; i < count && (i < 1 || all < 2); i++) {
		auto begin = peer_clock::now();
		work(i);
		seconds.push_back(peer_seconds(peer_clock::now() - begin));
		all += seconds.back();
	}
	std::sort(seconds.begin(), seconds.end());
	return seconds[seconds.size() / 2];
}

// fib and skynet, given the function that computes them.
template <typename Fib> void fib_and_print(const char *peer, peer_options o, Fib &&fib)
{
	int n = int(o.n = o.n ? o.n : 32);
	fib(n > 5 ? n - 5 : n);
	double seconds = median_of(turns, [&](int) {
		peer_check("rabbits", std::uint64_t(fib_by_adding(n)), std::uint64_t(fib(n)));
	});
	double calls = double(2 * fib_by_adding(n + 1) - 1);
	peer_print(peer, o, calls, seconds, peer_field("ns_each", seconds * 1e9 / calls));
}

template <typename Skynet> void skynet_and_print(const char *peer, peer_options o, Skynet &&skynet)
{
	o.n = o.n ? o.n : 1000000;
	std::int64_t leaves = power_of_ten_within(o.n);
	skynet(0, power_of_ten_within(o.n / 10 + 1));
	double seconds = median_of(turns, [&](int) {
		peer_check("the leaves' sum", std::uint64_t(leaves) * std::uint64_t(leaves - 1) / 2,
		           std::uint64_t(skynet(0, leaves)));
	});
	peer_print(peer, o, double(tasks_of(leaves)), seconds, peer_field("seconds", seconds));
}

static const std::uint32_t loop_factor = 1664525, loop_plus = 1013904223;

// loop(numbers, n): one step for each.
template <typename Loop> void loop_and_print(const char *peer, peer_options o, Loop &&loop)
{
	o.n = o.n ? o.n : 100000000;
	std::vector<std::uint32_t> numbers(std::size_t(o.n));
	for (std::size_t i = 0; i < numbers.size(); i++)
		numbers[i] = std::uint32_t(i);
	std::uint32_t factor = 1, plus = 0;
	auto step = [&] {
		loop(numbers.data(), o.n);
		factor *= loop_factor;
		plus = plus * loop_factor + loop_plus;
	};
	step();
	double seconds = median_of(loop_turns, [&](int) { step(); });
	for (std::size_t i = 0; i < numbers.size(); i++)
		if (numbers[i] != std::uint32_t(i) * factor + plus)
			peer_check("steps of a number", std::uint32_t(i) * factor + plus, numbers[i]);
	peer_print(peer, o, double(o.n), seconds);
}
