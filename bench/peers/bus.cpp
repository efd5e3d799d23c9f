// SPDX-License-Identifier: MIT
// The scenario `bus` of `hive bench`: P threads hand n messages of 64 bytes to W threads through something bounded to 1024, and wait where there
// is no room. Compiled for one peer each: PEER_LOCKED (a queue with mutex and conditions), PEER_TBB (tbb::concurrent_bounded_queue),
// PEER_ASIO (post() to an io_context with W threads, bounded by a counting semaphore). The programs of those two have more than this.
//
// Comparable: sizes, bound, threads, waiting. Not comparable: none of them knows types, priorities, a header with a time, or counters; the bus
// does all of that for each message.
#include "scenarios.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>
#if defined(PEER_TBB)
#include <tbb/concurrent_queue.h>
#elif defined(PEER_ASIO)
#include <asio.hpp>
#endif

struct message {
	std::uint64_t number, rest[7];
};
static const std::size_t depth = 1024;
static std::atomic<std::uint64_t> total;
static thread_local std::uint64_t sum;

static void handle(const message &m)
{
	sum += m.number;
}

#if defined(PEER_LOCKED)
static const char *const name = "locked";
struct queue {
	std::mutex lock;
	std::condition_variable some, room;
	std::deque<message> messages;
	bool closed = false;

	void put(const message &m)
	{
		std::unique_lock<std::mutex> held(lock);
		room.wait(held, [this] { return messages.size() < depth; });
		messages.push_back(m);
		held.unlock();
		some.notify_one();
	}
	bool take(message &m)
	{
		std::unique_lock<std::mutex> held(lock);
		some.wait(held, [this] { return closed || !messages.empty(); });
		if (messages.empty())
			return false;
		m = messages.front();
		messages.pop_front();
		held.unlock();
		room.notify_one();
		return true;
	}
	void close(int)
	{
		std::lock_guard<std::mutex> held(lock);
		closed = true;
		some.notify_all();
	}
};
#elif defined(PEER_TBB)
static const char *const name = "tbb";
struct queue {
	tbb::concurrent_bounded_queue<message> messages;

	queue()
	{
		messages.set_capacity((std::ptrdiff_t)depth);
	}
	void put(const message &m)
	{
		messages.push(m);
	}
	bool take(message &m)
	{
		messages.pop(m);
		return m.number != 0;
	}
	void close(int workers)
	{
		for (int i = 0; i < workers; i++)
			put(message{});
	}
};
#elif defined(PEER_ASIO)
static const char *const name = "asio";
#endif

#if defined(PEER_ASIO)
static double run(int producers, int workers, std::int64_t n)
{
	asio::io_context context(workers);
	auto guard = asio::make_work_guard(context);
	std::mutex lock;
	std::condition_variable room;
	std::size_t inside = 0;
	std::vector<std::thread> threads, makers;

	for (int i = 0; i < workers; i++)
		threads.emplace_back([&] {
			sum = 0;
			context.run();
			total += sum;
		});
	auto begin = peer_clock::now();
	for (int i = 0; i < producers; i++)
		makers.emplace_back([&, i] {
			for (std::int64_t k = i + 1; k <= n; k += producers) {
				message m = { (std::uint64_t)k, {} };
				{
					std::unique_lock<std::mutex> held(lock);
					room.wait(held, [&] { return inside < depth; });
					inside++;
				}
				asio::post(context, [m, &lock, &room, &inside] {
					{
						std::lock_guard<std::mutex> held(lock);
						inside--;
					}
					room.notify_one();
					handle(m);
				});
			}
		});
	for (auto &t : makers)
		t.join();
	guard.reset();
	for (auto &t : threads)
		t.join();
	return peer_seconds(peer_clock::now() - begin);
}
#else
static double run(int producers, int workers, std::int64_t n)
{
	queue q;
	std::vector<std::thread> threads, makers;

	for (int i = 0; i < workers; i++)
		threads.emplace_back([&] {
			message m;
			sum = 0;
			while (q.take(m))
				handle(m);
			total += sum;
		});
	auto begin = peer_clock::now();
	for (int i = 0; i < producers; i++)
		makers.emplace_back([&, i] {
			for (std::int64_t k = i + 1; k <= n; k += producers)
				q.put(message{ (std::uint64_t)k, {} });
		});
	for (auto &t : makers)
		t.join();
	q.close(workers);
	for (auto &t : threads)
		t.join();
	return peer_seconds(peer_clock::now() - begin);
}
#endif

bool bus_scenarios(peer_options o)
{
	if (o.scenario != "bus")
		return false;
	o.n = o.n ? o.n : 5000000;
	run(o.producers, o.threads, o.n / 10 + 1);
	total = 0;
	double seconds = run(o.producers, o.threads, o.n);
	peer_check("sum of the messages", (std::uint64_t)o.n * ((std::uint64_t)o.n + 1) / 2, total);
	peer_print(name, o, (double)o.n, seconds);
	return true;
}

#if defined(PEER_LOCKED)
int main(int argc, char **argv)
{
	return bus_scenarios(peer_parse(argc, argv)) ? 0 : PEER_UNKNOWN;
}
#endif
