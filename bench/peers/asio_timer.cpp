// SPDX-License-Identifier: MIT
// The scenarios timer and timer_cancel of `hive bench` for Asio's steady_timer: same flags, same output, same checks.
//
// Comparable: delays, passes, how lateness is taken; each of T workers is a context with one thread that has its share of the timers. Not
// comparable: a cancelled wait still calls its handler, so timer_cancel lets the context run between batches and counts those calls as
// part of the operation; all of them must have come.
#include "asio_crew.hpp"
#include "pool.hpp"
#include "scenarios.hpp"

#include <asio/steady_timer.hpp>
#include <deque>
#include <sys/resource.h>

static const char *const name = "asio";
static const std::int64_t shortest_ns = 1000000, spread_ns = 999000000;

struct timed {
	asio::steady_timer timer;
	std::int64_t delay_ns, due_ns = 0, late_ns = 0;
	timed(asio::io_context &context, std::int64_t delay) : timer(context), delay_ns(delay) {}
};

static peer_clock::time_point moment(std::int64_t ns)
{
	return peer_clock::time_point(std::chrono::nanoseconds(ns));
}

struct load {
	asio_crew crew{ 1 };
	std::deque<timed> timers;
	std::int64_t insert_ns = 0;

	void measure_insert()
	{
		std::int64_t begin = now_ns();
		for (auto &one : timers) {
			one.timer.expires_after(std::chrono::nanoseconds(one.delay_ns));
			one.timer.async_wait([](const asio::error_code &) {});
		}
		insert_ns = now_ns() - begin;
		for (auto &one : timers)
			one.timer.cancel();
		asio::post(crew.context(), tally_add); // behind the handlers of all that were cancelled
	}
	// Due after the last insertion, so that the inserting is not measured as lateness.
	void arm_all()
	{
		std::int64_t base = now_ns() + 2 * insert_ns + std::int64_t(timers.size()) * 50;
		for (auto &one : timers) {
			one.due_ns = base + one.delay_ns;
			one.timer.expires_at(moment(one.due_ns));
			one.timer.async_wait([&one](const asio::error_code &error) {
				one.late_ns = now_ns() - one.due_ns;
				if (!error)
					tally_add();
			});
		}
	}
};

// The same delays in every run, and in `hive bench`.
static std::uint64_t next_random(std::uint64_t &state)
{
	state += 0x9e3779b97f4a7c15u;
	std::uint64_t mixed = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
	return mixed ^ (mixed >> 31);
}

static double cpu_seconds()
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

template <typename Work> static void on_each(std::deque<load> &loads, std::int64_t tallies, Work &&work)
{
	std::uint64_t target = tally_total() + std::uint64_t(tallies);
	for (auto &one : loads)
		one.crew.post([&one, work] { work(one); });
	tally_wait(target, 10000000);
}

static void timer(peer_options o)
{
	std::uint64_t seed = 1;
	std::deque<load> loads(std::size_t(o.threads) ? std::size_t(o.threads) : 1);
	std::vector<std::int64_t> late;
	o.n = o.n ? o.n : 100000;
	for (int i = 0; i < o.threads; i++)
		for (std::int64_t k = 0; k < o.n / o.threads + (i < o.n % o.threads); k++)
			loads[std::size_t(i)].timers.emplace_back(
				loads[std::size_t(i)].crew.context(),
				shortest_ns + std::int64_t(next_random(seed) % std::uint64_t(spread_ns)));
	on_each(loads, o.threads, [](load &one) { one.measure_insert(); }); // warm-up
	on_each(loads, o.threads, [](load &one) { one.measure_insert(); });
	std::int64_t slowest = 0;
	for (auto &one : loads)
		slowest = std::max(slowest, one.insert_ns);
	double before = cpu_seconds();
	on_each(loads, o.n, [](load &one) { one.arm_all(); });
	double used = cpu_seconds() - before;
	for (auto &one : loads)
		for (auto &timed : one.timers)
			late.push_back(timed.late_ns);
	double least = double(*std::min_element(late.begin(), late.end()));
	peer_print(name, o, double(o.n), double(slowest) / 1e9,
	           peer_percentiles(std::move(late)) + peer_field("min_ns", least) + peer_field("cpu_s", used));
}

// 10,000 timers that are due in an hour; expires_after() says whether it cancelled one.
class far_timers {
	static const std::int64_t armed = 10000, batch = 512;
	asio_crew crew{ 1 };
	std::deque<asio::steady_timer> timers;
	std::int64_t replaced = 0, ended = 0, left = 0;

	std::size_t arm(std::int64_t i)
	{
		auto &timer = timers[std::size_t(i % armed)];
		std::size_t cancelled = timer.expires_after(std::chrono::hours(1) +
		                                            std::chrono::microseconds(i % armed * 100));
		timer.async_wait([this](const asio::error_code &) { ended++; });
		return cancelled;
	}
	void replace_some()
	{
		for (std::int64_t i = 0; i < batch && left > 0; i++, left--) {
			peer_check("timers that were armed", 1, arm(replaced));
			replaced++;
		}
		if (left > 0)
			crew.post([this] { replace_some(); });
		else
			crew.post(tally_add);
	}
	std::int64_t replace(std::int64_t count)
	{
		std::uint64_t target = tally_total() + 1;
		std::int64_t begin = now_ns();
		left = count;
		crew.post([this] { replace_some(); });
		tally_wait(target, 1000000);
		return now_ns() - begin;
	}
	void in_context(void (far_timers::*work)())
	{
		std::uint64_t target = tally_total() + 1;
		crew.post([this, work] {
			(this->*work)();
			crew.post(tally_add);
		});
		tally_wait(target, 1000000);
	}
	void arm_all()
	{
		for (std::int64_t i = 0; i < armed; i++)
			arm(i);
	}
	void cancel_all()
	{
		for (auto &timer : timers)
			timer.cancel();
	}

      public:
	void run_and_print(peer_options o)
	{
		o.n = o.n ? o.n : 5000000;
		for (std::int64_t i = 0; i < armed; i++)
			timers.emplace_back(crew.context());
		in_context(&far_timers::arm_all);
		replace(o.n / 10 + armed);
		std::int64_t took = replace(o.n);
		in_context(&far_timers::cancel_all);
		peer_check("handlers of cancelled timers", std::uint64_t(replaced + armed), std::uint64_t(ended));
		peer_print(name, o, double(o.n), double(took) / 1e9);
	}
};

bool timer_scenarios(peer_options o)
{
	if (o.scenario == "timer")
		timer(o);
	else if (o.scenario == "timer_cancel")
		far_timers().run_and_print(o);
	else
		return false;
	return true;
}
