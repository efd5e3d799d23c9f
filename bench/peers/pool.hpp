// SPDX-License-Identifier: MIT
// What the peers of post, spawn_local, post_to, ping, ping_hot and mixed share: the measuring side of `hive bench`, with its
// clock, its waiting and its checks. A peer gives functions that take a task (anything that can be called) and see that it runs.
#pragma once
#include "peer.hpp"

#include <atomic>
#include <memory>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <thread>
#include <time.h>

static const std::int64_t patience_ns = 60000000000, ping_idle_ns = 100000, answer_spin_ns = 3000;

inline std::int64_t now_ns(clockid_t clock = CLOCK_MONOTONIC)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return std::int64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}

inline void sleep_until(std::int64_t moment_ns)
{
	struct timespec until = { time_t(moment_ns / 1000000000), long(moment_ns % 1000000000) };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0)
		;
}

// One hint to the CPU that this is a spin.
inline void spin_pause()
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

// Once the pool has its threads, which would inherit it: the poster wakes when it meant to.
inline void sleep_exactly()
{
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

// The one-increment task: a cell for each thread, an exact total.
struct alignas(64) tally_cell {
	std::atomic<std::uint64_t> count{ 0 };
};

inline tally_cell tally_cells[4096];
inline std::atomic<std::size_t> tally_claimed{ 0 };
inline thread_local tally_cell *tally_mine = nullptr;

inline void tally_add()
{
	if (!tally_mine)
		tally_mine = &tally_cells[tally_claimed++ % 4096];
	tally_mine->count.store(tally_mine->count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

inline std::uint64_t tally_total()
{
	std::uint64_t total = 0;
	for (std::size_t i = 0; i < std::min<std::size_t>(tally_claimed, 4096); i++)
		total += tally_cells[i].count.load(std::memory_order_acquire);
	return total;
}

inline void tally_wait(std::uint64_t target, std::int64_t step_ns)
{
	std::int64_t limit = now_ns() + patience_ns;
	for (std::uint64_t total; (total = tally_total()) != target; sleep_until(now_ns() + step_ns)) {
		if (total > target)
			peer_check("tasks that ran", target, total);
		if (now_ns() > limit)
			peer_lost("tasks to run");
	}
}

// post: from the first submit until the last task ran.
template <typename Post> std::int64_t post_race(int producers, std::int64_t n, Post &&post)
{
	std::vector<std::thread> threads;
	std::vector<std::int64_t> begins(std::size_t(producers), 0);
	pthread_barrier_t start;
	std::uint64_t target = tally_total() + std::uint64_t(n);
	pthread_barrier_init(&start, nullptr, unsigned(producers) + 1);
	for (int i = 0; i < producers; i++)
		threads.emplace_back([&, i] {
			std::int64_t count = n / producers + (i < n % producers);
			pthread_barrier_wait(&start);
			begins[std::size_t(i)] = now_ns();
			for (std::int64_t k = 0; k < count; k++)
				post(tally_add);
		});
	pthread_barrier_wait(&start);
	tally_wait(target, 500000);
	std::int64_t end = now_ns();
	for (auto &thread : threads)
		thread.join();
	pthread_barrier_destroy(&start);
	return end - *std::min_element(begins.begin(), begins.end());
}

template <typename Post> void post_and_print(const char *peer, peer_options o, Post &&post)
{
	o.n = o.n ? o.n : 2000000;
	o.producers = std::max(o.producers, 1);
	sleep_exactly();
	post_race(o.producers, o.n / 10 + 1, post);
	peer_print(peer, o, double(o.n), double(post_race(o.producers, o.n, post)) / 1e9);
}

// spawn_local: `post` hands over the one task, in which `local` is called n times.
template <typename Post, typename Local>
void spawn_and_print(const char *peer, peer_options o, Post &&post, Local &&local)
{
	o.n = o.n ? o.n : 2000000;
	auto race = [&](std::int64_t n) {
		std::uint64_t target = tally_total() + std::uint64_t(n) + 1;
		std::int64_t begin = now_ns();
		post([&local, n] {
			for (std::int64_t i = 0; i < n; i++)
				local(tally_add);
			tally_add(); // it has left our frame
		});
		tally_wait(target, 500000);
		return now_ns() - begin;
	};
	sleep_exactly();
	race(o.n / 10 + 1);
	peer_print(peer, o, double(o.n), double(race(o.n)) / 1e9);
}

struct alignas(64) ping_slot {
	std::atomic<std::int64_t> started_ns{ 0 };
};
inline ping_slot ping_answer_slot;

inline void ping_answer()
{
	ping_answer_slot.started_ns.store(now_ns(), std::memory_order_release);
}

// The habit of whoever asks: 3 us of spinning, then sched_yield().
inline std::int64_t ping_await()
{
	for (std::int64_t begin = now_ns();;) {
		std::int64_t started = ping_answer_slot.started_ns.load(std::memory_order_acquire);
		if (started)
			return started;
		std::int64_t waited = now_ns() - begin;
		if (waited > patience_ns)
			peer_lost("an answer");
		if (waited < answer_spin_ns)
			spin_pause();
		else
			sched_yield();
	}
}

template <typename Post> std::vector<std::int64_t> ping_times(std::int64_t count, std::int64_t idle_ns, Post &&post)
{
	std::vector<std::int64_t> times;
	times.reserve(std::size_t(count));
	for (std::int64_t i = 0; i < count; i++) {
		if (idle_ns)
			sleep_until(now_ns() + idle_ns);
		ping_answer_slot.started_ns.store(0, std::memory_order_relaxed);
		std::int64_t posted = now_ns();
		post(ping_answer);
		times.push_back(ping_await() - posted);
	}
	return times;
}

template <typename Post> void ping_and_print(const char *peer, peer_options o, Post &&post)
{
	bool hot = o.scenario == "ping_hot";
	o.n = o.n ? o.n : hot ? 200000 : 5000;
	if (!hot)
		sleep_exactly();
	ping_times(hot ? o.n / 10 + 500 : 500, hot ? 0 : ping_idle_ns, post);
	std::int64_t begin = now_ns();
	auto times = ping_times(o.n, hot ? 0 : ping_idle_ns, post);
	peer_print(peer, o, double(o.n), double(now_ns() - begin) / 1e9, peer_percentiles(std::move(times)));
}

// post_to: a flood for the rate, then one at a time.
template <typename Post> void post_to_and_print(const char *peer, peer_options o, Post &&post)
{
	o.n = o.n ? o.n : 2000000;
	auto flood = [&](std::int64_t n) {
		std::uint64_t target = tally_total() + std::uint64_t(n);
		std::int64_t begin = now_ns();
		for (std::int64_t i = 0; i < n; i++)
			post(tally_add);
		tally_wait(target, 50000);
		return now_ns() - begin;
	};
	sleep_exactly();
	flood(o.n / 10 + 1);
	std::int64_t took = flood(o.n), pings = std::min<std::int64_t>(o.n / 10 + 1, 20000);
	ping_times(pings / 10 + 1, 0, post);
	peer_print(peer, o, double(o.n), double(took) / 1e9, peer_percentiles(ping_times(pings, 0, post)));
}

// mixed: 8 chains of hogs, each burns 2 ms of CPU time and posts the next one; beside them a tiny task each millisecond, by the clock.
static const int hog_chains = 8;
static const std::int64_t hog_cpu_ns = 2000000, tiny_period_ns = 1000000;

inline void burn_cpu_time(std::int64_t cpu_ns)
{
	std::int64_t until = now_ns(CLOCK_THREAD_CPUTIME_ID) + cpu_ns;
	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		for (volatile unsigned i = 0; i < 5000; i = i + 1)
			; // some 10 us between two looks at the clock, which is a system call
}

template <typename Post> struct hogs {
	Post &post;
	std::atomic<bool> stop{ false };
	std::atomic<std::int64_t> done{ 0 };
	std::atomic<int> chains{ 0 };

	explicit hogs(Post &how) : post(how) {}
	void next()
	{
		post([this] {
			burn_cpu_time(hog_cpu_ns);
			done++;
			if (stop)
				chains--;
			else
				next();
		});
	}
	double rate_of_seconds(double seconds)
	{
		std::int64_t begin = now_ns(), before = done;
		sleep_until(begin + std::int64_t(seconds * 1e9));
		return double(done - before) * 1e9 / double(now_ns() - begin);
	}
	void end()
	{
		stop = true;
		for (std::int64_t limit = now_ns() + patience_ns; chains > 0; sleep_until(now_ns() + 1000000))
			if (now_ns() > limit)
				peer_lost("the hogs' end");
	}
};

struct tiny {
	std::int64_t due_ns, posted_ns, started_ns;
};

template <typename Post> void post_tiny(std::vector<tiny> &all, Post &&post)
{
	std::int64_t first = now_ns() + tiny_period_ns;
	for (auto &one : all) {
		one.due_ns = first + (&one - all.data()) * tiny_period_ns;
		sleep_until(one.due_ns);
		one.posted_ns = now_ns();
		post([&one] {
			one.started_ns = now_ns();
			tally_add();
		});
	}
}

template <typename PostTiny, typename PostHog>
void mixed_and_print(const char *peer, peer_options o, PostTiny &&small, PostHog &&large)
{
	o.seconds = o.seconds > 0 ? o.seconds : 3;
	std::vector<tiny> all(std::size_t(o.seconds * 1e9) / tiny_period_ns + 1);
	hogs<PostHog> hogs(large);
	sleep_exactly();
	hogs.chains = hog_chains;
	for (int i = 0; i < hog_chains; i++)
		hogs.next();
	hogs.rate_of_seconds(.2); // warm-up
	double alone = hogs.rate_of_seconds(o.seconds / 2);
	std::uint64_t target = tally_total() + all.size();
	std::int64_t begin = now_ns(), before = hogs.done;
	post_tiny(all, small);
	std::int64_t took = now_ns() - begin;
	double beside = double(hogs.done - before) * 1e9 / double(took);
	tally_wait(target, 1000000);
	alone = (alone + hogs.rate_of_seconds(o.seconds / 2)) / 2;
	hogs.end();
	std::vector<std::int64_t> run, end_to_end;
	for (auto &one : all) {
		run.push_back(one.started_ns - one.posted_ns);
		end_to_end.push_back(one.started_ns - one.due_ns);
	}
	o.n = std::int64_t(all.size());
	peer_print(peer, o, double(o.n), double(took) / 1e9,
	           peer_percentiles(run) + peer_percentiles(end_to_end, "e2e_") + peer_field("hogs_per_s", beside) +
	                   peer_field("hogs_alone_per_s", alone) + peer_field("hogs_ratio", beside / alone));
}
