// SPDX-License-Identifier: MIT
// `switch`: one context resumes another and is resumed by it; one operation is one switch, a round trip is two; n is round
// trips. In slices, as scenario_switch.c does: their median and the best one.
// `yield`: the same as a floor of that scenario, n switches on one thread: a yield that asks nobody who is next.
//
// Comparable: a switch of stacks with all callee-saved registers and both floating-point control words; one word handed over.
// This is jump_fcontext itself, the routine beneath boost::context::fiber and Boost.Fiber; the wrappers cost more.
#include "peer.hpp"
#include <algorithm>
#include <boost/context/detail/fcontext.hpp>
#include <vector>

static constexpr int SLICES = 100;
namespace ctx = boost::context::detail;

static void echo(ctx::transfer_t from)
{
	for (std::uint64_t seen = 0;; seen++)
		from = ctx::jump_fcontext(from.fctx, reinterpret_cast<void *>(seen));
}

static double round_trips(ctx::fcontext_t &other, std::int64_t count, std::uint64_t &next)
{
	auto begin = peer_clock::now();
	for (std::int64_t i = 0; i < count; i++) {
		ctx::transfer_t back = ctx::jump_fcontext(other, nullptr);
		other = back.fctx;
		next += reinterpret_cast<std::uint64_t>(back.data) == next;
	}
	return peer_seconds(peer_clock::now() - begin);
}

int main(int argc, char **argv)
{
	peer_options options = peer_parse(argc, argv);
	bool yields = options.scenario == "yield";
	if (options.scenario != "switch" && !yields)
		return PEER_UNKNOWN;
	if (options.n == 0)
		options.n = 10000000;
	std::vector<char> stack(65536);
	ctx::fcontext_t other = ctx::make_fcontext(stack.data() + stack.size(), stack.size(), echo);
	std::uint64_t next = 0;
	std::int64_t each = options.n / (yields ? 2 * SLICES : SLICES) + 1;
	std::vector<double> slices;
	double seconds = 0;
	round_trips(other, 10 * each, next);
	for (int i = 0; i < SLICES; i++) {
		slices.push_back(round_trips(other, each, next));
		seconds += slices.back();
	}
	peer_check("round trips", std::uint64_t((10 + SLICES) * each), next);
	std::sort(slices.begin(), slices.end());
	double scale = 1e9 / double(2 * each);
	peer_print(yields ? "bare_switch" : "boost_context", options, double(2 * each * SLICES), seconds,
	           peer_field("switch_ns", slices[SLICES / 2] * scale) +
	                   peer_field("switch_best_ns", slices[0] * scale));
}
