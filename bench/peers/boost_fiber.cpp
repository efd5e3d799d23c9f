// SPDX-License-Identifier: MIT
// The scenarios of `hive bench` that are about fibers, for Boost.Fiber: same flags, same output, same checks.
//
// Comparable: what is done, how often, and on how many threads: one thread runs the round_robin scheduler, its best; several
// run shared_work, of its two ways to share fibers the faster here (work_stealing: BOOST_PEER_STEAL=1).
// Not comparable: stacks have no guard (fixedsize_stack and its pool; a million guarded ones exceed the kernel's mappings),
// fibers cannot be cancelled, waits have no reason to show; a channel of 1024 holds 1023. The pool of stacks is for one thread.
// Left out: skynet_fiber. Its schedulers go through the tree breadth first and keep the stacks of ended fibers until the
// scheduler has its turn: 5 to 10 GiB for a million leaves; with stacks of 16 KiB and launch::dispatch 3.5 GiB and ten seconds.
#include "peer.hpp"
#include <atomic>
#include <boost/fiber/all.hpp>
#include <memory>
#include <thread>
#include <vector>

namespace bf = boost::fibers;
static constexpr std::size_t STACK = 65536;

static void schedule(int threads)
{
	if (threads == 1)
		bf::use_scheduling_algorithm<bf::algo::round_robin>();
	else if (std::getenv("BOOST_PEER_STEAL"))
		bf::use_scheduling_algorithm<bf::algo::work_stealing>(std::uint32_t(threads), true);
	else
		bf::use_scheduling_algorithm<bf::algo::shared_work>(true);
}

// Threads that run fibers until told to end. The calling thread is one of them.
class crew {
	std::vector<std::thread> others;
	std::mutex mutex;
	bf::condition_variable_any told;
	bool done = false;

    public:
	explicit crew(int threads)
	{
		for (int i = 1; i < threads; i++)
			others.emplace_back([this, threads] {
				schedule(threads);
				std::unique_lock<std::mutex> lock(mutex);
				told.wait(lock, [this] { return done; });
			});
		schedule(threads);
	}
	~crew()
	{
		mutex.lock();
		done = true;
		mutex.unlock();
		told.notify_all();
		for (auto &thread : others)
			thread.join();
	}
};

template <typename Stacks, typename Work> static bf::fiber spawn(Stacks &stacks, bf::launch launch, Work &&work)
{
	return bf::fiber(launch, std::allocator_arg, stacks, std::forward<Work>(work));
}

static bf::fixedsize_stack plain_stacks{ STACK };

static std::int64_t yield_all(const peer_options &o, std::int64_t n, double &ret_seconds)
{
	std::int64_t fibers = 2 * o.threads, each = (n + fibers - 1) / fibers;
	std::atomic<std::int64_t> done{ 0 };
	std::vector<bf::fiber> all;
	auto begin = peer_clock::now();
	for (std::int64_t i = 0; i < fibers; i++)
		all.push_back(spawn(plain_stacks, bf::launch::post, [each, &done] {
			std::int64_t mine = 0;
			for (; mine < each; mine++)
				boost::this_fiber::yield();
			done += mine;
		}));
	for (auto &fiber : all)
		fiber.join();
	ret_seconds = peer_seconds(peer_clock::now() - begin);
	peer_check("yields", std::uint64_t(each * fibers), std::uint64_t(done.load()));
	return each * fibers;
}

static double chan_all(const peer_options &o, std::int64_t n)
{
	bf::buffered_channel<std::uint64_t> channel(1024);
	std::atomic<std::uint64_t> sum{ 0 }, count{ 0 };
	std::vector<bf::fiber> senders, receivers;
	auto begin = peer_clock::now();
	for (int i = 0; i < o.consumers; i++)
		receivers.push_back(spawn(plain_stacks, bf::launch::post, [&] {
			std::uint64_t value, mine = 0, number = 0;
			while (channel.pop(value) == bf::channel_op_status::success) {
				mine += value;
				number++;
			}
			sum += mine;
			count += number;
		}));
	std::int64_t next = 1;
	for (int i = 0; i < o.producers; i++) {
		std::int64_t first = next, share = n / o.producers + (i < n % o.producers);
		senders.push_back(spawn(plain_stacks, bf::launch::post, [&channel, first, share] {
			for (std::int64_t value = first; value < first + share; value++)
				channel.push(std::uint64_t(value));
		}));
		next += share;
	}
	for (auto &fiber : senders)
		fiber.join();
	channel.close();
	for (auto &fiber : receivers)
		fiber.join();
	double seconds = peer_seconds(peer_clock::now() - begin);
	peer_check("values", std::uint64_t(n), count);
	peer_check("sum of the values", std::uint64_t(n) * std::uint64_t(n + 1) / 2, sum);
	return seconds;
}

template <typename Stacks> static double spawn_join(Stacks &stacks, std::int64_t n)
{
	std::int64_t born = 0;
	auto begin = peer_clock::now();
	for (std::int64_t i = 0; i < n; i++)
		spawn(stacks, bf::launch::dispatch, [&born] { born++; }).join();
	double seconds = peer_seconds(peer_clock::now() - begin);
	peer_check("children that ran", std::uint64_t(n), std::uint64_t(born));
	return seconds;
}

struct night {
	peer_clock::duration created, woken;
	long kilobytes;
	bool in_time;
};

static night sleep_all(std::int64_t n, peer_clock::duration length)
{
	std::atomic<std::int64_t> asleep{ 0 }, awake{ 0 }, early{ 0 };
	peer_clock::time_point begin = peer_clock::now(), moment = begin + length, slept, last;
	bf::promise<void> all_asleep, all_awake;
	for (std::int64_t i = 0; i < n; i++)
		spawn(plain_stacks, bf::launch::post, [&, n] {
			if (++asleep == n) {
				slept = peer_clock::now();
				all_asleep.set_value();
			}
			boost::this_fiber::sleep_until(moment);
			auto now = peer_clock::now();
			early += now < moment;
			if (++awake == n) {
				last = now;
				all_awake.set_value();
			}
		}).detach();
	all_asleep.get_future().wait();
	boost::this_fiber::sleep_for(std::chrono::milliseconds(1));
	long kilobytes = peer_memory("VmRSS");
	all_awake.get_future().wait();
	peer_check("fibers that woke early", 0, std::uint64_t(early.load()));
	return { slept - begin, last - moment, kilobytes, slept < moment };
}

static void asleep(const peer_options &o)
{
	long before = peer_memory("VmRSS");
	auto shortest = std::chrono::milliseconds(50);
	night seen = sleep_all(o.n / 10 + 1, shortest + std::chrono::nanoseconds(o.n * 200));
	peer_clock::duration length = shortest + 2 * (seen.created * 10);
	for (int i = 0; i < 6; i++, length *= 2) {
		seen = sleep_all(o.n, length);
		if (!seen.in_time)
			continue;
		double seconds = peer_seconds(seen.created);
		peer_print("boost_fiber", o, double(o.n), seconds,
		           peer_field("create_s", seconds) +
		                   peer_field("bytes_each", double(seen.kilobytes - before) * 1024 / double(o.n)) +
		                   peer_field("wake_all_s", peer_seconds(seen.woken)));
		return;
	}
	std::_Exit(PEER_TIMEOUT);
}

template <typename Stacks> static void spawn_and_print(const peer_options &o, Stacks &stacks)
{
	spawn_join(stacks, o.n / 10 + 1);
	double seconds = spawn_join(stacks, o.n);
	peer_print("boost_fiber", o, double(o.n), seconds, peer_field("ns_each", seconds * 1e9 / double(o.n)));
}

static std::int64_t default_n(const std::string &scenario)
{
	return scenario == "fibers_asleep" ? 1000000 : scenario == "spawn_join" ? 2000000 : 10000000;
}

int main(int argc, char **argv)
{
	peer_options o = peer_parse(argc, argv);
	crew all(o.threads);
	if (o.n == 0)
		o.n = default_n(o.scenario);
	if (o.scenario == "yield") {
		double seconds;
		yield_all(o, o.n / 10 + 1, seconds);
		std::int64_t yields = yield_all(o, o.n, seconds);
		peer_print("boost_fiber", o, double(yields), seconds);
	} else if (o.scenario == "chan") {
		chan_all(o, o.n / 10 + 1);
		peer_print("boost_fiber", o, double(o.n), chan_all(o, o.n));
	} else if (o.scenario == "fibers_asleep") {
		asleep(o);
	} else if (o.scenario != "spawn_join") {
		return PEER_UNKNOWN;
	} else if (o.threads == 1) {
		bf::pooled_fixedsize_stack pool(STACK);
		spawn_and_print(o, pool);
	} else {
		spawn_and_print(o, plain_stacks);
	}
	return 0;
}
