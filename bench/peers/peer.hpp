// SPDX-License-Identifier: MIT
// What the programs in C++ share: the flags and the output of `hive bench`.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

struct peer_options {
	std::string scenario;
	int threads = 1, producers = 1, consumers = 1;
	std::int64_t n = 0;
	double seconds = 0; // 0: the scenario's own
};

enum { PEER_USAGE = 2, PEER_TIMEOUT = 3, PEER_WRONG = 4, PEER_UNKNOWN = 10 };

[[noreturn]] inline void peer_usage(const char *program, const char *why)
{
	std::fprintf(stderr, "%s: %s\nusage: --scenario NAME [--threads T] [--producers P] [--consumers C] [--n N] [--seconds S]\n",
	             program, why);
	std::exit(PEER_USAGE);
}

inline peer_options peer_parse(int argc, char **argv)
{
	peer_options options;
	if (argc % 2 == 0)
		peer_usage(argv[0], "a flag without its value");
	for (int i = 1; i + 1 < argc; i += 2) {
		std::string flag = argv[i];
		if (flag == "--scenario")
			options.scenario = argv[i + 1];
		else if (flag == "--threads")
			options.threads = std::atoi(argv[i + 1]);
		else if (flag == "--producers")
			options.producers = std::atoi(argv[i + 1]);
		else if (flag == "--consumers")
			options.consumers = std::atoi(argv[i + 1]);
		else if (flag == "--n")
			options.n = std::atoll(argv[i + 1]);
		else if (flag == "--seconds")
			options.seconds = std::atof(argv[i + 1]);
		else
			peer_usage(argv[0], ("no flag " + flag).c_str());
	}
	if (options.threads < 1 || options.threads > 256 || options.producers < 0 || options.producers > 256 ||
	    options.consumers < 0 || options.consumers > 256 || options.n < 0 || !(options.seconds >= 0 && options.seconds <= 3600))
		peer_usage(argv[0], "a number is out of range");
	return options;
}

inline void peer_check(const char *what, std::uint64_t expected, std::uint64_t seen)
{
	if (expected == seen)
		return;
	std::fprintf(stderr, "wrong count of %s: %llu instead of %llu\n", what, (unsigned long long)seen,
	             (unsigned long long)expected);
	std::_Exit(PEER_WRONG);
}

[[noreturn]] inline void peer_lost(const char *what)
{
	std::fprintf(stderr, "waited too long for %s\n", what);
	std::_Exit(PEER_TIMEOUT);
}

// A line of /proc/self/status, in KiB.
inline long peer_memory(const char *key)
{
	char line[256];
	long value = 0;
	std::FILE *file = std::fopen("/proc/self/status", "r");
	while (file && std::fgets(line, sizeof line, file))
		if (std::strncmp(line, key, std::strlen(key)) == 0)
			value = std::atol(line + std::strlen(key) + 1);
	if (file)
		std::fclose(file);
	return value;
}

using peer_clock = std::chrono::steady_clock;

inline double peer_seconds(peer_clock::duration time)
{
	return std::chrono::duration<double>(time).count();
}

// One line; `more` holds further fields, each with a comma in front.
inline void peer_print(const char *peer, const peer_options &o, double operations, double seconds,
                       const std::string &more = "")
{
	std::printf("{\"peer\":\"%s\",\"scenario\":\"%s\",\"threads\":%d,\"producers\":%d,\"consumers\":%d,\"n\":%lld,"
	            "\"ops_per_s\":%.0f%s,\"rss_kb\":%ld}\n",
	            peer, o.scenario.c_str(), o.threads, o.producers, o.consumers, (long long)o.n, operations / seconds,
	            more.c_str(), peer_memory("VmHWM"));
	std::fflush(stdout);
}

inline std::string peer_field(const char *name, double value)
{
	return std::string(",\"") + name + "\":" + std::to_string(value);
}

// What the share of the values does not exceed; what is negative counts as 0, as in stats.c.
inline std::int64_t peer_quantile(const std::vector<std::int64_t> &sorted, double share)
{
	std::size_t rank = std::size_t(std::ceil(share * double(sorted.size())));
	return sorted.empty() ? 0 : std::max<std::int64_t>(sorted[rank > 0 ? rank - 1 : 0], 0);
}

// Their percentiles as fields, each with the prefix in front of its name.
inline std::string peer_percentiles(std::vector<std::int64_t> times, const std::string &prefix = "")
{
	static const struct {
		const char *name;
		double share;
	} all[] = { { "p10_ns", .10 }, { "p25_ns", .25 }, { "p50_ns", .50 },   { "p75_ns", .75 }, { "p90_ns", .90 },
		    { "p95_ns", .95 }, { "p99_ns", .99 }, { "p999_ns", .999 }, { "max_ns", 1 } };
	std::string text;
	std::sort(times.begin(), times.end());
	for (auto &one : all)
		text += peer_field((prefix + one.name).c_str(), double(peer_quantile(times, one.share)));
	return text;
}
