// SPDX-License-Identifier: MIT
// The scenarios post, spawn_local, post_to, ping, ping_hot, mixed and skynet of `hive bench` for Asio: same flags, same output, same checks.
//
// Comparable: what is done, and on how many threads: an io_context that T threads run, told how many they are; one thread needs fewer locks. In
// spawn_local it is defer(), which lays the tasks aside until the one that made them ends, and is mostly faster than post(). In post_to a worker
// is a context with one thread, and there are T of them. In mixed there are two contexts, since one has no priorities: T threads for the hogs,
// one for the tiny tasks. skynet has no joins to wait in: the last of ten children hands the sum on upwards, in memory of each node's own. Not
// comparable: a task of Asio may be anything that can be called, and it cannot be stolen: there is one queue.
#include "asio_crew.hpp"
#include "pool.hpp"
#include "scenarios.hpp"
#include "tasks.hpp"

#include <asio/defer.hpp>
#include <deque>
#include <future>

static const char *const name = "asio";

struct node {
	node *parent;
	std::int64_t first, leaves;
	std::atomic<int> missing{ branches };
	std::atomic<std::int64_t> sum{ 0 };

	node(node *above, std::int64_t from, std::int64_t count) : parent(above), first(from), leaves(count) {}
};

class skynet_tree {
	asio_crew &crew;
	std::shared_ptr<std::promise<std::int64_t>> result = std::make_shared<std::promise<std::int64_t>>();

	// Upwards from a node that is complete, as long as it was the last of its parent.
	void hand_on(node *below, std::int64_t sum)
	{
		while (below) {
			below->sum.fetch_add(sum, std::memory_order_relaxed);
			if (below->missing.fetch_sub(1, std::memory_order_acq_rel) > 1)
				return;
			std::unique_ptr<node> done(below);
			sum = done->sum.load(std::memory_order_relaxed);
			below = done->parent;
		}
		auto kept = result; // who waits may be gone with us before set_value() returns
		kept->set_value(sum);
	}

      public:
	explicit skynet_tree(asio_crew &of) : crew(of) {}
	void grow(node *parent, std::int64_t first, std::int64_t leaves)
	{
		if (leaves == 1)
			return hand_on(parent, first);
		node *mine = new node(parent, first, leaves);
		std::int64_t each = leaves / branches;
		for (int i = 0; i < branches - 1; i++)
			crew.post([this, mine, from = first + i * each, each] { grow(mine, from, each); });
		grow(mine, first + (branches - 1) * each, each);
	}
	std::int64_t run(std::int64_t first, std::int64_t leaves)
	{
		auto sum = result->get_future();
		crew.post([=] { grow(nullptr, first, leaves); });
		if (sum.wait_for(std::chrono::nanoseconds(patience_ns)) != std::future_status::ready)
			peer_lost("the tree's sum");
		return sum.get();
	}
};

static void post_to(const peer_options &o)
{
	std::deque<asio_crew> workers;
	for (int i = 0; i < o.threads; i++)
		workers.emplace_back(1);
	post_to_and_print(name, o, [&](auto &&task) { workers.back().post(task); });
}

static void mixed(const peer_options &o)
{
	asio_crew small(1), large(o.threads);
	mixed_and_print(
		name, o, [&](auto &&task) { small.post(task); }, [&](auto &&task) { large.post(task); });
}

static bool with_one_crew(const peer_options &o)
{
	asio_crew crew(o.threads);
	auto post = [&](auto &&task) { crew.post(task); };
	if (o.scenario == "post")
		post_and_print(name, o, post);
	else if (o.scenario == "spawn_local")
		spawn_and_print(name, o, post, [&](auto &&task) { asio::defer(crew.context(), task); });
	else if (o.scenario == "ping" || o.scenario == "ping_hot")
		ping_and_print(name, o, post);
	else if (o.scenario == "skynet")
		skynet_and_print(name, o, [&](std::int64_t first, std::int64_t leaves) {
			return skynet_tree(crew).run(first, leaves);
		});
	else
		return false;
	return true;
}

bool pool_scenarios(peer_options o)
{
	if (o.scenario == "post_to")
		post_to(o);
	else if (o.scenario == "mixed")
		mixed(o);
	else
		return with_one_crew(o);
	return true;
}
